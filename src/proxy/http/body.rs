//! Where the bytes of a body come from: what a source is asked, and the source that is in memory.
//!
//! A piece is a buffer that goes back to its list when its reader is done with it, so a body never piles up; of a long one it
//! may also be a pipe. What a client sends is a [`RequestBody`](super::request_body::RequestBody), what goes back to it an
//! [`AnswerBody`](super::answer_body::AnswerBody).

use std::collections::VecDeque;
use std::task::{Context, Poll};

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
