//! What a route makes of a request: where it goes and in which form, or the answer it gets here.

use std::borrow::Cow;
use std::sync::Arc;

use crate::config::model::route::Action;
use crate::message::{Cause, Head, Record};
use crate::proxy::WorkerCtx;
use crate::proxy::http::gate::Denial;
use crate::proxy::http::gate::authenticated::GivenAnswer;
use crate::proxy::http::gate::rate::{self, Asker};
use crate::proxy::http::hash_key::{Sender, client};
use crate::route::split;
use crate::snapshot::{Destination, Listener, Route};

pub mod answers;
pub mod found;
pub mod onset;
pub mod protected;
pub mod recent;
pub mod recently_found;
pub mod way;

use found::{Lead, RouteFound, Unrouted, denied, find, lead, sent};
use way::{Way, Wayfarer};

/// What becomes of a request.
pub enum Routed<'a> {
    /// It goes to a backend of this target, on this way.
    Forward(&'a Destination, Way<'a>),
    /// Its route answers it.
    Answer(Way<'a>),
    /// It is refused; on the way of its route, if it has one.
    Refuse(Cause, Option<Way<'a>>),
    /// It is not let through; on the way of its route, if it has one.
    Deny(Box<Denial>, Option<Way<'a>>),
    /// The same, and it gets what the service that was asked about it has answered.
    Relay(Box<GivenAnswer>, Way<'a>),
    /// Its client has to show who it is.
    Ask(Way<'a>),
    /// It asks for this proof that a name is ours.
    Prove(Arc<str>),
}

impl<'a> Routed<'a> {
    /// The request's route, if it has one.
    #[must_use]
    pub fn route(&self) -> Option<&'a Route> {
        match self {
            Routed::Forward(_, way) | Routed::Answer(way) | Routed::Relay(_, way) | Routed::Ask(way) => {
                Some(way.route)
            }
            Routed::Refuse(_, way) | Routed::Deny(_, way) => way.as_ref().map(|way| way.route),
            Routed::Prove(_) => None,
        }
    }
}

/// Whether a client may have what a route leads to that asks nobody who he is.
///
/// # Errors
/// It may not.
#[inline(never)]
pub fn let_through(
    (ctx, listener): (&WorkerCtx, &Listener),
    head: &Head,
    sender: &Sender,
    route: &Route,
    record: &Record,
) -> Result<(), Box<Denial>> {
    let client = client(head, *sender, |proxy| listener.trusts(proxy));
    if let Some(denied) = denied(listener, route, sender, client) {
        return Err(Box::new(Denial::by_address(denied.rule)));
    }
    let asker = Asker { head, client: client.or(sender.peer), user: None };
    rate::of_anybody(route, &asker, false, record.head_read, &ctx.cells.rates)
}

/// What becomes of a request that is not let through on its route, which is known.
#[cold]
#[inline(never)]
pub fn turned_away<'a>(
    from: Wayfarer<'a>,
    route: &'a Route,
    denial: Box<Denial>,
    record: &Record,
) -> Routed<'a> {
    let Wayfarer { listener, head, sender, .. } = from;
    let client = client(head, sender, |proxy| listener.trusts(proxy));
    Routed::Deny(denial, Some(Way::new(from, route, Cow::Borrowed(sent(head)), client, record)))
}

/// What becomes of a request. `known`: its route, if that is known; `record`: what is known of it so far.
#[inline(never)]
pub fn routed<'a>(from: Wayfarer<'a>, known: Option<&'a Route>, record: &Record) -> Routed<'a> {
    let Wayfarer { ctx, listener, head, sender, .. } = from;
    let found = match known {
        Some(route) => {
            let client = client(head, sender, |proxy| listener.trusts(proxy));
            let denied = denied(listener, route, &sender, client);
            Ok(RouteFound { path: Cow::Borrowed(sent(head)), client, route, denied })
        }
        None => {
            let certificate = from.secured.as_ref().and_then(|secured| secured.facts.as_ref());
            find(listener, head, sender, certificate, Some(&ctx.recent_routes))
        }
    };
    let RouteFound { path, client, route, denied } = match found {
        Ok(found) => found,
        Err(Unrouted { denied: Some(denied), .. }) => {
            return Routed::Deny(Box::new(Denial::by_address(denied.rule)), None);
        }
        Err(Unrouted { cause, denied: None }) => return Routed::Refuse(cause, None),
    };
    if let Some(denied) = denied {
        let way = Way::new(from, route, path, client, record);
        return Routed::Deny(Box::new(Denial::by_address(denied.rule)), Some(way));
    }
    if !route.rates.is_empty() {
        let asker = Asker { head, client: client.or(sender.peer), user: None };
        let is_asked = route.auth.is_some();
        if let Err(denial) = rate::of_anybody(route, &asker, is_asked, record.head_read, &ctx.cells.rates) {
            return Routed::Deny(denial, Some(Way::new(from, route, path, client, record)));
        }
    }
    if route.auth.is_some() {
        return Routed::Ask(Way::new(from, route, path, client, record));
    }
    let destination = destination(route, &from, head);
    if let Some(destination) = destination
        && route.is_same_for_requests()
        && is_as_sent(head, &path)
    {
        return Routed::Forward(destination, Way::plain(route));
    }
    led(Way::new(from, route, path, client, record), destination)
}

/// What becomes of a request whose client has shown who it is.
fn onward<'a>(way: Way<'a>) -> Routed<'a> {
    let destination = way.with_head(|from, head| destination(way.route, from, head)).flatten();
    led(way, destination)
}

/// Where a request on this route leads; `None`: nowhere.
#[inline(always)]
fn destination<'a>(route: &'a Route, from: &Wayfarer<'_>, head: &Head) -> Option<&'a Destination> {
    match lead(route, from.listener, head, from.sender) {
        Lead::To(place) => route.destinations.get(place),
        Lead::ByChance(split) => {
            route.destinations.get(split::by_chance(&split.sides, from.ctx.chance.bits()))
        }
        Lead::Nowhere => None,
    }
}

/// What becomes of a request that leads there.
#[inline(always)]
fn led<'a>(mut way: Way<'a>, destination: Option<&'a Destination>) -> Routed<'a> {
    let route = way.route;
    match (&route.config.action, destination) {
        (Action::Redirect(_) | Action::Respond(_), _) => Routed::Answer(way),
        (_, None) => Routed::Refuse(Cause::NoBackend, Some(way)),
        (_, Some(destination)) if way.lead_to(&destination.target.name) => Routed::Forward(destination, way),
        (_, Some(_)) => Routed::Refuse(Cause::BadPath, Some(way)),
    }
}

/// Whether a path is the one that was sent.
fn is_as_sent(head: &Head, path: &[u8]) -> bool {
    // One that needed no other form is the same piece of memory.
    std::ptr::eq(head.path().as_ptr(), path.as_ptr())
        || matches!(head.path().strip_prefix(path), Some([] | [b'?', ..]))
}
