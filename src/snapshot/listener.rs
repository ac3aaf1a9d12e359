//! Listeners under one config, ready for use.

use std::collections::{HashMap, HashSet};
use std::net::IpAddr;
use std::sync::Arc;

use ipnet::IpNet;
use rustls::ServerConfig;

use crate::access::{AddressRules, RuleStock};
use crate::config::model::route::HeaderEdit;
use crate::config::model::tls::UnknownSni;
use crate::config::model::{ListenerConfig, Normalize, Protocol, RouteConfig};
use crate::message::ListenerId;
use crate::route::{HelloVerdict, LineEdits, Passages, Router};
use crate::slots::Slots;
use crate::targets::Target;
use crate::tls::{LiveCertificates, ServedCertificate, ServedNames, Tickets, server_config};

use super::connections::ListenerState;
use super::hosts::{NamedHosts, OwnHosts, is_passed_through, surely_passes};
use super::rates::{NamedRates, RateChecks};
use super::route::{AuthState, Destination, Route, RouteNumbers};

/// One listener under one config, ready for use. A connection holds it, and with it all that it may come to: a request
/// that has taken it sees one config to its end.
#[derive(Debug)]
pub struct Listener {
    /// Its number, which it has under every config.
    pub id: ListenerId,
    /// Its policies.
    pub config: ListenerConfig,
    /// Whose clients may come in at all.
    pub access: AddressRules,
    /// Which lines of clients go before anything is decided: those by which backends are told who a client is.
    pub told: LineEdits,
    /// What TLS sessions of its clients are made with; `None`: plain.
    pub tls: Option<Arc<ServerConfig>>,
    /// What outlives this config.
    pub state: Arc<ListenerState>,
    router: Router,
    /// Which connections are passed through undecrypted; `None`: none.
    passages: Option<Passages>,
    /// Whoever asks for a name that no certificate has is refused.
    refuses_unknown: bool,
    /// What connections without requests count in, before anything is known of them.
    door_rates: RateChecks,
    /// In the order of the file.
    routes: Vec<Route>,
    /// The only route takes every request as it comes.
    is_straight: bool,
    has_caches: bool,
    trusted: Arc<[IpNet]>,
    /// `None`: it has no TLS.
    hosts: Option<OwnHosts>,
}

impl Listener {
    /// The one route that takes every request as it comes, and where it leads: nothing of a request need be looked at, but whether the
    /// listener lets its client in. `None`: there are others, or it does more than that.
    #[must_use]
    #[inline]
    pub fn straight(&self) -> Option<(&Route, &Destination)> {
        if !self.is_straight {
            return None;
        }
        let route = self.routes.first()?;
        Some((route, route.destinations.first()?))
    }

    /// Whether any of its routes answers from what is stored.
    #[must_use]
    #[inline]
    pub fn has_caches(&self) -> bool {
        self.has_caches
    }

    /// The route at this place.
    #[must_use]
    #[inline]
    pub fn route_at(&self, place: usize) -> Option<&Route> {
        self.routes.get(place)
    }

    /// How its routes are found.
    #[must_use]
    pub fn router(&self) -> &Router {
        &self.router
    }

    /// Its routes, in the order of the file.
    #[must_use]
    pub fn routes(&self) -> &[Route] {
        &self.routes
    }

    /// The route of connections that have no requests and are not passed through; `None`: there is none.
    #[must_use]
    #[inline]
    pub fn bytes_route(&self) -> Option<&Route> {
        self.routes.iter().find(|route| !route.config.is_passthrough)
    }

    /// Which connections are passed through undecrypted; `None`: none, and nobody need know what their clients ask for.
    #[must_use]
    #[inline]
    pub fn passages(&self) -> Option<&Passages> {
        self.passages.as_ref()
    }

    /// Whether it counts what clients ask for under TLS before there is a session.
    #[must_use]
    #[inline]
    pub fn hears_hellos(&self) -> bool {
        self.passages.is_some() || self.refuses_unknown
    }

