//! The edge of the pipeline that speaks HTTP/1 to a client.

use std::cell::Cell;
use std::future::poll_fn;
use std::io;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use crate::config::model::SendProxy;
use crate::message::{Cause, Framing, Head, HeaderField, Version};
use crate::net::relay::{BytesMoved, Early, RelayEnd};
use crate::proxy::WorkerCtx;
use crate::proxy::client_timer::ClientWait;
use crate::proxy::passed_on::Passing;
use crate::proxy::pool::Owner;
use crate::proxy::tunnels::{Tunnel, TunnelEnd};

use super::after::After;
use super::answer_body::AnswerBody;
use super::call::tunnel_far::TunnelFar;
use super::client::{Client, Secured};
use super::edge::{Edge, Unsent};
use super::h1::framing;
use super::h1::transmit::{SMALL, Transmit, TransmitFailed};
use super::h1::write::{self, Persistence};
use super::own;
use super::websocket::Lent;

/// One request on an HTTP/1 connection.
pub struct Wire<'a> {
    ctx: &'a WorkerCtx,
    client: &'a Rc<Client>,
    version: Version,
    keeps_alive: bool,
    /// The client waits for a 100 before it sends its body.
    expects: bool,
    /// The client would like to switch protocols.
    upgrades: bool,
}

impl<'a> Wire<'a> {
    /// The edge for the request with this head. `refused`: there will be no other on this connection, whatever it says.
    #[must_use]
    pub fn new(client: &'a Rc<Client>, head: &Head, refused: bool) -> Wire<'a> {
        Wire {
            ctx: &client.ctx,
            client,
            version: head.version,
            keeps_alive: !refused && framing::keeps_alive(head),
            expects: head.has(HeaderField::Expect),
            upgrades: head.has(HeaderField::Upgrade),
        }
    }

    async fn send(&self, transmit: &mut Transmit, body: &mut AnswerBody) -> Result<(), Unsent> {
        let client = self.client;
        let mut written = 0;
        let outcome = poll_fn(|cx| {
            let polled = transmit.poll(cx, body, |cx, out| client.poll_write(cx, out));
            let progress = transmit.written() != written;
            written = transmit.written();
            let cause = match polled {
                Poll::Ready(Ok(())) => return Poll::Ready(Ok(())),
                Poll::Ready(Err(TransmitFailed::Source(cause))) => cause,
                Poll::Ready(Err(TransmitFailed::Sink(_))) => Cause::ClientGone,
                Poll::Pending => {
                    let blocked = transmit.is_blocked();
                    if progress || !blocked {
                        client.writing.clear();
                    }
                    if progress {
                        client.presence.try_again();
                    }
                    if blocked {
                        client.writing.set_if_clear(client.idle());
                        std::task::ready!(client.writing.poll(cx));
                        Cause::ClientStalled
                    } else {
                        std::task::ready!(client.poll_gone(cx));
                        Cause::ClientGone
                    }
                }
            };
            Poll::Ready(Err(cause))
        })
        .await;
        client.writing.clear();
        let started = transmit.written() > 0 || client.stream().is_writing();
        outcome.map_err(|cause| Unsent { cause, started })
    }

    /// Tells a client that speaks HTTP/2 to come again with HTTP/1.1.
    ///
    /// # Errors
    /// [`Cause::ClientGone`] or [`Cause::ClientStalled`].
    pub async fn send_away(&self, cause: Cause, id: u128) -> Result<(), Cause> {
        let mut out = self.ctx.outgoing.take();
        own::goaway(cause, id, &mut out);
        let mut transmit = Transmit::new(out, Framing::None, &mut AnswerBody::Empty, false);
        self.send(&mut transmit, &mut AnswerBody::Empty).await.map_err(|unsent| unsent.cause)
    }

    async fn send_head(&self, head: &Head, persistence: Persistence) -> Result<(), Cause> {
        let mut out = self.ctx.outgoing.take();
        write::answer(&mut out, head, Framing::None, persistence, b"");
        let mut transmit = Transmit::new(out, Framing::None, &mut AnswerBody::Empty, false);
        self.send(&mut transmit, &mut AnswerBody::Empty).await.map_err(|unsent| unsent.cause)
    }
}

impl Edge for Wire<'_> {
    fn secured(&self) -> Option<Rc<Secured>> {
        self.client.secured.clone()
    }

