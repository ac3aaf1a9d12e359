//! The body of a backend's answer, with all that ends when it ends: the lease, the connection, the rest of the
//! request.

use std::rc::Rc;
use std::task::{Context, Poll};

use crate::message::{Blame, Cause, Framing};
use crate::net::{Buffer, now};
use crate::proxy::WorkerCtx;
use crate::target::{Lease, Outcome};

use super::call::Call;

/// The body of a backend's answer.
pub struct Reply {
    ctx: Rc<WorkerCtx>,
    call: Option<Box<Call>>,
    lease: Option<Lease>,
    generation: u32,
    framing: Framing,
    content: u64,
    trailers: Vec<u8>,
    failed: Option<Cause>,
}

impl Reply {
    /// The body behind the head that `call` has just read. `generation` is the backend's from before the
    /// connection was made.
    #[must_use]
    pub fn new(ctx: Rc<WorkerCtx>, call: Box<Call>, lease: Lease, generation: u32) -> Reply {
        let framing = call.framing();
        Reply {
            ctx,
            call: Some(call),
            lease: Some(lease),
            generation,
            framing,
            content: 0,
            trailers: Vec::new(),
            failed: None,
        }
    }

    /// How its length is known.
    #[must_use]
    pub fn framing(&self) -> Framing {
        self.framing
    }

    /// True when nothing is left.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.call.as_ref().is_none_or(|call| call.body().is_done())
    }

    /// Bytes of content so far.
    #[must_use]
    pub fn content(&self) -> u64 {
        self.call.as_ref().map_or(self.content, |call| call.body().content())
    }

    /// Trailer lines; empty until the body is done.
    #[must_use]
    pub fn trailers(&self) -> &[u8] {
        self.call.as_ref().map_or(&self.trailers, |call| call.body().trailers())
    }

    /// See [`super::h1::decode::Decoder::set_raw`].
    pub fn set_raw(&mut self) -> bool {
        self.call.as_mut().is_some_and(|call| call.set_raw())
    }

    /// Goes on sending the request.
    pub fn drive(&mut self, cx: &mut Context<'_>) {
        if self.failed.is_none()
            && let Some(call) = &mut self.call
            && let Err(cause) = call.drive(cx)
        {
            self.failed = Some(cause);
        }
    }

    /// The next piece; `None` at the end.
    ///
    /// # Errors
    /// Why it can't be read on: also when the *request* broke meanwhile.
    pub fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Buffer>, Cause>> {
        self.drive(cx);
        if let Some(cause) = self.failed {
            self.end(cause);
            return Poll::Ready(Err(cause));
        }
        let Some(call) = &mut self.call else { return Poll::Ready(Ok(None)) };
        let polled = call.poll_piece(cx);
        match &polled {
            Poll::Ready(Ok(_)) if call.body().is_done() => self.complete(),
            Poll::Ready(Err(cause)) => {
                let cause = *cause;
                self.end(cause);
            }
            Poll::Ready(Ok(_)) | Poll::Pending => {}
        }
        polled
    }

    /// The whole answer was read: the connection may serve the next request even before the client has taken
    /// this one.
    fn complete(&mut self) {
        let (Some(call), Some(lease)) = (self.call.take(), self.lease.take()) else { return };
        self.content = call.body().content();
        self.trailers = call.body().trailers().to_vec();
        let now = now();
        if let Some((stream, keep_for)) = call.into_idle() {
            self.ctx.pool.put(&self.ctx.cells, lease.backend(), stream, keep_for, self.generation, now);
        }
        lease.finish(Outcome::Success, now);
    }

    fn end(&mut self, cause: Cause) {
        self.content = self.content();
        self.call = None;
        if let Some(lease) = self.lease.take() {
            let outcome = if cause.blame() == Blame::Backend { Outcome::Failed } else { Outcome::Neutral };
            lease.finish(outcome, now());
        }
    }
}
