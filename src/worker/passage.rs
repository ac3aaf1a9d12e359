//! What a client asks for under TLS, heard before there is a session: by that its connection is passed through as it is, or served here.

use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use crate::config::model::Protocol;
use crate::events;
use crate::message::{Cause, Record, RecordKind};
use crate::net::{Deadline, now};
use crate::proxy::http::connection::DRAIN_SILENCE;
use crate::proxy::recording::Recording;
use crate::proxy::tcp;
use crate::route::HelloVerdict;
use crate::tls::hello::{ClientHello, HelloFault, HelloRead, HelloReader};

use super::newcomer::{DRAIN_HANDSHAKE, HANDSHAKE, Newcomer, in_time, linger, turn_away_others};

/// A fatal alert in clear, but for what it says (RFC 8446 §6).
const ALERT: [u8; 6] = [21, 3, 3, 0, 2, 2];
/// What they say (RFC 8446 §6.2).
const DECODE_ERROR: u8 = 50;
const UNRECOGNIZED_NAME: u8 = 112;

/// What a client says first.
enum Said {
    /// What it asks for.
    Hello(ClientHello),
    /// Another protocol.
    Other,
    /// What can't be read.
    Fault(HelloFault),
    /// It has gone in the middle.
    Gone(String),
}

/// Hears what the client asks for, within `deadline`, and passes its connection on where a route says so. What is left is one that is
/// decrypted here; `None`: it is over.
pub(super) async fn hear(mut newcomer: Newcomer, deadline: &Deadline) -> Option<Newcomer> {
    let Newcomer { ctx, peer, here, .. } = &newcomer;
    let (ctx, id, patience) = (Rc::clone(ctx), peer.listener, here.config.client_timeouts.tls);
    let passages = here.passages().map(Arc::clone)?;
    let mut reader = HelloReader::default();
    if newcomer.held.is_none() {
        // Who connects and says nothing leaves no record, with TLS or without.
        let silence = DRAIN_SILENCE.min(patience);
        let first = in_time(&ctx, id, deadline, silence, |cx| newcomer.poll_more(cx)).await?;
        if !matches!(first, Ok(1..)) {
            return None;
        }
    }
    newcomer.peer.greeted = now();
    let handshake = DRAIN_HANDSHAKE.min(patience);
    let said = in_time(&ctx, id, deadline, handshake, |cx| newcomer.poll_hello(&mut reader, cx)).await;
    let (cause, why, alert) = match said {
        Some(Said::Hello(hello)) => {
            let client = newcomer.peer.client.map(|client| client.ip);
            match passages.find(hello.name.as_deref(), &hello.protocols, client) {
                HelloVerdict::Here => {
                    let Newcomer { ctx, peer, here, .. } = &newcomer;
                    let is_tcp = here.config.protocol == Protocol::Tcp;
                    // Before a handshake, which costs more than all else.
                    let too_soon =
                        is_tcp && here.bytes_route().is_some_and(|route| tcp::is_too_soon(ctx, peer, route));
                    return if too_soon { None } else { Some(newcomer) };
                }
                HelloVerdict::Through(place) => {
                    pass_on(newcomer, place, hello).await;
                    return None;
                }
                HelloVerdict::Nowhere => {
                    let name = hello.name.as_deref().unwrap_or("no name");
                    (Cause::UnknownSni, format!("it asks for {name}"), Some(UNRECOGNIZED_NAME))
                }
            }
        }
        Some(Said::Other) => {
            let newcomer = turn_away_others(newcomer).await?;
            if newcomer.here.tls.is_some() {
                return Some(newcomer);
            }
            let why = HelloFault::Record.to_string();
            return fail(newcomer, (Cause::TlsHandshake, why, Some(DECODE_ERROR)), deadline).await;
        }
        Some(Said::Fault(fault)) => (Cause::TlsHandshake, fault.to_string(), Some(DECODE_ERROR)),
        Some(Said::Gone(error)) => (Cause::ClientGone, error, None),
        None => (Cause::TlsTimeout, String::new(), None),
    };
    fail(newcomer, (cause, why, alert), deadline).await
}

