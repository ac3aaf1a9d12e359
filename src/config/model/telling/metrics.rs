//! How numbers get to those who collect them.

use std::net::SocketAddr;

use super::statsd::StatsdConfig;

/// Where metrics are given, and where they are sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MetricsConfig {
    /// Where `/metrics`, `/healthz` and `/readyz` are given to everybody; `"*:9901"` gives two. None: nowhere but at the admin API.
    pub binds: Vec<SocketAddr>,
    /// Who is sent them; `None`: nobody.
    pub statsd: Option<StatsdConfig>,
}
