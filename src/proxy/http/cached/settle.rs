//! What becomes of a backend's answer: whether it is stored, and what its client gets.

use std::sync::Arc;

use crate::cache::store::{BodyRoom, FlightLead, Object};
use crate::cache::{
    Arrival, AskedBy, CacheKey, CacheRequest, CacheStatus, HeadEffect, Storable, freshen, head_effect,
    is_backend_error, is_for_caches_only,
};
use crate::message::{Cause, Head};
use crate::net::now;
use crate::proxy::http::answer_body::AnswerBody;
use crate::proxy::http::call::Call;
use crate::tick::Tick;

use super::ask::{AnswerGiven, CacheAsking};
use super::cacheable::Cacheable;
use super::keep::{Keeping, keep, length, may_keep};
use super::serve::{say, serve};

fn arrival(asked: Tick) -> Arrival {
    let came = now();
    Arrival { asked, came, date: Cacheable::date(came) }
}

/// Takes away what is for caches alone.
fn strip(answer: &mut Head) {
    if answer.lines().iter().any(|line| is_for_caches_only(answer.at(line.name()))) {
        answer.remove(is_for_caches_only);
    }
}

impl CacheAsking {
    /// What becomes of what the backend has said, which got the request so many times; the head of its answer is in `answer`. `None`: it has to be asked once more, as what was
    /// stored has turned out to be another object.
    ///
    /// # Errors
    /// There is no answer.
    pub fn settle(
        &mut self,
        cacheable: &Cacheable<'_, '_>,
        (outcome, sends): (Result<Box<Call>, Cause>, u8),
        answer: &mut Head,
    ) -> Option<Result<AnswerGiven, Cause>> {
        let request = CacheRequest::read(cacheable.head(), cacheable.has_body);
        let (Ok(request), None) = (&request, self.past) else {
            return Some(
                outcome.map(|call| self.settle_past(cacheable, call, request.ok().as_ref(), answer)),
            );
        };
        let call = match outcome {
            Ok(call) => call,
            Err(cause) => {
                self.lead.take().into_iter().for_each(|lead| lead.fail(cause, sends));
                return Some(
                    self.stand_in(cacheable, request, None, answer).map(AnswerGiven::Body).ok_or(cause),
                );
            }
        };
        if is_backend_error(answer.status) {
            let mut instead = Head::new();
            if let Some(body) = self.stand_in(cacheable, request, Some(answer.status), &mut instead) {
                call.discard(now());
                *answer = instead;
                self.lead.take().into_iter().for_each(|lead| lead.fail(Cause::ErrorStatus, sends));
                return Some(Ok(AnswerGiven::Body(body)));
            }
        }
        let lead = self.lead.take().unwrap_or_else(|| cacheable.request.ctx.store.solo(&self.key));
        match &self.stale {
            Some((object, _)) if answer.status == 304 => {
                let object = Arc::clone(object);
                self.freshen(cacheable, request, &object, (call, lead), answer)
            }
            _ => Some(Ok(self.take(cacheable, request, (call, lead), answer))),
        }
    }

    fn say(&self, answer: &mut Head, status: &CacheStatus) {
        self.note.set(Some(status.note()));
        say(answer, status);
    }

    /// A request that went past what is stored.
    fn settle_past(
        &self,
        cacheable: &Cacheable<'_, '_>,
        call: Box<Call>,
        request: Option<&CacheRequest<'_>>,
        answer: &mut Head,
    ) -> AnswerGiven {
        if answer.status == 101 {
            return AnswerGiven::Call(call);
        }
        if let Some(request) = request.filter(|request| request.is_head) {
            note_head(cacheable, &self.key, request, answer, self.asked);
        }
        strip(answer);
        let forwarded = Some(self.why);
        self.say(answer, &CacheStatus { forwarded, detail: self.past, ..CacheStatus::default() });
        AnswerGiven::Call(call)
    }

