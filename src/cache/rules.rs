//! What a route says about its cache, and what must be known beside the two heads.

use std::time::Duration;

use crate::tick::Tick;

use super::date::HttpSeconds;

/// What a route says about its cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheRules {
    /// How long answers are fresh that say nothing about it. `None`: those are not stored.
    pub ttl: Option<Duration>,
    /// How long all answers are fresh that may be stored, whatever they say.
    pub ttl_override: Option<Duration>,
    /// The same as `ttl` for 404, 405, 410, 414 and 501.
    pub negative_ttl: Option<Duration>,
    /// Whether answers that say nothing but when they were last modified are fresh for a tenth of their age.
    pub heuristic: bool,
    /// How long an answer that says nothing about it is sent stale while the backend is asked.
    pub stale_while_revalidate: Duration,
    /// How long an answer that says nothing about it stands in for a backend that fails.
    pub stale_if_error: Duration,
    /// Whether answers that say nothing are shared also among requests with cookies.
    pub ignores_cookies: bool,
}

/// Whether evenkeel itself knows who the client is: by any `auth`, or by a client certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KnownClient {
    /// It asked nobody who that is.
    No,
    /// It let the client show who it is.
    Yes,
}

/// When an answer was asked for and when its head came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// When the request for it was sent.
    pub asked: Tick,
    /// When its head was there.
    pub came: Tick,
    /// What the wall clock said when its head was there.
    pub date: HttpSeconds,
}
