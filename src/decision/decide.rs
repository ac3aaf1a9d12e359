//! One request through the questions of the data path, in its order.

use std::net::IpAddr;
use std::sync::Arc;

use super::cached::cached;
use super::chain::{Access, Chain, Destiny, PassedOver, PathTaken};
use super::listener::{NoListener, listener};
use super::sample::{SampleSent, shown};
use crate::config::model::route::Action;
use crate::config::model::{
    Auth, AuthKind, Protocol, RateLimit, RouteConfig, SampleCertificate, SampleRequest,
};
use crate::message::{Cause, Head};
use crate::proxy::http::gate::at_the_door;
use crate::proxy::http::h1::parse;
use crate::proxy::http::hash_key::{Sender, client};
use crate::proxy::http::routing::found::{
    AddressDenied, Lead, RouteFound, Unrouted, denied_by_listener, find, lead,
};
use crate::route::condition::RouteCondition;
use crate::route::nearer::Nearer;
use crate::route::{Asked, HelloVerdict, host_name, path_form};
use crate::snapshot::{Listener, RateCheck, Route};
use crate::tls::CertificateFacts;

/// Nearer routes that are told of.
const TOLD: usize = 12;

/// What would become of `request` with these listeners.
///
/// # Errors
/// No listener gets it, or it can't be said which.
pub fn decide(listeners: &[Arc<Listener>], request: &SampleRequest) -> Result<Chain, NoListener> {
    decide_with(listeners, request, &|_| None)
}

/// The same where some are kept out at run time. `blocked`: what keeps an address out; `None`: nothing.
///
/// # Errors
/// As [`decide`].
pub fn decide_with(
    listeners: &[Arc<Listener>],
    request: &SampleRequest,
    blocked: &dyn Fn(IpAddr) -> Option<String>,
) -> Result<Chain, NoListener> {
    let listener = listener(listeners, request)?;
    let mut chain = Chain {
        request: request.to_string(),
        from: request.from,
        client: Some(request.from),
        listener: listener.config.name.clone(),
        path: None,
        not: Vec::new(),
        not_more: 0,
        route: None,
        access: None,
        blocked: None,
        denied_by: None,
        auth: None,
        auth_rule: None,
        rate_limits: Vec::new(),
        cache: None,
        copies: None,
        verdict: Destiny::Dropped,
    };
    let mut head = Head::new();
    let is_bytes = listener.config.protocol != Protocol::Http;
    if is_bytes && passage(listener, request) == HelloVerdict::Here {
        return Err(NoListener::without_requests(listener));
    }
    chain.verdict = match parse::request(&bytes(request), listener.config.limits.headers, &mut head) {
        Ok(()) => routed(listener, (request, &head), blocked, &mut chain),
        Err(cause) => refused(cause),
    };
    Ok(chain)
}

/// What its certificate says.
fn facts(certificate: &SampleCertificate) -> CertificateFacts {
    let names = certificate.names.iter().map(|name| name.as_str().into());
    CertificateFacts {
        subject: certificate.subject.as_str().into(),
        common_name: Box::default(),
        names: names.collect(),
    }
}

/// The request as a client would send it.
fn bytes(request: &SampleRequest) -> Vec<u8> {
    let SampleRequest { method, authority, target, headers, .. } = request;
    let mut text = format!("{method} {target} HTTP/1.1\r\nHost: {authority}\r\n");
    for (name, value) in headers {
        text += &format!("{name}: {value}\r\n");
    }
    text += "\r\n";
    text.into_bytes()
}

