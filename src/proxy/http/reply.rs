//! The body of a backend's answer, with all that ends when it ends: the lease, the connection, the rest of the
//! request.

use std::task::{Context, Poll};

use crate::message::{Blame, Cause, Framing};
use crate::net::{Piece, now};
use crate::targets::Outcome;
use crate::tick::Tick;

use super::call::Call;

/// The body of a backend's answer.
pub struct Reply {
    /// `None` once it has ended.
    call: Option<Box<Call>>,
    framing: Framing,
    content: u64,
    trailers: Vec<u8>,
    failed: Option<Cause>,
}

impl Reply {
    /// The body behind the head that `call` has just read.
    #[must_use]
    pub fn new(call: Box<Call>) -> Reply {
        let framing = call.framing();
        Reply { call: Some(call), framing, content: 0, trailers: Vec::new(), failed: None }
    }

    /// How its length is known.
    #[must_use]
    pub fn framing(&self) -> Framing {
        self.framing
    }

    /// True when nothing is left.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.call.as_ref().is_none_or(|call| call.is_done())
    }

    /// Bytes of content so far.
    #[must_use]
    pub fn content(&self) -> u64 {
        self.call.as_ref().map_or(self.content, |call| call.content())
    }

    /// Trailer lines; empty until the body is done.
    #[must_use]
    pub fn trailers(&self) -> &[u8] {
        self.call.as_ref().map_or(&self.trailers, |call| call.trailers())
    }

    /// See [`Call::set_raw`].
    pub fn set_raw(&mut self) -> bool {
        self.call.as_mut().is_some_and(|call| call.set_raw())
    }

    /// See [`Call::set_pipes`].
    pub fn set_pipes(&mut self, allowed: bool) {
        if let Some(call) = &mut self.call {
            call.set_pipes(allowed);
        }
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
    pub fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Piece>, Cause>> {
        self.drive(cx);
        if let Some(cause) = self.failed {
            self.end(cause);
            return Poll::Ready(Err(cause));
        }
        let Some(call) = &mut self.call else { return Poll::Ready(Ok(None)) };
        let polled = call.poll_piece(cx);
        match &polled {
            Poll::Ready(Ok(_)) if call.is_done() => self.complete(now()),
            Poll::Ready(Err(cause)) => {
                let cause = *cause;
                self.end(cause);
            }
            Poll::Ready(Ok(_)) | Poll::Pending => {}
        }
        polled
    }

    /// Appends all of it to `out`, if that is at most `most` bytes and was read together with the head. False:
    /// nothing was done.
    pub fn append_rest(&mut self, out: &mut Vec<u8>, most: usize) -> bool {
        let Some(call) = &mut self.call else { return false };
        let came = call.read();
        let whole = self.failed.is_none() && call.append_rest(out, most);
        if whole {
            self.complete(came);
        }
        whole
    }

    /// The whole answer was read: the connection may serve the next request even before the client has taken
    /// this one.
    fn complete(&mut self, now: Tick) {
        let Some(call) = self.call.take() else { return };
        self.content = call.content();
        self.trailers = call.trailers().to_vec();
        call.complete(now);
    }

    fn end(&mut self, cause: Cause) {
        self.content = self.content();
        if let Some(call) = self.call.take() {
            let theirs = cause.blame() == Blame::Backend;
            call.abandon(if theirs { Outcome::Failed } else { Outcome::Neutral }, now());
        }
    }
}
