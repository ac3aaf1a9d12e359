//! Records in, readings out.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::*;
use crate::message::{BackendId, ListenerId, TargetId};

const MS: u64 = 1_000_000;

/// One request: refused by backend 7, answered by backend 9.
fn retried() -> Record {
    let mut record = Record {
        listener: ListenerId(1),
        target: Some(TargetId(2)),
        status: 200,
        accepted: Tick(MS),
        started: Tick(2 * MS),
        done: Tick(12 * MS),
        bytes_in: 10,
        bytes_out: 500,
        ..Record::default()
    };
    record.attempt(BackendId(7), Tick(3 * MS)).outcome = Cause::ConnectFailed;
    let second = record.attempt(BackendId(9), Tick(4 * MS));
    second.connected = Tick(5 * MS);
    second.sent = Tick(6 * MS);
    second.first_byte = Tick(9 * MS);
    record
}

fn close(told: Option<Duration>, exact: u64) -> bool {
    let exact = Duration::from_nanos(exact);
    told.is_some_and(|told| told >= exact && told <= exact + exact / 8)
}

#[test]
fn an_attempt_is_no_good_once_whether_it_failed_was_answered_badly_or_both() {
    let cells = Arc::new(Cells::default());
    let errors = |id| Readings::sum(&[Arc::clone(&cells)]).backend(BackendId(id)).expect("met").errors();
    for _ in 0..5 {
        cells.record(&retried());
    }
    assert_eq!((errors(7), errors(9)), (5, 0));
    // The one answers badly, and the other one fails so that the client is told.
    let mut gone = Record { status: 502, cause: Cause::ConnectFailed, ..retried() };
    gone.attempt(BackendId(7), Tick(3 * MS)).outcome = Cause::ConnectFailed;
    for record in [Record { status: 500, ..retried() }, gone] {
        cells.record(&record);
    }
    assert_eq!((errors(7), errors(9)), (8, 1));
}

#[test]
fn a_retried_request_counts_once_per_listener_and_target_and_once_per_attempt() {
    let cells = Arc::new(Cells::default());
    cells.record(&retried());
    let read = Readings::sum(&[Arc::clone(&cells)]);
    assert_eq!((read.requests(), read.retries), (1, 1));
    let listener = read.listener(ListenerId(1)).expect("met");
    assert_eq!((listener.with(StatusClass::Success), listener.bytes_in, listener.bytes_out), (1, 10, 500));
    assert!(read.listener(ListenerId(0)).is_none() && read.target(TargetId(1)).is_none());
    let target = read.target(TargetId(2)).expect("met");
    assert_eq!(target.traffic, read.traffic());
    assert_eq!(target.stages, read.stages());
    assert_eq!(target.stages.connect.count(), 1, "a refused connect has no connect time");
    assert!(close(target.stages.duration.quantile(0.5), 10 * MS));
    assert!(close(target.stages.first_byte.quantile(0.5), 3 * MS));
    assert!(close(target.stages.connect.quantile(0.5), MS));
    let refused = read.backend(BackendId(7)).expect("met");
    assert_eq!((refused.attempts, refused.failures, refused.traffic.requests()), (1, 1, 0));
    let answered = read.backend(BackendId(9)).expect("met");
    assert_eq!((answered.attempts, answered.failures, answered.traffic.requests()), (1, 0, 1));
    assert_eq!(read.backends().map(|(id, _)| id.0).collect::<Vec<_>>(), [7, 9]);
    assert_eq!(read.errors().count(), 0);
    assert_eq!(read.ended_with(Cause::Done), 1);
}

