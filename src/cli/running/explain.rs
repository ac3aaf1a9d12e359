//! `evenkeel explain`: what would become of a request, by a config alone or in a process that runs.

use std::process::ExitCode;

use hyper::Method;
use serde::Deserialize;
use serde_json::{Value, json};

use super::ask::AdminQuestion;
use super::{answered, lost};
use crate::admin::Explanation;
use crate::cli::args::explain::ExplainOptions;
use crate::cli::args::running::{AskOptions, ProcessOptions};
use crate::cli::json_events::escaped;
use crate::cli::output;
use crate::config::model::SampleRequest;
use crate::config::{self, Flags};
use crate::decision::decide;
use crate::snapshot::Snapshots;

/// What of an answer is printed.
#[derive(Deserialize)]
struct Told {
    lines: Vec<String>,
}

/// Says what would become of a request.
pub(in crate::cli) fn run(options: &ExplainOptions) -> anyhow::Result<ExitCode> {
    let request = match sample(options) {
        Ok(request) => request,
        Err(why) => return lost(&why),
    };
    match &options.config {
        Some(file) => by_config(&request, file, options.json),
        None => by_process(&request, options),
    }
}

fn sample(options: &ExplainOptions) -> Result<SampleRequest, String> {
    let ExplainOptions { method, url, headers, from, listener, .. } = options;
    let mut request =
        SampleRequest::new(method, url).map_err(|why| format!("this is no URL to explain, but one {why}"))?;
    for line in headers {
        request.add_line(line).map_err(|why| format!("`-H`: {why}"))?;
    }
    request.listener.clone_from(listener);
    request.from = from.unwrap_or(request.from);
    Ok(request)
}

/// Its `tests` need not pass: whoever asks may want to know why one does not.
fn by_config(request: &SampleRequest, file: &std::path::Path, json: bool) -> anyhow::Result<ExitCode> {
    let loaded = config::load(Some(file), &Flags::default(), &|name| std::env::var(name).ok())?;
    let draft = Snapshots::new().prepare(&loaded.config);
    let chain = decide(&draft.snapshot().listeners, request)?;
    let explained = Explanation::of_file(chain);
    let text = if json { escaped(serde_json::to_string(&explained)?) + "\n" } else { text(&explained.lines) };
    output::print(&text)?;
    Ok(ExitCode::SUCCESS)
}

fn by_process(request: &SampleRequest, options: &ExplainOptions) -> anyhow::Result<ExitCode> {
    let SampleRequest { method, listener, from, headers, .. } = request;
    let lines: Vec<Value> = headers.iter().map(|(name, value)| json!(format!("{name}: {value}"))).collect();
    let mut body = json!({ "method": method, "url": options.url, "from": from, "headers": lines });
    if let Some(listener) = listener {
        body["listener"] = json!(listener);
    }
    let asking = AskOptions {
        process: ProcessOptions { socket: options.socket.clone(), config: None },
        json: options.json,
    };
    let question = AdminQuestion {
        method: Method::POST,
        path: "/api/v1/explain".to_owned(),
        body: body.to_string().into_bytes(),
    };
    Ok(answered(&asking, question, |told: &Told| text(&told.lines))?.err().unwrap_or(ExitCode::SUCCESS))
}

fn text(lines: &[String]) -> String {
    lines.join("\n") + "\n"
}
