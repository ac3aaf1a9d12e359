//! One request through the questions of the data path, in its order.

use std::net::IpAddr;
use std::sync::Arc;

use super::chain::{Access, Chain, PassedOver, PathTaken, Side, Verdict};
use super::listener::{NoListener, listener};
use crate::config::model::route::{Action, Split, SplitBy};
use crate::config::model::{RouteConfig, SampleRequest};
use crate::message::{Cause, Head};
use crate::proxy::http::h1::parse;
use crate::proxy::http::hash_key::{Sender, client, hash_key};
use crate::route::access::lets_in;
use crate::route::condition::Condition;
use crate::route::nearer::Nearer;
use crate::route::{Asked, path_form, split};
use crate::snapshot::{Listener, Route};

/// Nearer routes that are told of.
const TOLD: usize = 12;

/// What would become of `request` with these listeners.
///
/// # Errors
/// No listener gets it, or it can't be said which.
pub fn decide(listeners: &[Arc<Listener>], request: &SampleRequest) -> Result<Chain, NoListener> {
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
        verdict: Verdict::Dropped,
    };
    let mut head = Head::new();
    chain.verdict = match parse::request(&bytes(request), listener.config.limits.headers, &mut head) {
        Ok(()) => routed(listener, request, &head, &mut chain),
        Err(cause) => refused(cause),
    };
    Ok(chain)
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

fn routed(listener: &Listener, request: &SampleRequest, head: &Head, chain: &mut Chain) -> Verdict {
    if head.method() == b"CONNECT" {
        return refused(Cause::ConnectMethod);
    }
    let trusts = |address: IpAddr| listener.trusts(address);
    let (peer, trusted) = (Some(request.from), listener.trusts(request.from));
    let sender = Sender { peer, trusted, kind: listener.config.forwarded };
    let whole = head.path();
    let (sent, query) = whole.split_at(memchr::memchr(b'?', whole).unwrap_or(whole.len()));
    chain.client = client(head, sender, trusts);
    if let Some((route, _)) = listener.straight() {
        chain.route = Some(route.config.name.clone());
        return forwarded(route, head, sender, trusts, whole);
    }
    let form = path_form::form(sent, &listener.config.normalize);
    chain.path = Some(PathTaken { sent: shown(sent), taken: form.as_ref().ok().map(|taken| shown(taken)) });
    let Ok(path) = form else { return refused(Cause::BadPath) };
    let asked = Asked { head, path: &path, client: chain.client };
    let Ok(found) = listener.router().find(&asked) else { return refused(Cause::BadPath) };
    passed_over(listener, listener.router().nearer(&asked, found), &asked, chain);
    let Some(route) = found.and_then(|place| listener.routes().get(place)) else {
        return refused(Cause::NoRoute);
    };
    chain.route = Some(route.config.name.clone());
    if let Some(access) = &route.config.access {
        let may = lets_in(access, asked.client);
        chain.access = Some(if may { Access::LetIn } else { Access::Denied });
        match access.status {
            _ if may => {}
            Some(status) => {
                return Verdict::Answered { status, cause: Some(Cause::AccessDenied.token()) };
            }
            None => return Verdict::Dropped,
        }
    }
    forwarded(route, head, sender, trusts, &[&path, query].concat())
}

fn forwarded(
    route: &Route,
    head: &Head,
    sender: Sender,
    trusts: impl Fn(IpAddr) -> bool,
    path: &[u8],
) -> Verdict {
    let whole = |target: &Arc<str>| vec![Side { target: target.to_string(), percent: 100.0 }];
    let targets = match &route.config.action {
        Action::Forward(target) => whole(target),
        Action::Split(split) => match &split.by {
            SplitBy::Chance => shares(split),
            SplitBy::Key(key) => match hash_key(key, head, sender, trusts) {
                Some(hash) => whole(&split.sides[split::by_hash(&split.sides, hash)].target),
                None => shares(split),
            },
        },
        Action::Redirect(_) | Action::Respond(_) => return refused(Cause::NoBackend),
    };
    Verdict::Forwarded { targets, path: shown(path) }
}

/// All sides that may get a request that nothing ties to one.
fn shares(split: &Split) -> Vec<Side> {
    let total: f64 = split.sides.iter().map(|side| f64::from(side.weight)).sum();
    let some = split.sides.iter().filter(|side| side.weight > 0);
    let share = |weight: u32| 100.0 * f64::from(weight) / total;
    some.map(|side| Side { target: side.target.to_string(), percent: share(side.weight) }).collect()
}

fn refused(cause: Cause) -> Verdict {
    Verdict::Answered { status: cause.status(), cause: Some(cause.token()) }
}

/// Those of the same host, and those that all but the host speaks for; of too many, those that came closest.
fn passed_over(listener: &Listener, all: Vec<Nearer<'_>>, asked: &Asked<'_>, chain: &mut Chain) {
    let count = all.len();
    let of_interest = |nearer: &Nearer<'_>| nearer.unmet != Condition::Host || nearer.is_only;
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
fn why(route: &RouteConfig, unmet: Condition<'_>, asked: &Asked<'_>) -> String {
    let matches = &route.matches;
    match unmet {
        Condition::Host => format!("the host is {}", shown(asked.head.authority())),
        Condition::Path => format!("the path is {}", shown(asked.path)),
        Condition::Method => {
            format!("the method is {}, not {}", shown(asked.head.method()), matches.methods.join(" or "))
        }
        Condition::Header(name) => format!("the header `{name}` is not as it says"),
        Condition::Query(name) => format!("the parameter `{name}` is not as it says"),
        Condition::Cookie(name) => format!("the cookie `{name}` is not as it says"),
        Condition::Client => {
            let client = asked.client.map_or_else(|| "unknown".to_owned(), |client| client.to_string());
            format!("the client is {client}")
        }
    }
}

/// Bytes as people read them.
fn shown(bytes: &[u8]) -> String {
    bytes.escape_ascii().to_string()
}
