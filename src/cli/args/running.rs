//! Options of the commands that talk to a process that serves.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args as ClapArgs, ValueHint};

use crate::reload::trial::WINDOWS;

pub(in crate::cli) const PLAN_EXAMPLES: &str = "Examples:
  evenkeel plan
  evenkeel plan new.yaml
  evenkeel plan -c /etc/evenkeel/evenkeel.yaml
  evenkeel plan --json

What the lines begin with:
  +  comes
  -  goes
  ~  is different

Exit status:
  0  nothing would change, or it would be taken
  1  it would be refused, and every problem was shown; or the output could not be written
  2  a wrong command line, or no process, several, or one that does not answer";

pub(in crate::cli) const RELOAD_EXAMPLES: &str = "Examples:
  evenkeel reload
  evenkeel reload -c /etc/evenkeel/evenkeel.yaml
  evenkeel reload --socket /run/evenkeel/admin.sock

Exit status:
  0  the config is in force, or nothing differs
  1  it was refused and nothing has changed; or the output could not be written
  2  a wrong command line, or no process, several, or one that does not answer";

pub(in crate::cli) const APPLY_EXAMPLES: &str = "Examples:
  evenkeel apply new.yaml --confirm 2m
  evenkeel apply new.yaml
  generate | evenkeel apply - --confirm 30s

With --confirm it is on trial: `evenkeel confirm` keeps it, `evenkeel rollback` takes it back, and so does the end of that time, or
a rise of the failures of what it has touched. The file of the process is replaced when it is confirmed; the one before is kept
beside it as FILE.before. Without --confirm it is confirmed at once.

Exit status:
  0  it is in force
  1  it was refused and nothing has changed; or the output could not be written
  2  a wrong command line, or no process, several, or one that does not answer";

pub(in crate::cli) const CONFIRM_EXAMPLES: &str = "Examples:
  evenkeel confirm
  evenkeel confirm -c /etc/evenkeel/evenkeel.yaml

Exit status:
  0  it lies in the file now
  1  no config is on trial; or the file has changed since or can't be replaced, so the trial goes on;
     or the output could not be written
  2  a wrong command line, or no process, several, or one that does not answer";

pub(in crate::cli) const ROLLBACK_EXAMPLES: &str = "Examples:
  evenkeel rollback
  evenkeel rollback -c /etc/evenkeel/evenkeel.yaml

Exit status:
  0  the config before is in force
  1  no config is on trial; or the one before can't be put into force now, so the trial goes on;
     or the output could not be written
  2  a wrong command line, or no process, several, or one that does not answer";

pub(in crate::cli) const UPGRADE_EXAMPLES: &str = "Examples:
  evenkeel upgrade
  evenkeel upgrade /usr/local/bin/evenkeel-next
  evenkeel upgrade --force -c /etc/evenkeel/evenkeel.yaml

The new process gets the arguments of the one that runs, reads its config again, and takes over its sockets. If it refuses, ends, or is
not ready within 10 seconds, nothing has changed. The binary belongs to root or to the user of the process, and nobody else may write it.

Exit status:
  0  the new process serves, and the one before drains
  1  nothing has changed; or the output could not be written
  2  a wrong command line, or no process, several, or one that does not answer";

/// Options of `upgrade`.
#[derive(Debug, ClapArgs)]
pub(in crate::cli) struct UpgradeOptions {
    /// The binary [default: the one that the process was started from, as it is now]
    #[arg(value_name = "BINARY", value_hint = ValueHint::ExecutablePath)]
    pub(in crate::cli) binary: Option<PathBuf>,
    /// Where three earlier processes still drain, have the oldest one cut what it has
    #[arg(long)]
    pub(in crate::cli) force: bool,
    /// How it is asked.
    #[command(flatten)]
    pub(in crate::cli) asking: AskOptions,
}

pub(in crate::cli) const HEALTHCHECK_EXAMPLES: &str = "Examples:
  evenkeel healthcheck
  evenkeel healthcheck --alive
  HEALTHCHECK CMD [\"evenkeel\", \"healthcheck\"]

It is ready when it serves, all backends have had a first verdict, and nobody has told it to end (`/readyz`).

Exit status:
  0  it is
  1  it is not, and standard error says why; or there is no process, several, or one that does not answer
  2  a wrong command line";

/// Options of `healthcheck`.
#[derive(Debug, ClapArgs)]
pub(in crate::cli) struct HealthcheckOptions {
    /// Ask only whether it answers, ready or not
    #[arg(long)]
    pub(in crate::cli) alive: bool,
    /// Which process.
    #[command(flatten)]
    pub(in crate::cli) process: ProcessOptions,
}

/// Options of `plan`.
#[derive(Debug, ClapArgs)]
pub(in crate::cli) struct PlanOptions {
    /// A config to take the place of the process's own; `-` is standard input [default: its own, read again]
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(in crate::cli) file: Option<PathBuf>,
    /// How it is asked.
    #[command(flatten)]
    pub(in crate::cli) asking: AskOptions,
}

/// Options of `apply`.
#[derive(Debug, ClapArgs)]
pub(in crate::cli) struct ApplyOptions {
    /// The config; `-` is standard input
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(in crate::cli) file: PathBuf,
    /// Take it back after this time, such as 2m, unless it is confirmed; or at once when it makes things worse
    #[arg(long, value_name = "TIME", value_parser = window, allow_negative_numbers = true)]
    pub(in crate::cli) confirm: Option<Duration>,
    /// How it is asked.
    #[command(flatten)]
    pub(in crate::cli) asking: AskOptions,
}

fn window(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok().map(Duration::from_secs);
    let span = seconds.or_else(|| humantime::parse_duration(text).ok());
    span.filter(|span| (WINDOWS.0..=WINDOWS.1).contains(span))
        .ok_or_else(|| "a time from 1s to 24h".to_owned())
}

/// Options of all commands that ask a process and print the answer.
#[derive(Debug, ClapArgs)]
pub(in crate::cli) struct AskOptions {
    /// Which process.
    #[command(flatten)]
    pub(in crate::cli) process: ProcessOptions,
    /// Print the answer of the admin API as it is
    #[arg(long)]
    pub(in crate::cli) json: bool,
}

/// Which process is meant.
#[derive(Clone, Debug, ClapArgs)]
pub(in crate::cli) struct ProcessOptions {
    /// The admin socket of the process [default: $EVENKEEL_SOCKET, else the only process that runs]
    #[arg(long, value_name = "PATH", value_hint = ValueHint::FilePath)]
    pub(in crate::cli) socket: Option<PathBuf>,
    /// The config that the process serves
    #[arg(long, short, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "socket")]
    pub(in crate::cli) config: Option<PathBuf>,
}
