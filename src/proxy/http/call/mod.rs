//! One request on one connection to a backend: sending it and reading the answer's head, both at once.
//!
//! A backend may answer before the request is complete, so reading never waits for writing. The deadline runs
//! only while it is the backend we wait for: not while the client is slow to send or to take.
//!
//! What all protocols have is here. What carries the request (`http1`) is asked nothing that another protocol could not answer; only
//! how it is made, and what becomes of its connection, is its own.

mod carrier;
mod http1;
mod http2;
mod http2_head;
mod retry_after;
mod sending;
mod terms;
pub mod tunnel_far;

use std::io;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::{Duration, SystemTime};

use crate::config::model::resilience::BreakerConfig;
use crate::message::{Cause, Framing, Head};
use crate::net::wall::wall_start;
use crate::net::{Deadline, Piece, Stream, now};
use crate::proxy::WorkerCtx;
use crate::proxy::head_buffers::HeadBuffer;
use crate::proxy::pool::{Keep, Used};
use crate::targets::{Backend, Heard, Lease, Outcome};
use crate::tick::Tick;

use super::h1::transmit::SMALL;
use super::request_body::RequestBody;
use carrier::CallCarrier;
pub use carrier::CallWay;
use http1::{Http1Call, Sending};
use http2::Http2Call;
use retry_after::retry_after;
use sending::{SendEnd, SendState};
pub use terms::CallTerms;
use tunnel_far::TunnelFar;

/// 1xx heads that are passed on for one request; a backend that sends more is broken.
const INTERIM: u8 = 32;

/// How long a backend may take, in the two phases of an answer.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// Until the answer's head.
    pub first_byte: Duration,
    /// Between bytes.
    pub idle: Duration,
}

/// One request on one connection, with the right to use the backend.
pub struct Call {
    ctx: Rc<WorkerCtx>,
    lease: Lease,
    carrier: CallCarrier,
    /// 1xx heads so far.
    interims: u8,
    framing: Framing,
    deadline: Deadline,
    patience: Patience,
    /// What else holds where it is a call of gRPC. Most are none, so they don't carry it about.
    terms: Option<Box<CallTerms>>,
    /// For whom the connection is kept afterwards.
    pub keep: Keep,
    /// Bytes of the request that were taken.
    written: u64,
    /// A byte of an answer came.
    answered: bool,
    /// Its final head came.
    in_body: bool,
    /// The first byte of the request was taken by the socket.
    pub sent: Tick,
    /// The first byte of the answer came.
    pub first_byte: Tick,
    /// Bytes of the head came, and perhaps of the body.
    read: Tick,
}

/// Why there is no answer.
pub struct Silence {
    /// The cause.
    pub cause: Cause,
    /// How long before the socket had taken the first byte of the request; `None`: it has taken none.
    pub sent: Option<Duration>,
    /// A byte of an answer came.
    pub answered: bool,
    /// What the connection broke with, if it did.
    pub error: Option<io::Error>,
}

impl Call {
    /// A request on its way. `generation` is the backend's from before a connection of its own was made.
    #[must_use]
    pub fn new(
        ctx: &Rc<WorkerCtx>,
        lease: Lease,
        generation: u32,
        way: CallWay,
        head: HeadBuffer,
        body: RequestBody,
        patience: Patience,
    ) -> Box<Call> {
        match way {
            CallWay::Connection(stream) => {
                // Made in its box: it is moved several times on its way to the end of the answer.
                let place = Box::new_uninit();
                let sending = Sending::new(head, body, &stream, ctx.raw_relay);
                let carrier = CallCarrier::Http1(Http1Call::new(stream, generation, sending));
                Box::write(place, Call::carried_by(carrier, ctx, lease, patience))
            }
            CallWay::Place(place) => Call::on_stream(Http2Call::new(place, head, body), ctx, lease, patience),
        }
    }

