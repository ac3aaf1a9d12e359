//! The attempt loop: from a request to a backend's answer.
//!
//! A backend that can't be connected to costs the request nothing but time: the next one is tried. Once bytes
//! are out, a request is repeated only if that is provably harmless: on a pooled connection that turned out to
//! be closed, or elsewhere when a backend refuses a TLS handshake that was complete on our side, and only if the
//! request may be repeated or nothing of it was sent.

use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll};

use crate::message::{Blame, Cause, Field, Framing, Head, Record};
use crate::net::{Deadline, Stream, now};
use crate::proxy::WorkerCtx;
use crate::proxy::dial::{self, dial};
use crate::proxy::lend::lend;
use crate::proxy::pool::Need;
use crate::proxy::spare::Lent;
use crate::target::{Lease, Outcome, Target, Tried};

use super::Body;
use super::call::{Call, Patience, Silence};
use super::edge::Edge;
use super::h1::write::{self, About};
use super::reply::Reply;

/// Backends tried for one request.
const ATTEMPTS: usize = 3;

/// What is forwarded.
pub struct Request<'a> {
    /// Its head.
    pub head: &'a Head,
    /// Its body; attempts take it with [`Body::again`].
    pub body: &'a Body,
    /// The protocol it may switch to.
    pub upgrade: Option<&'a [u8]>,
    /// What the backend is told about the client.
    pub about: About<'a>,
}

/// What a backend said.
pub enum Answer {
    /// An ordinary answer.
    Reply(Lent<Head>, Body),
    /// It switched protocols.
    Tunnel(Lent<Head>, Box<Call>, Lease),
}

impl Request<'_> {
    /// True when sending it twice does no harm and is possible.
    fn is_repeatable(&self) -> bool {
        let no_body = matches!(self.body.framing(), Framing::None | Framing::Length(0));
        no_body && self.upgrade.is_none() && self.head.is_idempotent()
    }
}

/// Gets an answer to `request` from one of `target`'s backends.
///
/// # Errors
/// Why there is none.
pub async fn forward<E: Edge>(
    ctx: &Rc<WorkerCtx>,
    target: &Target,
    edge: &mut E,
    request: &Request<'_>,
    record: &mut Record,
) -> Result<Answer, Cause> {
    let deadline = ctx.ticker.deadline();
    let mut tried = Tried::new();
    let mut cause = Cause::NoBackend;
    for _ in 0..ATTEMPTS {
        // Nothing has been waited for since the target was chosen.
        let picked = if tried.is_empty() { record.routed } else { now() };
        let Some(lease) = lend(target, &tried, &deadline, picked, |cx| edge.poll_gone(cx)).await? else {
            break;
        };
        tried.insert(lease.backend().id);
        record.attempt(lease.backend().id, lease.picked());
        let outcome = attempt(ctx, target, edge, request, record, lease, &deadline).await;
        if let (Some(attempt), Err(failure)) = (record.last_attempt(), &outcome) {
            (attempt.outcome, attempt.end) = (failure.cause, now());
        }
        match outcome {
            Err(failure) if failure.next => cause = failure.cause,
            other => return other.map_err(|failure| failure.cause),
        }
    }
    Err(cause)
}

/// A failed attempt.
struct Failure {
    cause: Cause,
    /// Another backend may be tried.
    next: bool,
}

