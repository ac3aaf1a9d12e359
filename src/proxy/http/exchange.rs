//! THE PIPELINE: one request from its head to the last byte of its answer. There is no other.
//!
//! Reads as the list of what happens: record → route → access → cache (later) → forward → answer. Each
//! step continues or answers. It sees heads and bodies and never a socket, so whatever protocol the client
//! speaks, what is decided here is decided alike.

use std::cell::Cell;
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use crate::config::model::RouteConfig;
use crate::message::{Cause, Head, HeaderField, Peer, Record, RecordKind, Version, tokens};
use crate::net::relay::{BytesMoved, RelayEnd};
use crate::net::{Stream, now};
use crate::proxy::WorkerCtx;
use crate::proxy::recording::Recording;
use crate::proxy::tunnels::{TunnelEnd, TunnelKind};
use crate::snapshot::{Destination, Listener};
use crate::targets::{Outcome, Target};
use crate::tick::Tick;

use super::after::After;
use super::answer_body::AnswerBody;
use super::call::Call;
use super::client::Secured;
use super::edge::{Edge, Unsent};
use super::forward::forward;
use super::forward::forwarding::{Effort, Forwarding};
use super::gate::blocked::{is_kept_out, keep_out};
use super::gate::{Asking, Denial};
use super::h1::write::About;
use super::hash_key::{self, Sender, hash_key};
use super::identity;
use super::mirror::{self, Original};
use super::reply::Reply;
use super::request_body::RequestBody;
use super::routing::answers::{answer_here, deny, refuse};
use super::routing::found::denied_by_listener;
use super::routing::protected::protected;
use super::routing::way::{Way, Wayfarer};
use super::routing::{Routed, routed};
use super::sticky;

/// A request that has just been read.
pub struct IncomingRequest<'a> {
    /// The worker that serves it.
    pub ctx: &'a Rc<WorkerCtx>,
    /// Where it came in.
    pub listener: &'a Listener,
    /// Its head.
    pub head: &'a Head,
    /// Who asks.
    pub peer: &'a Peer,
    /// Its first byte came.
    pub started: Tick,
    /// Its head was complete.
    pub head_read: Tick,
}

