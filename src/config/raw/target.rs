//! The written form of one target, without its backends.

use std::ops::RangeInclusive;
use std::time::Duration;

use super::address::{self, RawListener};
use super::backend::{self, RawBackend};
use super::balance::{self, RawPolicy, RawSticky};
use super::reader::{Reader, found, is_off};
use super::tls::{self, RawTls, RawUpstreamTls};
use super::{COUNT_MAX, DAY, HOUR, INTERVAL_MIN, MILLISECOND, MONTH, later, list, placed, shape};
use crate::config::error::{Wrong, quoted};
use crate::config::model::{Forwarded, Protocol};
use crate::config::origin::{Field, Spot, Written};
use crate::config::yaml::{Entry, Node, Typed};

/// Longest name of a target, a backend or an upgrade protocol.
const NAME_MAX: usize = 128;

/// What `protocol` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::config) struct Spoken {
    pub(in crate::config) protocol: Protocol,
    /// Over TLS: `https`. A TCP target is secured by having `tls`.
    pub(in crate::config) is_https: bool,
}

impl Spoken {
    pub(in crate::config) const HTTP: Spoken = Spoken { protocol: Protocol::Http, is_https: false };
    pub(in crate::config) const TCP: Spoken = Spoken { protocol: Protocol::Tcp, is_https: false };
    /// Everything with the name it has in a config file.
    pub(in crate::config) const ALL: &'static [(&'static str, Spoken)] =
        &[("tcp", Spoken::TCP), ("http", Spoken::HTTP), ("https", Spoken { is_https: true, ..Spoken::HTTP })];
}

