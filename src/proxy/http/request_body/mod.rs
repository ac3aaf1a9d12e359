//! The body of a request, on its way to a backend.

use std::task::{Context, Poll};

use crate::message::{Cause, Framing};
use crate::net::Piece;

use crate::proxy::http::body::{BodySource, Memory};

pub mod client_body;
pub mod replay;

use client_body::ClientBody;
use replay::Replayed;

/// The body of a request.
pub enum RequestBody {
    /// None.
    Empty,
    /// One in memory, on the edge that speaks no wire.
    Memory(Box<Memory>),
    /// What a client sends.
    Client(ClientBody),
    /// The same, kept while it is read.
    Replayed(Replayed),
}

impl RequestBody {
    /// The same body for another attempt, as long as nothing of it was used.
    #[must_use]
    #[inline(always)]
    pub fn again(&self) -> Option<RequestBody> {
        if matches!(self, RequestBody::Empty) { Some(RequestBody::Empty) } else { self.same_again() }
    }

    #[inline(never)]
    fn same_again(&self) -> Option<RequestBody> {
        match self {
            RequestBody::Empty => Some(RequestBody::Empty),
            RequestBody::Memory(memory) => Some(RequestBody::Memory(memory.clone())),
            RequestBody::Client(client) => {
                (!client.is_begun()).then(|| RequestBody::Client(ClientBody::clone(client)))
            }
            RequestBody::Replayed(_) => None,
        }
    }

    /// How many bytes it may have; `None`: any. False: it has more.
    #[must_use]
    pub fn limit(&self, limit: Option<u64>) -> bool {
        if let RequestBody::Client(client) = self {
            client.limit(limit);
        }
        match self.framing() {
            Framing::Length(length) => limit.is_none_or(|limit| length <= limit),
            Framing::None | Framing::Chunked | Framing::UntilClose => true,
        }
    }

    /// Bytes of content that passed so far.
    #[must_use]
    pub fn content(&self) -> u64 {
        match self {
            RequestBody::Empty | RequestBody::Memory(_) => 0,
            RequestBody::Client(client) => client.content(),
            RequestBody::Replayed(replayed) => replayed.client().content(),
        }
    }

    /// How its length is known.
    #[inline(always)]
    #[must_use]
    pub fn framing(&self) -> Framing {
        match self {
            RequestBody::Empty => Framing::None,
            RequestBody::Memory(memory) => memory.framing,
            RequestBody::Client(client) => client.framing(),
            RequestBody::Replayed(replayed) => replayed.client().framing(),
        }
    }

    /// Whether pieces may come in pipes: their reader does not look at them and writes them to a plain socket.
    pub fn set_pipes(&mut self, allowed: bool) {
        match self {
            // What is kept must be seen.
            RequestBody::Empty | RequestBody::Memory(_) | RequestBody::Replayed(_) => {}
            RequestBody::Client(client) => client.set_pipes(allowed),
        }
    }
}

impl BodySource for RequestBody {
    fn is_done(&self) -> bool {
        match self {
            RequestBody::Empty => true,
            RequestBody::Memory(memory) => memory.is_done(),
            RequestBody::Client(client) => client.is_done(),
            RequestBody::Replayed(replayed) => replayed.is_done(),
        }
    }

    fn set_raw(&mut self) -> bool {
        match self {
            RequestBody::Empty | RequestBody::Memory(_) => false,
            RequestBody::Client(client) => client.set_raw(),
            RequestBody::Replayed(replayed) => replayed.set_raw(),
        }
    }

    fn trailers(&self) -> Vec<u8> {
        match self {
            RequestBody::Empty => Vec::new(),
            RequestBody::Memory(memory) => memory.trailers(),
            RequestBody::Client(client) => client.trailers(),
            RequestBody::Replayed(replayed) => replayed.client().trailers(),
        }
    }

    fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Piece>, Cause>> {
        match self {
            RequestBody::Empty => Poll::Ready(Ok(None)),
            RequestBody::Memory(memory) => memory.poll_piece(cx),
            RequestBody::Client(client) => client.poll_piece(cx),
            RequestBody::Replayed(replayed) => replayed.poll_piece(cx),
        }
    }
}
