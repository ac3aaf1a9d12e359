//! A request on a connection that speaks HTTP/1: the connection is its own until the answer has ended.

use std::io;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use crate::message::{Cause, Framing, Head};
use crate::net::{Buffer, FreeList, Piece, Stream};
use crate::proxy::head_buffers::HeadBuffer;
use crate::proxy::http::h1::decode::{BodyBroken, Decoder};
use crate::proxy::http::h1::framing;
use crate::proxy::http::h1::search::Search;
use crate::proxy::http::h1::transmit::{Transmit, TransmitFailed};
use crate::proxy::http::request_body::RequestBody;

use super::sending::{SendEnd, SendState};

/// Bytes of an answer's head, at most. They fit into one buffer.
const HEAD: usize = 64 * 1024;

/// What HTTP/1 has of a call.
pub(super) struct Http1Call {
    /// The connection.
    pub(super) stream: Stream,
    /// What was read and not yet taken.
    pub(super) held: Option<Buffer>,
    sending: Sending,
    /// The request could not be sent to its end; the answer may still come.
    unsendable: bool,
    search: Search,
    decoder: Decoder,
    keeps_alive: bool,
    /// How long the backend keeps the connection, if it says so.
    pub(super) keep_for: Option<Duration>,
    /// The backend's from before the connection was made.
    pub(super) generation: u32,
}

/// What is left of the request to be sent.
pub(super) enum Sending {
    /// Nothing.
    Done,
    /// Its head, of which so many bytes are out. It has no body, as most.
    Head(HeadBuffer, usize),
    /// Head and body.
    Message(Box<HeadAndBody>),
}

/// A request that has a body, on its way out.
pub(super) struct HeadAndBody {
    transmit: Transmit,
    body: RequestBody,
}

impl Sending {
    /// All of a request. `relays_raw`: chunks and long pieces may go on as they come.
    #[inline(always)]
    pub(super) fn new(head: HeadBuffer, body: RequestBody, stream: &Stream, relays_raw: bool) -> Sending {
        match body {
            RequestBody::Empty => Sending::Head(head, 0),
            mut body => {
                body.set_pipes(relays_raw && stream.is_plain());
                let transmit = Transmit::new(head, body.framing(), &mut body, relays_raw);
                Sending::Message(Box::new(HeadAndBody { transmit, body }))
            }
        }
    }
}

impl Http1Call {
    /// A request on a connection that is silent and open.
    // Always inlined, and so made in its place: it is large.
    #[inline(always)]
    pub(super) fn new(stream: Stream, generation: u32, sending: Sending) -> Http1Call {
        Http1Call {
            stream,
            held: None,
            sending,
            unsendable: false,
            search: Search::default(),
            decoder: Decoder::new(Framing::None),
            keeps_alive: false,
            keep_for: None,
            generation,
        }
    }

    /// True while something is left of the request.
    #[inline]
    pub(super) fn is_sending(&self) -> bool {
        !matches!(self.sending, Sending::Done)
    }

    /// True when the last byte of the request was taken.
    #[inline]
    pub(super) fn is_sent(&self) -> bool {
        matches!(self.sending, Sending::Done) && !self.unsendable
    }

    /// True while bytes may be out of which nothing counts as written yet.
    pub(super) fn is_writing(&self) -> bool {
        self.stream.is_writing()
    }

    /// What the rest of the request waits for.
    #[inline]
    pub(super) fn send_state(&self) -> SendState {
        match &self.sending {
            Sending::Done => SendState::Done,
            Sending::Message(message) if !message.transmit.is_blocked() => SendState::Starved,
            Sending::Head(..) | Sending::Message(_) => SendState::Blocked,
        }
    }

    /// Sends as much of the request as goes: how many bytes of it were taken by now, and whether that was the end. `None`:
    /// nothing was left of it.
    #[inline]
    pub(super) fn send(&mut self, cx: &mut Context<'_>) -> Option<(u64, Poll<SendEnd>)> {
        let stream = &mut self.stream;
        let (polled, written) = match &mut self.sending {
            Sending::Done => return None,
            Sending::Head(head, out) => {
                let polled = poll_rest(cx, stream, head, out);
                (polled, *out as u64)
            }
            Sending::Message(message) => {
                let HeadAndBody { transmit, body } = &mut **message;
                let polled = transmit.poll(cx, body, |cx, out| out.poll_write(cx, stream));
                (polled, transmit.written())
            }
        };
        let Poll::Ready(outcome) = polled else { return Some((written, Poll::Pending)) };
        match std::mem::replace(&mut self.sending, Sending::Done) {
            // Most have no body: dropped here, and not by a function for all of them.
            Sending::Head(head, _) => drop(head),
            other => drop(other),
        }
        let end = match outcome {
            Ok(()) => SendEnd::Whole,
            Err(failed) => {
                self.unsendable = true;
                if let TransmitFailed::Source(cause) = failed {
                    SendEnd::Broken(cause)
                } else {
                    SendEnd::Refused
                }
            }
        };
        Some((written, Poll::Ready(end)))
    }

