//! An accepted connection that does not begin with HTTP: TLS, if its listener wants that, or TCP.

use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use rustls::{ProtocolVersion, ServerConfig};
use tokio::io::ReadBuf;

use crate::config::model::{Protocol, SendProxy};
use crate::events;
use crate::message::proxy_header::ProxyHeader;
use crate::message::{Cause, ListenerId, Peer, Record, RecordKind, TlsSession};
use crate::net::tls::TlsBroken;
use crate::net::{Buffer, Deadline, Stream, Tls, now};
use crate::proxy::http::client::Client;
use crate::proxy::http::client::Secured;
use crate::proxy::http::connection::{DRAIN_SILENCE, turn_away};
use crate::proxy::http::gate::Denial;
use crate::proxy::http::h1::opening::{self, Opening};
use crate::proxy::passed_on::ClientFacts;
use crate::proxy::recording::Recording;
use crate::proxy::{Here, WorkerCtx, tcp};
use crate::tls::{CertificateFacts, certificate_lines, hearing, is_certificate_fault};

/// The first byte of every TLS connection: a handshake record (RFC 8446 §5.1).
const HANDSHAKE: u8 = 22;
/// Bytes of a first message that are read at once. With a hybrid key exchange it has some 1,800.
const HELLO: usize = 4096;
/// A handshake that has begun when the worker drains may take this long.
const DRAIN_HANDSHAKE: Duration = Duration::from_secs(3);
/// What a client may still send after it was told why there is no session.
const LINGER_BYTES: usize = 64 * 1024;
/// For how long.
const LINGER: Duration = Duration::from_secs(2);

/// Shakes hands where the listener wants TLS, and serves a TCP connection to its end. What is left is a client that
/// speaks HTTP; `None`: nothing is.
pub(super) async fn greet(mut newcomer: Newcomer) -> Option<Rc<Client>> {
    let protocol = newcomer.here.config.protocol;
    let secured = match newcomer.here.tls.clone() {
        None => None,
        Some(config) => {
            let (secured, facts) = Box::pin(secure(newcomer, &config)).await?;
            newcomer = secured;
            Some(facts)
        }
    };
    match protocol {
        Protocol::Http => Some(newcomer.into_client(secured)),
        Protocol::Tcp => {
            let version = newcomer.here.target().and_then(|target| target.config.send_proxy);
            let greeting = version.map(|version| newcomer.greeting(version, secured.as_deref()));
            let Newcomer { ctx, stream, peer, here, held, told } = newcomer;
            let beginning = tcp::TcpBeginning { early: held, greeting, told };
            tcp::serve(ctx, stream, peer, here, beginning).await;
            None
        }
    }
}

/// A connection whose client has said nothing yet, or nothing that was used.
pub(super) struct Newcomer {
    pub(super) ctx: Rc<WorkerCtx>,
    pub(super) stream: Stream,
    pub(super) peer: Peer,
    pub(super) here: Here,
    /// What was read of it.
    pub(super) held: Option<Buffer>,
    /// What a balancer in front has told of it.
    pub(super) told: Option<Rc<ProxyHeader>>,
}

impl Newcomer {
    /// One of which nothing was read.
    pub(super) fn new(ctx: &Rc<WorkerCtx>, stream: Stream, peer: Peer, here: Here) -> Newcomer {
        Newcomer { ctx: Rc::clone(ctx), stream, peer, here, held: None, told: None }
    }

    /// What the connection to its backend begins with, so that this knows whose it is.
    fn greeting(&self, version: SendProxy, secured: Option<&Secured>) -> Rc<[u8]> {
        let certificate = secured.and_then(|secured| secured.facts.as_ref());
        let facts = ClientFacts {
            peer: &self.peer,
            told: self.told.as_deref(),
            stream: &self.stream,
            sni: secured.and_then(|secured| secured.sni.as_deref()),
            alpn: secured.and_then(|secured| secured.agreed),
            certificate: certificate.map(|facts| &*facts.common_name),
        };
        facts.header(version, self.ctx.request_id())
    }

    /// One that speaks HTTP.
    pub(super) fn into_client(self, secured: Option<Rc<Secured>>) -> Rc<Client> {
        let Newcomer { ctx, stream, peer, here, held, told } = self;
        let client = Client::new(ctx, stream, peer, here, secured);
        client.with_held(|place| *place = held);
        if let Some(told) = told {
            // It has none yet.
            let _ = client.told.set(told);
        }
        client
    }
}

