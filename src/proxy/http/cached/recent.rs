//! Answers that one worker has lately sent from the store: whoever asks for the same in a [plain](is_plain) way gets the same head again.
//!
//! Nothing is decided here either: what is kept is what the long way has made, and it is used for as long as that would make the same.
//!
//! 1. A plain request's answer depends on nothing but its router (and so its config), its host and its path, on the moment, and on what is
//!    stored. So it is noted by those three; only on routes that look at nothing else (`Cacheable::is_alike_for_all`), and that are found
//!    without a look at anything else, which is what the worker's [`RecentRoutes`](crate::proxy::http::routing::recent::RecentRoutes) say;
//!    and only where the object is for all who have its key.
//! 2. A head says how old the object is, in seconds: it is used until that, or whether it is fresh, would be another ([`Freshness::alike_until`]).
//! 3. The store is asked each time whether the object is still the one that is found ([`CacheStore::recall`](crate::cache::store::CacheStore::recall)):
//!    that is what a purge, a change and an eviction go by, and what tells the table that the object is wanted.

use std::rc::Rc;
use std::sync::Arc;

use crate::cache::store::{Object, ObjectBody};
use crate::cache::{Freshness, is_plain};
use crate::message::{Head, HeaderField};
use crate::proxy::http::hash_key::Sender;
use crate::proxy::http::incoming::IncomingRequest;
use crate::proxy::http::routing::found::sent;
use crate::snapshot::{Destination, Route};

use super::reading::StoredReading;
use super::remembered::Recallable;
use super::serve::push_length;

/// Bytes of memory of a head that is kept at most.
const LONGEST: usize = 4096;

/// An answer that others got lately.
pub struct RecalledAnswer<'a> {
    /// The route on which it was.
    pub route: &'a Route,
    /// Where that leads.
    pub destination: &'a Destination,
    /// Its head.
    pub head: Rc<Head>,
    /// Its body.
    pub body: StoredReading,
}

/// How what a plain request has just got is found again. `None`: others may get something else.
pub(super) fn recallable(
    request: &IncomingRequest<'_>,
    object: &Arc<Object>,
    freshness: &Freshness,
    ignores_cookies: bool,
) -> Option<Box<Recallable>> {
    let &IncomingRequest { ctx, listener, head, head_read, .. } = request;
    let router = listener.router().number();
    let route = ctx.recent_routes.find(router, head.authority(), sent(head))?;
    let route = route.place.filter(|_| route.before.is_empty())?;
    let ObjectBody::Whole(body) = &object.body else { return None };
    // Where there is none, heads say so in different ways.
    let length = Some(body.length()).filter(|length| *length > 0)?;
    // What is wanted once is not worth it.
    if !ctx.recent_answers.0.is_wanted(router, head.authority(), head.path()) {
        return None;
    }
    Some(Box::new(Recallable {
        object: ctx.store.recallable(object)?,
        route,
        length,
        until: freshness.alike_until(head_read),
        with_cookies: ignores_cookies || !freshness.is_unsaid(),
    }))
}

/// The answer that a request gets as others got it lately; `None`: it is to be looked for.
#[inline(never)]
pub fn recall<'a>(
    request: &IncomingRequest<'a>,
    sender: &Sender,
    has_body: bool,
) -> Option<RecalledAnswer<'a>> {
    let &IncomingRequest { ctx, listener, head, head_read, .. } = request;
    if sender.trusted || !is_plain(head, has_body) {
        return None;
    }
    let router = listener.router().number();
    let found = ctx.recent_answers.0.find(router, head.authority(), head.path(), |recent| {
        let facts = recent.facts.as_ref()?;
        if head_read >= facts.until || !facts.with_cookies && head.has(HeaderField::Cookie) {
            return None;
        }
        let object = ctx.store.recall(&facts.object, Arc::clone)?;
        Some((facts.route, Rc::clone(&recent.head), object, facts.length))
    });
    let (place, head, object, length) = found??;
    let route = listener.route_at(place)?;
    let body = StoredReading::part(&object, 0, length, &ctx.buffers);
    Some(RecalledAnswer { route, destination: route.only_destination()?, head, body })
}

/// Keeps an answer, as it is sent, for others.
#[cold]
#[inline(never)]
pub fn remember(request: &IncomingRequest<'_>, facts: Recallable, answer: &Head) {
    let &IncomingRequest { ctx, listener, head, .. } = request;
    if answer.capacity() > LONGEST {
        return;
    }
    let (router, length) = (listener.router().number(), facts.length);
    ctx.recent_answers.0.note(router, (head.authority(), head.path()), |recent| {
        if Rc::get_mut(&mut recent.head).is_none() {
            // Somebody is just sent the one before.
            recent.head = Rc::default();
        }
        let Some(head) = Rc::get_mut(&mut recent.head) else { return };
        head.copy_from(answer);
        if !head.has(HeaderField::ContentLength) {
            push_length(head, length);
        }
        recent.facts = Some(facts);
    });
}