    /// What a 304 makes of the stored answer, and of this one.
    fn freshen(
        &mut self,
        cacheable: &Cacheable<'_, '_>,
        request: &CacheRequest<'_>,
        object: &Arc<Object>,
        (call, lead): (Box<Call>, FlightLead),
        answer: &mut Head,
    ) -> Option<Result<AnswerGiven, Cause>> {
        let store = &cacheable.request.ctx.store;
        let sent = cacheable.sent();
        let asked_by = AskedBy { client: request, sent: sent.head(), known: cacheable.known };
        let arrival = arrival(self.asked);
        let freshened = freshen(&asked_by, &object.answer.head, answer, &cacheable.cache.policy, &arrival);
        call.discard(arrival.came);
        let Some(freshened) = freshened else {
            store.remove(object);
            self.lead = Some(lead);
            self.set_out_again(cacheable);
            return None;
        };
        let (mut served, mut freshness) = (Arc::clone(object), object.freshness());
        let forwarded = Some(self.why);
        let mut status = CacheStatus { forwarded, backend_status: Some(304), ..CacheStatus::default() };
        match freshened.kept {
            Ok(storable) => {
                freshness = storable.freshness;
                (status.stored, status.ttl) = (true, Some(freshness.seconds_left(arrival.came)));
                served = Arc::new(object.renewed(storable, lead.purges()));
                lead.keep(Arc::clone(&served));
            }
            Err(why) => {
                if !why.is_about_request() {
                    store.remove(object);
                }
                status.detail = Some(why);
                lead.alone(&self.key, None);
            }
        }
        self.note.set(Some(status.note()));
        let serving = cacheable.serving(request, status, arrival.came);
        let body = serve(&serving, &freshened.head, &freshness, &served, answer);
        // What is stored is whole, and what only the origin may judge it has just judged.
        Some(Ok(AnswerGiven::Body(body.unwrap_or(AnswerBody::Empty))))
    }

    /// Stores an answer, if that may be done.
    fn take(
        &self,
        cacheable: &Cacheable<'_, '_>,
        request: &CacheRequest<'_>,
        (call, lead): (Box<Call>, FlightLead),
        answer: &mut Head,
    ) -> AnswerGiven {
        let store = &cacheable.request.ctx.store;
        let arrival = arrival(self.asked);
        let sent = cacheable.sent();
        let asked_by = AskedBy { client: request, sent: sent.head(), known: cacheable.known };
        // Of what was stored, or is waited for by others, this one is not the first who wants it.
        let is_wanted = self.stale.is_some() || lead.is_followed();
        let room = || store.room(&self.key, length(&call), is_wanted);
        let judged = may_keep(&asked_by, answer, &cacheable.cache.policy, &arrival, room);
        let detail = match judged {
            Ok(kept) => return self.keep(cacheable, (call, lead), kept, answer),
            Err(why) => why,
        };
        if let Some((object, _)) = &self.stale
            && !detail.is_about_request()
            && (200..500).contains(&answer.status)
        {
            // There is something newer, which is not stored.
            store.remove(object);
        }
        // What a range or a condition of one client is answered with says nothing of what others would get.
        let is_likely = !detail.is_about_request()
            && !detail.is_of_the_moment()
            && (self.stale.is_some() || !request.is_conditional());
        lead.alone(&self.key, is_likely.then_some(arrival.came));
        strip(answer);
        let forwarded = Some(self.why);
        self.say(answer, &CacheStatus { forwarded, detail: Some(detail), ..CacheStatus::default() });
        AnswerGiven::Call(call)
    }

    /// Stores an answer as it comes.
    fn keep(
        &self,
        cacheable: &Cacheable<'_, '_>,
        (call, lead): (Box<Call>, FlightLead),
        (storable, room): (Storable, BodyRoom),
        answer: &mut Head,
    ) -> AnswerGiven {
        let ctx = cacheable.request.ctx;
        let ttl = Some(storable.freshness.seconds_left(now()));
        strip(answer);
        let forwarded = Some(self.why);
        self.say(answer, &CacheStatus { forwarded, ttl, stored: true, ..CacheStatus::default() });
        let to_the_end = cacheable.cache.policy.fill;
        AnswerGiven::Body(keep(ctx, call, Keeping { key: &self.key, storable, room, lead, to_the_end }))
    }
}

/// What the answer to HEAD makes of the stored one (RFC 9111 §4.3.5).
fn note_head(
    cacheable: &Cacheable<'_, '_>,
    key: &CacheKey,
    request: &CacheRequest<'_>,
    answer: &Head,
    asked: Tick,
) {
    let store = &cacheable.request.ctx.store;
    let sent = cacheable.sent();
    let found = store.find(key, |object| cacheable.fits(object, &sent));
    let crate::cache::store::Lookup::Object(object) = found else { return };
    let Some(body) = object.whole() else { return };
    let asked_by = AskedBy { client: request, sent: sent.head(), known: cacheable.known };
    let rules = &cacheable.cache.policy;
    match head_effect(&asked_by, &object.answer.head, body.length(), answer, rules, &arrival(asked)) {
        HeadEffect::Updated(storable) => {
            store.replace(&object, Arc::new(object.renewed(*storable, object.purges())));
        }
        HeadEffect::Stale => object.spoil(),
        HeadEffect::Nothing => {}
    }
}
