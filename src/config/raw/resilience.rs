//! The written form of what a target does about backends that fail, and about more requests than they can take.

use std::ops::RangeInclusive;
use std::time::Duration;

use super::bounds::{
    ATTEMPTS_MAX, COUNT_MAX, DAY, FAILURES, HOUR, IN_FLIGHT_MAX, MILLISECOND, MINUTE, PERCENTILE, SECOND,
    SLOWER,
};
use super::group::{section_or_off, there_already};
use super::reader::{Reader, Section, choose, found, is_off, is_on, out_of_range, subject};
use super::shape;
use super::statuses::{self, statuses};
use super::vocabulary::spoken::{Condition, InFlight};
use crate::config::edit::Fix;
use crate::config::error::{Wrong, quoted};
use crate::config::origin::{Field, Spot, Written};
use crate::config::units;
use crate::config::yaml::{Entry, Typed};

/// A key that may be absent, and a value of `None`: `off`.
type OrOff<T> = Option<Written<Option<T>>>;

/// The keys of a target for bad times, as written.
#[derive(Debug, Default)]
pub(in crate::config) struct RawResilience {
    pub(in crate::config) breaker: OrOff<RawBreaker>,
    pub(in crate::config) outlier: OrOff<RawOutlier>,
    pub(in crate::config) retries: OrOff<RawRetries>,
    pub(in crate::config) hedging: OrOff<RawHedging>,
    pub(in crate::config) max_in_flight: OrOff<InFlight>,
    pub(in crate::config) queue: OrOff<RawQueue>,
    /// `off` is 0.
    pub(in crate::config) panic_threshold: Option<Written<u8>>,
}

/// `breaker` when it is not `off`.
#[derive(Debug, Default)]
pub(in crate::config) struct RawBreaker {
    pub(in crate::config) failures: Option<Written<u32>>,
    pub(in crate::config) open: Option<Written<Duration>>,
    pub(in crate::config) statuses: Option<Written<Vec<RangeInclusive<u16>>>>,
}

/// `outlier` when it is not `off`; each `off` inside is 0.
#[derive(Debug, Default)]
pub(in crate::config) struct RawOutlier {
    pub(in crate::config) failures: Option<Written<u8>>,
    pub(in crate::config) error_rate: Option<Written<u8>>,
    pub(in crate::config) latency: Option<Written<u8>>,
    pub(in crate::config) window: Option<Written<Duration>>,
    pub(in crate::config) requests: Option<Written<u32>>,
    pub(in crate::config) ejection: Field<Duration>,
    pub(in crate::config) ejection_max: Option<Written<Duration>>,
    pub(in crate::config) max_ejected: Option<Written<u8>>,
}

/// `retries` when it is not `off`.
#[derive(Debug, Default)]
pub(in crate::config) struct RawRetries {
    pub(in crate::config) attempts: Option<Written<u8>>,
    pub(in crate::config) on: Option<Written<Vec<Written<Condition>>>>,
    pub(in crate::config) budget: Option<Written<u8>>,
    /// `off` is zero.
    pub(in crate::config) backoff: Option<Written<Duration>>,
}

/// `hedging` when it is not `off`.
#[derive(Debug, Default)]
pub(in crate::config) struct RawHedging {
    pub(in crate::config) percentile: Option<Written<u8>>,
    pub(in crate::config) budget: Option<Written<u8>>,
}

/// `queue` when it is not `off`.
#[derive(Debug, Default)]
pub(in crate::config) struct RawQueue {
    pub(in crate::config) size: Option<Written<u32>>,
    /// The same setting as `timeouts.queue`.
    pub(in crate::config) timeout: Option<Written<Duration>>,
}

