//! One target of the written form → a listener with a catch-all route, and a pool of backends.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::ops::RangeInclusive;
use std::time::Duration;

use super::{Shared, balance, clashes, name_of, tls};
use crate::config::effective::Ledger;
use crate::config::error::{Report, quoted};
use crate::config::model::{
    Backend, Bind, ClientTimeouts, Forwarded, HealthCheck, Limits, Listener, Protocol, Resilience, Route,
    Target, Timeouts,
};
use crate::config::origin::{Field, Origin, Written};
use crate::config::raw::{BindHost, RawBackend, RawHealth, RawListener, RawTarget, Spoken};
use crate::config::units::{show_duration, show_size};

const INTERVAL: Duration = Duration::from_secs(2);
const TIMEOUT: Duration = Duration::from_secs(1);
const RISE: u32 = 2;
const FALL: u32 = 3;
const EXPECT: RangeInclusive<u16> = 200..=399;

/// Makes both halves of a target; `index` is its place in the accepted form.
pub(super) fn accept(
    index: usize,
    raw: &RawTarget,
    shared: &Shared,
    report: &mut Report,
    ledger: &mut Ledger,
) -> (Listener, Target) {
    let name = &raw.name.value;
    let path = |key: &str| format!("targets.{name}.{key}");
    let spoken = spoken(raw, ledger);
    let protocol = spoken.map(|spoken| spoken.protocol);
    let is_http = protocol == Some(Protocol::Http);
    if protocol == Some(Protocol::Tcp) {
        refuse_http_keys(raw, report);
    }
    let binds = binds(raw, shared, report, ledger);
    let tls = tls::listener(raw, spoken, report, ledger);
    let upstream = tls::upstream(raw, report, ledger);
    let balance = balance::policy(raw, protocol, shared, report, ledger);
    let sticky = if is_http { balance::sticky(raw, report, ledger) } else { None };
    let health = health(raw, shared, ledger);
    let is_secured = tls::is_wanted(raw);
    if let (false, Some(written)) = (is_secured, &raw.timeouts.tls) {
        let message = format!("`tls` in `timeouts` has no effect: the target {} uses no TLS", quoted(name));
        report.spot(&written.spot, message).hint("remove it");
    }
    let (timeouts, client_timeouts) = timeouts(raw, is_http, is_secured, ledger);
    let (mut limits, mut forwarded, mut upgrade) = (Limits::default(), Forwarded::default(), Vec::new());
    if is_http {
        limits = self::limits(raw, ledger);
        forwarded = ledger.settle(path("forwarded"), raw.forwarded.as_ref(), forwarded, |forwarded| {
            name_of(Forwarded::ALL, *forwarded).to_owned()
        });
        upgrade =
            ledger.settle(path("upgrade"), raw.upgrade.as_ref(), vec!["websocket".to_owned()], |protocols| {
                if protocols.is_empty() { "off".to_owned() } else { format!("[{}]", protocols.join(", ")) }
            });
    }
    let backends = backends(raw, protocol, &upstream, report, ledger);
    // A fault in `protocol` has been reported, so what stands here instead is never used.
    let protocol = protocol.unwrap_or(Protocol::Tcp);
    let listener = Listener {
        name: name.clone(),
        protocol,
        tls,
        binds,
        routes: vec![Route { target: index }],
        limits,
        client_timeouts,
        forwarded,
    };
    let target = Target {
        name: name.clone(),
        protocol,
        balance,
        sticky,
        health,
        timeouts,
        resilience: Resilience::default(),
        upgrade,
        backends,
    };
    (listener, target)
}

fn spoken(raw: &RawTarget, ledger: &mut Ledger) -> Option<Spoken> {
    let written = match &raw.protocol {
        Field::Given(written) => Some(written),
        Field::Absent => None,
        Field::Faulty => return None,
    };
    let path = format!("targets.{}.protocol", raw.name.value);
    Some(ledger.settle(path, written, Spoken::TCP, |spoken| name_of(Spoken::ALL, *spoken).to_owned()))
}

