//! What a route makes of a request: where it goes and in which form, or the answer it gets here.

use crate::config::model::route::Action;
use crate::message::{Cause, Head, Record};
use crate::proxy::http::gate::Denial;
use crate::route::split;
use crate::snapshot::{Destination, Route};

pub mod answers;
pub mod found;
pub mod way;

use found::{Lead, RouteFound, find, lead};
use way::{Way, Wayfarer};

/// What becomes of a request.
pub enum Routed<'a> {
    /// It goes to a backend.
    Forward {
        /// By this route.
        route: &'a Route,
        /// To a backend of this target.
        destination: &'a Destination,
        /// Changed in this way; `None`: not at all, nor is what comes back.
        way: Option<Box<Way<'a>>>,
    },
    /// Its route answers it.
    Answer(Box<Way<'a>>),
    /// It is refused; on the way of its route, if it has one.
    Refuse(Cause, Option<Box<Way<'a>>>),
    /// It is not let through.
    Deny(Box<Denial>, Box<Way<'a>>),
}

impl<'a> Routed<'a> {
    /// The request's route, if it has one.
    #[must_use]
    pub fn route(&self) -> Option<&'a Route> {
        match self {
            Routed::Forward { route, .. } => Some(route),
            Routed::Answer(way) | Routed::Deny(_, way) => Some(way.route),
            Routed::Refuse(_, way) => way.as_ref().map(|way| way.route),
        }
    }
}

/// What becomes of a request. `record`: what is known of it so far.
#[inline(never)]
pub fn routed<'a>(from: Wayfarer<'a>, record: &Record) -> Routed<'a> {
    let Wayfarer { listener, head, sender, .. } = from;
    let certificate = from.secured.as_ref().and_then(|secured| secured.facts.as_ref());
    let RouteFound { path, client, route, denied } = match find(listener, head, sender, certificate) {
        Ok(found) => found,
        Err(cause) => return Routed::Refuse(cause, None),
    };
    if let Some(access) = denied {
        let way = Way::new(from, route, path, client, record);
        return Routed::Deny(Box::new(Denial::by_address(access)), Box::new(way));
    }
    let destination = match lead(route, listener, head, sender) {
        Lead::To(place) => route.destinations.get(place),
        Lead::ByChance(split) => {
            route.destinations.get(split::by_chance(&split.sides, from.ctx.chance.bits()))
        }
        Lead::Nowhere => None,
    };
    if let Some(destination) = destination
        && is_as_sent(head, &path)
        && route.leaves_as_it_is()
    {
        return Routed::Forward { route, destination, way: None };
    }
    let mut way = Box::new(Way::new(from, route, path, client, record));
    match (&route.config.action, destination) {
        (Action::Redirect(_) | Action::Respond(_), _) => Routed::Answer(way),
        (_, None) => Routed::Refuse(Cause::NoBackend, Some(way)),
        (_, Some(destination)) if way.lead_to(&destination.target.name) => {
            Routed::Forward { route, destination, way: Some(way) }
        }
        (_, Some(_)) => Routed::Refuse(Cause::BadPath, Some(way)),
    }
}

/// Whether a path is the one that was sent.
fn is_as_sent(head: &Head, path: &[u8]) -> bool {
    matches!(head.path().strip_prefix(path), Some([] | [b'?', ..]))
}