impl<'a> IncomingRequest<'a> {
    /// Begins what becomes of it.
    pub fn recording(&self, record: &'a mut Record) -> Recording<'a> {
        self.peer.begin(record);
        record.started = self.started;
        record.head_read = self.head_read;
        record.listener = self.listener.id;
        Recording::new(self.ctx, Some(self.head), record)
    }
}

/// Memory of one exchange that serves the next one.
#[derive(Default)]
pub struct Space {
    /// The answer's head.
    pub answer: Head,
    /// What happens.
    pub record: Record,
}

/// Serves one request.
///
/// What few requests need is boxed, so that the others do not carry its size about.
pub async fn exchange<E: Edge>(
    request: &IncomingRequest<'_>,
    edge: &mut E,
    body: &RequestBody,
    space: &mut Space,
) -> After {
    let &IncomingRequest { ctx, listener, head, .. } = request;
    let Space { answer, record } = space;
    let moved = BytesMoved::default();
    let mut recording = request.recording(record);
    recording.count(&moved);
    let _upload = Upload { body, moved: &moved };
    let client = request.peer.client.map(|client| client.ip);
    let trusted = client.is_some_and(|address| listener.trusts(address));
    let given = if trusted { head.value(HeaderField::XRequestId).and_then(request_number) } else { None };
    recording.record.id = given.unwrap_or_else(|| ctx.request_id());
    let sender = Sender { peer: client, trusted, kind: listener.config.forwarded };
    if is_kept_out(ctx, listener, head, sender, &mut recording) {
        return Box::pin(keep_out(ctx, edge, &mut recording, head, trusted)).await;
    }
    if head.method() == b"CONNECT" {
        return Box::pin(refuse(ctx, edge, &mut recording, head, None, Cause::ConnectMethod)).await;
    }
    // Nothing was waited for since.
    recording.record.routed = request.head_read;
    let (destination, way) = match listener.straight() {
        Some((route, destination)) => match denied_by_listener(listener, head, sender) {
            None => (destination, Way::plain(route)),
            Some(denied) => {
                let denial = Denial::by_address(denied.rule);
                return Box::pin(deny(ctx, edge, &mut recording, head, None, denial)).await;
            }
        },
        None => {
            let from = Wayfarer { ctx, listener, head, sender, secured: edge.secured() };
            let found = match routed(from, recording.record) {
                Routed::Ask(way) => Box::pin(ask(request, edge, &mut recording, way, sender)).await,
                found => found,
            };
            match found {
                Routed::Forward(destination, way) => {
                    recording.on(&way.route.name);
                    if let Some(target) = &way.route.mirror {
                        let id = recording.record.id;
                        mirror_to(request, edge, body, (&way, destination), target, (sender, id));
                    }
                    (destination, way)
                }
                own => return Box::pin(answer_here(ctx, edge, &mut recording, head, own)).await,
            }
        }
    };
    let (route, Destination { target, rules }) = (way.route, destination);
    recording.record.target = Some(target.id);
    if !matches!(body, RequestBody::Empty) && !body.limit(route.body) {
        return Box::pin(refuse(ctx, edge, &mut recording, head, Some(&way), Cause::BodyTooLarge)).await;
    }
    if let Some(idle) = route.config.own.idle {
        edge.set_idle(idle);
    }

    let key = if target.config.balance.algorithm.is_hash() {
        // Nobody need look a second time for whom a trusted proxy speaks.
        let told =
            recording.listed_for().map(|client| Sender { peer: Some(client), trusted: false, ..sender });
        let sender = told.unwrap_or(sender);
        hash_key(&rules.hash_key, way.asked(head), sender, |address| listener.trusts(address))
    } else {
        None
    };
    let secured = edge.secured();
    let cookie = sticky::pin(target, head);
    let owner = edge.owner().and_then(Cell::get);
    let own = owner.and_then(|owner| identity::pin(&ctx.pool, target, owner, cookie));
    let mut forwarding = Forwarding {
        ctx,
        target,
        rules,
        keep: identity::keep(head, &ctx.pool, edge.owner()),
        edge: &mut *edge,
        head: way.head(head),
        body,
        key,
        pin: own.as_ref().or(cookie),
        upgrade: wanted_upgrade(head, &rules.upgrade),
        about: about(listener, head, sender, secured.as_deref(), recording.record.id),
        edits: way.request_edits(),
        answer: &mut *answer,
        record: &mut *recording.record,
        effort: Effort::default(),
    };
    let forwarded = forward(&mut forwarding).await;
    if let (Some(pins), Ok(call)) = (&target.pins, &forwarded) {
        sticky::tell(forwarding.answer, pins, cookie, call.backend(), secured.is_some());
    }
    if let Ok(call) = &forwarded {
        way.edit_answer(forwarding.answer, &call.backend().name);
    }
    let after = match forwarded {
        Ok(call) if answer.status == 101 => {
            let idle = rules.timeouts.tunnel;
            Box::pin(tunnel(request, edge, answer, call, idle, &mut recording, &moved)).await
        }
        Ok(call) => {
            recording.record.status = answer.status;
            let mut reply = Download { body: AnswerBody::Reply(Reply::new(call)), moved: &moved };
            match edge.answer(answer, &mut reply.body, false).await {
                Ok(after) => {
                    recording.settle(Cause::Done);
                    after
                }
                Err(unsent) => {
                    drop(reply);
                    Box::pin(give_up((ctx, &way), edge, &mut recording, head, &moved, unsent)).await
                }
            }
        }
        Err(cause) => Box::pin(refuse(ctx, edge, &mut recording, head, Some(&way), cause)).await,
    };
    let now = now();
    recording.record.done = now;
    if let Some(attempt) = recording.record.last_attempt() {
        attempt.end = now;
    }
    after
}

/// Asks the client of a request who it is, and tells what becomes of it then.
async fn ask<'a, E: Edge>(
    request: &IncomingRequest<'a>,
    edge: &mut E,
    recording: &mut Recording<'a>,
    way: Way<'a>,
    sender: Sender,
) -> Routed<'a> {
    let &IncomingRequest { ctx, listener, head, .. } = request;
    let secured = edge.secured();
    let about = about(listener, head, sender, secured.as_deref(), recording.record.id);
    let (client, uri) = (way.client(), way.uri());
    let asking = Asking { ctx, listener, head, uri: &uri, sender, client, about };
    protected(&asking, edge, recording, way).await
}

