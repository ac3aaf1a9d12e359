//! What a backend's attempts came to, added up: what outlier detection goes by.
//!
//! One word, and one addition for each attempt. It only ever grows, and wraps: whoever wants to know what came in a
//! second subtracts two readings. That is right in every field as long as none of them overflows in between, and the
//! difference of two sums says the same wherever they began.
//!
//! Latencies are added as logarithms, so their mean is the geometric one. One request of a minute among a thousand of a
//! millisecond does not move it, a backend that takes twice as long for everything moves it as much as any other, and a
//! logarithm is small enough to share a word.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::tick::nanos;

use core::time::Duration;

/// Attempts stand in the lowest bits, errors above them, the sum of logarithms on top, where it may overflow into
/// nothing.
const FIELD_BITS: u32 = 20;
const FIELD: u64 = (1 << FIELD_BITS) - 1;
const ERROR: u64 = 1 << FIELD_BITS;
const SUM_SHIFT: u32 = 2 * FIELD_BITS;
const SUM_BITS: u32 = u64::BITS - SUM_SHIFT;

/// Steps of a logarithm for each doubling, as a power of two.
const STEP_BITS: u32 = 3;
/// The shortest and the longest latency that are told from shorter and longer ones: 66 µs and 275 s.
const SHORTEST: u64 = 1 << 16;
const LONGEST: u64 = 1 << 38;
/// Steps from the shortest to the longest.
const MOST_STEPS: u64 = 22 << STEP_BITS;
/// The mantissa's bits of an f32.
const MANTISSA: u32 = 23;
/// What the shortest would be without an offset.
const OFFSET: u32 = (127 + 16) << STEP_BITS;

/// More attempts than that in a reading may have added up to more than fits.
const MOST_TIMED: u32 = ((1_u64 << SUM_BITS) / (MOST_STEPS + 1)) as u32;

/// Steps above [`SHORTEST`]; between two powers of two on the straight line.
#[inline]
fn steps(latency: Duration) -> u64 {
    // An f32 is a logarithm already: its exponent, and the line between two of them.
    let bits = (nanos(latency).clamp(SHORTEST, LONGEST) as i64 as f32).to_bits();
    u64::from((bits >> (MANTISSA - STEP_BITS)) - OFFSET)
}

/// What a backend's attempts came to, over all threads.
#[derive(Debug, Default)]
pub(in crate::targets) struct AttemptCounts(AtomicU64);

impl AttemptCounts {
    /// Adds an attempt: whether it was an error, and how long it took to the first byte of its answer, or to its end.
    #[inline]
    pub(in crate::targets) fn note(&self, error: bool, latency: Duration) {
        let error = if error { ERROR } else { 0 };
        self.0.fetch_add(steps(latency) << SUM_SHIFT | error | 1, Ordering::Relaxed);
    }

    /// Makes an error of an attempt that was added as none: its answer broke off.
    pub(in crate::targets) fn note_broken(&self) {
        self.0.fetch_add(ERROR, Ordering::Relaxed);
    }

    /// The sum so far.
    pub(in crate::targets) fn read(&self) -> Reading {
        Reading(self.0.load(Ordering::Relaxed))
    }
}

/// A counts at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::targets) struct Reading(u64);

impl Reading {
    /// What came since an earlier reading. Right for up to a million attempts.
    pub(in crate::targets) fn since(self, before: Reading) -> Counts {
        let word = self.0.wrapping_sub(before.0);
        let field = |shift: u32| u32::try_from(word >> shift & FIELD).expect("20 bits");
        let attempts = field(0);
        // A broken answer may be counted in another second than its head, or twice.
        let errors = field(FIELD_BITS).min(attempts);
        let timed = if attempts > MOST_TIMED { 0 } else { attempts };
        let steps = if timed == 0 { 0 } else { word >> SUM_SHIFT };
        Counts { attempts, errors, timed, steps }
    }
}

/// What attempts came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::targets) struct Counts {
    pub(in crate::targets) attempts: u32,
    pub(in crate::targets) errors: u32,
    /// Attempts of which the latency is known; no more than there are attempts.
    pub(in crate::targets) timed: u32,
    /// Their latencies, in steps.
    pub(in crate::targets) steps: u64,
}

