//! Which hosts listeners name, and so which requests have come to another listener than theirs, or under another certificate.
//!
//! A client may send requests for any host over a connection whose certificate is for that host, too (RFC 9113 §9.1.1), also where that
//! host has a certificate or a listener of its own, with other rules. Such a request is told to come over another connection (421), and
//! a connection that was made for its own host is never the wrong one: so nobody is sent round in circles.
//!
//! What is asked of clients' certificates needs no look of its own: it is said for a listener as a whole, so it is the same for all hosts
//! of a connection.

use std::borrow::Cow;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use crate::config::model::{Config, ListenerConfig, Protocol};
use crate::route::{Passages, host_name};
use crate::tls::ServedNames;

/// The place of a listener among those that speak HTTP over TLS.
type Place = usize;

/// Who names one name, by how.
#[derive(Debug, Default, PartialEq, Eq)]
struct Namers {
    /// The name itself.
    whole: Vec<Place>,
    /// Names with exactly one label more, as a certificate with a star does.
    one_label: Vec<Place>,
    /// Names with any number of labels more, as a route with a star does.
    labels: Vec<Place>,
}

/// The hosts that are named by listeners that speak HTTP over TLS: by routes, by certificates, and as `default_host`.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct NamedHosts {
    /// By the name without its star.
    names: HashMap<Box<[u8]>, Namers>,
    /// The names of those listeners, in the order of the config.
    listeners: Vec<String>,
}

/// Whether it is for HTTP over TLS, decrypted here or passed through: what is passed through may be HTTP, too.
fn is_secured(listener: &ListenerConfig) -> bool {
    let is_http = listener.protocol == Protocol::Http && listener.tls.is_some();
    is_http || listener.routes.iter().any(|route| route.is_passthrough)
}

/// The name that a client has to ask for under TLS who wants this; `None`: it is an address, for which nobody can ask (RFC 6066 §3).
fn asked_name(authority: &[u8]) -> Option<Cow<'_, str>> {
    let host = match host_name(authority)? {
        Cow::Borrowed(host) => Cow::Borrowed(std::str::from_utf8(host).ok()?),
        Cow::Owned(host) => Cow::Owned(String::from_utf8(host).ok()?),
    };
    Some(host).filter(|host| host.parse::<IpAddr>().is_err() && !host.starts_with('['))
}

/// Whether a request for `authority`, over a connection of HTTP/2 that was made for `sni`, belongs on one that is passed through. One that was
/// made for its own host does only if it would now be passed through for sure: else its client would come back for ever.
#[inline(never)]
pub(super) fn is_passed_through(passages: &Passages, sni: Option<&str>, authority: &[u8]) -> bool {
    let name = asked_name(authority);
    let own = sni.and_then(|sni| asked_name(sni.as_bytes()));
    if name == own { surely_passes(passages, sni, Some("h2")) } else { passages.takes_http2(name.as_deref()) }
}

/// Whether a connection for `sni` on which this was agreed on would now be passed through for sure.
#[inline(never)]
pub(super) fn surely_passes(passages: &Passages, sni: Option<&str>, agreed: Option<&str>) -> bool {
    let name = sni.and_then(|sni| asked_name(sni.as_bytes()));
    passages.surely_takes(name.as_deref(), agreed)
}

impl NamedHosts {
    /// Those of `config`, which are the same object as `before` where nothing differs; `None`: nobody need be asked, since there is one
    /// such listener at most, or no connection of HTTP/2.
    pub(super) fn of(config: &Config, before: Option<&Arc<NamedHosts>>) -> Option<Arc<NamedHosts>> {
        let secured = || config.listeners.iter().filter(|listener| is_secured(listener));
        if secured().count() < 2 || secured().all(|listener| listener.http2.is_none()) {
            return None;
        }
        let mut hosts = NamedHosts::default();
        secured().for_each(|listener| hosts.add(listener));
        let same = before.filter(|before| ***before == hosts).map(Arc::clone);
        Some(same.unwrap_or_else(|| Arc::new(hosts)))
    }

    /// Adds a listener with all that it names.
    fn add(&mut self, listener: &ListenerConfig) {
        let place = self.listeners.len();
        self.listeners.push(listener.name.clone());
        for pattern in listener.routes.iter().flat_map(|route| &route.matches.hosts) {
            self.name(&pattern.name, place, |namers| match pattern.is_suffix {
                true => &mut namers.labels,
                false => &mut namers.whole,
            });
        }
        for name in listener.tls.iter().flat_map(|tls| tls.names()) {
            match name.strip_prefix("*.") {
                Some(name) => self.name(name, place, |namers| &mut namers.one_label),
                None => self.name(name, place, |namers| &mut namers.whole),
            }
        }
        if let Some(host) = &listener.default_host {
            self.name(host, place, |namers| &mut namers.whole);
        }
    }

