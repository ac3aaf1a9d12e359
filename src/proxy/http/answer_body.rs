//! The body of an answer, on its way to the client.

use std::task::{Context, Poll};

use crate::message::{Cause, Framing};
use crate::net::Piece;

use super::body::{BodySource, FixedBody, Memory};
use super::cached::reading::StoredReading;
use super::compressed::CompressedBody;
use super::reply::Reply;

/// The body of an answer.
pub enum AnswerBody {
    /// None.
    Empty,
    /// One of our own.
    Memory(Box<Memory>),
    /// That of a route which answers itself.
    Fixed(Box<FixedBody>),
    /// One that is stored.
    Stored(StoredReading),
    /// One that is compressed on its way.
    Compressed(Box<CompressedBody<AnswerBody>>),
    /// What a backend answers; carries the rest of the request with it.
    Reply(Reply),
}

impl AnswerBody {
    /// Bytes of content that passed so far.
    #[must_use]
    pub fn content(&self) -> u64 {
        match self {
            AnswerBody::Empty | AnswerBody::Memory(_) | AnswerBody::Fixed(_) => 0,
            AnswerBody::Stored(stored) => stored.content(),
            AnswerBody::Compressed(compressed) => compressed.content(),
            AnswerBody::Reply(reply) => reply.content(),
        }
    }

    /// How its length is known.
    #[must_use]
    pub fn framing(&self) -> Framing {
        match self {
            AnswerBody::Empty => Framing::None,
            AnswerBody::Memory(memory) => memory.framing,
            AnswerBody::Fixed(fixed) => fixed.framing(),
            AnswerBody::Stored(stored) => stored.framing(),
            AnswerBody::Compressed(_) => Framing::Chunked,
            AnswerBody::Reply(reply) => reply.framing(),
        }
    }

    /// Whether pieces may come in pipes: their reader does not look at them and writes them to a plain socket.
    pub fn set_pipes(&mut self, allowed: bool) {
        match self {
            AnswerBody::Empty
            | AnswerBody::Memory(_)
            | AnswerBody::Fixed(_)
            | AnswerBody::Stored(_)
            | AnswerBody::Compressed(_) => {}
            AnswerBody::Reply(reply) => reply.set_pipes(allowed),
        }
    }

    /// Appends all of it to `out`, if it is a backend's or stored, at most `most` bytes, and here already. False: nothing was done.
    pub fn append_rest(&mut self, out: &mut Vec<u8>, most: usize) -> bool {
        match self {
            AnswerBody::Empty | AnswerBody::Memory(_) | AnswerBody::Fixed(_) | AnswerBody::Compressed(_) => {
                false
            }
            AnswerBody::Stored(stored) => stored.append_rest(out, most),
            AnswerBody::Reply(reply) => reply.append_rest(out, most),
        }
    }
}

impl BodySource for AnswerBody {
    fn is_done(&self) -> bool {
        match self {
            AnswerBody::Empty => true,
            AnswerBody::Memory(memory) => memory.is_done(),
            AnswerBody::Fixed(fixed) => fixed.is_done(),
            AnswerBody::Stored(stored) => stored.is_done(),
            AnswerBody::Compressed(compressed) => compressed.is_done(),
            AnswerBody::Reply(reply) => reply.is_done(),
        }
    }

    fn set_raw(&mut self) -> bool {
        match self {
            AnswerBody::Empty
            | AnswerBody::Memory(_)
            | AnswerBody::Fixed(_)
            | AnswerBody::Stored(_)
            | AnswerBody::Compressed(_) => false,
            AnswerBody::Reply(reply) => reply.set_raw(),
        }
    }

    fn trailers(&self) -> Vec<u8> {
        match self {
            AnswerBody::Empty | AnswerBody::Fixed(_) | AnswerBody::Stored(_) => Vec::new(),
            AnswerBody::Memory(memory) => memory.trailers(),
            AnswerBody::Compressed(compressed) => compressed.trailers(),
            AnswerBody::Reply(reply) => reply.trailers().to_vec(),
        }
    }

    fn drive(&mut self, cx: &mut Context<'_>) {
        match self {
            AnswerBody::Empty | AnswerBody::Memory(_) | AnswerBody::Fixed(_) | AnswerBody::Stored(_) => {}
            AnswerBody::Compressed(compressed) => compressed.drive(cx),
            AnswerBody::Reply(reply) => reply.drive(cx),
        }
    }

    fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Piece>, Cause>> {
        match self {
            AnswerBody::Empty => Poll::Ready(Ok(None)),
            AnswerBody::Memory(memory) => memory.poll_piece(cx),
            AnswerBody::Fixed(fixed) => fixed.poll_piece(cx),
            AnswerBody::Stored(stored) => stored.poll_piece(cx),
            AnswerBody::Compressed(compressed) => compressed.poll_piece(cx),
            AnswerBody::Reply(reply) => reply.poll_piece(cx),
        }
    }
}
