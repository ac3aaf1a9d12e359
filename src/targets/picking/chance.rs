//! Chance, for the algorithms that need it: passed in, so that a test or a simulation repeats itself.

use std::cell::RefCell;

use rand::rngs::SmallRng;
use rand::{RngExt as _, SeedableRng as _};

use crate::targets::picking::hash::scaled;

/// A source of random numbers for one thread. Fast, and no secret.
#[derive(Debug)]
pub struct Chance(RefCell<SmallRng>);

impl Chance {
    /// Chance that nobody can foresee.
    #[must_use]
    pub fn new() -> Chance {
        Chance(RefCell::new(SmallRng::from_rng(&mut rand::rng())))
    }

    /// Chance that always fall alike for the same `seed`.
    #[must_use]
    pub fn seeded(seed: u64) -> Chance {
        Chance(RefCell::new(SmallRng::seed_from_u64(seed)))
    }

    /// 64 random bits.
    #[must_use]
    pub fn bits(&self) -> u64 {
        self.0.borrow_mut().random()
    }

    /// A number below `end`, or 0 when that is 0. The bias is below `end` ÷ 2⁶⁴.
    #[must_use]
    pub fn below(&self, end: usize) -> usize {
        scaled(self.bits(), end)
    }

    /// True in `share` of all cases, of 0 to 1.
    #[must_use]
    pub fn happens(&self, share: f64) -> bool {
        self.0.borrow_mut().random::<f64>() < share
    }
}

impl Default for Chance {
    fn default() -> Self {
        Chance::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_repeats_and_numbers_stay_below_their_end() {
        let (one, two) = (Chance::seeded(7), Chance::seeded(7));
        for end in 1..200 {
            let number = one.below(end);
            assert!(number < end);
            assert_eq!(number, two.below(end));
        }
        assert_eq!(one.below(0), 0);
        assert!((0..100).all(|_| one.happens(1.0) && !one.happens(0.0)));
    }
}
