//! What a client gets from a stored answer: all of it, a part, or the word that it has it already (RFC 9111 §4.3.2, RFC 9110 §13.2.2).

use crate::message::Head;

use super::date::{HttpSeconds, http_date};
use super::etag::{is_strongly_same, is_weakly_same, tags};
use super::fields::{copy, is, single, values};
use super::freshness::modified;
use super::range::{ByteRange, byte_range};
use super::request::CacheRequest;

/// What of a stored answer goes to a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Served {
    /// All of it.
    Whole,
    /// 304: see [`not_modified`].
    NotModified,
    /// 206 with these bytes, the last one included: see [`partial`].
    Part {
        /// The first byte.
        first: u64,
        /// The last byte.
        last: u64,
    },
    /// 416: see [`unsatisfiable`].
    Unsatisfiable,
    /// A precondition that only the origin may judge does not hold here (`If-Match`, `If-Unmodified-Since`): the request goes past the
    /// cache, and if it is to be 412 the origin says so (RFC 9110 §13.1.1).
    Past,
}

/// What of a stored answer with a body of `length` bytes this client gets. `now`: the wall clock.
#[must_use]
pub fn answer_of(request: &CacheRequest<'_>, stored: &Head, length: u64, now: HttpSeconds) -> Served {
    if !request.is_conditional() {
        return Served::Whole;
    }
    if !(200..300).contains(&stored.status) {
        // RFC 9110 §13.2.1: a condition is one about the object, and this is none.
        return if request.has_origin_condition { Served::Past } else { Served::Whole };
    }
    let head = request.head;
    if request.has_origin_condition && !origin_condition_holds(head, stored, now) {
        return Served::Past;
    }
    if request.has_none_match {
        // RFC 9110 §13.1.3: If-Modified-Since is not asked where there is this one.
        if has_match(head, "if-none-match", stored, is_weakly_same) {
            return Served::NotModified;
        }
    } else if request.has_modified_since
        && let Some(since) = single(head, "if-modified-since").and_then(|text| http_date(text, now))
        && modified(stored, now).is_some_and(|modified| modified <= since)
    {
        return Served::NotModified;
    }
    // RFC 9110 §14.2: Range is for GET alone, and for what would be 200.
    if !request.has_range || request.is_head || stored.status != 200 {
        return Served::Whole;
    }
    if request.has_if_range && !if_range_holds(head, stored, now) {
        return Served::Whole;
    }
    match single(head, "range").map(|value| byte_range(value, length)) {
        Some(ByteRange::Part { first, last }) => Served::Part { first, last },
        Some(ByteRange::Unsatisfiable) => Served::Unsatisfiable,
        Some(ByteRange::Whole) | None => Served::Whole,
    }
}

/// Whether one of the listed tags is that of the stored answer, or `*` stands for any.
fn has_match(request: &Head, name: &str, stored: &Head, is_same: fn(&[u8], &[u8]) -> bool) -> bool {
    let etag = single(stored, "etag");
    let mut lists = values(request, name);
    lists.any(|list| list == b"*" || etag.is_some_and(|etag| tags(list).any(|tag| is_same(tag, etag))))
}

/// `If-Match`, or where there is none `If-Unmodified-Since` (RFC 9110 §13.2.2).
fn origin_condition_holds(request: &Head, stored: &Head, now: HttpSeconds) -> bool {
    if values(request, "if-match").next().is_some() {
        return has_match(request, "if-match", stored, is_strongly_same);
    }
    let date = |head, name| single(head, name).and_then(|text| http_date(text, now));
    match (date(request, "if-unmodified-since"), date(stored, "last-modified")) {
        (Some(since), Some(modified)) => modified <= since,
        _ => false,
    }
}

/// `If-Range` (RFC 9110 §13.1.5): a tag by the strong comparison, or the very date at which a stored answer was last modified, if that
/// is a strong validator: at least a second before the answer was made (§8.8.2.2).
fn if_range_holds(request: &Head, stored: &Head, now: HttpSeconds) -> bool {
    let Some(value) = single(request, "if-range") else { return false };
    if value.contains(&b'"') {
        return single(stored, "etag").is_some_and(|etag| is_strongly_same(etag, value));
    }
    let date = |name| single(stored, name).and_then(|text| http_date(text, now));
    match (http_date(value, now), date("last-modified"), date("date")) {
        (Some(theirs), Some(modified), Some(made)) => theirs == modified && modified < made,
        _ => false,
    }
}

/// The head of a 304 from a stored answer: what a 200 would have said of caches and of the object's name (RFC 9110 §15.4.5).
#[must_use]
pub fn not_modified(stored: &Head) -> Head {
    let has_tag = super::fields::has(stored, "etag");
    copy(stored, 304, |line| {
        let name = stored.at(line.name());
        match name.len() {
            4 => is(name, "etag") || is(name, "date") || is(name, "vary"),
            7 => is(name, "expires"),
            13 => is(name, "cache-control") || is(name, "last-modified") && !has_tag,
            16 => is(name, "content-location"),
            17 => is(name, "cdn-cache-control"),
            _ => false,
        }
    })
}

/// The head of a 206 from a stored 200 (RFC 9110 §15.3.7).
#[must_use]
pub fn partial(stored: &Head, (first, last): (u64, u64), length: u64) -> Head {
    let mut head = copy(stored, 206, |_| true);
    head.push(b"Content-Range", format!("bytes {first}-{last}/{length}").as_bytes());
    head
}

/// The head of a 416 about a stored 200 (RFC 9110 §15.5.17). It has no body.
#[must_use]
pub fn unsatisfiable(stored: &Head, length: u64) -> Head {
    let mut head = copy(stored, 416, |line| is(stored.at(line.name()), "date"));
    head.push(b"Content-Range", format!("bytes */{length}").as_bytes());
    head
}
