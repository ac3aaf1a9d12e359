//! The rules of a pool, with real sockets and invented time.

mod passed;
mod private;

use tokio::net::UnixStream;

use super::*;
use crate::config::model::{self, BackendAddress, Policy, Protocol, Resilience, Timeouts};
use crate::targets::Registry;

const SECOND: u64 = 1_000_000_000;

fn at(seconds: u64) -> Tick {
    Tick(seconds * SECOND)
}

fn millis(millis: u64) -> Tick {
    Tick(millis * 1_000_000)
}

/// Backends that are up from the start, and the registry they live in.
fn backends(count: u16) -> (Registry, Vec<Arc<Backend>>) {
    let registry = Registry::new();
    let built = registry.apply(&[target(count)]);
    (registry, built[0].backends.clone())
}

fn target(count: u16) -> model::TargetConfig {
    let backend = |number: u16| model::BackendConfig {
        name: format!("b{number}"),
        address: BackendAddress::Host { host: "127.0.0.1".into(), port: 1000 + number },
        probe_path: None,
        tls: None,
        portion: model::Portion::default(),
        state: model::BackendState::Up,
        state_by: None,
        dialing: Default::default(),
        found: None,
    };
    model::TargetConfig {
        send_proxy: None,
        name: "web".into(),
        protocol: Protocol::Http,
        host: model::HostHeader::Pass,
        balance: Policy::default(),
        sticky: None,
        health: None,
        timeouts: Timeouts::default(),
        drain_timeout: model::TargetConfig::DRAIN_TIMEOUT,
        resilience: Resilience::default(),
        upgrade: Vec::new(),
        upstream: model::UpstreamProtocol::Http,
        backends: (0..count).map(backend).collect(),
        sources: Vec::new(),
    }
}

/// A worker's pool with its cells, and the far ends of what was put into it.
struct Worker {
    pool: Pool,
    cells: Cells,
    far: Vec<UnixStream>,
}

impl Worker {
    fn new(total: &Arc<AtomicU32>) -> Worker {
        Worker { pool: Pool::new(Arc::clone(total)), cells: Cells::default(), far: Vec::new() }
    }

    fn put(&mut self, backend: &Arc<Backend>, now: Tick) {
        self.put_for(backend, None, now);
    }

    fn put_for(&mut self, backend: &Arc<Backend>, keep_for: Option<Duration>, now: Tick) {
        let (near, far) = UnixStream::pair().expect("a pair of sockets");
        self.far.push(far);
        let generation = backend.generation();
        self.pool.put(&self.cells, backend, Used { stream: near.into(), keep_for, generation }, now);
    }

    /// Which of the connections that were put in is given out, by its number.
    fn take(&self, backend: &Backend, need: Need, now: Tick) -> Option<usize> {
        let Stream::Unix(near) = self.pool.take(&self.cells, backend, need, now)? else { return None };
        near.socket().try_write(b"x").expect("an open socket");
        let mut byte = [0u8; 1];
        self.far.iter().position(|far| rustix::io::read(far, &mut byte).is_ok_and(|count| count == 1))
    }