/// A key without effect is a misunderstanding, so it is refused.
fn refuse_http_keys(raw: &RawTarget, report: &mut Report) {
    for (key, spot) in &raw.http_only {
        let message =
            format!("`{key}` belongs to HTTP, but the target {} speaks tcp", quoted(&raw.name.value));
        report.spot(spot, message).hint("set `protocol: http`, or remove it");
    }
}

fn binds(raw: &RawTarget, shared: &Shared, report: &mut Report, ledger: &mut Ledger) -> Vec<Bind> {
    let name = &raw.name.value;
    let written = match &raw.listener {
        Field::Given(written) => written,
        Field::Faulty => return Vec::new(),
        Field::Absent => {
            report
                .spot(&raw.name.spot, format!("the target {} has no `listener`", quoted(name)))
                .expected("`listener: 8080`, or an address with port");
            return Vec::new();
        }
    };
    let tcp = |host: BindHost, port: u16| match host {
        BindHost::Ip(ip) => vec![Bind::Tcp(SocketAddr::new(ip, port))],
        BindHost::Any => vec![
            Bind::Tcp(SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), port)),
            Bind::Tcp(SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), port)),
        ],
    };
    let (binds, shown) = match &written.value {
        RawListener::Port(port) => {
            let host = shared.address.value;
            (tcp(host, *port), format!("{host}:{port}"))
        }
        RawListener::At(host, port) => (tcp(*host, *port), format!("{host}:{port}")),
        RawListener::Unix(path) => {
            super::check_folder(path, "the socket", &written.spot, report);
            (vec![Bind::Unix(path.clone())], format!("unix:{}", path.display()))
        }
    };
    ledger.note(format!("targets.{name}.listener"), shown, written.spot.origin.clone());
    binds
}

fn health(raw: &RawTarget, shared: &Shared, ledger: &mut Ledger) -> Option<HealthCheck> {
    let path = |key: &str| format!("targets.{}.health_check{key}", raw.name.value);
    let absent = RawHealth::default();
    let written = match &raw.health_check {
        None => &absent,
        Some(Written { value: Some(health), .. }) => health,
        Some(Written { value: None, spot }) => {
            ledger.note(path(""), "off", spot.origin.clone());
            return None;
        }
    };
    let time = |time: &Duration| show_duration(*time);
    let interval = stronger(written.interval.as_ref(), shared.interval.as_ref());
    let fall = stronger(written.fall.as_ref(), shared.fall.as_ref());
    let checks = HealthCheck {
        interval: ledger.settle(path(".interval"), interval, INTERVAL, time),
        timeout: ledger.settle(path(".timeout"), written.timeout.as_ref(), TIMEOUT, time),
        rise: ledger.settle(path(".rise"), written.rise.as_ref(), RISE, ToString::to_string),
        fall: ledger.settle(path(".fall"), fall, FALL, ToString::to_string),
        expect: vec![EXPECT],
        ..HealthCheck::default()
    };
    if let Field::Given(common) = &written.path {
        ledger.note(path(".path"), common.value.clone(), common.spot.origin.clone());
    }
    if !asks(raw) {
        return Some(checks);
    }
    let expect = ledger
        .settle(path(".expect"), written.expect.as_ref(), checks.expect, |ranges| show_statuses(ranges));
    let host = written.host.as_ref().map(|host| Written::new(Some(host.value.clone()), host.spot.clone()));
    let host = ledger.settle(path(".host"), host.as_ref(), None, |host: &Option<String>| {
        host.clone().unwrap_or_else(|| "the backend's address".to_owned())
    });
    Some(HealthCheck { expect, host, ..checks })
}

/// Whether any check of this target asks for a path. A faulty one counts: its fault has been reported.
fn asks(raw: &RawTarget) -> bool {
    let of_target = matches!(
        &raw.health_check,
        Some(Written { value: Some(RawHealth { path: Field::Given(_) | Field::Faulty, .. }), .. })
    );
    let of_backend = match &raw.backends {
        Field::Given(backends) => backends.value.iter().any(|backend| backend.health_path.is_some()),
        Field::Faulty => true,
        Field::Absent => false,
    };
    of_target || of_backend
}

