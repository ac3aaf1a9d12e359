//! One attempt: a connection to a backend, the request on it, the head of the answer.
//!
//! A pooled connection may turn out to have been closed before the request came ([`is_stale`]). That is not the backend's
//! failure, so the request goes to the same one on a fresh connection. Any other end is a failed attempt, pooled or not.

use std::cell::Cell;
use std::future::poll_fn;
use std::task::Poll;

use crate::config::model::HostHeader;
use crate::message::{Blame, Cause, Framing, Head, HeaderField};
use crate::net::{Stream, now};
use crate::proxy::dial::{self, dial};
use crate::proxy::pool::{Keep, Need};
use crate::targets::resilience::retry::{ConnectionEnd, FailedAttempt, is_stale};
use crate::targets::{Backend, Lease, Outcome};

use super::Body;
use super::call::{Call, Patience, Silence};
use super::edge::Edge;
use super::forward::{Forwarding, until_over};
use super::h1::write::{self, Host};
use super::hedge::{Raced, race};
use super::identity;

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
    fn unsent(cause: Cause, failed: FailedAttempt) -> Failure {
        Failure { cause, failed, sent: false, answer: None }
    }
}

/// What a backend gets as Host where that is not what the client sent.
#[cold]
fn written_host<'a>(host: &'a HostHeader, backend: &'a Backend) -> Host<'a> {
    match host {
        HostHeader::Pass => Host::Pass { missing: &backend.name },
        HostHeader::Backend => Host::Write(&backend.authority),
        HostHeader::Name(name) => Host::Write(name),
    }
}

impl<E: Edge> Forwarding<'_, E> {
    /// The request on a connection to a backend.
    #[must_use]
    pub fn start(&self, lease: Lease, generation: u32, stream: Stream, body: Body) -> Box<Call> {
        let mut out = self.ctx.outgoing.take();
        let backend = lease.backend();
        let host = match &self.target.config.host {
            HostHeader::Pass => Host::Pass { missing: &backend.name },
            host => written_host(host, backend),
        };
        write::request(&mut out, self.head, body.framing(), self.upgrade, &self.about, host);
        let timeouts = &self.target.config.timeouts;
        let patience = Patience { first_byte: timeouts.first_byte, idle: timeouts.idle };
        let mut call = Call::new(self.ctx, lease, generation, stream, out, body, patience);
        call.keep = self.keep;
        call
    }

    /// What the request needs of a pooled connection.
    #[inline(always)]
    #[must_use]
    pub fn need(&self) -> Need {
        let no_body = matches!(self.body.framing(), Framing::None | Framing::Length(0));
        if no_body && self.is_idempotent() { Need::Repeatable } else { Need::Once }
    }

    /// A connection that has served before, for what `lease` is about: the one that is kept for the client, else any. The
    /// client's own is closed if it does not fit.
    #[inline]
    pub fn reuse(&mut self, lease: &Lease) -> Option<Stream> {
        let (pool, cells) = (&self.ctx.pool, &self.ctx.cells);
        let owner = self.edge.owner().and_then(Cell::get);
        if lease.is_trial() {
            // It finds out whether a backend can be connected to; an old connection says nothing about that.
            owner.inspect(|owner| pool.release(cells, *owner));
            return None;
        }
        if let Some(owner) = owner
            && let Some(stream) = pool.take_private(cells, owner, lease.backend(), lease.picked())
        {
            self.keep = Keep::Private(owner);
            return Some(stream);
        }
        pool.take(cells, lease.backend(), self.need(), lease.picked())
    }
}

/// Opens a connection.
async fn open<E: Edge>(forwarding: &mut Forwarding<'_, E>, backend: &Backend) -> Result<Stream, Cause> {
    let (ctx, timeouts) = (forwarding.ctx, &forwarding.target.config.timeouts);
    let deadline = ctx.ticker.deadline();
    until_over(forwarding, async |gone| dial(ctx, backend, timeouts, &deadline, gone).await).await
}

