//! Durations in few buckets, with edges that people read: what is exported.
//!
//! No two edges lie in one power of two, so a look at the leading bit and one comparison find the bucket.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::super::counter::Counter;

/// Upper edges in nanoseconds, each inclusive; what is longer is in a bucket of its own.
pub const EDGES: [u64; 15] = [
    50_000,
    250_000,
    1_000_000,
    2_500_000,
    5_000_000,
    10_000_000,
    25_000_000,
    50_000_000,
    100_000_000,
    250_000_000,
    500_000_000,
    1_000_000_000,
    2_500_000_000,
    10_000_000_000,
    30_000_000_000,
];
/// With the one for what is longer.
const PLACES: usize = EDGES.len() + 1;
/// The same with an edge that nothing is beyond.
const LIMITS: [u64; PLACES] = limits();
/// For each power of two the bucket of it.
const FIRST: [u8; 64] = first();

const fn limits() -> [u64; PLACES] {
    let mut limits = [u64::MAX; PLACES];
    let mut place = 0;
    while place < EDGES.len() {
        limits[place] = EDGES[place];
        place += 1;
    }
    limits
}

const fn first() -> [u8; 64] {
    let mut first = [0; 64];
    let mut bit = 0;
    while bit < 64 {
        let mut place: u8 = 0;
        while (place as usize) < EDGES.len() && EDGES[place as usize] < 1 << bit {
            place += 1;
        }
        first[bit] = place;
        bit += 1;
    }
    first
}

/// A duration and its bucket: found once, counted in several places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placed {
    nanos: u64,
    place: u8,
}

impl Placed {
    /// Of so many nanoseconds.
    #[must_use]
    #[inline]
    pub fn new(nanos: u64) -> Placed {
        let first = FIRST[(nanos | 1).ilog2() as usize];
        // Never more than the last, which nothing is beyond.
        Placed { nanos, place: first + u8::from(nanos > LIMITS[usize::from(first) % PLACES]) }
    }
}

/// Durations, written by one worker.
#[derive(Debug, Default)]
pub struct Durations {
    buckets: [Counter; PLACES],
    /// Nanoseconds in all.
    sum: Counter,
}

impl Durations {
    /// Counts one of so many nanoseconds. Only the owning worker calls this.
    pub fn record(&self, nanos: u64) {
        self.add(Placed::new(nanos));
    }

    /// Counts one. Only the owning worker calls this.
    #[inline]
    pub fn add(&self, one: Placed) {
        // It is never that many; the compiler can't know.
        self.buckets[usize::from(one.place) % PLACES].increment();
        self.sum.add(one.nanos);
    }

    /// Takes over what another one has. Only the owning worker calls this.
    pub(in crate::telemetry::cells) fn take(&self, other: &Durations) {
        let pairs = self.buckets.iter().zip(&other.buckets).chain([(&self.sum, &other.sum)]);
        pairs.for_each(|(mine, theirs)| mine.add(theirs.value()));
    }

    /// Forgets what it holds. Only the owning worker calls this.
    pub fn clear(&self) {
        self.buckets.iter().chain([&self.sum]).for_each(Counter::clear);
    }
}

/// What some of them held when they were read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DurationReading {
    buckets: [u64; PLACES],
    sum: u64,
}

impl DurationReading {
    /// Adds what `durations` hold now.
    pub fn add(&mut self, durations: &Durations) {
        for (total, bucket) in self.buckets.iter_mut().zip(&durations.buckets) {
            *total += bucket.value();
        }
        self.sum = self.sum.wrapping_add(durations.sum.value());
    }

    /// Adds another reading.
    pub fn merge(&mut self, other: &DurationReading) {
        self.buckets.iter_mut().zip(other.buckets).for_each(|(total, more)| *total += more);
        self.sum = self.sum.wrapping_add(other.sum);
    }

    /// What has come to it since it was `earlier`.
    #[must_use]
    pub fn since(&self, earlier: &DurationReading) -> DurationReading {
        let mut more = *self;
        more.buckets.iter_mut().zip(earlier.buckets).for_each(|(now, then)| *now = now.saturating_sub(then));
        more.sum = more.sum.saturating_sub(earlier.sum);
        more
    }

    /// How many there are up to each edge and beyond the one before, and then beyond the last.
    pub fn buckets(&self) -> impl Iterator<Item = u64> {
        self.buckets.into_iter()
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }

    /// All of them together.
    #[must_use]
    pub fn sum(&self) -> Duration {
        Duration::from_nanos(self.sum)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_duration_is_in_the_first_bucket_that_reaches_it(bits in 0..64_u32, noise in any::<u64>()) {
            let nanos = (1 << bits) | (noise & ((1 << bits) - 1));
            let expected = EDGES.iter().filter(|edge| **edge < nanos).count();
            prop_assert_eq!(usize::from(Placed::new(nanos).place), expected);
        }
    }

    #[test]
    fn edges_themselves_belong_to_the_bucket_below() {
        for (place, edge) in EDGES.into_iter().enumerate() {
            let of = |nanos| usize::from(Placed::new(nanos).place);
            assert_eq!((of(edge), of(edge + 1)), (place, place + 1), "{edge}");
        }
        assert_eq!((Placed::new(0).place, Placed::new(u64::MAX).place), (0, 15));
    }
}
