//! A request on a stream of a connection that speaks HTTP/2 and that others use too.

use std::task::{Context, Poll};

use crate::message::{Cause, Framing, Head};
use crate::net::{FreeList, Piece, now};
use crate::proxy::head_buffers::HeadBuffer;
use crate::proxy::http::body::BodySource;
use crate::proxy::http::h2::code::ErrorCode;
use crate::proxy::http::h2::engine::body::Inflow;
use crate::proxy::http::h2::hpack::{EncodedLines, encode};
use crate::proxy::http::h2::stream_bytes::StreamBytes;
use crate::proxy::http::request_body::RequestBody;
use crate::proxy::http::upstream::session::StreamPlace;
use crate::tick::Tick;

use super::http2_head;
use super::sending::{SendEnd, SendState};

/// What HTTP/2 has of a call. Nothing of it is inlined into what is the same for both protocols: HTTP/1 would pay for that.
pub(super) struct Http2Call {
    place: StreamPlace,
    /// The head as HTTP/1.1 writes it; `None`: it is out.
    head: Option<HeadBuffer>,
    to_head: bool,
    /// It asks for another protocol, if the backend takes that.
    wants_tunnel: bool,
    /// The line by which whoever has asked for it knows that the backend has understood; `None`: it is not asked for.
    accept: Option<String>,
    scheme: &'static [u8],
    body: RequestBody,
    /// What was taken of the body and is not out.
    piece: Option<Piece>,
    /// Nothing more comes of it.
    body_ended: bool,
    is_sending: bool,
    /// The backend takes no more for now.
    is_blocked: bool,
    unsendable: bool,
    written: u64,
    /// When its stream was opened.
    opened: Tick,
    /// When the latest head of its answer came.
    heard: Tick,
    /// How the body of the answer is framed, once its head was taken.
    framing: Framing,
    content: u64,
    is_done: bool,
    trailers: Vec<u8>,
}

impl Http2Call {
    /// A request of which nothing is out.
    #[inline(never)]
    pub(super) fn new(place: StreamPlace, head: HeadBuffer, body: RequestBody) -> Box<Http2Call> {
        let scheme: &[u8] = if place.session().backend.tls.is_some() { b"https" } else { b"http" };
        // Made in its box.
        let room = Box::new_uninit();
        let call = Http2Call {
            place,
            to_head: head.starts_with(b"HEAD "),
            head: Some(head),
            wants_tunnel: false,
            accept: None,
            scheme,
            body,
            piece: None,
            body_ended: false,
            is_sending: true,
            is_blocked: false,
            unsendable: false,
            written: 0,
            opened: Tick::ZERO,
            heard: Tick::ZERO,
            framing: Framing::None,
            content: 0,
            is_done: false,
            trailers: Vec::new(),
        };
        Box::write(room, call)
    }

    /// Its head asks for another protocol: a tunnel is to be made of its stream.
    pub(super) fn expect_tunnel(&mut self) {
        self.wants_tunnel = true;
    }

    /// The bytes on its stream, if its answer has made a tunnel of that.
    pub(super) fn into_tunnel(self: Box<Self>) -> Option<StreamBytes<StreamPlace>> {
        self.accept.is_some().then(|| StreamBytes::new(self.place))
    }

    /// Opens its stream as a tunnel (RFC 8441 §4). `None`: the backend takes no such thing, so it is asked without.
    #[cold]
    fn poll_connect(&mut self, cx: &Context<'_>) -> Poll<Option<SendEnd>> {
        if self.place.session().poll_greeted(cx).is_pending() {
            // It is the backend that we wait for.
            self.is_blocked = true;
            return Poll::Pending;
        }
        self.is_blocked = false;
        self.wants_tunnel = false;
        if !self.place.session().engine().is_connecting() {
            return Poll::Ready(None);
        }
        // What is a body would be taken for bytes of the tunnel.
        let has_body = !matches!(self.body.framing(), Framing::None | Framing::Length(0));
        let accept = self.head.as_ref().filter(|_| !has_body).and_then(|head| http2_head::accept(head));
        let (Some(accept), scheme) = (accept, self.scheme) else { return Poll::Ready(None) };
        let Some(head) = self.head.take() else { return Poll::Ready(None) };
        let write = |out: &mut Vec<u8>, lines: &mut EncodedLines| {
            http2_head::write_connect(out, &head, scheme, lines)
        };
        self.opened = now();
        if !self.place.open(false, false, self.opened, write) {
            return Poll::Ready(Some(SendEnd::Refused));
        }
        self.place.session().engine().make_tunnel(self.place.id());
        self.written += head.len() as u64;
        self.accept = Some(accept);
        Poll::Ready(Some(SendEnd::Whole))
    }

