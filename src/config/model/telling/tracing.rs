//! Where traces of requests are sent, in the accepted form.

use std::fmt;
use std::sync::Arc;

use http::{HeaderName, HeaderValue};

use super::log::Share;
use super::webhook::HttpUrl;
use crate::config::model::tls::Authorities;

/// `tracing`.
#[derive(Clone, Debug, PartialEq)]
pub struct TracingConfig {
    /// Where spans are sent, as OTLP over HTTP; its path is that of traces.
    pub otlp: HttpUrl,
    /// Who issues the certificate of `otlp`; `None`: whom the system trusts.
    pub authorities: Option<Authorities>,
    /// Header lines of what is sent.
    pub headers: TraceHeaders,
    /// The share of requests that are traced, beside those that failed or were slow; `None`: no others. Default 1 %.
    pub sample: Option<Share>,
    /// As whom evenkeel traces: `service.name`. Default `evenkeel`.
    pub service_name: String,
    /// Traces in a second at most; the rest are counted. Default 200.
    pub limit: u32,
}

impl TracingConfig {
    /// The path of traces (OTLP 1.x, "OTLP/HTTP Request").
    pub const PATH: &'static str = "/v1/traces";
    /// How many requests are traced where nothing is said.
    pub const SAMPLE: Option<Share> = Share::from_millionths(10_000);
    /// As whom, in the same way.
    pub const SERVICE_NAME: &'static str = "evenkeel";
    /// And how many in a second.
    pub const LIMIT: u32 = 200;

    /// Whether both are sent to the same collector in the same way.
    #[must_use]
    pub fn is_sent_like(&self, other: &TracingConfig) -> bool {
        let of = |config: &TracingConfig| {
            (config.otlp.clone(), config.authorities.clone(), config.headers.clone())
        };
        of(self) == of(other)
    }
}

/// Header lines that may let evenkeel in: nobody is shown their values.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct TraceHeaders(Arc<[(HeaderName, HeaderValue)]>);

impl TraceHeaders {
    /// These.
    #[must_use]
    pub fn new(lines: Vec<(HeaderName, HeaderValue)>) -> TraceHeaders {
        TraceHeaders(lines.into())
    }

    /// Each of them.
    pub fn iter(&self) -> impl Iterator<Item = (&HeaderName, &HeaderValue)> {
        self.0.iter().map(|(name, value)| (name, value))
    }
}

impl fmt::Debug for TraceHeaders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|(name, _)| name)).finish()
    }
}
