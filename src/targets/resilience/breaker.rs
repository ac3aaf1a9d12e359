//! The circuit breaker of one backend: closed, open, half-open.
//!
//! One word per backend, so that every change is one compare-and-swap: of a thousand requests that come when its time is
//! up exactly one is let through. The rules are the pure functions of [`BreakerWord`]; [`Breaker`] only applies them. Active
//! probes have no say here: a backend that answers its probe and fails its requests stays out. M. Nygard, *Release It!*,
//! "Circuit Breaker".

use core::time::Duration;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::config::model::resilience as model;
use crate::tick::Tick;

/// The low bits of a word that say what the rest is.
const KIND: u64 = 0b11;
/// The rest is how many attempts have failed one after the other.
const CLOSED: u64 = 0;
/// The rest is the end of the time in which it is open, to 4 ns.
const OPEN: u64 = 1;
/// One attempt is finding out; the rest is nothing.
const HALF_OPEN: u64 = 2;
/// Closed since the answer of the trial began; the rest is when the trial was picked, to 4 ns. One failure of an attempt that
/// was picked since then opens it.
const PROBATION: u64 = 3;

/// A moment that has passed, whatever the clock says, and is not zero.
const LONG_AGO: Tick = Tick(4);

/// When it opens and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::targets) struct BreakerRules {
    /// Failures one after the other, at least 1.
    pub(in crate::targets) failures: u32,
    /// How long it is open.
    pub(in crate::targets) open: Duration,
    /// How long it is open, at least, where nobody else can be picked.
    pub(in crate::targets) alone: Duration,
}

impl BreakerRules {
    /// How long a breaker is open at least whose backend alone is left: nothing is spared by letting nobody find out. One
    /// trial each second is no load.
    const ALONE: Duration = Duration::from_secs(1);

    /// The rules of this config. Who has written how long it is open means it.
    pub(in crate::targets) fn new(config: &model::BreakerConfig) -> BreakerRules {
        let model::BreakerConfig { failures, open, open_is_default, statuses: _ } = *config;
        BreakerRules {
            failures,
            open,
            alone: if open_is_default { open.min(BreakerRules::ALONE) } else { open },
        }
    }
}

/// What a breaker is at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Circuit {
    /// Requests pass.
    Closed,
    /// None does until then; after that one finds out. It may lie in the past while no pick came by.
    Open(Tick),
    /// One request is finding out; no other passes.
    HalfOpen,
}

/// Whether a pick may pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::targets) enum Passage {
    /// It may.
    Free,
    /// It may, it alone, and finds out whether the backend is well again.
    Trial,
    /// It may not.
    Barred,
}

/// The state of one breaker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::targets) struct BreakerWord(u64);

impl BreakerWord {
    fn closed(failures: u64) -> BreakerWord {
        BreakerWord(failures << 2 | CLOSED)
    }

    pub(super) fn open(until: Tick) -> BreakerWord {
        BreakerWord(until.0 & !KIND | OPEN)
    }

    /// What it says.
    #[must_use]
    pub(in crate::targets) fn circuit(self) -> Circuit {
        match self.0 & KIND {
            CLOSED | PROBATION => Circuit::Closed,
            OPEN => Circuit::Open(Tick(self.0 & !KIND)),
            _ => Circuit::HalfOpen,
        }
    }

    /// Whether one failure opens it.
    #[must_use]
    pub(in crate::targets) fn is_on_probation(self) -> bool {
        self.0 & KIND == PROBATION
    }

    /// What a pick at `now` may do, and the word that a [`Passage::Trial`] must put in place first.
    #[must_use]
    pub(in crate::targets) fn admit(self, now: Tick) -> (Passage, BreakerWord) {
        match self.circuit() {
            Circuit::Closed => (Passage::Free, self),
            Circuit::Open(until) if now >= until => (Passage::Trial, BreakerWord(HALF_OPEN)),
            Circuit::Open(_) | Circuit::HalfOpen => (Passage::Barred, self),
        }
    }

