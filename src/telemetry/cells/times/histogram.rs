//! Durations in log-linear buckets: one relaxed store per value, a bounded error at any size.
//!
//! Every power of two is cut into eight equal buckets, so a bucket is at most 12.5 % wider than its lower
//! edge. Below 512 ns buckets are 64 ns wide; from 2^48 ns (78 hours) on everything is in the last one.

use std::time::Duration;

use super::super::counter::Counter;

/// Width of the narrowest buckets: 2^6 = 64 ns.
const UNIT_BITS: u32 = 6;
/// Eight buckets per power of two.
const PART_BITS: u32 = 3;
/// Values from 2^48 ns on share the last bucket.
const TOP_BITS: u32 = 48;
/// How many buckets a histogram has.
pub const BUCKETS: usize = ((TOP_BITS - UNIT_BITS - PART_BITS + 1) << PART_BITS) as usize;

/// Durations counted in buckets, written by one worker.
#[derive(Debug)]
pub struct Histogram {
    buckets: [Counter; BUCKETS],
    /// Nanoseconds in all.
    sum: Counter,
}

impl Default for Histogram {
    fn default() -> Self {
        Histogram { buckets: std::array::from_fn(|_| Counter::default()), sum: Counter::default() }
    }
}

impl Histogram {
    /// Counts a time of `nanos` nanoseconds. Only the owning worker calls this.
    pub fn record(&self, nanos: u64) {
        self.record_at(nanos);
    }

    /// The same; gives the bucket.
    #[inline]
    pub(in crate::telemetry::cells) fn record_at(&self, nanos: u64) -> usize {
        let place = place(nanos);
        self.buckets[place].increment();
        self.sum.add(nanos);
        place
    }

    /// Forgets what it holds. Only the owning worker calls this.
    pub fn clear(&self) {
        self.buckets.iter().for_each(Counter::clear);
        self.sum.clear();
    }
}

/// What one or several histograms held when they were read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Distribution {
    buckets: Vec<u64>,
    sum: u64,
}

impl Default for Distribution {
    fn default() -> Self {
        Distribution { buckets: vec![0; BUCKETS], sum: 0 }
    }
}

impl Distribution {
    /// Adds what `histogram` holds now.
    pub fn add(&mut self, histogram: &Histogram) {
        for (total, bucket) in self.buckets.iter_mut().zip(&histogram.buckets) {
            *total += bucket.value();
        }
        self.sum = self.sum.wrapping_add(histogram.sum.value());
    }

    /// Adds another reading.
    pub fn merge(&mut self, other: &Distribution) {
        for (total, more) in self.buckets.iter_mut().zip(&other.buckets) {
            *total += more;
        }
        self.sum = self.sum.wrapping_add(other.sum);
    }

    /// What has come since `before`. That of somebody else counts from zero.
    #[must_use]
    pub fn since(&self, before: &Distribution) -> Distribution {
        let is_later = self.buckets.iter().zip(&before.buckets).all(|(now, then)| now >= then);
        if !is_later {
            return self.clone();
        }
        let buckets = self.buckets.iter().zip(&before.buckets).map(|(now, then)| now - then).collect();
        Distribution { buckets, sum: self.sum.wrapping_sub(before.sum) }
    }

    /// How many values were counted.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }

    /// All values together, exact.
    #[must_use]
    pub fn sum(&self) -> Duration {
        Duration::from_nanos(self.sum)
    }

    /// The value that a share of `quantile` (0 to 1, clamped) of all values does not exceed; `None` when
    /// there are none. It is the upper edge of the true value's bucket: never too small, at most 12.5 % (or
    /// 64 ns) too large; from 78 hours on just "78 hours".
    #[must_use]
    pub fn quantile(&self, quantile: f64) -> Option<Duration> {
        Some(Duration::from_nanos(lower_edge(self.bucket_of(quantile)? + 1) - 1))
    }

    /// The same as the middle of its bucket: at most 6.25 % (or 32 ns) too small or too large.
    #[must_use]
    pub fn middle(&self, quantile: f64) -> Option<Duration> {
        let place = self.bucket_of(quantile)?;
        Some(Duration::from_nanos(u64::midpoint(lower_edge(place), lower_edge(place + 1))))
    }

