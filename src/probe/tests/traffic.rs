//! What live traffic does to the pace of probes, in simulated time.

use std::os::unix::net::UnixListener;

use super::*;
use crate::targets::{Heard, Lease, Outcome};

/// A request to the only backend of `target`; ends at once with `outcome`, and with a good answer if that is a success.
pub(super) fn request(target: &Target, outcome: Outcome, now: Tick) {
    let lease: Lease = match target.pick(&Ask::new(&Tried::new(), &Chance::seeded(1), now)) {
        Pick::Lease(lease) => lease,
        other => panic!("{other:?}"),
    };
    if outcome == Outcome::Success {
        lease.note_answer(Heard::GOOD, now);
    }
    lease.finish(outcome, now);
}

/// Connections that were made to `listener`.
fn connections(listener: &UnixListener) -> usize {
    listener.set_nonblocking(true).expect("a listener");
    std::iter::from_fn(|| listener.accept().ok()).count()
}

#[tokio::test(start_paused = true)]
async fn a_backend_that_answers_well_is_probed_less_often() {
    let folder = tempfile::tempdir().expect("a folder");
    let clock = clock();
    let mut counts = Vec::new();
    // No traffic, good answers, good answers every third interval only.
    for every in [0, 1, 6] {
        let path = folder.path().join(format!("{every}.sock"));
        let listener = UnixListener::bind(&path).expect("bind");
        let target = target(Some(health(2 * SECOND, SECOND)), vec![unix(&path)], None);
        let _tasks = start(std::slice::from_ref(&target), clock.clone(), &CancellationToken::new());
        until(&target, 0, Health::Up).await;
        for second in 1..=80 {
            sleep(SECOND).await;
            if every > 0 && second % every == 0 {
                request(&target, Outcome::Success, clock());
            }
        }
        counts.push(connections(&listener));
    }
    let [idle, busy, seldom] = counts[..] else { panic!("three") };
    // One at once and then one every two seconds, ± 10 %; every fourth of them.
    assert!((37..=46).contains(&idle), "{idle}");
    assert!((9..=13).contains(&busy), "{busy}");
    assert!(busy < seldom && seldom < idle, "{idle} {busy} {seldom}");
}

#[tokio::test(start_paused = true)]
async fn a_backend_that_fails_requests_is_found_down_without_waiting_for_the_interval() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("app.sock");
    let clock = clock();
    for failing in [true, false] {
        let listener = UnixListener::bind(&path).expect("bind");
        let target = target(Some(health(20 * SECOND, SECOND)), vec![unix(&path)], None);
        let _tasks = start(std::slice::from_ref(&target), clock.clone(), &CancellationToken::new());
        until(&target, 0, Health::Up).await;
        sleep(5 * SECOND).await;
        drop(listener);
        std::fs::remove_file(&path).expect("there");
        if failing {
            request(&target, Outcome::ConnectFailed, clock());
        }
        let down = until(&target, 0, Health::Down).await;
        // At once, and then two at the pace of doubt: half an interval ± 10 %.
        let called = Duration::from_secs(17)..Duration::from_secs(23);
        let waited = Duration::from_secs(30)..Duration::from_secs(40);
        assert!(if failing { called } else { waited }.contains(&down), "{failing} {down:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn however_many_requests_fail_they_call_for_two_probes_in_an_interval() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("app.sock");
    let listener = UnixListener::bind(&path).expect("bind");
    let target = target(Some(health(20 * SECOND, SECOND)), vec![unix(&path)], None);
    let _tasks = start(std::slice::from_ref(&target), clock(), &CancellationToken::new());
    until(&target, 0, Health::Up).await;
    for _ in 0..2_000 {
        sleep(Duration::from_millis(100)).await;
        target.backends[0].note_trouble();
    }
    let probes = connections(&listener);
    // One at once, one called for, and then one every ten seconds.
    assert!((20..=23).contains(&probes), "{probes}");
    assert_eq!(target.backends[0].health(), Health::Up, "the probes passed");
}