    /// The same where nobody else can be picked.
    #[must_use]
    pub(in crate::targets) fn admit_alone(self, now: Tick, rules: BreakerRules) -> (Passage, BreakerWord) {
        match self.circuit() {
            Circuit::Open(until) if now.after(rules.open.saturating_sub(rules.alone)) >= until => {
                (Passage::Trial, BreakerWord(HALF_OPEN))
            }
            Circuit::Closed | Circuit::Open(_) | Circuit::HalfOpen => self.admit(now),
        }
    }

    /// After a failure at `now` of an attempt that was picked at `picked`, and was its `trial` or not. What fails while it is
    /// not closed, or was picked before its trial, was under way already and says nothing new.
    #[must_use]
    pub(in crate::targets) fn fail(
        self,
        trial: bool,
        rules: BreakerRules,
        picked: Tick,
        now: Tick,
    ) -> BreakerWord {
        match self.circuit() {
            Circuit::Closed if self.is_on_probation() => {
                let is_news = picked.0 >= self.0 & !KIND;
                if is_news { BreakerWord::open(now.after(rules.open)) } else { self }
            }
            Circuit::Closed => {
                let failures = (self.0 >> 2) + 1;
                if failures < u64::from(rules.failures) {
                    BreakerWord::closed(failures)
                } else {
                    BreakerWord::open(now.after(rules.open))
                }
            }
            Circuit::HalfOpen if trial => BreakerWord::open(now.after(rules.open)),
            Circuit::Open(_) | Circuit::HalfOpen => self,
        }
    }

    /// After an attempt that went well to its end.
    #[must_use]
    pub(in crate::targets) fn succeed(self, trial: bool) -> BreakerWord {
        match self.circuit() {
            Circuit::HalfOpen if !trial => self,
            Circuit::Open(_) => self,
            Circuit::Closed | Circuit::HalfOpen => BreakerWord::default(),
        }
    }

    /// When the answer of its `trial`, picked at `picked`, began well: a download may take hours, and until then nobody else
    /// would pass. It closes on probation: one failure opens it again.
    #[must_use]
    pub(in crate::targets) fn hear(self, trial: bool, picked: Tick) -> BreakerWord {
        match self.circuit() {
            Circuit::HalfOpen if trial => BreakerWord(picked.0 & !KIND | PROBATION),
            Circuit::Closed | Circuit::Open(_) | Circuit::HalfOpen => self,
        }
    }

    /// After a `trial` that came to nothing, by nobody's or by the client's doing: the next pick is one.
    #[must_use]
    pub(in crate::targets) fn release(self, trial: bool) -> BreakerWord {
        match self.circuit() {
            Circuit::HalfOpen if trial => BreakerWord::open(LONG_AGO),
            Circuit::Closed | Circuit::Open(_) | Circuit::HalfOpen => self,
        }
    }
}

/// A backend's breaker, shared by all threads.
#[derive(Debug, Default)]
pub(in crate::targets) struct Breaker(AtomicU64);

impl Breaker {
    /// The current word.
    #[inline]
    #[must_use]
    pub(in crate::targets) fn word(&self) -> BreakerWord {
        BreakerWord(self.0.load(Ordering::Relaxed))
    }

    /// Whether nothing is held against the backend: closed, and no failures.
    #[inline]
    pub(in crate::targets) fn is_clear(&self) -> bool {
        self.word() == BreakerWord::default()
    }

    /// Asks for passage at `now`; of all threads that ask after its time is up one gets the trial.
    #[must_use]
    pub(in crate::targets) fn admit(&self, now: Tick) -> Passage {
        let word = self.word();
        self.pass(word, word.admit(now))
    }

    /// The same where nobody else can be picked.
    #[must_use]
    pub(in crate::targets) fn admit_alone(&self, now: Tick, rules: BreakerRules) -> Passage {
        let word = self.word();
        self.pass(word, word.admit_alone(now, rules))
    }

    fn pass(&self, word: BreakerWord, (passage, next): (Passage, BreakerWord)) -> Passage {
        if passage == Passage::Trial && !self.replace(word, next) {
            // Somebody else is finding out.
            return Passage::Barred;
        }
        passage
    }

