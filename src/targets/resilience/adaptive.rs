//! `max_in_flight: adaptive`: each sweep steps the limit of the target's backends and puts it in force.
//!
//! How the limit follows from latencies is decided in [`crate::targets::resilience::gradient`]; here are the readings that it goes by. All of
//! it outlives a reload, as long as the target stays adaptive.

use std::collections::BTreeMap;
use std::sync::PoisonError;

use crate::config::model::Resilience;
use crate::events;
use crate::targets::resilience::attempt_counts::{Counts, Reading};
use crate::targets::resilience::gradient::{Gradient, Sample};
use crate::targets::{Target, TargetState};

/// Attempts that make a sample. With fewer, the next second's are added.
const ENOUGH: u32 = 10;
/// One error among so many attempts makes a sample faulty.
const FAULTY: u32 = 10;

/// What is known of a target whose limit is found out.
#[derive(Debug, Default)]
pub(in crate::targets) struct Adaptive {
    gradient: Gradient,
    /// The counts of each live backend at the latest sweep.
    readings: BTreeMap<u32, Reading>,
    /// Attempts that were too few for a sample.
    pending: Counts,
    /// Somebody has met the limit, which was logged.
    is_met: bool,
}

impl Target {
    /// Requests that one backend may have at once at this moment, be the number configured or found out; `None`: any.
    #[must_use]
    pub fn limit(&self) -> Option<u32> {
        Some(self.state.board.limit()).filter(|limit| *limit > 0)
    }

    /// Steps the limit where it is to be found out. Who may be served by a higher one is for [`Target::settle`].
    pub(in crate::targets) fn adapt(&self) {
        if let Some(limit) = self.state.adapt() {
            events::limit_met(&self.name, limit);
        }
    }
}

impl TargetState {
    /// The limit that `config` sets, or that was found out so far; 0: there is none.
    pub(in crate::targets) fn limit_for(&self, config: &Resilience) -> u32 {
        let mut adaptive = self.adaptive.lock().unwrap_or_else(PoisonError::into_inner);
        if config.adaptive {
            return adaptive.get_or_insert_default().gradient.limit();
        }
        *adaptive = None;
        config.max_in_flight.unwrap_or(0)
    }

    /// Steps the limit. Gives it when it is met for the first time.
    fn adapt(&self) -> Option<u32> {
        let mut adaptive = self.adaptive.lock().unwrap_or_else(PoisonError::into_inner);
        let adaptive = adaptive.as_mut()?;
        if let Some(sample) = adaptive.sample(self) {
            adaptive.gradient.step(sample);
        }
        let limit = adaptive.gradient.limit();
        let mut locked = self.board.lock();
        self.board.set_limit(&mut locked, limit);
        let mut is_met = self.board.has_waiting();
        // Also when the limit is the same: a lease that ended while the last one was put in force may have gone by the
        // one before, and told nobody that its backend has room.
        for backend in self.live.load().backends() {
            locked.refresh(backend);
            is_met |= backend.in_flight() >= limit;
        }
        let is_first = is_met && !adaptive.is_met;
        adaptive.is_met |= is_met;
        is_first.then_some(limit)
    }
}

impl Adaptive {
    /// What the time since the last sample was like; `None`: too little happened.
    fn sample(&mut self, state: &TargetState) -> Option<Sample> {
        let (mut load, mut users) = (0.0, 0.0);
        let mut readings = BTreeMap::new();
        for backend in state.live.load().backends() {
            let reading = backend.attempt_counts().read();
            let before = self.readings.get(&backend.id.0).copied().unwrap_or(reading);
            readings.insert(backend.id.0, reading);
            // What is broken says nothing about how much the others can take.
            if backend.out_until().is_some() {
                continue;
            }
            let counts = reading.since(before);
            self.pending = self.pending.and(counts);
            // A backup that nobody needs is not one with room to spare.
            if counts.attempts > 0 || backend.in_flight() > 0 {
                load += f64::from(backend.in_flight());
                users += 1.0;
            }
        }
        self.readings = readings;
        if self.pending.timed < ENOUGH || users == 0.0 {
            return None;
        }
        let counts = std::mem::take(&mut self.pending);
        let faulty = counts.errors.saturating_mul(FAULTY) > counts.attempts;
        Some(Sample { latency: counts.doublings()?, busy: load / users, faulty })
    }
}

#[cfg(test)]
mod tests;
