//! `evenkeel names`, which completions ask: the names of all targets and backends of the process that runs.

use std::process::ExitCode;
use std::time::Duration;

use hyper::{Method, StatusCode};

use super::ask::{AdminQuestion, ask};
use super::find;
use crate::admin::status::report::StatusReport;
use crate::cli::args::running::ProcessOptions;
use crate::cli::output;

/// For an answer: somebody waits with a finger on the tab key.
const PATIENCE: Duration = Duration::from_secs(2);

/// Prints them, each on a line; nothing where no process answers.
pub(in crate::cli) fn run(process: &ProcessOptions) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let report = runtime.block_on(async {
        let socket = find::socket(process).await.ok()?;
        let path = "/api/v1/status".to_owned();
        let question = AdminQuestion { method: Method::GET, path, body: Vec::new() };
        let (status, body) = ask(&socket, question, PATIENCE).await.ok()?;
        (status == StatusCode::OK).then(|| serde_json::from_slice::<StatusReport>(&body).ok()).flatten()
    });
    let mut names = String::new();
    for target in report.iter().flat_map(|report| &report.targets) {
        names += &format!("{}\n", target.name);
        let each = target.backends.iter().map(|backend| format!("{}/{}\n", target.name, backend.name));
        names.extend(each);
    }
    output::print(&names)?;
    Ok(ExitCode::SUCCESS)
}
