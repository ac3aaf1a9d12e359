//! What a client sends as the body of one request, whatever protocol it came by.

use std::rc::Rc;
use std::task::{Context, Poll};

use crate::message::{Cause, Framing};
use crate::net::{FreeList, Piece};

use crate::proxy::http::client::Client;
use crate::proxy::http::h2::upload::StreamUpload;
use crate::proxy::http::mirror::tee::Tee;

/// The source of a request's body; clones are the same source.
#[derive(Clone)]
pub enum ClientBody {
    /// A connection of HTTP/1.
    Socket(Rc<Client>),
    /// A stream of HTTP/2.
    Stream(Rc<StreamUpload>),
}

/// The same question to either source.
macro_rules! ask {
    ($body:expr, $source:ident => $answer:expr) => {
        match $body {
            ClientBody::Socket($source) => $answer,
            ClientBody::Stream($source) => $answer,
        }
    };
}

impl ClientBody {
    /// How many bytes it may have; `None`: any.
    pub fn limit(&self, limit: Option<u64>) {
        ask!(self, source => source.limit_body(limit));
    }

    /// No rate is asked for, and on a stream of many it is not ended for its silence either: whoever reads it sees to that.
    pub fn set_unhurried(&self) {
        ask!(self, source => source.set_unhurried());
    }

    /// Has it copied while it is read; nothing of it was.
    pub fn tee(&self, tee: Tee) {
        ask!(self, source => source.tee_body(tee));
    }

    /// How its length is known.
    #[must_use]
    pub fn framing(&self) -> Framing {
        ask!(self, source => source.framing())
    }

    /// True when it was taken whole.
    #[must_use]
    pub fn is_done(&self) -> bool {
        ask!(self, source => source.is_body_done())
    }

    /// True once a piece of it was handed out. It may be framing alone, without content.
    #[must_use]
    pub fn is_begun(&self) -> bool {
        ask!(self, source => source.is_body_begun())
    }

    /// Asks for the chunks as they came. True when that is what comes: HTTP/2 has none.
    #[must_use]
    pub fn set_raw(&self) -> bool {
        match self {
            ClientBody::Socket(client) => client.set_raw(),
            ClientBody::Stream(_) => false,
        }
    }

    /// Whether pieces may come in pipes, from a source that has a socket to itself.
    pub fn set_pipes(&self, allowed: bool) {
        match self {
            ClientBody::Socket(client) => client.set_pipes(allowed),
            ClientBody::Stream(_) => {}
        }
    }

    /// Bytes of content so far.
    #[must_use]
    pub fn content(&self) -> u64 {
        ask!(self, source => source.content())
    }

    /// Trailer lines, each with its CRLF; empty until the body is done.
    #[must_use]
    pub fn trailers(&self) -> Vec<u8> {
        ask!(self, source => source.trailers())
    }

    /// Where its buffers come from.
    #[must_use]
    pub fn buffers(&self) -> &FreeList {
        match self {
            ClientBody::Socket(client) => &client.ctx.buffers,
            ClientBody::Stream(upload) => upload.buffers(),
        }
    }

    /// The next piece.
    ///
    /// # Errors
    /// [`Cause::BodyTimeout`], [`Cause::BodyTooLarge`], [`Cause::ClientGone`], and what is wrong with it in its protocol.
    pub fn poll_piece(&self, cx: &mut Context<'_>) -> Poll<Result<Option<Piece>, Cause>> {
        ask!(self, source => source.poll_piece(cx))
    }
}
