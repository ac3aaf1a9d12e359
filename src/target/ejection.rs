//! Passive ejection: a backend that refused a connection is left alone for a while.
//!
//! One word per backend holds the end of the ejection and how often it failed in a row, so that every
//! change is one compare-and-swap and concurrent failures count once. The rules are the pure functions of
//! [`Word`]; [`Ejection`] only applies them. `Target::pick` asks, `Lease::finish` tells.

use core::time::Duration;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::tick::{Tick, nanos};

/// How long a backend is out after its first, second, … failure in a row; the last one stays.
const SPANS: [Duration; 4] =
    [Duration::from_secs(1), Duration::from_secs(2), Duration::from_secs(4), Duration::from_secs(5)];

/// The low bits of a word that count failures; the rest is the end of the ejection, to 8 ns.
const LEVEL: u64 = 0b111;

/// Whether a backend may be picked as far as its ejection goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Admission {
    /// It is not ejected.
    Open,
    /// Its ejection has just ended and this pick, only this one, finds out whether it is back.
    Trial,
    /// It is ejected.
    Ejected,
}

/// The state of one ejection: zero (none), or its end and the failures in a row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Word(u64);

impl Word {
    fn new(level: u64, start: Tick) -> Word {
        Word(start.after(Self::span(level)).0 & !LEVEL | level)
    }

    fn span(level: u64) -> Duration {
        let place = usize::try_from(level).unwrap_or(usize::MAX).saturating_sub(1);
        SPANS[place.min(SPANS.len() - 1)]
    }

    /// Failures in a row, 0 to 4; 4 stands for every higher number.
    fn level(self) -> u64 {
        self.0 & LEVEL
    }

    /// The end of the ejection; `None`: not ejected. It may lie in the past while no pick came by.
    #[must_use]
    pub(super) fn until(self) -> Option<Tick> {
        (self.0 != 0).then_some(Tick(self.0 & !LEVEL))
    }

    fn started(self) -> Tick {
        Tick((self.0 & !LEVEL).saturating_sub(nanos(Self::span(self.level()))))
    }

    /// What a pick at `now` may do, and the word that a [`Admission::Trial`] must put in place first.
    #[must_use]
    pub(super) fn admit(self, now: Tick) -> (Admission, Word) {
        match self.until() {
            None => (Admission::Open, self),
            Some(until) if now < until => (Admission::Ejected, self),
            // Pushed forward by the current span: if the trial never reports, the next one is as far away.
            Some(_) => (Admission::Trial, Word::new(self.level(), now)),
        }
    }

    /// After a failed connect at `now`. A failure during an ejection counts only when it was the `trial`:
    /// a hundred connects refused at the same moment are one failure.
    #[must_use]
    pub(super) fn fail(self, trial: bool, now: Tick) -> Word {
        match self.until() {
            Some(until) if now < until && !trial => self,
            Some(_) | None => Word::new((self.level() + 1).min(SPANS.len() as u64), now),
        }
    }

    /// After a success of a lease that was picked at `picked`. One from before the ejection proves nothing:
    /// an old connection may outlive the listening socket.
    #[must_use]
    pub(super) fn succeed(self, picked: Tick) -> Word {
        if self.0 != 0 && picked < self.started() { self } else { Word::default() }
    }
}

/// A backend's ejection, shared by all threads.
#[derive(Debug, Default)]
pub(super) struct Ejection(AtomicU64);

impl Ejection {
    /// The current word.
    #[must_use]
    pub(super) fn word(&self) -> Word {
        Word(self.0.load(Ordering::Relaxed))
    }

    /// Asks for admission at `now`; of all threads that ask after an ejection's end one gets the trial.
    #[must_use]
    pub(super) fn admit(&self, now: Tick) -> Admission {
        let word = self.word();
        if word == Word::default() {
            return Admission::Open;
        }
        let (admission, next) = word.admit(now);
        if admission == Admission::Trial && !self.replace(word, next) {
            // Somebody else took the trial or changed the word: this pick goes elsewhere.
            return Admission::Ejected;
        }
        admission
    }

    /// Notes a failed connect. Says whether that changed something.
    pub(super) fn fail(&self, trial: bool, now: Tick) -> bool {
        self.update(|word| word.fail(trial, now))
    }

