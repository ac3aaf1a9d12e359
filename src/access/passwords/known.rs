//! Digests of credentials that were good, in a table of fixed size that all workers read without a lock.
//!
//! Invariants: a place holds one digest's two halves, or halves of two while one takes the other's place, or zeros. Whoever reads halves
//! of two finds neither, because a digest is compared as a whole: at worst somebody known has to be compared again. There is no order
//! between places, and none is needed.

use std::sync::atomic::{AtomicU64, Ordering};

/// A digest of a name, a password and the hash that they were compared with, of no use to anybody outside this process. Another hash in
/// the file of users makes another digest: nothing has to be forgotten when the file changes.
pub(super) type PasswordDigest = [u8; 32];

/// Places for one digest.
const WAYS: usize = 4;
/// Groups of such places.
const SETS: usize = 2048;

/// Digests that were good lately: at most 8,192, in 128 KiB.
#[derive(Debug)]
pub(super) struct KnownDigests(Box<[[Place; WAYS]]>);

#[derive(Debug, Default)]
struct Place(AtomicU64, AtomicU64);

impl Default for KnownDigests {
    fn default() -> KnownDigests {
        KnownDigests(std::iter::repeat_with(Default::default).take(SETS).collect())
    }
}

impl KnownDigests {
    /// Whether a digest was noted, and not forgotten since.
    pub(super) fn has(&self, digest: &PasswordDigest) -> bool {
        let [first, second, set, _] = words(digest);
        let held = |Place(one, other): &Place| {
            one.load(Ordering::Relaxed) == first && other.load(Ordering::Relaxed) == second
        };
        // A digest of nothing but zeros would be everywhere.
        (first, second) != (0, 0) && self.0[set as usize % SETS].iter().any(held)
    }

    /// Notes one that was good; where there is no room for it another one is forgotten.
    pub(super) fn note(&self, digest: &PasswordDigest) {
        let [first, second, set, chance] = words(digest);
        let places = &self.0[set as usize % SETS];
        let is_free = |Place(one, other): &Place| {
            one.load(Ordering::Relaxed) == 0 && other.load(Ordering::Relaxed) == 0
        };
        let free = places.iter().position(is_free).unwrap_or(chance as usize % WAYS);
        let Place(one, other) = &places[free];
        one.store(first, Ordering::Relaxed);
        other.store(second, Ordering::Relaxed);
    }
}

fn words(digest: &PasswordDigest) -> [u64; 4] {
    let mut words = [0; 4];
    for (word, bytes) in words.iter_mut().zip(digest.as_chunks::<8>().0) {
        *word = u64::from_le_bytes(*bytes);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(number: u64, set: u64) -> PasswordDigest {
        let mut digest = [0; 32];
        let words = [number.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1, number, set, number];
        for (place, word) in words.into_iter().enumerate() {
            digest[place * 8..][..8].copy_from_slice(&word.to_le_bytes());
        }
        digest
    }

    #[test]
    fn what_was_noted_is_known_and_a_full_set_forgets_one_for_each_that_comes() {
        let known = KnownDigests::default();
        assert!(!known.has(&[0; 32]), "an empty place is nobody's");
        for number in 0..4 {
            assert!(!known.has(&digest(number, 7)));
            known.note(&digest(number, 7));
        }
        known.note(&digest(9, 8));
        assert!((0..4).all(|number| known.has(&digest(number, 7))));
        known.note(&digest(5, 7));
        let left = (0..4).filter(|&number| known.has(&digest(number, 7))).count();
        assert!(known.has(&digest(5, 7)) && known.has(&digest(9, 8)));
        assert_eq!(left, 3);
    }

    #[test]
    fn halves_of_two_are_nobody() {
        let known = KnownDigests::default();
        let (one, other) = (digest(1, 3), digest(2, 3));
        // As a reader may see it while one takes the other's place.
        let [first, ..] = words(&one);
        let [_, second, ..] = words(&other);
        known.0[3][0].0.store(first, Ordering::Relaxed);
        known.0[3][0].1.store(second, Ordering::Relaxed);
        assert!(!known.has(&one) && !known.has(&other));
    }
}