    /// What becomes of a connection of `client` (`None`: on a unix socket) that asks for this name (in lower case, without a dot at the
    /// end; `None`: for none) and offers these protocols.
    #[must_use]
    pub fn find_hello(
        &self,
        name: Option<&str>,
        protocols: &[Box<[u8]>],
        client: Option<IpAddr>,
    ) -> HelloVerdict {
        let verdict = match &self.passages {
            Some(passages) => passages.find(name, protocols, client),
            None => HelloVerdict::Here,
        };
        let is_unknown = || self.hosts.as_ref().is_some_and(|hosts| !hosts.served().has(name));
        match verdict {
            HelloVerdict::Here if self.refuses_unknown && is_unknown() => HelloVerdict::Nowhere,
            verdict => verdict,
        }
    }

    /// What connections without requests count in before anything is known of them: its own limits where it is for bytes.
    #[must_use]
    #[inline]
    pub fn door_rates(&self) -> &RateChecks {
        &self.door_rates
    }

    /// Whether its clients begin with TLS.
    #[must_use]
    #[inline]
    pub fn is_secured(&self) -> bool {
        self.tls.is_some() || self.passages.is_some()
    }

    /// The targets that requests may go to, each once, copies aside.
    #[must_use]
    pub fn targets(&self) -> Vec<&Arc<Target>> {
        let mut seen = HashSet::new();
        let all = self.routes.iter().flat_map(|route| &route.destinations);
        all.map(|destination| &destination.target).filter(|target| seen.insert(target.id)).collect()
    }

    /// The certificates that its clients may see.
    #[must_use]
    pub fn certificates(&self) -> &[ServedCertificate] {
        self.hosts.as_ref().map_or(&[], |hosts| hosts.served().all())
    }

    /// Whether `peer` may speak for its clients. A v4 address mapped into v6 counts as v4.
    #[must_use]
    #[inline]
    pub fn trusts(&self, peer: IpAddr) -> bool {
        !self.trusted.is_empty() && self.looks_trusted(&peer)
    }

    /// Whether a request for `authority` has come over a connection that is not for it (RFC 9110 §15.5.20, RFC 9113 §9.1.2). `sni`: the
    /// name that the client has asked for when it made the connection; `None`: none.
    ///
    /// It is for the host that was asked for, and for each other one that would have been shown the very same certificates, unless
    /// another listener names that one more closely. A listener without TLS does not know, and says no. In the usual case, where
    /// the two are the same, nothing is allocated.
    #[must_use]
    #[inline]
    pub fn is_misdirected(&self, sni: Option<&str>, authority: &[u8]) -> bool {
        self.hosts.as_ref().is_some_and(|hosts| hosts.is_misdirected(sni, authority))
            || self.passages.as_ref().is_some_and(|passages| is_passed_through(passages, sni, authority))
    }

    /// Whether a connection that was made for this name, and on which this protocol was agreed on (ALPN), would be passed through
    /// undecrypted if it were made now: whatever comes over it is not for us any more.
    #[must_use]
    #[inline]
    pub fn would_pass_through(&self, sni: Option<&str>, agreed: Option<&str>) -> bool {
        self.passages.as_ref().is_some_and(|passages| surely_passes(passages, sni, agreed))
    }

    // Inlined into a caller it would take the address apart byte by byte there, also where nobody is trusted.
    #[inline(never)]
    fn looks_trusted(&self, peer: &IpAddr) -> bool {
        let peer = peer.to_canonical();
        self.trusted.iter().any(|network| network.contains(&peer))
    }

    /// Whether a client can't tell this one from `other` before it has sent something: connections may go on from one to
    /// the other.
    fn speaks_like(&self, other: &ListenerConfig) -> bool {
        self.config.protocol == other.protocol && self.is_secured() == other.is_secured()
    }
}

/// What all listeners of one config are made of.
pub(super) struct ListenerMakings<'m> {
    /// The targets of the config, by name.
    pub(super) targets: HashMap<&'m str, &'m Arc<Target>>,
    /// Who may speak for their clients.
    pub(super) trusted: Arc<[IpNet]>,
    /// Its rate limits.
    pub(super) rates: &'m NamedRates,
    /// How clients show who they are.
    pub(super) auth: AuthState<'m>,
    /// The keys of session tickets.
    pub(super) tickets: &'m Tickets,
    /// What is ordered of certificates.
    pub(super) live: &'m LiveCertificates,
    /// Numbers of listeners and of routes that nobody has.
    pub(super) numbers: [&'m Slots; 2],
    /// Which hosts its listeners name.
    pub(super) hosts: Option<&'m Arc<NamedHosts>>,
}