/// One target.
#[derive(Debug)]
pub(in crate::config) struct RawTarget {
    pub(in crate::config) name: Written<String>,
    pub(in crate::config) protocol: Field<Spoken>,
    pub(in crate::config) listener: Field<RawListener>,
    pub(in crate::config) tls: Field<RawTls>,
    pub(in crate::config) upstream_tls: Field<RawUpstreamTls>,
    pub(in crate::config) policy: RawPolicy,
    /// A value of `None`: `off`.
    pub(in crate::config) sticky: Option<Written<Option<RawSticky>>>,
    /// A value of `None`: `off`.
    pub(in crate::config) health_check: Option<Written<Option<RawHealth>>>,
    pub(in crate::config) timeouts: RawTimeouts,
    pub(in crate::config) limits: RawLimits,
    pub(in crate::config) forwarded: Option<Written<Forwarded>>,
    pub(in crate::config) upgrade: Option<Written<Vec<String>>>,
    pub(in crate::config) backends: Field<Vec<RawBackend>>,
    /// Where keys stand that mean something to HTTP only.
    pub(in crate::config) http_only: Vec<(&'static str, Spot)>,
}

impl RawTarget {
    /// A target with nothing but a name.
    pub(in crate::config) fn empty(name: Written<String>) -> Self {
        RawTarget {
            name,
            protocol: Field::Absent,
            listener: Field::Absent,
            tls: Field::Absent,
            upstream_tls: Field::Absent,
            policy: RawPolicy::default(),
            sticky: None,
            health_check: None,
            timeouts: RawTimeouts::default(),
            limits: RawLimits::default(),
            forwarded: None,
            upgrade: None,
            backends: Field::Absent,
            http_only: Vec::new(),
        }
    }
}

/// `health_check` when it is not `off`.
#[derive(Debug, Default)]
pub(in crate::config) struct RawHealth {
    pub(in crate::config) interval: Option<Written<Duration>>,
    pub(in crate::config) timeout: Option<Written<Duration>>,
    pub(in crate::config) rise: Option<Written<u32>>,
    pub(in crate::config) fall: Option<Written<u32>>,
    pub(in crate::config) path: Field<String>,
    pub(in crate::config) expect: Option<Written<Vec<RangeInclusive<u16>>>>,
    pub(in crate::config) host: Option<Written<String>>,
}

/// `timeouts`.
#[derive(Debug, Default)]
pub(in crate::config) struct RawTimeouts {
    pub(in crate::config) connect: Option<Written<Duration>>,
    pub(in crate::config) tls: Option<Written<Duration>>,
    pub(in crate::config) first_byte: Option<Written<Duration>>,
    pub(in crate::config) idle: Option<Written<Duration>>,
    pub(in crate::config) tunnel: Option<Written<Duration>>,
    pub(in crate::config) head: Option<Written<Duration>>,
    pub(in crate::config) keep_alive: Option<Written<Duration>>,
}

/// `limits`.
#[derive(Debug, Default)]
pub(in crate::config) struct RawLimits {
    pub(in crate::config) head_size: Option<Written<u64>>,
    pub(in crate::config) headers: Option<Written<u32>>,
    /// A value of `None`: `off`.
    pub(in crate::config) body: Option<Written<Option<u64>>>,
    /// A value of `None`: `off`.
    pub(in crate::config) body_rate: Option<Written<Option<u64>>>,
}

/// Walks one entry of `targets`.
pub(super) fn walk(entry: &Entry, reader: &mut Reader<'_>) -> RawTarget {
    let spot = reader.key_spot(entry);
    if let Err(wrong) = name(&entry.key) {
        reader.report.wrong(&spot, "the name of a target", wrong);
    }
    let mut target = RawTarget::empty(Written::new(entry.key.clone(), spot));
    let title = format!("the target {}", quoted(&entry.key));
    let Some(section) = reader.section(&title, &entry.node, &shape::TARGET) else {
        (target.protocol, target.listener, target.backends) = (Field::Faulty, Field::Faulty, Field::Faulty);
        return target;
    };
    if section.is_misspelt("protocol") {
        target.protocol = Field::Faulty;
    }
    if section.is_misspelt("listener") {
        target.listener = Field::Faulty;
    }
    if section.is_misspelt("backends") {
        target.backends = Field::Faulty;
    }
    if let Some(entry) = section.find("protocol") {
        target.protocol = Field::read(reader.parsed(entry, "`tcp`, `http` or `https`", protocol));
    }
    if let Some(entry) = section.find("listener") {
        let read = reader.parsed_with_numbers(
            entry,
            "a port such as `8080`, or an address with port",
            address::listener,
        );
        target.listener = Field::read(read.map(|read| Written::new(placed(read.value, reader), read.spot)));
    }
    if let Some(entry) = section.find("tls") {
        target.tls = Field::read(tls::walk(entry, reader));
    } else if section.is_misspelt("tls") {
        target.tls = Field::Faulty;
    }
    if let Some(entry) = section.find("upstream_tls") {
        target.upstream_tls = Field::read(tls::walk_upstream(entry, reader));
    } else if section.is_misspelt("upstream_tls") {
        target.upstream_tls = Field::Faulty;
    }
    target.policy = balance::policy(&section, reader);
    if let Some(entry) = section.find("sticky") {
        target.http_only.push(("sticky", reader.key_spot(entry)));
        target.sticky = balance::sticky(entry, reader);
    }
    target.health_check = section.find("health_check").and_then(|entry| health_check(entry, reader));
    if let Some(entry) = section.find("timeouts") {
        target.timeouts = timeouts(entry, reader, &mut target.http_only).unwrap_or_default();
    }
    if let Some(entry) = section.find("limits") {
        target.http_only.push(("limits", reader.key_spot(entry)));
        target.limits = limits(entry, reader).unwrap_or_default();
    }
    if let Some(entry) = section.find("forwarded") {
        target.http_only.push(("forwarded", reader.key_spot(entry)));
        target.forwarded = forwarded(entry, reader);
    }
    if let Some(entry) = section.find("upgrade") {
        target.http_only.push(("upgrade", reader.key_spot(entry)));
        target.upgrade = upgrade(entry, reader);
    }
    if let Some(entry) = section.find("backends") {
        target.backends = backend::walk(entry, reader);
    }
    target
}

/// Reads the path of a probe: what may stand in a request line (RFC 9112 §3.2.1).
pub(in crate::config) fn probe_path(text: &str) -> Result<String, Wrong> {
    let wrong = |why: &str| Wrong::new(format!("is {}, {why}", quoted(text)), "a path such as `/health`");
    if !text.starts_with('/') {
        return Err(wrong("which does not begin with `/`").hint(format!("write `/{text}`")));
    }
    if text.bytes().any(|b| !b.is_ascii_graphic() || b == b'#') {
        return Err(wrong("which has a blank or another character that no request may carry")
            .hint("write it as `%20` and so on"));
    }
    Ok(text.to_owned())
}

fn protocol(text: &str) -> Result<Spoken, Wrong> {
    let lower = text.to_lowercase();
    if let Some(instead) = later::protocol(&lower) {
        return Err(Wrong::new(
            format!("is {}, which is not supported yet: {instead}", quoted(text)),
            "`tcp`, `http` or `https`",
        ));
    }
    super::choose(text, Spoken::ALL).map_err(|wrong| match lower.as_str() {
        "tls" | "ssl" => wrong.hint("write `protocol: tcp` with `tls`, or `protocol: https`"),
        _ => wrong,
    })
}

/// Names stand in logs, metrics and identities (`target/backend`).
pub(super) fn name(text: &str) -> Result<String, Wrong> {
    if text.is_empty() {
        return Err(Wrong::new("is empty", "a word"));
    }
    if text.chars().count() > NAME_MAX {
        return Err(Wrong::bare(format!("is longer than {NAME_MAX} characters")));
    }
    if text.chars().any(|c| c.is_whitespace() || c.is_control() || c == '/') {
        return Err(Wrong::new(format!("is {}, which has a blank or a `/` in it", quoted(text)), "one word"));
    }
    Ok(text.to_owned())
}

fn health_check(entry: &Entry, reader: &mut Reader<'_>) -> Option<Written<Option<RawHealth>>> {
    let spot = reader.key_spot(entry);
    if is_off(&entry.node) {
        return Some(Written::new(None, reader.spot(entry)));
    }
    if !matches!(entry.node.typed(), Typed::Map(_) | Typed::Null) {
        reader.refuse(entry, "`off`, or a mapping with keys such as `interval` and `path`");
        return None;
    }
    let section = reader.section("`health_check`", &entry.node, &shape::HEALTH_CHECK)?;
    let health = RawHealth {
        interval: section.find("interval").and_then(|entry| reader.duration(entry, INTERVAL_MIN..=DAY)),
        timeout: section.find("timeout").and_then(|entry| reader.duration(entry, MILLISECOND..=HOUR)),
        rise: section.find("rise").and_then(|entry| reader.whole(entry, 1..=COUNT_MAX)),
        fall: section.find("fall").and_then(|entry| reader.whole(entry, 1..=COUNT_MAX)),
        path: match section.find("path") {
            Some(entry) => Field::read(reader.parsed(entry, "a path such as `/health`", probe_path)),
            None if section.is_misspelt("path") => Field::Faulty,
            None => Field::Absent,
        },
        expect: section.find("expect").and_then(|entry| expect(entry, reader)),
        host: section
            .find("host")
            .and_then(|entry| reader.word(entry, "a host name such as `app.example`", host_header)),
    };
    Some(Written::new(Some(health), spot))
}

/// What may stand in a Host field: no blank, no control character, and something at all.
fn host_header(text: &str) -> Result<String, Wrong> {
    if text.is_empty()
        || text.bytes().any(|b| !b.is_ascii_graphic() || matches!(b, b'/' | b'@' | b',' | b'"'))
    {
        return Err(Wrong::new(
            format!("is {}, which no Host header may be", quoted(text)),
            "a host name such as `app.example`",
        ));
    }
    Ok(text.to_owned())
}

fn expect(entry: &Entry, reader: &mut Reader<'_>) -> Option<Written<Vec<RangeInclusive<u16>>>> {
    const EXPECTED: &str =
        "a status such as `200`, a range such as `200-399`, or a list of them (100 to 599)";
    let one = [];
    let items: &[Node] = match entry.node.typed() {
        Typed::List(items) => items,
        Typed::Integer(_) | Typed::Text(_) => std::slice::from_ref(&entry.node),
        Typed::Null | Typed::Bool(_) | Typed::Float(_) | Typed::Map(_) => &one,
    };
    if items.is_empty() {
        reader.refuse(entry, EXPECTED);
        return None;
    }
    let mut ranges = Vec::with_capacity(items.len());
    for item in items {
        let Some(range) = item.text().and_then(statuses) else {
            let spot = reader.spot_of(item);
            let name = if items.len() > 1 { "an entry of `expect`" } else { "`expect`" };
            reader.report.wrong(&spot, name, Wrong::new(found(item), EXPECTED));
            continue;
        };
        ranges.push(range);
    }
    (ranges.len() == items.len()).then(|| Written::new(ranges, reader.spot(entry)))
}

fn statuses(text: &str) -> Option<RangeInclusive<u16>> {
    let status = |text: &str| {
        let text = text.trim();
        text.parse::<u16>().ok().filter(|status| text.len() == 3 && (100..=599).contains(status))
    };
    match text.split_once('-') {
        Some((first, last)) => Some(status(first)?..=status(last)?).filter(|range| !range.is_empty()),
        None => status(text).map(|status| status..=status),
    }
}

fn timeouts(
    entry: &Entry,
    reader: &mut Reader<'_>,
    http_only: &mut Vec<(&'static str, Spot)>,
) -> Option<RawTimeouts> {
    let section = reader.section("`timeouts`", &entry.node, &shape::TIMEOUTS)?;
    let mut time = |key: &'static str, longest: Duration, of_http: bool| {
        let entry = section.find(key)?;
        if of_http {
            http_only.push((key, reader.key_spot(entry)));
        }
        reader.duration(entry, MILLISECOND..=longest)
    };
    Some(RawTimeouts {
        connect: time("connect", HOUR, false),
        tls: time("tls", HOUR, false),
        first_byte: time("first_byte", DAY, true),
        idle: time("idle", DAY, false),
        tunnel: time("tunnel", MONTH, false),
        head: time("head", HOUR, true),
        keep_alive: time("keep_alive", DAY, true),
    })
}

fn limits(entry: &Entry, reader: &mut Reader<'_>) -> Option<RawLimits> {
    let section = reader.section("`limits`", &entry.node, &shape::LIMITS)?;
    let mut or_off = |key: &'static str, largest: u64| {
        let entry = section.find(key)?;
        if is_off(&entry.node) {
            return Some(Written::new(None, reader.spot(entry)));
        }
        reader.size(entry, 1..=largest, true).map(|size| Written::new(Some(size.value), size.spot))
    };
    Some(RawLimits {
        body: or_off("body", 1 << 50),
        body_rate: or_off("body_rate", 1 << 30),
        head_size: section.find("head_size").and_then(|entry| reader.size(entry, 1_024..=65_536, false)),
        headers: section.find("headers").and_then(|entry| reader.whole(entry, 1..=1_000)),
    })
}