    fn name(&mut self, name: &str, place: Place, by: impl Fn(&mut Namers) -> &mut Vec<Place>) {
        let places = by(self.names.entry(name.as_bytes().into()).or_default());
        if places.last() != Some(&place) {
            places.push(place);
        }
    }

    /// The place of this listener; `None`: it has none of these.
    fn place_of(&self, listener: &ListenerConfig) -> Option<Place> {
        let mut places = self.listeners.iter().enumerate();
        places.find(|(_, name)| **name == listener.name).map(|(place, _)| place)
    }

    /// Whether the nearest that any listener says about `host` is said by others than the one at `place`. The name itself is nearer than
    /// any star, and of stars the one with the longest name is the nearest.
    fn is_of_others(&self, host: &[u8], place: Place) -> bool {
        let dots = memchr::memchr_iter(b'.', host).map(|dot| &host[dot + 1..]);
        let near = std::iter::once((host, true)).chain(dots.map(|name| (name, false)));
        for (depth, (name, is_whole)) in near.enumerate() {
            let Some(namers) = self.names.get(name) else { continue };
            let (these, those) = match (is_whole, depth) {
                (true, _) => (&namers.whole[..], &[][..]),
                (false, 1) => (&namers.one_label[..], &namers.labels[..]),
                (false, _) => (&[][..], &namers.labels[..]),
            };
            if !these.is_empty() || !those.is_empty() {
                return !these.contains(&place) && !those.contains(&place);
            }
        }
        false
    }
}

/// The hosts of one listener that speaks HTTP over TLS.
#[derive(Clone, Debug)]
pub(super) struct OwnHosts {
    served: ServedNames,
    /// What it and the others name, and its place there.
    named: Option<(Arc<NamedHosts>, Place)>,
    /// One certificate for everybody, and nothing that others name: there is nothing to ask. It is what most configs have.
    is_alone: bool,
}

impl OwnHosts {
    /// Those of `listener`, whose clients see the certificates of `served`.
    pub(super) fn new(
        listener: &ListenerConfig,
        served: ServedNames,
        named: Option<&Arc<NamedHosts>>,
    ) -> OwnHosts {
        let place = |named: &Arc<NamedHosts>| Some((Arc::clone(named), named.place_of(listener)?));
        let named = named.and_then(place);
        let is_alone = named.is_none() && served.is_one();
        OwnHosts { served, named, is_alone }
    }

    /// Whether it is told apart from others by these.
    pub(super) fn is_among(&self, named: Option<&Arc<NamedHosts>>) -> bool {
        match (&self.named, named) {
            (Some((own, _)), Some(named)) => Arc::ptr_eq(own, named),
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => false,
        }
    }

    /// Which certificates its clients see.
    pub(super) fn served(&self) -> &ServedNames {
        &self.served
    }

    /// See [`super::Listener::is_misdirected`], of a host that is not the one that was asked for.
    #[inline(never)]
    fn is_other(&self, sni: Option<&str>, authority: &[u8]) -> bool {
        let host = host_name(authority);
        let name = host.as_deref().and_then(|host| std::str::from_utf8(host).ok());
        // Whoever asks for what is no name sees what those see who ask for none that we have.
        let name = name.unwrap_or_default();
        if !self.served.is_same(sni, name) {
            return true;
        }
        // An address is in no handshake, so that no other connection could be known to be for it.
        let is_address = name.parse::<IpAddr>().is_ok() || name.starts_with('[');
        let named = self.named.as_ref().filter(|_| !is_address);
        named.is_some_and(|(named, place)| named.is_of_others(name.as_bytes(), *place))
    }

    /// See [`super::Listener::is_misdirected`].
    #[inline]
    pub(super) fn is_misdirected(&self, sni: Option<&str>, authority: &[u8]) -> bool {
        !self.is_alone && !sni.is_some_and(|sni| is_for(sni, authority)) && self.is_other(sni, authority)
    }
}

/// Whether `authority` is this name, perhaps with a dot at its end or with a port.
#[inline]
fn is_for(name: &str, authority: &[u8]) -> bool {
    let name = name.strip_suffix('.').unwrap_or(name).as_bytes();
    let Some((host, rest)) = authority.split_at_checked(name.len()) else { return false };
    let rest = rest.strip_prefix(b".").unwrap_or(rest);
    matches!(rest, [] | [b':', ..]) && (host == name || host.eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests;
