//! THE PIPELINE: one request from its head to the last byte of its answer. There is no other.
//!
//! Reads as the list of what happens: record → route → access → cache → forward → answer. Each
//! step continues or answers. It sees heads and bodies and never a socket, so whatever protocol the client
//! speaks, what is decided here is decided alike.

use std::cell::Cell;
use std::pin::Pin;
use std::time::Duration;

use crate::cache::KnownClient;
use crate::config::model::GrpcStatus;
use crate::message::{CacheNote, Cause, Head, HeaderField, Record, RecordKind, grpc};
use crate::net::now;
use crate::net::relay::{BytesMoved, RelayEnd};
use crate::proxy::WorkerCtx;
use crate::proxy::recording::Recording;
use crate::proxy::tunnels::{TunnelEnd, TunnelKind};
use crate::snapshot::{Destination, RouteCache};
use crate::targets::Outcome;

use super::after::After;
use super::answer_body::AnswerBody;
use super::body::BodySource as _;
use super::cached::change::invalidate;
use super::cached::recent::{RecalledAnswer, recall, remember};
use super::cached::{self, AnswerGiven, CacheAsking, CacheBegun, Cacheable};
use super::call::Call;
use super::compressed::answer::compressed;
use super::edge::{Edge, Unsent};
use super::forward::forward;
use super::forward::forwarding::{Effort, Forwarding};
use super::gate::blocked::is_kept_out;
use super::hash_key::Sender;
use super::identity;
use super::incoming::{about, says_https, told_host, wanted_upgrade};
use super::own;
use super::reply::Reply;
use super::request_body::RequestBody;
use super::routing::answers::refuse;
use super::routing::onset::{Onset, begin, otherwise};
use super::routing::way::Way;
use super::sticky;

