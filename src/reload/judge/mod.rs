//! Whether a config that is on trial makes anything worse: a pure function of what was counted before and since.
//!
//! What is worse is what fails more often than it did before, beyond what chance explains, and beyond what those have come to
//! meanwhile that the config does not touch. Three questions are asked at each look, of each object that is touched:
//!
//! * Do more than half fail? A fifth of a second is enough to say so.
//! * Do more fail than before, all through the latest two seconds, or five, fifteen, or since the change? All through: each
//!   quarter of that time has to be worse, so that a backend that stumbles once reverts nothing.
//! * Has nothing ended for three seconds, though as much is under way as ever, and ends came all the time before?

pub mod baseline;
pub mod course;
pub mod past;
pub mod sample;
pub mod touched;
pub mod worse;

use std::sync::Arc;
use std::time::Duration;

use baseline::{Baseline, evidence, upper_bound};
use course::{Course, Marks};
use past::{Stretch, TrafficPast};
use sample::{JudgedObject, TrafficSample};
use touched::Touched;
use worse::{Worse, Worsening};

/// How often a sample is looked at while a config is on trial.
pub const LOOK: Duration = Duration::from_millis(100);

/// Fewer failures never decide.
const FEWEST: f64 = 8.0;
/// The chance that a look finds fault with one that is none the worse is below e to the power of minus this, for all touched
/// objects together. It is much smaller in fact, since the worst of what was before is taken for usual.
const EVIDENCE: f64 = 10.0;
/// Where more than half fail it is enough to have looked at so much: the first failure is half a second ago at most, if there are
/// 50 requests a second.
const FAST: [Duration; 2] = [Duration::from_millis(200), Duration::from_millis(400)];
/// Otherwise it is looked at so much, and at all since the change.
const STEADY: [Duration; 3] = [Duration::from_secs(2), Duration::from_secs(5), Duration::from_secs(15)];
/// In so many parts, each of which has to be worse.
const PARTS: u32 = 4;
/// Those that are not touched have become worse themselves only if so many of them failed.
const FEWEST_OTHERS: f64 = 3.0;
/// How far their true share may be above what is seen, in standard deviations.
const SURE_OF_OTHERS: f64 = 3.0;
/// What has come to them in this time is held to go on.
const OF_LATE: Duration = Duration::from_secs(5);

/// Without an end for so long a target may hang.
const SILENCE: Duration = Duration::from_secs(3);
/// But not if fewer ends than this were to be expected meanwhile.
const EXPECTED: f64 = 15.0;
/// Or if it has been silent for a third of that time before.
const SILENCE_BEFORE: u32 = 3;
/// Or if it was looked at for less than this many seconds.
const KNOWN_FOR: f64 = 10.0;
/// Or if nobody waits: less is under way than this share of the most that was, or than [`FEWEST_WAITING`].
const WAITING: f64 = 0.9;
/// See [`WAITING`].
const FEWEST_WAITING: u32 = 5;

/// Looks at what a config that is on trial does to what it touches.
#[derive(Debug)]
pub struct Judge {
    latest: TrafficSample,
    marks: Marks,
    touched: Vec<Watched<JudgedObject>>,
    /// Targets, then listeners, that show how it goes without the change.
    others: [Watched<Vec<JudgedObject>>; 2],
    enough: f64,
}

/// One object, or several together.
#[derive(Debug)]
struct Watched<O> {
    object: O,
    /// Where it stands, or where they do, in the latest sample.
    places: Vec<usize>,
    before: Baseline,
    course: Course,
}

impl<O> Watched<O> {
    fn new(object: O, before: &[(Duration, Stretch)]) -> Watched<O> {
        let mut course = Course::default();
        course.push(Stretch::default());
        Watched { object, places: Vec::new(), before: Baseline::new(before), course }
    }

    /// Adds what has come from one sample to the next.
    fn note(&mut self, now: &TrafficSample, before: &TrafficSample) {
        let mut sum = Stretch::default();
        let small = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
        for &place in &self.places {
            let ends = now.ended_since(before, place);
            sum.ended = sum.ended.saturating_add(small(ends.ended));
            sum.bad = sum.bad.saturating_add(small(ends.bad));
            sum.under_way = sum.under_way.saturating_add(small(now.tallies[place].under_way));
        }
        self.course.push(sum);
    }
}

impl Judge {
    /// Of a config that was put into force just before `begun` was counted, with what was counted before that.
    #[must_use]
    pub fn new(past: &TrafficPast, touched: &Touched, begun: TrafficSample) -> Judge {
        let (touched, others) = touched.split(&begun.roster);
        let (targets, listeners): (Vec<_>, Vec<_>) =
            others.into_iter().partition(|object| matches!(object, JudgedObject::Target(_)));
        let together = |objects: Vec<JudgedObject>| {
            let before = past.of_all(&objects);
            Watched::new(objects, &before)
        };
        let one = |object: JudgedObject| {
            let before = past.of(&object);
            Watched::new(object, &before)
        };
        #[expect(clippy::cast_precision_loss, reason = "a count of objects")]
        let enough = EVIDENCE + (touched.len().max(1) as f64).ln();
        let mut marks = Marks::default();
        marks.push(begun.at);
        let mut judge = Judge {
            latest: begun,
            marks,
            touched: touched.into_iter().map(one).collect(),
            others: [together(targets), together(listeners)],
            enough,
        };
        judge.find();
        judge
    }

