//! TCP targets: pick, connect (next backend on failure), relay, record.

use std::cell::Cell;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use crate::message::proxy_header::ProxyHeader;
use crate::message::{Blame, Cause, Peer, PickNote, Record, RecordKind};
use crate::net::relay::{BytesMoved, Early, Relay, RelayEnd};
use crate::net::{Buffer, Stream, now};
use crate::snapshot::Listener;
use crate::targets::{Ask, Heard, Lease, Outcome, Target, hash_address};
use crate::tick::Tick;

use super::dial::{self, dial};
use super::lend::lend;
use super::presence::{Presence, Waiting};
use super::recording::Recording;
use super::tolls::is_too_soon;
use super::tunnels::{Leaving, TunnelKind};
use super::{Here, WorkerCtx};

/// The two connections of a relay. Unless both sides have ended, something on its way to one of them is not whole, and must
/// not look as if it were.
struct Ends {
    client: Stream,
    backend: Stream,
    ended: bool,
}

impl Drop for Ends {
    fn drop(&mut self) {
        if !self.ended {
            self.client.reset_on_close();
            self.backend.reset_on_close();
        }
    }
}

/// Whether a connection comes too soon after others, by the rate limits of its listener. One that does leaves its record, and is to be
/// closed.
pub fn comes_too_soon(ctx: &WorkerCtx, peer: &Peer, listener: &Listener) -> bool {
    let client = peer.client.map(|client| client.ip);
    let is_too_soon = is_too_soon(ctx, client, listener.door_rates());
    if is_too_soon {
        let route = listener.bytes_route().map(|route| route.id);
        let mut record = Record { kind: RecordKind::Tcp, id: ctx.request_id(), route, ..peer.record() };
        Recording::new(ctx, None, &mut record).settle(Cause::RateLimited);
    }
    is_too_soon
}

/// How a connection begins.
#[derive(Default)]
pub struct TcpBeginning {
    /// What was read of it.
    pub early: Option<Buffer>,
    /// What the one to its backend begins with; `None`: what its client says.
    pub greeting: Option<Rc<[u8]>>,
    /// What a balancer in front has told of it.
    pub told: Option<Rc<ProxyHeader>>,
    /// The place of the route that passes it through; `None`: it is the listener's one route for bytes.
    pub place: Option<usize>,
    /// The host that its client has asked for under TLS.
    pub sni: Option<Box<str>>,
}

/// Serves one accepted connection to its end.
pub async fn serve(ctx: Rc<WorkerCtx>, client: Stream, peer: Peer, listener: Here, beginning: TcpBeginning) {
    let TcpBeginning { early, greeting, told, place, sni } = beginning;
    let moved = BytesMoved::default();
    let mut record = Record { kind: RecordKind::Tcp, id: ctx.request_id(), ..peer.record() };
    let mut recording = Recording::told((&ctx, None, &mut record), told.as_ref());
    recording.count(&moved);
    if let Some(sni) = sni {
        recording.asks_for(sni);
    }
    let route = place.map_or_else(|| listener.bytes_route(), |place| listener.route_at(place));
    let Some(way) = route.and_then(|route| route.destinations.first()) else {
        return recording.settle(Cause::NoBackend);
    };
    if let (Some(route), true) = (route, place.is_some()) {
        recording.on(route);
    }
    recording.record.route = Some(way.id);
    let target = &way.target;
    recording.record.target = Some(target.id);
    recording.record.routed = now();
    let mut caller = Caller { stream: client, early };
    let half_closed = listener.config.client_timeouts.half_closed;
    let cause = match connect(&ctx, (target, greeting.as_deref()), &mut caller, half_closed, recording.record)
        .await
    {
        Ok((lease, backend)) => {
            let Caller { stream: client, early } = caller;
            let mut ends = Ends { client, backend, ended: false };
            let deadline = ctx.ticker.deadline();
            let idle = target.config.timeouts.tunnel;
            let early = Early { client: early, backend: None };
            let tunnel = ctx.tunnels.begin(lease.backend(), peer.listener, TunnelKind::Bytes);
            let mut relay = Relay::new(early, &ctx.buffers, &deadline, idle, &moved);
            let end = poll_fn(|cx| match relay.poll(cx, &mut ends.client, &mut ends.backend) {
                Poll::Ready(end) => Poll::Ready(Ok(end)),
                Poll::Pending => tunnel.poll_leave(cx).map(Err),
            })
            .await;
            drop(tunnel);
            ends.ended = matches!(end, Ok(RelayEnd::Closed));
            let silent = moved.down.get() == 0;
            if !silent {
                dial::accepted(lease.backend());
            }
            let (cause, outcome) = match end {
                Ok(RelayEnd::Closed) => (Cause::Done, Outcome::Success),
                Ok(RelayEnd::Idle) => (Cause::TunnelIdle, Outcome::Success),
                Err(Leaving { cause, .. }) => (cause, Outcome::Success),
                Ok(RelayEnd::Client(_)) => (Cause::ClientGone, Outcome::Neutral),
                Ok(RelayEnd::Backend(error)) => {
                    // Behind its first byte an alert says nothing about the handshake.
                    let refusal = if silent { dial::refusal(lease.backend(), &error) } else { None };
                    match refusal {
                        Some(cause) => (cause, Outcome::ConnectFailed),
                        None => (Cause::AnswerCut, Outcome::Failed),
                    }
                }
            };
            if let Some(attempt) = recording.record.last_attempt() {
                attempt.outcome = cause;
            }
            lease.finish(outcome, now());
            cause
        }
        Err(cause) => {
            ctx.cells.refusals.refuse(target.id, cause);
            // What was read of it was for nobody.
            if cause == Cause::ClientGone || caller.early.is_some() {
                caller.stream.reset_on_close();
            }
            cause
        }
    };
    if let Some(attempt) = recording.record.last_attempt() {
        attempt.end = now();
    }
    recording.settle(cause);
}

