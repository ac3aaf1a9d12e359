//! Points in time as people write them.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::tick::{Tick, nanos};

/// By so much the two clocks may drift apart before the difference is taken anew, in nanoseconds.
const DRIFT: u64 = 20_000_000;

/// What lies between a [`Tick`] and the time since 1970. It stays the same until the clock is set or has drifted, so that a point in
/// time is told the same each time it is told.
#[derive(Debug, Default)]
pub struct WallClock(AtomicU64);

impl WallClock {
    /// At `now`, when it is `unix` since 1970.
    #[must_use]
    pub fn at(&self, now: Tick, unix: Duration) -> WallTime {
        let between = nanos(unix).saturating_sub(now.0);
        let known = self.0.load(Ordering::Relaxed);
        if known.abs_diff(between) > DRIFT {
            self.0.store(between, Ordering::Relaxed);
            return WallTime(between);
        }
        WallTime(known)
    }
}

/// The same at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WallTime(u64);

impl WallTime {
    /// A point as milliseconds since 1970.
    #[must_use]
    pub fn ms(self, at: Tick) -> u64 {
        self.0.saturating_add(at.0) / 1_000_000
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_point_is_told_the_same_each_time_until_the_clock_is_set() {
        let (clock, point) = (WallClock::default(), Tick(5_000_000));
        let now = |nanos: u64, off: u64| {
            clock.at(Tick(nanos), Duration::from_nanos(1_000_000_000_000 + nanos + off)).ms(point)
        };
        let told = now(7_000_000, 999_999);
        for later in 1..50_u64 {
            // The one clock was read a little before or after the other.
            assert_eq!(now(7_000_000 + later * 1_000_003, 999_999 - later * 7_001 % 400_000), told);
        }
        assert_eq!(now(9_000_000, 3_600_000_000_000), told + 3_600_000);
    }
}
