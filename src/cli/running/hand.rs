//! Commands that change something by hand, and `evenkeel diff`, which shows it.

use std::process::ExitCode;
use std::time::Duration;

use hyper::{Method, StatusCode};
use serde_json::{Map, Value, json};

use super::ask::AdminQuestion;
use super::{complain, lost, tell, understood};
use crate::admin::exchange::percent::encoded;
use crate::admin::status::report::BackendReport;
use crate::admin::wire::ChangeReport;
use crate::cli::args::hand::{
    AddOptions, BackendWord, DiffOptions, DrainOptions, ReadyOptions, RemoveOptions, SaveOptions,
    StateOptions, WeightOptions, WeightWord,
};
use crate::cli::args::running::AskOptions;
use crate::cli::output;
use crate::overlay::OverlayReport;
use crate::reload::save::{LeftEntry, SaveReport, SavedFile};

/// Between two looks whether anything is still under way.
const GLANCE: Duration = Duration::from_millis(200);

pub(in crate::cli) fn drain(options: &DrainOptions) -> anyhow::Result<ExitCode> {
    let code = patch(
        &options.backend,
        "state",
        json!("drain"),
        (options.hand.lasts, options.hand.local),
        &options.hand.asking,
    )?;
    if options.wait && code == ExitCode::SUCCESS {
        return wait(&options.backend, &options.hand.asking);
    }
    Ok(code)
}

pub(in crate::cli) fn down(options: &StateOptions) -> anyhow::Result<ExitCode> {
    patch(
        &options.backend,
        "state",
        json!("down"),
        (options.hand.lasts, options.hand.local),
        &options.hand.asking,
    )
}

pub(in crate::cli) fn ready(options: &ReadyOptions) -> anyhow::Result<ExitCode> {
    patch(&options.backend, "state", Value::Null, (None, options.local), &options.asking)
}

pub(in crate::cli) fn weight(options: &WeightOptions) -> anyhow::Result<ExitCode> {
    let weight = match options.weight {
        WeightWord::File => Value::Null,
        WeightWord::Number(number) => json!(number),
    };
    patch(&options.backend, "weight", weight, (options.hand.lasts, options.hand.local), &options.hand.asking)
}

pub(in crate::cli) fn add(options: &AddOptions) -> anyhow::Result<ExitCode> {
    let AddOptions { target, url, name, weight, hand } = options;
    let mut body = Map::from_iter([("url".to_owned(), json!(url))]);
    body.extend(name.iter().map(|name| ("name".to_owned(), json!(name))));
    body.extend(weight.iter().map(|weight| ("weight".to_owned(), json!(weight))));
    let path = format!("/api/v1/targets/{}/backends", encoded(target));
    change(Method::POST, path, with_scope(body, (hand.lasts, hand.local)), (&hand.asking, hand.lasts))
}

pub(in crate::cli) fn remove(options: &RemoveOptions) -> anyhow::Result<ExitCode> {
    let drain = options.now.then(|| "drain=0s".to_owned());
    let lasts = options.hand.lasts.map(|span| format!("for={}", seconds(span)));
    let local = options.hand.local.then(|| "local=true".to_owned());
    let query: Vec<String> = drain.into_iter().chain(lasts).chain(local).collect();
    let mut path = path(&options.backend);
    if !query.is_empty() {
        path += &format!("?{}", query.join("&"));
    }
    change(Method::DELETE, path, Vec::new(), (&options.hand.asking, options.hand.lasts))
}

