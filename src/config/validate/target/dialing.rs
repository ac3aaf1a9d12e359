//! How connections to backends are made.

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::Arc;

use crate::config::effective::EffectiveRows;
use crate::config::error::quoted;
use crate::config::model::{BackendAddress, Dialing, KeepaliveTimes, Protocol};
use crate::config::origin::{Field, Origin};
use crate::config::raw::RawTarget;
use crate::config::report::Report;
use crate::config::units::show_duration;

/// Makes it.
pub(super) fn accept(
    raw: &RawTarget,
    protocol: Option<Protocol>,
    report: &mut Report,
    rows: &mut EffectiveRows,
) -> Arc<Dialing> {
    let path = |key: &str| format!("targets.{}.{key}", raw.name.value);
    let mut sources = Vec::new();
    match &raw.bind_source {
        None => rows.note(path("bind_source"), "as the system chooses", Origin::Default),
        Some(written) => {
            sources.clone_from(&written.value);
            let shown: Vec<String> = sources.iter().map(ToString::to_string).collect();
            rows.note(path("bind_source"), format!("[{}]", shown.join(", ")), written.spot.origin.clone());
            for source in sources.iter().filter(|source| !is_here(**source)) {
                let message = format!(
                    "{} is no address of this machine now: no backend is reached from there",
                    quoted(&source.to_string())
                );
                report.warn(&written.spot, &message);
            }
            judge(raw, &sources, report);
        }
    }
    let usual = KeepaliveTimes::default();
    let keepalive = match &raw.keepalive {
        Some(written) if written.value.is_none() => {
            rows.note(path("tcp_keepalive"), "off", written.spot.origin.clone());
            None
        }
        // Nobody asks whether the other side of a flow is there.
        _ if protocol == Some(Protocol::Udp) => None,
        written => {
            let times = written.as_ref().and_then(|written| written.value.as_ref());
            let show = |time: &std::time::Duration| show_duration(*time);
            let of = |key: &str| path(&format!("tcp_keepalive.{key}"));
            Some(KeepaliveTimes {
                idle: rows.settle(of("idle"), times.and_then(|times| times.idle.as_ref()), usual.idle, show),
                interval: rows.settle(
                    of("interval"),
                    times.and_then(|times| times.interval.as_ref()),
                    usual.interval,
                    show,
                ),
                count: rows.settle(
                    of("count"),
                    times.and_then(|times| times.count.as_ref()),
                    usual.count,
                    ToString::to_string,
                ),
            })
        }
    };
    Arc::new(Dialing { sources, keepalive })
}

/// Whether a socket can be bound to it.
fn is_here(source: IpAddr) -> bool {
    UdpSocket::bind(SocketAddr::new(source, 0)).is_ok()
}

/// Reports backends that are reached from none of these addresses.
fn judge(raw: &RawTarget, sources: &[IpAddr], report: &mut Report) {
    let (Some(written), Field::Given(backends)) = (&raw.bind_source, &raw.backends) else { return };
    let is_unix = |address: &BackendAddress| matches!(address, BackendAddress::Unix(_));
    let addresses = || backends.value.iter().map(|backend| &backend.place.value.address);
    if !backends.value.is_empty() && raw.sources.is_empty() && addresses().all(is_unix) {
        let message = "`bind_source` has no effect: all backends are unix sockets";
        report.spot(&written.spot, message).note("remove it");
    }
    for backend in &backends.value {
        let BackendAddress::Host { host, .. } = &backend.place.value.address else { continue };
        let Ok(ip) = host.parse::<IpAddr>() else { continue };
        if !sources.iter().any(|source| source.is_ipv4() == ip.to_canonical().is_ipv4()) {
            let family = if ip.is_ipv4() { "IPv4" } else { "IPv6" };
            let message =
                format!("the backend {} is {family}, and no address of `bind_source` is", quoted(host));
            report.spot(&backend.place.spot, message).expected(format!("an {family} address beside it"));
        }
    }
}
