//! When requests come: by themselves, at random moments, whatever the answers before them take (a Poisson process). So a target
//! that gets slow is asked as often as before, as a site is by people who don't know of each other.

use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

/// The moments, counted from the start.
#[derive(Debug)]
pub(super) struct DemoArrivals {
    /// From one to the next, on average, in seconds.
    gap: f64,
    latest: Duration,
    chance: StdRng,
}

impl DemoArrivals {
    /// So many a second, more than none.
    pub(super) fn new(per_second: u32, seed: u64) -> DemoArrivals {
        let gap = 1.0 / f64::from(per_second.max(1));
        DemoArrivals { gap, latest: Duration::ZERO, chance: StdRng::seed_from_u64(seed) }
    }
}

impl Iterator for DemoArrivals {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        // Above 0, so that its logarithm is a number.
        let left = 1.0 - self.chance.random::<f64>();
        self.latest += Duration::from_secs_f64(-left.ln() * self.gap);
        Some(self.latest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_come_at_their_rate_at_moments_that_nobody_knows_beforehand() {
        for rate in [1, 50, 10_000] {
            let moments: Vec<Duration> = DemoArrivals::new(rate, 7).take(20_000).collect();
            assert!(moments.is_sorted());
            let mean = moments[19_999].as_secs_f64() / 20_000.0 * f64::from(rate);
            assert!((0.97..1.03).contains(&mean), "{rate}: {mean} of the gap that was asked for");
            let gaps = moments.windows(2).map(|pair| (pair[1] - pair[0]).as_secs_f64() * f64::from(rate));
            let long = gaps.filter(|gap| *gap > 1.0).count();
            // One in e is longer than the mean.
            assert!((7_000..7_700).contains(&long), "{rate}: {long}");
        }
        let other: Vec<Duration> = DemoArrivals::new(50, 8).take(3).collect();
        assert_ne!(DemoArrivals::new(50, 7).take(3).collect::<Vec<_>>(), other);
    }
}
