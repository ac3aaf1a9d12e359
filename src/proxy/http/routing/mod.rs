//! What a route makes of a request: where it goes and in which form, or the answer it gets here.

use std::net::IpAddr;

use crate::config::model::route::{Action, SplitBy};
use crate::message::{Cause, Head};
use crate::proxy::WorkerCtx;
use crate::route::access::lets_in;
use crate::route::{Asked, path_form, split};
use crate::snapshot::{Destination, Listener, Route};

use crate::proxy::http::hash_key::{Sender, client, hash_key};

/// What becomes of a request.
pub enum Routed<'a> {
    /// It goes to a backend.
    Forward {
        /// By this route.
        route: &'a Route,
        /// To a backend of this target.
        destination: &'a Destination,
        /// As this; `None`: as it came.
        head: Option<Box<Head>>,
    },
    /// It is refused.
    Refuse(Cause),
    /// Its client may not have it, and gets this status.
    Deny(u16),
    /// It is not even answered.
    Drop(Cause),
}

/// What becomes of a request with this head.
#[inline(never)]
pub fn routed<'a>(ctx: &WorkerCtx, listener: &'a Listener, head: &Head, sender: Sender) -> Routed<'a> {
    let trusts = |address: IpAddr| listener.trusts(address);
    let whole = head.path();
    let (sent, query) = whole.split_at(memchr::memchr(b'?', whole).unwrap_or(whole.len()));
    let Ok(path) = path_form::form(sent, &listener.config.normalize) else {
        return Routed::Refuse(Cause::BadPath);
    };
    let asked = Asked { head, path: &path, client: client(head, sender, trusts) };
    let route = match listener.route(&asked) {
        Ok(Some(route)) => route,
        Ok(None) => return Routed::Refuse(Cause::NoRoute),
        Err(_) => return Routed::Refuse(Cause::BadPath),
    };
    if let Some(access) = &route.config.access
        && !lets_in(access, asked.client)
    {
        return match access.status {
            Some(status) => Routed::Deny(status),
            None => Routed::Drop(Cause::AccessDenied),
        };
    }
    let destination = match &route.config.action {
        Action::Forward(_) => route.destinations.first(),
        Action::Split(split) => {
            let number = match &split.by {
                SplitBy::Chance => None,
                SplitBy::Key(key) => hash_key(key, head, sender, trusts),
            };
            let side = match number {
                Some(hash) => split::by_hash(&split.sides, hash),
                None => split::by_chance(&split.sides, ctx.chance.bits()),
            };
            route.destinations.get(side)
        }
        Action::Redirect(_) | Action::Respond(_) => None,
    };
    match destination {
        Some(destination) => {
            let other = (*path != *sent).then(|| Box::new(head.with_path(&[&path, query].concat())));
            Routed::Forward { route, destination, head: other }
        }
        None => Routed::Refuse(Cause::NoBackend),
    }
}
