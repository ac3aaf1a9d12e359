//! `cache`: what a route answers from what is stored, and for how long.

use std::time::Duration;

use crate::config::edit::Fix;
use crate::config::error::{Wrong, quoted};
use crate::config::origin::{Field, Written};
use crate::config::raw::balance::header;
use crate::config::raw::bounds::{MILLISECOND, RATE_MAX, YEAR};
use crate::config::raw::group::{section_or_off, there_already};
use crate::config::raw::kind::Shape;
use crate::config::raw::reader::{Reader, Section, found, is_off, is_on, subject};
use crate::config::units;
use crate::config::yaml::{Entry, Node, Typed};

/// `cache` when it is not `off`.
#[derive(Debug, Default)]
pub(in crate::config) struct RawCache {
    /// A value of `None`: `off`.
    pub(in crate::config) ttl: Option<Written<Option<Duration>>>,
    /// A value of `None`: `off`.
    pub(in crate::config) ttl_override: Option<Written<Option<Duration>>>,
    /// A value of `None`: `off`.
    pub(in crate::config) negative_ttl: Option<Written<Option<Duration>>>,
    pub(in crate::config) heuristic: Option<Written<bool>>,
    /// `off` is zero.
    pub(in crate::config) stale_while_revalidate: Option<Written<Duration>>,
    /// `off` is zero.
    pub(in crate::config) stale_if_error: Option<Written<Duration>>,
    pub(in crate::config) ignore_cookies: Option<Written<bool>>,
    /// A value of `None`: `all`.
    pub(in crate::config) query: Option<Written<Option<Vec<String>>>>,
    pub(in crate::config) headers: Option<Written<Vec<String>>>,
    /// `off` is zero.
    pub(in crate::config) reloads: Option<Written<u32>>,
    pub(in crate::config) fill: Option<Written<bool>>,
}

/// Walks `cache` with the keys of `shape`; `None` inside: `off`.
pub(in crate::config::raw) fn walk(
    entry: &Entry,
    shape: &Shape,
    reader: &mut Reader<'_>,
) -> Field<Option<RawCache>> {
    if is_on(&entry.node) {
        return Field::Given(Written::new(Some(RawCache::default()), reader.spot(entry)));
    }
    // `cache: 10s` says what is meant.
    let time = entry.node.text().filter(|text| units::duration(text).is_ok());
    let hint = time.map(|time| {
        let value = format!("{{ttl: {time}}}");
        (format!("write `{value}`"), Fix::Value(value))
    });
    let expected = "`on`, `off`, or a mapping such as `{ttl: 10s}`";
    let Some(written) = section_or_off(entry, reader, shape, expected, hint) else { return Field::Faulty };
    let Some(section) = written.value else { return Field::Given(Written::new(None, written.spot)) };
    Field::Given(Written::new(Some(keys(&section, reader)), written.spot))
}

fn keys(section: &Section<'_>, reader: &mut Reader<'_>) -> RawCache {
    let mut time = |key: &'static str, least: Duration| {
        let entry = section.find(key)?;
        if is_off(&entry.node) {
            return Some(Written::new(None, reader.spot(entry)));
        }
        // Whoever wants no end does not mean `off`.
        if let Some(text) = entry.node.text().filter(|text| units::has_no_end(text)) {
            let most = units::show_duration(YEAR);
            let expected = format!("`off`, or a time such as `2s`, `1m` or `1h`, at most `{most}`");
            let wrong = Wrong::new(format!("is {}, which is not a time", quoted(text)), expected);
            let wrong = wrong.hint(format!("write `{most}`, the longest"), most);
            reader.report.wrong(&reader.spot(entry), &subject(&entry.key), wrong);
            return None;
        }
        let read = reader.duration_or_off(entry, least..=YEAR)?;
        Some(Written::new(Some(read.value), read.spot))
    };
    let [ttl, ttl_override, negative_ttl] =
        ["ttl", "ttl_override", "negative_ttl"].map(|key| time(key, MILLISECOND));
    let [stale_while_revalidate, stale_if_error] = ["stale_while_revalidate", "stale_if_error"].map(|key| {
        let read = time(key, Duration::ZERO)?;
        Some(Written::new(read.value.unwrap_or_default(), read.spot))
    });
    let [heuristic, ignore_cookies, fill] = ["heuristic", "ignore_cookies", "fill"]
        .map(|key| section.find(key).and_then(|entry| reader.switch(entry)));
    RawCache {
        ttl,
        ttl_override,
        negative_ttl,
        heuristic,
        stale_while_revalidate,
        stale_if_error,
        ignore_cookies,
        query: section.find("query").and_then(|entry| query(entry, reader)),
        headers: section.find("headers").and_then(|entry| headers(entry, reader)),
        reloads: section.find("reloads").and_then(|entry| reloads(entry, reader)),
        fill,
    }
}

