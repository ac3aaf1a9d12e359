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

/// Due probes in a row that live traffic can stand for, where a probe only connects: it is probed every fourth interval.
const PUT_OFF: u32 = 3;
/// The same where a probe asks. What it asks may be about something that no request shows: a backend that wants to be left
/// alone says so there first.
const PUT_OFF_ASKING: u32 = 1;
/// The shortest time between the end of a probe and the next one.
const BREATH: Duration = Duration::from_millis(100);

/// What live traffic came to in a stretch of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Evidence {
    /// Attempts that ended, or got the head of an answer.
    pub attempts: u32,
    /// Those of them that failed by the backend's fault.
    pub errors: u32,
    /// How soon they were answered, in the geometric mean; `None`: unknown.
    pub latency: Option<Duration>,
}

impl Evidence {
    /// Whether it shows a backend that works. One that takes longer than a probe may (`timeout`) does not: who leaves
    /// before there is an answer counts as an attempt without an error.
    #[must_use]
    pub fn is_good(&self, timeout: Duration) -> bool {
        self.attempts > 0 && self.errors == 0 && self.latency.is_some_and(|latency| latency < timeout)
    }
}

/// Whether live traffic stands for a probe that is due, `put_off` in a row of which it has stood for already. `asks`: the
/// probe is more than a connect; `is_good`: what traffic showed since the last one was due.
#[must_use]
pub fn stands_for(put_off: u32, asks: bool, is_good: bool) -> bool {
    is_good && put_off < if asks { PUT_OFF_ASKING } else { PUT_OFF }
}

/// In what time a backend is to be probed that fails requests: at once, but never twice within half an `interval` for this
/// reason. `since_probe`: the time since the end of the latest probe; `since_call`: since the start of the latest that was
/// called for so, if there was one.
#[must_use]
pub fn call(interval: Duration, since_probe: Duration, since_call: Option<Duration>) -> Duration {
    let breath = BREATH.saturating_sub(since_probe);
    let pace = since_call.map_or(Duration::ZERO, |since| (interval / 2).saturating_sub(since));
    breath.max(pace)
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

    #[test]
    fn traffic_stands_for_three_connects_or_one_question_in_a_row_while_it_is_good() {
        let row = |asks, good: &[bool]| -> usize {
            (0..).zip(good).take_while(|(put_off, is_good)| stands_for(*put_off, asks, **is_good)).count()
        };
        assert_eq!((row(false, &[true; 9]), row(true, &[true; 9])), (3, 1));
        assert_eq!((row(false, &[true, false, true]), row(true, &[false, true])), (1, 0));
        // With the longest jitter it is still less than five intervals.
        let longest = wait(INTERVAL, Duration::ZERO, false, 1.0) * (PUT_OFF + 1);
        assert!(longest < INTERVAL * 5);
    }

    #[test]
    fn only_answers_without_an_error_and_in_time_are_good() {
        let millis = Duration::from_millis;
        let good = |attempts, errors, latency| Evidence { attempts, errors, latency }.is_good(millis(1000));
        assert!(good(1, 0, Some(millis(999))) && good(9, 0, Some(millis(1))));
        assert!(!good(0, 0, None) && !good(9, 1, Some(millis(1))) && !good(9, 0, Some(millis(1000))));
        assert!(!good(9, 0, None), "more than could be added up");
    }

    #[test]
    fn trouble_is_looked_at_at_once_but_not_again_within_half_an_interval() {
        let millis = |probe, called: Option<u64>| {
            call(INTERVAL, Duration::from_millis(probe), called.map(Duration::from_millis)).as_millis()
        };
        assert_eq!([0, 30, 100, 900].map(|probe| millis(probe, None)), [100, 70, 0, 0]);
        assert_eq!([10, 400, 999, 1000, 9000].map(|called| millis(500, Some(called))), [990, 600, 1, 0, 0]);
        assert_eq!(millis(5, Some(1000)), 95);
    }
}
