//! Health I/O: one task per backend that probes it, one that asks its agent, one per name that resolves it, one per target
//! that compares its backends.
//!
//! `server` calls [`start`] on the control runtime once per accepted config. What a row of probes amounts
//! to is decided in `target`; this folder opens sockets, asks the resolver and words the reasons.

mod agent;
mod check;
mod fault;
mod finding;
mod name;
mod probes;
mod question;
mod session;
mod subject;
mod sweep;
mod talk;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until, timeout_at};
use tokio_util::sync::CancellationToken;

use crate::config::model::HealthCheck;
use crate::lasting::again;
use crate::targets::state::health::schedule;
use crate::targets::{Backend, Health, Target};
use crate::tick::Tick;
use check::ProbeCheck;
pub use name::Resolver;
pub use probes::Probes;
use subject::ProbeSubject;

/// Starts probing and resolving the backends of `targets` with the system's resolver.
///
/// Must be called inside a tokio runtime with timers and I/O. Every first probe starts at once and no task
/// waits for another; a target with health checks off gets no probes, its names are still resolved and its backends
/// still compared. The tasks end when `cancel` is cancelled or the set is dropped; one that panics is begun again.
pub fn start<C>(targets: &[Arc<Target>], clock: C, cancel: &CancellationToken) -> JoinSet<()>
where
    C: Fn() -> Tick + Clone + Send + Sync + 'static,
{
    start_with(targets, &Resolver::System, clock, cancel)
}

/// [`start`] with a resolver of the caller's choice.
pub fn start_with<C>(
    targets: &[Arc<Target>],
    resolver: &Resolver,
    clock: C,
    cancel: &CancellationToken,
) -> JoinSet<()>
where
    C: Fn() -> Tick + Clone + Send + Sync + 'static,
{
    let mut tasks = JoinSet::new();
    let mut names: BTreeMap<&str, name::Follower<C>> = BTreeMap::new();
    for target in targets {
        let (swept, clock_of_it) = (Arc::clone(target), clock.clone());
        let sweep = async move || sweep::sweep(&swept, &clock_of_it).await;
        spawn(&mut tasks, cancel, again(format!("comparing the backends of {}", target.name), sweep));
        for backend in &target.backends {
            let subject = ProbeSubject {
                target: Arc::clone(target),
                backend: Arc::clone(backend),
                clock: clock.clone(),
            };
            let resolved = name::of(&backend.address).map(|host| {
                let follower = names.entry(host).or_insert_with(|| name::Follower::new(host, resolver));
                follower.add(subject.clone())
            });
            if let Some(health) = target.config.health.clone() {
                if let Some(port) = health.agent {
                    let agent = agent::AgentReader { port, timeout: health.timeout };
                    let (subject, resolved, interval) = (subject.clone(), resolved.clone(), health.interval);
                    let listening = async move || listen(&subject, &agent, interval, resolved.clone()).await;
                    spawn(
                        &mut tasks,
                        cancel,
                        again(format!("asking the agent of {}", backend.identity), listening),
                    );
                }
                let watching = async move || watch(&subject, &health, resolved.clone()).await;
                spawn(&mut tasks, cancel, again(format!("probing {}", backend.identity), watching));
            }
        }
    }
    for follower in names.into_values() {
        let what = format!("resolving {}", follower.host());
        spawn(&mut tasks, cancel, again(what, async move || follower.run().await));
    }
    tasks
}

fn spawn(
    tasks: &mut JoinSet<()>,
    cancel: &CancellationToken,
    work: impl Future<Output = ()> + Send + 'static,
) {
    let cancel = cancel.clone();
    tasks.spawn(async move {
        // None: it was cancelled, which is how all of them end.
        cancel.run_until_cancelled(work).await;
    });
}

/// Waits until a backend has an address. False: it never will.
async fn has_address(resolved: Option<watch::Receiver<bool>>) -> bool {
    let Some(mut resolved) = resolved else { return true };
    // An error: the name's task is gone, and with it the process's reason to probe.
    resolved.wait_for(|&resolved| resolved).await.is_ok()
}

/// Asks the agent of one backend for ever, as soon as the backend has an address. One that tells nothing changes
/// nothing: whether the backend can be reached is the probe's question.
async fn listen<C: Fn() -> Tick>(
    subject: &ProbeSubject<C>,
    agent: &agent::AgentReader,
    interval: Duration,
    resolved: Option<watch::Receiver<bool>>,
) {
    if !has_address(resolved).await {
        return;
    }
    let mut silent = false;
    loop {
        let started = Instant::now();
        let heard = agent.ask(&subject.backend.endpoints()).await;
        subject.hear(heard, &mut silent);
        sleep(schedule::wait(interval, started.elapsed(), false, rand::random())).await;
    }
}

/// Probes one backend for ever, as soon as it has an address.
async fn watch<C: Fn() -> Tick>(
    subject: &ProbeSubject<C>,
    health: &HealthCheck,
    resolved: Option<watch::Receiver<bool>>,
) {
    if !has_address(resolved).await {
        return;
    }
    let check = ProbeCheck::new(&subject.backend, health, &subject.target.config.host);
    let mut pace = Pace { backend: &subject.backend, health, asks: check.asks(), called: None };
    let mut starved = false;
    loop {
        let started = Instant::now();
        let finding = check.run(&subject.backend.endpoints()).await;
        subject.take(finding, &mut starved);
        pace.next(started.elapsed()).await;
    }
}

/// When one backend is probed.
struct Pace<'a> {
    backend: &'a Backend,
    health: &'a HealthCheck,
    /// Its probe is more than a connect.
    asks: bool,
    /// The start of the latest probe that failing requests have called for.
    called: Option<Instant>,
}

impl Pace<'_> {
    /// Waits until the next probe is due, after one that took `spent`. Live traffic stands for some while it is good, and
    /// calls for one when it fails.
    async fn next(&mut self, spent: Duration) {
        let (backend, health) = (self.backend, self.health);
        let ended = Instant::now();
        let mut put_off = 0;
        loop {
            let mark = backend.mark();
            let in_doubt = backend.in_doubt();
            let due = Instant::now() + schedule::wait(health.interval, spent, in_doubt, rand::random());
            if timeout_at(due, backend.troubled()).await.is_ok() {
                let since_call = self.called.map(|called| called.elapsed());
                let soon = Instant::now() + schedule::call(health.interval, ended.elapsed(), since_call);
                if soon < due {
                    sleep_until(soon).await;
                    self.called = Some(soon);
                } else {
                    sleep_until(due).await;
                }
                return;
            }
            let is_good = !in_doubt
                && backend.health() != Health::Down
                && backend.evidence(mark).is_good(health.timeout);
            if !schedule::stands_for(put_off, self.asks, is_good) {
                return;
            }
            put_off += 1;
        }
    }
}

#[cfg(test)]
mod tests;
