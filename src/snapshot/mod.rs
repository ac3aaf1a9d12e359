//! Everything derived from one accepted config, immutable and shared by all workers.
//!
//! Live state (health, cursors, counters) is not in here: it sits on the objects in the registry, which a
//! snapshot only points at. [`Snapshots`] makes one config follow the other: what does not differ stays the same object.

mod connections;
mod given;
mod known_keys;
mod leaving;
mod observers;
mod rates;
mod route;
mod token_keys;

use std::collections::{HashMap, HashSet};
use std::hash::Hash;
use std::hash::{BuildHasher as _, RandomState};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use ipnet::IpNet;
use rustls::ServerConfig;

use crate::access::passwords::Passwords;
use crate::access::{AddressRules, RuleStock};
use crate::cache::QueryRule;
use crate::cache::store::CacheStore;
use crate::config::model::cache::CacheStoreConfig;
use crate::config::model::route::HeaderEdit;
use crate::config::model::{self, Normalize, RouteConfig};
use crate::message::{BackendId, ListenerId, TargetId};
use crate::net::now;
use crate::route::{LineEdits, Router};
use crate::slots::{HeldSlot, Slots};
use crate::targets::{Backend, Gone, Prepared, Registry, Target};
use crate::telemetry::access_log::Names;
use crate::telemetry::recorder::FlightRecorder;
use crate::telemetry::statsd::TimingPen;
use crate::telemetry::traces::Tracer;
use crate::tick::Tick;
use crate::tls::{Tickets, server_config};
use leaving::LeavingBackends;
use rates::RateStock;

pub use connections::{ConnectionLimits, CountedConnection, ListenerCounts};
pub use given::Given;
pub use known_keys::KnownKeys;
pub use observers::Observers;
pub use rates::{NamedRates, RateCheck, RateChecks, RateSet, RateState};
pub use route::{
    AuthState, Destination, RequestRules, Route, RouteAuth, RouteCache, RouteNumbers, RouteState,
};
pub use token_keys::{FetchedKeys, TokenKeys};

/// One listener under one config, ready for use. A connection holds it, and with it all that it may come to: a request
/// that has taken it sees one config to its end.
#[derive(Debug)]
pub struct Listener {
    /// Its number, which it has under every config.
    pub id: ListenerId,
    /// Its policies.
    pub config: model::ListenerConfig,
    /// Whose clients may come in at all.
    pub access: AddressRules,
    /// Which lines of clients go before anything is decided: those by which backends are told who a client is.
    pub told: LineEdits,
    /// What TLS sessions of its clients are made with; `None`: plain.
    pub tls: Option<Arc<ServerConfig>>,
    /// What outlives this config.
    pub state: Arc<ListenerState>,
    router: Router,
    /// In the order of the file.
    routes: Vec<Route>,
    /// The only route takes every request as it comes.
    is_straight: bool,
    has_caches: bool,
    trusted: Arc<[IpNet]>,
}

/// What a listener is under every config.
#[derive(Debug, Default)]
pub struct ListenerState {
    /// Its connections.
    pub counts: ListenerCounts,
    /// Since when it is in force; empty: not yet.
    since: OnceLock<Tick>,
    slot: HeldSlot,
}

impl ListenerState {
    /// Since when it is in force; zero: not yet.
    #[must_use]
    pub fn since(&self) -> Tick {
        self.since.get().copied().unwrap_or_default()
    }
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

    /// Where connections go that have no requests; `None`: nowhere, which no accepted config says.
    #[must_use]
    #[inline]
    pub fn target(&self) -> Option<&Arc<Target>> {
        self.routes.first()?.destinations.first().map(|destination| &destination.target)
    }

    /// The targets that requests may go to, each once, copies aside.
    #[must_use]
    pub fn targets(&self) -> Vec<&Arc<Target>> {
        let mut seen = HashSet::new();
        let all = self.routes.iter().flat_map(|route| &route.destinations);
        all.map(|destination| &destination.target).filter(|target| seen.insert(target.id)).collect()
    }

    /// Whether `peer` may speak for its clients. A v4 address mapped into v6 counts as v4.
    #[must_use]
    #[inline]
    pub fn trusts(&self, peer: IpAddr) -> bool {
        !self.trusted.is_empty() && self.looks_trusted(&peer)
    }

    // Inlined into a caller it would take the address apart byte by byte there, also where nobody is trusted.
    #[inline(never)]
    fn looks_trusted(&self, peer: &IpAddr) -> bool {
        let peer = peer.to_canonical();
        self.trusted.iter().any(|network| network.contains(&peer))
    }