async fn attempt<E: Edge>(
    ctx: &Rc<WorkerCtx>,
    target: &Target,
    edge: &mut E,
    request: &Request<'_>,
    record: &mut Record,
    lease: Lease,
    deadline: &Deadline,
) -> Result<Answer, Failure> {
    let backend = lease.backend();
    let need = if request.is_repeatable() { Need::Repeatable } else { Need::Once };
    // A trial finds out whether a backend can be connected to; an old connection says nothing about that.
    let mut may_reuse = !lease.is_trial();
    loop {
        let generation = backend.generation();
        let pooled = if may_reuse { ctx.pool.take(&ctx.cells, backend, need, lease.picked()) } else { None };
        let reused = pooled.is_some();
        let stream = match pooled {
            Some(stream) => stream,
            None => {
                let gone = |cx: &mut Context<'_>| edge.poll_gone(cx);
                match Box::pin(dial(ctx, backend, &target.config.timeouts, deadline, gone)).await {
                    Ok(stream) => {
                        lease.note_connected();
                        stream
                    }
                    Err(cause) => {
                        let theirs = cause.blame() == Blame::Backend;
                        lease.finish(if theirs { Outcome::ConnectFailed } else { Outcome::Neutral }, now());
                        return Err(Failure { cause, next: theirs });
                    }
                }
            }
        };
        if let Some(attempt) = record.last_attempt() {
            attempt.reused = reused;
            attempt.connected = if reused { attempt.picked } else { now() };
        }
        let Some(body) = request.body.again() else {
            return Err(Failure { cause: Cause::BackendClosed, next: false });
        };
        let mut call = start(ctx, target, request, stream, body, &lease);
        let mut head = ctx.heads.take();
        let outcome = await_head(edge, &mut call, &mut head, request.head.method() == b"HEAD").await;
        if let Some(attempt) = record.last_attempt() {
            (attempt.sent, attempt.first_byte) = (call.sent, call.first_byte);
        }
        if outcome.is_ok() && !reused {
            dial::accepted(backend);
        }
        match outcome {
            Ok(()) if head.status == 101 => {
                // What is left of the request's body would be taken for bytes of the tunnel.
                if !matches_upgrade(&head, request.upgrade) || !call.is_sent() {
                    lease.finish(Outcome::Failed, now());
                    return Err(Failure { cause: Cause::BadUpgrade, next: false });
                }
                return Ok(Answer::Tunnel(head, call, lease));
            }
            Ok(()) => {
                let reply = Reply::new(Rc::clone(ctx), call, lease, generation);
                return Ok(Answer::Reply(head, Body::Reply(Box::new(reply))));
            }
            Err(silence) => {
                let closed = !silence.answered && silence.cause == Cause::BackendClosed;
                let harmless =
                    closed && (silence.unsent || request.is_repeatable()) && request.body.again().is_some();
                if reused && harmless {
                    may_reuse = false;
                    continue;
                }
                let error = silence.error.as_ref().filter(|_| closed && !reused);
                if let Some(cause) = error.and_then(|error| dial::refusal(backend, error)) {
                    lease.finish(Outcome::ConnectFailed, now());
                    return Err(Failure { cause, next: harmless });
                }
                let theirs = silence.cause.blame() == Blame::Backend;
                lease.finish(if theirs { Outcome::Failed } else { Outcome::Neutral }, now());
                return Err(Failure { cause: silence.cause, next: false });
            }
        }
    }
}

fn start(
    ctx: &WorkerCtx,
    target: &Target,
    request: &Request<'_>,
    stream: Stream,
    body: Body,
    lease: &Lease,
) -> Box<Call> {
    let mut out = ctx.outgoing.take();
    let framing = body.framing();
    write::request(&mut out, request.head, framing, request.upgrade, &request.about, &lease.backend().name);
    let timeouts = target.config.timeouts;
    let patience = Patience { first_byte: timeouts.first_byte, idle: timeouts.idle };
    let (raw, buffers, deadline) = (ctx.raw_relay, ctx.buffers.clone(), ctx.ticker.deadline());
    // Boxed: it is moved several times on its way to the end of the answer.
    Box::new(Call::new(stream, out, body, raw, buffers, deadline, patience))
}

/// Waits for the final head; passes 1xx heads on. The client may leave meanwhile.
async fn await_head<E: Edge>(
    edge: &mut E,
    call: &mut Call,
    head: &mut Head,
    to_head: bool,
) -> Result<(), Silence> {
    loop {
        poll_fn(|cx| match call.poll_head(cx, head, to_head) {
            Poll::Ready(outcome) => Poll::Ready(outcome),
            Poll::Pending => edge.poll_gone(cx).map(|()| Err(call.silence(Cause::ClientGone))),
        })
        .await?;
        if head.status >= 200 || head.status == 101 {
            return Ok(());
        }
        Box::pin(edge.interim(head)).await.map_err(|cause| call.silence(cause))?;
    }
}

/// A 101 is right only if the request asked for that very protocol (RFC 9110 §7.8).
fn matches_upgrade(head: &Head, asked: Option<&[u8]>) -> bool {
    let given = head.value(Field::Upgrade).unwrap_or_default();
    asked.is_some_and(|asked| given.eq_ignore_ascii_case(asked)) && head.lists(Field::Connection, b"upgrade")
}
