//! Which requests are slow: those that take longer than nearly all of their target did within the last minute.
//!
//! Control finds the marks out, now and then, from what the cells have counted; workers only read the one of a target, with a relaxed load.

use std::collections::HashMap;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::message::TargetId;
use crate::telemetry::cells::Distribution;
use crate::tick::{Tick, nanos};

/// How often the marks are to be found anew.
pub const LOOK: Duration = Duration::from_secs(5);
/// Half of the time that a mark is about: it goes by the last half that is over, and by what came since.
const HALF: Duration = Duration::from_secs(30);
/// The share of requests that are not slow.
const QUICK: f64 = 0.99;
/// Of fewer requests none can be called slower than nearly all.
const LEAST: u64 = 100;

/// Targets whose marks lie together.
const GROUP: usize = 256;
/// No request takes longer.
const NONE: u64 = u64::MAX;

/// How long a request to a target may take without being slow, by the target's number.
#[derive(Debug)]
pub struct SlowMarks([OnceLock<Box<[AtomicU64; GROUP]>>; GROUP]);

impl Default for SlowMarks {
    fn default() -> SlowMarks {
        SlowMarks([const { OnceLock::new() }; GROUP])
    }
}

impl SlowMarks {
    /// In nanoseconds; more than any request takes: nothing is known of this target.
    #[inline]
    #[must_use]
    pub fn of(&self, id: TargetId) -> u64 {
        let (group, place) = (usize::from(id.0) / GROUP, usize::from(id.0) % GROUP);
        self.0[group].get().map_or(NONE, |marks| marks[place].load(Ordering::Relaxed))
    }

    fn set(&self, id: TargetId, mark: u64) {
        let (group, place) = (usize::from(id.0) / GROUP, usize::from(id.0) % GROUP);
        let marks = self.0[group].get_or_init(|| Box::new([const { AtomicU64::new(NONE) }; GROUP]));
        marks[place].store(mark, Ordering::Relaxed);
    }
}

/// Finds the marks out.
#[derive(Debug, Default)]
pub struct SlowFinder {
    /// When the present half began.
    since: Tick,
    targets: HashMap<TargetId, Halves>,
}

/// What had been counted when the last half began, and when this one did.
#[derive(Debug, Default)]
struct Halves {
    before: Counted,
    since: Counted,
}

/// How many took how long: upper edges of buckets, in nanoseconds, and their counts.
type Counted = Vec<(u64, u64)>;

impl SlowFinder {
    /// Finds out what is slow at `now`, when so much is counted of these targets, and tells `marks`.
    pub fn look<'d>(
        &mut self,
        durations: impl Iterator<Item = (TargetId, &'d Distribution)>,
        now: Tick,
        marks: &SlowMarks,
    ) {
        let is_over = now.since(self.since) >= HALF;
        let mut before = std::mem::take(&mut self.targets);
        for (id, duration) in durations {
            let counted: Counted = duration.buckets().map(|(edge, count)| (nanos(edge), count)).collect();
            let mut halves = before.remove(&id).unwrap_or_default();
            if difference(&halves.since, &counted).is_none() {
                halves = Halves::default();
            }
            let lately = difference(&halves.before, &counted);
            marks.set(id, lately.as_ref().map_or(NONE, mark));
            if is_over {
                halves.before = std::mem::replace(&mut halves.since, counted);
            }
            self.targets.insert(id, halves);
        }
        // Whoever gets the number of one that is gone begins without a mark.
        before.keys().for_each(|id| marks.set(*id, NONE));
        if is_over {
            self.since = now;
        }
    }
}

/// What was counted between two looks; `None`: it was counted anew meanwhile, for somebody else.
fn difference(before: &Counted, after: &Counted) -> Option<Counted> {
    let mut lately = after.clone();
    for (edge, count) in before {
        let at = lately.binary_search_by_key(edge, |(edge, _)| *edge).ok()?;
        lately[at].1 = lately[at].1.checked_sub(*count)?;
    }
    Some(lately)
}

/// The time that nearly all did not exceed.
fn mark(lately: &Counted) -> u64 {
    let all: u64 = lately.iter().map(|(_, count)| count).sum();
    if all < LEAST {
        return NONE;
    }
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a rank may be off by one from 2^53 values on"
    )]
    let rank = (all as f64 * QUICK).ceil() as u64;
    let mut seen = 0;
    let found = lately.iter().find(|(_, count)| {
        seen += count;
        seen >= rank
    });
    found.map_or(NONE, |(edge, _)| *edge)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::telemetry::cells::Histogram;

    const WEB: TargetId = TargetId(700);

    fn at(seconds: u64) -> Tick {
        Tick(1).after(Duration::from_secs(seconds))
    }

    struct Scene {
        histogram: Histogram,
        finder: SlowFinder,
        marks: SlowMarks,
    }

    impl Scene {
        fn serve(&self, count: u32, millis: u64) {
            (0..count).for_each(|_| self.histogram.record(millis * 1_000_000));
        }

        /// The mark in milliseconds, a bucket's width too high at most; `None`: there is none.
        fn look(&mut self, second: u64) -> Option<u64> {
            let mut duration = Distribution::default();
            duration.add(&self.histogram);
            self.finder.look([(WEB, &duration)].into_iter(), at(second), &self.marks);
            Some(self.marks.of(WEB)).filter(|&mark| mark != NONE).map(|mark| mark / 1_000_000)
        }
    }

    fn scene() -> Scene {
        Scene { histogram: Histogram::default(), finder: SlowFinder::default(), marks: SlowMarks::default() }
    }

    #[test]
    fn a_mark_is_about_the_last_minute_and_about_enough_requests() {
        let mut scene = scene();
        assert_eq!((scene.marks.of(WEB), scene.look(0)), (NONE, None));
        scene.serve(99, 10);
        assert_eq!(scene.look(5), None, "too few");
        scene.serve(1, 500);
        assert!(scene.look(10).is_some_and(|mark| (10..12).contains(&mark)), "one in a hundred is slower");
        scene.serve(10, 500);
        assert!(scene.look(31).is_some_and(|mark| mark >= 500));
        // Two halves later nobody knows of them any more.
        scene.serve(200, 10);
        scene.look(61);
        scene.look(91);
        scene.serve(200, 20);
        assert!(scene.look(95).is_some_and(|mark| (20..24).contains(&mark)));
        scene.look(121);
        scene.look(152);
        assert_eq!(scene.look(153), None, "nothing came for a minute");
    }

    #[test]
    fn a_number_that_is_somebody_elses_begins_without_a_mark() {
        let mut scene = scene();
        scene.serve(200, 10);
        assert!(scene.look(1).is_some());
        scene.look(40);
        scene.histogram.clear();
        scene.serve(150, 20);
        assert!(scene.look(45).is_some_and(|mark| (20..24).contains(&mark)), "it is about the new one");
        scene.finder.look(std::iter::empty(), at(50), &scene.marks);
        assert_eq!(scene.marks.of(WEB), NONE);
    }
}
