//! How backends are probed.

use std::time::Duration;

use super::show::show_statuses;
use super::top_level::TopLevel;
use crate::config::effective::EffectiveRows;
use crate::config::error::quoted;
use crate::config::model::{BackendAddress, HealthCheck, Protocol};
use crate::config::origin::{Field, Origin, Spot, Written};
use crate::config::raw::{RawHealth, RawTarget};
use crate::config::report::Report;
use crate::config::units::show_duration;

/// How the backends are probed; `None`: they are not.
pub(super) fn accept(
    raw: &RawTarget,
    protocol: Option<Protocol>,
    top: &TopLevel<'_>,
    report: &mut Report,
    rows: &mut EffectiveRows,
) -> Option<HealthCheck> {
    let path = |key: &str| format!("targets.{}.health_check{key}", raw.name.value);
    let absent = RawHealth::default();
    let written = match &raw.health_check {
        None => &absent,
        Some(Written { value: Some(health), .. }) => health,
        Some(Written { value: None, spot }) => {
            rows.note(path(""), "off", spot.origin.clone());
            return None;
        }
    };
    let is_udp = protocol == Some(Protocol::Udp);
    if is_udp && asked_by_dns(written).is_none() && written.receive.is_none() {
        // Whether anybody is there can't be found out without a question.
        rows.note(path(""), "off", Origin::Default);
        return None;
    }
    let time = |time: &Duration| show_duration(*time);
    let interval = stronger(written.interval.as_ref(), top.interval.as_ref());
    let fall = stronger(written.fall.as_ref(), top.fall.as_ref());
    let default = HealthCheck::default();
    let checks = HealthCheck {
        interval: rows.settle(path(".interval"), interval, default.interval, time),
        timeout: rows.settle(path(".timeout"), written.timeout.as_ref(), default.timeout, time),
        rise: rows.settle(path(".rise"), written.rise.as_ref(), default.rise, ToString::to_string),
        fall: rows.settle(path(".fall"), fall, default.fall, ToString::to_string),
        port: port(raw, "port", written.port.as_ref(), report, rows),
        agent: port(raw, "agent", written.agent.as_ref(), report, rows),
        ..default
    };
    if let Field::Given(common) = &written.path {
        rows.note(path(".path"), common.value.clone(), common.spot.origin.clone());
    }
    if let (false, Some(service)) = (is_udp, &written.grpc) {
        refuse_beside_grpc(raw, written, &service.spot, report);
        let shown = |name: &Option<String>| match name.as_deref() {
            None => "off".to_owned(),
            Some("") => "on".to_owned(),
            Some(name) => name.to_owned(),
        };
        let service = Written::new(Some(service.value.clone()), service.spot.clone());
        let grpc = rows.settle(path(".grpc"), Some(&service), None, shown);
        let host = host(written, &path(".host"), rows);
        return Some(HealthCheck { grpc, host, ..checks });
    }
    if let (true, Some(name)) = (is_udp, asked_by_dns(written)) {
        let shown = |name: &Option<String>| match name.as_deref() {
            None => "off".to_owned(),
            Some("") => "on".to_owned(),
            Some(name) => name.to_owned(),
        };
        let dns = rows.settle(path(".dns"), Some(name), None, shown);
        return Some(HealthCheck { dns, ..checks });
    }
    if is_udp {
        let (send, receive) = talk(raw, written, report, rows);
        return Some(HealthCheck { send, receive, ..checks });
    }
    if !asks(raw) {
        refuse_idle_keys(written, report);
        let (send, receive) = talk(raw, written, report, rows);
        return Some(HealthCheck { send, receive, ..checks });
    }
    refuse_talk(written, report);
    let expect =
        rows.settle(path(".expect"), written.expect.as_ref(), checks.expect, |ranges| show_statuses(ranges));
    let host = host(written, &path(".host"), rows);
    let body = written.body.as_ref().map(|body| Written::new(Some(body.value.clone()), body.spot.clone()));
    let body = rows.settle(path(".body"), body.as_ref(), None, |body: &Option<String>| {
        body.clone().unwrap_or_else(|| "none, it is not read".to_owned())
    });
    Some(HealthCheck { expect, host, body, ..checks })
}

/// Which name is asked for by DNS.
fn asked_by_dns(health: &RawHealth) -> Option<&Written<Option<String>>> {
    health.dns.as_ref().filter(|written| written.value.is_some())
}

/// The Host of what is asked.
fn host(written: &RawHealth, path: &str, rows: &mut EffectiveRows) -> Option<String> {
    let host = written.host.as_ref().map(|host| Written::new(Some(host.value.clone()), host.spot.clone()));
    rows.settle(path.to_owned(), host.as_ref(), None, |host: &Option<String>| {
        host.clone().unwrap_or_else(|| "that of the target".to_owned())
    })
}

