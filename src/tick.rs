//! Our own point in time: nanoseconds since the machine started.
//!
//! Decisions (`target`, later `cache` and `access`) take a [`Tick`] and never read a clock, so the same
//! code runs under tests and in a simulator. Reading the clock is `net::deadline`'s business.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Nanoseconds since the machine started; good for 584 years.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Tick(pub u64);

impl Tick {
    /// The start of the machine: before anything of ours.
    pub const ZERO: Tick = Tick(0);
    /// A point no clock reaches.
    pub const NEVER: Tick = Tick(u64::MAX);

    /// This point plus `span`; stops at [`Tick::NEVER`] instead of wrapping.
    #[must_use]
    pub fn after(self, span: Duration) -> Tick {
        Tick(self.0.saturating_add(nanos(span)))
    }

    /// The time from `earlier` to this point; zero when `earlier` is later.
    #[must_use]
    pub fn since(self, earlier: Tick) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

/// Whole nanoseconds of `span`, saturating at `u64::MAX`.
#[must_use]
pub fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_saturates_at_both_ends() {
        assert_eq!(Tick::NEVER.after(Duration::from_secs(1)), Tick::NEVER);
        assert_eq!(Tick(5).since(Tick(9)), Duration::ZERO);
        assert_eq!(Tick(5).after(Duration::from_nanos(7)), Tick(12));
        assert_eq!(nanos(Duration::MAX), u64::MAX);
    }
}