    #[inline(never)]
    fn on_stream(call: Box<Http2Call>, ctx: &Rc<WorkerCtx>, lease: Lease, patience: Patience) -> Box<Call> {
        // As above: all of what the other carrier would need is not copied.
        let place = Box::new_uninit();
        Box::write(place, Call::carried_by(CallCarrier::Http2(call), ctx, lease, patience))
    }

    #[inline(always)]
    fn carried_by(carrier: CallCarrier, ctx: &Rc<WorkerCtx>, lease: Lease, patience: Patience) -> Call {
        let (ctx, deadline) = (Rc::clone(ctx), ctx.ticker.deadline());
        Call {
            ctx,
            lease,
            carrier,
            interims: 0,
            framing: Framing::None,
            deadline,
            patience,
            terms: None,
            keep: Keep::Shared,
            written: 0,
            answered: false,
            in_body: false,
            sent: Tick::ZERO,
            first_byte: Tick::ZERO,
            read: Tick::ZERO,
        }
    }

    /// Its head asks for another protocol. A connection of HTTP/1 needs not know that.
    #[cold]
    pub fn expect_tunnel(&mut self) {
        self.carrier.expect_tunnel();
    }

    /// Sends as much of the request as goes.
    ///
    /// # Errors
    /// The cause for which the *client's* side of it broke.
    #[inline]
    pub fn drive(&mut self, cx: &mut Context<'_>) -> Result<(), Cause> {
        if self.carrier.is_sending() { self.send(cx) } else { Ok(()) }
    }

    fn send(&mut self, cx: &mut Context<'_>) -> Result<(), Cause> {
        let Some((written, polled)) = self.carrier.send(cx) else { return Ok(()) };
        if written != self.written {
            if self.written == 0 {
                self.sent = match &self.carrier {
                    CallCarrier::Http1(_) => now(),
                    CallCarrier::Http2(call) => call.opened(),
                };
            }
            self.written = written;
            self.deadline.clear();
        }
        match polled {
            Poll::Pending | Poll::Ready(SendEnd::Refused) => Ok(()),
            Poll::Ready(SendEnd::Whole) => {
                // The patience for the answer begins with the end of the request.
                self.deadline.clear();
                Ok(())
            }
            Poll::Ready(SendEnd::Broken(cause)) => Err(cause),
        }
    }

    /// The head of the answer, final or 1xx; after a 1xx call it again.
    ///
    /// # Errors
    /// See [`Silence`].
    pub fn poll_head(
        &mut self,
        cx: &mut Context<'_>,
        head: &mut Head,
        to_head: bool,
    ) -> Poll<Result<(), Silence>> {
        if let Err(cause) = self.drive(cx) {
            return Poll::Ready(Err(self.silence(cause)));
        }
        loop {
            match self.carrier.take_head(head) {
                Ok(false) => {}
                Ok(true) => {
                    if let CallCarrier::Http2(call) = &self.carrier {
                        let heard = call.heard();
                        self.note_heard(heard);
                    }
                    let judged = self.judge(head, to_head);
                    return Poll::Ready(judged.map_err(|cause| self.silence(cause)));
                }
                Err(cause) => return Poll::Ready(Err(self.silence(cause))),
            }
            match self.carrier.poll_more(cx, &self.ctx.buffers) {
                Poll::Ready(Ok(count)) if count > 0 => {
                    self.read = now();
                    if !self.answered {
                        self.answered = true;
                        self.first_byte = self.read;
                    }
                }
                Poll::Ready(outcome) => return Poll::Ready(Err(self.closed(outcome.err()))),
                Poll::Pending => return self.poll_patience(cx).map(|cause| Err(self.silence(cause))),
            }
        }
    }

    /// A head has come by a connection that somebody else reads: when it came, and not when its turn was here.
    #[inline(never)]
    fn note_heard(&mut self, at: Tick) {
        self.read = at;
        if !self.answered {
            self.answered = true;
            self.first_byte = self.read;
        }
    }

