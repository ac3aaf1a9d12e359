//! Commands that talk to a process that serves: `evenkeel plan`, `evenkeel reload`, `evenkeel status`, `evenkeel drain` and others.

mod ask;
pub(super) mod block;
pub(super) mod cluster;
pub(super) mod config;
pub(super) mod explain;
mod find;
pub(super) mod hand;
pub(super) mod healthcheck;
pub(super) mod log;
pub(super) mod names;
pub(super) mod status;
mod status_text;
mod stream_pieces;
pub(super) mod top;
pub(super) mod upgrade;
pub(super) mod why;
mod why_text;

use std::io::Write as _;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use hyper::StatusCode;

use super::args::running::{AskOptions, ProcessOptions};
use super::exit_code::WRONG_COMMAND_LINE;
use super::json_events::escaped;
use super::output;
use crate::admin::ProblemDocument;
use crate::reload::fault::Fault;
use ask::{AdminQuestion, ask};

/// For an answer: a config names files that may be slow, and a reload waits for its turn.
const PATIENCE: Duration = Duration::from_secs(120);

/// What the process has answered.
struct Heard {
    status: StatusCode,
    body: Vec<u8>,
}

impl Heard {
    /// The JSON in it as it is, but for what could steer a terminal.
    fn json(&self) -> String {
        escaped(String::from_utf8_lossy(&self.body).into_owned())
    }
}

/// Finds the process and asks it.
fn tell(process: &ProcessOptions, question: AdminQuestion) -> anyhow::Result<Heard> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let socket = find::socket(process).await?;
        let (status, body) = ask(&socket, question, PATIENCE)
            .await
            .with_context(|| format!("{}: no answer", socket.display()))?;
        Ok(Heard { status, body })
    })
}

/// The process has not done what was asked for, and said why.
fn complain(heard: &Heard, json: bool) -> anyhow::Result<ExitCode> {
    let problem: ProblemDocument = understood(heard)?;
    if json {
        output::print(&heard.json())?;
    } else if problem.problems.is_empty() {
        let _ = writeln!(std::io::stderr(), "{}", output::shown_lines(&problem.detail));
    } else {
        let text = problems(&problem.problems);
        let _ = writeln!(
            std::io::stderr(),
            "{}refused, nothing has changed: {}",
            output::shown_lines(&text),
            counted(problem.problems.len())
        );
    }
    // It was the one that was meant, and what was asked for can be asked.
    let is_refusal = !problem.problems.is_empty() || matches!(problem.status, 409 | 412 | 422 | 503 | 507);
    Ok(if is_refusal { ExitCode::FAILURE } else { ExitCode::from(WRONG_COMMAND_LINE) })
}

fn understood<T: serde::de::DeserializeOwned>(heard: &Heard) -> anyhow::Result<T> {
    serde_json::from_slice(&heard.body)
        .with_context(|| format!("an answer that this version does not understand ({})", heard.status))
}

/// Nobody could be asked.
#[expect(clippy::unnecessary_wraps, reason = "what the commands end with")]
fn lost(why: &str) -> anyhow::Result<ExitCode> {
    let _ = writeln!(std::io::stderr(), "{}", output::shown_lines(why));
    Ok(ExitCode::from(WRONG_COMMAND_LINE))
}

fn problems(all: &[Fault]) -> String {
    /// As many as `check` shows.
    const SHOWN: usize = 100;
    let mut text: String = all.iter().take(SHOWN).map(|problem| format!("{}\n\n", problem.text)).collect();
    if let Some(more) = all.len().checked_sub(SHOWN).filter(|more| *more > 0) {
        text += &format!("… and {more} more\n\n");
    }
    text
}

fn counted(problems: usize) -> String {
    if problems == 1 { "1 problem".to_owned() } else { format!("{problems} problems") }
}

/// Asks one thing and prints what has come of it: as it is, or as `shown` says it. `Err`: nothing has, and what the command ends with.
fn answered<T: serde::de::DeserializeOwned>(
    asking: &AskOptions,
    question: AdminQuestion,
    shown: impl FnOnce(&T) -> String,
) -> anyhow::Result<Result<T, ExitCode>> {
    let heard = match tell(&asking.process, question) {
        Ok(heard) => heard,
        Err(error) => return lost(&format!("{error:#}")).map(Err),
    };
    if !heard.status.is_success() {
        return complain(&heard, asking.json).map(Err);
    }
    let answer = understood(&heard)?;
    let text = if asking.json { heard.json() } else { shown(&answer) };
    output::print(&text)?;
    Ok(Ok(answer))
}
