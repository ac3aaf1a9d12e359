//! Commands that talk to a process that serves: `evenkeel plan`, `evenkeel reload`, `evenkeel status`, `evenkeel drain` and others.

mod ask;
mod find;
pub(super) mod hand;
pub(super) mod names;
pub(super) mod status;
mod status_text;

use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use hyper::{Method, StatusCode};

use super::args::running::{PlanOptions, ProcessOptions, ReloadOptions};
use super::exit_code::WRONG_COMMAND_LINE;
use super::output;
use crate::admin::{CONFIG_MAX, ProblemDocument};
use crate::reload::fault::Fault;
use crate::reload::plan::{Plan, PlanVerdict};
use ask::{AdminQuestion, ask};

/// For an answer: a config names files that may be slow, and a reload waits for its turn.
const PATIENCE: Duration = Duration::from_secs(120);

/// What the process has answered.
struct Heard {
    status: StatusCode,
    body: Vec<u8>,
}

/// Asks what a reload would do.
pub(super) fn plan(options: &PlanOptions) -> anyhow::Result<ExitCode> {
    let mut question =
        AdminQuestion { method: Method::POST, path: "/api/v1/config/plan".to_owned(), body: Vec::new() };
    if let Some(file) = &options.file {
        match text(file) {
            Ok(text) if text.trim_ascii().is_empty() => {
                return lost(&format!("{}: this file is empty", file.display()));
            }
            Ok(text) => question.body = text,
            Err(error) => return lost(&format!("{}: can't be read: {error}", file.display())),
        }
        let name = if file == Path::new("-") { "standard input".into() } else { file.to_string_lossy() };
        question.path = format!("{}?file={}", question.path, encoded(&name));
    }
    let heard = match tell(&options.process, question) {
        Ok(heard) => heard,
        Err(error) => return lost(&format!("{error:#}")),
    };
    if heard.status != StatusCode::OK {
        return complain(&heard, options.json);
    }
    let plan: Plan = understood(&heard)?;
    output::print(&if options.json {
        String::from_utf8_lossy(&heard.body).into_owned()
    } else {
        foreseen(&plan)
    })?;
    Ok(if plan.verdict == PlanVerdict::Refused { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Has the process read its config again.
pub(super) fn reload(options: &ReloadOptions) -> anyhow::Result<ExitCode> {
    let path = "/api/v1/config/reload".to_owned();
    let heard = match tell(&options.process, AdminQuestion { method: Method::POST, path, body: Vec::new() }) {
        Ok(heard) => heard,
        Err(error) => return lost(&format!("{error:#}")),
    };
    if heard.status != StatusCode::OK {
        return complain(&heard, options.json);
    }
    let plan: Plan = understood(&heard)?;
    output::print(&if options.json {
        String::from_utf8_lossy(&heard.body).into_owned()
    } else {
        done(&plan)
    })?;
    Ok(ExitCode::SUCCESS)
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
fn done(plan: &Plan) -> String {
    let text = before_verdict(plan);
    match plan.verdict {
        PlanVerdict::Unchanged => format!("{text}reloaded: nothing differs\n"),
        PlanVerdict::Taken | PlanVerdict::Refused => format!("{text}reloaded: {}\n", plan.counts()),
    }
}

fn before_verdict(plan: &Plan) -> String {
    let lines = plan.lines().into_iter();
    let warnings = plan.warnings.iter().map(|warning| format!("warning: {warning}"));
    lines.chain(warnings).map(|line| line + "\n").collect()
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

/// The process has not done what was asked for, and said why.
fn complain(heard: &Heard, json: bool) -> anyhow::Result<ExitCode> {
    let problem: ProblemDocument = understood(heard)?;
    if json {
        output::print(&String::from_utf8_lossy(&heard.body))?;
    } else if problem.problems.is_empty() {
        let _ = writeln!(std::io::stderr(), "{}", problem.detail);
    } else {
        let text = problems(&problem.problems);
        let _ = writeln!(
            std::io::stderr(),
            "{text}refused, nothing has changed: {}",
            counted(problem.problems.len())
        );
    }
    Ok(if problem.problems.is_empty() { ExitCode::from(WRONG_COMMAND_LINE) } else { ExitCode::FAILURE })
}

fn understood<T: serde::de::DeserializeOwned>(heard: &Heard) -> anyhow::Result<T> {
    serde_json::from_slice(&heard.body)
        .with_context(|| format!("an answer that this version does not understand ({})", heard.status))
}

/// Nobody could be asked.
#[expect(clippy::unnecessary_wraps, reason = "what the commands end with")]
fn lost(why: &str) -> anyhow::Result<ExitCode> {
    let _ = writeln!(std::io::stderr(), "{why}");
    Ok(ExitCode::from(WRONG_COMMAND_LINE))
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
fn encoded(text: &str) -> String {
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
