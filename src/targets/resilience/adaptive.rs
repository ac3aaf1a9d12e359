//! `max_in_flight: adaptive`: each sweep steps the limit of the target's backends and puts it in force.
//!
//! How the limit follows from latencies is decided in [`crate::targets::resilience::gradient`]; here are the readings that it goes by. All of
//! it outlives a reload, as long as the target stays adaptive.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::targets::Backend;
use crate::targets::resilience::attempt_counts::{Counts, Reading};
use crate::targets::resilience::gradient::{Gradient, Sample};

/// Attempts that make a sample. With fewer, the next second's are added.
const ENOUGH: u32 = 10;
/// One error among so many attempts makes a sample faulty.
const FAULTY: u32 = 10;

/// What is known of a target whose limit is found out.
#[derive(Debug, Default)]
pub(in crate::targets) struct Adaptive {
    pub(in crate::targets) gradient: Gradient,
    /// The counts of each live backend at the latest sweep.
    pub(in crate::targets) readings: BTreeMap<u32, Reading>,
    /// Attempts that were too few for a sample.
    pub(in crate::targets) pending: Counts,
    /// Somebody has met the limit, which was logged.
    pub(in crate::targets) is_met: bool,
}

impl Adaptive {
    /// What the time since the last sample was like; `None`: too little happened.
    pub(in crate::targets) fn sample<'b>(
        &mut self,
        backends: impl Iterator<Item = &'b Arc<Backend>>,
    ) -> Option<Sample> {
        let (mut load, mut users) = (0.0, 0.0);
        let mut readings = BTreeMap::new();
        for backend in backends {
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
            if counts.attempts > 0 || backend.taken() > 0 {
                load += f64::from(backend.taken());
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
