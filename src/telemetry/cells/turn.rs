//! How far a worker is with configs, and whether it moves things from one place to another just now.

use std::sync::atomic::{AtomicU64, Ordering, fence};

/// How far a worker is with configs.
#[derive(Debug, Default)]
pub(super) struct Turn {
    /// The number of the config that it has gone over to; 0: the first.
    adopted: AtomicU64,
    /// Odd while numbers are given to others.
    moves: AtomicU64,
}

impl Turn {
    /// The number of the latest config but the first that it has gone over to.
    pub(super) fn adopted(&self) -> u64 {
        self.adopted.load(Ordering::Acquire)
    }

    /// Moves things from one place to another. Only the owning worker calls this.
    pub(super) fn moving(&self, number: u64, work: impl FnOnce()) {
        let moves = self.moves.load(Ordering::Relaxed);
        self.moves.store(moves + 1, Ordering::Relaxed);
        fence(Ordering::Release);
        work();
        self.adopted.store(number, Ordering::Release);
        self.moves.store(moves + 2, Ordering::Release);
    }

    /// Calls `read` until nothing was moved meanwhile.
    pub(super) fn settled<T>(&self, read: impl Fn() -> T) -> T {
        loop {
            let before = self.moves.load(Ordering::Acquire);
            let got = read();
            fence(Ordering::Acquire);
            if before.is_multiple_of(2) && before == self.moves.load(Ordering::Relaxed) {
                return got;
            }
            std::thread::yield_now();
        }
    }
}
