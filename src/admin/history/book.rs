//! All histories, and the moments that they are told from.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::counted::{RowTally, Shot};
use super::point::Point;
use super::series::{Series, put};
use super::{MEMORY, SECONDS, TENS};
use crate::tick::Tick;

/// From one point to the next.
const STEP: Duration = Duration::from_secs(1);
/// As many of them are one of the longer ones.
const LONG: u64 = 10;
/// After a pause of more steps than these it begins anew.
const PAUSE: u64 = 30;

/// What was counted of late.
///
/// Invariants: all series have their points at the same steps, and those that came later have fewer; the sum over the points of a row
/// is what was counted of it meanwhile; there are three moments at most, and as many series as fit into [`MEMORY`] beside them.
#[derive(Debug, Default)]
pub(in crate::admin) struct HistoryBook(Mutex<Pages>);

#[derive(Debug, Default)]
struct Pages {
    /// The moment of step 0.
    begun: Tick,
    /// The latest step.
    step: u64,
    latest: Option<Arc<Shot>>,
    /// The latest one whose step is a multiple of [`LONG`], and the one before it.
    long: [Option<Arc<Shot>>; 2],
    series: HashMap<String, Series>,
}

/// Points of one row: the value of each step, the latest last.
pub(super) struct RowPoints {
    pub(super) name: String,
    pub(super) points: Vec<Point>,
}

impl HistoryBook {
    fn pages(&self) -> MutexGuard<'_, Pages> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes what was counted by now; to be called each second.
    pub(in crate::admin) fn note(&self, shot: Shot) {
        self.pages().note(Arc::new(shot));
    }

    /// What was counted ten to twenty seconds before the latest moment, or since there is a history; `None`: there is none.
    pub(in crate::admin) fn earlier(&self, now: Tick) -> Option<Arc<Shot>> {
        let pages = self.pages();
        let is_kept = pages.latest.as_ref().is_some_and(|latest| now.since(latest.at) < STEP * 3);
        let [newer, older] = &pages.long;
        older.clone().or_else(|| newer.clone()).filter(|_| is_kept)
    }

    /// What was counted at the latest moment.
    pub(in crate::admin) fn latest(&self) -> Option<Arc<Shot>> {
        self.pages().latest.clone()
    }

    /// The points of these rows, and how long before `now` the last of them was; rows that have none are left out.
    pub(super) fn points<'n>(
        &self,
        rows: impl Iterator<Item = &'n str>,
        is_long: bool,
        now: Tick,
    ) -> (Vec<RowPoints>, Duration) {
        let pages = self.pages();
        let last = if is_long { pages.step - pages.step % LONG } else { pages.step };
        let last = pages.begun.after(STEP * u32::try_from(last).unwrap_or(u32::MAX));
        let of = |name: &str| {
            let series = pages.series.get(name)?;
            let points = if is_long { &series.tens } else { &series.seconds };
            Some(RowPoints { name: name.to_owned(), points: points.iter().copied().collect() })
        };
        (rows.filter_map(of).collect(), now.since(last))
    }

    /// The names of all rows that have a history, but of backends.
    pub(super) fn names(&self) -> Vec<String> {
        let pages = self.pages();
        let mut names: Vec<String> =
            pages.series.keys().filter(|name| !name.starts_with("backend/")).cloned().collect();
        names.sort_unstable();
        names
    }
}

impl Pages {
    fn note(&mut self, shot: Arc<Shot>) {
        let step = self.step_of(shot.at);
        let paused = step.saturating_sub(self.step);
        if self.latest.is_none() || paused > PAUSE {
            *self = Pages { begun: shot.at, long: [Some(Arc::clone(&shot)), None], ..Pages::default() };
            self.latest = Some(shot);
            return;
        }
        // What comes too early is in the next one.
        let Some(steps) = u32::try_from(paused).ok().filter(|steps| *steps > 0) else { return };
        self.keep_those_that_fit(&shot);
        let before = self.latest.replace(Arc::clone(&shot));
        let rows_before = before.as_ref().map(|before| &before.rows);
        for (name, series) in &mut self.series {
            let Some(now) = shot.rows.get(name) else { continue };
            let point = point(now, rows_before.and_then(|rows| rows.get(name)));
            put(&mut series.seconds, SECONDS, point, steps);
        }
        let longs = u32::try_from(step / LONG - self.step / LONG).unwrap_or(0);
        self.step = step;
        if longs > 0 {
            let [newer, _] = &self.long;
            let rows_before = newer.as_ref().map(|before| &before.rows);
            for (name, series) in &mut self.series {
                let Some(now) = shot.rows.get(name) else { continue };
                let point = point(now, rows_before.and_then(|rows| rows.get(name)));
                put(&mut series.tens, TENS, point, longs);
            }
            self.long = [Some(shot), self.long[0].take()];
        }
    }

    /// The step that is nearest: who comes a little early or late is not taken for two.
    fn step_of(&self, at: Tick) -> u64 {
        (at.since(self.begun) + STEP / 2).as_secs()
    }

