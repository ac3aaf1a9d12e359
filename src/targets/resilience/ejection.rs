//! Ejection: a backend that refused a connection, or that does worse than its siblings, is left out for a while.
//!
//! One word per backend holds the end of the ejection and how often in a row it came to one, so that every
//! change is one compare-and-swap and concurrent failures count once. The rules are the pure functions of
//! [`EjectionWord`]; [`Ejection`] only applies them. `Target::pick` asks, `Lease::finish` and the sweep tell.

use core::time::Duration;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::tick::{Tick, nanos};

/// The longest ejection of a backend that refuses connections: finding out costs a request nothing but time.
const REFUSED_MAX: Duration = Duration::from_secs(5);

/// The low bits of a word that count ejections in a row; 7 stands for every higher number.
const LEVEL: u64 = 0b111;
/// It is ejected: the rest of the word is the end of that, to 64 ns. Otherwise the rest is when it came back, as long as there
/// is a level to remember.
const OUT: u64 = 1 << 3;
/// For its errors.
const FAILING: u64 = 1 << 4;
/// For being slow. With neither: for refusing a connection.
const SLOW: u64 = 1 << 5;
/// What is not the time.
const MARKS: u64 = LEVEL | OUT | FAILING | SLOW;

/// For how long a backend is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::targets) struct Spans {
    /// The first time; then twice as long, and so on.
    pub(in crate::targets) first: Duration,
    /// At most. One that has been back for so long starts again with the first.
    pub(in crate::targets) most: Duration,
}

impl Spans {
    fn of(self, kind: EjectionKind, level: u64) -> Duration {
        let doubled = self.first.saturating_mul(1 << (level.clamp(1, LEVEL) - 1));
        let most = if kind == EjectionKind::Refused { self.most.min(REFUSED_MAX) } else { self.most };
        doubled.min(most)
    }
}

/// Why a backend is ejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::targets) enum EjectionKind {
    /// It refused a connection. There is nothing to be had from it, so a panic changes nothing; one connection that stands
    /// ends it.
    Refused,
    /// It has more errors than its siblings. Only its trial ends it.
    Failing,
    /// It takes several times as long as its siblings. Its trial ends it, or one that fails and needs its place among those that
    /// may be left out.
    Slow,
}

impl EjectionKind {
    /// It does worse than its siblings.
    pub(in crate::targets) fn is_outlier(self) -> bool {
        self != EjectionKind::Refused
    }

    fn mark(self) -> u64 {
        match self {
            EjectionKind::Refused => 0,
            EjectionKind::Failing => FAILING,
            EjectionKind::Slow => SLOW,
        }
    }
}

/// Whether a backend may be picked as far as its ejection goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::targets) enum Admission {
    /// It is not ejected.
    Open,
    /// Its ejection has just ended and this pick, only this one, finds out whether it is back.
    Trial,
    /// It is ejected.
    Ejected,
}

/// The state of one ejection; zero: none, and none to remember.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::targets) struct EjectionWord(u64);

impl EjectionWord {
    fn new(level: u64, kind: EjectionKind, start: Tick, spans: Spans) -> EjectionWord {
        let level = level.min(LEVEL);
        EjectionWord(start.after(spans.of(kind, level)).0 & !MARKS | kind.mark() | OUT | level)
    }

    /// Ejections in a row.
    /// As it is kept.
    pub(super) fn bits(self) -> u64 {
        self.0
    }

    /// The one that is kept so.
    pub(super) fn of_bits(bits: u64) -> EjectionWord {
        EjectionWord(bits)
    }

    fn level(self) -> u64 {
        self.0 & LEVEL
    }

    fn time(self) -> Tick {
        Tick(self.0 & !MARKS)
    }

    /// Whether it is left out for doing worse than its siblings.
    #[must_use]
    pub(in crate::targets) fn is_outlier(self) -> bool {
        self.kind().is_some_and(EjectionKind::is_outlier)
    }