impl ListenerMakings<'_> {
    /// The listener of `config`; `before`: the one of its name under the config before. Where nothing differs it is that one.
    pub(super) fn listener(
        &self,
        config: &ListenerConfig,
        rules: &mut RuleStock,
        before: Option<&Arc<Listener>>,
    ) -> Arc<Listener> {
        let find = |name: &str| self.targets.get(name).copied().map(Arc::clone);
        let access = AddressRules::new(&config.access, rules);
        let [listener_numbers, route_numbers] = self.numbers;
        let before = before.filter(|before| before.speaks_like(config));
        let were = before.into_iter().flat_map(|before| &before.routes);
        let were: HashMap<&str, &Route> = were.map(|route| (&*route.config.name, route)).collect();
        let route = |route: &Arc<RouteConfig>| {
            let before = were.get(route.name.as_str()).copied();
            let numbers = RouteNumbers { free: route_numbers, before };
            Route::new(route, (config, numbers), (&mut *rules, self.rates, self.auth), find)
        };
        let routes: Vec<Route> = config.routes.iter().filter_map(route).collect();
        if let Some(before) = before
            && before.config == *config
            && before.trusted == self.trusted
            && before.hosts.as_ref().is_none_or(|hosts| hosts.is_among(self.named(config)))
            && before.routes.len() == routes.len()
            && before.routes.iter().zip(&routes).all(|(before, now)| before.is_like(now))
        {
            return Arc::clone(before);
        }
        let state = before.map_or_else(
            || Arc::new(ListenerState::new(listener_numbers.give())),
            |before| Arc::clone(&before.state),
        );
        let (tls, hosts) = self.sessions(config, before).unzip();
        let told: Vec<HeaderEdit> = config.told.iter().cloned().map(HeaderEdit::Remove).collect();
        Arc::new(Listener {
            // Past 65,535 listeners at a time the last number is shared.
            id: ListenerId(u16::try_from(state.slot().number()).unwrap_or(u16::MAX)),
            is_straight: matches!(&*routes, [only] if only.is_straight())
                && config.normalize == Normalize::default(),
            has_caches: routes.iter().any(|route| route.cache.is_some()),
            router: Router::new(&config.routes, config.default_host.as_deref()),
            passages: Passages::new(&config.routes),
            refuses_unknown: config.tls.as_ref().is_some_and(|tls| tls.unknown_sni == UnknownSni::Refuse),
            door_rates: match config.protocol {
                Protocol::Tcp | Protocol::Udp => {
                    RateChecks::new([&config.rate_limits, &[]], self.rates, [&config.name, "*"])
                }
                Protocol::Http => RateChecks::default(),
            },
            config: config.clone(),
            access,
            told: LineEdits::new(&told),
            tls,
            hosts,
            state,
            routes,
            trusted: Arc::clone(&self.trusted),
        })
    }

    /// What its TLS sessions are made with, and which hosts it is for: the same as before where nothing of that differs, with the
    /// sessions that are known.
    fn sessions(
        &self,
        config: &ListenerConfig,
        before: Option<&Arc<Listener>>,
    ) -> Option<(Arc<ServerConfig>, OwnHosts)> {
        let tls = config.tls.as_ref()?;
        let alpn = config.alpn();
        let same = before.filter(|before| before.config.tls == config.tls && before.config.alpn() == alpn);
        let same = same.and_then(|before| Some((Arc::clone(before.tls.as_ref()?), before.hosts.as_ref()?)));
        let (sessions, served) = match same {
            Some((sessions, hosts)) => (sessions, hosts.served().clone()),
            None => {
                let served = ServedNames::of(tls, self.live);
                (server_config(tls, &served, &alpn, self.tickets.of(tls)), served)
            }
        };
        Some((sessions, OwnHosts::new(config, served, self.named(config))))
    }

    /// Which hosts this one and others name, if it is one for which that counts.
    fn named(&self, config: &ListenerConfig) -> Option<&Arc<NamedHosts>> {
        self.hosts.filter(|_| config.protocol == Protocol::Http)
    }
}