/// What backends are told about the client.
#[inline(always)]
fn about<'a>(
    listener: &Listener,
    head: &Head,
    sender: Sender,
    secured: Option<&'a Secured>,
    id: u128,
) -> About<'a> {
    About {
        kind: listener.config.forwarded,
        client: sender.peer,
        trusted: sender.trusted,
        real_ip: if listener.config.x_real_ip { real_ip(listener, head, sender) } else { None },
        scheme: if secured.is_some() { "https" } else { "http" },
        certificate: secured.map_or(&[], |secured| &*secured.certificate),
        id,
        retry: 0,
    }
}

/// Has a request copied for `target` if its route wants that now. What it becomes depends on none of this.
#[inline(never)]
fn mirror_to<E: Edge>(
    request: &IncomingRequest<'_>,
    edge: &E,
    body: &RequestBody,
    (way, destination): (&Way<'_>, &Destination),
    target: &Arc<Target>,
    (sender, id): (Sender, u128),
) {
    let &IncomingRequest { ctx, listener, head, .. } = request;
    let RouteConfig { mirror, own, name, .. } = &*way.route.config;
    if !mirror.as_ref().is_some_and(|mirror| mirror::is_wanted(ctx, mirror.share))
        || mirror::is_copy(head)
        || wanted_upgrade(head, &destination.rules.upgrade).is_some()
        || !body.limit(way.route.body)
    {
        return;
    }
    let balance = &target.config.balance;
    let key = if balance.algorithm.is_hash() {
        let of = own.hash_key.as_ref().unwrap_or(&balance.hash_key);
        hash_key(of, head, sender, |address| listener.trusts(address))
    } else {
        None
    };
    let secured = edge.secured();
    mirror::copy(&Original {
        ctx,
        target,
        names: [&listener.config.name, name],
        head: way.head(head),
        edits: way.request_edits(),
        body,
        about: about(listener, head, sender, secured.as_deref(), id),
        key,
    });
}

/// The number in a request id of 32 hex digits, with the dashes of a UUID or without.
fn request_number(text: &[u8]) -> Option<u128> {
    // A digit and a dash, and so on.
    if text.len() > 64 {
        return None;
    }
    let digits: Vec<u8> = text.iter().copied().filter(|&byte| byte != b'-').collect();
    let plain = digits.len() == 32 && digits.iter().all(u8::is_ascii_hexdigit);
    let digits = std::str::from_utf8(&digits).ok().filter(|_| plain)?;
    u128::from_str_radix(digits, 16).ok()
}

/// The protocol that the client asks to switch to, if it is one that we pass on. HTTP/1.0 can't ask (RFC 9110
/// §7.8).
fn wanted_upgrade<'a>(head: &'a Head, allowed: &[String]) -> Option<&'a [u8]> {
    if head.version == Version::Http10
        || !head.has_hop_by_hop()
        || !head.lists(HeaderField::Connection, b"upgrade")
    {
        return None;
    }
    let offered = head.values(HeaderField::Upgrade).flat_map(tokens);
    offered.into_iter().find(|name| allowed.iter().any(|known| name.eq_ignore_ascii_case(known.as_bytes())))
}

