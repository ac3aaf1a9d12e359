//! What must be known of a request and its answer beside the two heads.

use crate::tick::Tick;

use super::date::HttpSeconds;

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