fn forwarded(entry: &Entry, reader: &mut Reader<'_>) -> Option<Written<Forwarded>> {
    if is_off(&entry.node) {
        return Some(Written::new(Forwarded::Off, reader.spot(entry)));
    }
    reader.choice(entry, Forwarded::ALL)
}

fn upgrade(entry: &Entry, reader: &mut Reader<'_>) -> Option<Written<Vec<String>>> {
    if is_off(&entry.node) {
        return Some(Written::new(Vec::new(), reader.spot(entry)));
    }
    let items = list(entry, reader, "`off` or a list of protocols such as `[websocket]`")?;
    let mut protocols = Vec::with_capacity(items.len());
    for item in items {
        let text = item.text().unwrap_or_default().to_ascii_lowercase();
        // RFC 9110 §7.8: a protocol name is a token, perhaps with a version after a slash.
        let wrong = if !text.split('/').all(super::is_token) || text.matches('/').count() > 1 {
            Wrong::new(found(item), "the name of a protocol such as `websocket`")
        } else if text == "h2c" {
            Wrong::bare("is `h2c`, which is not supported: such a request is served over HTTP/1.1")
        } else if protocols.contains(&text) {
            Wrong::bare(format!("is {}, which is there already", quoted(&text)))
        } else {
            protocols.push(text);
            continue;
        };
        let spot = reader.spot_of(item);
        reader.report.wrong(&spot, "an entry of `upgrade`", wrong);
    }
    Some(Written::new(protocols, reader.spot(entry)))
}