    /// Waits until the event loop has learned that `count` of the connections can be read.
    async fn learn(&self, count: usize) {
        let readable = || {
            let mut idle_lists = self.pool.idle_lists.borrow_mut();
            idle_lists
                .all()
                .flat_map(|idle_list| &idle_list.idle)
                .filter(|idle| idle.stream.is_readable_now())
                .count()
        };
        let learned = async {
            while readable() < count {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(20), learned).await.expect("the event loop learns of it");
    }

    /// (closed by us, found closed)
    fn closed(&self) -> (u64, u64) {
        (self.cells.pool.closed_idle.value(), self.cells.pool.discarded_stale.value())
    }
}

fn shared() -> Arc<AtomicU32> {
    Arc::default()
}

#[test]
fn credit_never_exceeds_the_limit_over_all_workers() {
    let shared = AtomicU32::new(0);
    let (mut one, mut two) = (Credit::default(), Credit::default());
    let fill = |credit: &mut Credit, from: usize| {
        (from..).take_while(|&used| credit.grow(used, &shared, 20)).count()
    };
    assert_eq!(fill(&mut one, 0), 20);
    assert_eq!(fill(&mut two, 0), 0);
    one.shrink(9, &shared);
    assert_eq!((one.held, shared.load(Ordering::Acquire)), (16, 16));
    assert_eq!(fill(&mut two, 0), 4);
    one.shrink(0, &shared);
    two.shrink(0, &shared);
    assert_eq!(shared.load(Ordering::Acquire), 0);
}

#[tokio::test]
async fn the_most_recently_used_comes_first() {
    let (_registry, backends) = backends(1);
    let mut worker = Worker::new(&shared());
    for second in 1..=3 {
        worker.put(&backends[0], at(second));
    }
    let taken: Vec<_> = (0..4).map(|_| worker.take(&backends[0], Need::Repeatable, at(4))).collect();
    assert_eq!(taken, [Some(2), Some(1), Some(0), None]);
    assert_eq!((worker.cells.pool.reused.value(), worker.pool.len()), (3, 0));
}

#[tokio::test]
async fn two_workers_rest_with_300_for_a_backend_and_1000_in_all() {
    crate::net::socket::raise_descriptor_limit().expect("a limit");
    let total = shared();
    let (_registry, backends) = backends(5);
    let mut workers = [Worker::new(&total), Worker::new(&total)];
    let held = |workers: &[Worker; 2]| workers[0].pool.len() + workers[1].pool.len();
    let closed = |workers: &[Worker; 2]| workers[0].closed().0 + workers[1].closed().0;
    let sweep =
        |workers: &[Worker; 2], now| workers.iter().for_each(|worker| worker.pool.sweep(&worker.cells, now));
    for number in 0..400 {
        workers[number % 2].put(&backends[0], at(1));
    }
    sweep(&workers, millis(1999));
    assert_eq!((held(&workers), closed(&workers)), (400, 0), "none of them rests");
    sweep(&workers, at(2));
    // A last lot of each worker may hold credit that it has no use for.
    let lots = 2 * LOT as usize;
    let kept = held(&workers);
    assert!((300 - lots..=300).contains(&kept), "{kept} kept");
    assert_eq!(closed(&workers), 400 - kept as u64);
    for backend in &backends[1..] {
        for number in 0..290 {
            workers[number % 2].put(backend, at(3));
        }
    }
    sweep(&workers, at(4));
    let kept = held(&workers);
    assert!((1000 - lots..=1000).contains(&kept), "{kept} kept");
    drop(workers);
    assert_eq!(total.load(Ordering::Acquire), 0, "every credit was given back");
    assert!(backends.iter().all(|backend| backend.idle_connections.load(Ordering::Acquire) == 0));
}

#[tokio::test]
async fn of_too_many_the_longest_resting_are_closed() {
    crate::net::socket::raise_descriptor_limit().expect("a limit");
    let (_registry, backends) = backends(1);
    let mut worker = Worker::new(&shared());
    for number in 0..320 {
        worker.put(&backends[0], millis(1000 + number));
    }
    worker.pool.sweep(&worker.cells, millis(2009));
    assert_eq!(worker.pool.len(), 310, "ten of them rest, and twenty are too many");
    worker.pool.sweep(&worker.cells, at(3));
    assert_eq!((worker.pool.len(), worker.closed().0), (300, 20));
    let taken: Vec<_> = (0..300).map(|_| worker.take(&backends[0], Need::Repeatable, at(3))).collect();
    assert!(taken.into_iter().eq((20..320).rev().map(Some)), "those that were used last are still there");
}

#[tokio::test]
async fn the_room_that_one_worker_gives_up_is_the_other_ones() {
    let total = shared();
    let (_registry, backends) = backends(1);
    let mut workers = [Worker::new(&total), Worker::new(&total)];
    workers[0].put(&backends[0], at(1));
    total.fetch_add(MOST - LOT, Ordering::AcqRel);
    workers[1].put(&backends[0], at(1));
    assert_eq!((workers[1].pool.len(), workers[1].closed().0), (0, 1), "no more than the most there may be");
    workers[0].pool.clear(&workers[0].cells);
    workers[1].put(&backends[0], at(1));
    assert_eq!(workers[1].pool.len(), 1);
    drop(workers);
    assert_eq!(total.load(Ordering::Acquire), MOST - LOT);
}

#[tokio::test]
async fn ninety_seconds_or_one_less_than_the_backend_promised() {
    let (_registry, backends) = backends(1);
    for (promised, lives) in [(None, 90), (Some(5), 4), (Some(300), 90)] {
        let promised = promised.map(Duration::from_secs);
        let mut worker = Worker::new(&shared());
        worker.put_for(&backends[0], promised, at(10));
        worker.pool.sweep(&worker.cells, at(10 + lives));
        assert_eq!((worker.pool.len(), worker.closed()), (1, (0, 0)), "{promised:?}");
        worker.pool.sweep(&worker.cells, at(11 + lives));
        assert_eq!((worker.pool.len(), worker.closed()), (0, (1, 0)), "{promised:?}");
        // Without a sweep in between it is not given out either.
        worker.put_for(&backends[0], promised, at(10));
        assert_eq!(worker.take(&backends[0], Need::Repeatable, at(11 + lives)), None);
    }
    let mut worker = Worker::new(&shared());
    worker.put_for(&backends[0], Some(Duration::from_secs(1)), at(10));
    assert_eq!((worker.pool.len(), worker.closed().0), (0, 1), "not worth keeping");
}

#[tokio::test]
async fn what_may_not_be_repeated_takes_only_a_connection_used_within_a_second() {
    let (_registry, backends) = backends(1);
    let mut worker = Worker::new(&shared());
    backends[0].note_idle_open(Duration::from_secs(60));
    worker.put(&backends[0], millis(1000));
    assert_eq!(worker.take(&backends[0], Need::Once, millis(2001)), None);
    assert_eq!(worker.pool.len(), 1, "it stays for requests that can be repeated");
    assert_eq!(worker.take(&backends[0], Need::Once, millis(2000)), Some(0));
}

/// Half of 50 ms is allowed before any request has found out the hard way.
#[tokio::test]
async fn what_may_not_be_repeated_trusts_half_of_the_idle_time_that_was_seen() {
    let (_registry, backends) = backends(1);
    let mut worker = Worker::new(&shared());
    let allowed = |worker: &mut Worker, age: u64| {
        worker.put(&backends[0], millis(1000));
        let number = worker.far.len() - 1;
        let taken = worker.take(&backends[0], Need::Once, millis(1000 + age));
        worker.pool.clear(&worker.cells);
        taken == Some(number)
    };
    assert!(allowed(&mut worker, 20) && !allowed(&mut worker, 21), "nothing is known");
    worker.put(&backends[0], millis(1000));
    worker.pool.sweep(&worker.cells, millis(1100));
    worker.pool.clear(&worker.cells);
    assert!(allowed(&mut worker, 50) && !allowed(&mut worker, 51), "open after 100 ms");
    worker.put(&backends[0], millis(1000));
    worker.far.clear();
    assert_eq!(worker.take(&backends[0], Need::Once, millis(1048)), None, "closed after 48 ms");
    assert_eq!(worker.cells.pool.discarded_stale.value(), 1);
    assert!(allowed(&mut worker, 24) && !allowed(&mut worker, 25));
}

#[tokio::test]
async fn what_the_backend_has_closed_or_written_to_is_never_given_out() {
    let (_registry, backends) = backends(1);
    let mut worker = Worker::new(&shared());
    for _ in 0..3 {
        worker.put(&backends[0], at(1));
    }
    worker.far[1].try_write(b"HTTP/1.1 408 Request Timeout\r\n\r\n").expect("open");
    drop(worker.far.pop());
    worker.learn(2).await;
    assert_eq!(worker.take(&backends[0], Need::Repeatable, at(1)), Some(0));
    assert_eq!(worker.closed(), (0, 2));
}

/// Most often it happens after long answers.
#[tokio::test]
async fn a_connection_that_only_looks_readable_is_used_again() {
    let (_registry, backends) = backends(1);
    let mut worker = Worker::new(&shared());
    let (near, far) = UnixStream::pair().expect("a pair of sockets");
    far.try_write(b"x").expect("open");
    let mut near = Stream::from(near);
    let mut byte = [0u8; 1];
    // A read that fills its buffer leaves open whether there is more.
    std::future::poll_fn(|cx| near.poll_read(cx, &mut tokio::io::ReadBuf::new(&mut byte)))
        .await
        .expect("a byte");
    assert!(near.is_readable_now(), "it looks so");
    worker.far.push(far);
    let used = Used { stream: near, keep_for: None, generation: backends[0].generation() };
    worker.pool.put(&worker.cells, &backends[0], used, at(1));
    worker.pool.sweep(&worker.cells, at(2));
    assert_eq!(worker.take(&backends[0], Need::Repeatable, at(2)), Some(0));
    assert_eq!(worker.closed(), (0, 0));
}

#[tokio::test]
async fn connections_of_a_removed_backend_are_closed_by_the_next_sweep() {
    let (registry, backends) = backends(2);
    let mut worker = Worker::new(&shared());
    for backend in &backends {
        worker.put(backend, at(1));
    }
    let mut config = target(2);
    config.backends.remove(0);
    registry.apply(&[config]);
    worker.pool.sweep(&worker.cells, at(1));
    assert_eq!((worker.pool.len(), worker.closed().0), (1, 1));
    assert_eq!(worker.take(&backends[0], Need::Repeatable, at(1)), None);
    assert_eq!(worker.take(&backends[1], Need::Repeatable, at(1)), Some(1));
}

#[tokio::test]
async fn what_was_opened_before_a_failure_is_not_kept() {
    let (registry, backends) = backends(1);
    let worker = Worker::new(&shared());
    let generation = backends[0].generation();
    registry.apply(&[]);
    let (near, _far) = UnixStream::pair().expect("a pair of sockets");
    let used = Used { stream: near.into(), keep_for: None, generation };
    worker.pool.put(&worker.cells, &backends[0], used, at(1));
    assert_eq!((worker.pool.len(), worker.closed().0), (0, 1));
}

#[tokio::test]
async fn a_sweep_finds_every_closed_connection_however_many_there_are() {
    let (_registry, backends) = backends(1);
    let mut worker = Worker::new(&shared());
    for _ in 0..200 {
        worker.put(&backends[0], at(1));
    }
    worker.far.clear();
    worker.learn(200).await;
    worker.pool.sweep(&worker.cells, at(2));
    assert_eq!((worker.closed(), worker.pool.len()), ((0, 200), 0));
    assert_eq!(backends[0].idle_proven(), Duration::ZERO, "none of them was open");
}

/// A connection of which the event loop knows that it is silent, and nothing since; and its far end.
async fn known_silent() -> (Stream, UnixStream) {
    let (near, far) = UnixStream::pair().expect("a pair of sockets");
    let mut near = Stream::from(near);
    let mut byte = [0u8; 1];
    let mut read = tokio::io::ReadBuf::new(&mut byte);
    let polled = std::future::poll_fn(|cx| std::task::Poll::Ready(near.poll_read(cx, &mut read))).await;
    assert!(polled.is_pending());
    (near, far)
}

#[tokio::test]
async fn the_kernel_is_asked_about_a_connection_that_has_rested() {
    let (_registry, backends) = backends(1);
    let worker = Worker::new(&shared());
    for (idle, given) in [(999, true), (1000, false)] {
        let (stream, far) = known_silent().await;
        let used = Used { stream, keep_for: None, generation: backends[0].generation() };
        worker.pool.put(&worker.cells, &backends[0], used, at(1));
        // Nothing is awaited from here on: the event loop does not hear of it.
        drop(far);
        let taken = worker.pool.take(&worker.cells, &backends[0], Need::Repeatable, millis(1000 + idle));
        assert_eq!(taken.is_some(), given, "{idle} ms");
    }
    assert_eq!(worker.closed(), (0, 1));
}
