//! Who is sent numbers as statsd's datagrams.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use super::log::Share;

/// `metrics.statsd`: where numbers are sent, how, and how often.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatsdConfig {
    /// Where to.
    pub to: StatsdAddress,
    /// In which of its dialects. Default: plain statsd.
    pub format: StatsdFormat,
    /// From one time to the next. Default 1 s.
    pub interval: Duration,
    /// The share of requests whose times are sent one by one; `None` (`off`, the default): of none.
    pub timings: Option<Share>,
}

impl StatsdConfig {
    /// From one time to the next, unless the file says otherwise.
    pub const INTERVAL: Duration = Duration::from_secs(1);
}

/// Where datagrams are sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StatsdAddress {
    /// Over UDP.
    Udp {
        /// An IP address without brackets, or a name.
        host: String,
        /// Not zero.
        port: u16,
    },
    /// To the socket at this path.
    Unix(PathBuf),
}

/// As it is written in a file: `udp://127.0.0.1:8125`, `unix:/run/statsd.sock`.
impl fmt::Display for StatsdAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StatsdAddress::Udp { host, port } if host.contains(':') => write!(f, "udp://[{host}]:{port}"),
            StatsdAddress::Udp { host, port } => write!(f, "udp://{host}:{port}"),
            StatsdAddress::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// How a line looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StatsdFormat {
    /// What labels say is a part of the name.
    #[default]
    Plain,
    /// Labels are tags, as Datadog has them.
    Datadog,
}

impl StatsdFormat {
    /// Each with the name that it has in a config file.
    pub const ALL: &'static [(&'static str, StatsdFormat)] =
        &[("statsd", StatsdFormat::Plain), ("datadog", StatsdFormat::Datadog)];
}