    /// Whether a client can't tell this one from `other` before it has sent something: connections may go on from one to
    /// the other.
    fn speaks_like(&self, other: &model::ListenerConfig) -> bool {
        self.config.protocol == other.protocol && self.tls.is_some() == other.tls.is_some()
    }
}

/// Everything derived from one config.
#[derive(Debug)]
pub struct Snapshot {
    /// The how manieth of this process, from 1.
    pub number: u64,
    /// In config order.
    pub listeners: Vec<Arc<Listener>>,
    /// In config order.
    pub targets: Vec<Arc<Target>>,
    /// What the access log calls things: also those that are gone, until somebody else has their number.
    pub names: Names,
    /// Who was not there under the config before and may have a number that was somebody's.
    pub given: Given,
    by_name: HashMap<String, usize>,
    /// Its rate limits.
    pub rates: NamedRates,
    /// The keys of tokens that it fetches.
    pub token_keys: TokenKeys,
    /// What is stored of answers, under every config.
    pub store: Arc<CacheStore>,
    /// The rules about queries that its routes have for their caches, each once.
    pub cache_queries: Vec<QueryRule>,
    cache_store: CacheStoreConfig,
    /// Where workers keep requests that are over, each at its place; empty: nothing is kept.
    pub recorders: Vec<FlightRecorder>,
    /// What workers trace; `None`: nothing.
    pub tracer: Option<Tracer>,
    /// Whose times they hand in; `None`: nobody's.
    pub timings: Option<TimingPen>,
    /// Its access lists, ready to be asked.
    rules: RuleStock,
}

/// The rules about queries that routes have for their caches, each once.
fn cache_queries(listeners: &[Arc<Listener>]) -> Vec<QueryRule> {
    let mut all = Vec::new();
    let caches =
        listeners.iter().flat_map(|listener| &listener.routes).filter_map(|route| route.cache.as_ref());
    for cache in caches {
        if !all.contains(&cache.key_rules.query) {
            all.push(cache.key_rules.query.clone());
        }
    }
    all
}

/// A config that could be in force. Dropping it changes nothing.
#[derive(Debug)]
pub struct Draft {
    snapshot: Arc<Snapshot>,
    prepared: Prepared,
}

impl Draft {
    /// What would be in force.
    #[must_use]
    pub fn snapshot(&self) -> &Arc<Snapshot> {
        &self.snapshot
    }
}

/// One config after the other.
#[derive(Debug)]
pub struct Snapshots {
    store: Arc<CacheStore>,
    registry: Registry,
    tickets: Arc<Tickets>,
    passwords: Arc<Passwords>,
    listener_numbers: Slots,
    route_numbers: Slots,
    rates: RateStock,
    observers: Observers,
    current: Mutex<Option<Arc<Snapshot>>>,
    made: Mutex<Vec<Weak<Snapshot>>>,
    leaving: LeavingBackends,
}

impl Default for Snapshots {
    fn default() -> Snapshots {
        Snapshots {
            store: Arc::new(CacheStore::new(RandomState::new().hash_one("cache"))),
            registry: Registry::default(),
            tickets: Arc::default(),
            passwords: Arc::default(),
            listener_numbers: Slots::default(),
            route_numbers: Slots::default(),
            rates: RateStock::default(),
            observers: Observers::default(),
            current: Mutex::default(),
            made: Mutex::default(),
            leaving: LeavingBackends::default(),
        }
    }
}

impl Snapshots {
    /// None yet.
    #[must_use]
    pub fn new() -> Snapshots {
        Snapshots::default()
    }

    /// The keys of session tickets, which outlive configs.
    #[must_use]
    pub fn tickets(&self) -> &Arc<Tickets> {
        &self.tickets
    }

    /// What looks on, under every config.
    #[must_use]
    pub fn observers(&self) -> &Observers {
        &self.observers
    }

    /// The one in force.
    #[must_use]
    pub fn current(&self) -> Option<Arc<Snapshot>> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// How many there are that somebody still uses.
    #[must_use]
    pub fn alive(&self) -> usize {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        made.retain(|one| one.strong_count() > 0);
        made.len()
    }

