//! Health I/O: one task per backend that probes it, one that asks its agent, one per name that resolves it, one per target
//! that compares its backends.
//!
//! [`Probes`] follow the config in force on the control runtime. What a row of probes amounts to is decided in `targets`; this
//! folder opens sockets, asks the resolver and words the reasons.

mod agent;
mod call;
mod check;
mod datagrams;
pub mod desk;
mod exchange;
mod fault;
mod finding;
mod name;
mod probes;
mod question;
mod rules;
mod session;
mod subject;
mod sweep;
mod talk;

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until, timeout_at};

use crate::config::model::HealthCheck;
use crate::targets::state::health::schedule;
use crate::targets::{Backend, Health, Verdict};
use crate::tick::Tick;
use check::ProbeCheck;
use desk::{ProbeDesk, ProbeDuty};
use finding::Finding;
pub use name::Resolver;
pub use probes::Probes;
use rules::ProbeRules;
use subject::ProbeSubject;
pub use sweep::Departures;

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

/// How long one that rests waits for the first word of the others before it looks for itself.
const PATIENCE: Duration = Duration::from_millis(300);

/// Probes one backend for ever, as soon as it has an address, or leaves that to others.
async fn watch<C: Fn() -> Tick>(
    subject: &ProbeSubject<C>,
    rules: &ProbeRules,
    resolved: Option<watch::Receiver<bool>>,
    desk: &ProbeDesk,
) {
    if !has_address(resolved).await {
        return;
    }
    let check = ProbeCheck::new(&subject.backend, rules);
    let mut pace =
        Pace { backend: &subject.backend, health: &rules.health, asks: check.asks(), called: None };
    let (mut starved, mut line) = (false, desk.line(&subject.backend.identity));
    // It rests, and has a view of its own; and before when failing requests do not make it look for one.
    let (mut is_contrary, mut quiet) = (false, Instant::now());
    loop {
        let order = line.now();
        if order.duty == ProbeDuty::Rest && !is_contrary {
            desk.forget(&subject.backend.identity);
            if let Some(word) = &order.word {
                subject.settle(word);
            }
            tokio::select! {
                () = line.other(&order) => {}
                () = trouble(&subject.backend, quiet) => is_contrary = true,
                () = sleep(PATIENCE), if order.word.is_none() => is_contrary = true,
            }
            continue;
        }
        let started = Instant::now();
        if order.duty == ProbeDuty::Rest {
            // What has failed up to now is looked into now.
            let _ = subject.backend.mark();
        }
        let finding = check.run(&subject.backend.endpoints()).await;
        let is_good = finding == Finding::Verdict(Verdict::Good);
        subject.take(finding, started.elapsed(), &mut starved);
        if order.duty == ProbeDuty::Rest {
            // It thinks as the others do again, or there is nobody yet who thinks something.
            is_contrary = !is_good || order.word.is_none();
            quiet = Instant::now() + rules.health.interval;
        } else {
            is_contrary = false;
            desk.tell(&subject.state, &subject.backend);
        }
        if order.duty != ProbeDuty::Rest || is_contrary {
            tokio::select! {
                () = pace.next(started.elapsed()) => {}
                // Who had no word to go by has one now.
                () = line.other(&order) => is_contrary &= order.word.is_some(),
            }
        }
    }
}

/// Waits until requests fail on a backend, from `quiet` on.
async fn trouble(backend: &Backend, quiet: Instant) {
    sleep_until(quiet).await;
    backend.troubled().await;
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