fn routed(
    listener: &Listener,
    (request, head): (&SampleRequest, &Head),
    blocked: &dyn Fn(IpAddr) -> Option<String>,
    chain: &mut Chain,
) -> Destiny {
    let trusted = listener.trusts(request.from);
    let sender = Sender { peer: Some(request.from), trusted, kind: listener.config.forwarded };
    chain.client = client(head, sender, |proxy| listener.trusts(proxy));
    if let Some(by) = blocked(request.from) {
        chain.blocked = Some(format!("the peer {} is in {by}", request.from));
        // Over TLS nothing can be said at the door.
        return if listener.is_secured() { Destiny::Dropped } else { refused(Cause::Blocked) };
    }
    if !listener.access.is_empty() {
        chain.access = Some(Access::LetIn);
    }
    if let Some(rule) = at_the_door(listener, Some(request.from)) {
        chain.deny(AddressDenied { rule, is_of_listener: true });
        // Over TLS nothing can be said at the door.
        let status = rule.list.status.filter(|_| !listener.is_secured());
        return status.map_or(Destiny::Dropped, |status| answered(status, Cause::AccessDenied));
    }
    match passage(listener, request) {
        HelloVerdict::Here => {}
        HelloVerdict::Through(place) => return passed_through(listener, request.from, place, chain),
        // Before there is a session nothing can be said.
        HelloVerdict::Nowhere => return Destiny::Dropped,
    }
    if let Some((client, by)) = chain.client.and_then(|client| Some((client, blocked(client)?))) {
        chain.access = None;
        chain.blocked = Some(format!("the client {client} is in {by}"));
        return refused(Cause::Blocked);
    }
    if head.method() == b"CONNECT" {
        return refused(Cause::ConnectMethod);
    }
    let sample = SampleSent { listener, request, head, sender, client: chain.client };
    let whole = head.path();
    let sent = &whole[..memchr::memchr(b'?', whole).unwrap_or(whole.len())];
    if let Some((route, _)) = listener.straight() {
        if let Some(denied) = denied_by_listener(listener, head, sender) {
            return chain.turned_away(denied);
        }
        chain.route = Some(route.config.name.clone());
        return forwarded(&sample, route, sent, &[0]);
    }
    let form = path_form::form(sent, &listener.config.normalize).ok();
    chain.path = Some(PathTaken { sent: shown(sent), taken: form.as_deref().map(shown) });
    let certificate = request.certificate.as_ref().map(facts);
    let found = find(listener, head, sender, certificate.as_ref(), None);
    if let (Some(path), Ok(_) | Err(Unrouted { cause: Cause::NoRoute, .. })) = (&form, &found) {
        let asked = Asked { head, path, client: chain.client, certificate: certificate.as_ref() };
        let is_it = |route: &Route| found.as_ref().is_ok_and(|found| std::ptr::eq(found.route, route));
        let place = listener.routes().iter().position(is_it);
        passed_over(listener, listener.router().nearer(&asked, place), &asked, chain);
    }
    let RouteFound { path, route, denied, .. } = match found {
        Ok(found) => found,
        Err(Unrouted { denied: Some(denied), .. }) => {
            return chain.turned_away(denied);
        }
        Err(Unrouted { cause, denied: None }) => return refused(cause),
    };
    chain.route = Some(route.config.name.clone());
    if !route.access.is_empty() {
        chain.access = Some(Access::LetIn);
    }
    if let Some(denied) = denied {
        chain.deny(denied);
        let Some(status) = denied.rule.list.status else { return Destiny::Dropped };
        return sample.answered(route, &path, status, Some(Cause::AccessDenied));
    }
    chain.rate_limits = route.rates.iter().map(counted).collect();
    chain.auth = route.config.auth.as_deref().map(asked);
    chain.auth_rule = route.config.auth.as_ref().map(|auth| auth.name.clone());
    if !matches!(route.config.action, Action::Redirect(_) | Action::Respond(_)) {
        chain.cache = cached(&sample, route, &path);
    }
    let mirror = route.config.mirror.as_ref();
    chain.copies = mirror.map(|mirror| format!("{} of such requests to `{}`", mirror.share, mirror.target));
    match (&route.config.action, lead(route, listener, head, sender)) {
        (Action::Redirect(redirect), _) => sample.answered(route, &path, redirect.status, None),
        (Action::Respond(respond), _) => sample.answered(route, &path, respond.status, None),
        (_, Lead::To(place)) => forwarded(&sample, route, &path, &[place]),
        (_, Lead::ByChance(split)) => {
            let may = |place: &usize| split.sides[*place].weight > 0;
            let places: Vec<usize> = (0..split.sides.len()).filter(may).collect();
            forwarded(&sample, route, &path, &places)
        }
        (_, Lead::Nowhere) => refused(Cause::NoBackend),
    }
}

/// What becomes of a connection that a client of today would make for `request`: one that asks for its host and offers HTTP/2 and HTTP/1.1.
fn passage(listener: &Listener, request: &SampleRequest) -> HelloVerdict {
    let host = host_name(request.authority.as_bytes());
    let name = host.as_deref().and_then(|host| std::str::from_utf8(host).ok());
    // Nobody asks for an address (RFC 6066 §3).
    let name = name.filter(|name| name.parse::<IpAddr>().is_err() && !name.starts_with('['));
    listener.find_hello(name, &[b"h2"[..].into(), b"http/1.1"[..].into()], Some(request.from))
}

/// The end of a connection that the route at this place passes on.
fn passed_through(listener: &Listener, from: IpAddr, place: usize, chain: &mut Chain) -> Destiny {
    let way = listener.route_at(place).and_then(|route| Some((route, route.destinations.first()?)));
    let Some((route, way)) = way else { return refused(Cause::NoBackend) };
    chain.client = Some(from);
    chain.route = Some(route.config.name.clone());
    if !route.access.is_empty() {
        chain.access = Some(Access::LetIn);
    }
    let by_listener = listener.access.refusal(Some(from));
    if let Some(rule) = by_listener.or_else(|| route.access.refusal(Some(from))) {
        chain.deny(AddressDenied { rule, is_of_listener: by_listener.is_some() });
        return Destiny::Dropped;
    }
    chain.rate_limits = route.rates.iter().map(counted).collect();
    Destiny::PassedThrough { target: way.target.name.to_string() }
}

