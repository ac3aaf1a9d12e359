//! One copy on its way: a backend, a connection, the answer, of which nothing is kept.
//!
//! It is a request like any other to the target that gets it, which counts it as in flight and learns from how it ends. Only
//! it waits for nothing there: without a backend at once it is dropped, and it is not tried again.

use std::cell::Cell;
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use crate::config::model::GrpcStatuses;
use crate::message::{Blame, Cause, Framing, Head, TargetId};
use crate::net::{Deadline, now};
use crate::proxy::WorkerCtx;
use crate::proxy::dial::{self, dial_if_there_is_room};
use crate::proxy::http::call::{Call, CallTerms, CallWay, Patience};
use crate::proxy::http::forward::failure::{fail, is_closed, unconnected};
use crate::proxy::http::identity;
use crate::proxy::http::request_body::RequestBody;
use crate::proxy::http::upstream::opening;
use crate::proxy::pool::Keep;
use crate::targets::resilience::retry::{ConnectionEnd, is_stale};
use crate::targets::{Ask, Backend, Lease, Outcome, Pick, Tried};
use crate::tick::Tick;

use super::copy::MirrorCopy;

/// How long a copy may wait until it is sent, and how long it may take from then to the end of its answer. A shadow that is slow is
/// still heard: the time that a copy has waited is not taken from its backend.
pub const LONGEST: Duration = Duration::from_secs(30);
/// Bytes of an answer's body that are read; behind them the connection is closed.
pub const ANSWER: u64 = 1024 * 1024;

/// A place among the copies under way to a target.
struct Carrier {
    ctx: Rc<WorkerCtx>,
    target: TargetId,
    is_left: bool,
}

/// Sends `first`, and then one after the other of those that wait.
pub async fn carry(ctx: Rc<WorkerCtx>, first: Box<MirrorCopy>) {
    let mut carrier = Carrier { target: first.target.id, ctx, is_left: false };
    let mut next = Some(first);
    while let Some(copy) = next {
        let cause = send(&carrier.ctx, *copy).await;
        carrier.ctx.cells.copies.end(carrier.target, cause);
        next = carrier.ctx.mirrors.lanes.next(carrier.target);
    }
    carrier.is_left = true;
}

impl Drop for Carrier {
    fn drop(&mut self) {
        if self.is_left {
            return;
        }
        // A panic, or the end of the worker.
        let cause = if std::thread::panicking() { Cause::Internal } else { Cause::Shutdown };
        self.ctx.cells.copies.end(self.target, cause);
        for _left in self.ctx.mirrors.lanes.leave(self.target) {
            self.ctx.cells.copies.end(self.target, cause);
        }
    }
}

/// Sends a copy and reads the answer. Tells how it ended.
async fn send(ctx: &Rc<WorkerCtx>, copy: MirrorCopy) -> Cause {
    static NOWHERE: Tried = Tried::new();
    let began = now();
    if began >= copy.since.after(LONGEST) {
        return Cause::MirrorCut;
    }
    let end = began.after(LONGEST);
    let over = ctx.ticker.deadline();
    over.set(end.since(began));
    let ask = Ask { key: copy.key, ..Ask::new(&NOWHERE, &ctx.chance, began) };
    let lease = match copy.target.pick(&ask) {
        Pick::Lease(lease) => lease,
        Pick::Full => return Cause::QueueFull,
        Pick::Unknown => return Cause::NoVerdict,
        Pick::None(cause) => return cause,
    };
    let mut answer = Head::new();
    let call = match ask_backend(ctx, &copy, lease, &over, &mut answer).await {
        Ok(call) => call,
        Err(cause) => return cause,
    };
    // What it took is needed no more.
    drop(copy);
    swallow(call, &over, end).await
}

/// Opens a connection, or finds a place on one that is being opened.
async fn open(
    ctx: &Rc<WorkerCtx>,
    copy: &MirrorCopy,
    backend: &Arc<Backend>,
    over: &Deadline,
) -> Result<CallWay, Cause> {
    let timeouts = &copy.target.config.timeouts;
    let gone = |cx: &mut Context<'_>| over.poll(cx);
    if copy.target.config.upstream.is_http2() {
        if copy.keep != Keep::Shared {
            return Err(Cause::NeedsHttp11);
        }
        let stood = Cell::new(Tick::ZERO);
        let way = (backend, copy.passing.as_ref());
        return opening::place(ctx, way, timeouts, &stood, gone).await.map(CallWay::Place);
    }
    let deadline = ctx.ticker.deadline();
    let how = (&deadline, copy.passing.as_ref().map(|passing| &*passing.header));
    dial_if_there_is_room(ctx, backend, timeouts, how, gone).await.map(CallWay::Connection)
}

