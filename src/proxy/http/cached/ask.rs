//! Before the backend is asked for what is not stored, or has to be asked for again: one asks for all who want the same.

use std::cell::Cell;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll};

use crate::cache::store::{Entrance, FlightFollower, FlightLead, Landed, Object};
use crate::cache::{
    AskAgain, CacheKey, CacheRequest, CacheStatus, Use, WhyForwarded, conditions, is_condition, may_use,
};
use crate::message::{CacheNote, Cause, Head, WhyNot};
use crate::net::now;
use crate::proxy::http::answer_body::AnswerBody;
use crate::proxy::http::call::Call;
use crate::tick::Tick;

use super::cacheable::Cacheable;
use super::sent::selected;
use super::serve::serve;

/// An answer whose head is there.
pub enum AnswerGiven {
    /// A backend's; the body is to be had from it.
    Call(Box<Call>),
    /// One with this body.
    Body(AnswerBody),
}

/// A request on a route with a cache for which the backend is asked.
pub struct CacheAsking {
    pub(super) key: CacheKey,
    /// Why it goes there.
    pub(super) why: WhyForwarded,
    /// Why it has nothing to do with what is stored; `None`: it has.
    pub(super) past: Option<WhyNot>,
    /// What is stored, and until when it may stand in.
    pub(super) stale: Option<(Arc<Object>, Option<Tick>)>,
    /// Who asks for all who want the same.
    pub(super) lead: Option<FlightLead>,
    /// The head that is sent; `None`: the request's own.
    head: Option<Head>,
    /// When it was sent.
    pub(super) asked: Tick,
    /// What became of it, for its record.
    pub(super) note: Cell<Option<CacheNote>>,
}

impl CacheAsking {
    /// One that has nothing to do with what is stored.
    pub(super) fn past(key: CacheKey, why: WhyNot) -> Box<CacheAsking> {
        let forwarded = if why == WhyNot::Method { WhyForwarded::Method } else { WhyForwarded::Bypass };
        CacheAsking::new(key, forwarded, Some(why), None)
    }

    /// One for which nothing that fits is stored.
    pub(super) fn miss(key: CacheKey, why: WhyForwarded) -> Box<CacheAsking> {
        CacheAsking::new(key, why, None, None)
    }

    /// One for which something is stored that has to be asked for again.
    pub(super) fn again(
        key: CacheKey,
        object: Arc<Object>,
        why: AskAgain,
        stands_in: Option<Tick>,
    ) -> Box<CacheAsking> {
        let why = match why {
            AskAgain::Client => WhyForwarded::Request,
            AskAgain::Stale | AskAgain::Origin => WhyForwarded::Stale,
        };
        CacheAsking::new(key, why, None, Some((object, stands_in)))
    }

    fn new(
        key: CacheKey,
        why: WhyForwarded,
        past: Option<WhyNot>,
        stale: Option<(Arc<Object>, Option<Tick>)>,
    ) -> Box<CacheAsking> {
        Box::new(CacheAsking {
            key,
            why,
            past,
            stale,
            lead: None,
            head: None,
            asked: Tick::ZERO,
            note: Cell::new(None),
        })
    }

    /// The head that is sent. `own`: that of the request on its way.
    #[must_use]
    pub fn head<'h>(&'h self, own: &'h Head) -> &'h Head {
        self.head.as_ref().unwrap_or(own)
    }

    /// When it was ready to be sent.
    #[must_use]
    pub fn asked(&self) -> Tick {
        self.asked
    }

    /// Whether it asks in the place of somebody who got no answer.
    #[must_use]
    pub fn has_taken_over(&self) -> bool {
        self.lead.as_ref().is_some_and(FlightLead::has_taken_over)
    }

    /// What became of it, once its answer is there.
    #[must_use]
    pub fn note(&self) -> Option<CacheNote> {
        self.note.get()
    }