    /// What `config` would be. Nobody sees anything of it before it is committed.
    #[must_use]
    pub fn prepare(&self, config: &model::Config) -> Draft {
        let before = self.current();
        let before = before.as_deref();
        let prepared = self.registry.prepare(&config.targets);
        let targets = prepared.targets.clone();
        let trusted: Arc<[IpNet]> = config.trusted_proxies.as_slice().into();
        let named: HashMap<&str, &Arc<Target>> =
            targets.iter().map(|target| (&*target.name, target)).collect();
        let mut rules = RuleStock::after(before.map(|before| &before.rules));
        let rates = self.rates.limits(config, before.map(|before| &before.rates));
        let token_keys = TokenKeys::new(config, before.map(|before| &before.token_keys));
        let auth = AuthState { passwords: &self.passwords, keys: &token_keys };
        let listener = |config| self.listener(config, &named, &trusted, (&mut rules, &rates, auth), before);
        let listeners: Vec<Arc<Listener>> = config.listeners.iter().map(listener).collect();
        let rules = rules.settled();
        let mut names = before.map(|before| before.names.clone()).unwrap_or_default();
        let mut given = given(before, &listeners, &targets);
        given.rate_limits = rates.given(before.map(|before| &before.rates));
        let is_new: HashSet<ListenerId> = given.listeners.iter().copied().collect();
        for listener in listeners.iter().filter(|listener| is_new.contains(&listener.id)) {
            names.name_listener(listener.id, &listener.config.name);
        }
        let (new_targets, is_new): (HashSet<TargetId>, HashSet<BackendId>) =
            (given.targets.iter().copied().collect(), given.backends.iter().copied().collect());
        for target in &targets {
            if new_targets.contains(&target.id) {
                names.name_target(target.id, &target.name);
            }
            for backend in target.backends.iter().filter(|backend| is_new.contains(&backend.id)) {
                names.name_backend(backend.id, &backend.name);
            }
        }
        let number = before.map_or(1, |before| before.number + 1);
        let by_name =
            listeners.iter().zip(0..).map(|(listener, place)| (listener.config.name.clone(), place));
        let by_name = by_name.collect();
        let snapshot = Snapshot {
            number,
            store: Arc::clone(&self.store),
            cache_queries: cache_queries(&listeners),
            cache_store: config.cache_store,
            recorders: self.observers.recorders(config, before),
            tracer: self.observers.tracer(config),
            timings: self.observers.timings(config),
            listeners,
            targets,
            names,
            given,
            by_name,
            rates,
            token_keys,
            rules,
        };
        Draft { snapshot: Arc::new(snapshot), prepared }
    }

    /// Makes `draft` the one in force, for whoever asks from now on. The targets that it has changed are changed at once, for
    /// everybody.
    pub fn commit(&self, draft: Draft) -> (Arc<Snapshot>, Gone) {
        let Draft { snapshot, prepared } = draft;
        let now = now();
        let before = self.current();
        let gone = self.registry.commit(&prepared, now);
        self.leaving.see_off(before.as_deref().map_or(&[], |before| &before.targets), &snapshot.targets);
        snapshot.rates.set_paces(now);
        if snapshot.listeners.iter().any(|listener| listener.has_caches()) {
            self.store.resize(snapshot.cache_store.memory, snapshot.cache_store.object);
        }
        for listener in &snapshot.listeners {
            listener.state.since.get_or_init(|| now);
            listener.state.counts.limit(&listener.config.limits);
        }
        self.made.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::downgrade(&snapshot));
        *self.current.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&snapshot));
        (snapshot, gone)
    }

    /// Backends that no config has any more and that somebody still uses, each with its target.
    #[must_use]
    pub fn leaving(&self) -> Vec<(TargetId, Arc<Backend>)> {
        self.leaving.all()
    }

    fn listener(
        &self,
        config: &model::ListenerConfig,
        targets: &HashMap<&str, &Arc<Target>>,
        trusted: &Arc<[IpNet]>,
        (rules, rates, auth): (&mut RuleStock, &NamedRates, AuthState<'_>),
        before: Option<&Snapshot>,
    ) -> Arc<Listener> {
        let find = |name: &str| targets.get(name).copied().map(Arc::clone);
        let access = AddressRules::new(&config.access, rules);
        let before = before.and_then(|before| before.listener_named(&config.name));
        let before = before.filter(|before| before.speaks_like(config));
        let were = before.into_iter().flat_map(|before| &before.routes);
        let were: HashMap<&str, &Route> = were.map(|route| (&*route.config.name, route)).collect();
        let route = |route: &Arc<RouteConfig>| {
            let before = were.get(route.name.as_str()).copied();
            let numbers = RouteNumbers { free: &self.route_numbers, before };
            Route::new(route, (config, numbers), (&mut *rules, rates, auth), find)
        };
        let routes: Vec<Route> = config.routes.iter().filter_map(route).collect();
        if let Some(before) = before
            && before.config == *config
            && before.trusted == *trusted
            && before.routes.len() == routes.len()
            && before.routes.iter().zip(&routes).all(|(before, now)| before.is_like(now))
        {
            return Arc::clone(before);
        }
        let state = before.map_or_else(
            || Arc::new(ListenerState { slot: self.listener_numbers.give(), ..ListenerState::default() }),
            |before| Arc::clone(&before.state),
        );
        let tls = config.tls.as_ref().map(|tls| {
            let same = before.filter(|before| before.config.tls == config.tls);
            let same = same.and_then(|before| before.tls.clone());
            same.unwrap_or_else(|| server_config(tls, config.protocol, self.tickets.of(tls)))
        });
        let told: Vec<HeaderEdit> = config.told.iter().cloned().map(HeaderEdit::Remove).collect();
        Arc::new(Listener {
            // Past 65,535 listeners at a time the last number is shared.
            id: ListenerId(u16::try_from(state.slot.number()).unwrap_or(u16::MAX)),
            is_straight: matches!(&*routes, [only] if only.is_straight())
                && config.normalize == Normalize::default(),
            has_caches: routes.iter().any(|route| route.cache.is_some()),
            router: Router::new(&config.routes, config.default_host.as_deref()),
            config: config.clone(),
            access,
            told: LineEdits::new(&told),
            tls,
            state,
            routes,
            trusted: Arc::clone(trusted),
        })
    }
}

