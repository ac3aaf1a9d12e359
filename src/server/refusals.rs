//! What was refused for want of room or of a local resource: counted where it happens, told once in a while by control.
//!
//! A crowd that is turned away must not become a crowd of lines. So control looks at the sums over all workers every second,
//! waits a second for the rest of a burst, and speaks at most once in ten.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::events::{self, RefusalPlace, Refusals};
use crate::message::{Cause, ListenerId};
use crate::telemetry::access_log::Names;
use crate::telemetry::cells::{Cells, RefusedAt};
use crate::tick::Tick;

/// How often the sums are looked at.
pub(super) const LOOK: Duration = Duration::from_secs(1);
/// From one line to the next, at least.
const EVERY: Duration = Duration::from_secs(10);
/// When it is time to tell of a sum that grows.
#[derive(Debug, Default)]
struct Pace {
    told: u64,
    /// The first look that found more than was told.
    noticed: Option<Tick>,
    spoke: Option<Tick>,
}

impl Pace {
    /// What there is to tell of at `now`: how many, and in what time.
    fn look(&mut self, sum: u64, now: Tick) -> Option<(u64, Duration)> {
        let count = sum - self.told;
        if count == 0 {
            return None;
        }
        let noticed = *self.noticed.get_or_insert(now);
        let is_early = now.since(noticed) < LOOK || self.spoke.is_some_and(|spoke| now.since(spoke) < EVERY);
        if is_early {
            return None;
        }
        *self = Pace { told: sum, noticed: None, spoke: Some(now) };
        Some((count, now.since(noticed) + LOOK))
    }
}

impl Pace {
    /// The same at the end, when there is no later.
    fn rest(&mut self, sum: u64, now: Tick) -> Option<(u64, Duration)> {
        let count = sum - self.told;
        let noticed = self.noticed.unwrap_or(now);
        self.told = sum;
        (count > 0).then(|| (count, now.since(noticed) + LOOK))
    }
}

/// What was told so far.
#[derive(Debug, Default)]
pub(super) struct RefusalWatch {
    pace: Pace,
    told: HashMap<(RefusedAt, Cause), u64>,
    cut_pace: Pace,
    cut: HashMap<ListenerId, u64>,
    dropped_pace: Pace,
    dropped: HashMap<ListenerId, u64>,
    accepts: Pace,
}

impl RefusalWatch {
    /// Looks at what all workers have counted by `now`, and tells what is due; at the `end` all that is left. Things are called
    /// by their `names`.
    pub(super) fn look(&mut self, cells: &[Arc<Cells>], names: &Names, now: Tick, end: bool) {
        let step = if end { Pace::rest } else { Pace::look };
        let mut sums: HashMap<(RefusedAt, Cause), u64> = HashMap::new();
        for (at, cause, count) in cells.iter().flat_map(|cells| cells.refusals.refused()) {
            *sums.entry((at, cause)).or_default() += count;
        }
        if let Some((_, span)) = step(&mut self.pace, sums.values().sum(), now) {
            let told = std::mem::replace(&mut self.told, sums);
            events::refused(&added(&told, &self.told, names), span);
        }
        let cut = by_listener(cells.iter().flat_map(|cells| cells.refusals.cuts()));
        if step(&mut self.cut_pace, cut.values().sum(), now).is_some() {
            for (listener, count) in more(&mut self.cut, cut) {
                events::connections_cut(&names.said_of_listener(listener), count);
            }
        }
        let dropped = by_listener(cells.iter().flat_map(|cells| cells.refusals.dropped_lines()));
        if step(&mut self.dropped_pace, dropped.values().sum(), now).is_some() {
            for (listener, count) in more(&mut self.dropped, dropped) {
                events::fields_dropped(&names.said_of_listener(listener), count);
            }
        }
        let shortages = cells.iter().map(|cells| cells.accept_shortages.value()).sum();
        if let Some((count, _)) = step(&mut self.accepts, shortages, now) {
            let codes = cells.iter().map(|cells| cells.accept_error.load(Ordering::Relaxed));
            let code = codes.rev().find(|code| *code != 0).unwrap_or_default();
            events::accept_failed(count, &io::Error::from_raw_os_error(code));
        }
    }
}

/// Sums over all workers.
fn by_listener(counts: impl Iterator<Item = (ListenerId, u64)>) -> HashMap<ListenerId, u64> {
    let mut sums = HashMap::new();
    for (listener, count) in counts {
        *sums.entry(listener).or_default() += count;
    }
    sums
}