    fn bucket_of(&self, quantile: f64) -> Option<usize> {
        let count = self.count();
        if count == 0 {
            return None;
        }
        #[expect(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a rank may be off by one from 2^53 values on; it is clamped to 1..=count"
        )]
        let rank = ((count as f64 * quantile).ceil() as u64).clamp(1, count);
        let mut seen = 0;
        self.buckets.iter().position(|&bucket| {
            seen += bucket;
            seen >= rank
        })
    }

    /// Every bucket that holds something, smallest first: its upper edge (exclusive) and its count.
    pub fn buckets(&self) -> impl Iterator<Item = (Duration, u64)> {
        let all = self.buckets.iter().enumerate().filter(|&(_, &count)| count > 0);
        all.map(|(place, &count)| (Duration::from_nanos(lower_edge(place + 1)), count))
    }
}

/// The bucket of a value.
#[inline]
pub(super) fn place(nanos: u64) -> usize {
    let units = nanos.min((1 << TOP_BITS) - 1) >> UNIT_BITS;
    let octave = units.checked_ilog2().unwrap_or(0).saturating_sub(PART_BITS);
    // Below eight units the bucket is the number of units; above, the leading four bits choose: the top
    // bit is always set there and carries into the number of the octave.
    let place = (u64::from(octave) << PART_BITS) + (units >> octave);
    // At most BUCKETS - 1, because `units` is below 2^(TOP_BITS - UNIT_BITS).
    usize::try_from(place).unwrap_or(BUCKETS - 1)
}

/// The smallest value of bucket `place`, in nanoseconds; `BUCKETS` gives the end of the last one.
fn lower_edge(place: usize) -> u64 {
    let parts = 1 << PART_BITS;
    let octave = (place >> PART_BITS).saturating_sub(1);
    let units = if place < parts { place } else { place % parts + parts };
    (units as u64) << octave << UNIT_BITS
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::tick::nanos;

    #[test]
    fn buckets_touch_and_end_at_the_top() {
        assert_eq!(lower_edge(0), 0);
        assert_eq!(lower_edge(BUCKETS), 1 << TOP_BITS);
        for number in 0..BUCKETS {
            assert_eq!(place(lower_edge(number)), number);
            assert_eq!(place(lower_edge(number + 1) - 1), number);
        }
        assert_eq!(place(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn an_empty_reading_has_no_quantile() {
        let empty = Distribution::default();
        assert_eq!((empty.count(), empty.sum(), empty.quantile(0.5)), (0, Duration::ZERO, None));
        assert_eq!(empty.buckets().count(), 0);
    }

    fn spread() -> impl Strategy<Value = u64> {
        (0..TOP_BITS, any::<u64>()).prop_map(|(bits, noise)| (1 << bits) | (noise & ((1 << bits) - 1)))
    }

    proptest! {
        #[test]
        fn a_value_is_within_an_eighth_of_its_bucket(value in spread()) {
            let place = place(value);
            let (low, high) = (lower_edge(place), lower_edge(place + 1));
            prop_assert!(low <= value && value < high);
            prop_assert!((high - low) <= (low / 8).max(64), "{low}..{high}");
        }

        #[test]
        fn quantiles_are_the_exact_ones_or_an_eighth_above(
            mut values in prop::collection::vec(spread(), 1..200),
            share in 0.0..=1.0_f64,
        ) {
            let (left, right) = (Histogram::default(), Histogram::default());
            for (number, &value) in values.iter().enumerate() {
                let half = if number % 2 == 0 { &left } else { &right };
                half.record(value);
            }
            let (mut reading, mut other) = (Distribution::default(), Distribution::default());
            reading.add(&left);
            other.add(&right);
            reading.merge(&other);
            values.sort_unstable();
            prop_assert_eq!(reading.count(), values.len() as u64);
            prop_assert_eq!(reading.sum(), Duration::from_nanos(values.iter().sum()));
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "small and positive")]
            let rank = ((values.len() as f64 * share).ceil() as usize).max(1);
            let exact = values[rank - 1];
            let told = nanos(reading.quantile(share).expect("not empty"));
            prop_assert!(told >= exact && told - exact <= (exact / 8).max(64), "{exact} told as {told}");
        }
    }
}
