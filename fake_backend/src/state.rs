//! What a running fake shares with its connections: its name, its behaviour now, its counters, its chance. One
//! `Arc<State>` per fake, held by `Running`, the accept loop and every connection.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use tokio::sync::{Notify, Semaphore};

use crate::behaviour::{Behaviour, Stall};
use crate::record::Recorder;
use crate::spread::Spread;
use crate::tls::{Handshake, Setup};
use crate::work::WorkClock;

/// The longest latency that is ever drawn: an hour.
const LONGEST: f64 = 3_600_000.0;
/// The largest body that is ever drawn: a tebibyte.
const LARGEST: f64 = 1_099_511_627_776.0;

/// What a fake speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/1.1 and HTTP/1.0.
    Http,
    /// Bytes, see [`TcpMode`](crate::TcpMode).
    Tcp,
    /// Datagrams: each is answered as [`TcpMode`](crate::TcpMode) says of a connection.
    Udp,
}

/// The counters of one fake at one moment. All but `open` only grow, also over `stop` and `restart`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Connections accepted.
    pub connections: u64,
    /// Connections open now.
    pub open: u64,
    /// Requests whose head was read, health and control paths not counted. TCP: connections served.
    pub requests: u64,
    /// Requests to a health path.
    pub probes: u64,
    /// Requests treated to their end, as well or badly as the behaviour meant; health paths not counted.
    pub answers: u64,
    /// The most requests there were at once that had been read and had no byte of their answer yet; health paths not
    /// counted.
    pub most: u64,
    /// Requests the client did not wait for: it closed or reset before the answer was out.
    pub aborted: u64,
    /// Requests that broke the rules of RFC 9112; each was answered 400 and its connection closed.
    pub malformed: u64,
    /// Bytes read from all connections; those of TLS itself do not count.
    pub bytes_in: u64,
    /// Bytes written to all connections; those of TLS itself do not count.
    pub bytes_out: u64,
    /// TLS handshakes that succeeded.
    pub handshakes: u64,
    /// Those of them that took up an earlier session.
    pub resumed: u64,
    /// Connections to a fake with TLS that ended before their handshake was done, whoever's fault it was.
    pub failed_handshakes: u64,
}

/// The growing numbers behind [`Stats`].
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) connections: AtomicU64,
    pub(crate) closed: AtomicU64,
    pub(crate) requests: AtomicU64,
    pub(crate) probes: AtomicU64,
    pub(crate) answers: AtomicU64,
    pub(crate) waiting: AtomicU64,
    pub(crate) most: AtomicU64,
    pub(crate) aborted: AtomicU64,
    pub(crate) malformed: AtomicU64,
    pub(crate) bytes_in: AtomicU64,
    pub(crate) bytes_out: AtomicU64,
    pub(crate) handshakes: AtomicU64,
    pub(crate) resumed: AtomicU64,
    pub(crate) failed_handshakes: AtomicU64,
}

/// Which behaviour holds: one for good, and perhaps one for the next few requests.
#[derive(Debug)]
struct Plan {
    lasting: Arc<Behaviour>,
    passing: Option<(Arc<Behaviour>, u32)>,
}

/// Everything one fake's connections share.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) id: String,
    pub(crate) protocol: Protocol,
    pub(crate) health_paths: Vec<String>,
    pub(crate) control: bool,
    pub(crate) recorder: Option<Recorder>,
    /// What handshakes need; none for a fake that speaks in clear.
    pub(crate) tls: Option<Setup>,
    /// Leave to work on a request, given in the order it was asked for; none: all may at once.
    pub(crate) slots: Option<Semaphore>,
    /// How long they were worked on that had one.
    pub(crate) work: WorkClock,
    plan: Mutex<Plan>,
    healthy: AtomicBool,
    chance: Mutex<StdRng>,
    counters: Counters,
    /// Told about every change of a counter while someone waits for one.
    changed: Notify,
    /// How many wait: without any, counting costs one atomic addition.
    watchers: AtomicUsize,
    /// Told when the behaviour changes, so that idle connections look at their idle time again.
    replanned: Notify,
    /// Told when idle connections are to close.
    idle_cut: Notify,
}