/// A check by gRPC is one call, and its answer says how it is.
fn refuse_beside_grpc(raw: &RawTarget, health: &RawHealth, spot: &Spot, report: &mut Report) {
    if !raw.upstream_protocol.as_ref().is_some_and(|written| written.value.is_http2()) {
        let message =
            format!("`grpc` asks over HTTP/2, which the target {} does not speak", quoted(&raw.name.value));
        report.spot(spot, message).note("set `upstream_protocol: grpc`, or remove it");
    }
    let path = if let Field::Given(path) = &health.path { Some(&path.spot) } else { None };
    let backends = match &raw.backends {
        Field::Given(backends) => backends.value.as_slice(),
        Field::Absent | Field::Faulty => &[],
    };
    let of_backend = backends.iter().find_map(|backend| Some(&backend.health_path.as_ref()?.spot));
    let keys = [
        ("path", path),
        ("health_path", of_backend),
        ("expect", health.expect.as_ref().map(|written| &written.spot)),
        ("body", health.body.as_ref().map(|written| &written.spot)),
        ("send", health.send.as_ref().map(|written| &written.spot)),
        ("receive", health.receive.as_ref().map(|written| &written.spot)),
    ];
    for (key, spot) in keys.into_iter().filter_map(|(key, spot)| Some((key, spot?))) {
        report
            .spot(spot, format!("`{key}` has no effect, because the check asks by gRPC"))
            .note(format!("remove `{key}`, or remove `grpc`"));
    }
}

/// A port at which every backend's address is asked, by probes or for its agent.
fn port(
    raw: &RawTarget,
    key: &str,
    written: Option<&Written<u32>>,
    report: &mut Report,
    rows: &mut EffectiveRows,
) -> Option<u16> {
    let path = format!("targets.{}.health_check.{key}", raw.name.value);
    let Some(port) = written else {
        let default = if key == "port" { "that of the backend" } else { "none" };
        rows.note(path, default, Origin::Default);
        return None;
    };
    rows.note(path, port.value.to_string(), port.spot.origin.clone());
    let backends = match &raw.backends {
        Field::Given(backends) => backends.value.as_slice(),
        Field::Absent | Field::Faulty => &[],
    };
    let unix = backends.iter().find(|backend| matches!(backend.place.value.address, BackendAddress::Unix(_)));
    if let Some(unix) = unix {
        let message = format!(
            "`{key}` asks every backend on a port, but {} is a unix socket",
            quoted(&unix.place.value.address.to_string())
        );
        report.spot(&port.spot, message).note(format!("write backends with `host`, or remove `{key}`"));
    }
    u16::try_from(port.value).ok()
}

/// What a probe without a path sends, and what a good backend then says.
fn talk(
    raw: &RawTarget,
    written: &RawHealth,
    report: &mut Report,
    rows: &mut EffectiveRows,
) -> (Option<Vec<u8>>, Option<Vec<u8>>) {
    if let (Some(send), None) = (&written.send, &written.receive) {
        report
            .spot(&send.spot, "`send` without `receive`: nobody would look at what comes back")
            .note("add `receive:` with something that a good answer contains");
    }
    let mut settle = |key: &str, bytes: &Option<Written<Vec<u8>>>| {
        let path = format!("targets.{}.health_check.{key}", raw.name.value);
        if let Some(Written { value, spot: Spot { origin: origin @ Origin::Environment { .. }, .. } }) = bytes
        {
            // Whoever keeps it out of the file may have a password in it: `AUTH ${PASSWORD}\r\n`.
            rows.note_secret(path, value, origin.clone());
            return Some(value.clone());
        }
        let bytes = bytes.as_ref().map(|bytes| Written::new(Some(bytes.value.clone()), bytes.spot.clone()));
        rows.settle(path, bytes.as_ref(), None, |bytes: &Option<Vec<u8>>| {
            bytes.as_ref().map_or_else(|| "nothing".to_owned(), |bytes| bytes.escape_ascii().to_string())
        })
    };
    (settle("send", &written.send), settle("receive", &written.receive))
}

/// A check that asks for a path speaks HTTP and nothing else.
fn refuse_talk(health: &RawHealth, report: &mut Report) {
    let path = if matches!(health.path, Field::Absent) { "health_path" } else { "path" };
    let keys = [("send", &health.send), ("receive", &health.receive)];
    for (key, written) in keys.into_iter().filter_map(|(key, bytes)| Some((key, bytes.as_ref()?))) {
        report
            .spot(&written.spot, format!("`{key}` has no effect, because the check asks for a path by HTTP"))
            .note(format!(
                "remove `{key}`, or remove `{path}` to probe with bytes; to look into an HTTP answer's body use `body`"
            ));
    }
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

/// These describe an HTTP request that nobody would make, and its answer.
fn refuse_idle_keys(health: &RawHealth, report: &mut Report) {
    let expect = health.expect.as_ref().map(|expect| ("expect", &expect.spot));
    let host = health.host.as_ref().map(|host| ("host", &host.spot));
    let body = health.body.as_ref().map(|body| ("body", &body.spot));
    for (key, spot) in expect.into_iter().chain(host).chain(body) {
        report
            .spot(spot, format!("`{key}` has no effect, because the check has no path to ask for"))
            .note("add `path: /health` to `health_check`, or `health_path` to the backends");
    }
}
