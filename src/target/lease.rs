//! The right to use a backend for one attempt.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use super::Backend;
use super::board::Wants;
use crate::tick::Tick;

/// Whoever leaves sooner says nothing about how long an answer takes.
const PATIENCE: Duration = Duration::from_millis(100);

/// What came of an attempt, as far as the backend is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It answered (or, on TCP, accepted): its ejection ends.
    Success,
    /// No connection could be opened to it: it is ejected.
    ConnectFailed,
    /// It took the connection and then failed. Breaker and outlier detection will count it.
    Failed,
    /// Not its doing: a local shortage, a client's abort. Nothing is learned.
    Neutral,
}

/// What the head of an answer says about the backend.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Heard {
    /// It did not do the work (5xx, 429). Algorithms that go by answers count it as a slow one.
    pub fault: bool,
    /// It is an error of the backend (5xx, but for those that are about the request). Outlier detection counts it.
    pub error: bool,
    /// The breaker counts it.
    pub failure: bool,
    /// How long the backend asks to be left alone.
    pub retry_after: Option<Duration>,
}

impl Heard {
    /// A good answer.
    pub const GOOD: Heard = Heard { fault: false, error: false, failure: false, retry_after: None };
}

/// The right to use a backend for one attempt: counted in flight until it is dropped.
///
/// [`Lease::finish`] says what came of it; dropping it without is [`Outcome::Neutral`].
#[derive(Debug)]
#[must_use = "a dropped lease no longer counts as in flight"]
pub struct Lease {
    backend: Arc<Backend>,
    picked: Tick,
    trial: bool,
    /// The board's total has it.
    counted: bool,
    /// An answer was noted.
    answered: Cell<bool>,
}

impl Lease {
    pub(super) fn new(backend: &Arc<Backend>, trial: bool, picked: Tick) -> Lease {
        backend.enter();
        Lease { backend: Arc::clone(backend), picked, trial, counted: false, answered: Cell::new(false) }
    }

    /// The same, in the board's total as well.
    pub(super) fn counted(mut self) -> Lease {
        if !self.counted {
            self.backend.board().count();
            self.counted = true;
        }
        self
    }

    /// The backend it is for.
    #[must_use]
    pub fn backend(&self) -> &Arc<Backend> {
        &self.backend
    }

    /// When the backend was chosen.
    #[must_use]
    pub fn picked(&self) -> Tick {
        self.picked
    }

    /// Whether this attempt finds out if an ejected backend is back. It should go out on a fresh
    /// connection: a pooled one says nothing about connecting.
    #[must_use]
    pub fn is_trial(&self) -> bool {
        self.trial
    }

    /// Notes that a fresh connection stands: that ends an ejection, which is about nothing else. Whether the
    /// request succeeds may turn out much later, for a tunnel in hours.
    pub fn note_connected(&self) {
        self.succeed();
    }

    fn succeed(&self) {
        if self.backend.ejection().succeed(self.picked) {
            self.backend.board().desk().refresh(&self.backend);
        }
    }

    /// Whether anybody wants to hear of answers: else [`Lease::note_answer`] does nothing.
    #[inline]
    #[must_use]
    pub fn is_heard(&self) -> bool {
        self.backend.board().is_for(Wants::Latency)
    }

    /// Notes that the head of an answer came at `now`, or on TCP that the connection stands: that is how soon the backend
    /// answers, and how well.
    #[inline]
    pub fn note_answer(&self, heard: Heard, now: Tick) {
        self.answered.set(true);
        self.backend.tally().note(heard.error, now.since(self.picked));
        if self.is_heard() {
            let answers = self.backend.answers();
            if heard.fault {
                answers.note_fault(heard.retry_after, now);
            } else {
                answers.note_good(now.since(self.picked), now);
            }
        }
    }

    /// Notes that an attempt on a connection came to nothing: by the backend's `fault`, or because nobody wanted to wait.
    fn note_end(&self, fault: bool, now: Tick) {
        let tally = self.backend.tally();
        let waited = now.since(self.picked);
        match (self.answered.get(), fault) {
            (true, true) => tally.note_broken(),
            (true, false) => {}
            (false, true) => tally.note(true, waited),
            // How long somebody has waited in vain is how long it takes, at least.
            (false, false) if waited >= PATIENCE => tally.note(false, waited),
            (false, false) => {}
        }
        self.note_failure(fault, now);
    }

    /// Tells whoever goes by answers that there is none, or only a part of one.
    fn note_failure(&self, fault: bool, now: Tick) {
        if self.is_heard() {
            let answers = self.backend.answers();
            if fault {
                answers.note_fault(None, now);
            } else if !self.answered.get() {
                answers.note_gone(now.since(self.picked), now);
            }
        }
    }

