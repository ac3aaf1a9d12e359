//! Things that can't both be: two listeners on one address, two backends with one address or one name.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;

use super::owner::KeyOwner;
use crate::config::error::quoted;
use crate::config::model::{BackendAddress, Bind, ListenerConfig};
use crate::config::origin::{Field, Spot, Written};
use crate::config::raw::{BindHost, RawBackend, RawListener};
use crate::config::report::Report;

/// Reports every listener that can't be bound because of one before it.
pub(super) fn listeners(all: &[(KeyOwner<'_>, &ListenerConfig)], host: BindHost, report: &mut Report) {
    let mut by_port: HashMap<(bool, u16), Vec<(SocketAddr, Place<'_>)>> = HashMap::new();
    let mut by_path: HashMap<&Path, Place<'_>> = HashMap::new();
    for (index, (owner, listener)) in all.iter().enumerate() {
        let Field::Given(written) = owner.binds else { continue };
        let mut clash = None;
        for (bind, spot) in listener.binds.iter().zip(spots(&written.value, host)) {
            match bind {
                Bind::Tcp(address) | Bind::Udp(address) if address.port() == 0 => {}
                Bind::Tcp(address) | Bind::Udp(address) => {
                    // What speaks TCP and what speaks UDP may have the same port, as servers of DNS do.
                    let kind = (matches!(bind, Bind::Udp(_)), address.port());
                    let taken = by_port.entry(kind).or_default();
                    if let Some((other, first)) =
                        taken.iter().find(|(other, _)| overlap(other.ip(), address.ip()))
                    {
                        clash.get_or_insert((
                            spot,
                            format!("{other}"),
                            format!("port {} is used twice", address.port()),
                            *first,
                            Some((*other, *address)),
                        ));
                    }
                    taken.push((*address, (index, spot)));
                }
                Bind::Unix(path) => {
                    if let Some(first) = by_path.get(path.as_path()) {
                        let name = path.display();
                        clash.get_or_insert((
                            spot,
                            format!("unix:{name}"),
                            format!("the socket `{name}` is used twice"),
                            *first,
                            None,
                        ));
                    }
                    by_path.insert(path, (index, spot));
                }
            }
        }
        if let Some((spot, address, message, (first, at), both)) = clash {
            let other = all[first].0;
            let line = line_of(at, spot);
            let address = as_written(&other, at, host).unwrap_or(address);
            let this = as_written(owner, spot, host);
            let (place, other) = if first == index {
                (format!("which is in the same list{line}"), format!("this {}", owner.kind()))
            } else {
                (format!("where {} listens{line}", other.told()), other.told())
            };
            if let (Some((theirs, ours)), Some(this)) = (both, this)
                && this != address
            {
                // `*` is more than either of the two addresses that it is bound as.
                let breadth =
                    |text: &str, bind: SocketAddr| (text.starts_with('*'), bind.ip().is_unspecified());
                let is_wider = breadth(&this, ours) > breadth(&address, theirs);
                let how = if is_wider { "includes" } else { "is a part of" };
                let message = format!("`{this}` {how} `{address}`, {place}");
                report.spot(spot, message).note("keep one of them, or take another port");
                continue;
            }
            report
                .spot(spot, message)
                .expected("one listener for each address")
                .note(format!("{other} already listens on `{address}`{line}"));
        }
    }
}

/// Reports every listener that has the name of one before it: of several files, and of targets in the short form.
pub(super) fn names(owners: &[KeyOwner<'_>], report: &mut Report) {
    let mut first: HashMap<&str, &KeyOwner<'_>> = HashMap::with_capacity(owners.len());
    for owner in owners {
        let name = owner.name.value.as_str();
        let Some(other) = first.get(name) else {
            first.insert(name, owner);
            continue;
        };
        let line = line_of(&other.name.spot, &owner.name.spot);
        let message = format!("the listener {} is there twice", quoted(name));
        let problem = report.spot(&owner.name.spot, message);
        problem.note(format!("{} has a listener of that name{line}; rename one of them", other.told()));
    }
}

/// A key, the addresses that it names, and where it is written.
pub(super) type Door<'r> = (&'static str, &'r [SocketAddr], Option<&'r Spot>);

/// Reports where the admin API listens, or metrics are given, if a listener does too, or both do.
pub(super) fn doors(
    all: &[(KeyOwner<'_>, &ListenerConfig)],
    [admin, metrics]: [Door<'_>; 2],
    report: &mut Report,
) {
    for (key, binds, spot) in [admin, metrics] {
        let Some(spot) = spot else { continue };
        let is_taken = |listener: &ListenerConfig| {
            listener.binds.iter().any(|bind| match bind {
                Bind::Tcp(public) => binds.iter().any(|own| meet(*own, *public)),
                Bind::Udp(_) | Bind::Unix(_) => false,
            })
        };
        if let Some((owner, _)) = all.iter().find(|(_, listener)| is_taken(listener)) {
            let message = format!("{} listens where `{key}` does", owner.told());
            report.spot(spot, message).note("take another port for one of them");
        }
    }
    if let Some(spot) = metrics.2
        && metrics.1.iter().any(|own| admin.1.iter().any(|other| meet(*own, *other)))
    {
        let problem = report.spot(spot, "`metrics.listener` listens where `admin.listener` does");
        problem.note("take another port for one of them: the admin API has `/metrics` too");
    }
}

/// Whether two addresses can't both be bound. Port 0 is another one each time.
fn meet(one: SocketAddr, other: SocketAddr) -> bool {
    one.port() != 0 && one.port() == other.port() && overlap(one.ip(), other.ip())
}

/// The address of a listener that stands there, as somebody would write it; `None` for a unix socket.
pub(super) fn as_written(owner: &KeyOwner<'_>, at: &Spot, host: BindHost) -> Option<String> {
    let Field::Given(written) = owner.binds else { return None };
    match written.value.iter().find(|listener| listener.spot.place == at.place)?.value {
        RawListener::At(host, port) => Some(format!("{host}:{port}")),
        RawListener::Port(port) => Some(format!("{host}:{port}")),
        RawListener::Unix(_) => None,
    }
}

/// The how manieth listener has an address, and where it is written.
type Place<'r> = (usize, &'r Spot);

/// Where each address is written that listeners are bound to, in their order.
pub(super) fn spots(listeners: &[Written<RawListener>], host: BindHost) -> impl Iterator<Item = &Spot> {
    listeners.iter().flat_map(move |listener| {
        let is_any = match listener.value {
            RawListener::At(host, _) => host == BindHost::Any,
            RawListener::Port(_) => host == BindHost::Any,
            RawListener::Unix(_) => false,
        };
        // `*` is bound for IPv6 and for IPv4.
        let binds = if is_any { 2 } else { 1 };
        std::iter::repeat_n(&listener.spot, binds)
    })
}

/// Two addresses of one port that can't both be bound. IPv6 sockets are bound for IPv6 only, so the families
/// do not meet.
fn overlap(one: IpAddr, other: IpAddr) -> bool {
    one.is_ipv4() == other.is_ipv4() && (one == other || one.is_unspecified() || other.is_unspecified())
}

/// Reports every backend that has the address or the name of one before it.
pub(super) fn backends(target: &str, backends: &[RawBackend], report: &mut Report) {
    let mut addresses: HashMap<BackendAddress, &RawBackend> = HashMap::with_capacity(backends.len());
    let mut names: HashMap<String, &RawBackend> = HashMap::with_capacity(backends.len());
    for backend in backends {
        let address = backend.place.value.address.to_string();
        let identity = identity(&backend.place.value.address);
        if let Some(first) = addresses.get(&identity) {
            let message = format!("the backend `{address}` is there twice in the target {}", quoted(target));
            let line = line_of(&first.place.spot, &backend.place.spot);
            report
                .spot(&backend.place.spot, message)
                .note(format!("remove one of them; the first is `{address}`{line}"));
            continue;
        }
        addresses.insert(identity, backend);
        let (name, spot) = match &backend.name {
            Some(name) => (name.value.clone(), &name.spot),
            None => (address, &backend.place.spot),
        };
        if let Some(first) = names.get(&name) {
            let message =
                format!("two backends of the target {} have the name {}", quoted(target), quoted(&name));
            let line = line_of(first.name.as_ref().map_or(&first.place.spot, |name| &name.spot), spot);
            report
                .spot(spot, message)
                .note(format!("rename one of them; the first is {}{line}", quoted(&name)));
            continue;
        }
        names.insert(name, backend);
    }
}

/// One spelling for every way to write the same address.
pub(in crate::config) fn identity(address: &BackendAddress) -> BackendAddress {
    match address {
        BackendAddress::Host { host, port } => {
            let plain = host.trim_end_matches('.').to_lowercase();
            let host = host.parse::<IpAddr>().map_or(plain, |ip| ip.to_canonical().to_string());
            BackendAddress::Host { host, port: *port }
        }
        BackendAddress::Unix(path) => BackendAddress::Unix(path.clone()),
    }
}

/// Where something stands, as somebody at `here` needs to know it: " (line 7)", with the file where that is another one, or nothing
/// for a value that is in no file.
pub(super) fn line_of(spot: &Spot, here: &Spot) -> String {
    match (spot.place, here.place) {
        (Some(place), Some(here)) if place.file == here.file => format!(" (line {})", place.line),
        (Some(_), Some(_)) => format!(" ({})", spot.origin),
        (Some(place), None) => format!(" (line {})", place.line),
        (None, _) => String::new(),
    }
}