    /// What a well-formed head means.
    fn judge(&mut self, head: &Head, to_head: bool) -> Result<(), Cause> {
        if head.status < 200 && head.status != 101 {
            self.interims += 1;
            return if self.interims > INTERIM { Err(Cause::BadAnswer) } else { Ok(()) };
        }
        self.deadline.clear();
        self.in_body = true;
        self.framing = self.carrier.begin_body(head, to_head)?;
        Ok(())
    }

    /// The next piece of the answer's body; `None` at its end.
    ///
    /// # Errors
    /// Why it can't be read on.
    pub fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Piece>, Cause>> {
        match self.carrier.poll_piece(cx, &self.ctx.buffers) {
            Poll::Ready(outcome) => {
                self.deadline.clear();
                let outcome = if self.terms.is_some() { self.note_piece(outcome) } else { outcome };
                Poll::Ready(outcome)
            }
            Poll::Pending => self.poll_patience(cx).map(Err),
        }
    }

    /// Appends what is left of the answer's body to `out`, if that is at most `most` bytes and all here, and the request is
    /// out. False: nothing was done.
    pub fn append_rest(&mut self, out: &mut Vec<u8>, most: usize) -> bool {
        self.is_sent() && self.carrier.append_rest(out, most)
    }

    /// Ready with a cause when the backend, and nobody else, has kept us waiting for too long.
    fn poll_patience(&mut self, cx: &mut Context<'_>) -> Poll<Cause> {
        if self.terms.is_some() {
            return self.poll_terms(cx);
        }
        let sending = match self.carrier.send_state() {
            SendState::Done => false,
            SendState::Starved => {
                self.deadline.clear();
                return Poll::Pending;
            }
            SendState::Blocked => true,
        };
        let span = match (self.in_body, sending) {
            (false, false) => self.patience.first_byte,
            (true, _) | (_, true) => self.patience.idle,
        };
        self.deadline.set_if_clear(span);
        self.deadline
            .poll(cx)
            .map(|()| if self.in_body { Cause::AnswerStalled } else { Cause::FirstByteTimeout })
    }

    /// That there is no answer, for this cause.
    #[must_use]
    pub fn silence(&self, cause: Cause) -> Silence {
        // Of a TLS record whose first bytes are out nothing counts as written yet: that it was long ago is the safe side.
        let sent = (self.written > 0 || self.carrier.is_writing()) && !self.carrier.is_refused();
        let sent = sent.then(|| now().since(self.sent));
        Silence { cause, sent, answered: self.answered, error: None }
    }

    fn closed(&self, error: Option<io::Error>) -> Silence {
        Silence { error, ..self.silence(Cause::BackendClosed) }
    }

    /// True when the backend has surely done nothing for it, whatever was sent: then it may be sent again, whatever it is.
    #[must_use]
    pub fn is_refused(&self) -> bool {
        self.carrier.is_refused()
    }

    /// True when what has ended is its connection, and not the request alone.
    #[must_use]
    pub fn is_connection_over(&self) -> bool {
        self.carrier.is_connection_over()
    }

    /// The body's framing, once the head is there.
    #[must_use]
    pub fn framing(&self) -> Framing {
        self.framing
    }

