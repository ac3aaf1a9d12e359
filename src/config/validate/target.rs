//! One target of the written form → a listener with a catch-all route, and a pool of backends.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use super::backend::BackendRules;
use super::show::name_of;
use super::top_level::TopLevel;
use super::{balance, bounds, clashes, folder, health, resilience, tls};
use crate::config::edit::Fix;
use crate::config::effective::EffectiveRows;
use crate::config::error::quoted;
use crate::config::model::{
    BackendConfig, BackendState, Bind, Forwarded, HostHeader, ListenerConfig, Normalize, Protocol,
    RouteConfig, TargetConfig,
};
use crate::config::origin::{Field, Written};
use crate::config::raw::{BindHost, RawBackend, RawHealth, RawListener, RawTarget, Spoken};
use crate::config::report::Report;
use crate::config::units::show_duration;

/// Makes both halves of a target, and what it says about backends.
pub(super) fn accept(
    raw: &RawTarget,
    top: &TopLevel,
    report: &mut Report,
    rows: &mut EffectiveRows,
) -> (ListenerConfig, TargetConfig, BackendRules) {
    let name = &raw.name.value;
    let path = |key: &str| format!("targets.{name}.{key}");
    let spoken = spoken(raw, rows);
    let protocol = spoken.map(|spoken| spoken.protocol);
    let is_http = protocol == Some(Protocol::Http);
    if protocol == Some(Protocol::Tcp) {
        refuse_http_keys(raw, report);
    }
    let binds = binds(raw, top, report, rows);
    let tls = tls::listener(raw, spoken, report, rows);
    let upstream = tls::upstream(raw, report, rows);
    let balance = balance::policy(raw, protocol, top, report, rows);
    let sticky = if is_http { balance::sticky(raw, report, rows) } else { None };
    let health = health::accept(raw, top, report, rows);
    let resilience = resilience::accept(raw, protocol, report, rows);
    let is_secured = tls::is_wanted(raw);
    if let (false, Some(written)) = (is_secured, &raw.timeouts.tls) {
        let message = format!("`tls` in `timeouts` has no effect: the target {} uses no TLS", quoted(name));
        report.spot(&written.spot, message).note("remove it");
    }
    let (timeouts, client_timeouts) = bounds::timeouts(raw, is_http, is_secured, report, rows);
    let drain_timeout =
        rows.settle(path("drain_timeout"), raw.drain_timeout.as_ref(), TargetConfig::DRAIN_TIMEOUT, |time| {
            show_duration(*time)
        });
    let limits = bounds::limits(raw, is_http, report, rows);
    let (mut forwarded, mut upgrade) = (Forwarded::default(), Vec::new());
    let (mut x_real_ip, mut host) = (false, HostHeader::default());
    if is_http {
        forwarded = rows.settle(path("forwarded"), raw.forwarded.as_ref(), forwarded, |forwarded| {
            name_of(Forwarded::ALL, *forwarded).to_owned()
        });
        x_real_ip = rows.settle(path("x_real_ip"), raw.x_real_ip.as_ref(), false, ToString::to_string);
        host = rows.settle(path("host"), raw.host.as_ref(), host, |host| match host {
            HostHeader::Pass => "pass".to_owned(),
            HostHeader::Backend => "backend".to_owned(),
            HostHeader::Name(name) => name.clone(),
        });
        upgrade =
            rows.settle(path("upgrade"), raw.upgrade.as_ref(), vec!["websocket".to_owned()], |protocols| {
                if protocols.is_empty() { "off".to_owned() } else { format!("[{}]", protocols.join(", ")) }
            });
    }
    let rules = backend_rules(raw, protocol, upstream);
    let backends = backends(raw, &rules, report, rows);
    // A fault in `protocol` has been reported, so what stands here instead is never used.
    let protocol = protocol.unwrap_or(Protocol::Tcp);
    let listener = ListenerConfig {
        name: name.clone(),
        protocol,
        tls,
        binds,
        routes: vec![Arc::new(RouteConfig::catch_all(name))],
        normalize: Normalize::default(),
        default_host: None,
        limits,
        client_timeouts,
        forwarded,
        x_real_ip,
    };
    let target = TargetConfig {
        name: name.clone(),
        protocol,
        host,
        balance,
        sticky,
        health,
        timeouts,
        drain_timeout,
        resilience,
        upgrade,
        backends,
    };
    (listener, target, rules)
}

