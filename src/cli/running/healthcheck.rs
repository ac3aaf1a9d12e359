//! `evenkeel healthcheck`: whether the process that runs is to get traffic, for whoever starts and ends containers.

use std::io::Write as _;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use hyper::{Method, StatusCode};

use super::ask::{AdminQuestion, ask};
use super::find;
use crate::admin::wire::Readiness;
use crate::cli::args::running::HealthcheckOptions;
use crate::cli::output;

/// Whoever asks waits for no longer.
const PATIENCE: Duration = Duration::from_secs(5);

/// Asks it. Whatever is wrong ends with 1: containers know no other code.
pub(in crate::cli) fn run(options: &HealthcheckOptions) -> anyhow::Result<ExitCode> {
    match reasons(options) {
        Ok(None) => Ok(ExitCode::SUCCESS),
        Ok(Some(reasons)) => {
            for reason in reasons {
                let _ = writeln!(std::io::stderr(), "{}", output::shown(&reason));
            }
            Ok(ExitCode::FAILURE)
        }
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "{}", output::shown_lines(&format!("{error:#}")));
            Ok(ExitCode::FAILURE)
        }
    }
}

/// Why it is not well; `None`: it is.
fn reasons(options: &HealthcheckOptions) -> anyhow::Result<Option<Vec<String>>> {
    let path = if options.alive { "/healthz" } else { "/readyz" };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let socket = find::socket(&options.process).await?;
        let question = AdminQuestion { method: Method::GET, path: path.to_owned(), body: Vec::new() };
        let (status, body) = ask(&socket, question, PATIENCE)
            .await
            .with_context(|| format!("{}: no answer", socket.display()))?;
        if status == StatusCode::OK {
            return Ok(None);
        }
        let said = serde_json::from_slice::<Readiness>(&body);
        Ok(Some(said.map_or_else(|_| vec![format!("answered with {status}")], |said| said.reasons)))
    })
}
