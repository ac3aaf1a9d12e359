//! Options of `why`.

use clap::Args as ClapArgs;
use clap::builder::NonEmptyStringValueParser;
use clap::value_parser;

use super::running::ProcessOptions;

pub(in crate::cli) const EXAMPLES: &str = "Examples:
  evenkeel why 5f0c1d2e3a4b5c6d7e8f9a0b1c2d3e4f
  evenkeel why --last
  evenkeel why --last --target web
  evenkeel why --cause upstream_tls_name
  evenkeel why --slow -n 5
  evenkeel why --json -c /etc/evenkeel/evenkeel.yaml

The ID is that of the answer's X-Request-Id, of its text (`request: …`) and of the access log's `id`. Without one, and without --last,
the latest are listed that failed, were tried again, were slow or were refused.

Exit status:
  0  what was asked for was printed
  1  nothing that fits is kept; or the output could not be written
  2  a wrong command line, or no process, several, or one that does not answer";

/// Options of `why`.
#[derive(Debug, ClapArgs)]
pub(in crate::cli) struct WhyOptions {
    /// The id of a request: 32 hexadecimal digits
    #[arg(value_name = "ID", value_parser = NonEmptyStringValueParser::new(), conflicts_with_all = ["last", "cause", "slow", "target", "sampled", "count"])]
    pub(in crate::cli) id: Option<String>,
    /// The whole story of the latest one that fits, instead of a list
    #[arg(long, conflicts_with = "count")]
    pub(in crate::cli) last: bool,
    /// Only those that ended, or had an attempt that ended, for this cause, such as `upstream_tls_name`
    #[arg(long, value_name = "CAUSE")]
    pub(in crate::cli) cause: Option<String>,
    /// Only those that took longer than 99 of 100 to their target within the last minute
    #[arg(long)]
    pub(in crate::cli) slow: bool,
    /// Only those that were routed to this target
    #[arg(long, value_name = "TARGET")]
    pub(in crate::cli) target: Option<String>,
    /// Also the one in a thousand of those with which nothing was wrong
    #[arg(long)]
    pub(in crate::cli) sampled: bool,
    /// How many are listed at most [default: 20]
    #[arg(long, short = 'n', value_name = "COUNT", value_parser = value_parser!(u16).range(1..=1000))]
    pub(in crate::cli) count: Option<u16>,
    /// Which process.
    #[command(flatten)]
    pub(in crate::cli) process: ProcessOptions,
    /// Print the answer of the admin API as it is
    #[arg(long)]
    pub(in crate::cli) json: bool,
}
