//! What a target does about backends that fail, in the accepted form.

use std::ops::RangeInclusive;
use std::time::Duration;

use super::GrpcStatuses;

/// What a target does about backends that fail, and about more requests than they can take.
#[derive(Clone, Debug, PartialEq)]
pub struct Resilience {
    /// When no requests go to a backend that keeps failing; `None` (`off`): they always do.
    pub breaker: Option<BreakerConfig>,
    /// When a backend that does worse than its siblings is left out; `None` (`off`): never, also not when it refuses
    /// connections.
    pub outlier: Option<Outlier>,
    /// Which failed attempts are repeated on another backend; `None` (`off`): none.
    pub retries: Option<Retries>,
    /// When a slow attempt gets a competitor; `None` (`off`, the default): never.
    pub hedging: Option<Hedging>,
    /// Requests (on TCP connections) that one backend has at once, over all workers; `None` (`off`, the default): any.
    pub max_in_flight: Option<u32>,
    /// How many these are is found out from how long answers take (`max_in_flight: adaptive`); then there is no number.
    /// Default: no.
    pub adaptive: bool,
    /// Requests that wait while every backend has `max_in_flight`; 0: none does. Default 1,024.
    pub queue: u32,
    /// Percent of a target's backends; while fewer are left, ejections of outliers are set aside. 0: never. Default 50.
    pub panic_threshold: u8,
}

impl Default for Resilience {
    fn default() -> Self {
        Resilience {
            breaker: Some(BreakerConfig::default()),
            outlier: Some(Outlier::default()),
            retries: Some(Retries::default()),
            hedging: None,
            max_in_flight: None,
            adaptive: false,
            queue: 1_024,
            panic_threshold: 50,
        }
    }
}

/// When no requests go to a backend that keeps failing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BreakerConfig {
    /// Attempts that fail one after the other until it opens. Default 20.
    pub failures: u32,
    /// For how long it is open before one attempt finds out. Default 5 s.
    pub open: Duration,
    /// Nobody has said for how long, so where nobody else can be picked one attempt finds out each second.
    pub open_is_default: bool,
    /// Statuses of answers that count as failures. Default: none.
    pub statuses: Vec<RangeInclusive<u16>>,
}

impl Default for BreakerConfig {
    fn default() -> Self {
        BreakerConfig {
            failures: 20,
            open: Duration::from_secs(5),
            open_is_default: true,
            statuses: Vec::new(),
        }
    }
}

/// When a backend that does worse than its siblings is left out. An answer with a status of 500 or above is an error,
/// but for 501 and 505, which are about the request.
#[derive(Clone, Debug, PartialEq)]
pub struct Outlier {
    /// Errors one after the other, 1 to 255; 0 (`off`): they don't count. Default 5.
    pub failures: u8,
    /// How many percent of a backend's attempts in the window may fail beyond what is usual among its siblings; 0 (`off`):
    /// any. Default 20.
    pub error_rate: u8,
    /// How many times as long as its siblings a backend may take to answer, on average; 0 (`off`): any. Default 5.
    pub latency: u8,
    /// What error rate and latency are taken over. Default 10 s.
    pub window: Duration,
    /// Attempts of a backend in the window without which error rate and latency say nothing. Default 50.
    pub requests: u32,
    /// How long a backend is left out the first time; then twice as long, and so on. Default 1 s.
    pub ejection: Duration,
    /// How long at most. Default 30 s.
    pub ejection_max: Duration,
    /// Percent of a target's backends that are left out at once, at most. Default 50.
    pub max_ejected: u8,
}

impl Default for Outlier {
    fn default() -> Self {
        Outlier {
            failures: 5,
            error_rate: 20,
            latency: 5,
            window: Duration::from_secs(10),
            requests: 50,
            ejection: Duration::from_secs(1),
            ejection_max: Duration::from_secs(30),
            max_ejected: 50,
        }
    }
}

/// Which failed attempts are repeated on another backend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Retries {
    /// Attempts of a request, each on another backend, 1 to 10. Default 3.
    pub attempts: u8,
    /// No connection could be made. Default: yes.
    pub on_connect: bool,
    /// The connection broke before a byte of the answer. Default: yes.
    pub on_reset: bool,
    /// The first byte, or the whole head, took too long. Default: no.
    pub on_timeout: bool,
    /// The answer has one of these statuses. Default: 503.
    pub on_statuses: Vec<RangeInclusive<u16>>,
    /// A call of gRPC has ended with one of these before it has begun to answer. Default: none.
    pub on_grpc: GrpcStatuses,
    /// Retries after an attempt of which a byte may have been processed, in percent of a target's requests. Default 20.
    pub budget: u8,
    /// The pause before the first such retry, drawn between half of it and all; then twice as long. Default 25 ms.
    pub backoff: Duration,
}

impl Default for Retries {
    fn default() -> Self {
        Retries {
            attempts: 3,
            on_connect: true,
            on_reset: true,
            on_timeout: false,
            on_statuses: vec![503..=503],
            on_grpc: GrpcStatuses::default(),
            budget: 20,
            backoff: Duration::from_millis(25),
        }
    }
}

/// When a slow attempt gets a competitor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hedging {
    /// The share of a target's answers, in percent, that come sooner than an attempt that gets one. Default 95.
    pub percentile: u8,
    /// Competitors, in percent of a target's requests. Default 5.
    pub budget: u8,
}

impl Default for Hedging {
    fn default() -> Self {
        Hedging { percentile: 95, budget: 5 }
    }
}