    fn owner(&self) -> Option<&Cell<Option<Owner>>> {
        Some(&self.client.owner)
    }

    fn passing(&self, version: SendProxy) -> Passing {
        self.client.passing(version)
    }

    fn poll_gone(&mut self, cx: &mut Context<'_>) -> Poll<Cause> {
        self.client.poll_gone(cx).map(|()| Cause::ClientGone)
    }

    fn set_idle(&self, idle: Duration) {
        self.client.set_idle(Some(idle));
    }

    async fn interim(&mut self, head: &Head) -> Result<(), Cause> {
        if self.version == Version::Http10 {
            return Ok(());
        }
        if head.status == 100 {
            self.expects = false;
        }
        self.send_head(head, Persistence::Implied).await
    }

    async fn answer(&mut self, head: &Head, body: &mut AnswerBody, last: bool) -> Result<After, Unsent> {
        let old = self.version == Version::Http10;
        let framing = match body.framing() {
            Framing::Chunked if old => Framing::UntilClose,
            // The same for HEAD, so that the two heads stay alike.
            Framing::None if old && head.value(HeaderField::TransferEncoding).is_some() => {
                Framing::UntilClose
            }
            other => other,
        };
        // A client that was never told to go on may send its body or not (RFC 9110 §10.1.1): only a close
        // keeps the two readings apart.
        let unsure = self.expects && !self.client.is_body_done();
        // Bytes sent in the hope of a tunnel are no request.
        let early = self.upgrades && (self.client.has_held() || !self.client.stream().is_silent());
        let close = last
            || unsure
            || early
            || !self.keeps_alive
            || framing == Framing::UntilClose
            || self.client.is_leaving();
        let persistence = match (close, self.version) {
            (true, _) => Persistence::Close,
            (false, Version::Http10) => Persistence::KeepAlive,
            (false, Version::Http11 | Version::Http2) => Persistence::Implied,
        };
        let mut out = self.ctx.outgoing.take();
        self.ctx.with_date(|date| write::answer(&mut out, head, framing, persistence, date));
        // Some clients let an empty line follow a body, whatever they say.
        let was_last = !self.keeps_alive && !last && !early && self.client.framing() == Framing::None;
        let after = match (close, was_last) {
            (false, _) => After::KeepOpen,
            (true, true) => After::Close,
            (true, false) => After::Linger,
        };
        let mut written = 0;
        // A short answer that is all here has nothing to wait for but its client. What comes without chunks is content alone, and chunks
        // have to be made of it.
        if framing != Framing::Chunked && body.append_rest(&mut out, SMALL) {
            match poll_fn(|cx| Poll::Ready(self.client.stream().poll_write(cx, &out))).await {
                Poll::Ready(Ok(count)) if count == out.len() => return Ok(after),
                Poll::Ready(Ok(count)) => written = count,
                Poll::Ready(Err(_)) => {
                    let started = self.client.stream().is_writing();
                    return Err(Unsent { cause: Cause::ClientGone, started });
                }
                Poll::Pending => {}
            }
        }
        body.set_pipes(self.ctx.raw_relay && self.client.stream().is_plain());
        let mut transmit = Transmit::new(out, framing, body, self.ctx.raw_relay);
        transmit.skip(written);
        self.send(&mut transmit, body).await?;
        Ok(after)
    }

    async fn tunnel(
        &mut self,
        head: &Head,
        backend: &mut TunnelFar,
        idle: Duration,
        moved: &BytesMoved,
        tunnel: &Tunnel<'_>,
    ) -> TunnelEnd {
        if self.send_head(head, Persistence::Upgrade).await.is_err() {
            return TunnelEnd::Relayed(RelayEnd::Client(io::ErrorKind::BrokenPipe.into()));
        }
        let client = self.client;
        client.timer().end();
        let early = Early { client: client.with_held(Option::take), backend: None };
        let (buffers, deadline) = (&client.ctx.buffers, client.timer().lend(ClientWait::Tunnel));
        let (lent, mask) = (Lent { buffers, deadline, idle, moved }, client.ctx.chance.bits() as u32);
        super::tunnel::relay(tunnel, || client.stream(), backend, early, lent, mask).await
    }
}
