//! What a route makes of a request: where it goes and in which form, or the answer it gets here.

use std::net::IpAddr;

use crate::config::model::route::{Action, SplitBy};
use crate::message::{Cause, Head};
use crate::proxy::WorkerCtx;
use crate::route::{Asked, split};
use crate::snapshot::{Destination, Listener, Route};

use crate::proxy::http::answer_body::AnswerBody;
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
    /// It gets an answer of the route's own.
    Answer(&'a Route, Box<(Head, AnswerBody)>),
    /// It is refused.
    Refuse(Option<&'a Route>, Cause),
    /// It is not even answered.
    Drop(&'a Route, Cause),
}

/// What becomes of a request with this head.
#[inline(never)]
pub fn routed<'a>(ctx: &WorkerCtx, listener: &'a Listener, head: &Head, sender: Sender) -> Routed<'a> {
    let trusts = |address: IpAddr| listener.trusts(address);
    let whole = head.path();
    let path = memchr::memchr(b'?', whole).map_or(whole, |mark| &whole[..mark]);
    let asked = Asked { head, path, client: client(head, sender, trusts) };
    let Some(route) = listener.route(&asked) else { return Routed::Refuse(None, Cause::NoRoute) };
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
        Some(destination) => Routed::Forward { route, destination, head: None },
        None => Routed::Refuse(Some(route), Cause::NoBackend),
    }
}
