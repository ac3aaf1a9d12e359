//! What was refused for want of room or of a local resource: counted where it happens, told once in a while by control.
//!
//! A crowd that is turned away must not become a crowd of lines. So control looks at the sums over all workers every second,
//! waits a second for the rest of a burst, and speaks at most once in ten.

use std::fmt::Write as _;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::events;
use crate::message::Cause;
use crate::telemetry::cells::Cells;
use crate::tick::Tick;

/// How often the sums are looked at.
pub(super) const LOOK: Duration = Duration::from_secs(1);
/// From one line to the next, at least.
const EVERY: Duration = Duration::from_secs(10);
/// What is told beside connections without room: our own 503s that are no word about backends.
const CAUSES: [Cause; 4] = [Cause::QueueFull, Cause::QueueTimeout, Cause::LocalShortage, Cause::NoLocalPort];

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
pub(super) struct Refusals {
    pace: Pace,
    told: [u64; CAUSES.len() + 1],
    accepts: Pace,
}

impl Refusals {
    /// Looks at what all workers have counted by `now`, and tells what is due; at the `end` all that is left.
    pub(super) fn look(&mut self, cells: &[Arc<Cells>], now: Tick, end: bool) {
        let step = if end { Pace::rest } else { Pace::look };
        let of = |count: &dyn Fn(&Cells) -> u64| cells.iter().map(|cells| count(cells)).sum::<u64>();
        let mut sums = [0; CAUSES.len() + 1];
        sums[0] = of(&|cells| cells.connections.without_room.value());
        for (sum, cause) in sums[1..].iter_mut().zip(CAUSES) {
            *sum = of(&|cells| cells.ended_with(cause));
        }
        if let Some((count, span)) = step(&mut self.pace, sums.iter().sum(), now) {
            let told = std::mem::replace(&mut self.told, sums);
            events::refused(count, span, &by_cause(&told, &sums));
        }
        if let Some((count, _)) = step(&mut self.accepts, of(&|cells| cells.accept_shortages.value()), now) {
            let codes = cells.iter().map(|cells| cells.accept_error.load(Ordering::Relaxed));
            let code = codes.rev().find(|code| *code != 0).unwrap_or_default();
            events::accept_failed(count, &io::Error::from_raw_os_error(code));
        }
    }
}

/// `38 too_many_connections, 2 queue_full`.
fn by_cause(told: &[u64], sums: &[u64]) -> String {
    let causes = [Cause::TooManyConnections].into_iter().chain(CAUSES);
    let mut text = String::new();
    for ((cause, sum), told) in causes.zip(sums).zip(told).filter(|((_, sum), told)| sum > told) {
        let comma = if text.is_empty() { "" } else { ", " };
        // Writing to a String can't fail.
        let _ = write!(text, "{comma}{} {cause}", sum - told);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn each_cause_has_its_number() {
        assert_eq!(
            by_cause(&[1, 0, 2, 0, 0], &[39, 0, 2, 2, 0]),
            "38 too_many_connections, 2 local_shortage"
        );
    }
}