fn spoken(raw: &RawTarget, rows: &mut EffectiveRows) -> Option<Spoken> {
    let written = match &raw.protocol {
        Field::Given(written) => Some(written),
        Field::Absent => None,
        Field::Faulty => return None,
    };
    let path = format!("targets.{}.protocol", raw.name.value);
    Some(rows.settle(path, written, Spoken::TCP, |spoken| name_of(Spoken::ALL, *spoken).to_owned()))
}

/// A key without effect is a misunderstanding, so it is refused.
fn refuse_http_keys(raw: &RawTarget, report: &mut Report) {
    for (key, spot) in &raw.http_only {
        let message =
            format!("`{key}` belongs to HTTP, but the target {} speaks tcp", quoted(&raw.name.value));
        let problem = report.spot(spot, message);
        match (spot.place, *key) {
            (Some(_), "adaptive") => {
                problem.hint("write `off`, or set `protocol: http`", Fix::Value("off".to_owned()))
            }
            (Some(place), _) => problem.hint("remove it, or set `protocol: http`", Fix::Remove(place)),
            (None, _) => problem,
        };
    }
}

fn binds(raw: &RawTarget, top: &TopLevel, report: &mut Report, rows: &mut EffectiveRows) -> Vec<Bind> {
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
    let mut all = Vec::new();
    for (index, one) in written.value.iter().enumerate() {
        let (binds, shown) = match &one.value {
            RawListener::Port(port) => {
                let host = top.address.value;
                (tcp(host, *port), format!("{host}:{port}"))
            }
            RawListener::At(host, port) => (tcp(*host, *port), format!("{host}:{port}")),
            RawListener::Unix(path) => {
                folder::check(path, "the socket", &one.spot, report);
                (vec![Bind::Unix(path.clone())], format!("unix:{}", path.display()))
            }
        };
        let place = if written.value.len() > 1 { format!("[{index}]") } else { String::new() };
        rows.note(format!("targets.{name}.listener{place}"), shown, one.spot.origin.clone());
        all.extend(binds);
    }
    all
}

fn backends(
    raw: &RawTarget,
    rules: &BackendRules,
    report: &mut Report,
    rows: &mut EffectiveRows,
) -> Vec<BackendConfig> {
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
    let backends = written.value.iter().enumerate();
    let backends = backends.map(|(index, backend)| rules.accept(index, backend, report, rows)).collect();
    clashes::backends(name, &written.value, report);
    balance::refuse_all_idle(name, &written.value, report);
    warn_of_nobody_in_service(name, &written.value, report);
    backends
}

/// A target may be out of service as a whole; that is worth a line.
fn warn_of_nobody_in_service(target: &str, backends: &[RawBackend], report: &mut Report) {
    let is_idle = |backend: &&RawBackend| matches!(&backend.portion.weight, Some(Written { value: 0, .. }));
    let is_out = |state: &&Written<BackendState>| state.value != BackendState::Up;
    let serving = || backends.iter().filter(|backend| !is_idle(backend));
    let first = serving().find_map(|backend| backend.state.as_ref().filter(is_out));
    if let Some(first) = first
        && serving().all(|backend| backend.state.as_ref().filter(is_out).is_some())
    {
        let message =
            format!("no backend of the target {} has `state: up`: it serves no new client", quoted(target));
        report.warn(&first.spot, &message);
    }
}

/// What the keys of the target say about its backends.
fn backend_rules(
    raw: &RawTarget,
    protocol: Option<Protocol>,
    upstream: tls::UpstreamSettings,
) -> BackendRules {
    let probe_path = match &raw.health_check {
        Some(Written { value: Some(RawHealth { path: Field::Given(path), .. }), .. }) => Some(path.clone()),
        Some(Written { value: Some(_) | None, .. }) | None => None,
    };
    BackendRules {
        target: raw.name.value.clone(),
        protocol,
        upstream,
        probe_path,
        is_unchecked: matches!(&raw.health_check, Some(Written { value: None, .. })),
    }
}

fn no_backends(problem: &mut crate::config::error::Problem) {
    problem.expected("at least one backend: `backends: [{host: 127.0.0.1, port: 8001}]`");
}