    /// Changes the word if that is no change of state, only of a count. False: it would be one.
    #[must_use]
    pub(in crate::targets) fn count(&self, change: impl Fn(BreakerWord) -> BreakerWord) -> bool {
        loop {
            let word = self.word();
            let next = change(word);
            // The usual case, a success without failures before it, is one shared load and no store.
            if next == word {
                return true;
            }
            if next.circuit() != word.circuit() {
                return false;
            }
            if self.replace(word, next) {
                return true;
            }
        }
    }

    /// Changes the word. Gives the states before and after when they differ.
    pub(in crate::targets) fn update(
        &self,
        change: impl Fn(BreakerWord) -> BreakerWord,
    ) -> Option<(Circuit, Circuit)> {
        loop {
            let word = self.word();
            let next = change(word);
            if next == word {
                return None;
            }
            if self.replace(word, next) {
                let (from, to) = (word.circuit(), next.circuit());
                return (from != to).then_some((from, to));
            }
        }
    }

    /// Forgets everything: the target has no breaker any more.
    pub(in crate::targets) fn clear(&self) {
        self.0.store(0, Ordering::Relaxed);
    }

    fn replace(&self, word: BreakerWord, next: BreakerWord) -> bool {
        self.0.compare_exchange(word.0, next.0, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use proptest::prelude::*;

    use super::*;

    const RULES: BreakerRules =
        BreakerRules { failures: 20, open: Duration::from_secs(5), alone: Duration::from_secs(1) };

    fn at(millis: u64) -> Tick {
        Tick(millis * 1_000_000)
    }

    fn failed(times: u32, now: Tick) -> BreakerWord {
        (0..times).fold(BreakerWord::default(), |word, _| word.fail(false, RULES, now, now))
    }

    #[test]
    fn twenty_failures_in_a_row_open_it_for_five_seconds() {
        assert_eq!(failed(19, at(1)).circuit(), Circuit::Closed);
        assert_eq!(failed(20, at(1)).circuit(), Circuit::Open(at(5_001)));
        let broken = failed(19, at(1)).succeed(false).fail(false, RULES, at(2), at(2));
        assert_eq!(broken, failed(1, at(2)), "a success in between starts the count again");
        let open = failed(20, at(1));
        assert_eq!(open.fail(false, RULES, at(4_000), at(4_000)), open, "late failures do not keep it open");
        assert_eq!(open.succeed(false), open, "nor do late answers close it");
    }

    #[test]
    fn half_open_has_one_trial_that_decides() {
        let open = failed(20, at(0));
        assert_eq!(open.admit(at(4_999)).0, Passage::Barred);
        let (passage, half) = open.admit(at(5_000));
        assert_eq!((passage, half.circuit()), (Passage::Trial, Circuit::HalfOpen));
        assert_eq!(half.admit(at(60_000)).0, Passage::Barred);
        for word in [half.fail(false, RULES, at(6_000), at(6_000)), half.succeed(false), half.release(false)]
        {
            assert_eq!(word, half, "only the trial decides");
        }
        assert_eq!(half.succeed(true).circuit(), Circuit::Closed);
        assert_eq!(
            half.fail(true, RULES, at(5_000), at(6_000)).circuit(),
            Circuit::Open(at(11_000)),
            "the first failure"
        );
        assert_eq!(half.release(true).admit(at(5_000)).0, Passage::Trial, "the next one tries");
    }

    #[test]
    fn an_answer_that_began_well_lets_others_pass_on_probation() {
        let half = failed(20, at(0)).admit(at(5_000)).1;
        let heard = half.hear(true, at(5_000));
        assert_eq!(heard.circuit(), Circuit::Closed);
        assert_eq!(heard.succeed(true), BreakerWord::default());
        assert_eq!(heard.fail(true, RULES, at(5_000), at(6_000)).circuit(), Circuit::Open(at(11_000)));
        assert_eq!(half.hear(false, at(5_000)), half);
    }

    #[test]
    fn what_was_under_way_before_the_trial_does_not_open_it_again() {
        let heard = failed(20, at(0)).admit(at(5_000)).1.hear(true, at(5_000));
        assert_eq!(heard.fail(false, RULES, at(4_999), at(7_000)), heard, "picked before the trial");
        assert_eq!(heard.fail(false, RULES, at(5_001), at(7_000)).circuit(), Circuit::Open(at(12_000)));
    }

    #[test]
    fn alone_it_lets_one_find_out_each_second() {
        let open = failed(20, at(0));
        assert_eq!(open.admit_alone(at(999), RULES).0, Passage::Barred);
        let (passage, half) = open.admit_alone(at(1_000), RULES);
        assert_eq!((passage, half.circuit()), (Passage::Trial, Circuit::HalfOpen));
        assert_eq!(half.admit_alone(at(60_000), RULES).0, Passage::Barred, "one at a time");
        let again = half.fail(true, RULES, at(1_000), at(1_500));
        assert_eq!(again.admit_alone(at(2_499), RULES).0, Passage::Barred);
        assert_eq!(again.admit_alone(at(2_500), RULES).0, Passage::Trial);
        assert_eq!(again.admit(at(2_500)).0, Passage::Barred, "not while there are others");
        assert_eq!(half.release(true).admit_alone(at(1_001), RULES).0, Passage::Trial);
        let written = BreakerRules { alone: RULES.open, ..RULES };
        assert_eq!(open.admit_alone(at(4_999), written).0, Passage::Barred);
        assert_eq!(open.admit_alone(at(5_000), written).0, Passage::Trial);
    }

    #[test]
    fn of_a_thousand_that_ask_at_half_open_one_passes() {
        let breaker = Breaker::default();
        for _ in 0..20 {
            breaker.update(|word| word.fail(false, RULES, at(0), at(0)));
        }
        let start = Barrier::new(4);
        let trials: usize = std::thread::scope(|scope| {
            let ask = || {
                start.wait();
                (0..250).filter(|_| breaker.admit(at(5_000)) == Passage::Trial).count()
            };
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(ask)).collect();
            threads.into_iter().map(|thread| thread.join().expect("no panic")).sum()
        });
        assert_eq!((trials, breaker.word().circuit()), (1, Circuit::HalfOpen));
    }

    /// What may happen to a breaker: an attempt begins, or one that is under way ends.
    #[derive(Clone, Copy, Debug)]
    enum Step {
        Ask,
        Wait(u64),
        Fail(prop::sample::Index),
        Succeed(prop::sample::Index),
        Leave(prop::sample::Index),
    }

    fn step() -> impl Strategy<Value = Step> {
        let any = any::<prop::sample::Index>();
        prop_oneof![
            Just(Step::Ask),
            (1_u64..4_000).prop_map(Step::Wait),
            any.clone().prop_map(Step::Fail),
            any.clone().prop_map(Step::Succeed),
            any.prop_map(Step::Leave),
        ]
    }

    proptest! {
        /// However attempts begin and end: never two trials at once, never one before the time is up, and never a breaker
        /// that nobody can get closed again.
        #[test]
        fn there_is_never_more_than_one_trial(steps in prop::collection::vec(step(), 0..200), failures in 1_u32..4) {
            let rules = BreakerRules { failures, ..RULES };
            let breaker = Breaker::default();
            let (mut now, mut under_way) = (at(1), Vec::<bool>::new());
            for step in steps {
                match step {
                    Step::Wait(millis) => now = now.after(Duration::from_millis(millis)),
                    Step::Ask => {
                        let before = breaker.word().circuit();
                        match breaker.admit(now) {
                            Passage::Free => under_way.push(false),
                            Passage::Trial => {
                                prop_assert!(matches!(before, Circuit::Open(until) if until <= now));
                                under_way.push(true);
                            }
                            Passage::Barred => prop_assert!(before != Circuit::Closed),
                        }
                    }
                    Step::Fail(index) | Step::Succeed(index) | Step::Leave(index) if !under_way.is_empty() => {
                        let trial = under_way.swap_remove(index.index(under_way.len()));
                        breaker.update(|word| match step {
                            Step::Fail(_) => word.fail(trial, rules, now, now),
                            Step::Succeed(_) => word.succeed(trial),
                            _ => word.release(trial),
                        });
                    }
                    Step::Fail(_) | Step::Succeed(_) | Step::Leave(_) => {}
                }
                let trials = under_way.iter().filter(|trial| **trial).count();
                prop_assert_eq!(trials, usize::from(breaker.word().circuit() == Circuit::HalfOpen));
            }
        }
    }
}
