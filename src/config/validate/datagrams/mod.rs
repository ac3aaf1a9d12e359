//! What UDP has no use for, and what only it has.

use super::owner::KeyOwner;
use crate::config::edit::Fix;
use crate::config::error::quoted;
use crate::config::model::BackendAddress;
use crate::config::origin::{Field, Spot, Written};
use crate::config::raw::{RawListener, RawTarget, Spoken};
use crate::config::report::Report;

/// A key, if it is written, with its place.
type Key<'r> = (&'static str, Option<&'r Spot>);

fn spot<T>(written: &Option<Written<T>>) -> Option<&Spot> {
    written.as_ref().map(|written| &written.spot)
}

fn field<T>(written: &Field<T>) -> Option<&Spot> {
    if let Field::Given(written) = written { Some(&written.spot) } else { None }
}

/// Reports what a listener of UDP says about connections.
pub(super) fn refuse_of_listener(owner: &KeyOwner<'_>, report: &mut Report) {
    let times = owner.timeouts;
    let keys: [Key<'_>; 3] = [
        ("tls", field(owner.tls)),
        ("proxy_protocol", field(&owner.own.proxy_protocol)),
        ("half_closed", spot(&times.half_closed)),
    ];
    refuse(&keys, owner.kind(), &owner.name.value, report);
    // Those of targets are reported with these.
    if !owner.is_target {
        refuse(
            &[("tls", spot(&times.tls)), ("idle", spot(&times.idle))],
            owner.kind(),
            &owner.name.value,
            report,
        );
    }
    let Field::Given(binds) = owner.binds else { return };
    for bind in binds.value.iter().filter(|bind| matches!(bind.value, RawListener::Unix(_))) {
        let message = format!("{} speaks udp, which there are no unix sockets for", owner.told());
        report.spot(&bind.spot, message).expected("an address with a port, such as `\"*:53\"`");
    }
}

/// Reports what a target of UDP says about connections, and backends that it can't have.
pub(super) fn refuse_of_target(raw: &RawTarget, report: &mut Report) {
    let times = &raw.timeouts;
    let keys: [Key<'_>; 8] = [
        ("upstream_tls", field(&raw.upstream_tls)),
        ("send_proxy", spot(&raw.send_proxy)),
        ("tcp_keepalive", spot(&raw.keepalive)),
        ("retries", spot(&raw.resilience.retries)),
        ("connect", spot(&times.connect)),
        ("tls", spot(&times.tls)),
        ("idle", spot(&times.idle)),
        ("tunnel", spot(&times.tunnel)),
    ];
    refuse(&keys, "target", &raw.name.value, report);
    if let Field::Given(backends) = &raw.backends {
        for backend in &backends.value {
            if let BackendAddress::Unix(_) = backend.place.value.address {
                let message = format!(
                    "the target {} speaks udp, and this backend is a unix socket",
                    quoted(&raw.name.value)
                );
                report.spot(&backend.place.spot, message).expected("`host` and `port`");
            }
            if let Some(path) = &backend.health_path {
                refuse(&[("health_path", Some(&path.spot))], "target", &raw.name.value, report);
            }
        }
    }
    refuse_of_probe(raw, report);
}