    /// Lets go of its stream.
    #[inline(never)]
    pub(super) fn let_go(self: Box<Self>) {
        drop(self);
    }

    /// True while something is left of the request.
    #[inline(never)]
    pub(super) fn is_sending(&self) -> bool {
        self.is_sending
    }

    /// True when all of the request is out.
    #[inline(never)]
    pub(super) fn is_sent(&self) -> bool {
        !self.is_sending && !self.unsendable
    }

    /// What the rest of the request waits for.
    #[inline(never)]
    pub(super) fn send_state(&self) -> SendState {
        match (self.is_sending, self.is_blocked) {
            (false, _) => SendState::Done,
            (true, true) => SendState::Blocked,
            (true, false) => SendState::Starved,
        }
    }

    /// The backend has surely done nothing for it.
    #[inline(never)]
    pub(super) fn is_refused(&self) -> bool {
        let cut = self.place.session().engine().cut_of(self.place.id());
        self.place.id() == 0 || cut.is_some_and(|cut| cut.theirs && cut.code == ErrorCode::REFUSED_STREAM)
    }

    /// The connection is over, for all of its streams.
    #[inline(never)]
    pub(super) fn is_connection_over(&self) -> bool {
        self.place.id() == 0 || self.place.session().engine().fault().is_some()
    }

    /// See [`super::http1::Http1Call::send`].
    #[inline(never)]
    pub(super) fn send(&mut self, cx: &mut Context<'_>) -> Option<(u64, Poll<SendEnd>)> {
        if !self.is_sending {
            return None;
        }
        let polled = self.poll_send(cx);
        if let Poll::Ready(end) = polled {
            self.is_sending = false;
            self.unsendable = end != SendEnd::Whole;
            self.piece = None;
            self.body = RequestBody::Empty;
        }
        Some((self.written, polled))
    }

    fn poll_send(&mut self, cx: &mut Context<'_>) -> Poll<SendEnd> {
        if self.wants_tunnel
            && let Some(end) = std::task::ready!(self.poll_connect(cx))
        {
            return Poll::Ready(end);
        }
        if let Some(head) = self.head.take() {
            let ends = matches!(self.body.framing(), Framing::None | Framing::Length(0));
            let scheme = self.scheme;
            let write =
                |out: &mut Vec<u8>, lines: &mut EncodedLines| http2_head::write(out, &head, scheme, lines);
            self.opened = now();
            if !self.place.open(ends, self.to_head, self.opened, write) {
                return Poll::Ready(SendEnd::Refused);
            }
            self.written += head.len() as u64;
            if ends {
                return Poll::Ready(SendEnd::Whole);
            }
        }
        let id = self.place.id();
        let session = self.place.session();
        loop {
            if session.engine().is_stopped(id) {
                return Poll::Ready(SendEnd::Refused);
            }
            if self.piece.is_none() && !self.body_ended {
                match self.body.poll_piece(cx) {
                    Poll::Ready(Ok(piece)) => {
                        self.body_ended = piece.is_none() || self.body.is_done();
                        self.piece = piece;
                    }
                    Poll::Ready(Err(cause)) => return Poll::Ready(SendEnd::Broken(cause)),
                    Poll::Pending => {
                        self.is_blocked = false;
                        // Whether the backend still wants it is to be known meanwhile.
                        let _ = session.engine().poll_cut(id, cx);
                        return Poll::Pending;
                    }
                }
            }
            let Some(piece) = &mut self.piece else {
                let trailers = self.body.trailers();
                if trailers.is_empty() {
                    session.engine().send_data(id, &[], true);
                } else {
                    // Of one that was cut nothing is to be sent, and whoever reads the answer hears of it.
                    let _ = session.engine().send_head(id, true, |out| encode::trailers(out, &trailers));
                }
                session.stir();
                return Poll::Ready(SendEnd::Whole);
            };
            let bytes = piece.data();
            let room = match session.engine().poll_room(id, cx) {
                Poll::Ready(Ok(room)) => room,
                Poll::Ready(Err(_)) => return Poll::Ready(SendEnd::Refused),
                Poll::Pending => {
                    self.is_blocked = true;
                    return Poll::Pending;
                }
            };
            let count = room.min(bytes.len());
            let is_last = self.body_ended && count == bytes.len() && self.body.trailers().is_empty();
            session.engine().send_data(id, &bytes[..count], is_last);
            session.stir();
            self.written += count as u64;
            piece.consume(count);
            if piece.is_empty() {
                self.piece = None;
            }
            if is_last {
                return Poll::Ready(SendEnd::Whole);
            }
        }
    }

