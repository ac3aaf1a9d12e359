//! The step of the pipeline between route and backend: what is stored is answered here, and what comes is stored.
//!
//! What may be done is decided in [`crate::cache`], without I/O; where things are kept is [`crate::cache::store`]. Here the two meet requests.
//! A hit is served at once, without waiting for anything. All else is put aside: who has to ask a backend has other costs.

mod ask;
mod background;
pub mod change;
mod fill;
pub mod reading;
mod sent;
mod serve;
mod settle;

use std::cell::RefCell;

use crate::cache::store::{Lookup, Object};
use crate::cache::{
    AskAgain, CacheKey, CacheRequest, CacheStatus, KeyParts, KnownClient, Use, WhyForwarded, WhyNot, may_use,
};
use crate::message::{Cause, Head};
use crate::net::wall::wall_start;
use crate::snapshot::{Destination, RouteCache};
use crate::tick::Tick;

use super::answer_body::AnswerBody;
use super::incoming::IncomingRequest;
use super::routing::way::Way;

pub use ask::{AnswerGiven, CacheAsking};
use sent::SentHead;
use serve::{Serving, serve};

/// Memory of one request's step that serves the next one's.
#[derive(Debug, Default)]
pub struct CacheScratch {
    key: RefCell<CacheKey>,
    values: RefCell<Vec<u8>>,
}

/// A request on a route with a cache.
#[derive(Clone, Copy)]
pub struct Cacheable<'x, 'a> {
    /// The request.
    pub request: &'x IncomingRequest<'a>,
    /// What its route says.
    pub cache: &'x RouteCache,
    /// Its way.
    pub way: &'x Way<'a>,
    /// Where it leads.
    pub destination: &'a Destination,
    /// It came with TLS, or a trusted proxy says so.
    pub is_https: bool,
    /// Whether evenkeel knows who asks.
    pub known: KnownClient,
    /// Its framing announces a body.
    pub has_body: bool,
}

/// What the cache makes of a request at once.
pub enum CacheBegun {
    /// Its answer's head is there, and this is the body.
    Served(AnswerBody),
    /// The backend has to be asked.
    Asks(Box<CacheAsking>),
    /// It is refused.
    Refused(Cause),
}

impl<'x, 'a> Cacheable<'x, 'a> {
    /// What a moment is on the wall clock, in seconds.
    fn date(now: Tick) -> i64 {
        i64::try_from(wall_start().saturating_add(now.0) / 1_000_000_000).unwrap_or(i64::MAX)
    }

    /// Its head as it goes to the backend, before a rewrite, and without what names its client.
    fn head(&self) -> &'a Head {
        self.request.head
    }

    fn fill_key(&self, key: &mut CacheKey) {
        let uri = self.way.uri();
        let path = if uri.is_empty() { self.head().path() } else { &uri };
        let parts = KeyParts {
            is_https: self.is_https,
            authority: self.head().authority(),
            path,
            route: self.cache.name.as_bytes(),
            target: self.destination.target.name.as_bytes(),
        };
        key.fill(&parts, self.head(), &self.cache.key_rules);
    }

    /// Whether an object is for this request.
    fn fits(&self, object: &Object, sent: &SentHead<'_>) -> bool {
        object.answer.variant.fits(sent.head(), &mut self.request.ctx.cache_scratch.values.borrow_mut())
    }

    fn serving<'s>(&'s self, request: &'s CacheRequest<'a>, status: CacheStatus, now: Tick) -> Serving<'s> {
        Serving { request, status, now, date: Self::date(now), buffers: &self.request.ctx.buffers }
    }
}

/// What the cache makes of a request at once. If it is served, its head is in `answer`.
pub fn begin(cacheable: &Cacheable<'_, '_>, answer: &mut Head) -> CacheBegun {
    let Cacheable { request: IncomingRequest { ctx, .. }, cache, .. } = *cacheable;
    let mut key = ctx.cache_scratch.key.borrow_mut();
    cacheable.fill_key(&mut key);
    let past = |key: &CacheKey, why| CacheBegun::Asks(CacheAsking::past(key.clone(), why));
    let miss = |key: &CacheKey, why| CacheBegun::Asks(CacheAsking::miss(key.clone(), why));
    let request = match CacheRequest::read(cacheable.head(), cacheable.has_body) {
        Ok(request) => request,
        Err(why) => return past(&key, why),
    };
    let now = cacheable.request.head_read;
    let sent = SentHead::new(cacheable);
    let object = match ctx.store.find(&key, |object| cacheable.fits(object, &sent)) {
        Lookup::Object(object) => object,
        Lookup::OtherVariant | Lookup::Nothing if request.directives.only_if_cached => {
            return CacheBegun::Refused(Cause::OnlyIfCached);
        }
        Lookup::OtherVariant => return miss(&key, WhyForwarded::VaryMiss),
        Lookup::Nothing => return miss(&key, WhyForwarded::UriMiss),
    };
    let (freshness, ignores) = (object.freshness(), cache.rules.ignores_cookies);
    let mut used = may_use(&freshness, &request, ignores, now);
    if matches!(used, Use::Revalidate { why: AskAgain::Client, .. })
        && !object.may_be_reloaded(cache.policy.reloads, now)
    {
        used = may_use(&freshness, &request.deaf(), ignores, now);
    }
    let status = match used {
        Use::Fresh | Use::Stale => CacheStatus::hit(&freshness, now),
        Use::StaleWhileRevalidate => {
            background::ask_again(cacheable, &key, &object);
            CacheStatus::hit(&freshness, now)
        }
        Use::Revalidate { why, stands_in_until } => {
            return CacheBegun::Asks(CacheAsking::again(key.clone(), object, why, stands_in_until));
        }
        Use::OnlyIfCached => return CacheBegun::Refused(Cause::OnlyIfCached),
        Use::Past(why) => return past(&key, why),
    };
    match serve(
        &cacheable.serving(&request, status, now),
        &object.answer.head,
        &freshness,
        &object.body,
        answer,
    ) {
        Some(body) => CacheBegun::Served(body),
        None => past(&key, WhyNot::Precondition),
    }
}
