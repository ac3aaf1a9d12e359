//! The sweep: takes the attempt counts of a target's backends once a second, and leaves the outliers among them out.
//!
//! Control calls it, the simulation calls it with its own time. What was counted stands in the target's
//! [`Window`](crate::targets::resilience::window::Window); who is an outlier is decided in [`crate::targets::resilience::outlier`].

use std::sync::{Arc, PoisonError};

use crate::config::model::Balance;
use crate::events;
use crate::message::BackendId;
use crate::targets::resilience::ejection::EjectionKind;
use crate::targets::resilience::outlier::{Outlying, Subject, Timed, judge, room};
use crate::targets::resilience::reports;
use crate::targets::resilience::trial::is_free_for_trial;
use crate::targets::{Backend, Target};
use crate::tick::Tick;

/// Windows for which the latency of a backend that came back, or was added, is not held against it: what is cold is slow.
const GRACE: u32 = 2;

/// A backend that was left out by a sweep.
#[derive(Clone, Debug)]
pub struct Ejected {
    /// Which one.
    pub backend: Arc<Backend>,
    /// Why, as a short text for people.
    pub reason: Arc<str>,
}

impl Target {
    /// Compares the live backends by what their attempts came to and leaves those out that do worse than their siblings,
    /// steps the limit of an adaptive target, then settles what follows from who is out. To be called each [`SWEEP`](crate::targets::SWEEP).
    pub fn sweep(&self, now: Tick) -> Vec<Ejected> {
        let ejected = self.compare(now, |backend, kind, reason, has_room| {
            reports::eject(backend, kind, reason, has_room, now)
        });
        if let Some(limit) = self.state.adapt() {
            events::limit_met(&self.name, limit);
        }
        self.settle(now);
        if self.is_in_doubt() {
            self.state.board.turned.notify_one();
        }
        ejected
    }

    /// Names the outliers among the live backends to `eject`, worst first, with whether one more may be left out; it says
    /// whether one was. Where no more may, one that fails can still take the place of one that is only slow.
    fn compare(
        &self,
        now: Tick,
        mut eject: impl FnMut(&Arc<Backend>, EjectionKind, &Arc<str>, bool) -> bool,
    ) -> Vec<Ejected> {
        let Some(rules) = &self.config.resilience.outlier else { return Vec::new() };
        let mut window = self.state.window.lock().unwrap_or_else(PoisonError::into_inner);
        let turns = window.turns(rules.window);
        let is_first = window.last == Tick::ZERO;
        let live = self.state.live.load();
        let (mut all, mut out, mut has_slow) = (0, 0, false);
        for backend in live.backends() {
            let until = backend.out_until();
            let is_out = until.is_some();
            // A backup that nobody has needed since takes nobody's place among those that may be left out.
            let is_absent = until.is_some_and(|until| !is_free_for_trial(until, now));
            (all, out) = (all + 1, out + usize::from(is_absent));
            has_slow |= backend.ejection().word().kind() == Some(EjectionKind::Slow);
            window.take(backend, is_out, is_first, turns, now);
        }
        window.entries.retain(|_, entry| entry.seen == now);
        window.last = now;
        let room = room(all, out, rules);
        if room == 0 && !has_slow {
            return Vec::new();
        }
        // What comes by keys, or from clients that stay, differs from backend to backend: who gets the expensive client
        // would be ejected, and then whoever gets it next. By `first` all the load is on one.
        let algorithm = self.config.balance.algorithm;
        let comparable = !algorithm.is_hash() && algorithm != Balance::First && self.config.sticky.is_none();
        let grace = self.config.balance.slow_start.saturating_add(rules.window.saturating_mul(GRACE));
        let mut found: Vec<Outlying> = Vec::new();
        for tier in &live.tiers {
            let subjects = tier.backends.iter().filter_map(|backend| {
                let entry = window.entries.get(&backend.id.0)?;
                let back = backend.detail().decision.back_since.unwrap_or_default().max(entry.since);
                let is_warm = back == Tick::ZERO || now.since(back) >= grace;
                let timed = match entry.suspect {
                    _ if !comparable || !is_warm => Timed::Never,
                    0 => Timed::Lastingly,
                    _ => Timed::Again,
                };
                Some(Subject { id: backend.id, history: &entry.history, timed })
            });
            found.extend(judge(&subjects.collect::<Vec<_>>(), rules));
        }
        found.sort_by(Outlying::order);
        let backend = |id: BackendId| live.backends().find(|one| one.id == id);
        let mut ejected = Vec::new();
        for outlying in found {
            let has_room = ejected.len() < room;
            let kind = outlying.fault.kind();
            // Errors come first.
            if !has_room && kind == EjectionKind::Slow {
                break;
            }
            let Some(backend) = backend(outlying.id) else { continue };
            let reason: Arc<str> = outlying.fault.to_string().into();
            if eject(backend, kind, &reason, has_room) {
                window.forget(&outlying);
                ejected.push(Ejected { backend: Arc::clone(backend), reason });
            }
        }
        ejected
    }
}

#[cfg(test)]
mod tests;
