//! The buckets of one limit. They outlive configs: a reload changes their pace, and what is missing in them stays missing.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use super::key::RateKey;
use super::pace::Pace;
use super::table::{BucketTable, ToldBuckets};
use crate::tick::Tick;

/// The buckets of one limit, for all threads.
#[derive(Debug)]
pub struct RateBuckets {
    // Read one after the other: a request that comes while they are changed may see one of the old and one of the new.
    interval: AtomicU64,
    burst: AtomicU32,
    /// Whether it is counted how often somebody asks.
    is_counted: AtomicBool,
    asked: AtomicU64,
    table: BucketTable,
}

/// What is in a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateStanding {
    /// Requests that it has.
    pub left: u32,
    /// Nanoseconds until it has one; 0: it does.
    pub wait: u64,
}

impl RateBuckets {
    /// Buckets that are all full. `entries`: how many keys are known at a time; [`ENTRIES`](super::ENTRIES) but in tests.
    #[must_use]
    pub fn new(pace: Pace, entries: usize) -> RateBuckets {
        RateBuckets {
            interval: AtomicU64::new(pace.interval),
            burst: AtomicU32::new(pace.burst),
            is_counted: AtomicBool::new(false),
            asked: AtomicU64::new(0),
            table: BucketTable::new(entries),
        }
    }

    /// How fast they fill, and how much they hold.
    #[inline]
    #[must_use]
    pub fn pace(&self) -> Pace {
        let (interval, burst) = (self.interval.load(Ordering::Relaxed), self.burst.load(Ordering::Relaxed));
        Pace { interval, burst }
    }

    /// Sets how fast they fill and how much they hold. As many requests as are missing in a bucket go on missing, and no more than it
    /// holds.
    pub fn set_pace(&self, pace: Pace, now: Tick) {
        let before = self.pace();
        if before != pace {
            self.interval.store(pace.interval, Ordering::Relaxed);
            self.burst.store(pace.burst, Ordering::Relaxed);
            self.table.carry(before, pace, now);
        }
    }

    /// The same, and as many requests as are left in a bucket are left in it, as far as it holds them: a larger one is filled from there.
    pub fn set_pace_with_left(&self, pace: Pace, now: Tick) {
        let before = self.pace();
        if before != pace {
            self.interval.store(pace.interval, Ordering::Relaxed);
            self.burst.store(pace.burst, Ordering::Relaxed);
            self.table.carry_left(before, pace, now);
        }
    }

    /// Takes one request out of the bucket of `key`.
    ///
    /// # Errors
    /// It is empty; the nanoseconds until it is not.
    #[inline]
    pub fn take(&self, key: RateKey, now: Tick) -> Result<(), u64> {
        self.count(1);
        self.table.take(key, self.pace(), now)
    }

    /// Whether there is a request in the bucket of `key`. It is not taken; who is refused is known from then on.
    ///
    /// # Errors
    /// There is none; the nanoseconds until there is.
    #[inline]
    pub fn pass(&self, key: RateKey, now: Tick) -> Result<(), u64> {
        // Who may take is counted when it does.
        self.table.pass(key, self.pace(), now).inspect_err(|_| self.count(1))
    }

    #[inline]
    fn count(&self, asked: u64) {
        if self.is_counted.load(Ordering::Relaxed) {
            self.asked.fetch_add(asked, Ordering::Relaxed);
        }
    }

    /// From now on it is counted how often somebody asks.
    pub fn count_asked(&self) {
        if !self.is_counted.load(Ordering::Relaxed) {
            self.is_counted.store(true, Ordering::Relaxed);
        }
    }

    /// How often somebody has asked for a request, whether there was one or not, since that is counted.
    #[must_use]
    pub fn asked(&self) -> u64 {
        self.asked.load(Ordering::Relaxed)
    }

    /// Puts back what was taken for `key`.
    pub fn give_back(&self, key: RateKey) {
        self.table.give_back(key, self.pace());
    }

    /// How often there was no place for another key, so that it counted with the others for whom there is none.
    #[must_use]
    pub fn crowded(&self) -> u64 {
        self.table.crowded()
    }

    /// What is missing in all buckets, for another process.
    #[must_use]
    pub fn tell(&self, now: Tick) -> ToldBuckets {
        self.table.tell(self.pace(), now)
    }

    /// Takes out what is missing in those of another process.
    pub fn take_over(&self, told: &ToldBuckets, now: Tick) {
        self.table.take_over(told, self.pace(), now);
    }

    /// What is in the bucket of `key`. Nothing changes.
    #[must_use]
    pub fn look(&self, key: RateKey, now: Tick) -> RateStanding {
        let (pace, full_at) = (self.pace(), self.table.full_at(key, now));
        RateStanding { left: pace.left(full_at, now), wait: pace.take(full_at, now).err().unwrap_or(0) }
    }

    #[cfg(test)]
    pub(super) fn table(&self) -> &BucketTable {
        &self.table
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn a_changed_pace_keeps_what_is_missing() {
        let buckets = RateBuckets::new(Pace { interval: 60 * SECOND, burst: 5 }, 64);
        let (key, other, now) = (RateKey::new(5), RateKey::new(u64::MAX), Tick(9_000 * SECOND));
        for _ in 0..5 {
            buckets.take(key, now).expect("five");
        }
        assert_eq!(buckets.take(key, now), Err(60 * SECOND));
        buckets.set_pace(Pace { interval: SECOND, burst: 7 }, now);
        assert_eq!(buckets.look(key, now), RateStanding { left: 2, wait: 0 });
        assert_eq!(buckets.look(other, now).left, 7);
        buckets.set_pace(Pace { interval: SECOND, burst: 3 }, now);
        assert_eq!(buckets.look(key, now), RateStanding { left: 0, wait: SECOND });
    }
}
