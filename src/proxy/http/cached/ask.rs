//! Asking the backend for what is not stored, or has to be asked for again: one for all who want the same.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll};

use crate::cache::store::{Entrance, Follower, Landed, Lead, Object};
use crate::cache::{AskAgain, CacheKey, CacheRequest, CacheStatus, Use, WhyForwarded, may_use};
use crate::cache::{conditions, is_backend_error, is_condition};
use crate::message::{Cause, Head};
use crate::net::now;
use crate::proxy::http::answer_body::AnswerBody;
use crate::proxy::http::call::Call;
use crate::tick::Tick;

use super::sent::{SentHead, selected};
use super::serve::serve;
use super::settle::{Settling, past, settle};
use super::{Asking, Cacheable, WhyAsked};

/// Who can be asked for answers.
#[allow(async_fn_in_trait, reason = "all implementers are ours and stay on one thread")]
pub trait Origin {
    /// Sends a request with this head. The head of the answer is in `answer` then.
    ///
    /// # Errors
    /// Why there is none.
    async fn forward(&mut self, head: &Head, answer: &mut Head) -> Result<Box<Call>, Cause>;

    /// Ready when there is no use in waiting any more.
    fn poll_gone(&mut self, cx: &mut Context<'_>) -> Poll<()>;
}

/// An answer whose head is there.
pub enum Given {
    /// A backend's; the body is to be had from it.
    Call(Box<Call>),
    /// One with this body.
    Body(AnswerBody),
}

/// A request that goes to a backend, and what is stored already.
pub(super) struct Round<'r, 'x, 'a> {
    /// The request.
    pub cacheable: &'r Cacheable<'x, 'a>,
    /// The same, as the cache reads it.
    pub request: &'r CacheRequest<'a>,
    /// Its key.
    pub key: &'r CacheKey,
    /// The same as the backend gets it.
    pub sent: &'r SentHead<'r>,
    /// Why it goes there.
    pub why: WhyForwarded,
    /// What is stored, and until when it may stand in.
    pub stale: Option<(Arc<Object>, Option<Tick>)>,
}

/// Asks. The head of the answer is in `answer` then.
///
/// # Errors
/// Why there is none.
pub async fn ask(
    cacheable: &Cacheable<'_, '_>,
    asking: Asking,
    answer: &mut Head,
    origin: &mut impl Origin,
) -> Result<Given, Cause> {
    let Asking { key, why } = asking;
    let head = cacheable.head();
    let request = match (why, CacheRequest::read(head, cacheable.has_body)) {
        (WhyAsked::Past(why), _) | (_, Err(why)) => {
            return past(cacheable, &key, (why, WhyForwarded::Bypass), answer, origin).await;
        }
        (WhyAsked::Miss(why), Ok(request)) => (request, why, None),
        (WhyAsked::Again { object, why, stands_in_until }, Ok(request)) => {
            let why = match why {
                AskAgain::Client => WhyForwarded::Request,
                AskAgain::Stale | AskAgain::Origin => WhyForwarded::Stale,
            };
            (request, why, Some((object, stands_in_until)))
        }
    };
    let (request, why, stale) = request;
    if request.is_head {
        return past(cacheable, &key, (crate::cache::WhyNot::Method, why), answer, origin).await;
    }
    let sent = SentHead::new(cacheable);
    let round = Round { cacheable, request: &request, key: &key, sent: &sent, why, stale };
    let lead = match enter(&round, answer, origin).await? {
        Entered::Served(body) => return Ok(Given::Body(body)),
        Entered::Leads(lead) => lead,
    };
    lead_on(&round, lead, answer, origin).await
}

enum Entered {
    Served(AnswerBody),
    Leads(Lead),
}

/// Waits for another's answer, if another asks for the same; else leads.
async fn enter(
    round: &Round<'_, '_, '_>,
    answer: &mut Head,
    origin: &mut impl Origin,
) -> Result<Entered, Cause> {
    let Round { cacheable, request, key, sent, stale, .. } = round;
    let store = &cacheable.request.ctx.store;
    // What such a request gets is likely to be for it alone; and a condition of a client is none of another's.
    let is_common = !request.has_authorization && (stale.is_some() || !request.is_conditional());
    if !is_common {
        return Ok(Entered::Leads(store.solo(key)));
    }
    loop {
        let object = match store.enter(key, |object| cacheable.fits(object, sent), now()) {
            Entrance::Lead(lead) => return Ok(Entered::Leads(lead)),
            Entrance::Alone => return Ok(Entered::Leads(store.solo(key))),
            Entrance::Join(object) => object,
            Entrance::Follow(mut follower) => match follow(round, &mut follower, origin).await? {
                Landed::Lead => return Ok(Entered::Leads(store.lead_on(&follower, key))),
                Landed::Alone => return Ok(Entered::Leads(store.solo(key))),
                Landed::Failed(cause) => {
                    return stand_in(round, None, answer).map(Entered::Served).ok_or(cause);
                }
                Landed::Object(object) if cacheable.fits(&object, sent) => object,
                // It is for others: somebody will lead those that want another variant.
                Landed::Object(_) => continue,
            },
        };
        return Ok(match join(round, &object, answer) {
            Some(body) => Entered::Served(body),
            None => Entered::Leads(store.solo(key)),
        });
    }
}

