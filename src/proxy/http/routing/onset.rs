//! The first steps of a request: where it goes, and what has to be done before that is known.

use std::sync::Arc;

use crate::config::model::RouteConfig;
use crate::message::{Cause, Record};
use crate::proxy::http::after::After;
use crate::proxy::http::edge::Edge;
use crate::proxy::http::gate::blocked::keep_out;
use crate::proxy::http::gate::{Asking, Denial};
use crate::proxy::http::hash_key::{Sender, hash_key};
use crate::proxy::http::incoming::{IncomingRequest, about, wanted_upgrade};
use crate::proxy::http::mirror::{self, Original};
use crate::proxy::http::request_body::RequestBody;
use crate::proxy::recording::Recording;
use crate::snapshot::Destination;
use crate::targets::Target;

use super::answers::answer_here;
use super::found::{denied_by_listener, known};
use super::protected::protected;
use super::way::{Way, Wayfarer};
use super::{Routed, let_through, routed, turned_away};

/// Where a request goes, and its way there.
pub type Onward<'a> = (&'a Destination, Way<'a>);

/// What becomes of a request, as far as that is known at once.
pub enum Onset<'a> {
    /// It goes on.
    Onward(&'a Destination, Way<'a>),
    /// It is answered here, or its client is asked something first.
    Otherwise(Box<Routed<'a>>),
}

/// Looks for the route of a request. `refused`: why it is not looked for.
#[inline(never)]
pub fn begin<'a, E: Edge>(
    request: &IncomingRequest<'a>,
    edge: &E,
    body: &RequestBody,
    recording: &mut Recording<'a>,
    sender: &Sender,
    refused: Option<Cause>,
) -> Onset<'a> {
    let &IncomingRequest { ctx, listener, head, .. } = request;
    if let Some(cause) = refused {
        return Onset::Otherwise(Box::new(Routed::Refuse(cause, None)));
    }
    if ctx.proofs.has_answers()
        && let Some(proof) = proof(request, edge)
    {
        return Onset::Otherwise(Box::new(Routed::Prove(proof)));
    }
    if let Some((route, destination)) = listener.straight() {
        return match denied_by_listener(listener, head, *sender) {
            None => Onset::Onward(destination, Way::plain(route)),
            Some(denied) => {
                let denial = Box::new(Denial::by_address(denied.rule));
                Onset::Otherwise(Box::new(Routed::Deny(denial, None)))
            }
        };
    }
    let secured = edge.secured();
    let certificate = secured.as_ref().and_then(|secured| secured.facts.as_ref());
    let known = known(listener, head, sender, certificate, &ctx.recent_routes);
    let found = match known.and_then(|route| Some((route, route.only_destination()?))) {
        None => {
            let from =
                Wayfarer { ctx, listener, head, sender: *sender, secured, told: request.told.cloned() };
            routed(from, known, recording.record)
        }
        Some((route, destination)) => {
            let is_open = listener.access.is_empty() && route.is_open();
            let let_through = || let_through((ctx, listener), head, sender, route, recording.record);
            match if is_open { Ok(()) } else { let_through() } {
                Ok(()) => Routed::Forward(destination, Way::plain(route)),
                Err(denial) => {
                    let told = request.told.cloned();
                    let from = Wayfarer { ctx, listener, head, sender: *sender, secured, told };
                    turned_away(from, route, denial, recording.record)
                }
            }
        }
    };
    match found {
        Routed::Forward(destination, way) => {
            set_out(request, edge, body, recording, sender, (&way, destination));
            Onset::Onward(destination, way)
        }
        other => Onset::Otherwise(Box::new(other)),
    }
}

/// The proof that a request asks for which an authority may have sent: in plain text, as authorities do (RFC 8555 §8.3).
#[cold]
#[inline(never)]
fn proof<E: Edge>(request: &IncomingRequest<'_>, edge: &E) -> Option<Arc<str>> {
    let &IncomingRequest { ctx, listener, head, .. } = request;
    let asks = matches!(head.method(), b"GET" | b"HEAD");
    if !asks || listener.is_secured() || edge.secured().is_some() {
        return None;
    }
    ctx.proofs.answer_to(head.path())
}

/// Notes where a request goes, and has it copied if its route wants that.
#[inline(always)]
fn set_out<'a, E: Edge>(
    request: &IncomingRequest<'a>,
    edge: &E,
    body: &RequestBody,
    recording: &mut Recording<'a>,
    sender: &Sender,
    (way, destination): (&Way<'a>, &Destination),
) {
    recording.on(way.route);
    if let Some(target) = &way.route.mirror {
        mirror_to(request, edge, body, (way, destination), target, (sender, recording.record));
    }
}

/// Answers a request here, or asks its client who it is. Gives where it goes.
///
/// # Errors
/// It goes nowhere, and this is what comes after it.
pub async fn otherwise<'a, E: Edge>(
    request: &IncomingRequest<'a>,
    edge: &mut E,
    body: &RequestBody,
    recording: &mut Recording<'a>,
    sender: &Sender,
    found: Box<Routed<'a>>,
) -> Result<Onward<'a>, After> {
    let &IncomingRequest { ctx, head, .. } = request;
    let found = match *found {
        Routed::Ask(way) => ask(request, edge, recording, way, sender).await,
        found => found,
    };
    match found {
        Routed::Forward(destination, way) => {
            set_out(request, edge, body, recording, sender, (&way, destination));
            Ok((destination, way))
        }
        Routed::Refuse(Cause::Blocked, None) => {
            Err(keep_out(ctx, edge, recording, head, sender.trusted).await)
        }
        own => Err(answer_here(ctx, edge, recording, head, own).await),
    }
}

/// Asks the client of a request who it is, and tells what becomes of it then.
async fn ask<'a, E: Edge>(
    request: &IncomingRequest<'a>,
    edge: &mut E,
    recording: &mut Recording<'a>,
    way: Way<'a>,
    sender: &Sender,
) -> Routed<'a> {
    let &IncomingRequest { ctx, listener, head, .. } = request;
    let secured = edge.secured();
    let about = about(request, sender, secured.as_deref(), recording.record);
    let (client, uri) = (way.client(), way.uri());
    let asking = Asking { ctx, listener, head, uri: &uri, sender: *sender, client, about };
    protected(&asking, edge, recording, way).await
}

/// Has a request copied for `target` if its route wants that now. What it becomes depends on none of this.
#[inline(never)]
fn mirror_to<E: Edge>(
    request: &IncomingRequest<'_>,
    edge: &E,
    body: &RequestBody,
    (way, destination): (&Way<'_>, &Destination),
    target: &Arc<Target>,
    (sender, record): (&Sender, &Record),
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
        hash_key(of, head, *sender, |address| listener.trusts(address))
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
        about: about(request, sender, secured.as_deref(), record),
        key,
        passing: target.config.send_proxy.map(|version| edge.passing(version)),
    });
}
