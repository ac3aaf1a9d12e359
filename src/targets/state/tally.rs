//! How often something was found out about the backends of a target, since the process began or the target was there.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counts that any thread adds to; none of them on the way of a request that goes well.
#[derive(Debug, Default)]
pub struct TargetTally {
    ejections: AtomicU64,
    trips: AtomicU64,
    good_probes: AtomicU64,
    bad_probes: AtomicU64,
}

impl TargetTally {
    /// A backend is left out that was not.
    pub(in crate::targets) fn eject(&self) {
        self.ejections.fetch_add(1, Ordering::Relaxed);
    }

    /// A closed breaker has opened.
    pub(in crate::targets) fn trip(&self) {
        self.trips.fetch_add(1, Ordering::Relaxed);
    }

    /// A backend was probed.
    pub fn probe(&self, is_good: bool) {
        let count = if is_good { &self.good_probes } else { &self.bad_probes };
        count.fetch_add(1, Ordering::Relaxed);
    }

    /// How often a backend was left out.
    #[must_use]
    pub fn ejections(&self) -> u64 {
        self.ejections.load(Ordering::Relaxed)
    }

    /// How often a breaker has opened.
    #[must_use]
    pub fn trips(&self) -> u64 {
        self.trips.load(Ordering::Relaxed)
    }

    /// How many probes were good, and how many bad.
    #[must_use]
    pub fn probes(&self) -> (u64, u64) {
        (self.good_probes.load(Ordering::Relaxed), self.bad_probes.load(Ordering::Relaxed))
    }
}
