//! The attempt loop: from a request to a backend's answer.
//!
//! A backend that can't be connected to costs the request nothing but time: the next one is tried. Once bytes
//! are out, a request is repeated only if that is provably harmless: on a pooled connection that turned out to
//! be closed, or elsewhere when a backend refuses a TLS handshake that was complete on our side, and only if the
//! request may be repeated or nothing of it was sent.

use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;

use crate::message::{Blame, Cause, Field, Framing, Head, Record};
use crate::net::{Stream, now};
use crate::proxy::WorkerCtx;
use crate::proxy::dial::{self, dial};
use crate::proxy::lend::lend;
use crate::proxy::pool::Need;
use crate::target::{Ask, Backend, Lease, Outcome, Pick, Target, Tried};
use crate::tick::Tick;

use super::Body;
use super::call::{Call, Patience};
use super::edge::Edge;
use super::h1::write::{self, About};

/// Backends tried for one request.
const ATTEMPTS: usize = 3;

/// A request that is forwarded, and what comes back.
pub struct Errand<'a, E> {
    /// The worker.
    pub ctx: &'a Rc<WorkerCtx>,
    /// Where it goes.
    pub target: &'a Target,
    /// Whom it is for.
    pub edge: &'a mut E,
    /// Its head.
    pub head: &'a Head,
    /// Its body; attempts take it with [`Body::again`].
    pub body: &'a Body,
    /// What its backend is chosen by where the target hashes; see [`Ask::key`].
    pub key: Option<u64>,
    /// The backend that its cookie names.
    pub pin: Option<&'a Arc<Backend>>,
    /// The protocol it may switch to.
    pub upgrade: Option<&'a [u8]>,
    /// What the backend is told about the client.
    pub about: About<'a>,
    /// The head that comes back.
    pub answer: &'a mut Head,
    /// What happens on the way.
    pub record: &'a mut Record,
}

impl<'a, E: Edge> Errand<'a, E> {
    /// True when sending it twice does no harm and is possible.
    fn is_repeatable(&self) -> bool {
        let no_body = matches!(self.body.framing(), Framing::None | Framing::Length(0));
        no_body && self.upgrade.is_none() && self.head.is_idempotent()
    }

    /// What a pick at `now` goes by.
    fn ask<'t>(&self, tried: &'t Tried, now: Tick) -> Ask<'t>
    where
        'a: 't,
    {
        Ask { tried, key: self.key, pin: self.pin, dice: &self.ctx.dice, now }
    }

    /// The request on a connection to a backend.
    fn start(&self, lease: Lease, generation: u32, stream: Stream, body: Body) -> Box<Call> {
        let mut out = self.ctx.outgoing.take();
        let host = &lease.backend().name;
        write::request(&mut out, self.head, body.framing(), self.upgrade, &self.about, host);
        let timeouts = &self.target.config.timeouts;
        let patience = Patience { first_byte: timeouts.first_byte, idle: timeouts.idle };
        Call::new(self.ctx, lease, generation, stream, out, body, patience)
    }
}

/// Gets an answer from one of a target's backends: its head is in `errand.answer`, the rest is to be had from the call. After
/// a 101 that is a tunnel.
///
/// # Errors
/// Why there is none.
pub async fn forward<E: Edge>(errand: &mut Errand<'_, E>) -> Result<Box<Call>, Cause> {
    let mut tried = Tried::new();
    let mut cause = Cause::NoBackend;
    for _ in 0..ATTEMPTS {
        // Nothing has been waited for since the target was chosen.
        let picked = if tried.is_empty() { errand.record.routed } else { now() };
        let ask = errand.ask(&tried, picked);
        let lease = match errand.target.pick(&ask) {
            Pick::Lease(lease) => lease,
            // Boxed: few requests wait, and the others must not pay for its size.
            Pick::Unknown | Pick::Full if tried.is_empty() => Box::pin(wait(errand, &tried)).await?,
            Pick::None(cause) if tried.is_empty() => return Err(cause),
            // Why the backends that were tried failed says more.
            Pick::Unknown | Pick::Full | Pick::None(_) => break,
        };
        tried.insert(lease.backend().id);
        errand.record.attempt(lease.backend().id, lease.picked());
        match attempt(errand, lease).await {
            Ok(call) => return Ok(call),
            Err(failure) => {
                if let Some(attempt) = errand.record.last_attempt() {
                    (attempt.outcome, attempt.end) = (failure.cause, now());
                }
                if !failure.next {
                    return Err(failure.cause);
                }
                cause = failure.cause;
            }
        }
    }
    Err(cause)
}

/// Waits for a backend's first verdict.
async fn wait<E: Edge>(errand: &mut Errand<'_, E>, tried: &Tried) -> Result<Lease, Cause> {
    let deadline = errand.ctx.ticker.deadline();
    let ask = errand.ask(tried, now());
    lend(errand.target, &ask, &deadline, |cx| errand.edge.poll_gone(cx)).await
}

