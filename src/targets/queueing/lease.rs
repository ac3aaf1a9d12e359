//! The right to use a backend for one attempt.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use crate::targets::Backend;
use crate::targets::queueing::board_state::hand_on;
use crate::targets::queueing::wants::Wants;
use crate::targets::resilience::reports;
use crate::targets::resilience::trial::{Told, Trial};
use crate::targets::state::objects::Lease;
use crate::tick::Tick;

/// Whoever leaves sooner says nothing about how long an answer takes.
const PATIENCE: Duration = Duration::from_millis(100);

/// What came of an attempt, as far as the backend is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It answered (or, on TCP, accepted). What the head of the answer said counts: see [`Heard`].
    Success,
    /// No connection could be opened to it: it is ejected, and its breaker counts it.
    ConnectFailed,
    /// It took the connection and then failed. Breaker and outlier detection count it.
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

impl Lease {
    /// A lease on `backend`, unless it has as many as it may have. Who gets the last one has to refresh the board.
    #[inline]
    pub(in crate::targets) fn take(backend: &Arc<Backend>, trial: Trial, picked: Tick) -> Option<Lease> {
        let limit = backend.board().limit();
        backend.enter_within(limit)?;
        Some(Lease::entered(backend, trial, picked))
    }

    /// A lease on `backend`, which has counted it already.
    #[inline]
    pub(in crate::targets) fn entered(backend: &Arc<Backend>, trial: Trial, picked: Tick) -> Lease {
        Lease {
            backend: Arc::clone(backend),
            picked,
            trial: Cell::new(trial),
            counted: false,
            told: Cell::new(Told::default()),
        }
    }

    /// The same where the mutex is not held: the board hears of what it has to know. Inlined: each pick makes one.
    #[inline(always)]
    pub(in crate::targets) fn take_and_tell(
        backend: &Arc<Backend>,
        trial: Trial,
        picked: Tick,
    ) -> Option<Lease> {
        let limit = backend.board().limit();
        let entered = backend.enter_within(limit);
        // Who gets the last place tells so; who gets none went by what is out of date.
        if entered.is_none_or(|now| now > 0 && now == limit) {
            tell(backend);
        }
        entered.map(|_| Lease::entered(backend, trial, picked))
    }

    /// Begins, at `now`, the attempt of one that came from the queue.
    pub fn begin(mut self, now: Tick) -> Lease {
        self.picked = now;
        self
    }

    /// The same, told to whoever keeps count of leases: it was entered where the algorithm was not asked.
    pub(in crate::targets) fn counted_if_wanted(self) -> Lease {
        if self.backend.board().is_for(Wants::Total) { self.counted() } else { self }
    }

    /// The same, in the board's total as well.
    pub(in crate::targets) fn counted(mut self) -> Lease {
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

    /// Whether this attempt finds out if a backend that was left out is back. It should go out on a fresh
    /// connection: a pooled one says nothing about connecting.
    #[must_use]
    pub fn is_trial(&self) -> bool {
        self.trial.get().is_any()
    }

    /// Makes it find that out about its backend.
    pub(in crate::targets) fn set_trial(&self, trial: Trial) {
        self.trial.set(trial);
    }

    /// Notes that a fresh connection stands: that ends an ejection for refusing them. Whether the
    /// request succeeds may turn out much later, for a tunnel in hours.
    pub fn note_connected(&self) {
        reports::connected(&self.backend, self.picked);
    }

    /// Whether the algorithm wants to hear of answers.
    #[inline]
    fn is_heard(&self) -> bool {
        self.backend.board().is_for(Wants::Latency)
    }

    /// Notes that the head of an answer came at `now`, or on TCP that the connection stands: that is how soon the backend
    /// answers, and how well.
    #[inline]
    pub fn note_answer(&self, heard: Heard, now: Tick) {
        self.told.set(Told { answered: true, error: heard.error, failure: heard.failure });
        self.backend.attempt_counts().note(heard.error, now.since(self.picked));
        if self.trial.get().breaker && !heard.failure {
            reports::heard(&self.backend, &self.trial, self.picked);
        }
        if self.is_heard() {
            let answers = self.backend.answers();
            if heard.fault {
                answers.note_fault(heard.retry_after, now);
            } else {
                answers.note_good(now.since(self.picked), now);
            }
        }
    }

    /// Notes that an answer began at `now` of which only what follows will say how well the backend has done (gRPC).
    pub fn note_begun(&self, now: Tick) {
        self.told.set(Told { answered: true, ..self.told.get() });
        self.backend.attempt_counts().note(false, now.since(self.picked));
        if self.is_heard() {
            self.backend.answers().note_begun();
        }
    }

    /// Notes how such an answer, begun at `begun`, has turned out; again when it has turned out worse.
    pub fn note_outcome(&self, heard: Heard, begun: Tick, now: Tick) {
        let told = self.told.get();
        self.told.set(Told {
            answered: true,
            error: told.error || heard.error,
            failure: told.failure || heard.failure,
        });
        if heard.error && !told.error {
            self.backend.attempt_counts().note_broken();
        }
        if self.trial.get().breaker && !heard.failure {
            reports::heard(&self.backend, &self.trial, self.picked);
        }
        if self.is_heard() {
            let answers = self.backend.answers();
            if heard.fault {
                answers.note_fault(heard.retry_after, now);
            } else {
                answers.note_good(begun.since(self.picked), now);
            }
        }
    }

    /// Notes that an attempt on a connection came to nothing: by the backend's `fault`, or because nobody wanted to wait.
    fn note_end(&self, fault: bool, now: Tick) {
        let attempt_counts = self.backend.attempt_counts();
        let waited = now.since(self.picked);
        match (self.told.get().answered, fault) {
            (true, true) => attempt_counts.note_broken(),
            (true, false) => {}
            (false, true) => attempt_counts.note(true, waited),
            // How long somebody has waited in vain is how long it takes, at least.
            (false, false) if waited >= PATIENCE => attempt_counts.note(false, waited),
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
            } else if !self.told.get().answered {
                answers.note_gone(now.since(self.picked), now);
            }
        }
    }

