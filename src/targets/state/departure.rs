//! How somebody leaves: from when on, and by when the tunnels to it have ended.
//!
//! Invariants:
//!
//! 1. Whoever makes a backend leave, or lets it stay after all, changes its word first and tells the workers then. What
//!    workers are told says only "look": however often, and in whichever order, the last look sees the last word.
//! 2. A worker lists a tunnel first and looks at the word of its backend then. So a tunnel that begins while a backend goes
//!    is seen by the worker's look, or has seen the word itself, or both.
//! 3. Of two reasons to leave the one that is over first counts.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::tick::{Tick, nanos};

/// At the end of a window nothing new is begun: whoever is told then has time to say goodbye.
const ROOM: Duration = Duration::from_millis(500);

/// From when on somebody leaves, and within which time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Departure {
    /// It began.
    pub since: Tick,
    /// How long it may take.
    pub window: Duration,
}

impl Departure {
    /// When nobody is left.
    #[must_use]
    pub fn end(self) -> Tick {
        self.since.after(self.window)
    }

    /// What is left of it at `now`.
    #[must_use]
    pub fn rest(self, now: Tick) -> Departure {
        let since = self.since.max(now);
        Departure { since, window: self.end().since(since) }
    }

    /// When the last one is told.
    fn last(self) -> Tick {
        self.since.after(self.window.saturating_sub(ROOM.min(self.window / 8)))
    }

    /// When one of `count` is told, which are numbered from 0: they are spread evenly. `phase`, of 2³², says where in its own
    /// share of the time; it is the same for all of them, and another one on each worker.
    #[must_use]
    pub fn moment(self, number: usize, count: usize, phase: u32) -> Tick {
        let span = u128::from(nanos(self.last().since(self.since)));
        let place = (number as u128) << 32 | u128::from(phase);
        let after = span * place / ((count.max(1) as u128) << 32);
        Tick(self.since.0.saturating_add(u64::try_from(after).unwrap_or(u64::MAX))).min(self.last())
    }

    /// When one is told that was not there yet as the others got their moments, at `now`.
    #[must_use]
    pub fn late(self, now: Tick, phase: u32) -> Tick {
        let from = self.since.max(now);
        let left = u128::from(nanos(self.last().since(from)));
        Tick(from.0.saturating_add(u64::try_from((left * u128::from(phase)) >> 32).unwrap_or(u64::MAX)))
    }
}

/// How somebody leaves, if it does. Only who begins a tunnel reads it, and control.
#[derive(Debug, Default)]
pub(in crate::targets) struct DepartureWord(Mutex<Option<Departure>>);

impl DepartureWord {
    pub(in crate::targets) fn get(&self) -> Option<Departure> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Leaves in this way, unless it is over sooner anyway.
    pub(in crate::targets) fn hasten(&self, departure: Departure) {
        let mut word = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if word.is_none_or(|word| departure.end() < word.end()) {
            *word = Some(departure);
        }
    }

    /// Stays after all.
    pub(in crate::targets) fn stay(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn within(seconds: u32) -> Departure {
        Departure { since: Tick(7_000_000_000), window: seconds * SECOND }
    }

    #[test]
    fn of_two_reasons_the_one_that_is_over_first_counts() {
        let word = DepartureWord::default();
        assert_eq!(word.get(), None);
        word.hasten(within(30));
        word.hasten(within(60));
        assert_eq!(word.get(), Some(within(30)));
        word.hasten(within(0));
        assert_eq!(word.get(), Some(within(0)));
        word.stay();
        assert_eq!(word.get(), None, "until it stays after all");
    }

    #[test]
    fn five_thousand_on_two_workers_are_spread_evenly_over_a_minute() {
        let mut by_second = [0u32; 60];
        for (count, phase) in [(2_400, 1 << 30), (2_600, u32::MAX)] {
            for number in 0..count {
                let after = within(60).moment(number, count, phase).since(within(60).since);
                by_second[after.as_secs() as usize] += 1;
            }
        }
        let most = by_second.iter().max().expect("sixty");
        assert!(f64::from(*most) < 1.05 * 5_000.0 / 60.0, "{by_second:?}");
        assert!(by_second[59] > 30, "{by_second:?}");
    }

    #[test]
    fn without_a_window_everybody_is_told_at_once() {
        let now = within(0);
        assert_eq!((now.moment(3, 5, u32::MAX), now.end()), (now.since, now.since));
        assert_eq!(now.late(now.since.after(SECOND), u32::MAX), now.since.after(SECOND));
    }

    proptest! {
        #[test]
        fn moments_are_in_order_and_within_the_window(
            window in 0u64..86_400_000, count in 1usize..100_000, phase: u32, at in 0u64..200_000_000
        ) {
            let departure = Departure { since: Tick(5), window: Duration::from_millis(window) };
            let moments = [0, count / 2, count - 1].map(|number| departure.moment(number, count, phase));
            prop_assert!(moments.is_sorted() && moments[0] >= departure.since && moments[2] <= departure.last());
            let now = departure.since.after(Duration::from_millis(at));
            let late = departure.late(now, phase);
            prop_assert!(late >= now && late <= departure.last().max(now), "{late:?}");
        }
    }
}