pub use super::incoming::IncomingRequest;

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
/// What few requests need is put `aside`, so that the others carry neither its size nor its steps about.
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
    let sender = &request.sender();
    recording.record.id = request.id(sender);
    ctx.begin_trace(recording.record, head, sender.trusted);
    // Nothing was waited for since.
    recording.record.routed = request.head_read;
    let refused = if is_kept_out(ctx, listener, head, sender, &mut recording) {
        Some(Cause::Blocked)
    } else if head.method() == b"CONNECT" {
        Some(Cause::ConnectMethod)
    } else {
        None
    };
    let mut recalled = None;
    // A proof comes before all that routes and caches know.
    let may_prove = ctx.proofs.has_answers();
    let (destination, way) = match listener.straight() {
        Some((route, destination)) if refused.is_none() && listener.access.is_empty() && !may_prove => {
            (destination, Way::plain(route))
        }
        _ => {
            if listener.has_caches() && refused.is_none() && !may_prove {
                recalled = recall(request, sender, !matches!(body, RequestBody::Empty));
            }
            match &recalled {
                Some(RecalledAnswer { route, destination, .. }) => {
                    recording.on(route);
                    (*destination, Way::plain(route))
                }
                None => match begin(request, edge, body, &mut recording, sender, refused) {
                    Onset::Onward(destination, way) => (destination, way),
                    Onset::Otherwise(found) => {
                        let settled = otherwise(request, edge, body, &mut recording, sender, found);
                        match aside(settled).await {
                            Ok(onward) => onward,
                            Err(after) => return after,
                        }
                    }
                },
            }
        }
    };
    let (route, Destination { target, rules, .. }) = (way.route, destination);
    recording.record.route = Some(destination.id);
    recording.record.target = Some(target.id);
    if !matches!(body, RequestBody::Empty) && !body.limit(route.body) {
        return aside(refuse(ctx, edge, &mut recording, head, Some(&way), Cause::BodyTooLarge)).await;
    }
    if let Some(idle) = route.config.own.idle {
        edge.set_idle(idle);
    }

    // The head of an answer that others got as well.
    let mut same = None;
    let given = 'given: {
        let mut asking = None;
        if let Some(cache) = &route.cache {
            if let Some(RecalledAnswer { head, body, .. }) = recalled {
                recording.record.cache = Some(CacheNote::Hit);
                same = Some(head);
                break 'given Ok(AnswerGiven::Body(AnswerBody::Stored(body)));
            }
            let cacheable = cacheable((request, sender, body), edge, (&way, destination), cache);
            match begin_cached(&cacheable, &mut recording, answer) {
                Begun::Given(given) => break 'given given,
                Begun::Asks(mut begun) => {
                    match aside(prepare_cached(&mut begun, &cacheable, edge, &mut recording, answer)).await {
                        Ok(None) => asking = Some((begun, cacheable)),
                        Ok(Some(stored)) => break 'given Ok(AnswerGiven::Body(stored)),
                        Err(cause) => break 'given Err(cause),
                    }
                }
            }
        }
        loop {
            let is_hashed = target.config.balance.algorithm.is_hash();
            let secured = edge.secured();
            let owner = edge.owner().and_then(Cell::get);
            let cookie = sticky::pin(target, head);
            let own = owner.and_then(|owner| identity::pin(&ctx.pool, target, owner, cookie));
            let came = way.head(head);
            let mut forwarding = Forwarding {
                ctx,
                target,
                rules,
                keep: identity::keep(head, &ctx.pool, edge.owner()),
                edge: &mut *edge,
                head: asking.as_ref().map_or(came, |(asking, _)| asking.head(came)),
                body,
                key: if is_hashed { request.key(rules, &way, sender, &recording) } else { None },
                pin: own.as_ref().or(cookie),
                upgrade: wanted_upgrade(head, &rules.upgrade),
                about: about(request, sender, secured.as_deref(), recording.record),
                edits: way.request_edits(),
                answer: &mut *answer,
                ready: asking.as_ref().map_or(recording.record.routed, |(asking, _)| asking.asked()),
                record: &mut *recording.record,
                effort: Effort::default(),
            };
            if let Some((asking, _)) = &asking {
                forwarding.effort.is_once = asking.has_taken_over();
            }
            let outcome = forward(&mut forwarding).await;
            let Some((asking, cacheable)) = &mut asking else { break outcome.map(AnswerGiven::Call) };
            if let Some(given) = settle_cached(asking, cacheable, &mut recording, outcome, answer) {
                break given;
            }
        }
    };
    if let Ok(AnswerGiven::Call(call)) = &given {
        if ctx.store.is_used() && !matches!(head.method(), b"GET" | b"HEAD") {
            invalidate(request, (edge.secured().is_some(), sender), &way, answer);
        }
        if let Some(pins) = &target.pins {
            let cookie = sticky::pin(target, head);
            sticky::tell(answer, pins, cookie, call.backend(), edge.secured().is_some());
        }
        way.edit_answer(answer, &call.backend().name);
    }
    let after = match given {
        Ok(AnswerGiven::Call(call)) if answer.status == 101 => {
            let idle = rules.timeouts.tunnel;
            aside(tunnel(request, edge, answer, call, idle, &mut recording, &moved)).await
        }
        Ok(given) => {
            let body = match given {
                AnswerGiven::Call(call) => AnswerBody::Reply(Reply::new(call)),
                AnswerGiven::Body(body) => body,
            };
            let mut reply = Download { body, moved: &moved };
            if let Some(policy) = &route.config.compress {
                let body = std::mem::replace(&mut reply.body, AnswerBody::Empty);
                reply.body = compressed(ctx, policy, head, answer, body);
            }
            let answer = same.as_deref().unwrap_or(answer);
            recording.record.status = answer.status;
            match edge.answer(answer, &mut reply.body, false).await {
                Ok(after) => {
                    if target.config.upstream.is_grpc() {
                        recording.record.grpc = ended_with(answer, &reply.body);
                    }
                    recording.settle(Cause::Done);
                    after
                }
                Err(unsent) => {
                    drop(reply);
                    let heads = (head, answer);
                    aside(give_up((ctx, &way), edge, &mut recording, heads, &moved, unsent)).await
                }
            }
        }
        Err(cause) => aside(refuse(ctx, edge, &mut recording, head, Some(&way), cause)).await,
    };
    let now = now();
    recording.record.done = now;
    if let Some(attempt) = recording.record.last_attempt() {
        attempt.end = now;
    }
    after
}

/// What a call of gRPC has ended with; `None`: it was none, or nobody has said.
#[inline(never)]
fn ended_with(answer: &Head, body: &AnswerBody) -> Option<GrpcStatus> {
    GrpcStatus::of_head(answer).or_else(|| GrpcStatus::of_trailers(&body.trailers()))
}

