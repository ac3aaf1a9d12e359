//! The probes of the config in force: what does not differ keeps its schedule over a reload.
//!
//! Every first probe starts at once and no task waits for another. A target with health checks off gets no probes; its names
//! are still resolved and its backends still compared. Tasks that panic are begun again. Invariants:
//!
//! 1. A task holds what lives on over configs (a backend, the state of a target), and of a config only its own rules. So no
//!    config lives on because of a probe.
//! 2. A backend is probed by one task at a time, by the rules in force; one whose rules stay is not disturbed, whatever else
//!    changes in its target.
//! 3. A name is looked up by one task, whoever is written with it.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinSet};
use tokio_util::sync::CancellationToken;

use super::agent::AgentReader;
use super::desk::ProbeDesk;
use super::name::{self, Follower, Following, Resolver};
use super::rules::ProbeRules;
use super::subject::ProbeSubject;
use super::sweep::Departures;
use super::{listen, sweep, watch as probe};
use crate::lasting::again;
use crate::message::BackendId;
use crate::targets::{Backend, Target};
use crate::tick::Tick;

/// A task that ends when this is dropped.
struct Task(AbortHandle);

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// What runs for one target.
struct OfTarget<C: Fn() -> Tick> {
    target: Arc<Target>,
    /// By which its comparison gets to know the config in force.
    newest: watch::Sender<Arc<Target>>,
    _comparing: Task,
    backends: HashMap<BackendId, OfBackend<C>>,
}

/// What runs for one backend.
struct OfBackend<C: Fn() -> Tick> {
    backend: Arc<Backend>,
    /// `None`: it is not probed.
    rules: Option<ProbeRules>,
    following: Option<Following<C>>,
    _tasks: Vec<Task>,
}

/// What runs for one name.
struct OfName<C> {
    follower: Arc<Follower<C>>,
    _resolving: Task,
}

/// The tasks of all targets.
struct Tasks {
    set: JoinSet<()>,
    cancel: CancellationToken,
}

impl Tasks {
    fn spawn(&mut self, work: impl Future<Output = ()> + Send + 'static) -> Task {
        let cancel = self.cancel.clone();
        Task(self.set.spawn(async move {
            // None: it was cancelled, which is how all of them end.
            cancel.run_until_cancelled(work).await;
        }))
    }
}

/// The probes, lookups and comparisons of all targets in force.
pub struct Probes<C: Fn() -> Tick> {
    resolver: Resolver,
    clock: C,
    departures: Departures,
    desk: Arc<ProbeDesk>,
    tasks: Tasks,
    targets: HashMap<Arc<str>, OfTarget<C>>,
    names: HashMap<String, OfName<C>>,
}

