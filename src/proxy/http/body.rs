//! A body, wherever it comes from: one enum of sources that are polled for the next piece.
//!
//! `exchange` and `forward` hand bodies on without looking inside. A piece is a buffer that goes back to its
//! list when its reader is done with it, so a body never piles up; of a long one it may also be a pipe.

use std::collections::VecDeque;
use std::rc::Rc;
use std::task::{Context, Poll};

use crate::message::{Cause, Framing};
use crate::net::{FreeList, Piece};

use super::client::Client;
use super::replay::Replayed;
use super::reply::Reply;

/// A body.
pub enum Body {
    /// None.
    Empty,
    /// One in memory: our own answers, and everything on the edge that speaks no wire.
    Memory(Box<Memory>),
    /// What a client sends.
    Client(Rc<Client>),
    /// The same, kept while it is read.
    Replayed(Replayed),
    /// What a backend answers; carries the rest of the request with it.
    Reply(Reply),
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

impl Body {
    /// The same body for another attempt, as long as nothing of it was used.
    #[must_use]
    #[inline]
    pub fn again(&self) -> Option<Body> {
        match self {
            Body::Empty => Some(Body::Empty),
            Body::Memory(memory) => Some(Body::Memory(memory.clone())),
            Body::Client(client) => (!client.is_body_begun()).then(|| Body::Client(Rc::clone(client))),
            Body::Replayed(_) | Body::Reply(_) => None,
        }
    }

    /// Bytes of content that passed so far.
    #[must_use]
    pub fn content(&self) -> u64 {
        match self {
            Body::Empty | Body::Memory(_) => 0,
            Body::Client(client) => client.content(),
            Body::Replayed(replayed) => replayed.client().content(),
            Body::Reply(reply) => reply.content(),
        }
    }

    /// How its length is known.
    #[inline(always)]
    #[must_use]
    pub fn framing(&self) -> Framing {
        match self {
            Body::Empty => Framing::None,
            Body::Memory(memory) => memory.framing,
            Body::Client(client) => client.framing(),
            Body::Replayed(replayed) => replayed.client().framing(),
            Body::Reply(reply) => reply.framing(),
        }
    }

    /// True when nothing is left.
    #[must_use]
    pub fn is_done(&self) -> bool {
        match self {
            Body::Empty => true,
            Body::Memory(memory) => memory.pieces.is_empty(),
            Body::Client(client) => client.is_body_done(),
            Body::Replayed(replayed) => replayed.is_done(),
            Body::Reply(reply) => reply.is_done(),
        }
    }

    /// Asks for the chunks as they came instead of their content. True when that is what will come.
    pub fn set_raw(&mut self) -> bool {
        match self {
            Body::Empty | Body::Memory(_) => false,
            Body::Client(client) => client.set_raw(),
            Body::Replayed(replayed) => replayed.set_raw(),
            Body::Reply(reply) => reply.set_raw(),
        }
    }

    /// Whether pieces may come in pipes: their reader does not look at them and writes them to a plain socket.
    pub fn set_pipes(&mut self, allowed: bool) {
        match self {
            // What is kept must be seen.
            Body::Empty | Body::Memory(_) | Body::Replayed(_) => {}
            Body::Client(client) => client.set_pipes(allowed),
            Body::Reply(reply) => reply.set_pipes(allowed),
        }
    }

    /// Trailer lines, each with its CRLF; empty until the body is done.
    #[must_use]
    pub fn trailers(&self) -> Vec<u8> {
        match self {
            Body::Empty => Vec::new(),
            Body::Memory(memory) => memory.trailers.clone(),
            Body::Client(client) => client.trailers(),
            Body::Replayed(replayed) => replayed.client().trailers(),
            Body::Reply(reply) => reply.trailers().to_vec(),
        }
    }

    /// Appends all of it to `out`, if it is a backend's, at most `most` bytes, and here already. False: nothing was done.
    pub fn append_rest(&mut self, out: &mut Vec<u8>, most: usize) -> bool {
        match self {
            Body::Empty | Body::Memory(_) | Body::Client(_) | Body::Replayed(_) => false,
            Body::Reply(reply) => reply.append_rest(out, most),
        }
    }

    /// Goes on with whatever must go on beside the body: the rest of the request of an answer.
    pub fn drive(&mut self, cx: &mut Context<'_>) {
        match self {
            Body::Reply(reply) => reply.drive(cx),
            Body::Empty | Body::Memory(_) | Body::Client(_) | Body::Replayed(_) => {}
        }
    }

    /// The next piece, never an empty one; `None` at the end.
    ///
    /// # Errors
    /// Why the body can't be read on.
    pub fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Piece>, Cause>> {
        match self {
            Body::Empty => Poll::Ready(Ok(None)),
            Body::Memory(memory) => {
                let Some(mut bytes) = memory.pieces.pop_front() else { return Poll::Ready(Ok(None)) };
                let piece = memory.buffers.filled(&bytes);
                if piece.len() < bytes.len() {
                    memory.pieces.push_front(bytes.split_off(piece.len()));
                }
                Poll::Ready(Ok(Some(Piece::Buffer(piece))))
            }
            Body::Client(client) => client.poll_piece(cx),
            Body::Replayed(replayed) => replayed.poll_piece(cx),
            Body::Reply(reply) => reply.poll_piece(cx),
        }
    }
}
