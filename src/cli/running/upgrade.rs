//! `evenkeel upgrade`: another binary in the place of the process that runs.

use std::process::ExitCode;

use hyper::Method;
use serde_json::json;

use super::answered;
use super::ask::AdminQuestion;
use crate::admin::upgrading::desk::UpgradeReport;
use crate::cli::args::running::UpgradeOptions;
use crate::instance::absolute;

/// Has the process upgraded.
pub(in crate::cli) fn run(options: &UpgradeOptions) -> anyhow::Result<ExitCode> {
    // The process may stand elsewhere.
    let binary = options.binary.as_deref().map(absolute);
    let body = match binary {
        Some(binary) => json!({"binary": binary, "force": options.force}),
        None => json!({"force": options.force}),
    };
    let body = body.to_string().into_bytes();
    let question = AdminQuestion { method: Method::POST, path: "/api/v1/upgrade".to_owned(), body };
    Ok(answered(&options.asking, question, shown)?.err().unwrap_or(ExitCode::SUCCESS))
}

fn shown(report: &UpgradeReport) -> String {
    let UpgradeReport { version, process, draining, .. } = report;
    let drain = draining.iter().map(|one| match one.seconds {
        0 => format!("process {} drains\n", one.process),
        seconds => format!("process {} drains, for {seconds} s\n", one.process),
    });
    format!("upgraded: process {process} (evenkeel {version}) serves\n{}", drain.collect::<String>())
}
