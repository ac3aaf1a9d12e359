//! The edge of the pipeline that speaks HTTP/2 to a client.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use super::tunnel::ClientStream;
use super::{answer, tunnel};
use crate::config::model::SendProxy;
use crate::message::{Cause, Framing, Head};
use crate::net::relay::{BytesMoved, Early, RelayEnd};
use crate::net::{Deadline, Piece, Stream, now};
use crate::proxy::http::after::After;
use crate::proxy::http::answer_body::AnswerBody;
use crate::proxy::http::body::BodySource as _;
use crate::proxy::http::call::tunnel_far::TunnelFar;
use crate::proxy::http::client::Secured;
use crate::proxy::http::edge::{Edge, Unsent};
use crate::proxy::http::h1::transmit::SMALL;
use crate::proxy::http::h2::code::ErrorCode;
use crate::proxy::http::h2::hpack::encode;
use crate::proxy::http::h2::session::Http2Session;
use crate::proxy::http::h2::stream::Cut;
use crate::proxy::http::h2::stream_bytes::StreamBytes;
use crate::proxy::http::h2::upload::StreamUpload;
use crate::proxy::http::identity;
use crate::proxy::http::tunnel::relay;
use crate::proxy::http::websocket::Lent;
use crate::proxy::passed_on::Passing;
use crate::proxy::pool::Owner;
use crate::proxy::tunnels::{Tunnel, TunnelEnd};
use crate::tick::Tick;

/// One request on a stream.
pub(super) struct StreamEdge<'a> {
    session: &'a Rc<Http2Session>,
    id: u32,
    upload: Option<Rc<StreamUpload>>,
    /// Between bytes that the client takes.
    idle: Cell<Option<Duration>>,
    /// For what it takes.
    writing: Deadline,
    /// A part of the answer is with the engine.
    started: bool,
    /// How a backend accepts the WebSocket that is asked for.
    accept: Option<String>,
    /// When it is over by its own word.
    due: Cell<Tick>,
}

