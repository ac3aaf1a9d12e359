//! Records that never reached the destination: counted as they go, told once in a while.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::events;
use crate::tick::Tick;

/// Losses are told at most this often.
const EVERY: Duration = Duration::from_secs(10);

/// The losses of one access log.
#[derive(Debug, Default)]
pub(super) struct Loss {
    /// Since they were last told.
    untold: AtomicU64,
    /// Those of writers, this one and others before it; workers count theirs in their cells.
    in_writer: Arc<AtomicU64>,
    /// When they were last told; 0: never.
    told: AtomicU64,
}

impl Loss {
    /// What the writer loses is added to `in_writer`.
    pub(super) fn new(in_writer: &Arc<AtomicU64>) -> Loss {
        Loss { in_writer: Arc::clone(in_writer), ..Loss::default() }
    }

    /// Counts lines that a worker dropped.
    pub(super) fn add(&self, lines: u64) {
        self.untold.fetch_add(lines, Ordering::Relaxed);
    }

    /// Counts lines that the writer could not write.
    pub(super) fn add_in_writer(&self, lines: u64) {
        self.in_writer.fetch_add(lines, Ordering::Relaxed);
        self.add(lines);
    }

    /// Logs what was lost since the last time, if there is something and it was long ago. Any worker may call this.
    pub(super) fn tell(&self, now: Tick) {
        let told = self.told.load(Ordering::Relaxed);
        let due = told == 0 || now.since(Tick(told)) >= EVERY;
        if !due || self.untold.load(Ordering::Relaxed) == 0 {
            return;
        }
        // When several workers come here at once, one of them speaks.
        let turn = self.told.compare_exchange(told, now.0.max(1), Ordering::Relaxed, Ordering::Relaxed);
        if turn.is_ok() {
            self.tell_rest();
        }
    }

    /// Logs what is still untold.
    pub(super) fn tell_rest(&self) {
        let dropped = self.untold.swap(0, Ordering::Relaxed);
        if dropped > 0 {
            events::records_dropped(dropped);
        }
    }
}