/// A request on a route with a cache.
fn cacheable<'x, 'a, E: Edge>(
    (request, sender, body): (&'x IncomingRequest<'a>, &Sender, &RequestBody),
    edge: &E,
    (way, destination): (&'x Way<'a>, &'a Destination),
    cache: &'x RouteCache,
) -> Cacheable<'x, 'a> {
    let secured = edge.secured();
    let has_certificate = secured.as_ref().is_some_and(|secured| secured.facts.is_some());
    let is_known = has_certificate || way.route.auth.is_some();
    Cacheable {
        request,
        cache,
        way,
        destination,
        is_https: secured.is_some() || sender.trusted && says_https(request.head),
        is_trusted: sender.trusted,
        told_host: if sender.trusted { told_host(request.head) } else { b"" },
        known: if is_known { KnownClient::Yes } else { KnownClient::No },
        has_body: !matches!(body, RequestBody::Empty),
    }
}

/// What becomes of a request on a route with a cache, as far as that is known at once.
enum Begun {
    /// Its answer, or why there is none.
    Given(Result<AnswerGiven, Cause>),
    /// The backend has to be asked.
    Asks(Box<CacheAsking>),
}

/// Looks whether an answer is stored.
#[inline(never)]
fn begin_cached(cacheable: &Cacheable<'_, '_>, recording: &mut Recording<'_>, answer: &mut Head) -> Begun {
    let begun = cached::begin(cacheable, answer);
    Begun::Given(match begun {
        CacheBegun::Asks(asking) => return Begun::Asks(asking),
        CacheBegun::Refused(cause) => Err(cause),
        CacheBegun::Served(body, note, alike) => {
            recording.record.cache = Some(note);
            cacheable.way.edit_answer(answer, "");
            if let Some(alike) = alike {
                remember(cacheable.request, *alike, answer);
            }
            Ok(AnswerGiven::Body(body))
        }
    })
}

/// Makes a request ready for which the backend has to be asked, or gives another's answer.
async fn prepare_cached<E: Edge>(
    asking: &mut CacheAsking,
    cacheable: &Cacheable<'_, '_>,
    edge: &mut E,
    recording: &mut Recording<'_>,
    answer: &mut Head,
) -> Result<Option<AnswerBody>, Cause> {
    let given = asking.prepare(cacheable, answer, |cx| edge.poll_gone(cx)).await;
    recording.record.cache = asking.note();
    if let Ok(Some(_)) = &given {
        cacheable.way.edit_answer(answer, "");
    }
    given
}

/// What becomes of what the backend has said. `None`: it is asked once more.
#[cold]
#[inline(never)]
fn settle_cached(
    asking: &mut CacheAsking,
    cacheable: &Cacheable<'_, '_>,
    recording: &mut Recording<'_>,
    outcome: Result<Box<Call>, Cause>,
    answer: &mut Head,
) -> Option<Result<AnswerGiven, Cause>> {
    let given = asking.settle(cacheable, (outcome, recording.record.sends()), answer);
    recording.record.cache = asking.note();
    if let Some(Ok(AnswerGiven::Body(_))) = &given {
        cacheable.way.edit_answer(answer, "");
    }
    given
}

/// Puts aside what few requests wait for.
#[cold]
#[inline(never)]
fn aside<'f, T>(future: impl Future<Output = T> + 'f) -> Pin<Box<dyn Future<Output = T> + 'f>> {
    Box::pin(future)
}

/// Ends an exchange whose answer could not be sent to its end.
async fn give_up<E: Edge>(
    (ctx, way): (&WorkerCtx, &Way<'_>),
    edge: &mut E,
    recording: &mut Recording<'_>,
    (head, answer): (&Head, &Head),
    moved: &BytesMoved,
    unsent: Unsent,
) -> After {
    let Unsent { cause, started } = unsent;
    if let Some(attempt) = recording.record.last_attempt() {
        attempt.outcome = cause;
    }
    let is_there = !matches!(cause, Cause::ClientGone | Cause::ClientStalled);
    if !started && is_there {
        // Not a byte is out: the client can still be told.
        moved.down.set(0);
        return refuse(ctx, edge, recording, head, Some(way), cause).await;
    }
    recording.settle(cause);
    if is_there && grpc::is_grpc(head) && grpc::is_grpc(answer) {
        // A call has a place behind its messages to say so.
        let (trailers, ended) = own::call_trailers((cause, own::status_of(cause)), recording.record.id);
        if edge.end_call(&trailers) {
            recording.record.grpc = Some(ended);
            return After::KeepOpen;
        }
    }
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
    let Some((lease, mut far)) = call.into_tunnel() else {
        // Its answers have no 101.
        recording.settle(Cause::Internal);
        return After::Abort;
    };
    recording.record.kind = RecordKind::Upgrade;
    recording.record.status = answer.status;
    let protocol = answer.value(HeaderField::Upgrade).unwrap_or_default();
    let is_websocket = protocol.eq_ignore_ascii_case(b"websocket");
    let kind = if is_websocket { TunnelKind::WebSocket } else { TunnelKind::Bytes };
    let listed = request.ctx.tunnels.begin(lease.backend(), request.listener.id, kind);
    let end = edge.tunnel(answer, &mut far, idle, moved, &listed).await;
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