    /// Waits for more of an answer whose head is not whole: how many bytes have come; 0: nothing more does.
    ///
    /// # Errors
    /// What the connection broke with.
    #[inline]
    pub(super) fn poll_more(&mut self, cx: &mut Context<'_>, buffers: &FreeList) -> Poll<io::Result<usize>> {
        buffers.poll_fill(&mut self.held, cx, &mut self.stream)
    }

    /// Takes the next head out of what has come. False: it is not whole.
    ///
    /// # Errors
    /// [`Cause::BadAnswer`].
    #[inline]
    pub(super) fn take_head(&mut self, head: &mut Head) -> Result<bool, Cause> {
        let Some(buffer) = &mut self.held else { return Ok(false) };
        let Some(length) = self.search.answer(buffer.data(), HEAD, head)? else { return Ok(false) };
        self.search = Search::default();
        buffer.consume(length);
        if buffer.is_empty() {
            self.held = None;
        }
        Ok(true)
    }

    /// The final head was taken: how its body is framed.
    ///
    /// # Errors
    /// [`Cause::BadAnswer`].
    #[inline]
    pub(super) fn begin_body(&mut self, head: &Head, to_head: bool) -> Result<Framing, Cause> {
        let framing = framing::answer(head, to_head)?;
        self.decoder = Decoder::new(framing);
        self.keeps_alive = framing::keeps_alive(head) && framing != Framing::UntilClose && head.status != 101;
        self.keep_for = framing::keep_alive_timeout(head);
        Ok(framing)
    }

    /// The next piece of the answer's body; `None` at its end.
    ///
    /// # Errors
    /// Why it can't be read on.
    #[inline]
    pub(super) fn poll_piece(
        &mut self,
        cx: &mut Context<'_>,
        buffers: &FreeList,
    ) -> Poll<Result<Option<Piece>, Cause>> {
        let polled = self.decoder.poll(cx, &mut self.stream, &mut self.held, buffers);
        polled.map_err(|broken| match broken {
            BodyBroken::Malformed => Cause::BadAnswerBody,
            BodyBroken::Cut => Cause::AnswerCut,
        })
    }

    /// See [`Decoder::append_rest`].
    #[inline]
    pub(super) fn append_rest(&mut self, out: &mut Vec<u8>, most: usize) -> bool {
        self.decoder.append_rest(&mut self.held, out, most)
    }

    /// See [`Decoder::is_done`].
    #[inline]
    pub(super) fn is_done(&self) -> bool {
        self.decoder.is_done()
    }

    /// See [`Decoder::content`].
    #[inline]
    pub(super) fn content(&self) -> u64 {
        self.decoder.content()
    }

    /// See [`Decoder::trailers`].
    #[inline]
    pub(super) fn trailers(&self) -> &[u8] {
        self.decoder.trailers()
    }

    /// See [`Decoder::set_raw`].
    #[inline]
    pub(super) fn set_raw(&mut self) -> bool {
        self.decoder.set_raw()
    }

    /// See [`Decoder::set_pipes`].
    #[inline]
    pub(super) fn set_pipes(&mut self, allowed: bool) {
        self.decoder.set_pipes(allowed);
    }

    /// True when the connection may serve another request: request and answer are complete, both want it, and not a byte is
    /// left over (RFC 9112 §9.3).
    #[inline]
    pub(super) fn is_reusable(&self) -> bool {
        self.is_sent()
            && self.held.is_none()
            && !self.stream.has_leftover()
            && self.decoder.is_done()
            && self.keeps_alive
    }
}

/// Writes what is left of `bytes` behind the first `out`, and counts it.
fn poll_rest(
    cx: &mut Context<'_>,
    stream: &mut Stream,
    bytes: &[u8],
    out: &mut usize,
) -> Poll<Result<(), TransmitFailed>> {
    while *out < bytes.len() {
        match ready!(stream.poll_write(cx, &bytes[*out..])) {
            Ok(0) => return Poll::Ready(Err(TransmitFailed::Sink(io::ErrorKind::WriteZero.into()))),
            Ok(count) => *out += count,
            Err(error) => return Poll::Ready(Err(TransmitFailed::Sink(error))),
        }
    }
    Poll::Ready(Ok(()))
}
