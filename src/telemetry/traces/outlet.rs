//! From workers to whoever sends traces: a bounded queue of requests that are over, and how many may go through it.
//!
//! Invariants: `left` and `left_beside` only go down but for `refill`, which is called while the config in force is held, so between two
//! calls no more requests are admitted than the earlier one allowed, what is allowed last is what that config says, and no more than half of
//! them go beside the sample: clients can make requests fail, and don't take the sample's place by that. Each request asks once: a sampled
//! one before its backend is told that it is, another one when it is over and turns out to be worth a trace. So whoever was told that a
//! request is sampled is right, but where there was no room. Whatever asks is counted once: as taken or as dropped, over the limit or for
//! want of room. Nobody waits.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use tokio::sync::mpsc::{Receiver, Sender, channel};

use crate::config::model::TracingConfig;

/// Requests that wait to be made spans of.
const ROOM: usize = 1024;

/// A request that is over, as the flight recorder writes it down.
pub type EndedRequest = Box<[u8]>;

/// What has become of what was handed in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TraceCounts {
    /// Handed on.
    pub taken: u64,
    /// Dropped, since there were enough in that second.
    pub over_limit: u64,
    /// Dropped, since too many waited.
    pub no_room: u64,
    /// Spans that a collector has taken.
    pub sent: u64,
    /// Spans that it has refused for good.
    pub refused: u64,
    /// Traces whose spans no collector has taken in time.
    pub unsent: u64,
}

/// The queue. There is one for all workers and all configs.
#[derive(Debug)]
pub struct TraceOutlet {
    /// Nobody else knows it: see `Tracer::span`.
    pub(super) secret: u64,
    entries: Sender<EndedRequest>,
    left: AtomicU32,
    left_beside: AtomicU32,
    taken: AtomicU64,
    over_limit: AtomicU64,
    no_room: AtomicU64,
    sent: AtomicU64,
    refused: AtomicU64,
    unsent: AtomicU64,
}

impl TraceOutlet {
    /// An empty one that lets nothing through yet, and where it comes out. `secret`: a number that nobody can guess.
    #[must_use]
    pub fn new(secret: u64) -> (TraceOutlet, Receiver<EndedRequest>) {
        let (entries, source) = channel(ROOM);
        let [taken, over_limit, no_room, sent, refused, unsent] = [const { AtomicU64::new(0) }; 6];
        let [left, left_beside] = [const { AtomicU32::new(0) }; 2];
        let outlet = TraceOutlet {
            secret,
            entries,
            left,
            left_beside,
            taken,
            over_limit,
            no_room,
            sent,
            refused,
            unsent,
        };
        (outlet, source)
    }

    /// Whether one more request of this second may be handed in which the sample has drawn.
    #[cold]
    pub fn admits(&self) -> bool {
        self.count(one_of(&self.left))
    }

    /// Whether one more may that is worth a trace for what became of it.
    #[cold]
    pub fn admits_beside(&self) -> bool {
        self.count(one_of(&self.left_beside) && one_of(&self.left))
    }

    fn count(&self, may: bool) -> bool {
        if !may {
            self.over_limit.fetch_add(1, Ordering::Relaxed);
        }
        may
    }

    /// Hands in a request that is over and was admitted, which `write` writes down.
    #[cold]
    pub fn hand_in(&self, write: impl FnOnce() -> EndedRequest) {
        let counter = if self.entries.try_send(write()).is_ok() { &self.taken } else { &self.no_room };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// Lets as many through until this is called again as `config` allows in a second.
    pub fn refill(&self, config: Option<&TracingConfig>) {
        self.let_through(config.map_or(0, |config| config.limit));
    }

    fn let_through(&self, count: u32) {
        self.left.store(count, Ordering::Relaxed);
        self.left_beside.store(count.div_ceil(2), Ordering::Relaxed);
    }

    /// Notes that a collector has taken so many spans.
    pub fn note_sent(&self, spans: u64) {
        self.sent.fetch_add(spans, Ordering::Relaxed);
    }

    /// Notes that a collector has refused so many spans for good.
    pub fn note_refused(&self, spans: u64) {
        self.refused.fetch_add(spans, Ordering::Relaxed);
    }

    /// Notes that so many traces were given up.
    pub fn note_unsent(&self, traces: u64) {
        self.unsent.fetch_add(traces, Ordering::Relaxed);
    }

    /// What has become of everything so far.
    #[must_use]
    pub fn counts(&self) -> TraceCounts {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        TraceCounts {
            taken: read(&self.taken),
            over_limit: read(&self.over_limit),
            no_room: read(&self.no_room),
            sent: read(&self.sent),
            refused: read(&self.refused),
            unsent: read(&self.unsent),
        }
    }
}

/// Takes one, if there is one left.
fn one_of(left: &AtomicU32) -> bool {
    left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok()
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn what_is_handed_in_is_counted_once_and_no_more_get_through_than_may() {
        let (outlet, mut source) = TraceOutlet::new(1);
        assert!(!outlet.admits(), "nothing may go through yet");
        outlet.let_through(100);
        let ask = || {
            if outlet.admits() {
                outlet.hand_in(|| [1].into());
            }
        };
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..50).for_each(|_| ask()));
            }
        });
        let counts = outlet.counts();
        assert_eq!((counts.taken, counts.over_limit, counts.no_room), (100, 101, 0));
        // More than there is room for.
        (0..ROOM).for_each(|_| outlet.hand_in(|| [2].into()));
        let counts = outlet.counts();
        assert_eq!((counts.taken, counts.no_room), (ROOM as u64, 100));
        let mut came = 0;
        while source.try_recv().is_ok() {
            came += 1;
        }
        assert_eq!(came, counts.taken);
    }

    #[test]
    fn whoever_makes_requests_fail_leaves_half_of_the_traces_to_the_sample() {
        let (outlet, _source) = TraceOutlet::new(1);
        for (limit, beside) in [(1, 1), (2, 1), (7, 4), (200, 100)] {
            outlet.let_through(limit);
            let failed = (0..1000).filter(|_| outlet.admits_beside()).count();
            let sampled = (0..1000).filter(|_| outlet.admits()).count();
            assert_eq!((failed, sampled), (beside, limit as usize - beside), "{limit}");
        }
        let asked = outlet.counts().over_limit;
        outlet.let_through(10);
        assert_eq!((0..1000).filter(|_| outlet.admits()).count(), 10);
        assert!(!outlet.admits_beside() && outlet.counts().over_limit == asked + 991);
    }
}
