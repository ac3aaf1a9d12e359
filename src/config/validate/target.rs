//! One target of the written form → a listener with a catch-all route, and a pool of backends.

mod dialing;

use std::sync::Arc;

use super::backend::BackendRules;
use super::bounds::Serves;
use super::owner::KeyOwner;
use super::show::name_of;
use super::top_level::TopLevel;
use super::{balance, bounds, clashes, datagrams, discovery, gate, health, listener, resilience, route, tls};
use crate::config::effective::EffectiveRows;
use crate::config::error::quoted;
use crate::config::model::{
    BackendConfig, BackendState, Dialing, HostHeader, ListenerConfig, Protocol, RouteConfig, SendProxy,
    TargetConfig, UpstreamProtocol,
};
use crate::config::origin::{Field, Written};
use crate::config::raw::{RawBackend, RawHealth, RawTarget, Spoken};
use crate::config::report::Report;
use crate::config::units::show_duration;

/// Makes what a target is: its listener, if it has one in the short form, its pool, and what it says about backends. `reached`: what
/// is spoken with those who come to it from elsewhere; `None`: it has a listener of its own, or nobody comes.
pub(super) fn accept(
    raw: &RawTarget,
    reached: Option<Protocol>,
    top: &TopLevel<'_>,
    report: &mut Report,
    rows: &mut EffectiveRows,
) -> (Option<ListenerConfig>, TargetConfig, BackendRules) {
    let name = &raw.name.value;
    let owner = KeyOwner::target(raw);
    let path = |key: &str| owner.path(key);
    let is_pool = matches!(raw.listener, Field::Absent) && raw.may_be_pool;
    let spoken = if is_pool {
        let protocol = reached.unwrap_or(Protocol::Http);
        Some(match protocol {
            Protocol::Http => Spoken::HTTP,
            Protocol::Tcp => Spoken::TCP,
            Protocol::Udp => Spoken::UDP,
        })
    } else {
        owner.spoken(Spoken::TCP, rows)
    };
    let protocol = spoken.map(|spoken| spoken.protocol);
    let is_http = protocol == Some(Protocol::Http);
    if is_pool {
        refuse_keys_of_listeners(raw, report);
    }
    if protocol.is_some_and(|protocol| protocol != Protocol::Http) {
        owner.refuse_http_keys(report);
    }
    if protocol == Some(Protocol::Udp) {
        datagrams::refuse_of_listener(&owner, report);
        datagrams::refuse_of_target(raw, report);
    } else {
        datagrams::refuse_its_keys(&owner, spoken, report);
        datagrams::refuse_its_probe(raw, report);
    }
    let binds = if is_pool { Vec::new() } else { listener::binds(&owner, spoken, top, report, rows) };
    let upstream = tls::upstream(raw, report, rows);
    let balance = balance::policy(raw, protocol, top, report, rows);
    let sticky = if is_http { balance::sticky(raw, top.sticky_key.as_ref(), report, rows) } else { None };
    let health = health::accept(raw, protocol, top, report, rows);
    let resilience = resilience::accept(raw, protocol, report, rows);
    let is_secured = tls::is_wanted(raw);
    if let (false, Some(written)) = (is_secured, &raw.timeouts.tls) {
        let message = format!("`tls` in `timeouts` has no effect: the target {} uses no TLS", quoted(name));
        report.spot(&written.spot, message).note("remove it");
    }
    let serves = if is_pool { Serves::Backends } else { Serves::Both };
    let (timeouts, client_timeouts) =
        bounds::timeouts(&owner, Some(raw), serves, spoken, is_secured, report, rows);
    let drain_timeout =
        rows.settle(path("drain_timeout"), raw.drain_timeout.as_ref(), TargetConfig::DRAIN_TIMEOUT, |time| {
            show_duration(*time)
        });
    let listener = if is_pool {
        None
    } else {
        let mut listener = listener::accept(&owner, spoken, client_timeouts, binds, top, report, rows);
        listener.access.extend(top.blacklisted.iter().map(Arc::clone));
        listener.rate_limits =
            gate::rate::accept(&owner.own.rate_limit, &path("rate_limit"), is_http, &top.rates, report, rows);
        let mut only = RouteConfig::catch_all(name);
        if is_http {
            only.cache = match (&raw.cache, &top.cache) {
                (Field::Absent, Some(of_all)) => {
                    route::cache::note(&path("cache"), of_all, rows);
                    Some(Arc::clone(&of_all.value))
                }
                (own, _) => route::cache::accept(own, &path("cache"), report, rows),
            };
            only.compress = route::compress::accept(&raw.own.compress, &path("compress"), None, rows);
        }
        listener.routes = vec![Arc::new(only)];
        Some(listener)
    };
    let (mut upgrade, mut host) = (Vec::new(), HostHeader::default());
    let mut upstream_protocol = UpstreamProtocol::default();
    if is_http {
        upstream_protocol = rows.settle(
            path("upstream_protocol"),
            raw.upstream_protocol.as_ref(),
            upstream_protocol,
            |chosen| name_of(UpstreamProtocol::ALL, *chosen).to_owned(),
        );
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
    let mut send_proxy = None;
    if protocol != Some(Protocol::Udp) {
        send_proxy = rows.settle(path("send_proxy"), raw.send_proxy.as_ref(), None, |version| {
            name_of(SendProxy::ALL, *version).to_owned()
        });
    }
    let dialing = dialing::accept(raw, protocol, report, rows);
    let rules = backend_rules(raw, protocol, upstream, dialing, health.is_none());
    let backends = backends(raw, &rules, report, rows);
    let sources = discovery::sources(raw, &rules, report, rows);
    let target = TargetConfig {
        name: name.clone(),
        // A fault in `protocol` has been reported, so what stands here instead is never used.
        protocol: protocol.unwrap_or(Protocol::Tcp),
        upstream: upstream_protocol,
        send_proxy,
        host,
        balance,
        sticky,
        health,
        timeouts,
        drain_timeout,
        resilience,
        upgrade,
        backends,
        sources,
    };
    (listener, target, rules)
}

/// What concerns a client's connection is the business of the listener by which the client comes.
fn refuse_keys_of_listeners(raw: &RawTarget, report: &mut Report) {
    let times = &raw.timeouts;
    let client_times = [
        ("timeouts.head", times.head.as_ref().map(|written| &written.spot)),
        ("timeouts.keep_alive", times.keep_alive.as_ref().map(|written| &written.spot)),
        ("timeouts.half_closed", times.half_closed.as_ref().map(|written| &written.spot)),
    ];
    let client_times = client_times.iter().filter_map(|(key, spot)| Some((*key, (*spot)?)));
    for (key, spot) in raw.listener_only.iter().map(|(key, spot)| (*key, spot)).chain(client_times) {
        let name = quoted(&raw.name.value);
        let (message, place) = match key {
            "cache" => (
                format!("`cache` belongs to a route, and the target {name} has no `listener`"),
                "listeners.<name>.routes[]",
            ),
            _ => {
                (format!("`{key}` belongs to a listener, and the target {name} has none"), "listeners.<name>")
            }
        };
        let problem = report.spot(spot, message);
        problem.note(format!("write it in `{place}`, or give the target a `listener` of its own"));
    }
}

fn backends(
    raw: &RawTarget,
    rules: &BackendRules,
    report: &mut Report,
    rows: &mut EffectiveRows,
) -> Vec<BackendConfig> {
    let name = &raw.name.value;
    let written = match &raw.backends {
        Field::Given(written) if !written.value.is_empty() || !raw.sources.is_empty() => written,
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
    let accept = |(index, backend): (usize, &RawBackend)| {
        rules.accept(backend.number.unwrap_or(index), backend, report, rows)
    };
    let backends = backends.map(accept).collect();
    clashes::backends(name, &written.value, report);
    // What will be found is not known.
    if raw.sources.is_empty() {
        balance::refuse_all_idle(name, &written.value, report);
        warn_of_nobody_in_service(name, &written.value, report);
    } else {
        discovery::refuse_all_idle(raw, &written.value, report);
    }
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
    dialing: Arc<Dialing>,
    is_unchecked: bool,
) -> BackendRules {
    let probe_path = match &raw.health_check {
        Some(Written { value: Some(RawHealth { path: Field::Given(path), .. }), .. }) => Some(path.clone()),
        Some(Written { value: Some(_) | None, .. }) | None => None,
    };
    BackendRules { target: raw.name.value.clone(), protocol, upstream, dialing, probe_path, is_unchecked }
}

fn no_backends(problem: &mut crate::config::error::Problem) {
    problem.expected("at least one backend: `backends: [{host: 127.0.0.1, port: 8001}]`");
}