/// How a client has to show who it is, in words. Whether it does nobody can tell beforehand: the rest is said of one that is let in.
fn asked(auth: &Auth) -> String {
    match &auth.kind {
        AuthKind::Basic(_) => {
            format!("`{}` asks for a name and a password; the rest is for those who are let in", auth.name)
        }
        AuthKind::Jwt(_) => {
            format!("`{}` asks for a token; the rest is for those who are let in", auth.name)
        }
        AuthKind::Forward(forward) => {
            format!(
                "`{}` asks the target `{}`; the rest is for those who are let in",
                auth.name, forward.target
            )
        }
    }
}

/// A bucket that a request counts in. What is in it does not matter here: that is another thing at each moment.
fn counted(check: &RateCheck) -> String {
    let RateLimit { name, count, per, burst, .. } = &*check.limit;
    let dry = if check.limit.dry_run { ", dry run" } else { "" };
    format!("`{name}` by {}: {count}/{}, {burst} at once{dry}", check.by, per.token())
}

/// A request that goes to one of the destinations at these places of the route.
fn forwarded(sample: &SampleSent<'_>, route: &Route, path: &[u8], places: &[usize]) -> Destiny {
    let weight = |place: usize| match &route.config.action {
        Action::Split(split) => split.sides.get(place).map_or(0.0, |side| f64::from(side.weight)),
        _ => 1.0,
    };
    let total: f64 = places.iter().copied().map(weight).sum();
    let mut targets = Vec::with_capacity(places.len());
    for &place in places {
        let Some(destination) = route.destinations.get(place) else { return refused(Cause::NoBackend) };
        let percent = 100.0 * weight(place) / total;
        match sample.side(route, destination, path, percent) {
            Some(side) => targets.push(side),
            None => return sample.answered(route, path, Cause::BadPath.status(), Some(Cause::BadPath)),
        }
    }
    Destiny::Forwarded { targets }
}

fn refused(cause: Cause) -> Destiny {
    answered(cause.status(), cause)
}

/// Without a route, whose lines it would have.
fn answered(status: u16, cause: Cause) -> Destiny {
    Destiny::Answered { status, cause: Some(cause.token()), location: None, lines: Vec::new() }
}

/// Those of the same host, and those that all but the host speaks for; of too many, those that came closest.
fn passed_over(listener: &Listener, all: Vec<Nearer<'_>>, asked: &Asked<'_>, chain: &mut Chain) {
    let count = all.len();
    let of_interest = |nearer: &Nearer<'_>| nearer.unmet != RouteCondition::Host || nearer.is_only;
    let mut near: Vec<Nearer<'_>> = all.into_iter().filter(of_interest).collect();
    if near.len() > TOLD {
        let is_close = |nearer: &Nearer<'_>| nearer.is_only;
        let close = near.iter().filter(|nearer| is_close(nearer)).count();
        let mut room = TOLD.saturating_sub(close.min(TOLD));
        let mut left = TOLD;
        near.retain(|nearer| {
            let takes = left > 0 && (is_close(nearer) || room > 0);
            room -= usize::from(takes && !is_close(nearer));
            left -= usize::from(takes);
            takes
        });
    }
    chain.not_more = count - near.len();
    let routes = listener.routes();
    let told = |nearer: &Nearer<'_>| {
        let route = &routes.get(nearer.place)?.config;
        Some(PassedOver { route: route.name.clone(), why: why(route, nearer.unmet, asked) })
    };
    chain.not = near.iter().filter_map(told).collect();
}

/// The condition that fails, and what it fails at.
fn why(route: &RouteConfig, unmet: RouteCondition<'_>, asked: &Asked<'_>) -> String {
    let matches = &route.matches;
    match unmet {
        RouteCondition::Host => format!("the host is {}", shown(asked.head.authority())),
        RouteCondition::Path => format!("the path is {}", shown(asked.path)),
        RouteCondition::Method => {
            format!("the method is {}, not {}", shown(asked.head.method()), matches.methods.join(" or "))
        }
        RouteCondition::Header(name) => format!("the header `{name}` is not as it says"),
        RouteCondition::Query(name) => format!("the parameter `{name}` is not as it says"),
        RouteCondition::Cookie(name) => format!("the cookie `{name}` is not as it says"),
        RouteCondition::Client => {
            let client = asked.client.map_or_else(|| "unknown".to_owned(), |client| client.to_string());
            format!("the client is {client}")
        }
        RouteCondition::Certificate => match asked.certificate {
            None => "the client has shown no certificate".to_owned(),
            Some(facts) if facts.subject.is_empty() => "the client's certificate is another one".to_owned(),
            Some(facts) => format!("the client's certificate is that of {}", shown(facts.subject.as_bytes())),
        },
    }
}