    /// Notes a success of a lease picked at `picked`. Says whether that changed something.
    pub(super) fn succeed(&self, picked: Tick) -> bool {
        self.update(|word| word.succeed(picked))
    }

    /// Ends the ejection without a trial: a probe has just seen the backend come back.
    pub(super) fn clear(&self) {
        self.0.store(0, Ordering::Relaxed);
    }

    fn replace(&self, word: Word, next: Word) -> bool {
        self.0.compare_exchange(word.0, next.0, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    fn update(&self, change: impl Fn(Word) -> Word) -> bool {
        loop {
            let word = self.word();
            let next = change(word);
            // The usual case, a success without an ejection, is one shared load and no store.
            if next == word {
                return false;
            }
            if self.replace(word, next) {
                return true;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn at(seconds: u64) -> Tick {
        Tick(seconds * SECOND)
    }

    #[test]
    fn spans_double_to_five_seconds_and_a_success_resets_them() {
        let mut word = Word::default();
        let mut now = at(100);
        for expected in [1, 2, 4, 5, 5, 5] {
            word = word.fail(false, now);
            let until = word.until().expect("ejected");
            assert!(until.since(now) > Duration::from_secs(expected) - Duration::from_nanos(8));
            assert!(until.since(now) <= Duration::from_secs(expected));
            assert_eq!(word.admit(Tick(until.0 - 1)).0, Admission::Ejected);
            now = until;
        }
        word = word.succeed(now);
        assert_eq!(word.until(), None);
        assert_eq!(word.fail(false, now).level(), 1);
    }

    #[test]
    fn failures_of_one_moment_count_once() {
        let ejection = Ejection::default();
        for _ in 0..100 {
            ejection.fail(false, at(1));
        }
        assert_eq!(ejection.word().level(), 1);
        assert_eq!(ejection.word().until(), Some(at(2)));
    }

    #[test]
    fn a_failed_trial_lengthens_the_ejection() {
        let ejection = Ejection::default();
        ejection.fail(false, at(1));
        assert_eq!(ejection.admit(at(2)), Admission::Trial);
        assert_eq!(ejection.admit(at(2)), Admission::Ejected);
        ejection.fail(true, Tick(2 * SECOND + 800));
        assert_eq!(ejection.word().until(), Some(Tick(4 * SECOND + 800)));
    }

    #[test]
    fn a_trial_that_never_reports_is_followed_by_another_one_span_later() {
        let ejection = Ejection::default();
        ejection.fail(false, at(1));
        assert_eq!(ejection.admit(at(7)), Admission::Trial);
        assert_eq!(ejection.admit(Tick(8 * SECOND - 1)), Admission::Ejected);
        assert_eq!(ejection.admit(at(8)), Admission::Trial);
    }

    #[test]
    fn a_success_from_before_the_ejection_does_not_end_it() {
        let ejection = Ejection::default();
        ejection.fail(false, at(10));
        ejection.succeed(at(9));
        assert_eq!(ejection.admit(at(10)), Admission::Ejected);
        // The trial's own success is from its beginning.
        assert_eq!(ejection.admit(at(11)), Admission::Trial);
        ejection.succeed(at(11));
        assert_eq!(ejection.admit(at(11)), Admission::Open);
    }

    #[test]
    fn one_of_many_threads_gets_the_trial() {
        let ejections: Vec<Ejection> = (0..50_000).map(|_| Ejection::default()).collect();
        for ejection in &ejections {
            ejection.fail(false, at(1));
        }
        let start = std::sync::Barrier::new(4);
        let ask = || {
            start.wait();
            ejections.iter().filter(|ejection| ejection.admit(at(2)) == Admission::Trial).count()
        };
        let trials: usize = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(ask)).collect();
            threads.into_iter().map(|thread| thread.join().expect("no panic")).sum()
        });
        assert_eq!(trials, ejections.len());
    }

    #[test]
    fn a_word_that_changed_under_a_pick_is_not_overwritten() {
        let ejection = Ejection::default();
        ejection.fail(false, at(1));
        let seen = ejection.word();
        ejection.succeed(at(2));
        assert!(!ejection.replace(seen, seen.admit(at(2)).1));
        assert_eq!(ejection.admit(at(2)), Admission::Open);
    }
}
