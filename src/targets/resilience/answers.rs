//! How soon a backend answers and how well: what `peak_ewma` goes by.
//!
//! [`AnswerPace`] is a peak that decays: a slower answer counts at once, and the memory of it fades with a time constant of
//! 10 s, so that a backend which gets no traffic looks better and better until it is tried again. [`Doubt`] holds the
//! share of faults among the latest answers, and until when the backend wants to be left alone. A third word tells that
//! nothing has come back since a pick. Each good answer is one compare-and-swap, of the pace; a backend that never fails
//! has the rest only read.
//!
//! The rules are the pure functions of the two words and of [`Outlook`]; [`Answers`] only applies them. `Lease` tells,
//! `balance::peak_ewma` asks. The words change one after the other: who reads in between sees what would have been so a
//! moment before or after.
//!
//! Points in time are kept in steps of 2²⁰ ns, modulo 2³² of them: an answer that is 52 days old looks fresh for a
//! moment, which costs one request that goes to the wrong place.

use core::time::Duration;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::tick::{Tick, nanos};

/// Nanoseconds of a step, as a power of two.
const STEP_BITS: u32 = 20;

/// Seconds of a step.
const STEP: f32 = (1_u64 << STEP_BITS) as f32 / 1e9;

/// Seconds in which the memory of a slow answer fades to 37 %.
const PACE_FADES: f32 = 10.0;

/// Seconds in which a backend without traffic is forgiven to 37 %.
const DOUBT_FADES: f32 = 3.0;

/// How much of the doubt the latest answer is.
const NEWS: f32 = 1.0 / 8.0;

/// Below that there is no doubt.
const NO_DOUBT: f32 = 1.0 / 64.0;

/// The most doubt there is, so that backends that all fail are equal.
const SURE: f32 = 1.0 - 1.0 / 1024.0;

/// The shortest time to an answer, in seconds: backends that have all been idle for an hour are alike.
const SOONEST: f32 = 1e-6;

/// The longest time for which a backend is left alone.
const REST_MAX: Duration = Duration::from_secs(60);

fn steps(now: Tick) -> u32 {
    u32::try_from(now.0 >> STEP_BITS & u64::from(u32::MAX)).expect("32 bits")
}

/// Two 32-bit values as one word.
fn word(value: f32, point: u32) -> u64 {
    u64::from(value.to_bits()) << 32 | u64::from(point)
}

fn value(word: u64) -> f32 {
    f32::from_bits(u32::try_from(word >> 32).expect("32 bits"))
}

fn point(word: u64) -> u32 {
    u32::try_from(word & u64::from(u32::MAX)).expect("32 bits")
}

/// Seconds from `earlier` to `now`.
fn since(earlier: u32, now: Tick) -> f32 {
    // What another thread dates a little later is not from the future.
    steps(now).wrapping_sub(earlier).cast_signed().max(0) as f32 * STEP
}

/// What is left of 1 after `idle` seconds.
fn fade(idle: f32, constant: f32) -> f32 {
    if idle == 0.0 { 1.0 } else { (-idle / constant).exp() }
}

/// Seconds to an answer, 0 when none was good so far, and when the latest came. Zero: none came at all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::targets) struct AnswerPace(u64);

impl AnswerPace {
    /// Seconds since the latest answer.
    fn idle(self, now: Tick) -> f32 {
        since(point(self.0), now)
    }

    /// After an answer that took `took`.
    #[must_use]
    fn answer(self, took: Duration, now: Tick) -> AnswerPace {
        let faded = value(self.0) * fade(self.idle(now), PACE_FADES);
        AnswerPace(word(faded.max(took.as_secs_f32()).max(SOONEST), steps(now)))
    }

    /// After a fault: it says nothing about how soon a good answer would come, so the memory begins to fade anew.
    #[must_use]
    fn fail(self, now: Tick) -> AnswerPace {
        AnswerPace(word(value(self.0), steps(now)))
    }
}

/// The share of faults among the latest answers, 0 to 1, and until when the backend rests (0: it does not).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::targets) struct Doubt(u64);

