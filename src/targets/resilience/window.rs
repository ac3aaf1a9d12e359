//! What the backends of a target did lately, as far as comparing them needs it. It is the target's and outlives a reload.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::targets::Backend;
use crate::targets::resilience::attempt_counts::Reading;
use crate::targets::resilience::ejection::EjectionKind;
use crate::targets::resilience::outlier::{History, Outlying, SLICES};
use crate::tick::{Tick, nanos};

/// How often a target is swept.
pub const SWEEP: Duration = Duration::from_secs(1);

/// What the backends of a target did lately.
#[derive(Debug, Default)]
pub(in crate::targets) struct Window {
    /// The latest sweep; zero: there was none.
    pub(in crate::targets) last: Tick,
    /// When the newest slice began.
    pub(in crate::targets) turned: Tick,
    pub(in crate::targets) entries: BTreeMap<u32, WindowEntry>,
}

/// What one backend did.
#[derive(Debug)]
pub(in crate::targets) struct WindowEntry {
    /// The latest sweep that met it.
    pub(in crate::targets) seen: Tick,
    pub(in crate::targets) reading: Reading,
    pub(in crate::targets) history: History,
    /// When it was first met; zero: it was there from the start.
    pub(in crate::targets) since: Tick,
    /// For so many slices more it is one that was slow: it takes less to leave it out again.
    pub(in crate::targets) suspect: usize,
}

impl Window {
    /// How many slices have ended by the latest sweep.
    pub(in crate::targets) fn turns(&mut self, window: Duration) -> usize {
        let slice = (nanos(window) / SLICES as u64).max(1);
        let age = self.last.since(self.turned);
        // A sweep that comes a little early ends its slice as well.
        let turns = (nanos(age).saturating_add(slice.min(nanos(SWEEP)) / 4)) / slice;
        if turns > 0 {
            self.turned = self.last;
        }
        usize::try_from(turns).unwrap_or(usize::MAX)
    }

    /// Takes what came of `backend`'s attempts since the latest sweep. Of one that is ejected nothing counts: what it
    /// was ejected for must not eject it once more when it comes back.
    pub(in crate::targets) fn take(
        &mut self,
        backend: &Backend,
        is_out: bool,
        is_first: bool,
        turns: usize,
        now: Tick,
    ) {
        let reading = backend.attempt_counts().read();
        let fresh = || WindowEntry {
            seen: now,
            reading,
            history: History::default(),
            since: if is_first { Tick::ZERO } else { now },
            suspect: 0,
        };
        let entry = self.entries.entry(backend.id.0).or_insert_with(fresh);
        entry.seen = now;
        let counts = reading.since(std::mem::replace(&mut entry.reading, reading));
        if is_out {
            entry.history = History::default();
        } else {
            entry.suspect = entry.suspect.saturating_sub(turns);
            entry.history.turn(turns);
            entry.history.add(counts);
        }
    }

    /// Forgets those who are no members any more: their numbers may be given to others.
    pub(in crate::targets) fn drop_entries(&mut self, gone: &[Arc<Backend>]) {
        for backend in gone {
            self.entries.remove(&backend.id.0);
        }
    }

    /// Begins anew with a backend that was left out.
    pub(in crate::targets) fn forget(&mut self, outlying: &Outlying) {
        if let Some(entry) = self.entries.get_mut(&outlying.id.0) {
            entry.history = History::default();
            if outlying.fault.kind() == EjectionKind::Slow {
                entry.suspect = SLICES;
            }
        }
    }
}
