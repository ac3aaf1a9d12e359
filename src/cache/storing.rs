//! May an answer be stored, and what of it (RFC 9111 §3).

use crate::config::model::cache::CachePolicy;
use crate::message::{Fields, Head, HeadLine, HeaderField, WhyNot};

use super::arrival::{Arrival, KnownClient};
use super::date::written;
use super::directives::{AnswerDirectives, names_field};
use super::fields::{copy, has, is, items, values};
use super::freshness::{Basis, Freshness, is_heuristically_cacheable};
use super::request::CacheRequest;
use super::vary::Variant;

/// What is stored of an answer beside its body.
#[derive(Debug)]
pub struct Storable {
    /// The head as it is sent again: without lines of the connection, of its framing, of its age, of caches, and those that the answer
    /// itself excepts. It has a `Date`.
    pub head: Head,
    /// How long it may be used.
    pub freshness: Freshness,
    /// For which requests it is, of those with the same key.
    pub variant: Variant,
    /// What `Cache-Tag` and `Surrogate-Key` say.
    pub tags: Vec<Box<[u8]>>,
    /// `no-transform`: it is not to be compressed either (RFC 9111 §5.2.2.6).
    pub no_transform: bool,
}

/// What an answer was the answer to.
#[derive(Clone, Copy, Debug)]
pub struct AskedBy<'a> {
    /// What the client asked.
    pub client: &'a CacheRequest<'a>,
    /// The request as the backend got it: `Vary` speaks of this one.
    pub sent: &'a Head,
    /// Whether evenkeel knows the client.
    pub known: KnownClient,
}

/// Whether a cache that many clients share may store this answer (RFC 9111 §3, §3.5), and what of it. Its body must then come in
/// whole: an answer that breaks off is not stored (§3.3).
pub fn may_store(
    asked: &AskedBy<'_>,
    answer: &Head,
    rules: &CachePolicy,
    arrival: &Arrival,
) -> Result<Storable, WhyNot> {
    if asked.client.is_head {
        return Err(WhyNot::Method);
    }
    judge(asked, answer, rules, arrival)
}

/// The same for the head of an object that is stored already and was updated.
pub(super) fn judge(
    asked: &AskedBy<'_>,
    answer: &Head,
    rules: &CachePolicy,
    arrival: &Arrival,
) -> Result<Storable, WhyNot> {
    let said = AnswerDirectives::of(answer);
    may_keep(asked, answer, &said)?;
    let freshness = Freshness::of(answer, &said, rules, arrival).ok_or(WhyNot::SaysNothing)?;
    // A route's wish that everything is fresh is none that errors are.
    if freshness.is_unsaid && freshness.basis == Basis::Override && !is_ours_to_keep(answer.status, rules) {
        return Err(WhyNot::SaysNothing);
    }
    if freshness.is_unsaid && !rules.ignore_cookies && (asked.client.has_cookie || has(asked.sent, "cookie"))
    {
        return Err(WhyNot::Cookie);
    }
    let has_authorization = asked.client.has_authorization || asked.sent.has(HeaderField::Authorization);
    if freshness.basis != Basis::Said && has_authorization && !said.public && said.lifetime().is_none() {
        // `must-revalidate` lets others have it (RFC 9111 §3.5), but does not say that it is fresh for anybody.
        return Err(WhyNot::Authorization);
    }
    let can_be_asked_for = has(answer, "etag") || has(answer, "last-modified");
    let is_useful = !freshness.always_asks && freshness.useless_from() > arrival.came;
    if !is_useful && !can_be_asked_for {
        return Err(WhyNot::Stale);
    }
    let variant = Variant::of(answer, asked.sent).ok_or(WhyNot::VaryStar)?;
    Ok(Storable {
        head: stored_head(answer, &said, arrival),
        freshness,
        variant,
        tags: tags(answer),
        no_transform: said.no_transform,
    })
}

