//! When the next probe is due.
//!
//! The first one is due at once; `probe` asks here for every later one. Randomness is passed in.

// From core, which has no clock that could be read by mistake.
use core::time::Duration;

/// The share of an interval by which a probe may come early or late, so that backends which were started
/// together are not probed together for ever.
const JITTER: f64 = 0.1;

/// How long to wait between the end of a probe that took `spent` and the start of the next.
///
/// Usually `interval` ± 10 %. While the latest probe contradicts the verdict in force (`in_doubt`) the
/// pace is half an interval from start to start: then a backend that answers wrongly, or hangs for a
/// timeout of at most half an interval, is out within `fall` × `interval`. `roll` is a random number from
/// 0 to 1; anything outside counts as the nearer end.
#[must_use]
pub fn wait(interval: Duration, spent: Duration, in_doubt: bool, roll: f64) -> Duration {
    let roll = if roll.is_nan() { 0.5 } else { roll.clamp(0.0, 1.0) };
    let seconds = interval.as_secs_f64() * (1.0 - JITTER + 2.0 * JITTER * roll);
    // Only an interval of centuries does not fit.
    let jittered = Duration::try_from_secs_f64(seconds).unwrap_or(interval);
    if in_doubt { (jittered / 2).saturating_sub(spent) } else { jittered }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERVAL: Duration = Duration::from_secs(2);

    #[test]
    fn jitter_stays_within_ten_percent() {
        let millis = |roll| wait(INTERVAL, Duration::from_secs(1), false, roll).as_millis();
        assert_eq!([0.0, 0.25, 0.5, 1.0].map(millis), [1800, 1900, 2000, 2200]);
        assert_eq!([-1.0, 2.0, f64::NAN].map(millis), [1800, 2200, 2000]);
    }

    #[test]
    fn doubt_halves_the_pace_from_start_to_start() {
        let millis = |spent| wait(INTERVAL, Duration::from_millis(spent), true, 0.5).as_millis();
        assert_eq!([0, 400, 1000, 5000].map(millis), [1000, 600, 0, 0]);
    }

    #[test]
    fn a_hung_backend_is_out_within_fall_times_interval() {
        let (timeout, fall) = (INTERVAL / 2, 3);
        for roll in [0.0, 0.5, 1.0] {
            let mut elapsed = wait(INTERVAL, Duration::ZERO, false, roll) + timeout;
            for _ in 1..fall {
                elapsed += wait(INTERVAL, timeout, true, roll) + timeout;
            }
            assert!(elapsed <= INTERVAL * fall, "{elapsed:?} at {roll}");
        }
    }
}
