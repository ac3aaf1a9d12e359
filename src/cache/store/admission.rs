//! Who is let in where there is no room: a body that would push out much has to be wanted twice.
//!
//! What is wanted once, as in a scan, is small beside what is stored, or goes past it. How many hits a body will have is not known when it
//! comes; that somebody wants it for the second time is the first that is known of it.

use std::sync::atomic::{AtomicU64, Ordering};

/// The part of a shard from which on a body pushes out much.
const LARGE: u64 = 64;
/// Keys that are remembered: many times more than there are large bodies that have room.
const REMEMBERED: usize = 1_024;

/// Whether something is let in that weighs so much where `held` of `memory` are taken. `is_wanted_again`: asked only if it matters.
pub(super) fn admits(weight: u64, held: u64, memory: u64, is_wanted_again: impl FnOnce() -> bool) -> bool {
    weight <= memory / LARGE || held + weight <= memory || is_wanted_again()
}

/// What has been wanted lately, by its hash. Each has one place, and whoever comes later takes it.
#[derive(Debug)]
pub(super) struct WantedBefore(Box<[AtomicU64]>);

impl Default for WantedBefore {
    fn default() -> WantedBefore {
        WantedBefore((0..REMEMBERED).map(|_| AtomicU64::new(0)).collect())
    }
}

impl WantedBefore {
    /// Notes that it is wanted, and tells whether it was before.
    pub(super) fn note(&self, hash: u64) -> bool {
        // 0 stands for nothing.
        let hash = hash | 1 << 63;
        self.0[hash as usize % REMEMBERED].swap(hash, Ordering::Relaxed) == hash
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn whatever_is_wanted_again_is_let_in_and_nothing_large_that_is_not_pushes_anything_out(
            weight in 0u64..1 << 30, held in 0u64..1 << 30, memory in 0u64..1 << 30,
        ) {
            prop_assert!(admits(weight, held, memory, || true));
            if admits(weight, held, memory, || false) {
                let pushed_out = (held + weight).saturating_sub(memory);
                prop_assert!(pushed_out == 0 || weight <= memory / LARGE);
            }
        }

        /// Against a set of all that was wanted: nothing is taken for another.
        #[test]
        fn nothing_is_wanted_again_that_was_not_wanted(hashes in prop::collection::vec(0u64..5_000, 0..3_000)) {
            let (wanted, mut all) = (WantedBefore::default(), std::collections::HashSet::new());
            for hash in hashes {
                let was_there = !all.insert(hash);
                let is_again = wanted.note(hash);
                prop_assert!(was_there || !is_again);
                prop_assert!(wanted.note(hash));
            }
        }
    }

    #[test]
    fn what_nothing_took_the_place_of_is_remembered() {
        let wanted = WantedBefore::default();
        assert!((0..REMEMBERED as u64).all(|hash| !wanted.note(hash)));
        assert!((0..REMEMBERED as u64).all(|hash| wanted.note(hash)));
        assert!(!wanted.note(REMEMBERED as u64) && !wanted.note(0));
    }
}