impl State {
    pub(crate) fn new(id: String, protocol: Protocol, behaviour: Behaviour, seed: u64) -> Self {
        let state = Self {
            id,
            protocol,
            health_paths: vec!["/health".to_owned(), "/ping".to_owned()],
            control: false,
            recorder: None,
            tls: None,
            slots: None,
            work: WorkClock::new(),
            plan: Mutex::new(Plan { lasting: Arc::new(Behaviour::default()), passing: None }),
            healthy: AtomicBool::new(true),
            chance: Mutex::new(StdRng::seed_from_u64(seed)),
            counters: Counters::default(),
            changed: Notify::new(),
            watchers: AtomicUsize::new(0),
            replanned: Notify::new(),
            idle_cut: Notify::new(),
        };
        state.behave(behaviour);
        state
    }

    /// Swaps the behaviour, for good or for some requests.
    pub(crate) fn behave(&self, behaviour: Behaviour) {
        {
            let mut plan = lock(&self.plan);
            match behaviour.times {
                None => *plan = Plan { lasting: Arc::new(behaviour), passing: None },
                Some(times) => plan.passing = (times > 0).then(|| (Arc::new(behaviour), times)),
            }
        }
        self.replanned.notify_waiters();
    }

    /// What would happen to the next request.
    pub(crate) fn behaviour(&self) -> Arc<Behaviour> {
        let plan = lock(&self.plan);
        plan.passing.as_ref().map_or(&plan.lasting, |(passing, _)| passing).clone()
    }

    /// The behaviour without a limit.
    pub(crate) fn lasting(&self) -> Arc<Behaviour> {
        lock(&self.plan).lasting.clone()
    }

    /// What happens to this request; it uses up one of a limited number.
    pub(crate) fn take_behaviour(&self) -> Arc<Behaviour> {
        let mut plan = lock(&self.plan);
        match plan.passing.take() {
            None => plan.lasting.clone(),
            Some((passing, left)) => {
                if left > 1 {
                    plan.passing = Some((passing.clone(), left - 1));
                }
                passing
            }
        }
    }

    pub(crate) fn healthy(&self) -> bool {
        self.healthy.load(Ordering::Relaxed)
    }

    pub(crate) fn set_healthy(&self, healthy: bool) {
        self.healthy.store(healthy, Ordering::Relaxed);
    }

    /// A latency, when there is one to wait for.
    pub(crate) fn draw_latency(&self, latency: Option<Spread>) -> Option<Duration> {
        let millis = latency?.draw(&mut lock(&self.chance)).min(LONGEST);
        (millis > 0.0).then(|| Duration::from_secs_f64(millis / 1_000.0))
    }

    /// How much longer an answer waits, when it is one of those that stall.
    pub(crate) fn draw_stall(&self, stall: Option<Stall>) -> Option<Duration> {
        let stall = stall?;
        (lock(&self.chance).random::<f64>() < stall.share).then_some(stall.time)
    }

    /// A size in bytes.
    pub(crate) fn draw_size(&self, size: Spread) -> u64 {
        // The cast cuts the fraction; the value lies between 0 and 2^40.
        size.draw(&mut lock(&self.chance)).min(LARGEST) as u64
    }

    /// Adds to one counter and wakes whoever waits for it.
    pub(crate) fn add(&self, counter: impl FnOnce(&Counters) -> &AtomicU64, amount: u64) -> u64 {
        // Sequentially consistent with `watch`: either the watcher is seen here, or it sees the new count.
        let now = counter(&self.counters).fetch_add(amount, Ordering::SeqCst) + amount;
        if self.watchers.load(Ordering::SeqCst) > 0 {
            self.changed.notify_waiters();
        }
        now
    }

    /// Adds one.
    pub(crate) fn count(&self, counter: impl FnOnce(&Counters) -> &AtomicU64) -> u64 {
        self.add(counter, 1)
    }