impl<'a> StreamEdge<'a> {
    /// The edge of a stream. `upload`: what it sends, if that is not nothing.
    pub(super) fn new(
        session: &'a Rc<Http2Session>,
        id: u32,
        upload: Option<Rc<StreamUpload>>,
    ) -> StreamEdge<'a> {
        let writing = session.client.ctx.ticker.deadline();
        StreamEdge {
            session,
            id,
            upload,
            idle: Cell::new(None),
            writing,
            started: false,
            accept: None,
            due: Cell::new(Tick::NEVER),
        }
    }

    /// A WebSocket is asked for, which a backend accepts like this.
    pub(super) fn expect_tunnel(&mut self, accept: Option<String>) {
        self.accept = accept;
    }

    /// Sends the head of the answer.
    fn poll_head(
        &mut self,
        cx: &Context<'_>,
        head: &Head,
        framing: Framing,
        ends: bool,
    ) -> Poll<Result<(), Cut>> {
        let (session, ctx) = (self.session, &self.session.client.ctx);
        let lines = &mut *ctx.http2.encoded.borrow_mut();
        let sent = ctx.with_date(|date| {
            let encode = |out: &mut Vec<u8>| answer::write(out, head, framing, date, lines);
            session.engine().poll_head(self.id, ends, cx, encode)
        });
        if let Poll::Ready(Ok(())) = sent {
            self.started = true;
            session.stir();
        }
        sent
    }

    fn unsent(&self, cause: Cause) -> Unsent {
        Unsent { cause, started: self.started }
    }

    /// Sends as much of a body as goes.
    fn poll_body(
        &mut self,
        cx: &mut Context<'_>,
        body: &mut AnswerBody,
        part: &mut Part,
    ) -> Poll<Result<(), Cause>> {
        // It carries the rest of the request with it.
        body.drive(cx);
        loop {
            if part.piece.is_none() && !part.ended {
                match body.poll_piece(cx) {
                    Poll::Ready(Ok(piece)) => {
                        part.ended = piece.is_none() || body.is_done();
                        part.piece = piece;
                    }
                    Poll::Ready(Err(cause)) => return Poll::Ready(Err(cause)),
                    Poll::Pending => {
                        self.writing.clear();
                        return self.session.engine().poll_cut(self.id, cx).map(|cut| Err(cut.cause));
                    }
                }
            }
            let Some(piece) = &mut part.piece else {
                self.send_end(&body.trailers());
                return Poll::Ready(Ok(()));
            };
            let bytes = piece.data();
            let Poll::Ready(room) = self.session.engine().poll_room(self.id, cx) else {
                return self.poll_slow(cx).map(Err);
            };
            let count = room.map_err(|cut| cut.cause)?.min(bytes.len());
            let is_last = part.ended && count == bytes.len() && body.trailers().is_empty();
            self.session.engine().send_data(self.id, &bytes[..count], is_last);
            self.writing.clear();
            self.session.stir();
            self.session.write_much();
            piece.consume(count);
            if piece.is_empty() {
                part.piece = None;
            }
            if is_last {
                return Poll::Ready(Ok(()));
            }
        }
    }

    /// Ready when the client, and nobody else, has kept the stream waiting for too long.
    fn poll_slow(&self, cx: &mut Context<'_>) -> Poll<Cause> {
        if self.session.engine().is_client_slow(self.id) {
            let due = self.due.get();
            let left = if due == Tick::NEVER { Duration::MAX } else { due.since(now()) };
            self.writing.set_if_clear(self.idle().min(left));
        } else {
            // It waits for its turn. Whether anything is taken at all, the connection's own deadline knows.
            self.writing.clear();
        }
        let is_over = || now() >= self.due.get();
        self.writing.poll(cx).map(|()| if is_over() { Cause::GrpcTimeout } else { Cause::ClientStalled })
    }

    /// Ends the answer behind its body.
    fn send_end(&self, trailers: &[u8]) {
        if trailers.is_empty() {
            self.session.engine().send_data(self.id, &[], true);
        } else {
            // It was cut, and whoever asks next hears of it.
            let _ = self.session.engine().send_head(self.id, true, |out| encode::trailers(out, trailers));
        }
        self.session.stir();
    }

    fn idle(&self) -> Duration {
        self.idle.get().unwrap_or_else(|| self.session.client.timeouts().idle)
    }
}

/// A part of a body on its way.
#[derive(Default)]
struct Part {
    piece: Option<Piece>,
    /// It is the last one.
    ended: bool,
}