pub(in crate::cli) fn diff(options: &DiffOptions) -> anyhow::Result<ExitCode> {
    let AskOptions { process, json } = &options.asking;
    let path = "/api/v1/overlay".to_owned();
    let question = AdminQuestion { method: Method::GET, path, body: Vec::new() };
    let heard = match tell(process, question) {
        Ok(heard) => heard,
        Err(error) => return lost(&format!("{error:#}")),
    };
    if heard.status != StatusCode::OK {
        return complain(&heard, *json);
    }
    let report: OverlayReport = understood(&heard)?;
    output::print(&if *json { heard.json() } else { shown(&report) })?;
    Ok(if report.entries.is_empty() && report.blocked.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

pub(in crate::cli) fn save(options: &SaveOptions) -> anyhow::Result<ExitCode> {
    let AskOptions { process, json } = &options.asking;
    let path = "/api/v1/overlay/save".to_owned();
    let heard = match tell(process, AdminQuestion { method: Method::POST, path, body: Vec::new() }) {
        Ok(heard) => heard,
        Err(error) => return lost(&format!("{error:#}")),
    };
    if !heard.status.is_success() {
        complain(&heard, *json)?;
        return Ok(ExitCode::FAILURE);
    }
    let report: SaveReport = understood(&heard)?;
    output::print(&if *json { heard.json() } else { saved(&report) })?;
    Ok(ExitCode::SUCCESS)
}

fn saved(report: &SaveReport) -> String {
    let mut text = String::new();
    for SavedFile { file, lines } in &report.files {
        text += &format!("{file}\n");
        text.extend(lines.iter().map(|line| format!("  {line}\n")));
    }
    if report.saved.is_empty() {
        text += "nothing to save\n";
    }
    let left = report.left.iter();
    text.extend(left.map(|LeftEntry { entry, reason }| format!("left: {entry}: {reason}\n")));
    text
}

fn shown(report: &OverlayReport) -> String {
    let mut text: String = report.entries.iter().map(|entry| format!("{entry}\n")).collect();
    text.extend(report.blocked.iter().map(|entry| format!("{entry}\n")));
    if text.is_empty() {
        text += "nothing is changed by hand\n";
    }
    if let Some(reason) = &report.refused {
        text += &format!("changes by hand are refused: {reason}\n");
    }
    text
}

/// Where the API has it.
pub(super) fn path(word: &BackendWord) -> String {
    format!("/api/v1/targets/{}/backends/{}", encoded(&word.target), encoded(&word.backend))
}

/// Whole seconds, at least one.
fn seconds(span: Duration) -> u64 {
    span.as_millis().div_ceil(1000).try_into().unwrap_or(u64::MAX)
}

pub(super) fn with_scope(
    mut body: Map<String, Value>,
    (lasts, is_local): (Option<Duration>, bool),
) -> Vec<u8> {
    body.extend(is_local.then(|| ("local".to_owned(), json!(true))));
    body.extend(lasts.map(|span| ("for".to_owned(), json!(seconds(span)))));
    Value::Object(body).to_string().into_bytes()
}

fn patch(
    backend: &BackendWord,
    field: &str,
    value: Value,
    scope: (Option<Duration>, bool),
    asking: &AskOptions,
) -> anyhow::Result<ExitCode> {
    let body = Map::from_iter([(field.to_owned(), value)]);
    change(Method::PATCH, path(backend), with_scope(body, scope), (asking, scope.0))
}

/// Asks for a change, for how long it is to last, and prints what has changed.
fn change(
    method: Method,
    path: String,
    body: Vec<u8>,
    (asking, lasts): (&AskOptions, Option<Duration>),
) -> anyhow::Result<ExitCode> {
    let heard = match tell(&asking.process, AdminQuestion { method, path, body }) {
        Ok(heard) => heard,
        Err(error) => return lost(&format!("{error:#}")),
    };
    if !heard.status.is_success() {
        complain(&heard, asking.json)?;
        // Whoever answered was the one that was meant: it is no matter of the command line.
        return Ok(ExitCode::FAILURE);
    }
    let report: ChangeReport = understood(&heard)?;
    output::print(&if asking.json { heard.json() } else { done(&report, lasts) })?;
    Ok(ExitCode::SUCCESS)
}

fn done(report: &ChangeReport, lasts: Option<Duration>) -> String {
    let lines = report.plan.lines();
    if lines.is_empty() {
        // The state was the same before; for how long was not.
        let over = lasts.map(|span| format!(", and it is over in {}", humantime::format_duration(span)));
        return format!("nothing differs for {}{}\n", report.objects.join(", "), over.unwrap_or_default());
    }
    lines.into_iter().map(|line| line + "\n").collect()
}

/// Returns when nothing is under way on the backend.
fn wait(backend: &BackendWord, asking: &AskOptions) -> anyhow::Result<ExitCode> {
    loop {
        let question = AdminQuestion { method: Method::GET, path: path(backend), body: Vec::new() };
        let heard = match tell(&asking.process, question) {
            Ok(heard) => heard,
            Err(error) => return lost(&format!("{error:#}")),
        };
        match heard.status {
            StatusCode::OK => {
                let report: BackendReport = understood(&heard)?;
                if report.active == 0 {
                    return Ok(ExitCode::SUCCESS);
                }
                let is_wanted = |says: &str| matches!(says, "drain" | "down");
                let mut inputs = report.inputs.iter().filter(|input| input.source == "operator");
                if !inputs.any(|input| is_wanted(&input.says)) {
                    return lost("it is not drained any more: somebody has taken that back");
                }
            }
            // Somebody has taken it out of the config meanwhile.
            StatusCode::NOT_FOUND => return Ok(ExitCode::SUCCESS),
            _ => return complain(&heard, asking.json),
        }
        std::thread::park_timeout(GLANCE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backend_is_one_segment_of_the_path() {
        let word = BackendWord { target: "web".into(), backend: "unix:/run/a.sock".into() };
        assert_eq!(path(&word), "/api/v1/targets/web/backends/unix%3A%2Frun%2Fa.sock");
        assert_eq!((seconds(Duration::from_millis(1)), seconds(Duration::from_secs(2))), (1, 2));
    }
}
