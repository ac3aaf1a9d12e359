//! Commands about the config of a process that serves: `plan`, `reload`, `apply`, `confirm`, `rollback`.

use std::io::Read as _;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use hyper::Method;

use super::ask::AdminQuestion;
use super::{answered, counted, lost, problems};
use crate::admin::CONFIG_MAX;
use crate::admin::wire::ApplyReport;
use crate::cli::args::running::{ApplyOptions, AskOptions, PlanOptions};
use crate::reload::plan::{Plan, PlanVerdict};
use crate::reload::trial::Confirmed;

/// Asks what a reload would do.
pub(in crate::cli) fn plan(options: &PlanOptions) -> anyhow::Result<ExitCode> {
    let question = match &options.file {
        None => post("plan", ""),
        Some(file) => match given("plan", file, None) {
            Ok(question) => question,
            Err(why) => return lost(&why),
        },
    };
    Ok(match answered(&options.asking, question, foreseen)? {
        Ok(plan) if plan.verdict == PlanVerdict::Refused => ExitCode::FAILURE,
        Ok(_) => ExitCode::SUCCESS,
        Err(code) => code,
    })
}

/// Has the process read its config again.
pub(in crate::cli) fn reload(asking: &AskOptions) -> anyhow::Result<ExitCode> {
    ended(answered(asking, post("reload", ""), |plan: &Plan| done("reloaded", plan)))
}

/// Puts another config into force.
pub(in crate::cli) fn apply(options: &ApplyOptions) -> anyhow::Result<ExitCode> {
    let question = match given("apply", &options.file, options.confirm) {
        Ok(question) => question,
        Err(why) => return lost(&why),
    };
    ended(answered(&options.asking, question, applied))
}

/// Has the config on trial stay.
pub(in crate::cli) fn confirm(asking: &AskOptions) -> anyhow::Result<ExitCode> {
    let shown = |Confirmed { file, before }: &Confirmed| {
        let before = before
            .as_ref()
            .map_or_else(String::new, |before| format!(", {} the one before", before.display()));
        format!("confirmed: {} is the config in force{before}\n", file.display())
    };
    ended(answered(asking, post("confirm", ""), shown))
}

/// Takes the config on trial back.
pub(in crate::cli) fn rollback(asking: &AskOptions) -> anyhow::Result<ExitCode> {
    ended(answered(asking, post("rollback", ""), |plan: &Plan| done("rolled back", plan)))
}

fn ended<T>(answer: anyhow::Result<Result<T, ExitCode>>) -> anyhow::Result<ExitCode> {
    Ok(answer?.err().unwrap_or(ExitCode::SUCCESS))
}

fn post(what: &str, query: &str) -> AdminQuestion {
    let path = format!("/api/v1/config/{what}{query}");
    AdminQuestion { method: Method::POST, path, body: Vec::new() }
}

/// With the text of a file; why it can't be given, if so.
fn given(what: &str, file: &Path, confirm: Option<Duration>) -> Result<AdminQuestion, String> {
    let is_input = file == Path::new("-");
    let name = if is_input { "standard input".into() } else { file.to_string_lossy() };
    let body = match text(file) {
        Ok(text) if text.trim_ascii().is_empty() => {
            Err(if is_input { "nothing came" } else { "this file is empty" }.to_owned())
        }
        Ok(text) if std::str::from_utf8(&text).is_err() => {
            Err("not UTF-8; `evenkeel check` says what it is".to_owned())
        }
        Ok(text) => Ok(text),
        Err(error) => Err(format!("can't be read: {error}")),
    };
    let body = body.map_err(|why| format!("{name}: {why}"))?;
    let mut query = format!("?file={}", encoded(&name));
    if let Some(window) = confirm {
        query += &format!("&confirm={}ms", window.as_millis());
    }
    Ok(AdminQuestion { body, ..post(what, &query) })
}

/// What would be done, as text.
fn foreseen(plan: &Plan) -> String {
    let mut text = before_verdict(plan);
    text += &problems(&plan.problems);
    text += &match plan.verdict {
        PlanVerdict::Unchanged => "nothing would change\n".to_owned(),
        PlanVerdict::Taken => format!("it would be taken: {}\n", plan.counts()),
        PlanVerdict::Refused => format!("it would be refused: {}\n", counted(plan.problems.len())),
    };
    text
}

/// What was done, as text.
fn done(what: &str, plan: &Plan) -> String {
    let text = before_verdict(plan);
    match plan.verdict {
        PlanVerdict::Unchanged => format!("{text}{what}: nothing differs\n"),
        PlanVerdict::Taken | PlanVerdict::Refused => format!("{text}{what}: {}\n", plan.counts()),
    }
}

fn applied(report: &ApplyReport) -> String {
    let text = done("applied", &report.plan);
    let Some(trial) = &report.trial else { return text };
    let window = humantime::format_duration(Duration::from_millis(trial.window_ms));
    format!("{text}on trial for {window}: `evenkeel confirm` keeps it, or it is taken back\n")
}

fn before_verdict(plan: &Plan) -> String {
    let lines = plan.lines().into_iter();
    let warnings = plan.warnings.iter().map(|warning| format!("warning: {warning}"));
    lines.chain(warnings).map(|line| line + "\n").collect()
}

/// What is in a file, as far as a config can be as long.
fn text(file: &Path) -> std::io::Result<Vec<u8>> {
    let mut text = Vec::new();
    let most = CONFIG_MAX as u64 + 1;
    if file == Path::new("-") {
        std::io::stdin().take(most).read_to_end(&mut text)?;
    } else {
        std::fs::File::open(file)?.take(most).read_to_end(&mut text)?;
    }
    if text.len() > CONFIG_MAX {
        return Err(std::io::Error::other("it is larger than 16MiB"));
    }
    Ok(text)
}

/// Percent-encoded as the value of a query.
pub(super) fn encoded(text: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte);
    text.bytes()
        .map(|byte| if is_plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_end_is_no_config() {
        let error = text(Path::new("/dev/zero")).expect_err("it has no end");
        assert_eq!(error.to_string(), "it is larger than 16MiB");
    }

    #[test]
    fn a_name_is_encoded_for_a_query() {
        assert_eq!(encoded("/a b/ü&=.yaml"), "/a%20b/%C3%BC%26%3D.yaml");
    }
}