impl<C: Fn() -> Tick + Clone + Send + Sync + 'static> Probes<C> {
    /// None yet. They end when `cancel` is cancelled or this is dropped. Backends that leave without another config are told to
    /// `departures`; who probes which backend stands in `desk`.
    #[must_use]
    pub fn new(
        resolver: Resolver,
        clock: C,
        departures: Departures,
        desk: Arc<ProbeDesk>,
        cancel: &CancellationToken,
    ) -> Probes<C> {
        let tasks = Tasks { set: JoinSet::new(), cancel: cancel.clone() };
        Probes { resolver, clock, departures, desk, tasks, targets: HashMap::new(), names: HashMap::new() }
    }

    /// Follows `targets` and no others. Must be called inside a tokio runtime with timers and I/O.
    pub fn follow(&mut self, targets: &[Arc<Target>]) {
        // Those that have ended.
        while self.tasks.set.try_join_next().is_some() {}
        let wanted: HashSet<&str> = targets.iter().map(|target| &*target.name).collect();
        self.targets.retain(|name, _| wanted.contains(&**name));
        for target in targets {
            let of = match self.targets.remove(&target.name) {
                Some(of) if Arc::ptr_eq(&of.target, target) => of,
                Some(of) if Arc::ptr_eq(&of.target.state, &target.state) => self.go_on(of, target),
                Some(_) | None => {
                    let of = self.begin(target);
                    self.go_on(of, target)
                }
            };
            self.targets.insert(Arc::clone(&target.name), of);
        }
        self.names.retain(|_, name| name.follower.is_followed());
    }

    /// Begins to compare the backends of a target.
    fn begin(&mut self, target: &Arc<Target>) -> OfTarget<C> {
        let (newest, receiver) = watch::channel(Arc::clone(target));
        let (clock, departures) = (self.clock.clone(), self.departures.clone());
        let comparing = async move || sweep::sweep(&mut receiver.clone(), &clock, &departures).await;
        let comparing =
            self.tasks.spawn(again(format!("comparing the backends of {}", target.name), comparing));
        OfTarget { target: Arc::clone(target), newest, _comparing: comparing, backends: HashMap::new() }
    }

    /// Goes on with a target as another config has it.
    fn go_on(&mut self, mut of: OfTarget<C>, target: &Arc<Target>) -> OfTarget<C> {
        of.target = Arc::clone(target);
        of.newest.send_replace(Arc::clone(target));
        let mut before = std::mem::take(&mut of.backends);
        for (backend, config) in target.backends.iter().zip(&target.config.backends) {
            let known = before.remove(&backend.id).filter(|known| Arc::ptr_eq(&known.backend, backend));
            let rules = target.config.health.as_ref().map(|health| ProbeRules {
                check: backend.check(),
                health: health.clone(),
                path: config.probe_path.clone(),
                protocol: target.config.protocol,
                upstream: target.config.upstream,
                send_proxy: target.config.send_proxy,
                host: target.config.host.clone(),
            });
            let now = match known {
                Some(known) if known.rules == rules => known,
                known => self.attend(target, backend, rules, known.and_then(|known| known.following)),
            };
            of.backends.insert(backend.id, now);
        }
        of
    }

    /// Begins to probe a backend by these rules. `following`: its name, if that is followed already.
    fn attend(
        &mut self,
        target: &Target,
        backend: &Arc<Backend>,
        rules: Option<ProbeRules>,
        following: Option<Following<C>>,
    ) -> OfBackend<C> {
        let subject = ProbeSubject {
            target: Arc::clone(&target.name),
            state: Arc::clone(&target.state),
            backend: Arc::clone(backend),
            check: backend.check(),
            clock: self.clock.clone(),
        };
        let following = following.or_else(|| {
            let host = name::of(&backend.address)?;
            Some(self.name(host).follow(subject.clone()))
        });
        let resolved = || following.as_ref().map(Following::resolved);
        let mut tasks = Vec::new();
        if let Some(rules) = rules.clone() {
            if let Some(port) = rules.health.agent {
                let dialing = Arc::clone(&backend.dialing);
                let agent = AgentReader { port, timeout: rules.health.timeout, dialing };
                let (subject, resolved, interval) = (subject.clone(), resolved(), rules.health.interval);
                let listening = async move || listen(&subject, &agent, interval, resolved.clone()).await;
                let what = format!("asking the agent of {}", backend.identity);
                tasks.push(self.tasks.spawn(again(what, listening)));
            }
            let resolved = resolved();
            let desk = Arc::clone(&self.desk);
            let probing = async move || probe(&subject, &rules, resolved.clone(), &desk).await;
            tasks.push(self.tasks.spawn(again(format!("probing {}", backend.identity), probing)));
        }
        OfBackend { backend: Arc::clone(backend), rules, following, _tasks: tasks }
    }

    /// Who looks this name up.
    fn name(&mut self, host: &str) -> Arc<Follower<C>> {
        if let Some(known) = self.names.get(host) {
            return Arc::clone(&known.follower);
        }
        let follower = Arc::new(Follower::new(host, &self.resolver));
        let looking = Arc::clone(&follower);
        let resolving =
            self.tasks.spawn(again(format!("resolving {host}"), async move || looking.run().await));
        let known = OfName { follower: Arc::clone(&follower), _resolving: resolving };
        self.names.insert(host.to_owned(), known);
        follower
    }

    /// What runs at this moment.
    #[cfg(test)]
    pub(super) fn tasks(&mut self) -> &mut JoinSet<()> {
        &mut self.tasks.set
    }
}