/// Shakes hands. `None`: there is no session, and what could be said and recorded of that was.
async fn secure(newcomer: Newcomer, config: &Arc<ServerConfig>) -> Option<(Newcomer, Rc<Secured>)> {
    let Newcomer { ctx, mut stream, mut peer, here: listener, held, told } = newcomer;
    let protocol = listener.config.protocol;
    let kind = if protocol == Protocol::Tcp { RecordKind::Tcp } else { RecordKind::Http };
    let deadline = ctx.ticker.deadline();
    let patience = listener.config.client_timeouts.tls;
    deadline.set(patience);
    // Who connects and says nothing leaves no record, with TLS or without.
    let silence = DRAIN_SILENCE.min(patience);
    let hello = match held {
        // It came right behind what a balancer has told.
        Some(held) => held.data().to_vec(),
        None => {
            in_time(&ctx, peer.listener, &deadline, silence, |cx| poll_hello(&mut stream, cx)).await?.ok()?
        }
    };
    let first = *hello.first()?;
    let opening = opening::judge(&hello);
    let is_proxied = opening == Opening::Other(Cause::ProxyProtocol);
    if protocol == Protocol::Http && (is_proxied || first != HANDSHAKE && first.is_ascii_graphic()) {
        let peer = Peer { greeted: now(), ..peer };
        let cause = if is_proxied { Cause::ProxyProtocol } else { Cause::PlainHttp };
        let client = Client::new(ctx, stream, peer, listener, None);
        turn_away(client, Denial::of(cause)).await;
        return None;
    }
    peer.greeted = now();
    let record = |peer: &Peer| Record { kind, id: ctx.request_id(), ..peer.record() };
    let mut session = match Tls::server(stream, Arc::clone(config), &hello) {
        Ok(session) => Box::new(session),
        Err(error) => {
            events::no_tls_session(&listener.config.name, &error);
            Recording::new(&ctx, None, &mut record(&peer)).settle(Cause::Internal);
            return None;
        }
    };
    let handshake = DRAIN_HANDSHAKE.min(patience);
    let mut sni = None;
    let outcome = in_time(&ctx, peer.listener, &deadline, handshake, |cx| {
        let (polled, heard) = hearing(|| session.poll_handshake(cx));
        sni = heard.or_else(|| sni.take());
        polled
    });
    let outcome = outcome.await;
    let (cause, broken) = match outcome {
        Some(Ok(())) => {
            peer.secured = now();
            let is_tls13 = session.version() == Some(ProtocolVersion::TLSv1_3);
            let tls = TlsSession { is_tls13, resumed: session.is_resumed() };
            ctx.cells.handshakes.count(tls);
            peer.tls = Some(tls);
            let certificate = session.peer_certificate();
            let facts = certificate.map(|leaf| CertificateFacts::of(leaf));
            let certificate = certificate.map(|leaf| certificate_lines(leaf).into()).unwrap_or_default();
            let (is_http2, agreed) = (session.is_http2(), session.agreed());
            let newcomer =
                Newcomer { ctx, stream: Stream::Tls(session), peer, here: listener, held: None, told };
            return Some((newcomer, Rc::new(Secured { certificate, facts, is_http2, agreed, sni })));
        }
        None => (Cause::TlsTimeout, None),
        Some(Err(TlsBroken::Closed(error))) => (Cause::ClientGone, Some(error.to_string())),
        Some(Err(TlsBroken::Protocol(error))) if is_certificate_fault(&error) => {
            (Cause::ClientCertificate, Some(error.to_string()))
        }
        Some(Err(TlsBroken::Protocol(error))) => (Cause::TlsHandshake, Some(error.to_string())),
    };
    // Not before: a handshake that is cut by the end of the process was no request yet, so nothing was lost.
    Recording::new(&ctx, None, &mut record(&peer)).settle(cause);
    if cause == Cause::ClientGone {
        // Whoever does not like our certificate may say so by leaving.
        ctx.cells.ends.fail_unrecorded(peer.listener);
    }
    let error = broken.unwrap_or_default();
    let client = peer.client.map(|client| client.ip);
    events::handshake_failed(&listener.config.name, client, cause.token(), &error);
    // Who was told nothing has nothing to read.
    if !matches!(cause, Cause::TlsTimeout | Cause::ClientGone) {
        part(session, &deadline).await;
    }
    None
}

/// What a client says first; nothing at its end. There is no session before, so that silence costs none.
fn poll_hello(stream: &mut Stream, cx: &mut Context<'_>) -> Poll<std::io::Result<Vec<u8>>> {
    let mut space = [0u8; HELLO];
    let mut space = ReadBuf::new(&mut space);
    ready!(stream.poll_read(cx, &mut space))?;
    Poll::Ready(Ok(space.filled().to_vec()))
}

/// Waits until `poll` is ready. `None`: `deadline` came first, which is `hurry` from when the worker drains.
pub(super) async fn in_time<T>(
    ctx: &WorkerCtx,
    listener: ListenerId,
    deadline: &Deadline,
    hurry: Duration,
    mut poll: impl FnMut(&mut Context<'_>) -> Poll<T>,
) -> Option<T> {
    let mut hurried = false;
    poll_fn(|cx| match poll(cx) {
        Poll::Ready(done) => Poll::Ready(Some(done)),
        Poll::Pending => {
            if ctx.is_leaving(listener) && !hurried {
                hurried = true;
                deadline.set(hurry);
            }
            deadline.poll(cx).map(|()| None)
        }
    })
    .await
}

/// Ends our side and reads for a while what the client still sends, which would otherwise reset our last words
/// away.
async fn part(mut session: Box<Tls>, deadline: &Deadline) {
    let mut room = LINGER_BYTES;
    let mut shut = false;
    deadline.set(LINGER);
    poll_fn(|cx| {
        // An alert that there was no room for goes out first.
        if !shut && session.poll_shutdown(cx).is_ready() {
            shut = true;
        }
        loop {
            let mut space = [0u8; 2048];
            let mut space = ReadBuf::new(&mut space);
            match session.socket().poll_read(cx, &mut space) {
                Poll::Ready(Ok(())) if !space.filled().is_empty() && space.filled().len() <= room => {
                    room -= space.filled().len();
                }
                Poll::Ready(_) => return Poll::Ready(()),
                Poll::Pending => {
                    ready!(deadline.poll(cx));
                    return Poll::Ready(());
                }
            }
        }
    })
    .await;
}

#[cfg(test)]
mod tests;