    /// Series of rows that are gone go, and those that are new come, if there is room.
    fn keep_those_that_fit(&mut self, shot: &Shot) {
        let is_backend = |name: &str| name.starts_with("backend/");
        let bytes: usize = shot.rows.iter().map(|(name, row)| Series::BYTES + 3 * row.bytes(name)).sum();
        let mut left = MEMORY;
        let mut wanted = |name: &str, row: &RowTally| {
            if is_backend(name) {
                return bytes <= MEMORY;
            }
            let own = Series::BYTES + 3 * row.bytes(name);
            let fits = own <= left;
            left -= if fits { own } else { 0 };
            fits
        };
        let kept: HashSet<&str> =
            shot.rows.iter().filter(|(name, row)| wanted(name, row)).map(|(name, _)| name.as_str()).collect();
        self.series.retain(|name, _| kept.contains(name.as_str()));
        for name in kept {
            if !self.series.contains_key(name) {
                self.series.insert(name.to_owned(), Series::new());
            }
        }
    }
}

/// What came of a row between two moments.
#[expect(clippy::cast_possible_truncation, reason = "milliseconds for people")]
fn point(now: &RowTally, before: Option<&RowTally>) -> Point {
    let (requests, errors) = now.since(before);
    let times = now.times(before);
    let few = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
    let number = |time: Option<f64>| time.map_or(f32::NAN, |time| time as f32);
    Point {
        requests: few(requests),
        errors: few(errors),
        active: few(now.active),
        p50_ms: number(times.p50_ms),
        p99_ms: number(times.p99_ms),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn shot(millis: u64, rows: &[(&str, u64)]) -> Shot {
        let row = |&(name, requests): &(&str, u64)| (name.to_owned(), RowTally::some(1, requests));
        Shot { at: Tick(7).after(Duration::from_millis(millis)), rows: rows.iter().map(row).collect() }
    }

    fn requests(book: &HistoryBook, name: &str, is_long: bool) -> Vec<u32> {
        let (rows, _) = book.points([name].into_iter(), is_long, Tick(7));
        rows.into_iter().flat_map(|row| row.points).map(|point| point.requests).collect()
    }

    proptest! {
        #[test]
        fn what_was_counted_is_in_the_points_whenever_it_was_looked_at(
            looks in prop::collection::vec((200..4_000_u64, 0..1_000_u64), 1..120),
        ) {
            let book = HistoryBook::default();
            let (mut at, mut count) = (0, 5_000);
            book.note(shot(at, &[("target/a", count)]));
            let (mut told, mut told_long, mut step) = (count, count, 0);
            for (pause, more) in looks {
                (at, count) = (at + pause, count + more);
                book.note(shot(at, &[("target/a", count)]));
                let now = (at + 500) / 1000;
                if now > step {
                    told_long = if now / 10 > step / 10 { count } else { told_long };
                    (told, step) = (count, now);
                }
            }
            let seconds = requests(&book, "target/a", false);
            prop_assert_eq!(seconds.len() as u64, step.min(300));
            if step <= 300 {
                prop_assert_eq!(seconds.iter().map(|count| u64::from(*count)).sum::<u64>(), told - 5_000);
            }
            let tens = requests(&book, "target/a", true);
            prop_assert_eq!(tens.len() as u64, step / 10);
            prop_assert_eq!(tens.iter().map(|count| u64::from(*count)).sum::<u64>(), told_long - 5_000);
        }
    }

    #[test]
    fn who_comes_later_has_fewer_points_and_who_goes_has_none() {
        let book = HistoryBook::default();
        book.note(shot(0, &[("target/a", 10)]));
        book.note(shot(1_000, &[("target/a", 11)]));
        book.note(shot(2_000, &[("target/a", 13), ("target/b", 4)]));
        assert_eq!(requests(&book, "target/a", false), [1, 2]);
        assert_eq!(requests(&book, "target/b", false), [4], "what it has is what came since it is there");
        book.note(shot(3_000, &[("target/b", 5)]));
        assert_eq!(
            (requests(&book, "target/a", false).len(), book.names()),
            (0, vec!["target/b".to_owned()])
        );
        // Another one of its name counts from zero.
        let another =
            Shot { rows: [("target/b".to_owned(), RowTally::some(2, 9))].into(), ..shot(4_000, &[]) };
        book.note(another);
        assert_eq!(requests(&book, "target/b", false), [4, 1, 9]);
        book.note(shot(40_000, &[("target/b", 9)]));
        assert_eq!(requests(&book, "target/b", false), [0; 0], "after a pause it begins anew");
    }

    #[test]
    fn a_moment_to_compare_with_is_ten_to_twenty_seconds_ago_and_none_is_older() {
        let (book, at) = (HistoryBook::default(), |millis| Tick(7).after(Duration::from_millis(millis)));
        for second in 0..35 {
            book.note(shot(second * 1_000, &[]));
        }
        assert_eq!(book.earlier(at(34_500)).expect("one").at, at(20_000));
        assert!(book.earlier(at(38_000)).is_none(), "nobody has counted for seconds");
    }

    #[test]
    fn where_not_all_backends_fit_the_targets_have_a_history() {
        let names: Vec<String> = (0..3_000).map(|number| format!("backend/a/b{number}")).collect();
        let of = |count: usize| {
            let book = HistoryBook::default();
            let mut rows: Vec<(&str, u64)> = names[..count].iter().map(|name| (name.as_str(), 0)).collect();
            rows.push(("target/a", 0));
            book.note(shot(0, &rows));
            book.note(shot(1_000, &rows));
            ["backend/a/b0", "target/a"].map(|name| requests(&book, name, false).len())
        };
        assert_eq!((of(1_000), of(3_000)), ([1, 1], [0, 1]));
        const { assert!(2_000 * Series::BYTES < MEMORY) };
    }
}
