//! Routes that pass TLS on as it comes: what they may say, and which others they leave nothing to.

use std::collections::HashMap;

use super::super::clashes::line_of;
use super::super::owner::KeyOwner;
use super::reach::{RouteHost, hosts};
use crate::config::error::quoted;
use crate::config::model::{Protocol, RouteConfig, TargetConfig};
use crate::config::origin::{Field, Spot, Written};
use crate::config::raw::{RawRoute, Spoken};
use crate::config::report::Report;

/// What a route that passes connections on may say beside its name and its target.
const KEYS: [&str; 4] = ["passthrough", "match", "access", "rate_limit"];
/// What is known of a connection that is not decrypted.
const MATCHED: [&str; 3] = ["host", "alpn", "client"];
const MATCHED_FORM: &str = "`host`, `alpn` and `client` alone";

/// Reports what has no effect on a route that passes connections on, and what has none on another.
pub(super) fn refuse(raw: &RawRoute, owner: &KeyOwner<'_>, report: &mut Report) {
    let spot_of = |key: &str| raw.match_keys.iter().find(|(name, _)| *name == key).map(|(_, spot)| spot);
    let Field::Given(Written { value: true, spot }) = &raw.passthrough else {
        if let (Some(spot), false) = (spot_of("alpn"), raw.is_passthrough()) {
            let message = "`alpn` has no effect without `passthrough: true`: what is decrypted here goes by its requests";
            report.spot(spot, message).note("remove it");
        }
        return;
    };
    refuse_place(owner, spot, report);
    warn_of_idle_guards(owner, spot, report);
    for (key, spot) in raw.http_only.iter().filter(|(key, _)| !KEYS.contains(key)) {
        let message = format!(
            "`{key}` has no effect: a route with `passthrough: true` sees connections and no requests"
        );
        report.spot(spot, message).note("remove it");
    }
    for (key, spot) in raw.match_keys.iter().filter(|(key, _)| !MATCHED.contains(key)) {
        let message = format!("`{key}` is not known of a connection that is not decrypted");
        report.spot(spot, message).expected(MATCHED_FORM);
    }
    let Field::Given(Written { value: matches, .. }) = &raw.matches else { return };
    let Some(spot) = spot_of("host") else { return };
    for pattern in &matches.hosts {
        let name = quoted(&pattern.name);
        // The last label of a name is no number (RFC 3696 §2).
        let last = pattern.name.rsplit('.').next().unwrap_or_default();
        let is_address = pattern.name.starts_with('[') || last.bytes().all(|byte| byte.is_ascii_digit());
        let message = match pattern.port {
            Some(port) => format!("`host` has the port {port}: under TLS clients name a host and no port"),
            None if is_address => {
                format!("`host` has the address {name}: under TLS clients name no addresses")
            }
            None => continue,
        };
        report.spot(spot, message).expected("names such as `mail.example` or `\"*.example\"`");
    }
}

/// Warns of what the listener asks of its clients and can't ask of those who are passed on.
fn warn_of_idle_guards(owner: &KeyOwner<'_>, spot: &Spot, report: &mut Report) {
    let asks_user = matches!(owner.own.auth, Field::Given(Written { value: Some(_), .. }));
    let asks_certificate = match owner.tls {
        Field::Given(tls) => tls.value.client_ca.is_some(),
        Field::Absent | Field::Faulty => false,
    };
    // Where nothing is decrypted both are refused.
    for (key, _) in [("auth", asks_user), ("tls.client_ca", asks_certificate)]
        .into_iter()
        .filter(|(_, asks)| *asks && !owner.passes_all)
    {
        let message = format!(
            "`{key}` of {} does not hold for this route: its connections are passed through, and whoever comes is its target's to judge",
            owner.told()
        );
        report.warn(spot, &message);
    }
}

/// Reports targets whose backends would get TLS inside of TLS. `targets`: all there are.
pub(in crate::config::validate) fn refuse_two_sessions(
    raw: &[RawRoute],
    targets: &[TargetConfig],
    report: &mut Report,
) {
    for route in raw.iter().filter(|route| route.is_passthrough()) {
        let Field::Given(name) = &route.target else { continue };
        let target = targets.iter().find(|target| target.name == name.value);
        let is_secured = |target: &TargetConfig| target.backends.iter().any(|backend| backend.tls.is_some());
        if target.is_some_and(is_secured) {
            let message = format!(
                "backends of {} are spoken to over TLS, and what is passed through is TLS already",
                quoted(&name.value)
            );
            let problem = report.spot(&name.spot, message);
            problem.expected("a target without `upstream_tls`, and with backends such as `{host: a, port: 443}` or `tcp://a:443`");
        }
    }
}

/// Reports a route on a listener that knows nothing of TLS.
fn refuse_place(owner: &KeyOwner<'_>, spot: &Spot, report: &mut Report) {
    let Some(Spoken { protocol, is_https }) = owner.spoken_or_http() else { return };
    let has_tls = owner.passes_all || !matches!(owner.tls, Field::Absent);
    if is_https || protocol == Protocol::Tcp && has_tls {
        return;
    }
    let speaks = match protocol {
        Protocol::Tcp => "tcp without `tls`",
        Protocol::Udp | Protocol::Http => protocol.as_str(),
    };
    let message = format!("`passthrough` is for connections with TLS, but {} speaks {speaks}", owner.told());
    report.spot(spot, message).expected("a listener with `protocol: https`, or `tcp` with `tls`").note(
        "where all routes of a listener pass connections on, `protocol: tcp` will do without certificates",
    );
}

/// Reports each route that is for decrypted requests, all of whose connections are passed on. `spots`: where the routes stand.
pub(super) fn refuse_shadowed(
    routes: &[RouteConfig],
    spots: &[&Spot],
    owner: &KeyOwner<'_>,
    report: &mut Report,
) {
    let mut takers: HashMap<RouteHost<'_>, usize> = HashMap::new();
    for (place, route) in routes.iter().enumerate() {
        if route.is_passthrough && route.matches.conditions() == 0 {
            hosts(route).for_each(|host| {
                takers.entry(host).or_insert(place);
            });
        }
    }
    if takers.is_empty() {
        return;
    }
    let taker = |host: RouteHost<'_>| {
        let name = host.map(|(name, is_suffix, _)| (name, is_suffix, None));
        takers.get(&name).copied()
    };
    let decrypted = || routes.iter().enumerate().filter(|(_, route)| !route.is_passthrough);
    // One for any host has the requests of each connection that is decrypted for another one.
    let is_any_open = decrypted().any(|(_, route)| hosts(route).any(|host| taker(host).is_none()));
    for (place, route) in decrypted() {
        let first = hosts(route).map(&taker).try_fold(None, |first, taker| Some(first.or(Some(taker?))));
        let Some(Some(other)) = first else { continue };
        if route.matches.hosts.is_empty() && is_any_open {
            continue;
        }
        let message = format!(
            "this route of {} never has a request: the connections for its hosts are passed through",
            owner.told()
        );
        let line = line_of(spots[other], spots[place]);
        report
            .spot(spots[place], message)
            .note(format!("{}{line} has `passthrough: true` and takes them", quoted(&routes[other].name)));
    }
}
