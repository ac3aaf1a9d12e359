//! Options of the commands that talk to a process that serves.

use std::path::PathBuf;

use clap::{Args as ClapArgs, ValueHint};

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

/// Options of `plan`.
#[derive(Debug, ClapArgs)]
pub(in crate::cli) struct PlanOptions {
    /// A config to take the place of the process's own; `-` is standard input [default: its own, read again]
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(in crate::cli) file: Option<PathBuf>,
    /// Which process.
    #[command(flatten)]
    pub(in crate::cli) process: ProcessOptions,
    /// Print the answer of the admin API as it is
    #[arg(long)]
    pub(in crate::cli) json: bool,
}

/// Options of `reload`.
#[derive(Debug, ClapArgs)]
pub(in crate::cli) struct ReloadOptions {
    /// Which process.
    #[command(flatten)]
    pub(in crate::cli) process: ProcessOptions,
    /// Print the answer of the admin API as it is
    #[arg(long)]
    pub(in crate::cli) json: bool,
}

/// Which process is meant.
#[derive(Debug, ClapArgs)]
pub(in crate::cli) struct ProcessOptions {
    /// The admin socket of the process [default: $EVENKEEL_SOCKET, else the only process that runs]
    #[arg(long, value_name = "PATH", value_hint = ValueHint::FilePath)]
    pub(in crate::cli) socket: Option<PathBuf>,
    /// The config that the process serves
    #[arg(long, short, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "socket")]
    pub(in crate::cli) config: Option<PathBuf>,
}
