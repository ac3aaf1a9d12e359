//! What a route makes of a request: where it goes and in which form, or the answer it gets here.

use std::net::IpAddr;

use crate::config::model::route::{Action, SplitBy};
use crate::message::{Cause, Record};
use crate::proxy::http::hash_key::{client, hash_key};
use crate::route::access::lets_in;
use crate::route::{Asked, path_form, split};
use crate::snapshot::{Destination, Route};

pub mod answers;
pub mod way;

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
    /// Its client may not have it, and gets this status.
    Deny(u16, Box<Way<'a>>),
    /// It is not even answered.
    Drop(Cause, &'a Route),
}

impl<'a> Routed<'a> {
    /// The request's route, if it has one.
    #[must_use]
    pub fn route(&self) -> Option<&'a Route> {
        match self {
            Routed::Forward { route, .. } | Routed::Drop(_, route) => Some(route),
            Routed::Answer(way) | Routed::Deny(_, way) => Some(way.route),
            Routed::Refuse(_, way) => way.as_ref().map(|way| way.route),
        }
    }
}

/// What becomes of a request. `record`: what is known of it so far.
#[inline(never)]
pub fn routed<'a>(from: Wayfarer<'a>, record: &Record) -> Routed<'a> {
    let Wayfarer { listener, head, sender, .. } = from;
    let trusts = |address: IpAddr| listener.trusts(address);
    let whole = head.path();
    let sent = &whole[..memchr::memchr(b'?', whole).unwrap_or(whole.len())];
    let Ok(path) = path_form::form(sent, &listener.config.normalize) else {
        return Routed::Refuse(Cause::BadPath, None);
    };
    let asked = Asked { head, path: &path, client: client(head, sender, trusts) };
    let route = match listener.route(&asked) {
        Ok(Some(route)) => route,
        Ok(None) => return Routed::Refuse(Cause::NoRoute, None),
        Err(_) => return Routed::Refuse(Cause::BadPath, None),
    };
    let client = asked.client;
    let denied = route.config.access.as_ref().filter(|access| !lets_in(access, client));
    if denied.is_some_and(|access| access.status.is_none()) {
        return Routed::Drop(Cause::AccessDenied, route);
    }
    let chance = &from.ctx.chance;
    let destination = match &route.config.action {
        Action::Forward(_) => route.destinations.first(),
        Action::Split(split) => {
            let number = match &split.by {
                SplitBy::Chance => None,
                SplitBy::Key(key) => hash_key(key, head, sender, trusts),
            };
            let side = match number {
                Some(hash) => split::by_hash(&split.sides, hash),
                None => split::by_chance(&split.sides, chance.bits()),
            };
            route.destinations.get(side)
        }
        Action::Redirect(_) | Action::Respond(_) => None,
    };
    if denied.is_none()
        && let Some(destination) = destination
        && *path == *sent
        && route.leaves_as_it_is()
    {
        return Routed::Forward { route, destination, way: None };
    }
    let mut way = Box::new(Way::new(from, route, path, client, record));
    if let Some(status) = denied.and_then(|access| access.status) {
        return Routed::Deny(status, way);
    }
    match (&route.config.action, destination) {
        (Action::Redirect(_) | Action::Respond(_), _) => Routed::Answer(way),
        (_, None) => Routed::Refuse(Cause::NoBackend, Some(way)),
        (_, Some(destination)) if way.lead_to(&destination.target.name) => {
            Routed::Forward { route, destination, way: Some(way) }
        }
        (_, Some(_)) => Routed::Refuse(Cause::BadPath, Some(way)),
    }
}
