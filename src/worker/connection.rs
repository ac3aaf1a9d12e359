//! An accepted connection that does not begin with HTTP: TLS, if its listener wants that, or TCP.

use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use rustls::{ProtocolVersion, ServerConfig};
use tokio::io::ReadBuf;

use crate::config::model::Protocol;
use crate::events;
use crate::message::{Cause, Peer, Record, RecordKind, TlsSession};
use crate::net::tls::TlsBroken;
use crate::net::{Deadline, Stream, Tls, now};
use crate::proxy::DRAIN_SILENCE;
use crate::proxy::http::client::{Client, Secured};
use crate::proxy::http::connection::turn_away;
use crate::proxy::http::gate::Denial;
use crate::proxy::recording::Recording;
use crate::proxy::tcp::{self, TcpBeginning};
use crate::tls::{CertificateFacts, certificate_lines, hearing, is_certificate_fault};

use super::newcomer::{DRAIN_HANDSHAKE, Newcomer, in_time, linger, other_protocol};
use super::passage::{self, HeardHello};

/// Bytes of a first message that are read at once. With a hybrid key exchange it has some 1,800.
const HELLO: usize = 4096;

/// Shakes hands where the listener wants TLS, and serves a TCP connection to its end. What is left is a client that
/// speaks HTTP; `None`: nothing is.
pub(super) async fn greet(mut newcomer: Newcomer) -> Option<Rc<Client>> {
    let protocol = newcomer.here.config.protocol;
    let mut secured = None;
    let mut passed = None;
    if newcomer.here.is_secured() {
        match Box::pin(begin_secured(newcomer)).await? {
            Begun::Session(secure, facts) => (newcomer, secured) = (secure, Some(facts)),
            Begun::Through(other, beginning) => (newcomer, passed) = (other, Some(beginning)),
        }
    }
    if protocol == Protocol::Http && passed.is_none() {
        return Some(newcomer.into_client(secured));
    }
    let beginning = passed.unwrap_or_else(|| bytes(&mut newcomer, secured.as_deref()));
    let Newcomer { ctx, stream, peer, here, .. } = newcomer;
    tcp::serve(ctx, stream, peer, here, beginning).await;
    None
}

/// How a connection without requests begins that is not passed through undecrypted.
fn bytes(newcomer: &mut Newcomer, secured: Option<&Secured>) -> TcpBeginning {
    let way = newcomer.here.bytes_route().and_then(|route| route.destinations.first());
    let version = way.and_then(|way| way.target.config.send_proxy);
    let sni = secured.and_then(|secured| secured.sni.as_deref());
    let greeting = version.map(|version| newcomer.greeting(version, secured, sni));
    let (early, told) = (newcomer.held.take(), newcomer.told.take());
    TcpBeginning { early, greeting, told, place: None, sni: sni.map(Into::into) }
}

/// A connection that has begun with TLS.
enum Begun {
    /// There is a session.
    Session(Newcomer, Rc<Secured>),
    /// It is passed on undecrypted, and begins like this.
    Through(Newcomer, TcpBeginning),
}

/// Begins TLS, all within `timeouts.tls`. `None`: there is nothing to serve, and what could be said and recorded of that was.
async fn begin_secured(mut newcomer: Newcomer) -> Option<Begun> {
    let deadline = newcomer.ctx.ticker.deadline();
    deadline.set(newcomer.here.config.client_timeouts.tls);
    let may_prove = newcomer.here.tls.is_some() && newcomer.ctx.proofs.has_certificates();
    if newcomer.here.hears_hellos() || may_prove {
        match Box::pin(passage::hear(newcomer, &deadline)).await? {
            HeardHello::Here(here) => newcomer = here,
            HeardHello::Through(newcomer, beginning) => return Some(Begun::Through(newcomer, beginning)),
            HeardHello::Prove(newcomer, config) => {
                let (newcomer, _) = secure(newcomer, &config, &deadline).await?;
                // The handshake says it all (RFC 8737 §3).
                if let Stream::Tls(session) = newcomer.stream {
                    part(session, &deadline).await;
                }
                return None;
            }
        }
    }
    let config = newcomer.here.tls.clone()?;
    let (newcomer, secured) = secure(newcomer, &config, &deadline).await?;
    Some(Begun::Session(newcomer, secured))
}

/// Shakes hands. `None`: there is no session, and what could be said and recorded of that was.
async fn secure(
    newcomer: Newcomer,
    config: &Arc<ServerConfig>,
    deadline: &Deadline,
) -> Option<(Newcomer, Rc<Secured>)> {
    let Newcomer { ctx, mut stream, mut peer, here: listener, held, told } = newcomer;
    let protocol = listener.config.protocol;
    let kind = if protocol == Protocol::Tcp { RecordKind::Tcp } else { RecordKind::Http };
    let patience = listener.config.client_timeouts.tls;
    // Who connects and says nothing leaves no record, with TLS or without.
    let silence = DRAIN_SILENCE.min(patience);
    let hello = match held {
        // It came right behind what a balancer has told, or was looked at.
        Some(held) => held.data().to_vec(),
        None => {
            in_time(&ctx, peer.listener, deadline, silence, |cx| poll_hello(&mut stream, cx)).await?.ok()?
        }
    };
    if hello.is_empty() {
        return None;
    }
    peer.greeted = now();
    if let Some(cause) = other_protocol(protocol, &hello) {
        turn_away(Client::new(ctx, stream, peer, listener, None), Denial::of(cause)).await;
        return None;
    }
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
    let outcome = in_time(&ctx, peer.listener, deadline, handshake, |cx| {
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
        part(session, deadline).await;
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

/// Ends our side and reads for a while what the client still sends, which would otherwise reset our last words
/// away.
async fn part(mut session: Box<Tls>, deadline: &Deadline) {
    let mut shut = false;
    linger(deadline, |cx, space| {
        // An alert that there was no room for goes out first.
        if !shut && session.poll_shutdown(cx).is_ready() {
            shut = true;
        }
        session.socket().poll_read(cx, space)
    })
    .await;
}

#[cfg(test)]
mod tests;
