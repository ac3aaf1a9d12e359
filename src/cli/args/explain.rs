//! Options of `explain`.

use std::net::IpAddr;
use std::path::PathBuf;

use clap::{Args as ClapArgs, ValueHint};

pub(in crate::cli) const EXAMPLES: &str = "Examples:
  evenkeel explain GET https://shop.example/api/x
  evenkeel explain GET https://shop.example/api/x -c evenkeel.yaml
  evenkeel explain POST http://shop.example/ -H 'X-Beta: yes' -H 'Cookie: user=a' --from 10.1.2.3
  evenkeel explain GET http://shop.example/ --listener public --json

Nothing is sent. With -c it is what this file alone says; its tests need not pass. Else it is what the process that runs would do,
with its backends as they are.

Exit status:
  0  it was explained, whatever becomes of the request
  1  a wrong config, no listener gets the request, or several could; or the output could not be written
  2  a wrong command line, or no process, several, or one that does not answer";

/// Options of `explain`.
#[derive(Debug, ClapArgs)]
pub(in crate::cli) struct ExplainOptions {
    /// The method, as it would be sent
    #[arg(value_name = "METHOD")]
    pub(in crate::cli) method: String,
    /// The URL, with host and path as they would be sent
    #[arg(value_name = "URL", value_hint = ValueHint::Url)]
    pub(in crate::cli) url: String,
    /// A header line such as 'X-Beta: yes'; may be given several times
    #[arg(short = 'H', long = "header", value_name = "LINE")]
    pub(in crate::cli) headers: Vec<String>,
    /// The address that the connection would come from [default: 192.0.2.1]
    #[arg(long, value_name = "IP")]
    pub(in crate::cli) from: Option<IpAddr>,
    /// The listener that would get it [default: the only one that fits]
    #[arg(long, value_name = "NAME")]
    pub(in crate::cli) listener: Option<String>,
    /// A config file that is asked instead of a process
    #[arg(long, short, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "socket")]
    pub(in crate::cli) config: Option<PathBuf>,
    /// The admin socket of the process [default: $EVENKEEL_SOCKET, else the only process that runs]
    #[arg(long, value_name = "PATH", value_hint = ValueHint::FilePath)]
    pub(in crate::cli) socket: Option<PathBuf>,
    /// Print it as JSON
    #[arg(long)]
    pub(in crate::cli) json: bool,
}
