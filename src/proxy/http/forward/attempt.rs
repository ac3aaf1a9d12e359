//! One attempt: a connection to a backend, the request on it, the head of the answer.
//!
//! A pooled connection may turn out to have been closed before the request came ([`is_stale`]). That is not the backend's
//! failure, so the request goes to the same one on a fresh connection. Any other end is a failed attempt, pooled or not.

use std::cell::Cell;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

use crate::message::{Cause, Head, HeaderField};
use crate::net::now;
use crate::proxy::dial::{self, dial};
use crate::targets::resilience::retry::{ConnectionEnd, FailedAttempt, is_stale};
use crate::targets::{Backend, Lease, Outcome};
use crate::tick::Tick;

use super::failure::{Failure, fail, is_closed, unconnected};
use super::forwarding::{Forwarding, until_over};
use super::hedge::{Raced, race};
use crate::proxy::http::call::{Call, CallWay, Silence};
use crate::proxy::http::edge::Edge;
use crate::proxy::http::identity;
use crate::proxy::http::upstream::opening;
use crate::proxy::pool::Keep;

/// How often a request goes to the same backend again that has done nothing for it.
const REFUSALS: u8 = 2;

/// Opens a connection, or finds a place on one that is being opened for others too.
async fn open<E: Edge>(forwarding: &mut Forwarding<'_, E>, backend: &Arc<Backend>) -> Result<CallWay, Cause> {
    let (ctx, timeouts) = (forwarding.ctx, &forwarding.rules.timeouts);
    let (stood, passing) = (Cell::new(Tick::ZERO), forwarding.passing());
    let opened = if forwarding.target.config.upstream.is_http2() {
        if forwarding.keep != Keep::Shared {
            // It would log in everybody who shares the connection.
            return Err(Cause::NeedsHttp11);
        }
        until_over(forwarding, async |gone| {
            opening::place(ctx, (backend, passing.as_ref()), timeouts, &stood, gone).await.map(CallWay::Place)
        })
        .await
    } else {
        let deadline = ctx.ticker.deadline();
        let how = (&deadline, passing.as_ref().map(|passing| &*passing.header));
        until_over(forwarding, async |gone| {
            dial(ctx, backend, timeouts, how, &stood, gone).await.map(CallWay::Connection)
        })
        .await
    };
    if let Some(attempt) = forwarding.record.last_attempt() {
        attempt.stood = stood.get();
    }
    opened
}

/// Makes an attempt: the head of the answer is in `forwarding.answer`, the rest is to be had from the call.
///
/// # Errors
/// See [`Failure`].
pub async fn attempt<E: Edge>(
    forwarding: &mut Forwarding<'_, E>,
    mut lease: Lease,
) -> Result<Box<Call>, Failure> {
    let mut may_reuse = !forwarding.effort.is_once;
    let mut refusals = 0;
    let to_head = forwarding.head.method() == b"HEAD";
    let picked = lease.picked();
    let is_hedged = forwarding.target.config.resilience.hedging.is_some();
    loop {
        let generation = lease.backend().generation();
        let pooled = if may_reuse { forwarding.reuse(&lease) } else { None };
        let mut reused = pooled.is_some();
        let way = match pooled {
            Some(way) => way,
            None => match Box::pin(open(forwarding, lease.backend())).await {
                Ok(way) => {
                    // Those that come with others onto a new connection have not made it.
                    reused = !way.is_fresh();
                    if !reused {
                        lease.note_connected();
                    }
                    way
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
        let mut call = forwarding.start(lease, generation, way, body);
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
                    if forwarding.target.config.upstream.is_http2() {
                        call.abandon(Outcome::Neutral, now());
                        let (cause, failed) = (Cause::NeedsHttp11, FailedAttempt::Otherwise);
                        return Err(Failure { cause, failed, sent: true, answer: None });
                    }
                    call.keep = identity::own(&forwarding.ctx.pool, forwarding.edge.owner());
                }
                call.note_answer(forwarding.answer, forwarding.target.config.resilience.breaker.as_ref());
                return Ok(call);
            }
            Err(mut silence) => {
                if forwarding.effort.is_call && forwarding.due() <= now() {
                    // Its backend keeps to the same time, and may be the first to end it.
                    silence.cause = Cause::GrpcTimeout;
                }
                let Silence { sent, answered, .. } = silence;
                let end = ConnectionEnd { reused, sent, answered, idempotent: forwarding.is_idempotent() };
                let is_refused = call.is_refused() && refusals < REFUSALS;
                let is_stale = may_reuse && call.is_connection_over() && is_stale(&end);
                if is_closed(&silence) && (is_refused || is_stale) && forwarding.body_again().is_some() {
                    // A connection on which a stream was refused may be fine, and is not given out if it is not.
                    may_reuse = is_refused && !forwarding.effort.is_once;
                    refusals += u8::from(is_refused);
                    if let Some(attempt) = forwarding.record.last_attempt() {
                        attempt.resent = true;
                    }
                    lease = call.into_lease();
                    continue;
                }
                return Err(fail(call, &silence, reused));
            }
        }
    }
}

/// A 101 is right only if the request asked for that very protocol (RFC 9110 §7.8).
fn matches_upgrade(head: &Head, asked: Option<&[u8]>) -> bool {
    let given = head.value(HeaderField::Upgrade).unwrap_or_default();
    asked.is_some_and(|asked| given.eq_ignore_ascii_case(asked))
        && head.lists(HeaderField::Connection, b"upgrade")
}