/// Walks the keys of a target for bad times.
pub(super) fn walk(
    section: &Section<'_>,
    reader: &mut Reader<'_>,
    http_only: &mut Vec<(&'static str, Spot)>,
) -> RawResilience {
    if let Some(entry) = section.find("hedging") {
        http_only.push(("hedging", reader.key_spot(entry)));
    }
    RawResilience {
        breaker: section.find("breaker").and_then(|entry| breaker(entry, reader, http_only)),
        outlier: section.find("outlier").and_then(|entry| outlier(entry, reader)),
        retries: section.find("retries").and_then(|entry| retries(entry, reader, http_only)),
        hedging: section.find("hedging").and_then(|entry| hedging(entry, reader)),
        max_in_flight: section.find("max_in_flight").and_then(|entry| in_flight(entry, reader, http_only)),
        queue: section.find("queue").and_then(|entry| queue(entry, reader)),
        panic_threshold: section
            .find("panic_threshold")
            .and_then(|entry| percent_or_off(entry, reader, 0..=100)),
    }
}

/// What to say to somebody who switches on what is on.
fn by_default(entry: &Entry) -> Option<Advice> {
    (entry.node.typed() == Typed::Bool(true)).then(|| {
        let words = "it is on unless it is `off`: remove the line".to_owned();
        (words, Fix::Remove(entry.key_place))
    })
}

/// Words with the edit that they propose.
type Advice = (String, Fix);

/// Another value for a key.
fn write(value: String) -> Advice {
    (format!("write `{value}`"), Fix::Value(value))
}

/// A whole number where a mapping belongs.
fn bare(entry: &Entry) -> Option<u32> {
    match entry.node.typed() {
        Typed::Integer(number) => u32::try_from(number).ok(),
        _ => None,
    }
}

fn breaker(
    entry: &Entry,
    reader: &mut Reader<'_>,
    http_only: &mut Vec<(&'static str, Spot)>,
) -> OrOff<RawBreaker> {
    let hint = bare(entry).map(|number| write(format!("{{failures: {number}}}")));
    let expected = "`off`, or a mapping with keys such as `failures` and `open`";
    let written =
        section_or_off(entry, reader, &shape::BREAKER, expected, hint.or_else(|| by_default(entry)))?;
    let Some(section) = written.value else { return Some(Written::new(None, written.spot)) };
    if let Some(entry) = section.find("statuses") {
        http_only.push(("statuses", reader.key_spot(entry)));
    }
    let breaker = RawBreaker {
        failures: section.find("failures").and_then(|entry| reader.whole(entry, 1..=COUNT_MAX)),
        open: section.find("open").and_then(|entry| reader.duration(entry, MILLISECOND..=HOUR)),
        statuses: section.find("statuses").and_then(|entry| statuses(entry, reader, FAILURES)),
    };
    Some(Written::new(Some(breaker), written.spot))
}

fn outlier(entry: &Entry, reader: &mut Reader<'_>) -> OrOff<RawOutlier> {
    let expected = "`off`, or a mapping with keys such as `failures` and `error_rate`";
    let written = section_or_off(entry, reader, &shape::OUTLIER, expected, by_default(entry))?;
    let Some(section) = written.value else { return Some(Written::new(None, written.spot)) };
    let outlier = RawOutlier {
        failures: section.find("failures").and_then(|entry| small_or_off(entry, reader, 1..=255)),
        error_rate: section.find("error_rate").and_then(|entry| percent_or_off(entry, reader, 1..=100)),
        latency: section.find("latency").and_then(|entry| small_or_off(entry, reader, SLOWER.0..=SLOWER.1)),
        window: section.find("window").and_then(|entry| reader.duration(entry, SECOND..=HOUR)),
        requests: section.find("requests").and_then(|entry| reader.whole(entry, 1..=IN_FLIGHT_MAX)),
        ejection: match section.find("ejection") {
            Some(entry) => Field::read(reader.duration(entry, MILLISECOND..=HOUR)),
            None if section.is_misspelt("ejection") => Field::Faulty,
            None => Field::Absent,
        },
        ejection_max: section
            .find("ejection_max")
            .and_then(|entry| reader.duration(entry, MILLISECOND..=DAY)),
        max_ejected: section.find("max_ejected").and_then(|entry| percent(entry, reader, 1..=100)),
    };
    Some(Written::new(Some(outlier), written.spot))
}

fn retries(
    entry: &Entry,
    reader: &mut Reader<'_>,
    http_only: &mut Vec<(&'static str, Spot)>,
) -> OrOff<RawRetries> {
    // Elsewhere such a number counts what comes after the first attempt.
    let hint = bare(entry).map(|number| match number {
        0 => write("off".to_owned()),
        number if number < ATTEMPTS_MAX => {
            let value = format!("{{attempts: {}}}", number + 1);
            (format!("write `{value}`: attempts include the first one"), Fix::Value(value))
        }
        _ => {
            let value = format!("{{attempts: {ATTEMPTS_MAX}}}");
            (format!("write `{value}` for the most that there can be"), Fix::Value(value))
        }
    });
    let expected = "`off`, or a mapping with keys such as `attempts` and `on`";
    let written =
        section_or_off(entry, reader, &shape::RETRIES, expected, hint.or_else(|| by_default(entry)))?;
    let Some(section) = written.value else { return Some(Written::new(None, written.spot)) };
    // What could not be connected to costs no budget and needs no pause, and TCP knows no other failure.
    for key in ["budget", "backoff"] {
        http_only.extend(section.find(key).map(|entry| (key, reader.key_spot(entry))));
    }
    let retries = RawRetries {
        attempts: section
            .find("attempts")
            .and_then(|entry| reader.whole(entry, 1..=ATTEMPTS_MAX))
            .map(narrowed),
        on: section.find("on").and_then(|entry| conditions(entry, reader)),
        budget: section.find("budget").and_then(|entry| percent(entry, reader, 0..=100)),
        backoff: section.find("backoff").and_then(|entry| backoff(entry, reader)),
    };
    Some(Written::new(Some(retries), written.spot))
}

/// What an attempt is repeated for.
pub(super) fn conditions(entry: &Entry, reader: &mut Reader<'_>) -> Option<Written<Vec<Written<Condition>>>> {
    const EXPECTED: &str = "`connect`, `reset`, `timeout`, a status such as `503`, a range such as `502-504`, a status of gRPC such as `unavailable`, or a list of them (statuses from 400 to 599)";
    let Some(items) = statuses::items(entry) else {
        let spot = reader.spot(entry);
        let wrong = Wrong::new(found(&entry.node), EXPECTED);
        let wrong =
            if is_off(&entry.node) { wrong.note("`retries: off` is how nothing is repeated") } else { wrong };
        reader.report.wrong(&spot, &subject(&entry.key), wrong);
        return None;
    };
    let mut conditions: Vec<Written<Condition>> = Vec::with_capacity(items.len());
    for item in items {
        let spot = reader.spot_of(item);
        match item.text().and_then(condition) {
            Some(condition) if conditions.iter().any(|other| other.value == condition) => {
                let wrong = there_already(item, item.text().unwrap_or_default());
                reader.report.wrong(&reader.spot_of_use(item), "an entry of `on`", wrong);
            }
            Some(condition) => conditions.push(Written::new(condition, spot)),
            None => {
                let hint = item.text().and_then(meant);
                statuses::refuse(entry, item, items.len(), reader, EXPECTED, hint);
            }
        }
    }
    (conditions.len() == items.len()).then(|| Written::new(conditions, reader.spot(entry)))
}

fn condition(text: &str) -> Option<Condition> {
    let lower = text.to_lowercase();
    let named = Condition::NAMED.iter().find(|(name, _)| *name == lower);
    match named {
        Some((_, condition)) => Some(condition.clone()),
        None => statuses::range(text, &FAILURES).map(Condition::Statuses),
    }
}

/// What other load balancers' words for conditions are here.
fn meant(word: &str) -> Option<String> {
    let ours = match word.to_lowercase().replace('_', "-").as_str() {
        "connect-failure" | "conn-failure" | "refused" => "connect",
        "empty-response" | "junk-response" => "reset",
        "response-timeout" => "timeout",
        "error" => "[connect, reset]",
        "canceled" => "cancelled",
        "deadline-exceeded" => "deadline_exceeded",
        "resource-exhausted" => "resource_exhausted",
        "data-loss" => "data_loss",
        "all-retryable-errors" => "[connect, reset, timeout, 500, 502-504]",
        _ => return statuses::meant(word, &FAILURES),
    };
    Some(ours.to_owned())
}

fn backoff(entry: &Entry, reader: &mut Reader<'_>) -> Option<Written<Duration>> {
    // Of nothing no unit need be known.
    if is_off(&entry.node) || entry.node.text() == Some("0") {
        return Some(Written::new(Duration::ZERO, reader.spot(entry)));
    }
    reader.duration_or_off(entry, Duration::ZERO..=MINUTE)
}

fn hedging(entry: &Entry, reader: &mut Reader<'_>) -> OrOff<RawHedging> {
    if is_on(&entry.node) {
        return Some(Written::new(Some(RawHedging::default()), reader.spot(entry)));
    }
    let hint = entry.node.text().and_then(|text| percentile(text).ok());
    let hint = hint.map(|number| write(format!("{{percentile: {number}}}")));
    let expected = "`off`, `on`, or a mapping with `percentile` and `budget`";
    let written = section_or_off(entry, reader, &shape::HEDGING, expected, hint)?;
    let Some(section) = written.value else { return Some(Written::new(None, written.spot)) };
    let hedging = RawHedging {
        percentile: section
            .find("percentile")
            .and_then(|entry| reader.parsed_with_numbers(entry, PERCENTILE_FORM, percentile)),
        budget: section.find("budget").and_then(|entry| percent(entry, reader, 1..=100)),
    };
    Some(Written::new(Some(hedging), written.spot))
}

const PERCENTILE_FORM: &str = "a percentile from `50` to `99` (also `p50` to `p99`)";

fn percentile(text: &str) -> Result<u8, Wrong> {
    let digits = text.strip_prefix(['p', 'P']).unwrap_or(text);
    let number = digits.bytes().all(|b| b.is_ascii_digit()).then(|| digits.parse::<u8>().ok()).flatten();
    let within = number.filter(|number| (PERCENTILE.0..=PERCENTILE.1).contains(&u32::from(*number)));
    within.ok_or_else(|| {
        Wrong::new(format!("is {}, which is no such percentile", quoted(text)), PERCENTILE_FORM)
    })
}

fn in_flight(
    entry: &Entry,
    reader: &mut Reader<'_>,
    http_only: &mut Vec<(&'static str, Spot)>,
) -> OrOff<InFlight> {
    const FORM: &str = "`off`, `adaptive`, or a whole number";
    let spot = reader.spot(entry);
    if is_off(&entry.node) {
        return Some(Written::new(None, spot));
    }
    let is_number = |text: &str| text.parse::<i64>().is_ok();
    if !matches!(entry.node.typed(), Typed::Text(_)) || entry.node.text().is_none_or(is_number) {
        let read = reader.number(entry, 1..=IN_FLIGHT_MAX, FORM)?;
        return Some(Written::new(Some(InFlight::Number(read.value)), read.spot));
    }
    let expected = format!("{FORM} from 1 to {IN_FLIGHT_MAX}");
    let read = reader.parsed(entry, &expected, |text| {
        let read = choose(text, InFlight::NAMED);
        read.map_err(|wrong| {
            let wrong = Wrong { expected: Some(expected.clone()), ..wrong };
            if units::is_endless(text) { wrong.instead("off") } else { wrong }
        })
    })?;
    if read.value == InFlight::Adaptive {
        // Of a TCP connection only is known how long it takes to begin, and that does not grow with the load.
        http_only.push(("adaptive", spot));
    }
    Some(Written::new(Some(read.value), read.spot))
}

fn queue(entry: &Entry, reader: &mut Reader<'_>) -> OrOff<RawQueue> {
    let hint = bare(entry).map(|number| match number {
        0 => write("off".to_owned()),
        number => write(format!("{{size: {number}}}")),
    });
    let expected = "`off`, or a mapping with `size` and `timeout`";
    let written = section_or_off(entry, reader, &shape::QUEUE, expected, hint.or_else(|| by_default(entry)))?;
    let Some(section) = written.value else { return Some(Written::new(None, written.spot)) };
    let queue = RawQueue {
        size: section.find("size").and_then(|entry| size(entry, reader)),
        timeout: section.find("timeout").and_then(|entry| reader.duration(entry, MILLISECOND..=HOUR)),
    };
    Some(Written::new(Some(queue), written.spot))
}

/// Elsewhere a size of 0 is one without bounds: what is meant has to be said.
fn size(entry: &Entry, reader: &mut Reader<'_>) -> Option<Written<u32>> {
    if bare(entry) == Some(0) {
        let expected = format!("a whole number from 1 to {IN_FLIGHT_MAX}");
        let wrong = out_of_range(0, &expected, true)
            .hint("write `1`, the least", "1")
            .note("`queue: off` is how no request waits");
        reader.report.wrong(&reader.spot(entry), &subject(&entry.key), wrong);
        return None;
    }
    reader.whole(entry, 1..=IN_FLIGHT_MAX)
}

/// A percentage, also without its sign.
pub(super) fn percent(
    entry: &Entry,
    reader: &mut Reader<'_>,
    range: RangeInclusive<u32>,
) -> Option<Written<u8>> {
    let expected = format!("a percentage from `{}%` to `{}%`", range.start(), range.end());
    percent_as(entry, reader, &range, &expected)
}

/// The same for a key that also takes `off`, which is 0.
fn percent_or_off(entry: &Entry, reader: &mut Reader<'_>, range: RangeInclusive<u32>) -> Option<Written<u8>> {
    if is_off(&entry.node) {
        return Some(Written::new(0, reader.spot(entry)));
    }
    let expected = format!("`off`, or a percentage from `{}%` to `{}%`", range.start(), range.end());
    percent_as(entry, reader, &range, &expected)
}

fn percent_as(
    entry: &Entry,
    reader: &mut Reader<'_>,
    range: &RangeInclusive<u32>,
    expected: &str,
) -> Option<Written<u8>> {
    let read = reader.parsed_with_numbers(entry, expected, |text| {
        let read = units::percent_or_number(text, range);
        read.map_err(|wrong| Wrong { expected: Some(expected.to_owned()), ..wrong })
    })?;
    Some(narrowed(read))
}

/// A small number, or `off`, which is 0.
fn small_or_off(entry: &Entry, reader: &mut Reader<'_>, range: RangeInclusive<u32>) -> Option<Written<u8>> {
    let read = reader.whole_or_off(entry, range)?;
    Some(narrowed(Written::new(read.value.unwrap_or(0), read.spot)))
}

/// No range above goes beyond 255.
pub(super) fn narrowed(written: Written<u32>) -> Written<u8> {
    Written::new(u8::try_from(written.value).unwrap_or(u8::MAX), written.spot)
}
