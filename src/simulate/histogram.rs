//! How long requests took: counted in buckets that are 1 ÷ 128 of their value wide.

use core::time::Duration;

/// Buckets for each power of two.
const STEPS: u64 = 128;
/// Their logarithm.
const BITS: u32 = STEPS.trailing_zeros();
/// Values below `STEPS` have a bucket each, and each of the powers above as many.
const BUCKETS: usize = ((u64::BITS - BITS + 1) as usize) * STEPS as usize;

/// Times in nanoseconds. The mean and the greatest are exact, a quantile is right to 0.4 %.
#[derive(Debug)]
pub(super) struct LatencyHistogram {
    buckets: Vec<u64>,
    count: u64,
    sum: u128,
    max: u64,
}

impl LatencyHistogram {
    pub(super) fn new() -> LatencyHistogram {
        LatencyHistogram { buckets: vec![0; BUCKETS], count: 0, sum: 0, max: 0 }
    }

    pub(super) fn add(&mut self, nanos: u64) {
        self.buckets[bucket(nanos)] += 1;
        self.count += 1;
        self.sum += u128::from(nanos);
        self.max = self.max.max(nanos);
    }

    /// Zero when nothing was counted; so are the others.
    pub(super) fn mean(&self) -> Duration {
        let mean = self.sum / u128::from(self.count.max(1));
        Duration::from_nanos(u64::try_from(mean).unwrap_or(u64::MAX))
    }

    pub(super) fn max(&self) -> Duration {
        Duration::from_nanos(self.max)
    }

    /// The time that `share` of all do not exceed.
    pub(super) fn quantile(&self, share: f64) -> Duration {
        let rank = ((self.count as f64 * share).ceil() as u64).clamp(1, self.count.max(1));
        let mut seen = 0;
        let found = self.buckets.iter().position(|count| {
            seen += count;
            seen >= rank
        });
        Duration::from_nanos(found.map_or(0, middle).min(self.max))
    }
}

/// The bucket of a value.
fn bucket(value: u64) -> usize {
    let shift = (u64::BITS - value.leading_zeros()).saturating_sub(BITS + 1);
    // Below 2 × STEPS values count by themselves; above, their leading BITS + 1 bits do.
    (u64::from(shift) * STEPS + (value >> shift)) as usize
}

/// The value in the middle of a bucket.
fn middle(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    let shift = (bucket / STEPS).saturating_sub(1);
    let start = (bucket - shift * STEPS) << shift;
    start + ((1 << shift) >> 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_lies_near_the_middle_of_its_bucket() {
        let mut value: u64 = 1;
        let mut last = 0;
        while value < u64::MAX / 3 {
            for near in [value - 1, value, value + 1] {
                let error = middle(bucket(near)).abs_diff(near) as f64;
                assert!(error <= near as f64 * 0.004, "{near}");
            }
            assert!(bucket(value) >= last);
            last = bucket(value);
            value += value / 50 + 1;
        }
        assert!(bucket(u64::MAX) < BUCKETS);
    }

    #[test]
    fn quantiles_of_known_values() {
        let mut histogram = LatencyHistogram::new();
        assert_eq!((histogram.mean(), histogram.quantile(0.99)), (Duration::ZERO, Duration::ZERO));
        (1..=1000).for_each(|n| histogram.add(n * 1000));
        assert_eq!(histogram.mean(), Duration::from_nanos(500_500));
        assert_eq!(histogram.max(), Duration::from_millis(1));
        for (share, expected) in [(0.5, 500_000.0), (0.99, 990_000.0), (1.0, 1_000_000.0), (0.0, 1000.0)] {
            let found = histogram.quantile(share).as_nanos() as f64;
            assert!((found / expected - 1.0).abs() < 0.005, "{share}: {found}");
        }
    }
}