#[test]
fn workers_add_up_and_connections_may_change_workers() {
    let workers: Vec<Arc<Cells>> = (0..3).map(|_| Arc::default()).collect();
    let threads: Vec<_> = workers
        .iter()
        .cloned()
        .map(|cells| {
            std::thread::spawn(move || {
                for _ in 0..1000 {
                    cells.record(&retried());
                    cells.pool.opened.increment();
                    cells.pool.reused.add(2);
                    cells.connections.accepted.increment();
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().expect("no panic");
    }
    // Accepted on the first worker, handed to the second, closed there; one more stays open.
    workers[0].connections.open.raise();
    workers[1].connections.open.lower();
    workers[2].connections.open.raise();
    workers[2].connections.refused.increment();
    workers[1].accept_errors.increment();
    workers[1].panics.add(2);
    workers[0].access_dropped.add(3);
    workers[0].pool.closed_idle.add(4);
    workers[0].pool.discarded_stale.add(5);
    let read = Readings::sum(&workers);
    assert_eq!(read.requests(), 3000);
    assert_eq!(read.backend(BackendId(9)).map(|b| b.attempts), Some(3000));
    assert_eq!(read.pool, PoolReading { reused: 6000, opened: 3000, closed_idle: 4, discarded_stale: 5 });
    assert_eq!(read.connections, ConnectionReading { accepted: 3000, open: 1, refused: 1 });
    assert_eq!((read.accept_errors, read.panics, read.access_dropped), (1, 2, 3));
    assert_eq!(read.stages().duration.sum(), Duration::from_millis(30_000));
}

#[test]
fn a_record_that_got_nowhere_is_counted_under_its_listener_and_cause() {
    let cells = Arc::new(Cells::default());
    let early = Record {
        accepted: Tick(MS),
        done: Tick(3 * MS),
        status: 400,
        cause: Cause::BadHead,
        ..Record::default()
    };
    cells.record(&early);
    cells.record(&Record::default());
    let read = Readings::sum(&[cells]);
    assert_eq!(read.errors().collect::<Vec<_>>(), [(Cause::BadHead, 1)]);
    let traffic = read.traffic();
    assert_eq!((traffic.with(StatusClass::ClientError), traffic.with(StatusClass::None)), (1, 1));
    let stages = read.stages();
    assert_eq!((stages.duration.count(), stages.connect.count()), (1, 0), "what did not happen has no time");
    assert!(close(stages.duration.quantile(1.0), 2 * MS));
}

#[test]
fn a_pooled_connection_has_no_connect_time() {
    let cells = Arc::new(Cells::default());
    let mut record = retried();
    let last = record.last_attempt().expect("made");
    last.reused = true;
    cells.record(&record);
    assert_eq!(Readings::sum(&[cells]).stages().connect.count(), 0);
}

#[test]
fn classes_follow_the_first_digit() {
    for (status, class) in [
        (0, StatusClass::None),
        (99, StatusClass::None),
        (101, StatusClass::Informational),
        (204, StatusClass::Success),
        (399, StatusClass::Redirection),
        (499, StatusClass::ClientError),
        (500, StatusClass::ServerError),
        (u16::MAX, StatusClass::ServerError),
    ] {
        assert_eq!(StatusClass::of(status), class, "{status}");
    }
    for (number, class) in StatusClass::ALL.into_iter().enumerate() {
        assert_eq!(class as usize, number);
    }
    for (number, &cause) in Cause::ALL.iter().enumerate() {
        assert_eq!(cause as usize, number);
    }
}

#[test]
fn nothing_is_lost_or_counted_twice_while_numbers_are_given_again() {
    const TURNS: u64 = 20_000;
    let (cells, told) = (Arc::new(Cells::default()), AtomicU64::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for turn in 0..TURNS {
                let backend = BackendId(u32::try_from(turn % 3).expect("small"));
                let mut record = Record { target: Some(TargetId(2)), status: 200, ..Record::default() };
                record.attempt(backend, Tick(1));
                cells.record(&record);
                told.store(turn + 1, Ordering::Release);
                cells.renew(turn + 2, &NewNumbers { backends: &[backend], ..NewNumbers::default() });
            }
        });
        let sums = Sums::new(&[Arc::clone(&cells)], 1, &NewNumbers::default());
        let mut after = 0;
        while after < TURNS {
            let before = told.load(Ordering::Acquire);
            let gone = sums.gone(&LiveNumbers::default()).of_target(TargetId(2));
            after = told.load(Ordering::Acquire);
            // One may be counted that was not told yet.
            assert!((before..=after + 1).contains(&gone.attempts), "{before} {} {after}", gone.attempts);
            assert!(gone.traffic.requests() <= gone.attempts);
        }
    });
}

#[test]
fn a_worker_that_has_not_gone_over_counts_for_the_one_before() {
    let workers: Vec<Arc<Cells>> = (0..2).map(|_| Arc::default()).collect();
    let record = retried();
    workers.iter().for_each(|cells| cells.record(&record));
    // Backend 9 is another one under config 2, and only the first worker knows.
    let new = NewNumbers { backends: &[BackendId(9)], ..NewNumbers::default() };
    workers[0].renew(2, &new);
    let sums = Sums::new(&workers, 2, &new);
    let live = LiveNumbers { backends: [BackendId(7), BackendId(9)].into(), ..LiveNumbers::default() };
    assert_eq!((sums.backend(BackendId(7)).attempts, sums.backend(BackendId(9)).attempts), (2, 0));
    assert_eq!(sums.gone(&live).of_target(TargetId(2)).attempts, 2);
    workers[1].renew(2, &new);
    let sums = Sums::new(&workers, 2, &new);
    workers[1].record(&record);
    assert_eq!(
        (sums.backend(BackendId(9)).attempts, sums.gone(&live).of_target(TargetId(2)).attempts),
        (1, 2)
    );
}

#[test]
fn retries_and_hedges_are_told_apart() {
    let cells = Arc::new(Cells::default());
    let mut record = retried();
    record.attempt(BackendId(8), Tick(5)).outcome = Cause::Overtaken;
    cells.record(&record);
    let faults = Sums::new(&[cells], 1, &NewNumbers::default()).faults(Some(TargetId(2)));
    assert_eq!((faults.retries, faults.hedges, faults.causes().count()), (1, 1, 0));
}
