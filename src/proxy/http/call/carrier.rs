//! What carries a request to a backend: a connection of its own, or a stream on one that others use too.

use std::io;
use std::task::{Context, Poll};

use crate::message::{Cause, Framing, Head};
use crate::net::{FreeList, Piece, Stream};
use crate::proxy::http::upstream::session::StreamPlace;

use super::http1::Http1Call;
use super::http2::Http2Call;
use super::sending::{SendEnd, SendState};

/// On what a request goes out.
pub enum CallWay {
    /// A connection of HTTP/1 that is silent and open.
    Connection(Stream),
    /// A place on one of HTTP/2.
    Place(StreamPlace),
}

impl CallWay {
    /// Nothing was asked on it before.
    #[must_use]
    pub fn is_fresh(&self) -> bool {
        match self {
            CallWay::Connection(_) => true,
            CallWay::Place(place) => place.is_first(),
        }
    }
}

/// A request on its way.
#[expect(clippy::large_enum_variant, reason = "most are of the large one, and it is in a box already")]
pub(super) enum CallCarrier {
    /// On a connection of its own.
    Http1(Http1Call),
    /// On a stream.
    Http2(Box<Http2Call>),
}

/// The same question to either.
macro_rules! ask {
    ($carrier:expr, $call:ident => $answer:expr) => {
        match $carrier {
            CallCarrier::Http1($call) => $answer,
            CallCarrier::Http2($call) => $answer,
        }
    };
}

impl CallCarrier {
    /// See [`Http1Call::is_sending`].
    #[inline]
    pub(super) fn is_sending(&self) -> bool {
        ask!(self, call => call.is_sending())
    }

    /// See [`Http1Call::is_sent`].
    #[inline]
    pub(super) fn is_sent(&self) -> bool {
        ask!(self, call => call.is_sent())
    }

    /// See [`Http1Call::is_writing`].
    pub(super) fn is_writing(&self) -> bool {
        match self {
            CallCarrier::Http1(call) => call.is_writing(),
            CallCarrier::Http2(_) => false,
        }
    }

    /// The backend has surely done nothing for it, whatever was sent.
    pub(super) fn is_refused(&self) -> bool {
        match self {
            CallCarrier::Http1(_) => false,
            CallCarrier::Http2(call) => call.is_refused(),
        }
    }

    /// What has ended is its connection, and not the request alone.
    pub(super) fn is_connection_over(&self) -> bool {
        match self {
            CallCarrier::Http1(_) => true,
            CallCarrier::Http2(call) => call.is_connection_over(),
        }
    }

    /// See [`Http1Call::send_state`].
    #[inline]
    pub(super) fn send_state(&self) -> SendState {
        ask!(self, call => call.send_state())
    }

    /// See [`Http1Call::send`].
    #[inline]
    pub(super) fn send(&mut self, cx: &mut Context<'_>) -> Option<(u64, Poll<SendEnd>)> {
        ask!(self, call => call.send(cx))
    }

    /// See [`Http1Call::poll_more`].
    #[inline]
    pub(super) fn poll_more(&mut self, cx: &mut Context<'_>, buffers: &FreeList) -> Poll<io::Result<usize>> {
        match self {
            CallCarrier::Http1(call) => call.poll_more(cx, buffers),
            CallCarrier::Http2(call) => call.poll_more(cx).map(Ok),
        }
    }

    /// Its head asks for another protocol.
    pub(super) fn expect_tunnel(&mut self) {
        if let CallCarrier::Http2(call) = self {
            call.expect_tunnel();
        }
    }

    /// See [`Http1Call::take_head`].
    #[inline]
    pub(super) fn take_head(&mut self, head: &mut Head) -> Result<bool, Cause> {
        ask!(self, call => call.take_head(head))
    }

    /// See [`Http1Call::begin_body`].
    #[inline]
    pub(super) fn begin_body(&mut self, head: &Head, to_head: bool) -> Result<Framing, Cause> {
        match self {
            CallCarrier::Http1(call) => call.begin_body(head, to_head),
            CallCarrier::Http2(call) => Ok(call.begin_body()),
        }
    }

    /// See [`Http1Call::poll_piece`].
    #[inline]
    pub(super) fn poll_piece(
        &mut self,
        cx: &mut Context<'_>,
        buffers: &FreeList,
    ) -> Poll<Result<Option<Piece>, Cause>> {
        ask!(self, call => call.poll_piece(cx, buffers))
    }

    /// See [`Http1Call::append_rest`].
    #[inline]
    pub(super) fn append_rest(&mut self, out: &mut Vec<u8>, most: usize) -> bool {
        ask!(self, call => call.append_rest(out, most))
    }

    /// See [`Http1Call::is_reusable`]. What streams leave needs no keeping.
    #[inline]
    pub(super) fn is_reusable(&self) -> bool {
        match self {
            CallCarrier::Http1(call) => call.is_reusable(),
            CallCarrier::Http2(_) => false,
        }
    }

    /// See [`Http1Call::is_done`].
    #[inline]
    pub(super) fn is_done(&self) -> bool {
        ask!(self, call => call.is_done())
    }

    /// See [`Http1Call::content`].
    #[inline]
    pub(super) fn content(&self) -> u64 {
        ask!(self, call => call.content())
    }

    /// See [`Http1Call::trailers`].
    #[inline]
    pub(super) fn trailers(&self) -> &[u8] {
        ask!(self, call => call.trailers())
    }

    /// See [`Http1Call::set_raw`]. HTTP/2 has no chunks.
    #[inline]
    pub(super) fn set_raw(&mut self) -> bool {
        match self {
            CallCarrier::Http1(call) => call.set_raw(),
            CallCarrier::Http2(_) => false,
        }
    }

    /// See [`Http1Call::set_pipes`].
    #[inline]
    pub(super) fn set_pipes(&mut self, allowed: bool) {
        if let CallCarrier::Http1(call) = self {
            call.set_pipes(allowed);
        }
    }
}
