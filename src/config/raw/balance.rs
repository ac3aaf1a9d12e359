//! The written form of how a target chooses a backend: its algorithm and what belongs to it, stickiness, and how
//! much each backend gets.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::bounds::{BOUND, HOUR, KEY_MIN, MILLISECOND, PRIORITY_MAX};
use super::kind::Shape;
use super::reader::{Reader, Section, choose, found, is_off, subject};
use super::shape;
use super::vocabulary::words::{is_token, name};
use crate::config::edit::Fix;
use crate::config::error::{Wrong, one_of, quoted};
use crate::config::files::fence::PathUse;
use crate::config::model::{Balance, HashKey, OwnerMode, Portion};
use crate::config::origin::{Field, Written};
use crate::config::units;
use crate::config::yaml::{Entry, Node, Typed};

/// The keys of a target that say how it chooses, as written.
#[derive(Debug, Default)]
pub(in crate::config) struct RawPolicy {
    /// From `balance` or `algorithm`.
    pub(in crate::config) algorithm: Field<Balance>,
    pub(in crate::config) hash_key: Option<Written<HashKey>>,
    /// A value of `None`: `off`.
    pub(in crate::config) bounded_load: Option<Written<Option<u32>>>,
    /// `off` is zero.
    pub(in crate::config) slow_start: Option<Written<Duration>>,
    pub(in crate::config) owner: Option<Written<OwnerMode>>,
}

/// How much one backend gets, as written.
#[derive(Debug, Default)]
pub(in crate::config) struct RawPortion {
    pub(in crate::config) weight: Option<Written<u32>>,
    pub(in crate::config) backup: Option<Written<bool>>,
    pub(in crate::config) priority: Option<Written<u32>>,
    pub(in crate::config) zone: Option<Written<Arc<str>>>,
}

/// `sticky` when it is not `off`.
#[derive(Debug, Default)]
pub(in crate::config) struct RawSticky {
    pub(in crate::config) cookie: Option<Written<String>>,
    pub(in crate::config) key: Field<Secret>,
    pub(in crate::config) key_file: Field<PathBuf>,
}

/// What nobody may read in a message or a log.
#[derive(Clone)]
pub(in crate::config) struct Secret(pub(in crate::config) Arc<[u8]>);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(hidden)")
    }
}

/// Walks the keys of a target that say how it chooses.
pub(super) fn policy(section: &Section<'_>, reader: &mut Reader<'_>) -> RawPolicy {
    let (first, second) = (section.find("balance"), section.find("algorithm"));
    if let (Some(first), Some(second)) = (first, second) {
        let place = first.key_place.max(second.key_place);
        let problem = reader.report.at(place, "`balance` and `algorithm` mean the same");
        problem.hint("keep one of them: remove this one", Fix::Remove(place));
    }
    let algorithm = match first.or(second) {
        Some(entry) => Field::read(algorithm(entry, reader)),
        None if section.is_misspelt("balance") || section.is_misspelt("algorithm") => Field::Faulty,
        None => Field::Absent,
    };
    RawPolicy {
        algorithm,
        hash_key: section.find("hash_key").and_then(|entry| hash_key(entry, &shape::HASH_KEY, reader)),
        bounded_load: section.find("bounded_load").and_then(|entry| bounded_load(entry, reader)),
        slow_start: section.find("slow_start").and_then(|entry| slow_start(entry, reader)),
        owner: section.find("owner").and_then(|entry| reader.choice(entry, OwnerMode::ALL)),
    }
}

