//! Asking again for what was just sent stale (RFC 5861 §3): by one at a time, for whom no client waits.

use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;

use crate::cache::store::{Entrance, FlightLead, Object};
use crate::cache::{
    Arrival, AskedBy, CacheKey, CacheRequest, KnownClient, conditions, freshen, is_backend_error,
    is_condition,
};
use crate::config::model::Forwarded;
use crate::message::{Cause, ClientAddress, Head, Record};
use crate::net::now;
use crate::proxy::http::call::Call;
use crate::proxy::http::forward::forward;
use crate::proxy::http::forward::forwarding::{Effort, Forwarding};
use crate::proxy::http::h1::edit::RequestEdits;
use crate::proxy::http::h1::write::About;
use crate::proxy::http::memory::MemoryEdge;
use crate::proxy::http::request_body::RequestBody;
use crate::proxy::pool::Keep;
use crate::proxy::{Here, WorkerCtx};

use super::cacheable::Cacheable;
use super::keep::{Keeping, keep, length, may_keep};
use super::sent::selected;

/// What is asked for once more, with all that is needed of the request that was answered.
struct Background {
    ctx: Rc<WorkerCtx>,
    here: Here,
    /// The places of its route, and of where that leads.
    route: usize,
    destination: usize,
    client: Head,
    base: Head,
    sent: Head,
    lines: Option<Vec<u8>>,
    peer: Option<IpAddr>,
    kind: Forwarded,
    is_https: bool,
    known: KnownClient,
    key: CacheKey,
    stale: Arc<Object>,
    lead: FlightLead,
}

/// Has an object asked for again, unless that is being done.
pub(super) fn ask_again(cacheable: &Cacheable<'_, '_>, key: &CacheKey, object: &Arc<Object>) {
    let request = cacheable.request;
    let ctx = request.ctx;
    if !object.is_rested(now()) {
        return;
    }
    // Only what is in force is asked: under another config the next one does it.
    let here =
        ctx.here(request.listener.id).filter(|here| std::ptr::eq(&raw const ***here, request.listener));
    let Some(here) = here else { return };
    let is_it = |route: &crate::snapshot::Route| std::ptr::eq(route, cacheable.way.route);
    let Some(route) = here.routes().iter().position(is_it) else { return };
    let destinations = &cacheable.way.route.destinations;
    let Some(destination) = destinations.iter().position(|one| std::ptr::eq(one, cacheable.destination))
    else {
        return;
    };
    let sent = cacheable.sent();
    // Another one may have brought it meanwhile.
    let is_news = |newer: &Arc<Object>| !Arc::ptr_eq(newer, object);
    let entrance = ctx.store.enter(key, |one| cacheable.fits(one, &sent), is_news, now());
    let Entrance::Lead(lead) = entrance else { return };
    let own = cacheable.way.head(cacheable.head());
    let copy = |head: &Head| {
        let mut copy = Head::new();
        copy.copy_from(head);
        copy
    };
    // Of an answer to HEAD nothing can be stored.
    let as_get = |head: Head| if head.method() == b"HEAD" { head.as_get() } else { head };
    let background = Background {
        ctx: Rc::clone(ctx),
        route,
        destination,
        client: as_get(copy(cacheable.head())),
        base: as_get(selected(own, cacheable.cache).unwrap_or_else(|| copy(own))),
        sent: copy(sent.head()),
        lines: cacheable.way.request_edits().map(|edits| edits.lines.to_vec()),
        peer: request.peer.client.map(|client| client.ip),
        kind: here.config.forwarded,
        is_https: cacheable.is_https,
        known: cacheable.known,
        key: key.clone(),
        stale: Arc::clone(object),
        lead,
        here,
    };
    tokio::task::spawn_local(run(background));
}

async fn run(background: Background) {
    let Background {
        ctx,
        here,
        route,
        destination,
        client,
        base,
        sent,
        lines,
        peer,
        kind,
        is_https,
        known,
        key,
        stale,
        lead,
    } = background;
    let Some(route) = here.route_at(route) else { return };
    let (Some(destination), Some(cache)) = (route.destinations.get(destination), &route.cache) else {
        return;
    };
    let Ok(request) = CacheRequest::read(&client, false) else { return };
    // Never by the conditions of the client that was answered: what they are answered with is for it alone.
    let conditional = conditions(&base, &stale.answer.head).unwrap_or_else(|| base.without(is_condition));
    let asked = now();
    let id = ctx.request_id();
    let mut answer = Head::new();
    let mut record = Record { routed: asked, ..Record::default() };
    let mut edge = MemoryEdge::default();
    let body = RequestBody::Empty;
    let target = &destination.target;
    let client = peer.map(|address| ClientAddress::new(address, 0));
    let mut forwarding = Forwarding {
        ctx: &ctx,
        target,
        rules: &destination.rules,
        keep: Keep::Shared,
        edge: &mut edge,
        head: &conditional,
        body: &body,
        key: None,
        pin: None,
        upgrade: None,
        about: About {
            kind,
            client: client.as_ref(),
            trusted: peer.is_some_and(|peer| here.trusts(peer)),
            real_ip: None,
            scheme: if is_https { "https" } else { "http" },
            certificate: &[],
            id,
            retry: 0,
            trace: ctx.trace_of_its_own(id, asked),
        },
        edits: lines.as_ref().map(|lines| RequestEdits { edits: &route.request_edits, lines }),
        answer: &mut answer,
        record: &mut record,
        ready: asked,
        effort: Effort::default(),
    };
    let outcome = forward(&mut forwarding).await;
    let call: Box<Call> = match outcome {
        Ok(call) => call,
        // What is stored stays as it is.
        Err(cause) => {
            stale.rest(now());
            return lead.fail(cause, 1);
        }
    };
    let came = now();
    let arrival = Arrival { asked, came, date: Cacheable::date(came) };
    let asked_by = AskedBy { client: &request, sent: &sent, known };
    let policy = &cache.policy;
    if answer.status == 304 {
        let freshened = freshen(&asked_by, &stale.answer.head, &answer, policy, &arrival);
        call.discard(came);
        match freshened.map(|freshened| freshened.kept) {
            Some(Ok(storable)) => {
                let renewed = stale.renewed(storable, lead.purges());
                lead.keep(Arc::new(renewed));
            }
            Some(Err(why)) if why.is_about_request() => lead.fail(Cause::Done, 1),
            Some(Err(_)) | None => {
                ctx.store.remove(&stale);
                lead.fail(Cause::Done, 1);
            }
        }
        return;
    }
    if is_backend_error(answer.status) {
        stale.rest(came);
        call.discard(came);
        return lead.fail(Cause::ErrorStatus, 1);
    }
    let room = || ctx.store.room(&key, length(&call), true);
    match may_keep(&asked_by, &answer, policy, &arrival, room) {
        // Nobody waits for it.
        Ok((storable, room)) => {
            drop(keep(&ctx, call, Keeping { key: &key, storable, room, lead, to_the_end: true }));
        }
        Err(_) => {
            if (200..500).contains(&answer.status) {
                ctx.store.remove(&stale);
            }
            call.discard(came);
            lead.fail(Cause::Done, 1);
        }
    }
}