/// Who may have it beside the one who asked.
fn may_keep(asked: &AskedBy<'_>, answer: &Head, said: &AnswerDirectives) -> Result<(), WhyNot> {
    if asked.client.directives.no_store {
        return Err(WhyNot::RequestNoStore);
    }
    if answer.status < 200 || matches!(answer.status, 206 | 304) {
        return Err(WhyNot::Status);
    }
    // RFC 9110 §15.5.13, §15.5.17, §15.5.18, RFC 6585 §5: about lines of this request, which others do not send.
    if matches!(answer.status, 412 | 416 | 417 | 431) {
        return Err(WhyNot::Status);
    }
    if answer.status >= 400 && (asked.client.is_conditional() || asked.sent.has(HeaderField::Expect)) {
        return Err(WhyNot::Precondition);
    }
    if said.must_understand {
        // RFC 9111 §5.2.2.3: `no-store` beside it is for caches that know neither the status nor this directive.
        if !is_understood(answer.status) {
            return Err(WhyNot::Status);
        }
    } else if said.no_store {
        return Err(WhyNot::NoStore);
    }
    if said.private {
        return Err(WhyNot::Private);
    }
    let for_others = said.is_for_others();
    let has_authorization = asked.client.has_authorization || asked.sent.has(HeaderField::Authorization);
    if has_authorization && !said.is_for_others_than_authorized() {
        return Err(WhyNot::Authorization);
    }
    if asked.known == KnownClient::Yes && !for_others {
        return Err(WhyNot::KnownClient);
    }
    let sets_cookie = |name: &str| has(answer, name) && !names_field(answer, name.as_bytes());
    if !for_others && (sets_cookie("set-cookie") || sets_cookie("set-cookie2")) {
        return Err(WhyNot::SetCookie);
    }
    Ok(())
}

/// Statuses that a route's own wish may keep.
fn is_ours_to_keep(status: u16, rules: &CachePolicy) -> bool {
    is_heuristically_cacheable(status) && (status < 400 || rules.negative_ttl.is_some())
}

/// Statuses whose meaning for caches we keep to (RFC 9111 §5.2.2.3). 206 and 304 are none.
const fn is_understood(status: u16) -> bool {
    is_heuristically_cacheable(status)
        || matches!(status, 302 | 303 | 307 | 400 | 401 | 403 | 500 | 502 | 503 | 504)
}

/// Lines that are never stored, whatever the answer says of them.
const NEVER: Fields = Fields::HOP_BY_HOP.and(Fields::of(&[
    HeaderField::TransferEncoding,
    HeaderField::ContentLength,
    HeaderField::Trailer,
]));

/// The lines that are sent again (RFC 9111 §3.1). A cookie is never sent to somebody else, even where the answer is.
fn stored_head(answer: &Head, said: &AnswerDirectives, arrival: &Arrival) -> Head {
    // Where a targeted field counts, Cache-Control has not been read; what it keeps to itself is kept all the same.
    let names_fields = said.names_fields || said.is_targeted;
    let keeps = |line: &HeadLine| {
        keeps_line(answer, line) && !(names_fields && names_field(answer, answer.at(line.name())))
    };
    let mut head = copy(answer, answer.status, keeps);
    if !head.has(HeaderField::Date) {
        // RFC 9110 §6.6.1: who keeps an answer says when it came.
        head.push(b"Date", written(arrival.date).as_bytes());
    }
    head
}

/// Whether a line of an answer is one that is stored.
pub(super) fn keeps_line(answer: &Head, line: &HeadLine) -> bool {
    let name = answer.at(line.name());
    let is_of_cache = match name.len() {
        3 => is(name, "age"),
        9 => is(name, "cache-tag"),
        10 => is(name, "set-cookie"),
        11 => is(name, "set-cookie2"),
        12 => is(name, "cache-status"),
        13 => is(name, "surrogate-key"),
        25 => is(name, "proxy-authentication-info"),
        _ => false,
    };
    let is_named = || answer.has(HeaderField::Connection) && answer.lists(HeaderField::Connection, name);
    !NEVER.contains(line.field) && !is_of_cache && !is_named()
}

/// Whether a line is for caches alone and is taken away before an answer goes to a client, stored or not.
#[must_use]
pub fn is_for_caches_only(name: &[u8]) -> bool {
    is(name, "cache-tag") || is(name, "surrogate-key")
}

/// The tags of an answer: of `Cache-Tag` between commas, of `Surrogate-Key` between blanks.
fn tags(answer: &Head) -> Vec<Box<[u8]>> {
    let keys = values(answer, "surrogate-key").flat_map(|value| value.split(u8::is_ascii_whitespace));
    let mut tags: Vec<Box<[u8]>> = values(answer, "cache-tag")
        .flat_map(items)
        .chain(keys.filter(|key| !key.is_empty()))
        .map(Box::from)
        .collect();
    tags.sort_unstable();
    tags.dedup();
    tags
}
