//! Everything derived from one accepted config, immutable and shared by all workers.
//!
//! Live state (health, cursors, counters) is not in here: it sits on the objects in the registry, which a
//! snapshot only points at. [`Snapshots`] makes one config follow the other: what does not differ stays the same object.

mod connections;
mod given;
mod hosts;
mod known_keys;
mod leaving;
mod listener;
mod observers;
mod orders;
mod rates;
mod route;
mod token_keys;

use std::collections::{HashMap, HashSet};
use std::hash::Hash;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use crate::access::RuleStock;
use crate::access::passwords::Passwords;
use crate::cache::QueryRule;
use crate::cache::store::CacheStore;
use crate::config::model;
use crate::config::model::cache::CacheStoreConfig;
use crate::message::{BackendId, ListenerId, TargetId};
use crate::net::now;
use crate::slots::Slots;
use crate::targets::{Backend, Gone, Prepared, Registry, Target};
use crate::telemetry::access_log::Names;
use crate::telemetry::recorder::FlightRecorder;
use crate::telemetry::statsd::TimingPen;
use crate::telemetry::traces::Tracer;
use crate::tls::{LiveCertificates, Proofs, Tickets};
use hosts::NamedHosts;
use leaving::LeavingBackends;
use listener::ListenerMakings;
use rates::RateStock;

pub use connections::{ConnectionLimits, CountedConnection, ListenerCounts, ListenerState, owner};
pub use given::Given;
pub use known_keys::KnownKeys;
pub use listener::Listener;
pub use observers::Observers;
pub use orders::{WantedCertificate, WantedCertificates};
pub use rates::{NamedRates, RateCheck, RateChecks, RateSet, RateState, ToldRates};
pub use route::{
    AuthState, Destination, RequestRules, Route, RouteAuth, RouteCache, RouteNumbers, RouteState,
};
pub use token_keys::{FetchedKeys, TokenKeys, ToldKeys};

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
    /// Proofs that names are ours, under every config.
    pub proofs: Arc<Proofs>,
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
    /// Which hosts its listeners name.
    hosts: Option<Arc<NamedHosts>>,
}

/// The rules about queries that routes have for their caches, each once.
fn cache_queries(listeners: &[Arc<Listener>]) -> Vec<QueryRule> {
    let mut all = Vec::new();
    let caches =
        listeners.iter().flat_map(|listener| listener.routes()).filter_map(|route| route.cache.as_ref());
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
    live: Arc<LiveCertificates>,
    proofs: Arc<Proofs>,
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
            live: Arc::default(),
            proofs: Arc::default(),
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

    /// The same, whose rate limits go on from what another process has told. What is missing in their buckets is [taken over](NamedRates::take_over) once
    /// there are any.
    #[must_use]
    pub fn with_rates(mut self, told: &ToldRates) -> Snapshots {
        self.rates.hash_as(told);
        self
    }

    /// The keys of session tickets, which outlive configs.
    #[must_use]
    pub fn tickets(&self) -> &Arc<Tickets> {
        &self.tickets
    }

    /// What is ordered of certificates, under every config.
    #[must_use]
    pub fn live_certificates(&self) -> &Arc<LiveCertificates> {
        &self.live
    }

    /// Proofs that names are ours, under every config.
    #[must_use]
    pub fn proofs(&self) -> &Arc<Proofs> {
        &self.proofs
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
        let mut rules = RuleStock::after(before.map(|before| &before.rules));
        let rates = self.rates.limits(config, before.map(|before| &before.rates));
        let token_keys = TokenKeys::new(config, before.map(|before| &before.token_keys));
        let hosts = NamedHosts::of(config, before.and_then(|before| before.hosts.as_ref()));
        let makings = ListenerMakings {
            targets: targets.iter().map(|target| (&*target.name, target)).collect(),
            trusted: config.trusted_proxies.as_slice().into(),
            rates: &rates,
            auth: AuthState { passwords: &self.passwords, keys: &token_keys },
            tickets: &self.tickets,
            live: &self.live,
            numbers: [&self.listener_numbers, &self.route_numbers],
            hosts: hosts.as_ref(),
        };
        let listener = |config: &model::ListenerConfig| {
            let before = before.and_then(|before| before.listener_named(&config.name));
            makings.listener(config, &mut rules, before)
        };
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
            proofs: Arc::clone(&self.proofs),
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
            hosts,
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
            listener.state.begin(now);
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
}

fn given(before: Option<&Snapshot>, listeners: &[Arc<Listener>], targets: &[Arc<Target>]) -> Given {
    let (old_listeners, old_targets) =
        before.map_or((&[][..], &[][..]), |before| (&before.listeners[..], &before.targets[..]));
    Given {
        listeners: strangers(old_listeners, listeners, |of| [(Arc::as_ptr(&of.state), of.id)]),
        routes: strangers(old_listeners, listeners, |of| {
            let of = of.routes().iter().flat_map(|route| route.states().zip(route.ids()));
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