/// What the target says, else what holds for all; but a flag wins over the file.
fn stronger<'a, T>(own: Option<&'a Written<T>>, shared: Option<&'a Written<T>>) -> Option<&'a Written<T>> {
    let flag = shared.filter(|written| matches!(written.spot.origin, Origin::Flag(_)));
    flag.or(own).or(shared)
}

fn show_statuses(ranges: &[RangeInclusive<u16>]) -> String {
    let shown: Vec<String> = ranges
        .iter()
        .map(|range| {
            if range.start() == range.end() {
                range.start().to_string()
            } else {
                format!("{}-{}", range.start(), range.end())
            }
        })
        .collect();
    match shown.as_slice() {
        [one] => one.clone(),
        many => format!("[{}]", many.join(", ")),
    }
}

fn timeouts(
    raw: &RawTarget,
    is_http: bool,
    is_secured: bool,
    ledger: &mut Ledger,
) -> (Timeouts, ClientTimeouts) {
    let (mut timeouts, mut client) = (Timeouts::default(), ClientTimeouts::default());
    let mut settle = |key: &str, written: &Option<Written<Duration>>, value: &mut Duration| {
        let path = format!("targets.{}.timeouts.{key}", raw.name.value);
        *value = ledger.settle(path, written.as_ref(), *value, |time| show_duration(*time));
    };
    settle("connect", &raw.timeouts.connect, &mut timeouts.connect);
    if is_secured {
        settle("tls", &raw.timeouts.tls, &mut timeouts.tls);
    }
    if is_http {
        settle("first_byte", &raw.timeouts.first_byte, &mut timeouts.first_byte);
    }
    if is_http || raw.timeouts.idle.is_some() {
        settle("idle", &raw.timeouts.idle, &mut timeouts.idle);
    }
    if !is_http && raw.timeouts.idle.is_some() {
        // All that a TCP connection can be is a tunnel: both keys bound its silence, and the shorter one counts.
        timeouts.tunnel = timeouts.idle;
    }
    settle("tunnel", &raw.timeouts.tunnel, &mut timeouts.tunnel);
    if !is_http && raw.timeouts.idle.is_some() {
        timeouts.tunnel = timeouts.tunnel.min(timeouts.idle);
    }
    if is_http {
        settle("head", &raw.timeouts.head, &mut client.head);
        settle("keep_alive", &raw.timeouts.keep_alive, &mut client.keep_alive);
    }
    client.idle = timeouts.idle;
    client.tls = timeouts.tls;
    (timeouts, client)
}

fn limits(raw: &RawTarget, ledger: &mut Ledger) -> Limits {
    let default = Limits::default();
    let path = |key: &str| format!("targets.{}.limits.{key}", raw.name.value);
    let or_off = |size: &Option<u64>| size.map_or_else(|| "off".to_owned(), show_size);
    let head_size = raw.limits.head_size.as_ref();
    let head_size =
        ledger.settle(path("head_size"), head_size, default.head_size as u64, |size| show_size(*size));
    let headers = default.headers.try_into().unwrap_or(u32::MAX);
    let headers = ledger.settle(path("headers"), raw.limits.headers.as_ref(), headers, ToString::to_string);
    let body = ledger.settle(path("body"), raw.limits.body.as_ref(), default.body, or_off);
    let rate = raw.limits.body_rate.as_ref();
    let rate = ledger.settle(path("body_rate"), rate, Some(default.body_rate), or_off);
    Limits {
        connections: None,
        connections_per_client: None,
        head_size: usize::try_from(head_size).unwrap_or(default.head_size),
        headers: headers as usize,
        body,
        body_rate: rate.unwrap_or(0),
    }
}

