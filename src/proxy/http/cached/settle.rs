//! What becomes of a backend's answer: whether it is stored, and what its client gets.

use std::sync::Arc;

use crate::cache::store::{Filling, Lead, Object, ObjectBody, StoredBody};
use crate::cache::{
    Arrival, AskedBy, CacheKey, CacheRequest, CacheStatus, HeadEffect, Storable, WhyForwarded, WhyNot,
    freshen, head_effect, is_for_caches_only, may_store,
};
use crate::message::{Cause, Framing, Head, tokens};
use crate::net::now;
use crate::proxy::http::answer_body::AnswerBody;
use crate::proxy::http::call::Call;
use crate::proxy::http::reply::Reply;
use crate::tick::Tick;

use super::Cacheable;
use super::ask::{Given, Origin, Round};
use super::fill::{Fill, fill};
use super::reading::StoredReading;
use super::sent::{SentHead, selected};
use super::serve::{say, serve};

/// Bodies up to this size that came with their head are stored at once.
const AT_ONCE: usize = 64 * 1024;

/// An answer that has come.
pub(super) struct Settling<'r, 's, 'x, 'a> {
    /// What was asked.
    pub round: &'r Round<'s, 'x, 'a>,
    /// When.
    pub asked: Tick,
}

/// Header lines of requests that we write ourselves, differently for each client: what varies by them is for one alone.
const OURS: [&str; 7] = [
    "x-forwarded-for",
    "x-real-ip",
    "forwarded",
    "x-request-id",
    "client-cert",
    "client-cert-chain",
    "retry-attempt",
];

/// Whether an answer varies by what we write ourselves.
pub(super) fn varies_by_ours(answer: &Head) -> bool {
    let mut lines = answer.lines().iter().map(|line| answer.pair(line));
    lines.any(|(name, value)| {
        name.eq_ignore_ascii_case(b"vary")
            && tokens(value).any(|name| OURS.iter().any(|ours| name.eq_ignore_ascii_case(ours.as_bytes())))
    })
}

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

/// What becomes of an answer, whose head is in `answer`.
///
/// # Errors
/// It is a 304 about another object than the stored one, which is gone now: the backend has to be asked without conditions.
pub(super) fn settle(
    settling: &Settling<'_, '_, '_, '_>,
    call: Box<Call>,
    lead: Lead,
    answer: &mut Head,
) -> Result<Given, Lead> {
    let Round { cacheable, request, key, sent, why, stale } = settling.round;
    let rules = &cacheable.cache.rules;
    let arrival = arrival(settling.asked);
    let asked_by = AskedBy { client: request, sent: sent.head(), known: cacheable.known };
    let status = CacheStatus { forwarded: Some(*why), ..CacheStatus::default() };
    if let Some((object, _)) = stale.as_ref().filter(|_| answer.status == 304) {
        let freshened = freshen(&asked_by, &object.answer.head, answer, rules, &arrival);
        call.discard(arrival.came);
        let Some(freshened) = freshened else {
            cacheable.request.ctx.store.remove(object);
            return Err(lead);
        };
        let mut freshness = object.freshness();
        let mut status = CacheStatus { backend_status: Some(304), ..status };
        match freshened.kept {
            Ok(mut storable) => {
                if storable.tags.is_empty() {
                    storable.tags.clone_from(&object.answer.tags);
                }
                freshness = storable.freshness;
                (status.stored, status.ttl) = (true, Some(freshness.seconds_left(arrival.came)));
                let body = object.body.clone();
                let object = Object::new((*key).clone(), Arc::new(storable), body, lead.purges());
                lead.keep(Arc::new(object));
            }
            Err(why) => {
                if !why.is_about_request() {
                    cacheable.request.ctx.store.remove(object);
                }
                status.detail = Some(why);
                lead.alone(key, None);
            }
        }
        let serving = cacheable.serving(request, status, arrival.came);
        let body = serve(&serving, &freshened.head, &freshness, &object.body, answer);
        // What is stored is whole, and what only the origin may judge it has just judged.
        return Ok(Given::Body(body.unwrap_or(AnswerBody::Empty)));
    }
    let judged = match call.framing() {
        Framing::Length(length) if length > cacheable.request.ctx.store.most() => Err(WhyNot::TooLarge),
        _ if varies_by_ours(answer) => Err(WhyNot::VaryStar),
        _ => may_store(&asked_by, answer, rules, &arrival),
    };
    let detail = match judged {
        Ok(storable) => return Ok(store(settling, (call, lead), storable, status, answer)),
        Err(why) => why,
    };
    if let Some((object, _)) = stale
        && !detail.is_about_request()
        && (200..500).contains(&answer.status)
    {
        // There is something newer, which is not stored.
        cacheable.request.ctx.store.remove(object);
    }
    lead.alone(key, (!detail.is_about_request()).then_some(arrival.came));
    strip(answer);
    say(answer, &CacheStatus { detail: Some(detail), ..status });
    Ok(Given::Call(call))
}

