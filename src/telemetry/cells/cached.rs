//! What caches have done for requests.

use std::collections::BTreeMap;

use super::counter::Counter;
use crate::message::{CacheNote, WhyNot};

/// What one worker counts of it.
#[derive(Debug)]
pub struct CacheCells {
    kinds: [Counter; CacheNote::KINDS.len()],
    reasons: [Counter; WhyNot::ALL.len()],
    compressed: Counter,
}

impl Default for CacheCells {
    fn default() -> CacheCells {
        CacheCells {
            kinds: std::array::from_fn(|_| Counter::default()),
            reasons: std::array::from_fn(|_| Counter::default()),
            compressed: Counter::default(),
        }
    }
}

impl CacheCells {
    /// Counts a stored body that was compressed, to be kept so. Only the owning worker calls this.
    pub fn compressed(&self) {
        self.compressed.increment();
    }

    /// Counts a request. Only the owning worker calls this.
    pub(super) fn count(&self, note: CacheNote) {
        self.kinds[note.kind()].increment();
        if let Some(why) = note.reason() {
            self.reasons[why as usize].increment();
        }
    }
}

/// What was counted of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CacheReading {
    kinds: [u64; CacheNote::KINDS.len()],
    reasons: BTreeMap<&'static str, u64>,
    /// Stored bodies that were compressed to be kept so, each once in each coding.
    pub compressed: u64,
}

impl CacheReading {
    pub(super) fn add(&mut self, cells: &CacheCells) {
        for (total, cell) in self.kinds.iter_mut().zip(&cells.kinds) {
            *total += cell.value();
        }
        self.compressed += cells.compressed.value();
        for (why, cell) in WhyNot::ALL.iter().zip(&cells.reasons).filter(|(_, cell)| cell.value() > 0) {
            *self.reasons.entry(why.token()).or_default() += cell.value();
        }
    }

    /// Requests of routes with a cache, by what that has done for them.
    pub fn kinds(&self) -> impl Iterator<Item = (&'static str, u64)> {
        CacheNote::KINDS.into_iter().zip(self.kinds)
    }

    /// Why those that are uncacheable are so.
    pub fn reasons(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.reasons.iter().map(|(why, count)| (*why, *count))
    }
}
