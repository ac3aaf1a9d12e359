//! The rules together. Dates are written as seconds around [`DATE`], when every answer of these tests came.

mod freshness;
mod preconditions;
mod properties;
mod storing;
mod using;
mod validation;

use std::time::Duration;

use crate::config::model::cache::CachePolicy;
use crate::message::{Head, WhyNot};
use crate::tick::Tick;

use super::date::written;
use super::{Arrival, AskedBy, CacheRequest, Freshness, HttpSeconds, KnownClient, Storable, may_store};

/// Sun, 06 Nov 1994 08:49:37 GMT.
const DATE: HttpSeconds = 784_111_777;
/// When answers are asked for and come.
const CAME: Tick = Tick(5_000_000_000_000);
const ARRIVAL: Arrival = Arrival { asked: CAME, came: CAME, date: DATE };

type Lines<'a> = &'a [(&'a str, &'a str)];

/// So many seconds after the answer came.
fn later(seconds: u64) -> Tick {
    CAME.after(Duration::from_secs(seconds))
}

fn date(offset: i64) -> String {
    written(DATE + offset)
}

fn with(mut head: Head, lines: Lines<'_>) -> Head {
    for (name, value) in lines {
        head.push(name.as_bytes(), value.as_bytes());
    }
    head
}

fn get(lines: Lines<'_>) -> Head {
    with(Head::request("GET", "/", "a.example"), lines)
}

fn ok(lines: Lines<'_>) -> Head {
    with(Head::answer(200), lines)
}

/// Only what answers say counts.
fn rules() -> CachePolicy {
    CachePolicy { ttl: None, ..CachePolicy::default() }
}

fn ttl(seconds: u64) -> CachePolicy {
    CachePolicy { ttl: Some(Duration::from_secs(seconds)), ..rules() }
}

/// What becomes of an answer to a request that is sent as it came.
fn stored_by(
    request: &Head,
    answer: &Head,
    rules: &CachePolicy,
    known: KnownClient,
) -> Result<Storable, WhyNot> {
    let client = CacheRequest::read(request, false).expect("a request for the cache");
    may_store(&AskedBy { client: &client, sent: request, known }, answer, rules, &ARRIVAL)
}

fn stored(answer: &Head, rules: &CachePolicy) -> Result<Storable, WhyNot> {
    stored_by(&get(&[]), answer, rules, KnownClient::No)
}

/// How long an answer with these lines is fresh.
fn freshness(lines: Lines<'_>) -> Freshness {
    stored(&ok(&[lines, &[("ETag", "\"1\"")]].concat()), &rules()).expect("stored").freshness
}

fn text(head: &Head) -> String {
    String::from_utf8_lossy(head.at(head.start_and_lines())).into_owned()
}