impl Edge for StreamEdge<'_> {
    fn secured(&self) -> Option<Rc<Secured>> {
        self.session.client.secured.clone()
    }

    fn owner(&self) -> Option<&Cell<Option<Owner>>> {
        // Many requests share the connection, so none of them may log it in.
        None
    }

    fn passing(&self, version: SendProxy) -> Passing {
        self.session.client.passing(version)
    }

    fn poll_gone(&mut self, cx: &mut Context<'_>) -> Poll<Cause> {
        self.session.engine().poll_cut(self.id, cx).map(|cut| cut.cause)
    }

    fn set_idle(&self, idle: Duration) {
        self.idle.set(Some(idle));
        if let Some(upload) = &self.upload {
            upload.set_idle(idle);
        }
    }

    fn set_due(&self, due: Tick) {
        self.due.set(due);
    }

    fn charge_abandoned(&self) {
        self.session.engine().charge_abandoned(now());
        self.session.stir();
    }

    async fn interim(&mut self, head: &Head) -> Result<(), Cause> {
        let lines = &mut *self.session.client.ctx.http2.encoded.borrow_mut();
        let encode = |out: &mut Vec<u8>| answer::write(out, head, Framing::None, b"", lines);
        let sent = self.session.engine().send_head(self.id, false, encode);
        self.session.stir();
        sent.map_err(|cut| cut.cause)
    }

    async fn answer(&mut self, head: &Head, body: &mut AnswerBody, _last: bool) -> Result<After, Unsent> {
        if identity::is_offered(head) {
            // Only a connection of HTTP/1.1 can be logged in.
            let (code, cause) = (ErrorCode::HTTP_1_1_REQUIRED, Cause::NeedsHttp11);
            self.session.engine().reset(self.id, code, cause);
            self.session.stir();
            return Err(Unsent { cause, started: true });
        }
        if self.accept.is_some() && (200..300).contains(&head.status) {
            // Its client would take that for its WebSocket (RFC 8441 §5), and what follows for frames.
            return Err(self.unsent(Cause::BadAnswer));
        }
        let framing = body.framing();
        // A backend may still have to say what its call has ended with.
        let is_empty = framing == Framing::Length(0) && body.is_done() && body.trailers().is_empty();
        let ends = framing == Framing::None || is_empty;
        let sent = poll_fn(|cx| self.poll_head(cx, head, framing, ends)).await;
        sent.map_err(|cut| self.unsent(cut.cause))?;
        let outcome = if ends {
            // It does at its end what ends with it.
            if body.append_rest(&mut Vec::new(), 0) {
                Ok(())
            } else {
                poll_fn(|cx| body.poll_piece(cx)).await.map(|_| ())
            }
        } else if self.session.engine().send_rest(self.id, SMALL, |out| body.append_rest(out, SMALL)) {
            Ok(())
        } else {
            let mut part = Part::default();
            poll_fn(|cx| self.poll_body(cx, body, &mut part)).await
        };
        outcome.map(|()| After::KeepOpen).map_err(|cause| self.unsent(cause))
    }

    fn end_call(&mut self, trailers: &[u8]) -> bool {
        if self.session.engine().is_finished_stream(self.id) {
            return false;
        }
        let sent = self.session.engine().send_head(self.id, true, |out| encode::trailers(out, trailers));
        self.session.stir();
        sent.is_ok()
    }

    async fn tunnel(
        &mut self,
        head: &Head,
        backend: &mut TunnelFar,
        idle: Duration,
        moved: &BytesMoved,
        listed: &Tunnel<'_>,
    ) -> TunnelEnd {
        let Some(answer) = self.accept.as_deref().and_then(|expected| tunnel::accepted(head, expected))
        else {
            return TunnelEnd::Relayed(RelayEnd::Backend(io::ErrorKind::InvalidData.into()));
        };
        if poll_fn(|cx| self.poll_head(cx, &answer, Framing::Chunked, false)).await.is_err() {
            return TunnelEnd::Relayed(RelayEnd::Client(io::ErrorKind::ConnectionReset.into()));
        }
        let on = ClientStream { session: Rc::clone(self.session), id: self.id };
        let stream = RefCell::new(Stream::Carried(Box::new(StreamBytes::new(on))));
        let ctx = &self.session.client.ctx;
        let lent = Lent { buffers: &ctx.buffers, deadline: &self.writing, idle, moved };
        let mask = ctx.chance.bits() as u32;
        let end = {
            let mut relay =
                pin!(relay(listed, || stream.borrow_mut(), backend, Early::default(), lent, mask));
            poll_fn(|cx| {
                let end = relay.as_mut().poll(cx);
                if end.is_pending() {
                    // While both directions wait for the backend nobody else looks at the client.
                    let cut = self.session.engine().poll_cut(self.id, cx);
                    return cut.map(|_| {
                        TunnelEnd::Relayed(RelayEnd::Client(io::ErrorKind::ConnectionReset.into()))
                    });
                }
                end
            })
            .await
        };
        if matches!(end, TunnelEnd::Left { client: true, .. })
            && let Stream::Carried(stream) = &mut *stream.borrow_mut()
        {
            // No close will say it. A stream that was cut needs to hear nothing.
            let _ = stream.shutdown();
        }
        end
    }
}