/// Ends a connection that is nobody's, with an alert if there is one to be heard.
async fn fail<T>(
    newcomer: Newcomer,
    (cause, why, alert): (Cause, String, Option<u8>),
    deadline: &Deadline,
) -> Option<T> {
    let Newcomer { ctx, mut stream, peer, here, held, .. } = newcomer;
    drop(held);
    let is_tcp = here.config.protocol == Protocol::Tcp;
    let kind = if is_tcp { RecordKind::Tcp } else { RecordKind::Http };
    let mut record = Record { kind, id: ctx.request_id(), ..peer.record() };
    Recording::new(&ctx, None, &mut record).settle(cause);
    if cause == Cause::ClientGone {
        ctx.cells.ends.fail_unrecorded(peer.listener);
    }
    let client = peer.client.map(|client| client.ip);
    events::handshake_failed(&here.config.name, client, cause.token(), &why);
    if let Some(alert) = alert {
        let [kind, major, minor, high, low, fatal] = ALERT;
        // The first words on a connection always find room.
        stream.dismiss(&[kind, major, minor, high, low, fatal, alert]);
        linger(deadline, |cx, space| stream.poll_read(cx, space)).await;
    }
    None
}

/// Passes a connection on by the route at this place.
async fn pass_on(newcomer: Newcomer, place: usize, hello: ClientHello) {
    let Some(route) = newcomer.here.route_at(place) else { return };
    let client = newcomer.peer.client.map(|client| client.ip);
    // A trusted proxy was asked of denials alone, since its requests tell whose they are; this one has none.
    let refusal = newcomer.here.access.refusal(client).or_else(|| route.access.refusal(client));
    if let Some(rule) = refusal {
        rule.count_refusal();
        let Newcomer { ctx, peer, .. } = &newcomer;
        let (kind, route) = (RecordKind::Tcp, Some(route.id));
        let mut record = Record { kind, route, id: ctx.request_id(), ..peer.record() };
        return Recording::new(ctx, None, &mut record).settle(Cause::AccessDenied);
    }
    if tcp::is_too_soon(&newcomer.ctx, &newcomer.peer, route) {
        return;
    }
    let version = route.destinations.first().and_then(|way| way.target.config.send_proxy);
    let greeting = version.map(|version| newcomer.greeting(version, None, hello.name.as_deref()));
    let Newcomer { ctx, stream, peer, here, held, told } = newcomer;
    let beginning = tcp::TcpBeginning { early: held, greeting, told, place: Some(place), sni: hello.name };
    tcp::serve(ctx, stream, peer, here, beginning).await;
}

impl Newcomer {
    /// Reads once. `Ok(0)`: the client has ended.
    fn poll_more(&mut self, cx: &mut Context<'_>) -> Poll<std::io::Result<usize>> {
        self.ctx.buffers.poll_fill(&mut self.held, cx, &mut self.stream)
    }

    fn poll_hello(&mut self, reader: &mut HelloReader, cx: &mut Context<'_>) -> Poll<Said> {
        loop {
            let bytes = self.held.as_ref().map_or(&[][..], |held| held.data());
            match reader.read(bytes) {
                HelloRead::More => {}
                HelloRead::Whole(hello) => return Poll::Ready(Said::Hello(hello)),
                HelloRead::Fault(_) if bytes.first().is_some_and(|first| *first != HANDSHAKE) => {
                    return Poll::Ready(Said::Other);
                }
                HelloRead::Fault(fault) => return Poll::Ready(Said::Fault(fault)),
            }
            match ready!(self.poll_more(cx)) {
                Ok(1..) => {}
                Ok(0) => return Poll::Ready(Said::Gone("it has ended in the middle".to_owned())),
                Err(error) => return Poll::Ready(Said::Gone(error.to_string())),
            }
        }
    }
}