    /// Ends the attempt at `now` with `outcome`.
    pub fn finish(self, outcome: Outcome, now: Tick) {
        let told = self.told.get();
        if match outcome {
            Outcome::Success => told.error,
            Outcome::ConnectFailed | Outcome::Failed => true,
            Outcome::Neutral => false,
        } {
            self.backend.note_trouble();
        }
        match outcome {
            Outcome::Success => reports::answered(&self.backend, &self.trial, told, self.picked, now),
            Outcome::ConnectFailed => {
                reports::refused(&self.backend, &self.trial, self.picked, now);
                self.note_failure(true, now);
            }
            Outcome::Failed => {
                reports::failed(&self.backend, &self.trial, self.picked, now);
                self.note_end(true, now);
            }
            Outcome::Neutral => self.note_end(false, now),
        }
    }
}

/// Lets the board know how many leases a backend has.
#[cold]
fn tell(backend: &Backend) {
    backend.board().lock().refresh(backend);
}

impl Drop for Lease {
    fn drop(&mut self) {
        let backend = &self.backend;
        if self.trial.get().breaker {
            reports::released(backend);
        }
        let board = backend.board();
        if self.counted {
            board.discount();
        }
        let limit = board.limit();
        if limit == 0 {
            backend.leave();
        } else if !backend.leave_below(limit) {
            hand_on(backend);
            return;
        }
        if board.limit() != limit {
            // Whoever has set the other one may not have seen this place come free.
            tell(backend);
            return;
        }
        if board.is_for(Wants::Order) {
            board.lock().weigh(backend);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::model::{self, Balance};
    use crate::targets::fixtures::{alone, host, target, unprobed};
    use crate::targets::resilience::attempt_counts::{Reading, latency};

    fn taken(backend: &Arc<Backend>, picked: Tick) -> Lease {
        Lease::take(backend, Trial::NONE, picked).expect("there is no limit")
    }

    #[test]
    fn a_lease_counts_once_whichever_way_it_ends() {
        let backend = Arc::new(alone(&unprobed(0), host("127.0.0.1", 80)));
        let first = taken(&backend, Tick(1));
        let second = taken(&backend, Tick(1));
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
        taken(&backend, Tick(100)).finish(Outcome::ConnectFailed, Tick(100));
        let early = taken(&backend, Tick(50));
        early.note_connected();
        assert!(backend.ejection().word().until().is_some(), "it was picked before the failure");
        let trial = taken(&backend, Tick(2_000_000_000));
        trial.note_connected();
        assert_eq!(backend.ejection().word().until(), None);
        assert_eq!(backend.in_flight(), 2);
    }

    #[test]
    fn only_a_failed_connect_ejects() {
        let backend = Arc::new(alone(&unprobed(0), host("127.0.0.1", 80)));
        for outcome in [Outcome::Success, Outcome::Failed, Outcome::Neutral] {
            taken(&backend, Tick(1)).finish(outcome, Tick(1));
            assert_eq!(backend.ejection().word().until(), None, "{outcome:?}");
        }
        taken(&backend, Tick(1)).finish(Outcome::ConnectFailed, Tick(1));
        assert!(backend.ejection().word().until().is_some());
        taken(&backend, Tick(9)).finish(Outcome::Success, Tick(9));
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
            let lease = taken(&backend, at(0));
            if let Some(heard) = heard {
                lease.note_answer(heard, at(40));
            }
            lease.finish(outcome, at(end));
            let counts = backend.attempt_counts().read().since(Reading::default());
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
                let target = target(&model::TargetConfig { balance: algorithm.into(), ..unprobed(2) });
                let [one, other] = &target.backends[..] else { panic!("two backends") };
                for backend in [one, other] {
                    let lease = taken(backend, at(0));
                    lease.note_answer(Heard::GOOD, at(10));
                    lease.finish(Outcome::Success, at(20));
                }
                let outlook = |backend: &Backend| backend.answers().outlook(0, 1, at(200));
                assert_eq!(outlook(one), outlook(other));
                let lease = taken(one, at(20));
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