/// Opens a connection.
async fn open<E: Edge>(errand: &mut Errand<'_, E>, backend: &Backend) -> Result<Stream, Cause> {
    let deadline = errand.ctx.ticker.deadline();
    let timeouts = &errand.target.config.timeouts;
    dial(errand.ctx, backend, timeouts, &deadline, |cx| errand.edge.poll_gone(cx)).await
}

/// A failed attempt.
struct Failure {
    cause: Cause,
    /// Another backend may be tried.
    next: bool,
}

async fn attempt<E: Edge>(errand: &mut Errand<'_, E>, mut lease: Lease) -> Result<Box<Call>, Failure> {
    // A trial finds out whether a backend can be connected to; an old connection says nothing about that.
    let mut may_reuse = !lease.is_trial();
    let to_head = errand.head.method() == b"HEAD";
    loop {
        let generation = lease.backend().generation();
        let pooled = if may_reuse {
            let need = if errand.is_repeatable() { Need::Repeatable } else { Need::Once };
            errand.ctx.pool.take(&errand.ctx.cells, lease.backend(), need, lease.picked())
        } else {
            None
        };
        let reused = pooled.is_some();
        let stream = match pooled {
            Some(stream) => stream,
            None => match Box::pin(open(errand, lease.backend())).await {
                Ok(stream) => {
                    lease.note_connected();
                    stream
                }
                Err(cause) => {
                    let theirs = cause.blame() == Blame::Backend;
                    lease.finish(if theirs { Outcome::ConnectFailed } else { Outcome::Neutral }, now());
                    return Err(Failure { cause, next: theirs });
                }
            },
        };
        if let Some(attempt) = errand.record.last_attempt() {
            attempt.reused = reused;
            attempt.connected = if reused { attempt.picked } else { now() };
        }
        let Some(body) = errand.body.again() else {
            return Err(Failure { cause: Cause::BackendClosed, next: false });
        };
        let mut call = errand.start(lease, generation, stream, body);
        // The client may leave meanwhile; 1xx heads are passed on to it.
        let outcome = loop {
            let polled = poll_fn(|cx| match call.poll_head(cx, errand.answer, to_head) {
                Poll::Ready(outcome) => Poll::Ready(outcome),
                Poll::Pending => errand.edge.poll_gone(cx).map(|()| Err(call.silence(Cause::ClientGone))),
            });
            match polled.await {
                Ok(()) if errand.answer.status < 200 && errand.answer.status != 101 => {}
                outcome => break outcome,
            }
            if let Err(cause) = Box::pin(errand.edge.interim(errand.answer)).await {
                break Err(call.silence(cause));
            }
        };
        if let Some(attempt) = errand.record.last_attempt() {
            (attempt.sent, attempt.first_byte) = (call.sent, call.first_byte);
        }
        if outcome.is_ok() && !reused {
            dial::accepted(call.backend());
        }
        match outcome {
            // What is left of the request's body would be taken for bytes of the tunnel.
            Ok(())
                if errand.answer.status == 101
                    && !(matches_upgrade(errand.answer, errand.upgrade) && call.is_sent()) =>
            {
                call.abandon(Outcome::Failed, now());
                return Err(Failure { cause: Cause::BadUpgrade, next: false });
            }
            Ok(()) => {
                call.note_answer(errand.answer, errand.target.config.resilience.breaker.as_ref());
                return Ok(call);
            }
            Err(silence) => {
                let closed = !silence.answered && silence.cause == Cause::BackendClosed;
                let harmless =
                    closed && (silence.unsent || errand.is_repeatable()) && errand.body.again().is_some();
                if reused && harmless {
                    may_reuse = false;
                    lease = call.into_lease();
                    continue;
                }
                let error = silence.error.as_ref().filter(|_| closed && !reused);
                if let Some(cause) = error.and_then(|error| dial::refusal(call.backend(), error)) {
                    call.abandon(Outcome::ConnectFailed, now());
                    return Err(Failure { cause, next: harmless });
                }
                let theirs = silence.cause.blame() == Blame::Backend;
                call.abandon(if theirs { Outcome::Failed } else { Outcome::Neutral }, now());
                return Err(Failure { cause: silence.cause, next: false });
            }
        }
    }
}

/// A 101 is right only if the request asked for that very protocol (RFC 9110 §7.8).
fn matches_upgrade(head: &Head, asked: Option<&[u8]>) -> bool {
    let given = head.value(Field::Upgrade).unwrap_or_default();
    asked.is_some_and(|asked| given.eq_ignore_ascii_case(asked)) && head.lists(Field::Connection, b"upgrade")
}