/// Waits until something has become of a flight.
async fn follow(
    round: &Round<'_, '_, '_>,
    follower: &mut Follower,
    origin: &mut impl Origin,
) -> Result<Landed, Cause> {
    let Cacheable { request, destination, .. } = round.cacheable;
    // As long as it would wait for a backend.
    let deadline = request.ctx.ticker.deadline();
    deadline.set(destination.rules.timeouts.first_byte);
    poll_fn(|cx| {
        if let Poll::Ready(landed) = follower.poll(cx) {
            return Poll::Ready(Ok(landed));
        }
        if origin.poll_gone(cx).is_ready() {
            return Poll::Ready(Err(Cause::ClientGone));
        }
        deadline.poll(cx).map(|()| Ok(Landed::Alone))
    })
    .await
}

/// Serves what another has asked for. `None`: it can't be used for this request.
fn join(round: &Round<'_, '_, '_>, object: &Arc<Object>, answer: &mut Head) -> Option<AnswerBody> {
    let Round { cacheable, request, why, .. } = round;
    let (freshness, now) = (object.freshness(), now());
    let used = may_use(&freshness, &request.deaf(), cacheable.cache.rules.ignores_cookies, now);
    if used != Use::Fresh {
        return None;
    }
    let status = CacheStatus { forwarded: Some(*why), collapsed: true, ..CacheStatus::hit(&freshness, now) };
    serve(&cacheable.serving(request, status, now), &object.answer.head, &freshness, &object.body, answer)
}

/// Serves what is stored in the place of an answer that there is not. `None`: it may not stand in.
fn stand_in(round: &Round<'_, '_, '_>, backend_status: Option<u16>, answer: &mut Head) -> Option<AnswerBody> {
    let Round { cacheable, request, stale, why, .. } = round;
    let (object, until) = stale.as_ref()?;
    let now = now();
    until.filter(|until| now < *until)?;
    let freshness = object.freshness();
    let status = CacheStatus { forwarded: Some(*why), backend_status, ..CacheStatus::hit(&freshness, now) };
    serve(&cacheable.serving(request, status, now), &object.answer.head, &freshness, &object.body, answer)
}

/// Asks the backend, and lets all who follow have what comes.
async fn lead_on(
    round: &Round<'_, '_, '_>,
    lead: Lead,
    answer: &mut Head,
    origin: &mut impl Origin,
) -> Result<Given, Cause> {
    let Round { cacheable, stale, .. } = round;
    let own = cacheable.way.head(cacheable.head());
    let chosen = selected(own, cacheable);
    let base = chosen.as_ref().unwrap_or(own);
    let conditional = stale.as_ref().map(|(object, _)| {
        conditions(base, &object.answer.head).unwrap_or_else(|| base.without(is_condition))
    });
    let asked = now();
    let call = match origin.forward(conditional.as_ref().unwrap_or(base), answer).await {
        Ok(call) => call,
        Err(cause) => {
            lead.fail(cause);
            return stand_in(round, None, answer).map(Given::Body).ok_or(cause);
        }
    };
    if is_backend_error(answer.status)
        && let Some(body) = stand_in(round, Some(answer.status), &mut Head::new())
    {
        // Its head is written once it is sure that it is sent.
        drop(body);
        let status = answer.status;
        call.discard(now());
        lead.fail(Cause::ErrorStatus);
        return stand_in(round, Some(status), answer).map(Given::Body).ok_or(Cause::ErrorStatus);
    }
    let settling = Settling { round, asked };
    match settle(&settling, call, lead, answer) {
        Ok(given) => Ok(given),
        // It was about another object: the stored one is gone, and the backend is asked once more.
        Err(lead) => {
            let asked = now();
            let plain = base.without(is_condition);
            let call = match origin.forward(&plain, answer).await {
                Ok(call) => call,
                Err(cause) => {
                    lead.fail(cause);
                    return Err(cause);
                }
            };
            let round = Round { stale: None, ..*round };
            settle(&Settling { round: &round, asked }, call, lead, answer).map_err(|lead| {
                lead.fail(Cause::BadAnswer);
                Cause::BadAnswer
            })
        }
    }
}
