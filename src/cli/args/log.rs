//! Options of `log`.

use clap::Args as ClapArgs;

use super::running::ProcessOptions;

pub(in crate::cli) const EXAMPLES: &str = "Examples:
  evenkeel log
  evenkeel log -f
  evenkeel log -n 20 --kind backend_down,backend_up
  evenkeel log -f --json -c /etc/evenkeel/evenkeel.yaml

Exit status:
  0    all that was asked for was printed, or nobody reads it any more
  1    the output could not be written
  2    a wrong command line, or no process, several, or one that does not answer
  130  Ctrl-C, which ends `-f`";

/// Options of `log`.
#[derive(Debug, ClapArgs)]
pub(in crate::cli) struct LogOptions {
    /// Go on with what comes, also when the process was started anew, until Ctrl-C
    #[arg(long, short)]
    pub(in crate::cli) follow: bool,
    /// How many of the latest events [default: all that are kept, with `-f` 10]
    #[arg(long, short = 'n', value_name = "COUNT")]
    pub(in crate::cli) count: Option<usize>,
    /// Only events of these kinds, such as `backend_down`
    #[arg(long, value_name = "KIND,...", value_delimiter = ',')]
    pub(in crate::cli) kind: Vec<String>,
    /// Which process.
    #[command(flatten)]
    pub(in crate::cli) process: ProcessOptions,
    /// Print each event as JSON, in a line of its own
    #[arg(long)]
    pub(in crate::cli) json: bool,
}
