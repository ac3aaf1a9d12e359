//! The arithmetic of one bucket: the generic cell rate algorithm (ITU-T I.371), in nanoseconds.
//!
//! A bucket is one number, the point at which it is full again if nobody takes anything (`full_at`; the algorithm's theoretical
//! arrival time). What is missing in it now follows: the time until then, in units of the time in which one request comes back.

use crate::tick::Tick;

/// How fast a bucket fills, and how much it holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// Nanoseconds in which one request comes back; at least 1.
    pub interval: u64,
    /// Requests that a full bucket holds; at least 1.
    pub burst: u32,
}

impl Pace {
    /// The furthest that `full_at` may be from now: the bucket is empty.
    pub(super) fn empty(self) -> u64 {
        self.interval.saturating_mul(self.burst.into())
    }

    /// Takes one request out. Gives when the bucket is full again.
    ///
    /// # Errors
    /// There is none in it; the nanoseconds until there is.
    #[inline]
    pub fn take(self, full_at: Tick, now: Tick) -> Result<Tick, u64> {
        let missing = full_at.0.saturating_sub(now.0).saturating_add(self.interval);
        match missing.checked_sub(self.empty()) {
            None | Some(0) => Ok(Tick(now.0.saturating_add(missing))),
            Some(wait) => Err(wait),
        }
    }

    /// Puts one request back that was taken.
    #[must_use]
    pub fn give_back(self, full_at: Tick) -> Tick {
        Tick(full_at.0.saturating_sub(self.interval))
    }

    /// Whole requests that are in the bucket.
    #[must_use]
    pub fn left(self, full_at: Tick, now: Tick) -> u32 {
        let missing = full_at.0.saturating_sub(now.0).div_ceil(self.interval.max(1));
        self.burst.saturating_sub(u32::try_from(missing).unwrap_or(u32::MAX))
    }

    /// When a bucket is full again under `next` in which as many requests are left as in this one, as far as it holds them.
    #[must_use]
    pub fn carry_left(self, full_at: Tick, now: Tick, next: Pace) -> Tick {
        let left = self.empty().saturating_sub(full_at.0.saturating_sub(now.0));
        let scaled = u128::from(left) * u128::from(next.interval) / u128::from(self.interval.max(1));
        let missing = next.empty().saturating_sub(u64::try_from(scaled).unwrap_or(u64::MAX));
        Tick(now.0.saturating_add(missing))
    }

    /// When a bucket is full again under `next` of which as many requests are missing as of this one; it is never emptier than empty.
    #[must_use]
    pub fn carry(self, full_at: Tick, now: Tick, next: Pace) -> Tick {
        let missing = u128::from(full_at.0.saturating_sub(now.0));
        let scaled = missing * u128::from(next.interval) / u128::from(self.interval.max(1));
        Tick(now.0.saturating_add(u64::try_from(scaled).unwrap_or(u64::MAX).min(next.empty())))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn pace(per_second: u64, burst: u32) -> Pace {
        Pace { interval: SECOND / per_second, burst }
    }

    #[test]
    fn a_burst_is_exact_and_then_one_comes_per_interval() {
        for burst in [1, 2, 200, 1_000_000] {
            let pace = pace(100, burst);
            let (mut full_at, now) = (Tick::ZERO, Tick(7 * SECOND));
            for _ in 0..burst {
                full_at = pace.take(full_at, now).expect("it is in the bucket");
            }
            assert_eq!(pace.take(full_at, now), Err(SECOND / 100));
            assert_eq!(pace.take(full_at, Tick(now.0 + SECOND / 100 - 1)), Err(1));
            full_at = pace.take(full_at, Tick(now.0 + SECOND / 100)).expect("one came back");
            assert_eq!(pace.take(full_at, Tick(now.0 + SECOND / 100)), Err(SECOND / 100));
        }
    }

    #[test]
    fn a_bucket_is_no_fuller_than_full_after_a_long_time() {
        let pace = pace(10, 3);
        let now = Tick(1_000 * SECOND);
        let mut full_at = Tick(1);
        for _ in 0..3 {
            full_at = pace.take(full_at, now).expect("three");
        }
        assert!(pace.take(full_at, now).is_err());
    }

    #[test]
    fn another_pace_keeps_what_is_missing() {
        let (slow, fast) = (Pace { interval: 60 * SECOND, burst: 5 }, pace(100, 200));
        let now = Tick(1_000 * SECOND);
        let empty = Tick(now.0 + 300 * SECOND);
        assert_eq!((slow.left(empty, now), slow.left(Tick(now.0 + 1), now)), (0, 4));
        assert_eq!(fast.left(slow.carry(empty, now, fast), now), 195);
        let back = fast.carry(Tick(now.0 + 2 * SECOND), now, slow);
        assert_eq!(back, empty, "emptier than empty is nothing");
        assert_eq!(slow.carry(Tick(5), now, fast), now, "a full one stays full");
    }

    #[test]
    fn another_part_keeps_what_is_left() {
        let (small, large) = (pace(5, 50), pace(95, 950));
        let now = Tick(1_000 * SECOND);
        // Full, and then with room for more: which is not there yet.
        let grown = small.carry_left(Tick(5), now, large);
        assert_eq!(large.left(grown, now), 50);
        let shrunk = large.carry_left(grown, now, small);
        assert_eq!((small.left(shrunk, now), shrunk), (50, now));
        let empty = Tick(now.0 + 10 * SECOND);
        assert_eq!(small.left(empty, now), 0);
        assert_eq!(large.left(small.carry_left(empty, now, large), now), 0);
    }

    proptest! {
        /// Against one that counts what is in it.
        #[test]
        fn it_lets_through_what_a_bucket_that_is_counted_does(
            interval in 1_u64..50, burst in 1_u32..8, gaps in prop::collection::vec(0_u64..120, 1..200),
        ) {
            let pace = Pace { interval, burst };
            let (mut full_at, mut now) = (Tick::ZERO, Tick(1_000));
            // Requests in it, times `interval`.
            let whole = interval * u64::from(burst);
            let mut level = whole;
            for gap in gaps {
                now.0 += gap;
                level = (level + gap).min(whole);
                prop_assert_eq!(u64::from(pace.left(full_at, now)), level / interval);
                match pace.take(full_at, now) {
                    Ok(next) => {
                        prop_assert!(level >= interval);
                        prop_assert_eq!(pace.give_back(next).max(now), full_at.max(now));
                        (level, full_at) = (level - interval, next);
                    }
                    Err(wait) => prop_assert_eq!(wait, interval - level),
                }
            }
        }

        #[test]
        fn no_number_breaks_it(interval in 1_u64.., burst in 1_u32.., full_at: u64, now: u64, other in 1_u64..) {
            let pace = Pace { interval, burst };
            let (full_at, now) = (Tick(full_at), Tick(now));
            prop_assert!(pace.take(full_at, now).is_ok_and(|next| next >= now) || pace.take(full_at, now).is_err());
            prop_assert!(pace.left(full_at, now) <= burst);
            let other = Pace { interval: other, burst };
            prop_assert!(pace.carry(full_at, now, other) >= now);
        }
    }
}
