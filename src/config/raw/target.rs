//! The written form of one target, without its backends.

use std::ops::RangeInclusive;
use std::time::Duration;

use super::address::{self, RawListener};
use super::backend::{self, RawBackend};
use super::balance::{self, RawPolicy, RawSticky};
use super::bounds::{CONNECTIONS_MAX, DAY, HOUR, MILLISECOND, MONTH};
use super::group::{list, there_already};
use super::health::{self, RawHealth};
use super::reader::{Reader, choose, found, is_off};
use super::resilience::{self, RawResilience};
use super::shape;
use super::tls::{self, RawTls, RawUpstreamTls};
use super::vocabulary::later;
use super::vocabulary::spoken::Spoken;
use super::vocabulary::words::{is_token, name};
use crate::config::error::{Wrong, quoted};
use crate::config::files::fence::PathUse;
use crate::config::model::{Forwarded, HostHeader, Protocol};
use crate::config::origin::{Field, Spot, Written};
use crate::config::yaml::{Entry, Typed};

/// One target.
#[derive(Debug)]
pub(in crate::config) struct RawTarget {
    pub(in crate::config) name: Written<String>,
    pub(in crate::config) protocol: Field<Spoken>,
    /// One address, or several.
    pub(in crate::config) listener: Field<Vec<Written<RawListener>>>,
    pub(in crate::config) tls: Field<RawTls>,
    pub(in crate::config) upstream_tls: Field<RawUpstreamTls>,
    pub(in crate::config) policy: RawPolicy,
    /// A value of `None`: `off`.
    pub(in crate::config) sticky: Option<Written<Option<RawSticky>>>,
    /// A value of `None`: `off`.
    pub(in crate::config) health_check: Option<Written<Option<RawHealth>>>,
    pub(in crate::config) resilience: RawResilience,
    pub(in crate::config) timeouts: RawTimeouts,
    pub(in crate::config) drain_timeout: Option<Written<Duration>>,
    pub(in crate::config) limits: RawLimits,
    pub(in crate::config) forwarded: Option<Written<Forwarded>>,
    pub(in crate::config) x_real_ip: Option<Written<bool>>,
    pub(in crate::config) host: Option<Written<HostHeader>>,
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
            resilience: RawResilience::default(),
            timeouts: RawTimeouts::default(),
            drain_timeout: None,
            limits: RawLimits::default(),
            forwarded: None,
            x_real_ip: None,
            host: None,
            upgrade: None,
            backends: Field::Absent,
            http_only: Vec::new(),
        }
    }
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
    /// A value of `None`: `off`.
    pub(in crate::config) half_closed: Option<Written<Option<Duration>>>,
    pub(in crate::config) queue: Option<Written<Duration>>,
    /// A value of `None`: `off`.
    pub(in crate::config) attempt: Option<Written<Option<Duration>>>,
    /// A value of `None`: `off`.
    pub(in crate::config) total: Option<Written<Option<Duration>>>,
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
    /// A value of `None`: `off`.
    pub(in crate::config) connections: Option<Written<Option<u32>>>,
    /// A value of `None`: `off`.
    pub(in crate::config) connections_per_client: Option<Written<Option<u32>>>,
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
    reader.enter(!matches!(
        target.protocol,
        Field::Absent | Field::Given(Written { value: Spoken { protocol: Protocol::Tcp, .. }, .. })
    ));
    if let Some(entry) = section.find("listener") {
        target.listener = Field::read(listeners(entry, reader));
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
    target.health_check = section.find("health_check").and_then(|entry| health::walk(entry, reader));
    target.resilience = resilience::walk(&section, reader, &mut target.http_only);
    if let Some(entry) = section.find("timeouts") {
        target.timeouts = timeouts(entry, reader, &mut target.http_only).unwrap_or_default();
    }
    let drain_timeout = section.find("drain_timeout");
    target.drain_timeout = drain_timeout.and_then(|entry| reader.duration(entry, Duration::ZERO..=DAY));
    if let Some(entry) = section.find("limits") {
        target.limits = limits(entry, reader, &mut target.http_only).unwrap_or_default();
    }
    if let Some(entry) = section.find("forwarded") {
        target.http_only.push(("forwarded", reader.key_spot(entry)));
        target.forwarded = forwarded(entry, reader);
    }
    if let Some(entry) = section.find("x_real_ip") {
        target.http_only.push(("x_real_ip", reader.key_spot(entry)));
        target.x_real_ip = reader.switch(entry);
    }
    if let Some(entry) = section.find("host") {
        target.http_only.push(("host", reader.key_spot(entry)));
        target.host = reader.word(entry, "`pass`, `backend` or a name such as `app.example`", host);
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

/// One address to listen on, or a list of them.
fn listeners(entry: &Entry, reader: &mut Reader<'_>) -> Option<Written<Vec<Written<RawListener>>>> {
    const EXPECTED: &str = "a port such as `8080`, or an address with port";
    let placed = |listener: RawListener, spot: &Spot, reader: &mut Reader<'_>| match listener {
        RawListener::Unix(path) => {
            RawListener::Unix(reader.path(&path.to_string_lossy(), PathUse::Socket, spot))
        }
        RawListener::Port(_) | RawListener::At(..) => listener,
    };
    let Typed::List(items) = entry.node.typed() else {
        let read = reader.parsed_with_numbers(entry, EXPECTED, address::listener)?;
        let one = Written::new(placed(read.value, &read.spot, reader), read.spot.clone());
        return Some(Written::new(vec![one], read.spot));
    };
    if items.is_empty() {
        let problem = reader.report.at(entry.key_place, "`listener` is an empty list");
        problem.expected("at least one port, or address with port");
        return None;
    }
    let mut listeners = Vec::with_capacity(items.len());
    for item in items {
        let spot = reader.spot_of(item);
        let read = match (item.typed(), item.text()) {
            (Typed::Integer(_) | Typed::Text(_), Some(text)) => address::listener(text),
            _ => Err(Wrong::new(found(item), EXPECTED)),
        };
        let listener = match read {
            Ok(listener) => placed(listener, &spot, reader),
            Err(wrong) => {
                reader.report.wrong(&spot, "an entry of `listener`", wrong);
                continue;
            }
        };
        let spot = reader.spot_of_use(item);
        // The system gives another port each time.
        let is_any = matches!(listener, RawListener::Port(0) | RawListener::At(_, 0));
        if !is_any && listeners.iter().any(|other: &Written<_>| other.value == listener) {
            let wrong = there_already(item, item.text().unwrap_or_default());
            reader.report.wrong(&spot, "an entry of `listener`", wrong);
            continue;
        }
        listeners.push(Written::new(listener, spot));
    }
    (listeners.len() == items.len()).then(|| Written::new(listeners, reader.key_spot(entry)))
}

fn protocol(text: &str) -> Result<Spoken, Wrong> {
    let lower = text.to_lowercase();
    if let Some(instead) = later::protocol(&lower) {
        return Err(Wrong::new(
            format!("is {}, which is not supported yet: {instead}", quoted(text)),
            "`tcp`, `http` or `https`",
        ));
    }
    choose(text, Spoken::ALL).map_err(|wrong| match lower.as_str() {
        "tls" | "ssl" => wrong.note("TLS over TCP is `protocol: tcp` with `tls`; HTTP over TLS is `https`"),
        "ws" | "wss" | "websocket" => wrong.note("WebSockets are a part of `http` and `https`"),
        _ => wrong,
    })
}

fn timeouts(
    entry: &Entry,
    reader: &mut Reader<'_>,
    http_only: &mut Vec<(&'static str, Spot)>,
) -> Option<RawTimeouts> {
    let section = reader.section("`timeouts`", &entry.node, &shape::TIMEOUTS)?;
    let mut find = |key: &'static str, of_http: bool, reader: &Reader<'_>| {
        let entry = section.find(key)?;
        if of_http {
            http_only.push((key, reader.key_spot(entry)));
        }
        Some(entry)
    };
    let mut time = |key: &'static str, longest: Duration, of_http: bool| {
        find(key, of_http, reader).and_then(|entry| reader.limit(entry, MILLISECOND..=longest))
    };
    let (connect, tls) = (time("connect", HOUR, false), time("tls", HOUR, false));
    let (first_byte, idle) = (time("first_byte", DAY, true), time("idle", DAY, false));
    let (tunnel, queue) = (time("tunnel", MONTH, false), time("queue", HOUR, false));
    let (head, keep_alive) = (time("head", HOUR, true), time("keep_alive", DAY, true));
    let mut or_off = |key: &'static str, range: RangeInclusive<Duration>, of_http: bool| {
        let entry = find(key, of_http, reader)?;
        if is_off(&entry.node) {
            return Some(Written::new(None, reader.spot(entry)));
        }
        let read = reader.duration_or_off(entry, range)?;
        Some(Written::new(Some(read.value), read.spot))
    };
    let (attempt, total) =
        (or_off("attempt", MILLISECOND..=DAY, true), or_off("total", MILLISECOND..=DAY, true));
    let half_closed = or_off("half_closed", Duration::ZERO..=HOUR, false);
    Some(RawTimeouts {
        connect,
        tls,
        first_byte,
        idle,
        tunnel,
        head,
        keep_alive,
        half_closed,
        queue,
        attempt,
        total,
    })
}

