//! When a message that was not taken is sent again, and until when.

use std::time::Duration;

/// For so long a message is sent again and again. It begins when the event is told, and anew with each start of the process.
pub(super) const WINDOW: Duration = Duration::from_secs(15 * 60);
/// A message that a process finds at its start and that is older than this is no news.
pub(super) const AGE_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// Behind the first failure.
const FIRST: Duration = Duration::from_secs(1);
/// No pause is longer, but for chance.
const LONGEST: Duration = Duration::from_secs(30);

/// The pause behind so many failures in a row: it doubles. `chance` is from 0 to 1 and moves it by a quarter, so that messages which
/// failed together do not come back together.
#[must_use]
pub(super) fn pause(failures: u32, chance: f64) -> Duration {
    let doubled = FIRST.saturating_mul(1 << failures.saturating_sub(1).min(10));
    doubled.min(LONGEST).mul_f64(0.75 + chance.clamp(0.0, 1.0) / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_a_bound_and_chance_moves_them_by_a_quarter() {
        let pauses: Vec<u64> = [0, 1, 2, 3, 4, 5, 6, u32::MAX]
            .map(|failures| u64::try_from(pause(failures, 0.5).as_millis()).expect("short"))
            .to_vec();
        assert_eq!(pauses, [1_000, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000]);
        assert_eq!((pause(1, 0.0).as_millis(), pause(1, 1.0).as_millis()), (750, 1_250));
        assert_eq!(pause(1, f64::INFINITY), pause(1, 1.0));
    }
}