/// Stores an answer as it comes.
fn store(
    settling: &Settling<'_, '_, '_, '_>,
    (call, mut lead): (Box<Call>, Lead),
    storable: Storable,
    status: CacheStatus,
    answer: &mut Head,
) -> Given {
    let Round { cacheable, key, .. } = settling.round;
    let ctx = cacheable.request.ctx;
    let freshness = storable.freshness;
    let storable = Arc::new(storable);
    let object =
        |body, lead: &Lead| Arc::new(Object::new((*key).clone(), Arc::clone(&storable), body, lead.purges()));
    strip(answer);
    let ttl = Some(freshness.seconds_left(now()));
    say(answer, &CacheStatus { ttl, stored: true, ..status });
    let framing = call.framing();
    let expected = match framing {
        Framing::Length(length) => Some(length),
        Framing::None => Some(0),
        Framing::Chunked | Framing::UntilClose => None,
    };
    let mut reply = Reply::new(call);
    let mut here = Vec::new();
    if expected == Some(0)
        || expected.is_some_and(|length| length <= AT_ONCE as u64) && reply.append_rest(&mut here, AT_ONCE)
    {
        let body = StoredBody::whole(&here);
        let all = AnswerBody::Stored(Box::new(StoredReading::part(&body, 0, body.length(), &ctx.buffers)));
        let whole = object(ObjectBody::Whole(body), &lead);
        lead.keep(whole);
        return match framing {
            Framing::None => Given::Body(AnswerBody::Reply(reply)),
            _ if expected == Some(0) => Given::Body(AnswerBody::Reply(reply)),
            _ => Given::Body(all),
        };
    }
    let filling = Filling::new(ctx.store.most(), expected);
    let object = object(ObjectBody::Filling(Arc::clone(&filling)), &lead);
    let Some(reading) = StoredReading::all(&object.body, &ctx.buffers) else {
        return Given::Body(AnswerBody::Reply(reply));
    };
    lead.open(&object);
    let to_the_end = cacheable.cache.policy.fill;
    tokio::task::spawn_local(fill(Fill { reply, filling, lead: Some(lead), object, to_the_end }));
    Given::Body(AnswerBody::Stored(Box::new(reading)))
}

/// A request that goes past what is stored, and what its answer makes of that.
///
/// # Errors
/// Why there is no answer.
pub(super) async fn past(
    cacheable: &Cacheable<'_, '_>,
    key: &CacheKey,
    (detail, why): (WhyNot, WhyForwarded),
    answer: &mut Head,
    origin: &mut impl Origin,
) -> Result<Given, Cause> {
    let own = cacheable.way.head(cacheable.head());
    let chosen = selected(own, cacheable);
    let asked = now();
    let call = origin.forward(chosen.as_ref().unwrap_or(own), answer).await?;
    if answer.status == 101 {
        return Ok(Given::Call(call));
    }
    if let Ok(request) = CacheRequest::read(cacheable.head(), cacheable.has_body)
        && request.is_head
    {
        note_head(cacheable, key, &request, answer, asked);
    }
    strip(answer);
    let why =
        if detail == WhyNot::Method && why == WhyForwarded::Bypass { WhyForwarded::Method } else { why };
    say(answer, &CacheStatus { forwarded: Some(why), detail: Some(detail), ..CacheStatus::default() });
    Ok(Given::Call(call))
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
    let sent = SentHead::new(cacheable);
    let found = store.find(key, |object| cacheable.fits(object, &sent));
    let crate::cache::store::Lookup::Object(object) = found else { return };
    let ObjectBody::Whole(body) = &object.body else { return };
    let asked_by = AskedBy { client: request, sent: sent.head(), known: cacheable.known };
    let rules = &cacheable.cache.rules;
    match head_effect(&asked_by, &object.answer.head, body.length(), answer, rules, &arrival(asked)) {
        HeadEffect::Updated(storable) => {
            let updated = Object::new(key.clone(), Arc::from(storable), object.body.clone(), object.purges());
            store.replace(Arc::new(updated));
        }
        HeadEffect::Stale => object.spoil(),
        HeadEffect::Nothing => {}
    }
}
