//! How an attempt failed, and what its backend hears of that.

use crate::message::{Blame, Cause};
use crate::net::now;
use crate::proxy::dial;
use crate::proxy::http::call::{Call, Silence};
use crate::targets::resilience::retry::FailedAttempt;
use crate::targets::{Lease, Outcome};

/// A failed attempt.
pub struct Failure {
    /// Why.
    pub cause: Cause,
    /// The same, as far as it matters for a retry.
    pub failed: FailedAttempt,
    /// A byte of the request was taken by the socket.
    pub sent: bool,
    /// The answer that was not wanted.
    pub answer: Option<Box<Call>>,
}

impl Failure {
    /// One without a byte sent.
    pub(super) fn unsent(cause: Cause, failed: FailedAttempt) -> Failure {
        Failure { cause, failed, sent: false, answer: None }
    }
}

/// The connection ended before a byte of an answer.
pub fn is_closed(silence: &Silence) -> bool {
    !silence.answered && silence.cause == Cause::BackendClosed
}

/// No connection could be opened.
#[must_use]
pub fn unconnected(lease: Lease, cause: Cause) -> Failure {
    let (failed, outcome) = match cause {
        // It may have been about to accept.
        Cause::AttemptTimeout => (FailedAttempt::Timeout, Outcome::Failed),
        _ if cause.blame() == Blame::Backend => (FailedAttempt::Unconnected, Outcome::ConnectFailed),
        // It says nothing about this backend, and nothing about others.
        Cause::NoLocalPort => (FailedAttempt::Unconnected, Outcome::Neutral),
        _ => (FailedAttempt::Otherwise, Outcome::Neutral),
    };
    lease.finish(outcome, now());
    Failure::unsent(cause, failed)
}

/// No answer came on a connection.
#[cold]
#[must_use]
pub fn fail(call: Box<Call>, silence: &Silence, reused: bool) -> Failure {
    let (sent, closed) = (silence.sent.is_some(), is_closed(silence));
    let error = silence.error.as_ref().filter(|_| closed && !reused);
    if let Some(cause) = error.and_then(|error| dial::refusal(call.backend(), error)) {
        call.abandon(Outcome::ConnectFailed, now());
        return Failure { cause, failed: FailedAttempt::Unconnected, sent, answer: None };
    }
    let cause = silence.cause;
    let failed = match cause {
        _ if closed => FailedAttempt::Reset,
        Cause::FirstByteTimeout | Cause::AttemptTimeout => FailedAttempt::Timeout,
        _ => FailedAttempt::Otherwise,
    };
    let theirs = cause.blame() == Blame::Backend;
    call.abandon(if theirs { Outcome::Failed } else { Outcome::Neutral }, now());
    Failure { cause, failed, sent, answer: None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::model::resilience::Retries;
    use crate::proxy::lend::tests::{lease, unprobed};
    use crate::targets::resilience::retry::{Case, Next, decide};

    #[test]
    fn a_lack_of_ports_towards_one_backend_is_held_against_nobody_and_another_is_tried() {
        for (cause, next, ejected) in [
            (Cause::NoLocalPort, Next::AtOnce, false),
            (Cause::ConnectFailed, Next::AtOnce, true),
            // What else is short is short for all of them.
            (Cause::LocalShortage, Next::Stop, false),
        ] {
            let target = unprobed(2);
            let lease = lease(&target);
            let place = usize::from(*lease.backend().name == *"b1");
            let failure = unconnected(lease, cause);
            let case = Case {
                failed: failure.failed,
                sent: failure.sent,
                idempotent: false,
                is_call: false,
                pushback: None,
                replayable: true,
                foreign: false,
                made: 1,
                charged: 0,
                left: None,
            };
            assert_eq!(decide(Some(&Retries::default()), &case), next, "{cause}");
            assert_eq!(target.status()[place].ejected_until.is_some(), ejected, "{cause}");
        }
    }
}
