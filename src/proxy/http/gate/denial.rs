//! A request that is not let through, and what its client is told.

use crate::access::AddressRule;
use crate::message::Cause;
use crate::proxy::http::own;

/// Why a request is not let through, and what its client gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denial {
    /// Why.
    pub cause: Cause,
    /// The status of the answer; `None`: the connection is closed without one.
    pub status: Option<u16>,
    /// Lines that the answer has beside those of all answers of ours.
    pub lines: Vec<(&'static str, String)>,
}

impl Denial {
    /// One with the status that its cause has.
    #[must_use]
    pub fn new(cause: Cause, lines: Vec<(&'static str, String)>) -> Denial {
        Denial { cause, status: Some(own::status_of(cause)), lines }
    }

    /// That of a cause that speaks for itself.
    #[must_use]
    pub fn of(cause: Cause) -> Denial {
        Denial::new(cause, Vec::new())
    }

    /// That of a client that an access list does not let in.
    #[must_use]
    pub fn by_address(rule: &AddressRule) -> Denial {
        Denial { cause: Cause::AccessDenied, status: rule.list.status, lines: Vec::new() }
    }
}
