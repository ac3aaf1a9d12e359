//! `rate_limits`, and `rate_limit` of listeners and routes: how often somebody may ask.

use super::named::{self, RuleKind};
use crate::config::edit::Fix;
use crate::config::error::{Wrong, quoted};
use crate::config::model::{RateBy, RatePeriod};
use crate::config::origin::{Field, Spot, Written};
use crate::config::raw::balance::{cookie, header};
use crate::config::raw::bounds::RATE_MAX;
use crate::config::raw::group::{items, there_already};
use crate::config::raw::reader::{Reader, choose, found, is_off, subject};
use crate::config::raw::shape;
use crate::config::raw::vocabulary::words::name;
use crate::config::yaml::{Entry, Node, Typed};

/// The limits at the top level.
pub(in crate::config) const RATE_LIMITS: RuleKind =
    RuleKind { key: "rate_limits", one: "rate limit", form: "`rate_limits: {api: {rate: 100/s}}`" };

const RATE_FORM: &str = "a number per second, minute or hour, such as `100/s`, `30/m` or `1000/h`";
const BY_FORM: &str = "`client_ip`, `{header: NAME}`, `{cookie: NAME}`, `user`, `route` or `global`";
const USE_FORM: &str = "the name of one of `rate_limits`, or a list of names";

/// A limit as written.
#[derive(Debug)]
pub(in crate::config) struct RawRateLimit {
    pub(in crate::config) rate: Written<(u32, RatePeriod)>,
    pub(in crate::config) burst: Option<Written<u32>>,
    pub(in crate::config) by: Option<Written<Vec<RateBy>>>,
    pub(in crate::config) dry_run: Option<Written<bool>>,
}

/// Walks what stands behind a name in `rate_limits`.
pub(in crate::config::raw) fn limit(entry: &Entry, reader: &mut Reader<'_>) -> Option<RawRateLimit> {
    let title = format!("the rate limit {}", quoted(&entry.key));
    let section = reader.section(&title, &entry.node, &shape::RATE_LIMIT)?;
    let rate = section.find("rate");
    if rate.is_none() && !section.is_misspelt("rate") {
        let spot = reader.key_spot(entry);
        reader.report.spot(&spot, format!("{title} has no `rate`")).expected(RATE_FORM);
    }
    let rate = rate.and_then(|entry| reader.parsed_with_numbers(entry, RATE_FORM, self::rate));
    let burst = section.find("burst");
    let read_burst = burst.and_then(|entry| reader.whole(entry, 1..=RATE_MAX));
    let by = section.find("by");
    let read_by = by.and_then(|entry| self::by(entry, reader));
    let dry_run = section.find("dry_run");
    let read_dry_run = dry_run.and_then(|entry| reader.switch(entry));
    let is_whole = burst.is_some() == read_burst.is_some()
        && by.is_some() == read_by.is_some()
        && dry_run.is_some() == read_dry_run.is_some();
    let rate = rate.filter(|_| is_whole)?;
    Some(RawRateLimit { rate, burst: read_burst, by: read_by, dry_run: read_dry_run })
}

/// Walks `rate_limit`.
pub(in crate::config::raw) fn walk(entry: &Entry, reader: &mut Reader<'_>) -> Field<Vec<Written<String>>> {
    let spot = reader.key_spot(entry);
    if is_off(&entry.node) {
        let wrong = Wrong::bare("is `off`, which it is where nothing is said")
            .hint_by("remove it", Fix::Remove(entry.key_place))
            .note("what a listener limits holds for all of its routes");
        reader.report.wrong(&reader.spot(entry), &subject(&entry.key), wrong);
        return Field::Faulty;
    }
    let read = named::uses(
        entry,
        USE_FORM,
        reader,
        name,
        |name| name,
        |item, reader| {
            let wrong = Wrong::new(found(item), USE_FORM);
            let wrong = match item.typed() {
                Typed::Map(_) => wrong.note("a limit stands under `rate_limits` at the top level, with a name: its counts hang on that"),
                _ => wrong,
            };
            reader.report.wrong(&reader.spot_of(item), &subject(&entry.key), wrong);
            None
        },
    );
    Field::read(read.map(|all| Written::new(all, spot)))
}

