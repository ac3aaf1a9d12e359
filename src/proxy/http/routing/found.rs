//! The half of routing that looks and does nothing: whose a request is, where it may go, and which path its backend gets. The data
//! path asks these, and so does whoever wants to know what would become of a request (`decision`).

use std::borrow::Cow;
use std::net::IpAddr;

use crate::access::AddressRule;
use crate::config::model::Normalize;
use crate::config::model::route::{Action, PathPattern, Split, SplitBy};
use crate::message::{Cause, Head};
use crate::proxy::http::hash_key::{Sender, client, hash_key};
use crate::route::path_form::{self, PathFault};
use crate::route::{Asked, Groups, TextFacts, rewrite, split};
use crate::snapshot::{Listener, Route};
use crate::tls::CertificateFacts;

use super::recent::{RecentPlace, RecentRoutes};

/// A request that has a route.
pub struct RouteFound<'a> {
    /// Its path, in the form in which it was matched.
    pub path: Cow<'a, [u8]>,
    /// Who asks, as trusted proxies tell it.
    pub client: Option<IpAddr>,
    /// The route.
    pub route: &'a Route,
    /// What does not let its client have it.
    pub denied: Option<AddressDenied<'a>>,
}

/// A request that has none.
pub struct Unrouted<'a> {
    /// Why.
    pub cause: Cause,
    /// What does not let its client come in, whatever it asks for: then it is not told that there is no route.
    pub denied: Option<AddressDenied<'a>>,
}

/// The access list that does not let a client have what it asks for.
#[derive(Clone, Copy, Debug)]
pub struct AddressDenied<'a> {
    /// The list.
    pub rule: &'a AddressRule,
    /// It is one of the listener; else one of the route.
    pub is_of_listener: bool,
}

/// Looks for the route of a request, and whether its client may have it. `certificate`: what that of its client says;
/// `recent`: where it is kept for [`known`]; `None`: nowhere.
///
/// # Errors
/// Its path is refused, or no route takes it.
pub fn find<'a>(
    listener: &'a Listener,
    head: &'a Head,
    sender: Sender,
    certificate: Option<&CertificateFacts>,
    recent: Option<&RecentRoutes>,
) -> Result<RouteFound<'a>, Unrouted<'a>> {
    let sent = sent(head);
    let client = client(head, sender, |proxy| listener.trusts(proxy));
    let found = look(listener, head, (sent, client, certificate), recent);
    let found = found.and_then(|(path, place)| Ok((path, listener.route_at(place).ok_or(Cause::NoRoute)?)));
    let (path, route) = found.map_err(|cause| {
        let denied = if listener.access.is_empty() { None } else { denied_here(listener, &sender, client) };
        Unrouted { cause, denied }
    })?;
    Ok(RouteFound { path, client, route, denied: denied(listener, route, &sender, client) })
}

/// The path of a request as it was sent, without its query.
#[must_use]
pub fn sent(head: &Head) -> &[u8] {
    let whole = head.path();
    &whole[..memchr::memchr(b'?', whole).unwrap_or(whole.len())]
}

/// The route of a request, if it is known from others with its host and path: these were looked for as they were sent.
#[inline(always)]
pub fn known<'a>(
    listener: &'a Listener,
    head: &Head,
    sender: &Sender,
    certificate: Option<&CertificateFacts>,
    recent: &RecentRoutes,
) -> Option<&'a Route> {
    let (router, sent) = (listener.router(), sent(head));
    let found = recent.find(router.number(), head.authority(), sent)?;
    let place = if found.before.is_empty() {
        found.place
    } else {
        first(listener, head, sender, (sent, certificate), &found)
    };
    listener.route_at(place?)
}

/// The first route whose conditions hold, of those that were asked when this was found.
#[inline(never)]
fn first(
    listener: &Listener,
    head: &Head,
    sender: &Sender,
    (path, certificate): (&[u8], Option<&CertificateFacts>),
    found: &RecentPlace,
) -> Option<usize> {
    let client = client(head, *sender, |proxy| listener.trusts(proxy));
    let asked = Asked { head, path, client, certificate };
    let holds = |place: &usize| listener.router().takes(*place, &asked);
    found.before.iter().find(holds).or(found.place)
}

