//! What a client asks for under TLS, heard before there is a session: by that its connection is passed through as it is, or served here.

use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use rustls::ServerConfig;

use crate::config::model::Protocol;
use crate::events;
use crate::message::{Cause, Record, RecordKind};
use crate::net::{Deadline, now};
use crate::proxy::DRAIN_SILENCE;
use crate::proxy::recording::Recording;
use crate::proxy::tcp::TcpBeginning;
use crate::proxy::tolls::is_too_soon;
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
    /// It took too long.
    Late,
}

/// What becomes of a connection.
pub(super) enum HeardHello {
    /// It is decrypted here.
    Here(Newcomer),
    /// It is passed on, and begins like this.
    Through(Newcomer, TcpBeginning),
    /// An authority asks whether the name is ours, and sees that in this session.
    Prove(Newcomer, Arc<ServerConfig>),
}

/// Hears what the client asks for, within `deadline`. `None`: the connection is over, and what could be said and recorded of that was.
pub(super) async fn hear(mut newcomer: Newcomer, deadline: &Deadline) -> Option<HeardHello> {
    let malformed =
        |fault: HelloFault| (Unserved::told(Cause::TlsHandshake, DECODE_ERROR), fault.to_string());
    let (end, why) = match newcomer.listen(deadline).await? {
        Said::Hello(hello) => {
            let client = newcomer.peer.client.map(|client| client.ip);
            match newcomer.here.find_hello(hello.name.as_deref(), &hello.protocols, client) {
                HelloVerdict::Here => {
                    let proofs = &newcomer.ctx.proofs;
                    return Some(match proofs.session_for(hello.name.as_deref(), &hello.protocols) {
                        Some(session) => HeardHello::Prove(newcomer, session),
                        None => HeardHello::Here(newcomer),
                    });
                }
                HelloVerdict::Through(place) => {
                    let beginning = pass_on(&mut newcomer, place, hello.name)?;
                    return Some(HeardHello::Through(newcomer, beginning));
                }
                HelloVerdict::Nowhere => {
                    let why = format!("it asks for {}", hello.name.as_deref().unwrap_or("no name"));
                    let end = Unserved::told(Cause::UnknownSni, UNRECOGNIZED_NAME);
                    (Unserved { name: hello.name, ..end }, why)
                }
            }
        }
        Said::Other => {
            // Whatever else may come before a hello is nobody's here: behind it would be a name that nobody has looked at.
            newcomer = turn_away_others(newcomer).await?;
            malformed(HelloFault::Record)
        }
        Said::Fault(fault) => malformed(fault),
        Said::Gone(why) => (Unserved { cause: Cause::ClientGone, name: None, alert: None }, why),
        Said::Late => (Unserved { cause: Cause::TlsTimeout, name: None, alert: None }, String::new()),
    };
    end.finish(newcomer, &why, deadline).await;
    None
}

/// A connection that nobody serves.
struct Unserved {
    cause: Cause,
    /// What its client asks for.
    name: Option<Box<str>>,
    /// What it is told.
    alert: Option<u8>,
}

impl Unserved {
    /// One that is told why.
    fn told(cause: Cause, alert: u8) -> Unserved {
        Unserved { cause, name: None, alert: Some(alert) }
    }

    /// Records it and ends it.
    async fn finish(self, newcomer: Newcomer, why: &str, deadline: &Deadline) {
        let Unserved { cause, name, alert } = self;
        let Newcomer { ctx, mut stream, peer, here, held, told } = newcomer;
        drop(held);
        // Where nothing is decrypted nothing was ever to be HTTP.
        let is_bytes = here.config.protocol == Protocol::Tcp || here.tls.is_none();
        let kind = if is_bytes { RecordKind::Tcp } else { RecordKind::Http };
        let mut record = Record { kind, id: ctx.request_id(), ..peer.record() };
        let mut recording = Recording::told((&ctx, None, &mut record), told.as_ref());
        if let Some(name) = name {
            recording.asks_for(name);
        }
        recording.settle(cause);
        drop(recording);
        if cause == Cause::ClientGone {
            ctx.cells.ends.fail_unrecorded(peer.listener);
        }
        let client = peer.client.map(|client| client.ip);
        events::handshake_failed(&here.config.name, client, cause.token(), why);
        if let Some(alert) = alert {
            let [kind, major, minor, high, low, fatal] = ALERT;
            // The first words on a connection always find room.
            stream.dismiss(&[kind, major, minor, high, low, fatal, alert]);
            linger(deadline, |cx, space| stream.poll_read(cx, space)).await;
        }
    }
}

/// How the connection begins that the route at this place passes on; `None`: its client may not have it, which was recorded.
fn pass_on(newcomer: &mut Newcomer, place: usize, name: Option<Box<str>>) -> Option<TcpBeginning> {
    let Newcomer { ctx, peer, here, told, .. } = &*newcomer;
    let route = here.route_at(place)?;
    let client = peer.client.map(|client| client.ip);
    // Balancers that find out whether we are there come for nobody.
    let is_probe = told.as_ref().is_some_and(|told| told.is_local);
    // A trusted proxy was asked of denials alone, since its requests tell whose they are; this one has none.
    let denied = || here.access.refusal(client).or_else(|| route.access.refusal(client));
    let refusal = if is_probe {
        None
    } else if let Some(rule) = denied() {
        rule.count_refusal();
        Some(Cause::AccessDenied)
    } else {
        is_too_soon(ctx, peer.client.map(|client| client.ip), &route.rates).then_some(Cause::RateLimited)
    };
    if let Some(cause) = refusal {
        let mut record = Record { kind: RecordKind::Tcp, id: ctx.request_id(), ..peer.record() };
        let mut recording = Recording::told((ctx, None, &mut record), told.as_ref());
        recording.on(route);
        if let Some(name) = name {
            recording.asks_for(name);
        }
        recording.settle(cause);
        return None;
    }
    let version = route.destinations.first().and_then(|way| way.target.config.send_proxy);
    let greeting = version.map(|version| newcomer.greeting(version, None, name.as_deref()));
    let (early, told) = (newcomer.held.take(), newcomer.told.take());
    Some(TcpBeginning { early, greeting, told, place: Some(place), sni: name })
}

impl Newcomer {
    /// Hears what the client says first; `None`: nothing.
    async fn listen(&mut self, deadline: &Deadline) -> Option<Said> {
        let (ctx, id) = (Rc::clone(&self.ctx), self.peer.listener);
        let patience = self.here.config.client_timeouts.tls;
        if self.held.is_none() {
            // Who connects and says nothing leaves no record, with TLS or without.
            let silence = DRAIN_SILENCE.min(patience);
            let first = in_time(&ctx, id, deadline, silence, |cx| self.poll_more(cx)).await?;
            if !matches!(first, Ok(1..)) {
                return None;
            }
        }
        self.peer.greeted = now();
        let mut reader = HelloReader::default();
        let handshake = DRAIN_HANDSHAKE.min(patience);
        let said = in_time(&ctx, id, deadline, handshake, |cx| self.poll_hello(&mut reader, cx)).await;
        Some(said.unwrap_or(Said::Late))
    }

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