/// The name of a balancing algorithm, ours or another load balancer's.
pub(in crate::config) fn algorithm_name(text: &str) -> Result<Balance, Wrong> {
    let lower = text.to_lowercase();
    if let Some((_, balance)) = Balance::ALIASES.iter().find(|(name, _)| *name == lower) {
        return Ok(*balance);
    }
    choose(text, Balance::ALL).map_err(|wrong| match lower.replace('-', "_").as_str() {
        "ip_hash" | "source" | "source_ip" | "hash" | "consistent_hash" | "consistent" => wrong
            .hint("write `maglev` (or `ring_hash`)", "maglev")
            .note("without `hash_key` they hash the client's address"),
        "uri" | "url" => {
            wrong.hint("write `maglev` (or `ring_hash`)", "maglev").note("add `hash_key: path` beside it")
        }
        "least_request" | "least_requests" | "leastcons" | "leastcon" | "leastconns" | "lc" => {
            wrong.instead("least_connections")
        }
        "rr" | "wrr" | "static_rr" => wrong.instead("round_robin"),
        "ewma" | "least_time" => wrong.instead("peak_ewma"),
        "sticky" | "cookie" => wrong.note("`sticky` is a key of the target, beside any algorithm"),
        _ => wrong,
    })
}

/// Walks `balance` or `algorithm`.
pub(super) fn algorithm(entry: &Entry, reader: &mut Reader<'_>) -> Option<Written<Balance>> {
    let names = one_of(Balance::ALL.iter().map(|(name, _)| *name));
    reader.parsed(entry, &names, algorithm_name)
}

/// What of a request is hashed: a name, or a mapping with the keys of `shape`.
pub(super) fn hash_key(entry: &Entry, shape: &Shape, reader: &mut Reader<'_>) -> Option<Written<HashKey>> {
    const EXPECTED: &str =
        "`client_ip`, `path`, `query`, `{header: NAME}`, `{cookie: NAME}` or `{query: PARAMETER}`";
    if !matches!(entry.node.typed(), Typed::Map(_)) {
        return reader.parsed(entry, EXPECTED, |text| {
            choose(text, HashKey::NAMED).map_err(|wrong| {
                let wrong = Wrong { expected: Some(EXPECTED.into()), ..wrong };
                match text.to_lowercase().as_str() {
                    kind @ ("header" | "cookie") => wrong.note(format!("`{{{kind}: NAME}}` says which one")),
                    "ip" | "source" | "source_ip" | "remote_addr" => wrong.instead("client_ip"),
                    "uri" | "url" => wrong.instead("path"),
                    _ => wrong,
                }
            })
        });
    }
    let section = reader.section(&subject(&entry.key), &entry.node, shape)?;
    let given: Vec<&Entry> =
        ["header", "cookie", "query"].into_iter().filter_map(|key| section.find(key)).collect();
    let [only] = given.as_slice() else {
        // Of an unknown key that is all there is, enough has been said.
        if given.len() > 1 || matches!(entry.node.typed(), Typed::Map([])) {
            let many = if given.is_empty() { "none" } else { "more than one" };
            let message = format!("`{}` has {many} of `header`, `cookie` and `query`", entry.key);
            reader.report.spot(&reader.key_spot(entry), message).expected("exactly one of them");
        }
        return None;
    };
    let read = match only.key.as_str() {
        "header" => reader
            .word(only, "the name of a header such as `X-User`", header)
            .map(|read| HashKey::Header(read.value)),
        "cookie" => reader
            .word(only, "the name of a cookie such as `session`", cookie)
            .map(|read| HashKey::Cookie(read.value)),
        _ => reader
            .word(only, "the name of a parameter such as `user`", parameter)
            .map(|read| HashKey::Parameter(read.value)),
    };
    read.map(|key| Written::new(key, reader.spot(only)))
}

pub(super) fn header(text: &str) -> Result<String, Wrong> {
    token(text, "a header's name").map(|name| name.to_ascii_lowercase())
}

pub(super) fn cookie(text: &str) -> Result<String, Wrong> {
    token(text, "a cookie's name")
}

/// The name of a header or a cookie (RFC 9110 §5.6.2, RFC 6265 §4.1.1).
fn token(text: &str, what: &str) -> Result<String, Wrong> {
    const EXPECTED: &str = "a name of letters, digits and `-` or `_`";
    let odd = text.chars().map(|c| c.to_string()).find(|c| !is_token(c));
    match odd {
        None if is_token(text) => Ok(text.to_owned()),
        None => Err(Wrong::new("is empty", EXPECTED)),
        Some(odd) => {
            let has = if odd == " " { "a blank".to_owned() } else { quoted(&odd) };
            Err(Wrong::new(format!("is {}, which can't be {what}: it has {has}", quoted(text)), EXPECTED))
        }
    }
}

