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

/// Why an answer is not stored, or a request not answered from what is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WhyNot {
    /// Only GET is stored, and only GET and HEAD are answered.
    Method,
    /// The request has a body, or wants another protocol.
    Body,
    /// `Connection` of the request names a line that the backend does not get.
    Connection,
    /// The request says `no-store`.
    RequestNoStore,
    /// The status is not final, is 206 or 304, or one that `must-understand` asks us to understand.
    Status,
    /// The answer says `no-store`.
    NoStore,
    /// The answer says `private`.
    Private,
    /// The request has Authorization, and the answer doesn't say that others may have it.
    Authorization,
    /// Evenkeel knows the client, and the answer doesn't say that others may have it.
    KnownClient,
    /// The answer sets a cookie, and doesn't say that others may have it.
    SetCookie,
    /// The request has a cookie, and the answer says nothing.
    Cookie,
    /// `Vary: *`.
    VaryStar,
    /// The answer doesn't say how long it is fresh, and the route doesn't either.
    SaysNothing,
    /// Only the origin may judge what the client asks (`If-Match`, or a part of what is still coming).
    Precondition,
    /// Its body is larger than what is kept.
    TooLarge,
    /// It would be stale at once, and there is nothing by which it could be asked for again.
    Stale,
}

impl WhyNot {
    /// Whether another request's answer, were it the same, could be stored: what is stored already is none the worse for it.
    #[must_use]
    pub const fn is_about_request(self) -> bool {
        matches!(
            self,
            WhyNot::Method
                | WhyNot::Body
                | WhyNot::Connection
                | WhyNot::RequestNoStore
                | WhyNot::Authorization
                | WhyNot::KnownClient
                | WhyNot::Cookie
                | WhyNot::Precondition
        )
    }

    /// A short name for logs and Cache-Status.
    #[must_use]
    pub const fn token(self) -> &'static str {
        match self {
            WhyNot::Method => "method",
            WhyNot::Body => "body",
            WhyNot::Connection => "connection",
            WhyNot::RequestNoStore => "request_no_store",
            WhyNot::Status => "status",
            WhyNot::NoStore => "no_store",
            WhyNot::Private => "private",
            WhyNot::Authorization => "authorization",
            WhyNot::KnownClient => "known_client",
            WhyNot::SetCookie => "set_cookie",
            WhyNot::Cookie => "cookie",
            WhyNot::VaryStar => "vary_star",
            WhyNot::SaysNothing => "says_nothing",
            WhyNot::Precondition => "precondition",
            WhyNot::TooLarge => "too_large",
            WhyNot::Stale => "stale",
        }
    }
}
