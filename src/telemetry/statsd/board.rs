//! How it goes with statsd: written by who sends, read by who reports.

use std::sync::atomic::{AtomicU64, Ordering};

/// How it goes with datagrams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StatsdCounts {
    /// Those that were sent, and of which nobody has said that they did not arrive.
    pub sent: u64,
    /// The others.
    pub dropped: u64,
}

/// The latest of it.
#[derive(Debug, Default)]
pub struct StatsdBoard {
    sent: AtomicU64,
    dropped: AtomicU64,
}

impl StatsdBoard {
    /// So many more were sent.
    pub fn sent(&self, datagrams: usize) {
        self.sent.fetch_add(datagrams as u64, Ordering::Relaxed);
    }

    /// So many more were dropped.
    pub fn dropped(&self, datagrams: usize) {
        self.dropped.fetch_add(datagrams as u64, Ordering::Relaxed);
    }

    /// What there is.
    #[must_use]
    pub fn counts(&self) -> StatsdCounts {
        StatsdCounts {
            sent: self.sent.load(Ordering::Relaxed),
            dropped: self.dropped.load(Ordering::Relaxed),
        }
    }
}