fn limits(
    entry: &Entry,
    reader: &mut Reader<'_>,
    http_only: &mut Vec<(&'static str, Spot)>,
) -> Option<RawLimits> {
    let section = reader.section("`limits`", &entry.node, &shape::LIMITS)?;
    for key in ["head_size", "headers", "body", "body_rate"] {
        http_only.extend(section.find(key).map(|entry| (key, reader.key_spot(entry))));
    }
    let mut or_off = |key: &'static str, largest: u64| {
        let entry = section.find(key)?;
        if is_off(&entry.node) {
            return Some(Written::new(None, reader.spot(entry)));
        }
        reader.size(entry, 1..=largest, true).map(|size| Written::new(Some(size.value), size.spot))
    };
    let (body, body_rate) = (or_off("body", 1 << 50), or_off("body_rate", 1 << 30));
    let mut connections = |key: &'static str| reader.whole_or_off(section.find(key)?, 1..=CONNECTIONS_MAX);
    let (all, per_client) = (connections("connections"), connections("connections_per_client"));
    Some(RawLimits {
        head_size: section.find("head_size").and_then(|entry| reader.size(entry, 1_024..=65_536, false)),
        headers: section.find("headers").and_then(|entry| reader.whole(entry, 1..=1_000)),
        body,
        body_rate,
        connections: all,
        connections_per_client: per_client,
    })
}

