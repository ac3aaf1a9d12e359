//! Backends that are the listener of their own target, or of whom their service asks about: every request would come back to us, again
//! and again.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use super::clashes::{as_written, line_of, spots};
use super::owner::KeyOwner;
use crate::config::error::quoted;
use crate::config::model::route::PathPattern;
use crate::config::model::{BackendAddress, Bind, ListenerConfig, RouteConfig};
use crate::config::origin::Field;
use crate::config::raw::{BindHost, RawAuth, RawNamed, RawTarget};
use crate::config::report::Report;

/// Reports every backend by which a listener would send all of its requests to itself. Only what is certain: a name may stand for any
/// address, an address of this machine is not known as such here unless it is a loopback one, and a route with conditions may well
/// lead to another one of the same listener.
pub(super) fn refuse(
    targets: &[RawTarget],
    all: &[(KeyOwner<'_>, &ListenerConfig)],
    host: BindHost,
    report: &mut Report,
) {
    for (owner, listener) in all {
        let Field::Given(written) = owner.binds else { continue };
        // What is passed through comes back with the same name and the same offers.
        let is_certain = |route: &&Arc<RouteConfig>| {
            route.matches.is_catch_all() || route.is_passthrough && route.matches.clients.is_empty()
        };
        let requests = listener.routes.iter().filter(is_certain).flat_map(|route| route.targets());
        // A copy meets the same conditions again, unless they are about its client.
        let copied = listener
            .routes
            .iter()
            .filter(|route| route.matches.clients.is_empty() && route.matches.certificate.is_empty());
        let copies = copied.filter_map(|route| route.mirror.as_ref()).map(|mirror| &*mirror.target);
        for name in requests.chain(copies) {
            let Some(target) = targets.iter().find(|target| target.name.value == name) else { continue };
            let Field::Given(backends) = &target.backends else { continue };
            for backend in &backends.value {
                let address = &backend.place.value.address;
                let mut binds = listener.binds.iter().zip(spots(&written.value, host));
                let Some((_, at)) = binds.find(|(bind, _)| leads_to(address, bind)) else { continue };
                let bind = as_written(owner, at, host).unwrap_or_else(|| address.to_string());
                let itself = if owner.is_target { " itself" } else { "" };
                let message = format!(
                    "the backend `{address}` is where {}{itself} listens, so its requests would go round in circles",
                    owner.told()
                );
                report
                    .spot(&backend.place.spot, message)
                    .expected("the address and port of the server that is to answer")
                    .note(format!(
                        "the {} listens on `{bind}`{}",
                        owner.kind(),
                        line_of(at, &backend.place.spot)
                    ));
            }
        }
    }
}

/// Reports every rule that asks a listener which asks by that rule itself: each question is a request, about which it would be asked.
/// Only what is certain: no route that the question may come to lets it in otherwise.
pub(super) fn refuse_questions(
    (rules, targets): (&[RawNamed<RawAuth>], &[RawTarget]),
    all: &[(KeyOwner<'_>, &ListenerConfig)],
    host: BindHost,
    report: &mut Report,
) {
    for named in rules {
        let Some(RawAuth::Forward(forward)) = &named.rule else { continue };
        let name = &forward.target.value;
        let Some(target) = targets.iter().find(|target| target.name.value == *name) else { continue };
        let Field::Given(backends) = &target.backends else { continue };
        let asked = forward.path.as_ref().map_or("/", |path| &path.value);
        let asked = asked.split('?').next().unwrap_or(asked);
        for (owner, listener) in all {
            let Field::Given(written) = owner.binds else { continue };
            if !asks_by(&named.name.value, asked, listener) {
                continue;
            }
            for backend in &backends.value {
                let address = &backend.place.value.address;
                let mut binds = listener.binds.iter().zip(spots(&written.value, host));
                let Some((_, at)) = binds.find(|(bind, _)| leads_to(address, bind)) else { continue };
                let message = format!(
                    "the auth rule {} asks {}, which asks by this rule itself: each question would be asked about",
                    quoted(&named.name.value),
                    owner.told()
                );
                let spot = &forward.target.spot;
                report.spot(spot, message).expected("a target whose backends are the service itself").note(format!(
                    "its backend `{address}`{} is where {} listens{}; a route for `{asked}` with `auth: off` would let the question in",
                    line_of(&backend.place.spot, spot),
                    owner.told(),
                    line_of(at, spot)
                ));
                break;
            }
        }
    }
}

/// Whether each route of `listener` that a question at this path may come to asks by the rule of this name; false: there is none.
fn asks_by(rule: &str, path: &str, listener: &ListenerConfig) -> bool {
    let is_below = |prefix: &str| {
        let prefix = prefix.trim_end_matches('/');
        path.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let takes = |route: &&Arc<RouteConfig>| match &route.matches.path {
        _ if route.is_passthrough => false,
        PathPattern::Any => true,
        PathPattern::Exact(exact) => exact == path,
        PathPattern::Prefix(prefix) => is_below(prefix),
        PathPattern::Regex(regex) => regex.is_match(path.as_bytes()),
    };
    let mut routes = listener.routes.iter().filter(takes).peekable();
    routes.peek().is_some() && routes.all(|route| route.auth.as_ref().is_some_and(|auth| auth.name == rule))
}

/// Whether who connects to `address` is let in at `bind`.
pub(in crate::config) fn leads_to(address: &BackendAddress, bind: &Bind) -> bool {
    match (address, bind) {
        (BackendAddress::Unix(path), Bind::Unix(bound)) => path == bound,
        (BackendAddress::Host { host, port }, Bind::Tcp(bound) | Bind::Udp(bound)) => {
            // RFC 6761 §6.3: this name is a loopback address, everywhere.
            let ip = if host.trim_end_matches('.').eq_ignore_ascii_case("localhost") {
                Some(IpAddr::V4(Ipv4Addr::LOCALHOST))
            } else {
                host.parse::<IpAddr>().ok()
            };
            *port == bound.port() && ip.is_some_and(|ip| reaches(ip.to_canonical(), *bound))
        }
        (BackendAddress::Host { .. }, Bind::Unix(_)) => false,
        (BackendAddress::Unix(_), Bind::Tcp(_) | Bind::Udp(_)) => false,
    }
}

/// The same for an address that is known. Sockets for IPv6 take no IPv4.
fn reaches(ip: IpAddr, bound: SocketAddr) -> bool {
    let is_wild = bound.ip().is_unspecified() && ip.is_loopback() && ip.is_ipv4() == bound.is_ipv4();
    ip == bound.ip() || is_wild
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]
mod tests {
    use super::*;

    #[test]
    fn only_what_certainly_leads_back_does() {
        let leads = |host: &str, port: u16, bound: &str| {
            let address = BackendAddress::Host { host: host.to_owned(), port };
            leads_to(&address, &Bind::Tcp(bound.parse().unwrap()))
        };
        for (host, bound) in [
            ("127.0.0.1", "127.0.0.1:80"),
            ("127.0.0.1", "0.0.0.0:80"),
            ("127.9.9.9", "0.0.0.0:80"),
            ("localhost", "127.0.0.1:80"),
            ("LocalHost.", "0.0.0.0:80"),
            ("::1", "[::1]:80"),
            ("::1", "[::]:80"),
            ("::ffff:127.0.0.1", "127.0.0.1:80"),
            ("10.0.0.7", "10.0.0.7:80"),
        ] {
            assert!(leads(host, 80, bound), "{host} {bound}");
            assert!(!leads(host, 81, bound), "{host} {bound}");
        }
        for (host, bound) in [
            ("127.0.0.2", "127.0.0.1:80"),
            ("127.0.0.1", "[::]:80"),
            ("::1", "0.0.0.0:80"),
            ("10.0.0.7", "0.0.0.0:80"),
            ("10.0.0.7", "10.0.0.8:80"),
            ("app.internal", "0.0.0.0:80"),
        ] {
            assert!(!leads(host, 80, bound), "{host} {bound}");
        }
        let unix = |path: &str| BackendAddress::Unix(path.into());
        assert!(leads_to(&unix("/run/a"), &Bind::Unix("/run/a".into())));
        assert!(!leads_to(&unix("/run/a"), &Bind::Unix("/run/b".into())));
    }
}