/// Ends an exchange whose answer could not be sent to its end.
async fn give_up<E: Edge>(
    (ctx, way): (&WorkerCtx, &Way<'_>),
    edge: &mut E,
    recording: &mut Recording<'_>,
    head: &Head,
    moved: &BytesMoved,
    unsent: Unsent,
) -> After {
    let Unsent { cause, started } = unsent;
    if let Some(attempt) = recording.record.last_attempt() {
        attempt.outcome = cause;
    }
    if !started && !matches!(cause, Cause::ClientGone | Cause::ClientStalled) {
        // Not a byte is out: the client can still be told.
        moved.down.set(0);
        return refuse(ctx, edge, recording, head, Some(way), cause).await;
    }
    recording.settle(cause);
    After::Abort
}

/// Serves what a 101 has made of the connection.
async fn tunnel<E: Edge>(
    request: &IncomingRequest<'_>,
    edge: &mut E,
    answer: &Head,
    call: Box<Call>,
    idle: Duration,
    recording: &mut Recording<'_>,
    moved: &BytesMoved,
) -> After {
    let (backend, early, lease) = call.into_tunnel();
    let mut far = Far { backend, ended: false };
    recording.record.kind = RecordKind::Upgrade;
    recording.record.status = answer.status;
    let protocol = answer.value(HeaderField::Upgrade).unwrap_or_default();
    let is_websocket = protocol.eq_ignore_ascii_case(b"websocket");
    let kind = if is_websocket { TunnelKind::WebSocket } else { TunnelKind::Bytes };
    let listed = request.ctx.tunnels.begin(lease.backend(), request.listener.id, kind);
    let end = edge.tunnel(answer, &mut far.backend, early, idle, moved, &listed).await;
    drop(listed);
    far.ended = matches!(end, TunnelEnd::Relayed(RelayEnd::Closed) | TunnelEnd::Left { backend: true, .. });
    lease.finish(Outcome::Success, now());
    close_tunnel(recording, &end)
}

fn close_tunnel(recording: &mut Recording<'_>, end: &TunnelEnd) -> After {
    let (cause, after) = match end {
        TunnelEnd::Relayed(RelayEnd::Closed) => (Cause::Done, After::Linger),
        // As if it were cut: what was to come may have been half of something.
        TunnelEnd::Relayed(RelayEnd::Idle) => (Cause::TunnelIdle, After::Abort),
        TunnelEnd::Relayed(RelayEnd::Client(_)) => (Cause::ClientGone, After::Abort),
        TunnelEnd::Relayed(RelayEnd::Backend(_)) => (Cause::AnswerCut, After::Abort),
        // It has had its time to answer.
        TunnelEnd::Left { cause, client: true, .. } => (*cause, After::Close),
        TunnelEnd::Left { cause, client: false, .. } => (*cause, After::Abort),
    };
    if let Some(attempt) = recording.record.last_attempt() {
        attempt.outcome = cause;
    }
    recording.settle(cause);
    after
}

/// The backend's side of a tunnel. One that is cut, by silence, by the client's failure or by the end of the process, must not
/// look as if it had ended.
struct Far {
    backend: Stream,
    ended: bool,
}

impl Drop for Far {
    fn drop(&mut self) {
        if !self.ended {
            self.backend.reset_on_close();
        }
    }
}

/// Counts what was read of a request's body, on every way out of an exchange.
struct Upload<'a> {
    body: &'a RequestBody,
    moved: &'a BytesMoved,
}

impl Drop for Upload<'_> {
    fn drop(&mut self) {
        self.moved.up.set(self.moved.up.get() + self.body.content());
    }
}

/// An answer's body that is counted, on every way out of an exchange.
struct Download<'a> {
    body: AnswerBody,
    moved: &'a BytesMoved,
}

impl Drop for Download<'_> {
    fn drop(&mut self) {
        self.moved.down.set(self.body.content());
    }
}

/// The client's own address, as far as trusted proxies tell it.
#[cold]
fn real_ip(listener: &Listener, head: &Head, sender: Sender) -> Option<IpAddr> {
    hash_key::client(head, sender, |address| listener.trusts(address))
}
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_id_is_a_number_with_or_without_dashes() {
        assert_eq!(request_number(b"000000000000000000000000000000Ab"), Some(0xab));
        assert_eq!(request_number(b"00000000-0000-0000-0000-0000000000ab"), Some(0xab));
        for other in [
            &b""[..],
            b"ab",
            b"+00000000000000000000000000000ab",
            b"000000000000000000000000000000xy",
            b"\xff",
        ] {
            assert_eq!(request_number(other), None, "{other:?}");
        }
    }
}
