//! Where the bytes of a body come from: what a source is asked, and the source that is in memory.
//!
//! A piece is a buffer that goes back to its list when its reader is done with it, so a body never piles up; of a long one it
//! may also be a pipe. What a client sends is a [`RequestBody`](super::request_body::RequestBody), what goes back to it an
//! [`AnswerBody`](super::answer_body::AnswerBody).

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Context, Poll};

use crate::config::model::route::Respond;
use crate::message::{Cause, Framing};
use crate::net::{FreeList, Piece};

/// What is polled for the next piece of a body.
pub trait BodySource {
    /// True when nothing is left.
    fn is_done(&self) -> bool;

    /// Asks for the chunks as they came instead of their content. True when that is what will come.
    fn set_raw(&mut self) -> bool;

    /// Trailer lines, each with its CRLF; empty until the body is done.
    fn trailers(&self) -> Vec<u8>;

    /// Goes on with whatever must go on beside the body: the rest of the request of an answer.
    #[inline]
    fn drive(&mut self, cx: &mut Context<'_>) {
        let _ = cx;
    }

    /// The next piece, never an empty one; `None` at the end.
    ///
    /// # Errors
    /// Why the body can't be read on.
    fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Piece>, Cause>>;
}

/// A body in memory, with trailers.
#[derive(Clone)]
pub struct Memory {
    /// What is left.
    pub pieces: VecDeque<Vec<u8>>,
    /// Trailer lines, each with its CRLF.
    pub trailers: Vec<u8>,
    /// How it presents its length.
    pub framing: Framing,
    /// Where its buffers come from.
    pub buffers: FreeList,
}

impl Memory {
    /// One piece of known length.
    #[must_use]
    pub fn whole(bytes: Vec<u8>, buffers: FreeList) -> Memory {
        let framing = Framing::Length(bytes.len() as u64);
        let pieces = if bytes.is_empty() { VecDeque::new() } else { VecDeque::from([bytes]) };
        Memory { pieces, trailers: Vec::new(), framing, buffers }
    }
}

/// The body of a route's own answer, which all of its answers share.
pub struct FixedBody {
    respond: Arc<Respond>,
    sent: usize,
    buffers: FreeList,
}

impl FixedBody {
    /// All of it. Its pieces are copied into `buffers`, one after the other.
    #[must_use]
    pub fn new(respond: &Arc<Respond>, buffers: &FreeList) -> FixedBody {
        FixedBody { respond: Arc::clone(respond), sent: 0, buffers: buffers.clone() }
    }

    /// How its length is known.
    #[must_use]
    pub fn framing(&self) -> Framing {
        Framing::Length(self.respond.body.len() as u64)
    }
}

impl BodySource for FixedBody {
    fn is_done(&self) -> bool {
        self.sent >= self.respond.body.len()
    }

    fn set_raw(&mut self) -> bool {
        false
    }

    fn trailers(&self) -> Vec<u8> {
        Vec::new()
    }

    fn poll_piece(&mut self, _: &mut Context<'_>) -> Poll<Result<Option<Piece>, Cause>> {
        let rest = self.respond.body.get(self.sent..).filter(|rest| !rest.is_empty());
        let piece = rest.map(|rest| self.buffers.filled(rest));
        self.sent += piece.as_ref().map_or(0, |piece| piece.len());
        Poll::Ready(Ok(piece.map(Piece::Buffer)))
    }
}

impl BodySource for Memory {
    fn is_done(&self) -> bool {
        self.pieces.is_empty()
    }

    fn set_raw(&mut self) -> bool {
        false
    }

    fn trailers(&self) -> Vec<u8> {
        self.trailers.clone()
    }

    fn poll_piece(&mut self, _: &mut Context<'_>) -> Poll<Result<Option<Piece>, Cause>> {
        let Some(mut bytes) = self.pieces.pop_front() else { return Poll::Ready(Ok(None)) };
        let piece = self.buffers.filled(&bytes);
        if piece.len() < bytes.len() {
            self.pieces.push_front(bytes.split_off(piece.len()));
        }
        Poll::Ready(Ok(Some(Piece::Buffer(piece))))
    }
}
