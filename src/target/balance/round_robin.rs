//! Each backend in turn, exactly, over all workers.
//!
//! One ticket counter for a target in the whole process: whichever threads draw them, any `n` tickets in a row are
//! one turn over `n` backends. It costs a contended add per request, which is far below the syscalls
//! around it; a counter per worker would be exact for each worker only.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::target::Padded;

/// The ticket counter of one target.
#[derive(Debug, Default)]
pub(super) struct RoundRobin {
    next: Padded<AtomicU64>,
}

impl RoundRobin {
    /// The next place in turn.
    pub(super) fn place(&self, live: usize) -> usize {
        let ticket = self.next.fetch_add(1, Ordering::Relaxed);
        let place = ticket.checked_rem(live as u64).unwrap_or(0);
        usize::try_from(place).expect("a remainder of a usize fits a usize")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_stretch_of_n_tickets_is_one_turn() {
        let round_robin = RoundRobin::default();
        for live in [3, 2, 5, 1] {
            for _ in 0..4 {
                let mut turn: Vec<usize> = (0..live).map(|_| round_robin.place(live)).collect();
                turn.sort_unstable();
                assert!(turn.into_iter().eq(0..live));
            }
        }
        assert_eq!(round_robin.place(0), 0);
    }
}