impl Doubt {
    /// After an answer, the first for `idle` seconds.
    #[must_use]
    fn answer(self, fault: bool, idle: f32, retry_after: Option<Duration>, now: Tick) -> Doubt {
        let share = if fault {
            // Time forgives, until it turns out that it should not have.
            (value(self.0) + NEWS * (1.0 - value(self.0))).min(SURE)
        } else {
            let share = value(self.0) * fade(idle, DOUBT_FADES) * (1.0 - NEWS);
            if share < NO_DOUBT { 0.0 } else { share }
        };
        let until = match retry_after {
            Some(span) if !span.is_zero() => steps(now.after(span.min(REST_MAX))).max(1),
            _ if self.rests(now) => point(self.0),
            _ => 0,
        };
        Doubt(word(share, until))
    }

    fn rests(self, now: Tick) -> bool {
        let left = point(self.0).wrapping_sub(steps(now));
        point(self.0) != 0 && (1..=nanos(REST_MAX) >> STEP_BITS).contains(&u64::from(left))
    }
}

/// What is known of a backend's answers, read at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::targets) struct Seen {
    pace: AnswerPace,
    doubt: Doubt,
    /// The first pick since the latest answer; 0: there was none.
    asked: u32,
}

/// What there is to expect of a backend at one moment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::targets) struct Outlook {
    standing: Standing,
    /// Seconds to an answer; `None`: it has not given a good one yet.
    pace: Option<f32>,
    /// What is left of a second since the latest answer.
    faded: f32,
    /// Seconds since the first of the picks that nothing has come back from, 0 when there is none.
    waited: f32,
    /// How many times as long it takes because of its faults: each is a request in vain, and worse than a late one. So
    /// it is the square of the attempts that one good answer needs.
    burden: f32,
    /// Its leases, counting the one to come, for each unit of its weight.
    load: f64,
}

/// What comes before any cost, best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Standing {
    /// Nothing is known of it and nobody is about to find out.
    Untried,
    /// It has answered.
    Known,
    /// It gets no more until its first answer.
    Awaited,
    /// It asked to be left alone.
    Resting,
}

impl Outlook {
    /// Of a backend with so many leases, which has this weight.
    #[must_use]
    pub(in crate::targets) fn new(seen: Seen, in_flight: u32, weight: u16, now: Tick) -> Outlook {
        let Seen { pace, doubt, asked } = seen;
        let standing = if doubt.rests(now) {
            Standing::Resting
        } else if pace != AnswerPace::default() {
            Standing::Known
        } else if in_flight == 0 {
            Standing::Untried
        } else {
            Standing::Awaited
        };
        let (seconds, share, idle) = (value(pace.0), value(doubt.0), pace.idle(now));
        let waited = if asked == 0 || in_flight == 0 { 0.0 } else { since(asked, now) };
        let good = if share == 0.0 { 1.0 } else { 1.0 - share * fade(idle, DOUBT_FADES) };
        let faded = fade(idle, PACE_FADES);
        Outlook {
            standing,
            pace: (seconds > 0.0).then(|| (seconds * faded).max(SOONEST)),
            faded,
            waited,
            burden: 1.0 / (good * good),
            load: f64::from(in_flight + 1) / f64::from(weight.max(1)),
        }
    }

    /// Whether a request is better off here than with `other`: it is expected to be done sooner. A backend that has only
    /// failed so far is compared as if it had last taken as long as the other.
    #[must_use]
    pub(in crate::targets) fn beats(&self, other: &Outlook) -> bool {
        let cost = |one: &Outlook, beside: &Outlook| {
            let pace = one.pace.unwrap_or_else(|| beside.pace.unwrap_or(1.0) * one.faded);
            // What does not answer at all must not look better and better: it takes at least as long as it has taken.
            f64::from(pace.max(one.waited)) * f64::from(one.burden) * one.load
        };
        match self.standing.cmp(&other.standing) {
            std::cmp::Ordering::Equal => cost(self, other) < cost(other, self),
            order => order.is_lt(),
        }
    }
}

