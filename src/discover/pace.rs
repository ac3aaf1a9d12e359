//! When a name is asked for again.

use std::time::Duration;

/// The pause after a first failure; each further one in a row doubles it.
const FIRST: Duration = Duration::from_secs(1);
/// The longest pause after failures: who was away is noticed soon when he is back.
const LONGEST: Duration = Duration::from_secs(10);

/// The bounds of a TTL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TtlBounds {
    /// At least.
    pub min: Duration,
    /// At most.
    pub max: Duration,
}

impl TtlBounds {
    /// The TTL as it counts.
    #[must_use]
    pub fn bound(&self, ttl: Duration) -> Duration {
        ttl.min(self.max).max(self.min)
    }

    /// After so many failures in a row, from 1.
    #[must_use]
    pub fn after_failures(&self, failures: u32) -> Duration {
        let doubled = FIRST.saturating_mul(1 << failures.saturating_sub(1).min(8));
        // Whoever wants answers every 100 ms wants to know of the next one soon.
        doubled.min(LONGEST).min(self.max.max(self.min))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_and_end_at_ten_seconds_or_at_the_longest_ttl() {
        let bounds = TtlBounds { min: Duration::from_secs(1), max: Duration::from_mins(5) };
        let pauses = |bounds: TtlBounds| {
            [1, 2, 3, 4, 5, 90].map(|failures| bounds.after_failures(failures).as_millis())
        };
        assert_eq!(pauses(bounds), [1_000, 2_000, 4_000, 8_000, 10_000, 10_000]);
        let short = TtlBounds { min: Duration::from_millis(50), max: Duration::from_millis(200) };
        assert_eq!(pauses(short), [200; 6]);
    }

    #[test]
    fn a_ttl_is_kept_within_its_bounds() {
        let bounds = TtlBounds { min: Duration::from_secs(1), max: Duration::from_mins(5) };
        let of = |seconds| bounds.bound(Duration::from_secs(seconds)).as_secs();
        assert_eq!([0, 1, 30, 300, 86_400].map(of), [1, 1, 30, 300, 300]);
    }
}