    /// Waits for a head: how many have come; 0: none does.
    #[inline(never)]
    pub(super) fn poll_more(&mut self, cx: &Context<'_>) -> Poll<usize> {
        if self.wants_tunnel {
            // It waits to be sent.
            return Poll::Pending;
        }
        if self.place.id() == 0 {
            return Poll::Ready(0);
        }
        let polled = self.place.session().engine().poll_answer(self.place.id(), cx);
        polled.map(|outcome| usize::from(outcome.is_ok()))
    }

    /// Takes the next head. False: there is none.
    ///
    /// # Errors
    /// [`Cause::BadAnswer`].
    #[inline(never)]
    pub(super) fn take_head(&mut self, head: &mut Head) -> Result<bool, Cause> {
        let mut engine = self.place.session().engine();
        if let Some(mut answer) = engine.take_answer(self.place.id()) {
            std::mem::swap(head, &mut answer.head);
            (self.framing, self.heard) = (answer.framing, answer.head_read);
            engine.return_answer(answer);
            if let Some(accept) = &self.accept
                && (200..300).contains(&head.status)
            {
                http2_head::switch(head, accept);
            } else if head.status >= 200 {
                self.accept = None;
            }
            return Ok(true);
        }
        match engine.cut_of(self.place.id()) {
            Some(cut) if !cut.theirs => Err(cut.cause),
            _ => Ok(false),
        }
    }

    /// When its stream was opened.
    #[inline]
    pub(super) fn opened(&self) -> Tick {
        self.opened
    }

    /// When the head that was taken last had come.
    #[inline]
    pub(super) fn heard(&self) -> Tick {
        self.heard
    }

    /// The final head was taken: how its body is framed.
    #[inline(never)]
    pub(super) fn begin_body(&mut self) -> Framing {
        self.look_for_end();
        self.framing
    }

    /// Nothing is left when the last byte was taken.
    fn look_for_end(&mut self) {
        if let Some(trailers) = self.place.session().engine().end_of(self.place.id()) {
            self.is_done = true;
            self.trailers = trailers;
        }
    }

    /// The next piece of the answer's body; `None` at its end.
    ///
    /// # Errors
    /// Why it can't be read on.
    #[inline(never)]
    pub(super) fn poll_piece(
        &mut self,
        cx: &Context<'_>,
        buffers: &FreeList,
    ) -> Poll<Result<Option<Piece>, Cause>> {
        if self.is_done {
            return Poll::Ready(Ok(None));
        }
        let session = self.place.session();
        let Poll::Ready(inflow) = session.engine().poll_body(self.place.id(), cx, buffers) else {
            return Poll::Pending;
        };
        // A window may have been opened.
        session.stir();
        Poll::Ready(match inflow {
            Ok(Inflow::Piece(piece)) => {
                self.content += piece.len() as u64;
                self.look_for_end();
                Ok(Some(Piece::Buffer(piece)))
            }
            Ok(Inflow::End) => {
                self.look_for_end();
                Ok(None)
            }
            Err(Cause::BackendClosed) => Err(Cause::AnswerCut),
            Err(cause) => Err(cause),
        })
    }

    /// Appends what is left of the answer's body to `out`, if that is at most `most` bytes and all here. False: nothing was done.
    #[inline(never)]
    pub(super) fn append_rest(&mut self, out: &mut Vec<u8>, most: usize) -> bool {
        if self.is_done {
            return self.trailers.is_empty();
        }
        let before = out.len();
        let whole = self.place.session().engine().take_rest(self.place.id(), out, most);
        if whole {
            self.content += (out.len() - before) as u64;
            self.is_done = true;
        }
        whole
    }

    /// True when the whole body was taken.
    #[inline(never)]
    pub(super) fn is_done(&self) -> bool {
        self.is_done
    }

    /// Bytes of the body so far.
    #[inline(never)]
    pub(super) fn content(&self) -> u64 {
        self.content
    }

    /// Trailer lines with their CRLFs; empty until the body is done.
    #[inline(never)]
    pub(super) fn trailers(&self) -> &[u8] {
        &self.trailers
    }
}