/// Reports what a probe of UDP can't ask, and one that asks nothing.
fn refuse_of_probe(raw: &RawTarget, report: &mut Report) {
    let Some(Written { value: Some(health), .. }) = &raw.health_check else { return };
    let keys: [Key<'_>; 5] = [
        ("path", field(&health.path)),
        ("expect", spot(&health.expect)),
        ("host", spot(&health.host)),
        ("body", spot(&health.body)),
        ("grpc", spot(&health.grpc)),
    ];
    refuse(&keys, "target", &raw.name.value, report);
    if health.dns.as_ref().is_some_and(|dns| dns.value.is_some()) {
        for (key, spot) in [("send", spot(&health.send)), ("receive", spot(&health.receive))] {
            let Some(spot) = spot else { continue };
            let message = format!("`{key}` has no effect, because the check asks by DNS");
            report.spot(spot, message).note(format!("remove `{key}`, or remove `dns`"));
        }
        return;
    }
    if let (Some(receive), None) = (&health.receive, &health.send) {
        let message = "`receive` without `send`: over UDP nobody answers who was not asked";
        report.spot(&receive.spot, message).note("add `send:` with a question that a good backend answers");
    }
    if let (Some(send), None) = (&health.send, &health.receive) {
        report
            .spot(&send.spot, "`send` without `receive`: nobody would look at what comes back")
            .note("add `receive:` with something that a good answer contains");
    }
    if health.dns.is_some() || health.receive.is_some() || health.send.is_some() {
        return;
    }
    let idle: [Key<'_>; 6] = [
        ("interval", spot(&health.interval)),
        ("timeout", spot(&health.timeout)),
        ("rise", spot(&health.rise)),
        ("fall", spot(&health.fall)),
        ("port", spot(&health.port)),
        ("agent", spot(&health.agent)),
    ];
    if let Some((key, at)) = idle.iter().find_map(|(key, spot)| Some((key, (*spot)?))) {
        let message = format!(
            "`{key}` has no effect, because `health_check` of the target {} asks nothing: over UDP nobody answers who was not asked",
            quoted(&raw.name.value)
        );
        report
            .spot(at, message)
            .expected("`send` and `receive` beside it, such as `{send: ping, receive: pong}`, or `dns: on`")
            .note("without a check a backend is left out while its machine says that nobody is there (ICMP)");
    }
}

fn refuse(keys: &[Key<'_>], kind: &str, name: &str, report: &mut Report) {
    for (key, spot) in keys {
        let Some(spot) = spot else { continue };
        let message = format!("`{key}` has no effect, because the {kind} {} speaks udp", quoted(name));
        report.spot(spot, message).note("remove it");
    }
}

/// Reports what only UDP has where something else is spoken.
pub(super) fn refuse_its_keys(owner: &KeyOwner<'_>, spoken: Option<Spoken>, report: &mut Report) {
    // A fault in `protocol` has been reported.
    let Some(spoken) = spoken else { return };
    let keys: [Key<'_>; 3] = [
        ("flow", spot(&owner.timeouts.flow)),
        ("reply_factor", spot(&owner.limits.reply_factor)),
        ("replies", spot(&owner.limits.replies)),
    ];
    for (key, spot) in keys {
        let Some(spot) = spot else { continue };
        let message =
            format!("`{key}` belongs to UDP, but {} speaks {}", owner.told(), spoken.protocol.as_str());
        remove(report, spot, message);
    }
}

/// Reports a question that only UDP has.
pub(super) fn refuse_its_probe(raw: &RawTarget, report: &mut Report) {
    let Some(Written { value: Some(health), .. }) = &raw.health_check else { return };
    let Some(dns @ Written { value: Some(_), .. }) = &health.dns else { return };
    let name = quoted(&raw.name.value);
    let message = format!("`dns` is asked over UDP, which the target {name} does not speak");
    remove(report, &dns.spot, message);
}

/// What flows need of this machine, as it is shown behind how many there may be.
pub(super) fn needs() -> String {
    match local_ports() {
        Some(ports) => format!(" (each flow takes a descriptor, and one of {ports} local ports)"),
        None => " (each flow takes a descriptor and a local port)".to_owned(),
    }
}

/// Warns of more flows than there are ports.
pub(super) fn warn_of_ports(connections: &Option<Written<Option<u32>>>, report: &mut Report) {
    if let (Some(Written { value: Some(most), spot }), Some(ports)) = (connections, local_ports())
        && *most > ports
    {
        let message = format!(
            "`connections` is {most}, but each flow takes a local port, and this machine has {ports} of them (net.ipv4.ip_local_port_range)"
        );
        report.warn(spot, &message);
    }
}

/// Ports that this machine gives to sockets that ask for none, over all addresses.
fn local_ports() -> Option<u32> {
    let text = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").ok()?;
    let mut ends = text.split_whitespace().map(str::parse::<u32>);
    let (first, last) = (ends.next()?.ok()?, ends.next()?.ok()?);
    Some(last.checked_sub(first)? + 1)
}

fn remove(report: &mut Report, spot: &Spot, message: String) {
    let problem = report.spot(spot, message);
    match spot.place {
        Some(place) => problem.hint("remove it, or set `protocol: udp`", Fix::Remove(place)),
        None => problem,
    };
}