const QUERY_FORM: &str = "`all`, or names of parameters such as `[page, q]`; `[]` for none";

fn query(entry: &Entry, reader: &mut Reader<'_>) -> Option<Written<Option<Vec<String>>>> {
    let spot = reader.key_spot(entry);
    if is_off(&entry.node) || is_on(&entry.node) {
        let (value, what) =
            if is_on(&entry.node) { ("all", "the whole query") } else { ("[]", "none of it") };
        let wrong = Wrong::new(found(&entry.node), QUERY_FORM);
        let wrong = wrong.hint(format!("write `{value}` for {what}"), value);
        reader.report.wrong(&reader.spot(entry), &subject(&entry.key), wrong);
        return None;
    }
    let is_whole = matches!(entry.node.typed(), Typed::Text(_))
        && entry.node.text().is_some_and(|text| text.eq_ignore_ascii_case("all"));
    if is_whole {
        return Some(Written::new(None, spot));
    }
    let names = several(entry, QUERY_FORM, reader, parameter)?;
    Some(Written::new(Some(names), spot))
}

/// The name of a parameter once it is decoded.
fn parameter(text: &str) -> Result<String, Wrong> {
    const EXPECTED: &str = "the name of a parameter such as `page`";
    let is = || format!("is {}", quoted(text));
    if text.is_empty() {
        return Err(Wrong::new("is empty", EXPECTED));
    }
    if text.chars().any(char::is_control) {
        return Err(Wrong::new(format!("{}, with a control character", is()), EXPECTED));
    }
    if let Some((name, _)) = text.split_once('=') {
        let wrong = Wrong::new(format!("{}, with a value", is()), EXPECTED);
        return Err(if name.is_empty() { wrong } else { wrong.instead(name) });
    }
    if text.contains('&') {
        return Err(Wrong::new(format!("{}, which is several", is()), EXPECTED));
    }
    let is_escape = |bytes: &[u8]| bytes[0] == b'%' && bytes[1..].iter().all(u8::is_ascii_hexdigit);
    if text.as_bytes().windows(3).any(is_escape) {
        let wrong = Wrong::new(format!("{}, with an escape", is()), EXPECTED);
        return Err(wrong.note("names are compared once `%XX` is decoded: write what it stands for"));
    }
    Ok(text.to_owned())
}

/// Headers of which the key of an object is no place, and why.
const NO_KEYS: &[(&str, &str)] = &[
    ("host", "which is in the key already"),
    ("range", "which the cache itself answers"),
    ("if-match", "which the cache itself answers"),
    ("if-none-match", "which the cache itself answers"),
    ("if-modified-since", "which the cache itself answers"),
    ("if-unmodified-since", "which the cache itself answers"),
    ("if-range", "which the cache itself answers"),
    ("cache-control", "which says how old an answer may be, not what it is about"),
    ("pragma", "which says how old an answer may be, not what it is about"),
    ("connection", "which is about one connection"),
    ("keep-alive", "which is about one connection"),
    ("te", "which is about one connection"),
    ("trailer", "which is about one connection"),
    ("transfer-encoding", "which is about one connection"),
    ("upgrade", "which is about one connection"),
    ("content-length", "which a request without a body does not have"),
    ("expect", "which a request without a body does not have"),
];

