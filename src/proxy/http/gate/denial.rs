//! A request that is not let through, and what its client is told.

use crate::access::AddressRule;
use crate::access::jwt::{TokenFault, TokenFaultKind};
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
    /// That of a cause that speaks for itself.
    #[must_use]
    pub fn of(cause: Cause) -> Denial {
        Denial::new(cause, Vec::new())
    }

    /// One with the status that its cause has, and these lines.
    #[must_use]
    pub fn new(cause: Cause, lines: Vec<(&'static str, String)>) -> Denial {
        Denial { cause, status: Some(own::status_of(cause)), lines }
    }

    /// That of a client that an access list does not let in; it is counted there.
    #[must_use]
    pub fn by_address(rule: &AddressRule) -> Denial {
        rule.count_refusal();
        Denial { cause: Cause::AccessDenied, status: rule.list.status, lines: Vec::new() }
    }

    /// That of a client whose token does not let it in.
    #[must_use]
    pub fn by_token(fault: &TokenFault) -> Denial {
        let cause = match fault.kind {
            TokenFaultKind::Missing => Cause::TokenMissing,
            TokenFaultKind::Malformed => Cause::TokenMalformed,
            TokenFaultKind::Signature => Cause::TokenSignature,
            TokenFaultKind::Expired => Cause::TokenExpired,
            TokenFaultKind::Claims => Cause::TokenClaims,
            TokenFaultKind::Keys => Cause::TokenKeys,
        };
        let challenge = ("WWW-Authenticate", fault.challenge());
        Denial { cause, status: Some(cause.status()), lines: vec![challenge] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::jwt::bearer;

    #[test]
    fn who_shows_no_token_is_asked_for_one_and_who_shows_another_is_told_that() {
        for (lines, cause, challenge) in [
            (&[][..], "token_missing", "Bearer"),
            (&["Basic YTpi"], "token_missing", "Bearer"),
            (
                &["Bearer a", "Bearer a"],
                "token_malformed",
                "Bearer error=\"invalid_token\", error_description=\"the token stands in one of several lines\"",
            ),
        ] {
            let fault = bearer(lines.iter().map(|line| line.as_bytes())).expect_err("no token");
            let denial = Denial::by_token(&fault);
            assert_eq!((denial.cause.token(), denial.status), (cause, Some(401)));
            assert_eq!(denial.lines, [("WWW-Authenticate", challenge.to_owned())]);
        }
    }
}