/// What is known of a backend's answers, shared by all threads.
#[derive(Debug, Default)]
pub(in crate::targets) struct Answers {
    pace: AtomicU64,
    doubt: AtomicU64,
    asked: AtomicU32,
}

impl Answers {
    /// What there is to expect of the backend, which has so many leases and this weight.
    #[must_use]
    pub(in crate::targets) fn outlook(&self, in_flight: u32, weight: u16, now: Tick) -> Outlook {
        let seen = Seen {
            pace: AnswerPace(self.pace.load(Ordering::Relaxed)),
            doubt: Doubt(self.doubt.load(Ordering::Relaxed)),
            asked: self.asked.load(Ordering::Relaxed),
        };
        Outlook::new(seen, in_flight, weight, now)
    }

    /// Whether the backend asked to be left alone.
    #[must_use]
    pub(in crate::targets) fn rests(&self, now: Tick) -> bool {
        Doubt(self.doubt.load(Ordering::Relaxed)).rests(now)
    }

    /// What it goes by, as it is kept: nothing of who waits for an answer.
    pub(super) fn words(&self) -> [u64; 2] {
        [self.pace.load(Ordering::Relaxed), self.doubt.load(Ordering::Relaxed)]
    }

    /// Begins with such words, unless there was an answer already.
    pub(super) fn begin_with(&self, [pace, doubt]: [u64; 2]) {
        let is_first = self.pace.compare_exchange(0, pace, Ordering::Relaxed, Ordering::Relaxed);
        if is_first.is_ok() {
            self.doubt.store(doubt, Ordering::Relaxed);
        }
    }

    /// Notes that a request goes to it.
    pub(in crate::targets) fn note_pick(&self, now: Tick) {
        if self.asked.load(Ordering::Relaxed) == 0 {
            self.asked.store(steps(now).max(1), Ordering::Relaxed);
        }
    }

    /// Notes a good answer that took `took`.
    pub(in crate::targets) fn note_good(&self, took: Duration, now: Tick) {
        self.note(false, None, now, |pace| pace.answer(took, now));
    }

    /// Notes that an answer has begun of which it is not known yet how good it is: nobody waits for a sign of life.
    pub(in crate::targets) fn note_begun(&self) {
        self.asked.store(0, Ordering::Relaxed);
    }

    /// Notes a fault, and for how long the backend asks to be left alone.
    pub(in crate::targets) fn note_fault(&self, retry_after: Option<Duration>, now: Tick) {
        self.note(true, retry_after, now, |pace| pace.fail(now));
    }

    /// Notes that somebody who had waited for so long left without an answer.
    pub(in crate::targets) fn note_gone(&self, waited: Duration, now: Tick) {
        let pace =
            |pace: AnswerPace| if pace == AnswerPace::default() { pace } else { pace.answer(waited, now) };
        update(&self.pace, |word| pace(AnswerPace(word)).0);
        self.asked.store(0, Ordering::Relaxed);
    }

    fn note(
        &self,
        fault: bool,
        retry_after: Option<Duration>,
        now: Tick,
        pace: impl Fn(AnswerPace) -> AnswerPace,
    ) {
        let before = AnswerPace(update(&self.pace, |word| pace(AnswerPace(word)).0));
        let idle = before.idle(now);
        update(&self.doubt, |word| Doubt(word).answer(fault, idle, retry_after, now).0);
        if self.asked.load(Ordering::Relaxed) != 0 {
            self.asked.store(0, Ordering::Relaxed);
        }
    }
}

/// Changes `word`, unless that changes nothing; says what it was.
fn update(word: &AtomicU64, change: impl Fn(u64) -> u64) -> u64 {
    loop {
        let before = word.load(Ordering::Relaxed);
        let after = change(before);
        if before == after
            || word.compare_exchange(before, after, Ordering::Relaxed, Ordering::Relaxed).is_ok()
        {
            return before;
        }
    }
}

#[cfg(test)]
mod tests;