/// What may stand before `=` in a query, as it stands there (RFC 3986 §3.4).
fn parameter(text: &str) -> Result<String, Wrong> {
    const EXPECTED: &str = "the name of a parameter as it stands in the URL, such as `user`";
    let fits = |b: u8| b.is_ascii_graphic() && !matches!(b, b'&' | b'=' | b'#');
    match text.bytes().all(fits) {
        true if text.is_empty() => Err(Wrong::new("is empty", EXPECTED)),
        true => Ok(text.to_owned()),
        false => Err(Wrong::new(format!("is {}, which no query has before a `=`", quoted(text)), EXPECTED)),
    }
}

fn bounded_load(entry: &Entry, reader: &mut Reader<'_>) -> Option<Written<Option<u32>>> {
    if is_off(&entry.node) {
        return Some(Written::new(None, reader.spot(entry)));
    }
    let expected = format!("`off`, or a percentage from `{}%` to `{}%`", BOUND.0, BOUND.1);
    let range = BOUND.0..=BOUND.1;
    let read = reader.parsed_with_numbers(entry, &expected, |text| {
        units::percent(text, &range).map_err(|wrong| Wrong { expected: Some(expected.clone()), ..wrong })
    })?;
    Some(Written::new(Some(read.value), read.spot))
}

fn slow_start(entry: &Entry, reader: &mut Reader<'_>) -> Option<Written<Duration>> {
    if is_off(&entry.node) {
        return Some(Written::new(Duration::ZERO, reader.spot(entry)));
    }
    reader.duration_or_off(entry, MILLISECOND..=HOUR)
}

/// Walks the keys of a backend that say how much it gets.
pub(super) fn portion(section: &Section<'_>, reader: &mut Reader<'_>) -> RawPortion {
    let most = u32::from(Portion::WEIGHT_MAX);
    RawPortion {
        weight: section.find("weight").and_then(|entry| reader.whole(entry, 0..=most)),
        backup: section.find("backup").and_then(|entry| reader.switch(entry)),
        priority: section.find("priority").and_then(|entry| reader.whole(entry, 0..=PRIORITY_MAX)),
        zone: section.find("zone").and_then(|entry| zone(entry, reader)),
    }
}

/// Walks `zone`.
pub(super) fn zone(entry: &Entry, reader: &mut Reader<'_>) -> Option<Written<Arc<str>>> {
    reader.word(entry, "a word such as `eu-1a`", |text| name(text).map(Arc::from))
}

/// Walks `sticky`.
pub(super) fn sticky(entry: &Entry, reader: &mut Reader<'_>) -> Option<Written<Option<RawSticky>>> {
    if is_off(&entry.node) {
        return Some(Written::new(None, reader.spot(entry)));
    }
    match entry.node.typed() {
        // Whatever else stands here may be a key under another name.
        Typed::Map(entries) => entries
            .iter()
            .filter(|entry| entry.key != "cookie" && !entry.key.ends_with("_file"))
            .for_each(|entry| hide(&entry.node, reader)),
        Typed::Null => {}
        Typed::Bool(_) | Typed::Integer(_) | Typed::Float(_) | Typed::Text(_) | Typed::List(_) => {
            hide(&entry.node, reader);
            let what = match entry.node.typed() {
                Typed::Text(_) | Typed::Integer(_) | Typed::Float(_) => "is a single value".to_owned(),
                _ => found(&entry.node),
            };
            let wrong = Wrong::new(what, "`off`, or a mapping with `cookie` and `key`");
            let spot = reader.spot(entry);
            let hint = "write `{}`: a cookie named `evenkeel`; its key is new at each start, so cookies end then and other nodes don't know them";
            reader.report.wrong(&spot, &subject(&entry.key), wrong.hint(hint, "{}"));
            return None;
        }
    }
    let spot = reader.key_spot(entry);
    let section = reader.section("`sticky`", &entry.node, &shape::STICKY)?;
    let raw = RawSticky {
        cookie: section
            .find("cookie")
            .and_then(|entry| reader.word(entry, "the name of a cookie such as `evenkeel`", cookie)),
        key: match section.find("key") {
            Some(entry) => Field::read(reader.word(entry, KEY, secret)),
            None if section.is_misspelt("key") => Field::Faulty,
            None => Field::Absent,
        },
        key_file: match section.find("key_file") {
            Some(entry) => Field::read(key_file(entry, reader)),
            None if section.is_misspelt("key_file") => Field::Faulty,
            None => Field::Absent,
        },
    };
    if let (Some(first), Some(second)) = (section.find("key"), section.find("key_file")) {
        let place = first.key_place.max(second.key_place);
        let problem = reader.report.at(place, "`key` and `key_file` in one `sticky`");
        problem.hint("keep one of them: remove this one", Fix::Remove(place));
    }
    Some(Written::new(Some(raw), spot))
}