fn given(before: Option<&Snapshot>, listeners: &[Arc<Listener>], targets: &[Arc<Target>]) -> Given {
    let (old_listeners, old_targets) =
        before.map_or((&[][..], &[][..]), |before| (&before.listeners[..], &before.targets[..]));
    Given {
        listeners: strangers(old_listeners, listeners, |of| [(Arc::as_ptr(&of.state), of.id)]),
        routes: strangers(old_listeners, listeners, |of| {
            let of = of.routes.iter().flat_map(|route| route.states().zip(route.ids()));
            of.map(|(state, id)| (Arc::as_ptr(state), id)).collect::<Vec<_>>()
        }),
        targets: strangers(old_targets, targets, |of| [(Arc::as_ptr(&of.state), of.id)]),
        backends: strangers(old_targets, targets, |of| {
            of.backends.iter().map(|backend| (Arc::as_ptr(backend), backend.id)).collect::<Vec<_>>()
        }),
        rate_limits: Vec::new(),
    }
}

/// The numbers of those that `all` have and `before` had not. `of`: who they are, and their numbers.
fn strangers<T, K: Eq + Hash, Id, I: IntoIterator<Item = (K, Id)>>(
    before: &[Arc<T>],
    all: &[Arc<T>],
    of: impl Fn(&T) -> I,
) -> Vec<Id> {
    let known: HashSet<K> = before.iter().flat_map(|one| of(one)).map(|(who, _)| who).collect();
    all.iter().flat_map(|one| of(one)).filter(|(who, _)| !known.contains(who)).map(|(_, id)| id).collect()
}

impl Snapshot {
    /// The snapshot of `config` alone, as if there had been none before and none came after.
    #[must_use]
    pub fn of(config: &model::Config) -> Arc<Snapshot> {
        let snapshots = Snapshots::new();
        snapshots.commit(snapshots.prepare(config)).0
    }

    /// The listeners that are new or not what they were under the config `before`, and those of that config that are gone.
    #[must_use]
    pub fn turnover(&self, before: Option<&Snapshot>) -> (Vec<Arc<Listener>>, Vec<Arc<Listener>>) {
        let was = |name: &str| before.and_then(|before| before.listener_named(name));
        let stays = |now: &&Arc<Listener>| was(&now.config.name).is_some_and(|was| Arc::ptr_eq(was, now));
        let these = self.listeners.iter().filter(|now| !stays(now)).map(Arc::clone).collect();
        let goes_on = |was: &&Arc<Listener>| {
            self.listener_named(&was.config.name).is_some_and(|now| Arc::ptr_eq(&now.state, &was.state))
        };
        let all = before.into_iter().flat_map(|before| &before.listeners);
        (these, all.filter(|was| !goes_on(was)).map(Arc::clone).collect())
    }

    /// The listener of this name.
    #[must_use]
    pub fn listener_named(&self, name: &str) -> Option<&Arc<Listener>> {
        self.listeners.get(*self.by_name.get(name)?)
    }
}