    /// Whether people are to hear of it: one refused connect is not worth a line, the second in a row is.
    #[must_use]
    pub(in crate::targets) fn is_news(self) -> bool {
        match self.kind() {
            None => false,
            Some(EjectionKind::Refused) => self.level() > 1,
            Some(EjectionKind::Failing | EjectionKind::Slow) => true,
        }
    }

    fn is_out(self) -> bool {
        self.0 & OUT != 0
    }

    /// Why, while it is ejected.
    #[must_use]
    pub(in crate::targets) fn kind(self) -> Option<EjectionKind> {
        let kind = match self.0 & (FAILING | SLOW) {
            FAILING => EjectionKind::Failing,
            SLOW => EjectionKind::Slow,
            _ => EjectionKind::Refused,
        };
        self.is_out().then_some(kind)
    }

    /// The end of the ejection; `None`: not ejected. It may lie in the past while no pick came by.
    #[must_use]
    pub(in crate::targets) fn until(self) -> Option<Tick> {
        self.is_out().then(|| self.time())
    }

    /// What a pick at `now` may do, and the word that a [`Admission::Trial`] must put in place first.
    #[must_use]
    pub(in crate::targets) fn admit(self, now: Tick, spans: Spans) -> (Admission, EjectionWord) {
        match (self.until(), self.kind()) {
            (Some(until), Some(_)) if now < until => (Admission::Ejected, self),
            // Pushed forward by the current span: if the trial never reports, the next one is as far away.
            (Some(_), Some(kind)) => (Admission::Trial, EjectionWord::new(self.level(), kind, now, spans)),
            _ => (Admission::Open, self),
        }
    }

    /// After something at `now`, in an attempt picked at `picked`, for which it is to be left out. During an ejection it counts
    /// only when it was the `trial`: a hundred connects refused at the same moment are one failure. The time after a trial
    /// is counted from its start, since a trial that hangs has kept the others away as well; but it is never shorter than
    /// the first.
    #[must_use]
    pub(in crate::targets) fn fail_tried(
        self,
        kind: EjectionKind,
        trial: bool,
        spans: Spans,
        picked: Tick,
        now: Tick,
    ) -> EjectionWord {
        let word = self.fail(kind, trial, spans, now);
        if word == self || !trial {
            return word;
        }
        let span = nanos(spans.of(kind, word.level()));
        let latest = now.after(spans.first).0.saturating_sub(span);
        EjectionWord::new(word.level(), kind, Tick(picked.0.max(latest).min(now.0)), spans)
    }

    /// The same of an attempt that took no time.
    #[must_use]
    pub(in crate::targets) fn fail(
        self,
        kind: EjectionKind,
        trial: bool,
        spans: Spans,
        now: Tick,
    ) -> EjectionWord {
        let level = match self.until() {
            Some(_) if trial => self.level() + 1,
            // What an outlier still had under way says nothing new.
            Some(until) if now < until || self.is_outlier() => return self,
            Some(_) => self.level() + 1,
            None if self.level() > 0 && now.since(self.time()) < spans.most => self.level() + 1,
            None => 1,
        };
        EjectionWord::new(level, kind, now, spans)
    }

    /// After a connection stood that was asked for at `picked`. One from before the ejection proves nothing: an old connection
    /// may outlive the listening socket.
    #[must_use]
    pub(in crate::targets) fn connect(self, picked: Tick, spans: Spans) -> EjectionWord {
        let started = self.time().0.saturating_sub(nanos(spans.of(EjectionKind::Refused, self.level())));
        match self.kind() {
            Some(EjectionKind::Refused) if picked.0 >= started => EjectionWord::default(),
            Some(_) | None => self,
        }
    }

    /// After an attempt that went well to its end, picked at `picked`. What it was ejected for is remembered for a while.
    #[must_use]
    pub(in crate::targets) fn succeed(self, trial: bool, picked: Tick, spans: Spans) -> EjectionWord {
        match self.kind() {
            Some(EjectionKind::Failing | EjectionKind::Slow) if trial => {
                EjectionWord(picked.0 & !MARKS | self.level())
            }
            Some(EjectionKind::Failing | EjectionKind::Slow) | None => self,
            Some(EjectionKind::Refused) => self.connect(picked, spans),
        }
    }

