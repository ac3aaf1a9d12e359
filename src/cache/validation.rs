//! Asking again: what the backend is asked, and what its answer makes of the stored one (RFC 9111 §4.3).

use crate::config::model::cache::CachePolicy;
use crate::message::{Head, HeadLine, HeaderField, WhyNot};

use super::arrival::Arrival;
use super::etag::{is_strong, is_weakly_same};
use super::fields::{has, is, single};
use super::storing::{AskedBy, Storable, is_for_caches_only, judge, keeps_line};

/// The request by which a stored answer is asked for again (RFC 9111 §4.3.1): the one that would be sent anyhow, without the
/// preconditions and the range of its client, who is answered [from what comes of it](super::answer_of). `None`: there is nothing to
/// ask by, and the request goes as it is without [those lines](is_condition).
///
/// It must have the same variant as the stored one: a tag says nothing about another one.
#[must_use]
pub fn conditions(sent: &Head, stored: &Head) -> Option<Head> {
    let etag = single(stored, "etag");
    let modified = single(stored, "last-modified");
    if etag.is_none() && modified.is_none() {
        return None;
    }
    let mut head = sent.without(is_condition);
    if let Some(etag) = etag {
        head.push(b"If-None-Match", etag);
    }
    if let Some(modified) = modified {
        head.push(b"If-Modified-Since", modified);
    }
    Some(head)
}

/// Whether a line is a precondition or a range: those of a client are not sent when an object is asked for as a whole.
#[must_use]
pub fn is_condition(name: &[u8]) -> bool {
    match name.len() {
        5 => is(name, "range"),
        8 => is(name, "if-match") || is(name, "if-range"),
        13 => is(name, "if-none-match"),
        17 => is(name, "if-modified-since"),
        19 => is(name, "if-unmodified-since"),
        _ => false,
    }
}

/// What a 304 makes of a stored answer.
#[derive(Debug)]
pub struct Freshened {
    /// The head of the answer for the client whose request was sent: the stored body is its body. It may have lines that are for this
    /// client alone.
    pub head: Head,
    /// What takes the place of the stored answer. `Err`: nothing does; if that is [about the request](WhyNot::is_about_request) the
    /// stored answer stays as it is, else it goes.
    pub kept: Result<Storable, WhyNot>,
}

/// What the stored answer is after a 304 (RFC 9111 §3.2, §4.3.4): its lines, with those of the 304 in their place. The body stays, so
/// lines that say how it is coded stay as well. A 304 without tags of the cache leaves those that there are.
///
/// `None`: the 304 is about another object. The stored one goes, and the backend is asked without conditions.
#[must_use]
pub fn freshen(
    asked: &AskedBy<'_>,
    stored: &Head,
    not_modified: &Head,
    rules: &CachePolicy,
    arrival: &Arrival,
) -> Option<Freshened> {
    let (theirs, ours) = (single(not_modified, "etag"), single(stored, "etag"));
    let modified = |head| single(head, "last-modified");
    let is_same = match (theirs, ours) {
        (Some(theirs), Some(ours)) if is_strong(theirs) => theirs == ours,
        (Some(theirs), Some(ours)) => is_weakly_same(theirs, ours),
        // A tag that we never had is one of another object.
        (Some(theirs), None) => !is_strong(theirs),
        (None, _) => match (modified(not_modified), modified(stored)) {
            (Some(theirs), Some(ours)) => theirs == ours,
            _ => true,
        },
    };
    if !is_same {
        return None;
    }
    let mut head = updated(stored, not_modified);
    let kept = judge(asked, &head, rules, arrival);
    // These have been read; who sends the answer writes its age anew.
    head.remove(|name| is(name, "age") || is_for_caches_only(name));
    Some(Freshened { head, kept })
}

/// The lines of a stored answer, with those of a newer one about the same object in their place.
fn updated(stored: &Head, newer: &Head) -> Head {
    // The age of the newer one is the age of both now.
    let updates = |line: &HeadLine| {
        let name = newer.at(line.name());
        keeps_line(newer, line) && !describes_coding(name) || is_read_only(name)
    };
    let replaces = |name: &[u8]| {
        let same = |line: &&HeadLine| newer.at(line.name()).eq_ignore_ascii_case(name);
        newer.lines().iter().filter(|line| updates(line)).any(|line| same(&line))
    };
    let mut head = super::fields::copy(stored, stored.status, |line| {
        line.field != HeaderField::Date && !replaces(stored.at(line.name()))
    });
    for line in newer.lines().iter().filter(|line| updates(line)) {
        let (name, value) = newer.pair(line);
        head.push(name, value);
    }
    head
}

/// Lines without which the stored bytes could not be read: their change would be a change of the body.
fn describes_coding(name: &[u8]) -> bool {
    is(name, "content-encoding") || is(name, "content-range")
}

/// Lines that are read when an answer is judged and are then left out of what is stored.
fn is_read_only(name: &[u8]) -> bool {
    match name.len() {
        3 => is(name, "age"),
        9 => is(name, "cache-tag"),
        10 => is(name, "set-cookie"),
        13 => is(name, "surrogate-key"),
        _ => false,
    }
}

/// What an answer to HEAD that went to the backend makes of what is stored for GET (RFC 9111 §4.3.5).
#[derive(Debug)]
pub enum HeadEffect {
    /// It is about the same object, and updates it.
    Updated(Box<Storable>),
    /// It tells of another one: what is stored is [stale](super::Freshness::spoilt) now.
    Stale,
    /// It says nothing about it.
    Nothing,
}

/// See [`HeadEffect`]. `length`: of the stored body.
#[must_use]
pub fn head_effect(
    asked: &AskedBy<'_>,
    stored: &Head,
    length: u64,
    answer: &Head,
    rules: &CachePolicy,
    arrival: &Arrival,
) -> HeadEffect {
    if answer.status != 200 || stored.status != 200 {
        return HeadEffect::Nothing;
    }
    let is_length =
        |text: &[u8]| std::str::from_utf8(text).ok().and_then(|text| text.parse().ok()) == Some(length);
    let is_same = single(answer, "etag") == single(stored, "etag")
        && single(answer, "last-modified") == single(stored, "last-modified")
        && answer.value(HeaderField::ContentLength).is_none_or(is_length)
        && has(answer, "content-encoding") == has(stored, "content-encoding");
    if !is_same {
        return HeadEffect::Stale;
    }
    match judge(asked, &updated(stored, answer), rules, arrival) {
        Ok(storable) => HeadEffect::Updated(Box::new(storable)),
        Err(why) if why.is_about_request() => HeadEffect::Nothing,
        Err(_) => HeadEffect::Stale,
    }
}