    /// True when the whole body was taken, once the head is there.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.carrier.is_done()
    }

    /// Bytes of the body's content so far.
    #[must_use]
    pub fn content(&self) -> u64 {
        self.carrier.content()
    }

    /// Trailer lines with their CRLFs; empty until the body is done.
    #[must_use]
    pub fn trailers(&self) -> &[u8] {
        self.carrier.trailers()
    }

    /// True when the last byte of the request was taken.
    #[must_use]
    pub fn is_sent(&self) -> bool {
        self.carrier.is_sent()
    }

    /// Asks for the chunks of the body as they came instead of their content. True when that is what will come.
    pub fn set_raw(&mut self) -> bool {
        self.carrier.set_raw()
    }

    /// Whether pieces may come in pipes: their reader does not look at them and writes them to a plain socket.
    pub fn set_pipes(&mut self, allowed: bool) {
        self.carrier.set_pipes(allowed);
    }

    /// When its backend was chosen.
    #[must_use]
    pub fn picked(&self) -> Tick {
        self.lease.picked()
    }

    /// The backend.
    #[must_use]
    pub fn backend(&self) -> &Backend {
        self.lease.backend()
    }

    /// When bytes that were read together with the head came. Who has waited for the body asks the clock.
    #[must_use]
    pub fn read(&self) -> Tick {
        self.read
    }

    /// Tells how soon the backend answered, and how well: `answer` is the final head. `breaker`: the target's.
    #[inline]
    pub fn note_answer(&mut self, answer: &Head, breaker: Option<&BreakerConfig>) {
        let status = answer.status;
        // The statuses of a breaker are 400 and above.
        if self.terms.is_some() && self.note_call(answer) {
            return;
        }
        let heard = if status < 400 { Heard::GOOD } else { self.judge_answer(answer, breaker) };
        self.lease.note_answer(heard, self.read);
    }

    #[inline(never)]
    fn judge_answer(&self, answer: &Head, breaker: Option<&BreakerConfig>) -> Heard {
        let status = answer.status;
        let retry_after = if matches!(status, 429 | 503) {
            let wall =
                SystemTime::UNIX_EPOCH + Duration::from_nanos(wall_start().saturating_add(self.read.0));
            retry_after(answer, wall)
        } else {
            None
        };
        Heard {
            fault: status >= 500 || status == 429,
            error: status >= 500 && !matches!(status, 501 | 505),
            failure: breaker
                .is_some_and(|breaker| breaker.statuses.iter().any(|range| range.contains(&status))),
            retry_after,
        }
    }

    /// Ends it after the whole answer was read, at `now`. The connection is kept if it may serve another request.
    pub fn complete(mut self: Box<Self>, now: Tick) {
        let is_reusable = self.carrier.is_reusable();
        if self.terms.is_some() {
            self.note_call_end(now);
        }
        match self.carrier {
            // Field by field: as a whole it would be copied out of its box.
            CallCarrier::Http1(Http1Call { stream, keep_for, generation, .. }) => {
                if is_reusable {
                    let (pool, cells, backend) = (&self.ctx.pool, &self.ctx.cells, self.lease.backend());
                    let used = Used { stream, keep_for, generation };
                    match self.keep {
                        Keep::Shared => pool.put(cells, backend, used, now),
                        Keep::Private(owner) => pool.put_private(cells, owner, backend, used, now),
                        Keep::PassedOn(owner) => pool.put_passed(cells, owner, backend, used, now),
                        Keep::Closed => {}
                    }
                }
            }
            CallCarrier::Http2(call) => call.let_go(),
        }
        self.lease.finish(Outcome::Success, now);
    }

    /// Ends it early; the connection is closed.
    pub fn abandon(self: Box<Self>, outcome: Outcome, now: Tick) {
        self.lease.finish(outcome, now);
    }

    /// Throws away the answer, whose head was read. The connection serves on if that is all, or the rest is short and here.
    pub fn discard(mut self: Box<Self>, now: Tick) {
        let mut rest = self.ctx.outgoing.take();
        if self.append_rest(&mut rest, SMALL) {
            self.complete(now);
        } else {
            self.abandon(Outcome::Success, now);
        }
    }

    /// Closes the connection; the backend is to be used once more.
    pub fn into_lease(self: Box<Self>) -> Lease {
        self.lease
    }

    /// What a 101 has made of it, and the right to use the backend meanwhile; `None`: it has made none.
    #[must_use]
    pub fn into_tunnel(self: Box<Self>) -> Option<(Lease, TunnelFar)> {
        match self.carrier {
            CallCarrier::Http1(Http1Call { stream, held, .. }) => {
                Some((self.lease, TunnelFar::new(stream, held)))
            }
            CallCarrier::Http2(call) => {
                let bytes = call.into_tunnel()?;
                Some((self.lease, TunnelFar::new(Stream::Carried(Box::new(bytes)), None)))
            }
        }
    }
}
