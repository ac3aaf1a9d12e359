//! Durations in 64 buckets of half a kibibyte: there is one of these for each backend and worker.
//!
//! Each power of two is cut into four, from 2^16 ns (65 µs) to 2^32 ns (4.3 s). What is shorter or longer is in the first or the
//! last bucket.

use std::time::Duration;

use super::super::counter::Counter;

/// How many buckets there are.
pub const COARSE: usize = 64;
/// The lower edge of the second bucket is above this power of two.
const BOTTOM_BITS: u32 = 16;
/// Four buckets per power of two.
const PART_BITS: u32 = 2;
/// A fine histogram has two buckets in each of these, and this many of them below.
const BELOW: usize = 32;

/// Durations, written by one worker.
#[derive(Debug)]
pub struct CoarseDurations([Counter; COARSE]);

impl Default for CoarseDurations {
    fn default() -> CoarseDurations {
        CoarseDurations(std::array::from_fn(|_| Counter::default()))
    }
}

impl CoarseDurations {
    /// Counts one that is in this bucket of a [`Histogram`](super::histogram::Histogram). Only the owning worker calls this.
    #[inline]
    pub fn record(&self, fine: usize) {
        self.0[of_fine(fine)].increment();
    }

    /// Forgets what it holds. Only the owning worker calls this.
    pub fn clear(&self) {
        self.0.iter().for_each(Counter::clear);
    }
}

/// What some of them held when they were read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CoarseReading([u64; COARSE]);

impl Default for CoarseReading {
    fn default() -> CoarseReading {
        CoarseReading([0; COARSE])
    }
}

impl CoarseReading {
    /// Adds what `durations` hold now.
    pub fn add(&mut self, durations: &CoarseDurations) {
        for (total, bucket) in self.0.iter_mut().zip(&durations.0) {
            *total += bucket.value();
        }
    }

    /// What has come since `before`. That of somebody else counts from zero.
    #[must_use]
    pub fn since(&self, before: &CoarseReading) -> CoarseReading {
        let each = self.0.iter().zip(&before.0).map(|(now, then)| now.checked_sub(*then));
        let mut latest = CoarseReading::default();
        for (place, difference) in latest.0.iter_mut().zip(each) {
            let Some(difference) = difference else { return self.clone() };
            *place = difference;
        }
        latest
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.0.iter().sum()
    }

    /// What one in a hundred (`percent` 99) exceeds: the upper edge of its bucket, a quarter too much at most; of the last one its
    /// lower edge. `None`: there are none.
    #[must_use]
    pub fn percentile(&self, percent: u64) -> Option<Duration> {
        let place = self.bucket_of(percent)?;
        Some(Duration::from_nanos(lower_edge((place + 1).min(COARSE - 1))))
    }

    /// The same as the middle of its bucket: an eighth too little or too much at most.
    #[must_use]
    pub fn middle(&self, percent: u64) -> Option<Duration> {
        let place = self.bucket_of(percent)?;
        let (lower, upper) =
            (if place == 0 { 0 } else { lower_edge(place) }, lower_edge((place + 1).min(COARSE - 1)));
        Some(Duration::from_nanos(u64::midpoint(lower, upper)))
    }

    fn bucket_of(&self, percent: u64) -> Option<usize> {
        let count = self.count();
        if count == 0 {
            return None;
        }
        let rank =
            u64::try_from((u128::from(count) * u128::from(percent)).div_ceil(100)).unwrap_or(count).max(1);
        let mut seen = 0;
        self.0.iter().position(|bucket| {
            seen += bucket;
            seen >= rank
        })
    }
}

#[inline]
fn of_fine(place: usize) -> usize {
    (place >> 1).saturating_sub(BELOW).min(COARSE - 1)
}

/// The smallest value of a bucket but the first, in nanoseconds.
fn lower_edge(place: usize) -> u64 {
    let (octave, part) = (place >> PART_BITS, place as u64 & 3);
    ((4 + part) << octave) << (BOTTOM_BITS - PART_BITS)
}

#[cfg(test)]
mod tests {
    use super::super::histogram::place as fine;
    use super::*;

    fn place(nanos: u64) -> usize {
        of_fine(fine(nanos))
    }

    #[test]
    fn buckets_touch_and_the_outer_ones_take_all_that_is_beyond() {
        for number in 1..COARSE {
            assert_eq!((place(lower_edge(number)), place(lower_edge(number) - 1)), (number, number - 1));
        }
        assert_eq!((place(0), place(u64::MAX)), (0, COARSE - 1));
        assert_eq!(lower_edge(1), 81_920);
    }

    #[test]
    fn a_percentile_is_the_right_one_or_a_quarter_above() {
        let times = CoarseDurations::default();
        assert_eq!(CoarseReading::default().percentile(50), None);
        for millis in 1..=100 {
            times.record(fine(millis * 1_000_000));
        }
        let mut reading = CoarseReading::default();
        reading.add(&times);
        for percent in [1, 50, 99, 100] {
            let told = reading.percentile(percent).expect("there are some");
            let exact = Duration::from_millis(percent);
            assert!(told >= exact && told <= exact + exact / 4, "{percent}: {told:?}");
        }
        times.clear();
        times.record(fine(u64::MAX));
        let mut reading = CoarseReading::default();
        reading.add(&times);
        assert_eq!(reading.percentile(50), Some(Duration::from_nanos(7 << 29)));
    }
}