/// What backends get as Host.
fn host(text: &str) -> Result<HostHeader, Wrong> {
    let named = HostHeader::NAMED.iter().find(|(name, _)| name.eq_ignore_ascii_case(text));
    if let Some((_, host)) = named {
        return Ok(host.clone());
    }
    let slip =
        HostHeader::NAMED.iter().find(|(name, _)| strsim::levenshtein(name, &text.to_lowercase()) == 1);
    if let Some((name, _)) = slip {
        return Err(Wrong::new(format!("is {}, which is nearly `{name}`", quoted(text)), HOST_KINDS)
            .hint(format!("write `{name}`"), *name));
    }
    health::host_header(text).map(HostHeader::Name).map_err(|wrong| {
        // What other programs have for the name that the client asked for.
        if text.contains(['$', '%', '{']) {
            wrong.hint("write `pass`: what the client asked for", "pass")
        } else {
            wrong
        }
    })
}

const HOST_KINDS: &str = "`pass` (what the client asked for), `backend` (the backend's address) or a name";

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
        let wrong = if !text.split('/').all(is_token) || text.matches('/').count() > 1 {
            Wrong::new(found(item), "the name of a protocol such as `websocket`")
        } else if text == "h2c" {
            Wrong::bare("is `h2c`, which is not supported: such a request is served over HTTP/1.1")
        } else if protocols.contains(&text) {
            let spot = reader.spot_of_use(item);
            reader.report.wrong(&spot, "an entry of `upgrade`", there_already(item, &text));
            continue;
        } else {
            protocols.push(text);
            continue;
        };
        let spot = reader.spot_of(item);
        reader.report.wrong(&spot, "an entry of `upgrade`", wrong);
    }
    Some(Written::new(protocols, reader.spot(entry)))
}