/// How many in which time.
fn rate(text: &str) -> Result<(u32, RatePeriod), Wrong> {
    let is = || format!("is {}", quoted(text));
    let compact: String = text.chars().filter(|c| !c.is_whitespace()).collect::<String>().to_lowercase();
    let Some((count, per)) = compact.split_once('/') else {
        let wrong = Wrong::new(is(), RATE_FORM);
        let number = compact.trim_end_matches(|c: char| !c.is_ascii_digit());
        return Err(match number.parse::<u32>() {
            Ok(number) if number > 0 => wrong.instead(&format!("{number}/s")),
            _ => wrong,
        });
    };
    let per = match per {
        "s" => RatePeriod::Second,
        "m" | "min" => RatePeriod::Minute,
        "h" => RatePeriod::Hour,
        _ => {
            let wrong = Wrong::new(is(), RATE_FORM);
            let count = count.trim_end_matches(|c: char| !c.is_ascii_digit());
            return Err(match per {
                "sec" | "second" | "seconds" | "1s" => wrong.instead(&format!("{count}/s")),
                "minute" | "minutes" | "1m" | "60s" => wrong.instead(&format!("{count}/m")),
                "hour" | "hours" | "hr" | "1h" => wrong.instead(&format!("{count}/h")),
                _ => wrong,
            });
        }
    };
    match count.parse::<u32>() {
        Ok(count @ 1..=RATE_MAX) => Ok((count, per)),
        Ok(0) => Err(Wrong::new(is(), "at least 1").note("who may not come in at all stands in `access`")),
        _ if count.bytes().all(|byte| byte.is_ascii_digit()) && !count.is_empty() => {
            Err(Wrong::new(is(), format!("at most {RATE_MAX}")))
        }
        _ => match count.strip_suffix('r').filter(|count| count.parse::<u32>().is_ok()) {
            Some(count) => Err(Wrong::new(is(), RATE_FORM).instead(&format!("{count}/{}", per.token()))),
            None => Err(Wrong::new(is(), RATE_FORM)),
        },
    }
}

/// Who counts together.
fn by(entry: &Entry, reader: &mut Reader<'_>) -> Option<Written<Vec<RateBy>>> {
    let items = items(entry, reader, BY_FORM)?;
    let mut all: Vec<RateBy> = Vec::with_capacity(items.len());
    for item in items {
        let Some(one) = one_by(entry, item, reader) else { continue };
        if all.contains(&one) {
            let spot = reader.spot_of_use(item);
            reader.report.wrong(&spot, &subject(&entry.key), there_already(item, &one.to_string()));
            continue;
        }
        all.push(one);
    }
    (all.len() == items.len()).then(|| Written::new(all, reader.key_spot(entry)))
}

fn one_by(entry: &Entry, item: &Node, reader: &mut Reader<'_>) -> Option<RateBy> {
    if matches!(item.typed(), Typed::Map(_)) {
        let section = reader.section(&subject(&entry.key), item, &shape::RATE_BY)?;
        return match (section.find("header"), section.find("cookie")) {
            (Some(only), None) => reader
                .word(only, "the name of a header such as `X-Api-Key`", header)
                .map(|read| RateBy::Header(read.value)),
            (None, Some(only)) => reader
                .word(only, "the name of a cookie such as `session`", cookie)
                .map(|read| RateBy::Cookie(read.value)),
            (Some(_), Some(second)) => {
                let message = "an item of `by` has both `header` and `cookie`";
                let problem = reader.report.at(second.key_place, message);
                problem.expected("one of them; both are two items: `[{header: NAME}, {cookie: NAME}]`");
                None
            }
            (None, None) => {
                if matches!(item.typed(), Typed::Map([])) {
                    let wrong = Wrong::new("is an empty mapping", BY_FORM);
                    reader.report.wrong(&reader.spot_of(item), &subject(&entry.key), wrong);
                }
                None
            }
        };
    }
    let read = match (item.typed(), item.text()) {
        (Typed::Text(_), Some(text)) => choose(text, RateBy::NAMED).map_err(|wrong| {
            let wrong = Wrong { expected: Some(BY_FORM.into()), ..wrong };
            match text.to_lowercase().as_str() {
                kind @ ("header" | "cookie") => wrong.note(format!("`{{{kind}: NAME}}` says which one")),
                "ip" | "source" | "source_ip" | "remote_addr" | "address" | "client" => {
                    wrong.instead("client_ip")
                }
                "all" | "total" | "server" => wrong.instead("global"),
                _ => wrong,
            }
        }),
        _ => Err(Wrong::new(found(item), BY_FORM)),
    };
    match read {
        Ok(one) => Some(one),
        Err(wrong) => {
            let spot: Spot = reader.spot_of(item);
            reader.report.wrong(&spot, &subject(&entry.key), wrong);
            None
        }
    }
}