/// A client that waits for a backend, and what it has sent by now.
struct Caller {
    stream: Stream,
    early: Option<Buffer>,
}

async fn connect(
    ctx: &WorkerCtx,
    (target, greeting): (&Target, Option<&[u8]>),
    caller: &mut Caller,
    half_closed: Option<Duration>,
    record: &mut Record,
) -> Result<(Lease, Stream), Cause> {
    let (deadline, timer) = (ctx.ticker.deadline(), ctx.ticker.deadline());
    let presence = Presence::default();
    let mut gone = |cx: &mut Context<'_>| {
        let (stream, held) = (&mut caller.stream, &mut caller.early);
        presence.poll_gone(cx, Waiting { stream, held, buffers: &ctx.buffers, timer: &timer, half_closed })
    };
    let mut tried = crate::targets::Tried::new();
    let mut cause = Cause::NoBackend;
    let is_hash = target.config.balance.algorithm.is_hash();
    let key = record.client.filter(|_| is_hash).map(|client| hash_address(client.ip));
    // Not a byte was sent before a connection stands, so nothing is charged.
    let retries = target.config.resilience.retries.as_ref().filter(|retries| retries.on_connect);
    for _ in 0..retries.map_or(1, |retries| retries.attempts) {
        let ask = Ask { key, ..Ask::new(&tried, &ctx.chance, now()) };
        let lease = match lend(target, &ask, &deadline, &mut gone).await {
            Ok(lease) => lease,
            // Why the backends that were tried failed says more.
            Err(cause) if cause != Cause::ClientGone && !tried.is_empty() => break,
            Err(cause) => return Err(cause),
        };
        let attempt = record.attempt(lease.backend().id, lease.picked());
        attempt.pick = PickNote::new(lease.backend().taken(), lease.is_trial());
        let stood = Cell::new(Tick::ZERO);
        let how = (&deadline, greeting);
        let dialed = dial(ctx, lease.backend(), &target.config.timeouts, how, &stood, &mut gone).await;
        attempt.stood = stood.get();
        match dialed {
            Ok(stream) => {
                attempt.connected = now();
                lease.note_connected();
                lease.note_answer(Heard::GOOD, attempt.connected);
                return Ok((lease, stream));
            }
            Err(failure) => {
                (attempt.outcome, attempt.end) = (failure, now());
                cause = failure;
                tried.insert(lease.backend().id);
                let theirs = failure.blame() == Blame::Backend;
                lease.finish(if theirs { Outcome::ConnectFailed } else { Outcome::Neutral }, now());
                // Short of local ports we are towards this backend only.
                if !theirs && failure != Cause::NoLocalPort {
                    break;
                }
            }
        }
    }
    Err(cause)
}
