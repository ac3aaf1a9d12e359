//! How a request on its way to a backend fares, whatever carries it.

use crate::message::Cause;

/// What the rest of a request waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SendState {
    /// Nothing is left of it.
    Done,
    /// Its client has not sent the rest.
    Starved,
    /// The backend takes no more for now.
    Blocked,
}

/// How the sending of a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SendEnd {
    /// All of it is out.
    Whole,
    /// The backend takes no more of it; its answer may still come.
    Refused,
    /// The *client's* side of it broke, for this cause.
    Broken(Cause),
}
