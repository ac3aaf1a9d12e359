//! What has happened since a change, with marks from which it can be counted: close to one another where they are new.

use std::collections::VecDeque;
use std::time::Duration;

use super::past::Stretch;
use crate::tick::Tick;

/// Marks are so many times as close to one another as they are old.
const CLOSER: u32 = 8;
/// Marks that are closer to one another than this are not needed.
const CLOSEST: Duration = Duration::from_millis(60);

/// When the marks were made that all courses of a trial have.
#[derive(Clone, Debug, Default)]
pub(super) struct Marks(VecDeque<Tick>);

impl Marks {
    /// Adds one.
    pub(super) fn push(&mut self, now: Tick) {
        self.0.push_back(now);
    }

    /// Takes away a mark that is not needed any more and says where it was. The first and the last one stay.
    pub(super) fn thin(&mut self) -> Option<usize> {
        let now = *self.0.back()?;
        let is_spare = |&place: &usize| {
            let [Some(&before), Some(&at), Some(&after)] =
                [place - 1, place, place + 1].map(|place| self.0.get(place))
            else {
                return false;
            };
            after.since(before) <= CLOSEST.max(now.since(at) / CLOSER)
        };
        let place = (1..self.0.len().saturating_sub(1)).rev().find(is_spare)?;
        self.0.remove(place);
        Some(place)
    }

    /// The latest mark that is at least so long ago; `None`: none is.
    pub(super) fn before(&self, span: Duration) -> Option<usize> {
        let now = *self.0.back()?;
        self.0.iter().rposition(|at| now.since(*at) >= span)
    }

    /// How long ago it was made.
    pub(super) fn age(&self, place: usize) -> Duration {
        match (self.0.back(), self.0.get(place)) {
            (Some(now), Some(at)) => now.since(*at),
            _ => Duration::ZERO,
        }
    }
}

/// What was counted of one object at each of the marks, from 0 at the first one.
#[derive(Clone, Debug, Default)]
pub(super) struct Course(VecDeque<Stretch>);

impl Course {
    /// Adds what has come since the latest mark, at a new one.
    pub(super) fn push(&mut self, come: Stretch) {
        let latest = self.0.back().copied().unwrap_or_default();
        self.0.push_back(Stretch {
            ended: latest.ended.saturating_add(come.ended),
            bad: latest.bad.saturating_add(come.bad),
            under_way: come.under_way,
        });
    }

    /// The mark at `place` is not needed any more.
    pub(super) fn forget(&mut self, place: usize) {
        self.0.remove(place);
    }

    /// What has come from one mark to another.
    pub(super) fn between(&self, from: usize, to: usize) -> (f64, f64) {
        let (Some(from), Some(to)) = (self.0.get(from), self.0.get(to)) else { return (0.0, 0.0) };
        (f64::from(to.ended - from.ended), f64::from(to.bad - from.bad))
    }

    /// What has come since a mark.
    pub(super) fn since(&self, from: usize) -> (f64, f64) {
        self.between(from, self.0.len().saturating_sub(1))
    }

    /// What is under way.
    pub(super) fn under_way(&self) -> u32 {
        self.0.back().map_or(0, |latest| latest.under_way)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_few_and_close_where_they_are_new() {
        let (mut marks, mut course) = (Marks::default(), Course::default());
        for step in 0..=1200 {
            marks.push(Tick(0).after(Duration::from_millis(step * 100)));
            course.push(Stretch { ended: u32::from(step > 0), bad: 0, under_way: 7 });
            while let Some(place) = marks.thin() {
                course.forget(place);
            }
        }
        assert!(marks.0.len() < 70, "{}", marks.0.len());
        assert_eq!(course.0.len(), marks.0.len());
        for millis in [200, 400, 2_000, 5_000, 15_000, 60_000] {
            let span = Duration::from_millis(millis);
            let place = marks.before(span).expect("there");
            let age = marks.age(place);
            assert!(age >= span && age <= span + span / 4 + Duration::from_millis(100), "{span:?}: {age:?}");
            #[expect(clippy::cast_precision_loss, reason = "small")]
            let steps = age.as_millis() as f64 / 100.0;
            assert!((course.since(place).0 - steps).abs() < 0.01);
        }
        assert_eq!(marks.before(Duration::from_secs(121)), None);
        assert_eq!(marks.age(0), Duration::from_secs(120));
        assert_eq!(course.under_way(), 7);
    }
}