/// Hides every text below a node. Truth values are no keys.
pub(super) fn hide(node: &Node, reader: &mut Reader<'_>) {
    match node.typed() {
        Typed::Text(_) | Typed::Integer(_) | Typed::Float(_) => reader.report.hide(node.place),
        Typed::List(items) => items.iter().for_each(|item| hide(item, reader)),
        Typed::Map(entries) => entries.iter().for_each(|entry| hide(&entry.node, reader)),
        Typed::Null | Typed::Bool(_) => {}
    }
}

const KEY: &str = "a secret of at least 16 bytes, best from the environment: `${STICKY_KEY}`";

fn secret(text: &str) -> Result<Secret, Wrong> {
    strong(text.as_bytes()).map(Secret)
}

/// A key that is long enough. The message never repeats it.
pub(in crate::config) fn strong(key: &[u8]) -> Result<Arc<[u8]>, Wrong> {
    if key.len() < KEY_MIN {
        let wrong = Wrong::new(format!("is shorter than {KEY_MIN} bytes"), KEY);
        return Err(wrong.note("`openssl rand -hex 32` makes one"));
    }
    Ok(key.into())
}

fn key_file(entry: &Entry, reader: &mut Reader<'_>) -> Option<Written<PathBuf>> {
    const EXPECTED: &str = "the path of a file that is a key";
    let read = reader.word(entry, EXPECTED, |text| {
        if text.is_empty() { Err(Wrong::new("is empty", EXPECTED)) } else { Ok(text.to_owned()) }
    })?;
    Some(Written::new(reader.read_path(&read.value, PathUse::StickyKey, &read.spot), read.spot))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]
mod tests {
    use super::*;

    #[test]
    fn every_name_of_an_algorithm_is_known_in_any_case() {
        for (name, balance) in Balance::ALL.iter().chain(Balance::ALIASES) {
            assert_eq!(algorithm_name(name).unwrap(), *balance, "{name}");
            assert_eq!(algorithm_name(&name.to_uppercase()).unwrap(), *balance, "{name}");
        }
    }

    #[test]
    fn words_of_other_load_balancers_are_answered_with_ours() {
        let table = [
            ("ip_hash", "`maglev`"),
            ("uri", "`hash_key: path`"),
            ("LEAST_REQUEST", "`least_connections`"),
            ("ewma", "`peak_ewma`"),
            ("sticky", "a key of the target"),
            ("round-robin", "`round_robin`"),
        ];
        for (name, ours) in table {
            let wrong = algorithm_name(name).unwrap_err();
            let advice = format!("{:?} {:?}", wrong.hint, wrong.note);
            assert!(advice.contains(ours), "{name}: {wrong:?}");
            assert!(wrong.expected.unwrap().contains("`maglev`"), "{name}");
        }
        assert_eq!(algorithm_name("fastest").unwrap_err().hint, None);
    }

    #[test]
    fn a_key_that_is_too_short_is_not_repeated() {
        let wrong = secret("correct horse b").unwrap_err();
        assert!(!format!("{wrong:?}").contains("horse"), "{wrong:?}");
        let secret = secret("correct horse ba").unwrap();
        assert_eq!(&*secret.0, b"correct horse ba");
        assert_eq!(format!("{secret:?}"), "(hidden)");
    }
}