    /// After one that fails has taken its place, at `now`, among those that may be left out: it was only slow. That is
    /// remembered for a while.
    #[must_use]
    pub(in crate::targets) fn pardon(self, now: Tick) -> EjectionWord {
        if self.kind() == Some(EjectionKind::Slow) {
            EjectionWord(now.0 & !MARKS | self.level())
        } else {
            self
        }
    }
}

/// A backend's ejection, shared by all threads.
#[derive(Debug, Default)]
pub(in crate::targets) struct Ejection(AtomicU64);

impl Ejection {
    /// The current word.
    #[inline]
    #[must_use]
    pub(in crate::targets) fn word(&self) -> EjectionWord {
        EjectionWord(self.0.load(Ordering::Relaxed))
    }

    /// Asks for admission at `now`; of all threads that ask after an ejection's end one gets the trial.
    #[must_use]
    pub(in crate::targets) fn admit(&self, now: Tick, spans: Spans) -> Admission {
        let word = self.word();
        let (admission, next) = word.admit(now, spans);
        if admission == Admission::Trial && !self.replace(word, next) {
            // Somebody else took the trial or changed the word: this pick goes elsewhere.
            return Admission::Ejected;
        }
        admission
    }

    /// Changes the word. Says whether that changed something.
    pub(in crate::targets) fn update(&self, change: impl Fn(EjectionWord) -> EjectionWord) -> bool {
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

    /// Ends the ejection without a trial: a probe has just seen the backend come back.
    pub(in crate::targets) fn clear(&self) {
        self.0.store(0, Ordering::Relaxed);
    }

    fn replace(&self, word: EjectionWord, next: EjectionWord) -> bool {
        self.0.compare_exchange(word.0, next.0, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    const SPANS: Spans = Spans { first: Duration::from_secs(1), most: Duration::from_secs(30) };

    fn at(seconds: u64) -> Tick {
        Tick(seconds * SECOND)
    }

    impl Ejection {
        fn refuse(&self, trial: bool, now: Tick) {
            self.update(|word| word.fail(EjectionKind::Refused, trial, SPANS, now));
        }

        fn connect(&self, picked: Tick) {
            self.update(|word| word.connect(picked, SPANS));
        }
    }

    #[test]
    fn spans_double_to_five_seconds_and_a_success_resets_them() {
        let mut word = EjectionWord::default();
        let mut now = at(100);
        for expected in [1, 2, 4, 5, 5, 5] {
            word = word.fail(EjectionKind::Refused, false, SPANS, now);
            let until = word.until().expect("ejected");
            assert!(until.since(now) > Duration::from_secs(expected) - Duration::from_nanos(64));
            assert!(until.since(now) <= Duration::from_secs(expected));
            assert_eq!(word.admit(Tick(until.0 - 1), SPANS).0, Admission::Ejected);
            now = until;
        }
        word = word.connect(now, SPANS);
        assert_eq!(word.until(), None);
        assert_eq!(word.fail(EjectionKind::Refused, false, SPANS, now).level(), 1);
    }

    #[test]
    fn failures_of_one_moment_count_once() {
        let ejection = Ejection::default();
        for _ in 0..100 {
            ejection.refuse(false, at(1));
        }
        assert_eq!(ejection.word().level(), 1);
        assert_eq!(ejection.word().until(), Some(at(2)));
    }

    #[test]
    fn a_failed_trial_lengthens_the_ejection() {
        let ejection = Ejection::default();
        ejection.refuse(false, at(1));
        assert_eq!(ejection.admit(at(2), SPANS), Admission::Trial);
        assert_eq!(ejection.admit(at(2), SPANS), Admission::Ejected);
        ejection.refuse(true, Tick(2 * SECOND + 832));
        assert_eq!(ejection.word().until(), Some(Tick(4 * SECOND + 832)));
    }

    #[test]
    fn a_trial_that_never_reports_is_followed_by_another_one_span_later() {
        let ejection = Ejection::default();
        ejection.refuse(false, at(1));
        assert_eq!(ejection.admit(at(7), SPANS), Admission::Trial);
        assert_eq!(ejection.admit(Tick(8 * SECOND - 1), SPANS), Admission::Ejected);
        assert_eq!(ejection.admit(at(8), SPANS), Admission::Trial);
    }

    #[test]
    fn a_success_from_before_the_ejection_does_not_end_it() {
        let ejection = Ejection::default();
        ejection.refuse(false, at(10));
        ejection.connect(at(9));
        assert_eq!(ejection.admit(at(10), SPANS), Admission::Ejected);
        // The trial's own success is from its beginning.
        assert_eq!(ejection.admit(at(11), SPANS), Admission::Trial);
        ejection.connect(at(11));
        assert_eq!(ejection.admit(at(11), SPANS), Admission::Open);
    }

    #[test]
    fn one_of_many_threads_gets_the_trial() {
        let ejections: Vec<Ejection> = (0..50_000).map(|_| Ejection::default()).collect();
        for ejection in &ejections {
            ejection.refuse(false, at(1));
        }
        let start = std::sync::Barrier::new(4);
        let ask = || {
            start.wait();
            ejections.iter().filter(|ejection| ejection.admit(at(2), SPANS) == Admission::Trial).count()
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
        ejection.refuse(false, at(1));
        let seen = ejection.word();
        ejection.connect(at(2));
        assert!(!ejection.replace(seen, seen.admit(at(2), SPANS).1));
        assert_eq!(ejection.admit(at(2), SPANS), Admission::Open);
    }

    #[test]
    fn an_outlier_comes_back_by_its_trial_only_and_is_remembered() {
        let word = EjectionWord::default().fail(EjectionKind::Failing, false, SPANS, at(10));
        assert_eq!((word.until(), word.kind()), (Some(at(11)), Some(EjectionKind::Failing)));
        assert_eq!(word.fail(EjectionKind::Failing, false, SPANS, at(12)), word, "what was under way");
        assert_eq!(word.succeed(false, at(12), SPANS), word);
        assert_eq!(word.connect(at(12), SPANS), word, "that it accepts connections was never in doubt");
        let (admission, tried) = word.admit(at(11), SPANS);
        assert_eq!(admission, Admission::Trial);
        assert_eq!(tried.fail(EjectionKind::Failing, true, SPANS, at(12)).until(), Some(at(14)));

        let back = tried.succeed(true, at(11), SPANS);
        assert_eq!(back.until(), None);
        let again = |now| back.fail(EjectionKind::Failing, false, SPANS, at(now)).until();
        assert_eq!(again(20), Some(at(22)), "twice as long");
        assert_eq!(again(41), Some(at(42)), "it has been well for 30 s");
    }

    #[test]
    fn the_time_after_a_trial_counts_from_its_start() {
        let word =
            EjectionWord::default().fail(EjectionKind::Failing, false, SPANS, at(10)).admit(at(11), SPANS).1;
        let until = |now| word.fail_tried(EjectionKind::Failing, true, SPANS, at(11), at(now)).until();
        assert_eq!(until(11), Some(at(13)));
        assert_eq!(until(12), Some(at(13)), "it has hung for one of the two seconds");
        assert_eq!(until(70), Some(at(71)), "but there is a pause");
        let other = word.fail_tried(EjectionKind::Failing, false, SPANS, at(11), at(12));
        assert_eq!(other, word, "what was under way says nothing new");
    }

    #[test]
    fn an_outlier_is_left_out_for_thirty_seconds_at_most() {
        let mut word = EjectionWord::default().fail(EjectionKind::Failing, false, SPANS, at(1));
        let mut spans = Vec::new();
        for _ in 0..8 {
            let until = word.until().expect("ejected");
            word = word.admit(until, SPANS).1.fail(EjectionKind::Failing, true, SPANS, until);
            spans.push(word.until().expect("ejected").since(until).as_secs_f64().round());
        }
        assert_eq!(spans, [2.0, 4.0, 8.0, 16.0, 30.0, 30.0, 30.0, 30.0]);
    }
}