    /// Makes it ready to be sent; or gives another's answer, whose head is in `answer` then. `gone` is ready when there is no use in
    /// waiting any more.
    ///
    /// # Errors
    /// There is no answer.
    pub async fn prepare(
        &mut self,
        cacheable: &Cacheable<'_, '_>,
        answer: &mut Head,
        gone: impl FnMut(&mut Context<'_>) -> Poll<Cause>,
    ) -> Result<Option<AnswerBody>, Cause> {
        if self.past.is_none()
            && let Ok(request) = CacheRequest::read(cacheable.head(), cacheable.has_body)
        {
            if request.is_head {
                self.past = Some(WhyNot::Method);
            } else if let Some(body) = self.enter(cacheable, &request, answer, gone).await? {
                return Ok(Some(body));
            }
        }
        self.set_out(cacheable);
        Ok(None)
    }

    /// Makes the head that is sent.
    fn set_out(&mut self, cacheable: &Cacheable<'_, '_>) {
        let own = cacheable.way.head(cacheable.head());
        let chosen = selected(own, cacheable.cache);
        let base = chosen.as_ref().unwrap_or(own);
        let conditional = match &self.stale {
            Some((object, _)) if self.past.is_none() => {
                Some(conditions(base, &object.answer.head).unwrap_or_else(|| base.without(is_condition)))
            }
            _ => None,
        };
        (self.head, self.asked) = (conditional.or(chosen), now());
    }

    /// Makes the head that is sent once more, when what was stored has turned out to be another object.
    pub(super) fn set_out_again(&mut self, cacheable: &Cacheable<'_, '_>) {
        self.stale = None;
        self.set_out(cacheable);
        let own = cacheable.way.head(cacheable.head());
        self.head = Some(self.head(own).without(is_condition));
    }

    /// Waits for another's answer, if another asks for the same; else leads.
    async fn enter(
        &mut self,
        cacheable: &Cacheable<'_, '_>,
        request: &CacheRequest<'_>,
        answer: &mut Head,
        mut gone: impl FnMut(&mut Context<'_>) -> Poll<Cause>,
    ) -> Result<Option<AnswerBody>, Cause> {
        let store = &cacheable.request.ctx.store;
        let sent = cacheable.sent();
        let fits = |object: &Object| cacheable.fits(object, &sent);
        // What such a request gets is likely to be for it alone; and a condition of a client is none of another's.
        let is_common = !request.has_authorization && (self.stale.is_some() || !request.is_conditional());
        if !is_common {
            self.lead = Some(store.solo(&self.key));
            return Ok(None);
        }
        loop {
            let is_news = |object: &Arc<Object>| {
                let is_known = self.stale.as_ref().is_some_and(|(known, _)| Arc::ptr_eq(known, object));
                !is_known && is_fresh(cacheable, request, object)
            };
            let object = match store.enter(&self.key, fits, is_news, now()) {
                Entrance::Lead(lead) => {
                    self.lead = Some(lead);
                    return Ok(None);
                }
                Entrance::Alone => break,
                Entrance::Join(object) => object,
                Entrance::Follow(mut follower) => match follow(cacheable, &mut follower, &mut gone).await? {
                    Landed::Lead => {
                        self.lead = Some(store.lead_on(&follower, &self.key));
                        return Ok(None);
                    }
                    Landed::Alone => break,
                    Landed::Failed(cause) => {
                        return self.stand_in(cacheable, request, None, answer).map(Some).ok_or(cause);
                    }
                    Landed::Object(object) if fits(&object) => object,
                    // It is for others: somebody will lead those that want another variant.
                    Landed::Object(_) => continue,
                },
            };
            if let Some(body) = self.join(cacheable, request, &object, answer) {
                return Ok(Some(body));
            }
            break;
        }
        self.lead = Some(store.solo(&self.key));
        Ok(None)
    }

    /// Serves what another has asked for. `None`: it can't be used for this request.
    fn join(
        &self,
        cacheable: &Cacheable<'_, '_>,
        request: &CacheRequest<'_>,
        object: &Arc<Object>,
        answer: &mut Head,
    ) -> Option<AnswerBody> {
        if !is_fresh(cacheable, request, object) {
            return None;
        }
        let (freshness, now) = (object.freshness(), now());
        let hit = CacheStatus::hit(&freshness, now);
        let status = CacheStatus { forwarded: Some(self.why), collapsed: true, ..hit };
        self.note.set(Some(status.note()));
        serve(&cacheable.serving(request, status, now), &object.answer.head, &freshness, object, answer)
    }

    /// Serves what is stored in the place of an answer that there is not. `None`: it may not stand in.
    pub(super) fn stand_in(
        &self,
        cacheable: &Cacheable<'_, '_>,
        request: &CacheRequest<'_>,
        backend_status: Option<u16>,
        answer: &mut Head,
    ) -> Option<AnswerBody> {
        let (object, until) = self.stale.as_ref()?;
        let now = now();
        until.filter(|until| now < *until)?;
        let freshness = object.freshness();
        let hit = CacheStatus::hit(&freshness, now);
        let status = CacheStatus { forwarded: Some(self.why), backend_status, ..hit };
        self.note.set(Some(CacheNote::Stale));
        serve(&cacheable.serving(request, status, now), &object.answer.head, &freshness, object, answer)
    }
}

/// Whether it may be used as it is, whatever age the client asks for: it was asked for just now.
fn is_fresh(cacheable: &Cacheable<'_, '_>, request: &CacheRequest<'_>, object: &Object) -> bool {
    let ignores_cookies = cacheable.cache.policy.ignore_cookies;
    may_use(&object.freshness(), &request.deaf(), ignores_cookies, now()) == Use::Fresh
}

/// Waits until something has become of a flight.
async fn follow(
    cacheable: &Cacheable<'_, '_>,
    follower: &mut FlightFollower,
    gone: &mut impl FnMut(&mut Context<'_>) -> Poll<Cause>,
) -> Result<Landed, Cause> {
    let Cacheable { request, destination, .. } = cacheable;
    // As long as it would wait for a backend.
    let deadline = request.ctx.ticker.deadline();
    deadline.set(destination.rules.timeouts.first_byte);
    poll_fn(|cx| {
        if let Poll::Ready(landed) = follower.poll(cx) {
            return Poll::Ready(Ok(landed));
        }
        if let Poll::Ready(cause) = gone(cx) {
            return Poll::Ready(Err(cause));
        }
        deadline.poll(cx).map(|()| Ok(Landed::Alone))
    })
    .await
}
