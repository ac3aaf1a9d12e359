//! A short request body that can be sent again: what was read of it is kept while it is sent.
//!
//! Every attempt reads it from the beginning: first what is kept, then what the client still sends. One that turns out to
//! be long is let go of and goes through like any other; then the request can't be repeated.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use crate::message::{Cause, Framing};
use crate::net::Piece;

use super::client_body::ClientBody;

/// Bytes of a body that are kept at most, with their chunk lines.
pub const MOST: usize = 64 * 1024;

/// A request's body, and what was read of it so far.
pub struct Replay {
    client: ClientBody,
    kept: RefCell<Vec<u8>>,
    /// It is longer than what may be kept.
    lost: Cell<bool>,
    /// Chunks are kept as they came; the first reader has decided.
    raw: Cell<Option<bool>>,
}

impl Replay {
    /// For a body of which nothing was read, if it may turn out short enough.
    #[must_use]
    pub fn new(client: &ClientBody) -> Option<Rc<Replay>> {
        let may_be_short = match client.framing() {
            Framing::Length(length) => length <= MOST as u64,
            Framing::Chunked => true,
            Framing::None | Framing::UntilClose => false,
        };
        (may_be_short && !client.is_begun()).then(|| {
            let client = ClientBody::clone(client);
            Rc::new(Replay { client, kept: RefCell::default(), lost: Cell::new(false), raw: Cell::new(None) })
        })
    }

    /// The body from its beginning; `None`: that is gone.
    #[must_use]
    pub fn again(self: &Rc<Replay>) -> Option<Replayed> {
        (!self.lost.get()).then(|| Replayed { replay: Rc::clone(self), out: 0 })
    }

    /// No attempt will read it from its beginning any more.
    pub fn settle(&self) {
        self.lost.set(true);
    }

    /// True when all of it is kept: readers do not wait for the client, nor for each other.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        !self.lost.get() && self.client.is_done()
    }

    fn keep(&self, bytes: &[u8]) {
        let mut kept = self.kept.borrow_mut();
        if kept.len() + bytes.len() > MOST {
            self.lost.set(true);
            *kept = Vec::new();
        } else if !self.lost.get() {
            kept.extend_from_slice(bytes);
        }
    }
}

/// One attempt's reading of it.
pub struct Replayed {
    replay: Rc<Replay>,
    /// How many of the kept bytes it was given.
    out: usize,
}

impl Replayed {
    /// Its source.
    #[must_use]
    pub fn client(&self) -> &ClientBody {
        &self.replay.client
    }

    /// True when nothing is left.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.out >= self.replay.kept.borrow().len() && self.replay.client.is_done()
    }

    /// Asks for the chunks as they came. True when that is what comes: all readers get the same.
    #[must_use]
    pub fn set_raw(&self) -> bool {
        let raw = self.replay.raw.get().unwrap_or_else(|| self.replay.client.set_raw());
        self.replay.raw.set(Some(raw));
        raw
    }

    /// The next piece.
    ///
    /// # Errors
    /// See [`ClientBody::poll_piece`].
    pub fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Piece>, Cause>> {
        let Replay { client, kept, .. } = &*self.replay;
        if let Some(rest) = kept.borrow().get(self.out..).filter(|rest| !rest.is_empty()) {
            let piece = client.buffers().filled(rest);
            self.out += piece.len();
            return Poll::Ready(Ok(Some(Piece::Buffer(piece))));
        }
        if self.replay.lost.get() && self.out > 0 && kept.borrow().capacity() > 0 {
            // It has read what is kept, and nobody else will.
            *kept.borrow_mut() = Vec::new();
        }
        let piece = ready!(client.poll_piece(cx))?;
        if let Some(piece) = &piece {
            self.replay.keep(piece.data());
            self.out += piece.len();
        }
        Poll::Ready(Ok(piece))
    }
}