impl Counts {
    /// Both together.
    #[must_use]
    pub(in crate::targets) fn and(self, other: Counts) -> Counts {
        Counts {
            attempts: self.attempts.saturating_add(other.attempts),
            errors: self.errors.saturating_add(other.errors),
            timed: self.timed.saturating_add(other.timed),
            steps: self.steps.saturating_add(other.steps),
        }
    }

    /// The geometric mean of the latencies, in doublings of the shortest one; `None`: nothing is known.
    pub(in crate::targets) fn doublings(self) -> Option<f64> {
        (self.timed > 0).then(|| self.steps as f64 / f64::from(self.timed) / f64::from(1 << STEP_BITS))
    }
}

/// The latency that is so many doublings of the shortest.
pub(in crate::targets) fn latency(doublings: f64) -> Duration {
    let doublings = doublings.clamp(0.0, 22.0);
    // Half a step, which cutting off has taken.
    let rest = doublings.fract() + 0.5 / f64::from(1 << STEP_BITS);
    Duration::from_secs_f64(SHORTEST as f64 * doublings.floor().exp2() * (1.0 + rest) / 1e9)
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn millis(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn what_came_between_two_readings_is_right_in_every_field() {
        let attempt_counts = AttemptCounts::default();
        // Wherever it begins, also right before all fields wrap.
        for start in [0, u64::MAX, 1 << 39, (1 << 40) - 1, u64::MAX - (1 << 20)] {
            attempt_counts.0.store(start, Ordering::Relaxed);
            let before = attempt_counts.read();
            for error in [false, true, false, false] {
                attempt_counts.note(error, millis(1));
            }
            attempt_counts.note_broken();
            let counts = attempt_counts.read().since(before);
            assert_eq!((counts.attempts, counts.errors, counts.timed), (4, 2, 4));
            assert_eq!(counts.steps, 4 * steps(millis(1)));
        }
    }

    #[test]
    fn no_more_errors_than_attempts_and_no_latency_that_did_not_fit() {
        let attempt_counts = AttemptCounts::default();
        attempt_counts.note_broken();
        assert_eq!(attempt_counts.read().since(Reading::default()).errors, 0);
        let many = Reading(u64::from(MOST_TIMED) + 1).since(Reading::default());
        assert_eq!((many.attempts, many.timed, many.doublings()), (MOST_TIMED + 1, 0, None));
        let most = u64::from(MOST_TIMED);
        let word = (most * MOST_STEPS) << SUM_SHIFT | most;
        assert_eq!(Reading(word).since(Reading::default()).steps, most * MOST_STEPS);
    }

    #[test]
    fn a_mean_is_within_a_tenth_of_what_was_added() {
        for nanos in [70_000, 100_000, 999_999, 1_000_001, 31_000_000, 480_000_000, 60_000_000_000_u64] {
            let attempt_counts = AttemptCounts::default();
            let added = Duration::from_nanos(nanos);
            (0..10).for_each(|_| attempt_counts.note(false, added));
            let mean =
                latency(attempt_counts.read().since(Reading::default()).doublings().expect("ten of them"));
            let ratio = mean.as_secs_f64() / added.as_secs_f64();
            assert!((0.9..1.1).contains(&ratio), "{added:?} as {mean:?}");
        }
    }

    #[test]
    fn steps_grow_with_the_latency_and_stay_in_their_bounds() {
        assert_eq!([Duration::ZERO, Duration::from_nanos(SHORTEST)].map(steps), [0, 0]);
        assert_eq!([Duration::from_nanos(LONGEST), Duration::MAX].map(steps), [MOST_STEPS; 2]);
        let (mut nanos, mut last) = (SHORTEST, 0);
        while nanos < LONGEST {
            let now = steps(Duration::from_nanos(nanos));
            assert!(now >= last && now <= MOST_STEPS);
            (last, nanos) = (now, nanos + nanos / 40);
        }
        assert_eq!(steps(millis(2)) - steps(millis(1)), 8, "a doubling is eight steps");
    }
}
