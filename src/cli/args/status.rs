//! Options of `status`.

use clap::Args as ClapArgs;

use super::running::ProcessOptions;

pub(in crate::cli) const EXAMPLES: &str = "Examples:
  evenkeel status
  evenkeel status web
  evenkeel status web/10.0.0.7:8001
  evenkeel status --json -c /etc/evenkeel/evenkeel.yaml

What backends begin with:
  !  down
  ~  draining: only clients whose sticky cookie names it
  ?  no verdict yet

Exit status:
  0  what was asked for is up: every target has a backend that is no backup; or this target; or this backend
  1  it is not; or the output could not be written
  2  a wrong command line, or no such target or backend, or no process, several, or one that does not answer";

/// Options of `status`.
#[derive(Debug, ClapArgs)]
pub(in crate::cli) struct StatusOptions {
    /// A target, or a backend as TARGET/BACKEND [default: everything]
    #[arg(value_name = "TARGET[/BACKEND]")]
    pub(in crate::cli) object: Option<String>,
    /// Which process.
    #[command(flatten)]
    pub(in crate::cli) process: ProcessOptions,
    /// Print the answer of the admin API as it is
    #[arg(long)]
    pub(in crate::cli) json: bool,
}
