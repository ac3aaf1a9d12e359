//! The watchdog of whoever supervises the process: it is fed as long as every worker does its work.

use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Runtime;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::events;
use crate::lasting::again;
use crate::net::{now, supervisor};
use crate::telemetry::cells::{Cells, DurationReading};
use crate::tick::Tick;

/// Workers that are busy say so a little late: one that says nothing for less than this is not stuck.
const LATE: Duration = Duration::from_secs(1);
/// How often it is fed in its time.
const FEEDS: u32 = 4;

/// What was seen of workers.
#[derive(Debug, Default)]
struct WorkerWatch {
    /// Of each, how often it has kept its house, and since when that number stands.
    seen: Vec<(u64, Tick)>,
}

impl WorkerWatch {
    /// Which workers have done nothing for `most`, where they have kept their houses so often by `now`.
    fn look(&mut self, counts: &[u64], most: Duration, now: Tick) -> Vec<usize> {
        self.seen.resize(counts.len(), (u64::MAX, now));
        for (seen, count) in self.seen.iter_mut().zip(counts) {
            if seen.0 != *count {
                *seen = (*count, now);
            }
        }
        let stuck = self.seen.iter().enumerate().filter(|(_, (_, since))| now.since(*since) >= most);
        stuck.map(|(number, _)| number).collect()
    }
}

fn kept(cells: &Cells) -> u64 {
    let mut reading = DurationReading::default();
    reading.add(&cells.lateness);
    reading.count()
}

/// Feeds it until the process drains, if there is one.
pub(super) fn feed(control: &Runtime, cells: Vec<Arc<Cells>>, drain: CancellationToken) {
    let Some(span) = supervisor::watchdog() else { return };
    let feeding = again("the watchdog", async move || {
        let (mut watch, mut was_stuck) = (WorkerWatch::default(), false);
        loop {
            let counts: Vec<u64> = cells.iter().map(|cells| kept(cells)).collect();
            let stuck = watch.look(&counts, LATE.max(span / 2), now());
            if let (Some(worker), false) = (stuck.first(), was_stuck) {
                events::worker_stuck(*worker);
            }
            was_stuck = !stuck.is_empty();
            if stuck.is_empty()
                && let Err(error) = supervisor::tell("WATCHDOG=1\n")
            {
                events::supervisor_not_told(&error);
            }
            sleep(span / FEEDS).await;
        }
    });
    // Another process may be the one that is watched from then on.
    control.spawn(async move { drain.run_until_cancelled_owned(feeding).await });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_is_stuck_when_it_alone_goes_on_with_nothing() {
        let (mut watch, most) = (WorkerWatch::default(), Duration::from_secs(1));
        let at = |millis: u64| Tick(1 + millis * 1_000_000);
        assert_eq!(watch.look(&[0, 0], most, at(0)), [0; 0]);
        assert_eq!(watch.look(&[0, 1], most, at(900)), [0; 0]);
        assert_eq!(watch.look(&[0, 2], most, at(1000)), [0]);
        assert_eq!(watch.look(&[1, 2], most, at(1100)), [0; 0], "it was late");
        assert_eq!(watch.look(&[2, 2], most, at(2100)), [1]);
    }
}
