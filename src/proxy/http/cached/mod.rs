//! The step of the pipeline between route and backend: what is stored is answered here, and what comes is stored.
//!
//! What may be done is decided in [`crate::cache`], without I/O; where things are kept is [`crate::cache::store`]. Here the two meet requests.
//! A hit is served at once, without waiting for anything. All else is put aside: who has to ask a backend has other costs.

mod ask;
mod background;
mod cacheable;
pub mod change;
pub mod fill;
mod keep;
pub mod reading;
pub mod recent;
pub mod remembered;
pub mod scratch;
mod sent;
mod serve;
mod settle;

use crate::cache::store::Lookup;
use crate::cache::{AskAgain, CacheKey, CacheRequest, CacheStatus, Use, WhyForwarded, may_use};
use crate::message::{CacheNote, Cause, Head, WhyNot};

use super::answer_body::AnswerBody;
use super::incoming::IncomingRequest;

pub use ask::{AnswerGiven, CacheAsking};
pub use cacheable::Cacheable;
use recent::recallable;
use remembered::Recallable;
use serve::serve;

/// What the cache makes of a request at once.
pub enum CacheBegun {
    /// Its answer's head is there, and this is the body; and so others get the same.
    Served(AnswerBody, CacheNote, Option<Box<Recallable>>),
    /// The backend has to be asked.
    Asks(Box<CacheAsking>),
    /// It is refused.
    Refused(Cause),
}

/// What the cache makes of a request at once. If it is served, its head is in `answer`.
pub fn begin(cacheable: &Cacheable<'_, '_>, answer: &mut Head) -> CacheBegun {
    let Cacheable { request: IncomingRequest { ctx, .. }, cache, .. } = *cacheable;
    let mut writer = ctx.cache_scratch.key.borrow_mut();
    let key = cacheable.key(&mut writer);
    let past = |key: &CacheKey, why| CacheBegun::Asks(CacheAsking::past(key.clone(), why));
    let miss = |key: &CacheKey, why| CacheBegun::Asks(CacheAsking::miss(key.clone(), why));
    let request = match CacheRequest::read(cacheable.head(), cacheable.has_body) {
        Ok(request) => request,
        Err(why) => return past(key, why),
    };
    let now = cacheable.request.head_read;
    let sent = cacheable.sent();
    let object = match ctx.store.find(key, |object| cacheable.fits(object, &sent)) {
        Lookup::Object(object) => object,
        Lookup::OtherVariant | Lookup::Nothing if request.directives.only_if_cached => {
            return CacheBegun::Refused(Cause::OnlyIfCached);
        }
        Lookup::OtherVariant => return miss(key, WhyForwarded::VaryMiss),
        Lookup::Nothing => return miss(key, WhyForwarded::UriMiss),
    };
    let (freshness, ignores) = (object.freshness(), cache.policy.ignore_cookies);
    let mut used = may_use(&freshness, &request, ignores, now);
    if matches!(used, Use::Revalidate { why: AskAgain::Client, .. })
        && !object.may_be_reloaded(cache.policy.reloads, now)
    {
        used = may_use(&freshness, &request.deaf(), ignores, now);
    }
    let note = match used {
        Use::Fresh => CacheNote::Hit,
        Use::Stale => CacheNote::Stale,
        Use::StaleWhileRevalidate => {
            background::ask_again(cacheable, key, &object);
            CacheNote::Stale
        }
        Use::Revalidate { why, stands_in_until } => {
            return CacheBegun::Asks(CacheAsking::again(key.clone(), object, why, stands_in_until));
        }
        Use::OnlyIfCached => return CacheBegun::Refused(Cause::OnlyIfCached),
        Use::Past(why) => return past(key, why),
    };
    let status = CacheStatus::hit(&freshness, now);
    match serve(&cacheable.serving(&request, status, now), &object.answer.head, &freshness, &object, answer) {
        Some(body) => {
            let is_alike = note == CacheNote::Hit && cacheable.is_alike_for_all();
            let others =
                if is_alike { recallable(cacheable.request, &object, &freshness, ignores) } else { None };
            CacheBegun::Served(body, note, others)
        }
        None => past(key, WhyNot::Precondition),
    }
}