    /// Ends the attempt at `now` with `outcome`.
    pub fn finish(self, outcome: Outcome, now: Tick) {
        match outcome {
            Outcome::Success => self.succeed(),
            Outcome::ConnectFailed => {
                if self.backend.ejection().fail(self.trial, now) {
                    self.backend.board().desk().refresh(&self.backend);
                }
                self.note_failure(true, now);
            }
            Outcome::Failed => self.note_end(true, now),
            Outcome::Neutral => self.note_end(false, now),
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.backend.leave();
        let board = self.backend.board();
        if self.counted {
            board.discount();
        }
        if board.is_for(Wants::Order) {
            board.desk().weigh(&self.backend);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::model::{self, Balance};
    use crate::target::fixtures::{alone, host, target, unprobed};
    use crate::target::tally::{Reading, latency};

    #[test]
    fn a_lease_counts_once_whichever_way_it_ends() {
        let backend = Arc::new(alone(&unprobed(0), host("127.0.0.1", 80)));
        let first = Lease::new(&backend, false, Tick(1));
        let second = Lease::new(&backend, false, Tick(1));
        assert_eq!(backend.in_flight(), 2);
        first.finish(Outcome::Failed, Tick(2));
        assert_eq!(backend.in_flight(), 1);
        drop(second);
        assert_eq!(backend.in_flight(), 0);
        assert_eq!(backend.ejection().word().until(), None);
    }

    #[test]
    fn a_connection_that_stands_ends_the_ejection_before_the_attempt_has_ended() {
        let backend = Arc::new(alone(&unprobed(0), host("127.0.0.1", 80)));
        Lease::new(&backend, false, Tick(100)).finish(Outcome::ConnectFailed, Tick(100));
        let early = Lease::new(&backend, false, Tick(50));
        early.note_connected();
        assert!(backend.ejection().word().until().is_some(), "it was picked before the failure");
        let trial = Lease::new(&backend, true, Tick(2_000_000_000));
        trial.note_connected();
        assert_eq!(backend.ejection().word().until(), None);
        assert_eq!(backend.in_flight(), 2);
    }

    #[test]
    fn only_a_failed_connect_ejects() {
        let backend = Arc::new(alone(&unprobed(0), host("127.0.0.1", 80)));
        for outcome in [Outcome::Success, Outcome::Failed, Outcome::Neutral] {
            Lease::new(&backend, false, Tick(1)).finish(outcome, Tick(1));
            assert_eq!(backend.ejection().word().until(), None, "{outcome:?}");
        }
        Lease::new(&backend, false, Tick(1)).finish(Outcome::ConnectFailed, Tick(1));
        assert!(backend.ejection().word().until().is_some());
        Lease::new(&backend, false, Tick(9)).finish(Outcome::Success, Tick(9));
        assert_eq!(backend.ejection().word().until(), None);
    }

    #[test]
    fn an_attempt_is_tallied_once_and_an_answer_that_breaks_off_is_an_error() {
        let at = |millis: u64| Tick(millis * 1_000_000);
        let error = Heard { error: true, ..Heard::GOOD };
        for (heard, outcome, end, expected) in [
            (Some(Heard::GOOD), Outcome::Success, 900, (1, 0)),
            (Some(error), Outcome::Success, 900, (1, 1)),
            (Some(Heard::GOOD), Outcome::Failed, 900, (1, 1)),
            (Some(error), Outcome::Failed, 900, (1, 1)),
            (Some(Heard::GOOD), Outcome::Neutral, 900, (1, 0)),
            (None, Outcome::Failed, 1, (1, 1)),
            (None, Outcome::Neutral, 900, (1, 0)),
            (None, Outcome::Neutral, 99, (0, 0)),
            // That has an ejection of its own.
            (None, Outcome::ConnectFailed, 900, (0, 0)),
        ] {
            let backend = Arc::new(alone(&unprobed(0), host("127.0.0.1", 80)));
            let lease = Lease::new(&backend, false, at(0));
            if let Some(heard) = heard {
                lease.note_answer(heard, at(40));
            }
            lease.finish(outcome, at(end));
            let counts = backend.tally().read().since(Reading::default());
            assert_eq!((counts.attempts, counts.errors), expected, "{heard:?} {outcome:?} {end}");
            let known = counts.doublings().map(|doublings| latency(doublings).as_millis() > 500);
            let late = heard.is_none() && end == 900;
            assert_eq!(known, (counts.attempts > 0).then_some(late), "{heard:?} {outcome:?} {end}");
        }
    }

    #[test]
    fn what_became_of_an_attempt_counts_where_the_algorithm_wants_to_know() {
        let at = |millis: u64| Tick((1_000_000 + millis) * 1_000_000);
        for algorithm in [Balance::PeakEwma, Balance::RoundRobin] {
            let wants = algorithm == Balance::PeakEwma;
            for (outcome, answered, counts) in [
                (Outcome::Failed, true, wants),
                (Outcome::Failed, false, wants),
                (Outcome::ConnectFailed, false, wants),
                // Whoever leaves in the middle of an answer says nothing about how soon it came.
                (Outcome::Neutral, true, false),
                (Outcome::Neutral, false, wants),
                (Outcome::Success, true, false),
            ] {
                let target = target(&model::Target { balance: algorithm.into(), ..unprobed(2) });
                let [one, other] = &target.backends[..] else { panic!("two backends") };
                for backend in [one, other] {
                    let lease = Lease::new(backend, false, at(0));
                    lease.note_answer(Heard::GOOD, at(10));
                    lease.finish(Outcome::Success, at(20));
                }
                let outlook = |backend: &Backend| backend.answers().outlook(0, 1, at(200));
                assert_eq!(outlook(one), outlook(other));
                let lease = Lease::new(one, false, at(20));
                if answered {
                    lease.note_answer(Heard::GOOD, at(21));
                }
                lease.finish(outcome, at(200));
                let seen = outlook(other).beats(&outlook(one));
                assert_eq!(seen, counts, "{algorithm:?} {outcome:?} {answered}");
            }
        }
    }
}