fn backends(
    raw: &RawTarget,
    protocol: Option<Protocol>,
    upstream: &tls::Upstream<'_>,
    report: &mut Report,
    ledger: &mut Ledger,
) -> Vec<Backend> {
    let name = &raw.name.value;
    let written = match &raw.backends {
        Field::Given(written) if !written.value.is_empty() => written,
        Field::Given(Written { spot, .. }) => {
            no_backends(
                report.spot(spot, format!("the target {} has an empty list of backends", quoted(name))),
            );
            return Vec::new();
        }
        Field::Absent => {
            no_backends(
                report.spot(&raw.name.spot, format!("the target {} has no `backends`", quoted(name))),
            );
            return Vec::new();
        }
        Field::Faulty => return Vec::new(),
    };
    let is_off = matches!(&raw.health_check, Some(Written { value: None, .. }));
    let common = match &raw.health_check {
        Some(Written { value: Some(RawHealth { path: Field::Given(path), .. }), .. }) => Some(path),
        Some(Written { value: Some(_) | None, .. }) | None => None,
    };
    let backends = written
        .value
        .iter()
        .enumerate()
        .map(|(index, backend)| {
            check_protocol(name, backend, protocol, report);
            let path = |key: &str| format!("targets.{name}.backends[{index}].{key}");
            let place = &backend.place;
            let address = place.value.address.to_string();
            let backend_name =
                ledger.settle(path("name"), backend.name.as_ref(), address.clone(), String::clone);
            let tls = upstream.of(backend, report);
            let shown = if tls.is_some() { format!("{address}, over TLS") } else { address };
            ledger.note(path("address"), shown, place.spot.origin.clone());
            let probe_path = backend.health_path.as_ref().or(common);
            match probe_path {
                // Checks may be off for a while; the path may stay where it is.
                Some(written) if is_off => {
                    let value = format!("{} (not asked for)", written.value);
                    ledger.note(path("health_path"), value, written.spot.origin.clone());
                }
                None if is_off => {}
                Some(written) => {
                    ledger.note(path("health_path"), written.value.clone(), written.spot.origin.clone());
                }
                None => {
                    let check = if tls.is_some() { "TLS handshake" } else { "TCP connect" };
                    ledger.note(
                        path("health_path"),
                        format!("none, a {check} is the check"),
                        Origin::Default,
                    );
                }
            }
            Backend {
                name: backend_name,
                address: place.value.address.clone(),
                probe_path: probe_path.map(|written| written.value.clone()),
                tls,
                portion: balance::portion(name, index, backend, report, ledger),
            }
        })
        .collect();
    clashes::backends(name, &written.value, report);
    balance::refuse_all_idle(name, &written.value, report);
    if !asks(raw) {
        refuse_idle_probe_keys(raw, report);
    }
    backends
}

fn no_backends(problem: &mut crate::config::error::Problem) {
    problem.expected("at least one backend: `backends: [{host: 127.0.0.1, port: 8001}]`");
}

/// `expect` and `host` describe an HTTP request that nobody would make.
fn refuse_idle_probe_keys(raw: &RawTarget, report: &mut Report) {
    let Some(Written { value: Some(health), .. }) = &raw.health_check else { return };
    let expect = health.expect.as_ref().map(|expect| ("expect", &expect.spot));
    let host = health.host.as_ref().map(|host| ("host", &host.spot));
    for (key, spot) in expect.into_iter().chain(host) {
        report
            .spot(spot, format!("`{key}` has no effect, because the check has no path to ask for"))
            .hint("add `path: /health` to `health_check`, or `health_path` to the backends");
    }
}

/// A URL's scheme says the same as the target's `protocol`, or one of them is a mistake.
fn check_protocol(target: &str, backend: &RawBackend, protocol: Option<Protocol>, report: &mut Report) {
    let place = &backend.place.value;
    let (Some(own), Some(protocol)) = (place.protocol, protocol) else { return };
    if own != protocol {
        let name = |protocol| name_of(Protocol::ALL, protocol);
        // Advice never takes encryption away.
        let scheme = match (protocol, place.tls) {
            (Protocol::Http, Some(true)) => "https",
            (Protocol::Http, _) => "http",
            (Protocol::Tcp, Some(true)) => "tls",
            (Protocol::Tcp, _) => "tcp",
        };
        let (own, protocol) = (name(own), name(protocol));
        let message =
            format!("this backend speaks {own}, but the target {} speaks {protocol}", quoted(target));
        report
            .spot(&backend.place.spot, message)
            .hint(format!("set `protocol: {own}` for the target, or write `{scheme}://…`"));
    }
}