    /// Counts a request as waiting for its answer, until dropped.
    pub(crate) fn waits(&self) -> Waiting<'_> {
        let now = self.counters.waiting.fetch_add(1, Ordering::SeqCst) + 1;
        self.counters.most.fetch_max(now, Ordering::SeqCst);
        Waiting(&self.counters.waiting)
    }

    /// Counts a handshake that is over, and records it.
    pub(crate) fn shook(&self, handshake: Handshake) {
        // Recorded first: who waits for the counter then finds the record.
        let resumed = handshake.outcome.as_ref().ok().map(|facts| facts.resumed);
        if let Some(recorder) = &self.recorder {
            recorder.shook(handshake);
        }
        if resumed == Some(true) {
            self.count(|counters| &counters.resumed);
        }
        self.count(|counters| match resumed {
            Some(_) => &counters.handshakes,
            None => &counters.failed_handshakes,
        });
    }

    pub(crate) fn stats(&self) -> Stats {
        let read = |counter: &AtomicU64| counter.load(Ordering::SeqCst);
        let counters = &self.counters;
        // Closed is read before accepted, so the difference is never negative.
        let closed = read(&counters.closed);
        let connections = read(&counters.connections);
        Stats {
            connections,
            open: connections.saturating_sub(closed),
            requests: read(&counters.requests),
            probes: read(&counters.probes),
            answers: read(&counters.answers),
            most: read(&counters.most),
            aborted: read(&counters.aborted),
            malformed: read(&counters.malformed),
            bytes_in: read(&counters.bytes_in),
            bytes_out: read(&counters.bytes_out),
            handshakes: read(&counters.handshakes),
            resumed: read(&counters.resumed),
            failed_handshakes: read(&counters.failed_handshakes),
        }
    }

    /// Waits until the counters fulfil the condition.
    pub(crate) async fn watch(&self, condition: impl Fn(&Stats) -> bool) -> Stats {
        let _watching = Watching::new(&self.watchers);
        loop {
            // Made before the look, so that it hears of every change after it.
            let changed = self.changed.notified();
            let stats = self.stats();
            if condition(&stats) {
                return stats;
            }
            changed.await;
        }
    }

    pub(crate) fn replanned(&self) -> tokio::sync::futures::Notified<'_> {
        self.replanned.notified()
    }

    pub(crate) fn idle_cut(&self) -> tokio::sync::futures::Notified<'_> {
        self.idle_cut.notified()
    }

    pub(crate) fn cut_idle(&self) {
        self.idle_cut.notify_waiters();
    }

    /// Whether this path (without its query) is one for health.
    pub(crate) fn is_health(&self, path: &str) -> bool {
        self.health_paths.iter().any(|health| health == path)
    }
}

/// One more request that waits for its answer, until dropped.
pub(crate) struct Waiting<'a>(&'a AtomicU64);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// One more watcher, until dropped.
struct Watching<'a>(&'a AtomicUsize);

impl<'a> Watching<'a> {
    fn new(watchers: &'a AtomicUsize) -> Self {
        watchers.fetch_add(1, Ordering::SeqCst);
        Self(watchers)
    }
}

impl Drop for Watching<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Locks; a panic elsewhere left plain data behind, which is as good as before.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_passing_behaviour_gives_way_to_the_lasting_one() {
        let state = State::new("x".into(), Protocol::Http, Behaviour::status(201), 0);
        state.behave(Behaviour::status(500).times(2));
        let seen: Vec<u16> = (0..4).map(|_| state.take_behaviour().status).collect();
        assert_eq!(seen, [500, 500, 201, 201]);
    }

    #[test]
    fn no_times_change_nothing() {
        let state = State::new("x".into(), Protocol::Http, Behaviour::default(), 0);
        state.behave(Behaviour::status(500).times(0));
        assert_eq!(state.take_behaviour().status, 200);
    }

    #[test]
    fn a_share_of_the_answers_stalls() {
        let state = State::new("x".into(), Protocol::Http, Behaviour::default(), 7);
        let drawn = |share| {
            let stall = Some(Stall { share, time: Duration::from_secs(1) });
            (0..20_000).filter(|_| state.draw_stall(stall) == Some(Duration::from_secs(1))).count()
        };
        assert_eq!((drawn(0.0), drawn(1.0)), (0, 20_000));
        let some = drawn(0.05);
        assert!((800..1_200).contains(&some), "{some}");
    }

    #[test]
    fn the_most_that_wait_is_remembered() {
        let state = State::new("x".into(), Protocol::Http, Behaviour::default(), 0);
        let both = (state.waits(), state.waits());
        drop(both);
        drop(state.waits());
        assert_eq!(state.stats().most, 2);
    }
}