/// Which list does not let a client have what it asks for: one of the listener, else one of the route.
#[inline]
#[must_use]
pub fn denied<'a>(
    listener: &'a Listener,
    route: &'a Route,
    sender: &Sender,
    client: Option<IpAddr>,
) -> Option<AddressDenied<'a>> {
    let here = if listener.access.is_empty() { None } else { denied_here(listener, sender, client) };
    here.or_else(|| {
        let rule = route.access.refusal(client)?;
        Some(AddressDenied { rule, is_of_listener: false })
    })
}

/// The form of the path in which it is matched, and the place of the route.
#[inline(never)]
fn look<'a>(
    listener: &'a Listener,
    head: &'a Head,
    (sent, client, certificate): (&'a [u8], Option<IpAddr>, Option<&CertificateFacts>),
    recent: Option<&RecentRoutes>,
) -> Result<(Cow<'a, [u8]>, usize), Cause> {
    let path = path_form::form(sent, &listener.config.normalize).map_err(|_| Cause::BadPath)?;
    let router = listener.router();
    let found = router.look(&Asked { head, path: &path, client, certificate }).map_err(|_| Cause::BadPath)?;
    let place = found.place.ok_or(Cause::NoRoute)?;
    if let (Some(recent), Some(asked)) = (recent, found.asked)
        && *path == *sent
    {
        recent.note(router.number(), (head.authority(), sent), asked, place);
    }
    Ok((path, place))
}

/// Which list of the listener does not let the client of a request in.
#[inline(never)]
#[must_use]
pub fn denied_by_listener<'a>(
    listener: &'a Listener,
    head: &Head,
    sender: Sender,
) -> Option<AddressDenied<'a>> {
    if listener.access.is_empty() {
        return None;
    }
    denied_here(listener, &sender, client(head, sender, |proxy| listener.trusts(proxy)))
}

/// Which list of the listener does not let a client in. Whoever connects was asked at the door, but the lists may be others by now;
/// and clients of trusted proxies are known only here.
#[inline]
fn denied_here<'a>(
    listener: &'a Listener,
    sender: &Sender,
    client: Option<IpAddr>,
) -> Option<AddressDenied<'a>> {
    let of_peer = if sender.trusted { listener.access.denial(sender.peer) } else { None };
    let rule = of_peer.or_else(|| listener.access.refusal(client))?;
    Some(AddressDenied { rule, is_of_listener: true })
}

/// To which of its destinations a route leads a request.
pub enum Lead<'a> {
    /// To the one at this place.
    To(usize),
    /// To one of these, as chance has it.
    ByChance(&'a Split),
    /// To none: the route answers it.
    Nowhere,
}

/// Where the request leads on this route.
#[inline]
#[must_use]
pub fn lead<'a>(route: &'a Route, listener: &Listener, head: &Head, sender: Sender) -> Lead<'a> {
    match &route.config.action {
        Action::Forward(_) => Lead::To(0),
        Action::Split(split) => {
            let number = match &split.by {
                SplitBy::Chance => None,
                SplitBy::Key(key) => hash_key(key, head, sender, |proxy| listener.trusts(proxy)),
            };
            number.map_or(Lead::ByChance(split), |hash| Lead::To(split::by_hash(&split.sides, hash)))
        }
        Action::Redirect(_) | Action::Respond(_) => Lead::Nowhere,
    }
}

/// Path and query as a backend gets them; `None`: as they came. `path`: the form in which the path was matched.
///
/// # Errors
/// There is no such path that could be sent.
pub fn sent_path(
    route: &Route,
    rules: &Normalize,
    path: &[u8],
    facts: &TextFacts<'_>,
) -> Result<Option<Vec<u8>>, PathFault> {
    let came = facts.head.path();
    match &route.config.rewrite {
        None => {
            let (alone, query) = came.split_at(memchr::memchr(b'?', came).unwrap_or(came.len()));
            Ok(if *path == *alone { None } else { Some([path, query].concat()) })
        }
        Some(rule) => Ok(Some(rewrite(rule, path, facts, rules)?).filter(|path| path != came)),
    }
}

/// What `$1` to `$9` are in the texts of a route.
#[must_use]
pub fn groups<'a>(route: &'a Route, path: &'a [u8]) -> Groups<'a> {
    match &route.config.matches.path {
        PathPattern::Regex(regex) => Groups::of(regex, path),
        PathPattern::Any | PathPattern::Exact(_) | PathPattern::Prefix(_) => Groups::default(),
    }
}