/// Gets the head of an answer.
async fn ask_backend(
    ctx: &Rc<WorkerCtx>,
    copy: &MirrorCopy,
    mut lease: Lease,
    over: &Deadline,
    answer: &mut Head,
) -> Result<Box<Call>, Cause> {
    let config = &copy.target.config;
    let timeouts = &config.timeouts;
    // How a call has gone its status says, also of a copy. How long it may take is the copy's own affair.
    let is_call = config.upstream.is_grpc() && copy.is_call;
    let patience = Patience { first_byte: timeouts.first_byte, idle: timeouts.idle };
    let mut may_reuse = true;
    loop {
        let generation = lease.backend().generation();
        // A trial finds out whether a backend can be connected to.
        let may_take = may_reuse && !lease.is_trial();
        let pooled = if config.upstream.is_http2() {
            let is_shared = copy.keep == Keep::Shared;
            let owner = copy.passing.as_ref().and_then(|passing| passing.owner);
            is_shared
                .then(|| ctx.backend_sessions.place(lease.backend(), owner))
                .flatten()
                .map(CallWay::Place)
        } else if may_take && copy.passing.is_none() {
            let pooled = ctx.pool.take(&ctx.cells, lease.backend(), copy.need(), lease.picked());
            pooled.map(CallWay::Connection)
        } else {
            None
        };
        let mut reused = pooled.is_some();
        let way = match pooled {
            Some(way) => way,
            None => {
                let opened = Box::pin(open(ctx, copy, lease.backend(), over)).await;
                match opened {
                    Ok(way) => {
                        reused = !way.is_fresh();
                        if !reused {
                            lease.note_connected();
                        }
                        way
                    }
                    Err(Cause::ClientGone) => {
                        lease.finish(Outcome::Neutral, now());
                        return Err(Cause::MirrorCut);
                    }
                    Err(cause) => return Err(unconnected(lease, cause).cause),
                }
            }
        };
        let mut out = ctx.outgoing.take();
        copy.write(&mut out, lease.backend());
        let body =
            copy.body(&ctx.buffers).map_or(RequestBody::Empty, |body| RequestBody::Memory(Box::new(body)));
        let mut call = Call::new(ctx, lease, generation, way, out, body, patience);
        // What was told of a client serves nobody else, and of copies each is its own.
        call.keep = if copy.passing.is_some() { Keep::Closed } else { copy.keep };
        if is_call {
            call.set_terms(CallTerms::new(Tick::NEVER, GrpcStatuses::default(), false), timeouts.idle);
        }
        let outcome = loop {
            let head = poll_fn(|cx| match call.poll_head(cx, answer, copy.to_head) {
                Poll::Ready(outcome) => Poll::Ready(outcome),
                Poll::Pending => over.poll(cx).map(|()| Err(call.silence(Cause::MirrorCut))),
            });
            match head.await {
                Ok(()) if answer.status < 200 && answer.status != 101 => {}
                outcome => break outcome,
            }
        };
        if outcome.is_ok() && !reused {
            dial::accepted(call.backend());
        }
        match outcome {
            // It asked for no other protocol.
            Ok(()) if answer.status == 101 => {
                call.abandon(Outcome::Failed, now());
                return Err(Cause::BadUpgrade);
            }
            Ok(()) => {
                if identity::is_offered(answer) {
                    call.keep = Keep::Closed;
                }
                call.note_answer(answer, config.resilience.breaker.as_ref());
                return Ok(call);
            }
            Err(silence) => {
                let end = ConnectionEnd {
                    reused,
                    sent: silence.sent,
                    answered: silence.answered,
                    idempotent: copy.is_idempotent,
                };
                // It had only seemed to be open.
                let is_over = may_reuse && call.is_connection_over();
                if is_closed(&silence) && is_over && is_stale(&end) {
                    may_reuse = false;
                    lease = call.into_lease();
                    continue;
                }
                return Err(fail(call, &silence, reused).cause);
            }
        }
    }
}

/// Reads an answer's body and drops it, as far as that is worth the connection.
async fn swallow(mut call: Box<Call>, over: &Deadline, end: Tick) -> Cause {
    let mut left = ANSWER;
    let is_long = matches!(call.framing(), Framing::Length(length) if length > ANSWER);
    let cause = loop {
        if is_long {
            break Cause::MirrorCut;
        }
        if call.is_done() {
            call.complete(now());
            return Cause::Done;
        }
        let piece = poll_fn(|cx| {
            if let Err(cause) = call.drive(cx) {
                return Poll::Ready(Err(cause));
            }
            match call.poll_piece(cx) {
                Poll::Ready(piece) => Poll::Ready(piece),
                Poll::Pending => over.poll(cx).map(|()| Err(Cause::MirrorCut)),
            }
        });
        match piece.await {
            Ok(piece) => {
                let length = piece.map_or(0, |piece| piece.len() as u64);
                match left.checked_sub(length) {
                    Some(rest) if now() < end => left = rest,
                    _ => break Cause::MirrorCut,
                }
            }
            Err(cause) => break cause,
        }
    };
    let outcome = match cause {
        // It has answered; we have heard enough.
        Cause::MirrorCut => Outcome::Success,
        cause if cause.blame() == Blame::Backend => Outcome::Failed,
        _ => Outcome::Neutral,
    };
    call.abandon(outcome, now());
    cause
}