/// Puts `sums` in the place of what was `told`, and gives what has been added.
fn more(told: &mut HashMap<ListenerId, u64>, sums: HashMap<ListenerId, u64>) -> Vec<(ListenerId, u64)> {
    let before = std::mem::replace(told, sums);
    let added =
        |(listener, sum): (&ListenerId, &u64)| (*listener, sum - before.get(listener).copied().unwrap_or(0));
    told.iter().map(added).filter(|(_, count)| *count > 0).collect()
}

/// What has been added to what was told.
fn added(
    told: &HashMap<(RefusedAt, Cause), u64>,
    sums: &HashMap<(RefusedAt, Cause), u64>,
    names: &Names,
) -> Refusals {
    let mut refusals = Refusals::default();
    for ((at, cause), sum) in sums {
        let count = sum - told.get(&(*at, *cause)).copied().unwrap_or(0);
        if count > 0 {
            let place = match *at {
                RefusedAt::Listener(id) => RefusalPlace::Listener(names.said_of_listener(id)),
                RefusedAt::Target(id) => RefusalPlace::Target(names.said_of_target(id)),
            };
            refusals.add(place, cause.token(), count);
        }
    }
    refusals
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::TargetId;

    fn at(millis: u64) -> Tick {
        Tick(1 + millis * 1_000_000)
    }

    #[test]
    fn a_burst_is_told_once_wherever_the_looks_fall() {
        let mut pace = Pace::default();
        assert_eq!(pace.look(0, at(0)), None);
        assert_eq!(pace.look(12, at(1000)), None, "it may go on");
        assert_eq!(pace.look(40, at(2000)), Some((40, Duration::from_secs(2))));
        assert_eq!(pace.look(40, at(3000)), None);
    }

    #[test]
    fn what_goes_on_is_told_every_ten_seconds_and_nothing_is_left_out() {
        let mut pace = Pace::default();
        let told: Vec<(u64, u64)> = (0..=32)
            .filter_map(|second| pace.look(second * 5, at(second * 1000)).map(|(count, _)| (second, count)))
            .collect();
        assert_eq!(told, [(2, 10), (12, 50), (22, 50), (32, 50)]);
    }

    #[test]
    fn the_end_waits_for_nothing() {
        let mut pace = Pace::default();
        assert_eq!(pace.rest(0, at(0)), None);
        assert_eq!(pace.look(3, at(1000)), None);
        assert_eq!(pace.rest(5, at(1500)), Some((5, Duration::from_millis(1500))));
        assert_eq!(pace.rest(5, at(1600)), None);
    }

    #[derive(Clone, Default)]
    struct Lines(Arc<std::sync::Mutex<Vec<u8>>>);

    impl io::Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().expect("no panic").write(bytes)
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn what_several_workers_have_cut_of_a_listener_is_one_line() {
        let lines = Lines::default();
        let writer = lines.clone();
        let subscriber =
            tracing_subscriber::fmt().with_ansi(false).with_writer(move || writer.clone()).finish();
        let mut names = Names::default();
        names.name_listener(ListenerId(3), "old");
        let cells: Vec<Arc<Cells>> = vec![Arc::default(), Arc::default()];
        tracing::subscriber::with_default(subscriber, || {
            let mut watch = RefusalWatch::default();
            cells.iter().for_each(|cells| cells.refusals.cut(ListenerId(3), 2));
            (0..30).for_each(|second| watch.look(&cells, &names, at(second * 1_000), false));
            cells[0].refusals.cut(ListenerId(3), 1);
            watch.look(&cells, &names, at(30_000), true);
        });
        let text = String::from_utf8(lines.0.lock().expect("no panic").clone()).expect("text");
        let told: Vec<&str> =
            text.lines().map(|line| line.split("events: ").last().unwrap_or(line)).collect();
        let start = |count: u32| format!("listener old is gone: {count} of its connections were cut ");
        assert!(
            told.len() == 2 && told[0].starts_with(&start(4)) && told[1].starts_with(&start(1)),
            "{told:?}"
        );
    }

    #[test]
    fn what_was_told_is_not_told_again_and_each_place_has_its_name() {
        let (web, app) = (RefusedAt::Listener(ListenerId(0)), RefusedAt::Target(TargetId(1)));
        let mut names = Names::default();
        names.name_listener(ListenerId(0), "web");
        let (full, many) = (Cause::QueueFull, Cause::TooManyConnections);
        let told = HashMap::from([((web, many), 1), ((app, full), 2)]);
        let sums = HashMap::from([((web, many), 39), ((app, full), 2), ((app, Cause::LocalShortage), 2)]);
        let mut expected = Refusals::default();
        expected.add(RefusalPlace::Listener("web".into()), "too_many_connections", 38);
        expected.add(RefusalPlace::Target("#1".into()), "local_shortage", 2);
        assert_eq!(added(&told, &sums, &names), expected);
    }
}