/// Makes an attempt: the head of the answer is in `forwarding.answer`, the rest is to be had from the call.
///
/// # Errors
/// See [`Failure`].
pub async fn attempt<E: Edge>(
    forwarding: &mut Forwarding<'_, E>,
    mut lease: Lease,
) -> Result<Box<Call>, Failure> {
    let mut may_reuse = true;
    let to_head = forwarding.head.method() == b"HEAD";
    let picked = lease.picked();
    let is_hedged = forwarding.target.config.resilience.hedging.is_some();
    loop {
        let generation = lease.backend().generation();
        let pooled = if may_reuse { forwarding.reuse(&lease) } else { None };
        let mut reused = pooled.is_some();
        let stream = match pooled {
            Some(stream) => stream,
            None => match Box::pin(open(forwarding, lease.backend())).await {
                Ok(stream) => {
                    lease.note_connected();
                    stream
                }
                Err(cause) => return Err(unconnected(lease, cause)),
            },
        };
        if let Some(attempt) = forwarding.record.last_attempt() {
            attempt.reused = reused;
            attempt.connected = if reused { attempt.picked } else { now() };
        }
        let Some(body) = forwarding.body_again() else {
            return Err(Failure::unsent(Cause::BackendClosed, FailedAttempt::Otherwise));
        };
        let mut call = forwarding.start(lease, generation, stream, body);
        // The client may leave meanwhile; 1xx heads are passed on to it.
        let outcome = loop {
            let patience = if is_hedged { forwarding.patience(&call) } else { None };
            let polled = if let Some(wait) = patience {
                let raced = Raced { call: &mut call, reused: &mut reused };
                Box::pin(race(forwarding, raced, to_head, wait)).await
            } else {
                let head = poll_fn(|cx| match call.poll_head(cx, forwarding.answer, to_head) {
                    Poll::Ready(outcome) => Poll::Ready(outcome),
                    Poll::Pending => forwarding.poll_over(cx).map(|cause| Err(call.silence(cause))),
                });
                head.await
            };
            match polled {
                Ok(()) if forwarding.answer.status < 200 && forwarding.answer.status != 101 => {}
                outcome => break outcome,
            }
            if let Err(cause) = Box::pin(forwarding.edge.interim(forwarding.answer)).await {
                break Err(call.silence(cause));
            }
        };
        if let Some(attempt) = forwarding.record.last_attempt() {
            (attempt.sent, attempt.first_byte) = (call.sent, call.first_byte);
        }
        if outcome.is_ok() && !reused {
            dial::accepted(call.backend());
        }
        match outcome {
            // What is left of the request's body would be taken for bytes of the tunnel.
            Ok(())
                if forwarding.answer.status == 101
                    && !(matches_upgrade(forwarding.answer, forwarding.upgrade) && call.is_sent()) =>
            {
                call.abandon(Outcome::Failed, now());
                let (cause, failed) = (Cause::BadUpgrade, FailedAttempt::Otherwise);
                return Err(Failure { cause, failed, sent: true, answer: None });
            }
            Ok(()) => {
                if is_hedged {
                    forwarding.target.state.pace.note(call.first_byte.since(picked));
                }
                if identity::is_offered(forwarding.answer) {
                    call.keep = identity::own(&forwarding.ctx.pool, forwarding.edge.owner());
                }
                call.note_answer(forwarding.answer, forwarding.target.config.resilience.breaker.as_ref());
                return Ok(call);
            }
            Err(silence) => {
                let Silence { sent, answered, .. } = silence;
                let end = ConnectionEnd { reused, sent, answered, idempotent: forwarding.is_idempotent() };
                if is_closed(&silence) && is_stale(&end) && forwarding.body_again().is_some() {
                    may_reuse = false;
                    lease = call.into_lease();
                    continue;
                }
                return Err(fail(call, &silence, reused));
            }
        }
    }
}

/// The connection ended before a byte of an answer.
fn is_closed(silence: &Silence) -> bool {
    !silence.answered && silence.cause == Cause::BackendClosed
}

/// No connection could be opened.
pub(super) fn unconnected(lease: Lease, cause: Cause) -> Failure {
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
pub(super) fn fail(call: Box<Call>, silence: &Silence, reused: bool) -> Failure {
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

/// A 101 is right only if the request asked for that very protocol (RFC 9110 §7.8).
fn matches_upgrade(head: &Head, asked: Option<&[u8]>) -> bool {
    let given = head.value(HeaderField::Upgrade).unwrap_or_default();
    asked.is_some_and(|asked| given.eq_ignore_ascii_case(asked))
        && head.lists(HeaderField::Connection, b"upgrade")
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
