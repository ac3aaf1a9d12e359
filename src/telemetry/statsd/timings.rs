//! Times of single requests, for receivers that make percentiles of them: drawn by workers, sent by control.
//!
//! Invariants: whatever is handed in is counted once, as waiting or as dropped, and what waits is taken out by one reader in the order in which it
//! came. Names are written out by who hands in: a number may be somebody else's by the time that it is sent. Nobody waits.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::mpsc::{Receiver, Sender, channel};

use crate::config::model::Share;
use crate::message::{Record, RecordKind};
use crate::telemetry::access_log::Names;
use crate::telemetry::cells::{StatusClass, waited_for_backends, whole_time};

/// Requests whose times wait to be sent.
const ROOM: usize = 4096;

/// The times of a request that is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestTiming {
    /// Where it was routed; empty: nowhere.
    pub target: Box<str>,
    /// It stands for others: it was drawn with this chance, which another config may have changed since.
    pub share: Share,
    /// What its client got.
    pub class: StatusClass,
    /// From its first byte to the last one of its answer.
    pub whole: Duration,
    /// How long backends were waited for; `None`: none was asked.
    pub backend: Option<Duration>,
}

/// From workers to whoever sends. There is one for all workers and all configs.
#[derive(Debug)]
pub struct TimingOutlet {
    entries: Sender<RequestTiming>,
    source: Mutex<Receiver<RequestTiming>>,
    dropped: AtomicU64,
}

impl Default for TimingOutlet {
    fn default() -> TimingOutlet {
        let (entries, source) = channel(ROOM);
        TimingOutlet { entries, source: Mutex::new(source), dropped: AtomicU64::new(0) }
    }
}

impl TimingOutlet {
    /// What waits, at most so much of it.
    #[must_use]
    pub fn take(&self, most: usize) -> Vec<RequestTiming> {
        let mut source = self.source.lock().unwrap_or_else(PoisonError::into_inner);
        std::iter::from_fn(|| source.try_recv().ok()).take(most).collect()
    }

    /// How many there was no room for.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }
}

/// By which a worker hands in times under one config.
#[derive(Clone, Debug)]
pub struct TimingPen {
    /// A number up to this is drawn, of all that 64 bits can be.
    threshold: u64,
    share: Share,
    outlet: Arc<TimingOutlet>,
}

impl TimingPen {
    /// One that draws so many requests.
    #[must_use]
    pub fn new(share: Share, outlet: &Arc<TimingOutlet>) -> TimingPen {
        let threshold = (u128::from(share.millionths()) << 64) / 1_000_000;
        TimingPen {
            threshold: u64::try_from(threshold).unwrap_or(u64::MAX),
            share,
            outlet: Arc::clone(outlet),
        }
    }

    /// Whether a request is drawn. `chance`: any number.
    #[inline]
    #[must_use]
    pub fn draws(&self, chance: u64) -> bool {
        chance <= self.threshold
    }

    /// Hands in the times of a request that is over. Tunnels and TCP connections last as long as somebody likes, and have none.
    #[cold]
    pub fn hand_in(&self, record: &Record, names: &Names) {
        let (RecordKind::Http, Some(whole)) = (record.kind, whole_time(record)) else { return };
        let timing = RequestTiming {
            target: record.target.map_or("", |target| names.target_text(target)).into(),
            share: self.share,
            class: StatusClass::of(record.meaning()),
            whole: Duration::from_nanos(whole),
            backend: waited_for_backends(record, whole).map(Duration::from_nanos),
        };
        if self.outlet.entries.try_send(timing).is_err() {
            self.outlet.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::BackendId;
    use crate::tick::Tick;

    const MS: u64 = 1_000_000;

    #[test]
    fn times_come_out_as_they_went_in_and_what_there_is_no_room_for_is_counted() {
        let outlet = Arc::<TimingOutlet>::default();
        let pen = TimingPen::new(Share::ALL, &outlet);
        assert!(pen.draws(0) && pen.draws(u64::MAX));
        let mut record = Record { started: Tick(MS), done: Tick(9 * MS), status: 204, ..Record::default() };
        pen.hand_in(&record, &Names::default());
        let attempt = record.attempt(BackendId(0), Tick(3 * MS));
        attempt.first_byte = Tick(8 * MS);
        pen.hand_in(&record, &Names::default());
        let taken = outlet.take(9);
        let times: Vec<_> =
            taken.iter().map(|one| (one.whole.as_millis(), one.backend, one.class.name())).collect();
        assert!(taken.iter().all(|one| one.share == Share::ALL));
        assert_eq!(times, [(8, None, "2xx"), (8, Some(Duration::from_millis(5)), "2xx")]);
        pen.hand_in(&Record { kind: RecordKind::Upgrade, ..record }, &Names::default());
        assert!(outlet.take(9).is_empty());
        (0..ROOM + 3).for_each(|_| pen.hand_in(&record, &Names::default()));
        assert_eq!((outlet.dropped(), outlet.take(ROOM - 1).len(), outlet.take(9).len()), (3, ROOM - 1, 1));
    }

    #[test]
    fn so_many_are_drawn_as_were_asked_for() {
        let pen = TimingPen::new(Share::from_millionths(10_000).expect("in range"), &Arc::default());
        let step = u64::MAX / 100_000;
        let drawn = (0..100_000).filter(|&number| pen.draws(number * step)).count();
        assert!((999..=1001).contains(&drawn), "{drawn}");
    }
}