    /// Finds out where all of them stand in the latest sample.
    fn find(&mut self) {
        let roster = &self.latest.roster;
        for watched in &mut self.touched {
            watched.places = roster.place(&watched.object).into_iter().collect();
        }
        for others in &mut self.others {
            others.places = others.object.iter().filter_map(|object| roster.place(object)).collect();
        }
    }

    /// What is worse, if anything is, by what is counted now. To be asked each [`LOOK`].
    #[must_use]
    pub fn look(&mut self, sample: TrafficSample) -> Option<Worse> {
        if sample.at <= self.latest.at {
            return None;
        }
        self.note(sample);
        let mut worst: Option<(f64, Worse)> = None;
        for watched in &self.touched {
            let found = self.failing(watched).or_else(|| Some((0.0, self.hanging(watched)?)));
            if let Some((sure, worse)) = found
                && worst.as_ref().is_none_or(|(most, _)| sure > *most)
            {
                worst = Some((sure, worse));
            }
        }
        worst.map(|(_, worse)| worse)
    }

    fn note(&mut self, sample: TrafficSample) {
        let before = std::mem::replace(&mut self.latest, sample);
        if !Arc::ptr_eq(&before.roster, &self.latest.roster) {
            self.find();
        }
        self.marks.push(self.latest.at);
        self.touched.iter_mut().for_each(|watched| watched.note(&self.latest, &before));
        self.others.iter_mut().for_each(|others| others.note(&self.latest, &before));
        while let Some(place) = self.marks.thin() {
            self.touched.iter_mut().for_each(|watched| watched.course.forget(place));
            self.others.iter_mut().for_each(|others| others.course.forget(place));
        }
    }

    /// Those that show how it goes for objects of this kind without the change.
    fn others(&self, object: &JudgedObject) -> &Watched<Vec<JudgedObject>> {
        let [targets, listeners] = &self.others;
        if matches!(object, JudgedObject::Target(_)) { targets } else { listeners }
    }

    /// Whether more fails, and how sure that is.
    fn failing(&self, watched: &Watched<JudgedObject>) -> Option<(f64, Worse)> {
        let whole = self.marks.age(0);
        let fast = FAST.iter().map(|span| (*span, true));
        let steady =
            STEADY.iter().chain([&whole]).filter(|span| **span >= STEADY[0]).map(|span| (*span, false));
        let found = fast.chain(steady).filter_map(|(span, is_fast)| {
            let from = self.marks.before(span)?;
            let (ended, bad) = watched.course.since(from);
            if bad < FEWEST || (is_fast && bad <= ended / 2.0) {
                return None;
            }
            let expected = self.expected(watched, from, span);
            let sure = evidence(bad, ended, expected) / watched.before.swarm;
            let is_worse =
                sure >= self.enough && (is_fast || self.is_worse_throughout(watched, from, expected));
            is_worse.then(|| (sure, self.told(watched, from)))
        });
        found.max_by(|(one, _), (other, _)| one.total_cmp(other))
    }

    /// The share that may fail since a mark without anything being worse.
    fn expected(&self, watched: &Watched<JudgedObject>, from: usize, span: Duration) -> f64 {
        let others = self.others(&watched.object);
        let was = others.before.share.unwrap_or(0.0);
        let rise = |from| {
            let (ended, bad) = others.course.since(from);
            let has_risen = bad >= FEWEST_OTHERS && bad / ended > was;
            if has_risen { upper_bound(bad, ended, SURE_OF_OTHERS) - was } else { 0.0 }
        };
        let of_late = self.marks.before(OF_LATE).unwrap_or(0);
        watched.before.worst(span) + rise(from).max(rise(of_late))
    }

    fn is_worse_throughout(&self, watched: &Watched<JudgedObject>, from: usize, expected: f64) -> bool {
        let age = self.marks.age(from);
        let mut begin = from;
        (1..=PARTS).all(|part| {
            let end = self.marks.before(age - age * part / PARTS).unwrap_or(from);
            let (ended, bad) = watched.course.between(begin, end);
            begin = end;
            bad > ended * expected
        })
    }

    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "whole and positive")]
    fn told(&self, watched: &Watched<JudgedObject>, from: usize) -> Worse {
        let (ended, bad) = watched.course.since(from);
        let how = Worsening::Failing { ended: ended as u64, bad: bad as u64, before: watched.before.share };
        Worse { object: watched.object.clone(), over: self.marks.age(from), how }
    }

    /// Whether it takes requests and ends none.
    fn hanging(&self, watched: &Watched<JudgedObject>) -> Option<Worse> {
        let (before, course) = (&watched.before, &watched.course);
        if before.seconds < KNOWN_FOR || before.rate <= 0.0 {
            return None;
        }
        let waiting = course.under_way();
        if waiting < FEWEST_WAITING || f64::from(waiting) < f64::from(before.most_under_way) * WAITING {
            return None;
        }
        let expected = Duration::try_from_secs_f64(EXPECTED / before.rate).ok()?;
        let silence = SILENCE.max(expected).max(before.longest_silence * SILENCE_BEFORE);
        let from = self.marks.before(silence)?;
        let others = self.others(&watched.object);
        let share = |(ended, _): (f64, f64)| ended > 0.0;
        let over = self.marks.age(from);
        // Where those that are not touched stand still as well it is not the change's fault.
        let others_end =
            others.before.rate * over.as_secs_f64() < EXPECTED || share(others.course.since(from));
        let hangs = !share(course.since(from)) && others_end;
        let how = Worsening::Hanging { under_way: waiting.into(), before: before.rate };
        hangs.then(|| Worse { object: watched.object.clone(), over, how })
    }
}

#[cfg(test)]
mod tests;