fn headers(entry: &Entry, reader: &mut Reader<'_>) -> Option<Written<Vec<String>>> {
    const EXPECTED: &str = "names of headers such as `[Accept-Language]`";
    let names = several(entry, EXPECTED, reader, |text| {
        let name = header(text)?;
        match NO_KEYS.iter().find(|(other, _)| *other == name) {
            Some((_, why)) => {
                let expected = "a header by which answers differ, such as `Accept-Language`";
                Err(Wrong::new(format!("is {}, {why}", quoted(text)), expected))
            }
            None => Ok(name),
        }
    })?;
    Some(Written::new(names, reader.key_spot(entry)))
}

/// One name or a list of them, which may be empty; each is there once.
fn several(
    entry: &Entry,
    expected: &str,
    reader: &mut Reader<'_>,
    parse: impl Fn(&str) -> Result<String, Wrong>,
) -> Option<Vec<String>> {
    let items: &[Node] = match entry.node.typed() {
        Typed::List(items) => items,
        _ => std::slice::from_ref(&entry.node),
    };
    let mut all: Vec<String> = Vec::with_capacity(items.len());
    for item in items {
        let read = match (item.typed(), item.text()) {
            (Typed::Text(_) | Typed::Integer(_) | Typed::Float(_), Some(text)) => parse(text),
            (Typed::Bool(_), Some(text)) => {
                let value = format!("\"{text}\"");
                let hint = format!("quote it if the word itself is meant: {value}");
                Err(Wrong::new(found(item), expected).hint(hint, value))
            }
            _ => Err(Wrong::new(found(item), expected)),
        };
        let (spot, wrong) = match read {
            Ok(name) if all.contains(&name) => {
                (reader.spot_of_use(item), there_already(item, item.text().unwrap_or_default()))
            }
            Ok(name) => {
                all.push(name);
                continue;
            }
            Err(wrong) if item.is_null() && items.len() == 1 => (reader.spot(entry), wrong),
            Err(wrong) => (reader.spot_of(item), wrong),
        };
        reader.report.wrong(&spot, &subject(&entry.key), wrong);
    }
    (all.len() == items.len()).then_some(all)
}

/// How often in a second.
fn reloads(entry: &Entry, reader: &mut Reader<'_>) -> Option<Written<u32>> {
    if is_off(&entry.node) {
        return Some(Written::new(0, reader.spot(entry)));
    }
    let Some(text) = entry.node.text().filter(|text| text.contains('/')) else {
        let form = "`off`, a rate such as `10/s`, or a whole number";
        return reader.number(entry, 1..=RATE_MAX, form);
    };
    let expected = format!("`off`, or a number per second such as `10/s`, at most `{RATE_MAX}/s`");
    let compact: String = text.chars().filter(|c| !c.is_whitespace()).collect::<String>().to_lowercase();
    let (count, per) = compact.split_once('/').unwrap_or((&compact, ""));
    let count = count.parse::<u32>().ok();
    let read = match (count, per) {
        (Some(count @ 1..=RATE_MAX), "s") => return Some(Written::new(count, reader.spot(entry))),
        (Some(0), "s") => Err("off".to_owned()),
        (Some(count @ 1..=RATE_MAX), "sec" | "second" | "seconds" | "1s") => Err(format!("{count}/s")),
        // What is less than one in a second has no form here.
        (Some(count @ 60..), "m" | "min" | "minute" | "1m" | "60s") => Err(format!("{}/s", count / 60)),
        (Some(count @ 3_600..), "h" | "hour" | "1h") => Err(format!("{}/s", count / 3_600)),
        _ => Ok(()),
    };
    let wrong = Wrong::new(format!("is {}", quoted(text)), expected);
    let wrong = match read {
        Err(meant) => wrong.instead(meant),
        Ok(()) => wrong,
    };
    reader.report.wrong(&reader.spot(entry), &subject(&entry.key), wrong);
    None
}
