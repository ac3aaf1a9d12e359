//! Picks under ejection, over threads and through verdicts: the rules that `pick` promises.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::config::model::{Resilience, TargetConfig};
use crate::targets::fixtures::{probed, target, unprobed};
use crate::targets::{Chance, Outcome, Tried, Verdict};
use crate::tick::Tick;

const SECOND: u64 = 1_000_000_000;

fn lease(target: &Target, tried: &Tried, now: u64) -> Lease {
    match target.pick(&Ask::new(tried, &Chance::seeded(1), Tick(now))) {
        Pick::Lease(lease) => lease,
        other => panic!("no lease but {other:?}"),
    }
}

fn pick_and_succeed(target: &Target, now: u64) -> String {
    let lease = lease(target, &Tried::new(), now);
    let name = lease.backend().name.to_string();
    lease.finish(Outcome::Success, Tick(now));
    name
}

pub(super) fn count(names: impl IntoIterator<Item = String>) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for name in names {
        *counts.entry(name).or_default() += 1;
    }
    counts
}

pub(super) fn shares<const N: usize>(shares: [(&str, usize); N]) -> BTreeMap<String, usize> {
    shares.into_iter().map(|(name, share)| (name.to_owned(), share)).collect()
}

/// `picks` picks by 8 threads at once.
fn from_eight_threads(target: &Target, picks: usize) -> BTreeMap<String, usize> {
    let left = AtomicUsize::new(picks);
    let draw = || {
        let mut names = Vec::new();
        while left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1)).is_ok() {
            names.push(pick_and_succeed(target, 1));
        }
        names
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(draw)).collect();
        count(threads.into_iter().flat_map(|thread| thread.join().expect("no panic")))
    })
}

/// Fails a connect to the backend called `name` at `now`.
pub(super) fn eject(target: &Target, name: &str, now: u64) {
    let backend = target.backends.iter().find(|backend| &*backend.name == name).expect("it exists");
    Lease::take(backend, Trial::NONE, Tick(now))
        .expect("there is no limit")
        .finish(Outcome::ConnectFailed, Tick(now));
}

#[test]
fn round_robin_is_exact_over_threads_and_again_after_one_left_and_returned() {
    let target = target(&probed(3));
    let report = |number: usize, verdict| target.state.report(&target.backends[number], verdict, Tick(1));
    for number in 0..3 {
        report(number, Verdict::Good);
    }
    let thirds = shares([("b0", 333), ("b1", 333), ("b2", 333)]);
    assert_eq!(from_eight_threads(&target, 999), thirds);
    for _ in 0..3 {
        report(1, Verdict::Bad("connection refused".into()));
    }
    assert_eq!(from_eight_threads(&target, 998), shares([("b0", 499), ("b2", 499)]));
    for _ in 0..2 {
        report(1, Verdict::Good);
    }
    assert_eq!(from_eight_threads(&target, 999), thirds);
    assert!(target.backends.iter().all(|backend| backend.in_flight() == 0));
}

#[test]
fn without_a_verdict_the_answer_is_unknown_and_with_only_bad_ones_none() {
    let target = target(&probed(2));
    assert!(matches!(target.pick(&Ask::new(&Tried::new(), &Chance::seeded(1), Tick(1))), Pick::Unknown));
    target.state.report(&target.backends[0], Verdict::Bad("timeout after 1s".into()), Tick(1));
    assert!(matches!(target.pick(&Ask::new(&Tried::new(), &Chance::seeded(1), Tick(1))), Pick::Unknown));
    target.state.report(&target.backends[1], Verdict::Bad("timeout after 1s".into()), Tick(1));
    assert!(matches!(target.pick(&Ask::new(&Tried::new(), &Chance::seeded(1), Tick(1))), Pick::None(_)));
    assert!(target.backends.iter().all(|backend| backend.health() == Health::Down));
}

#[test]
fn a_tried_backend_is_not_picked_again_and_one_without_verdict_is_worth_a_wait() {
    let target = target(&probed(2));
    target.state.report(&target.backends[0], Verdict::Good, Tick(1));
    let mut tried = Tried::new();
    tried.insert(lease(&target, &tried, 1).backend().id);
    assert!(matches!(target.pick(&Ask::new(&tried, &Chance::seeded(1), Tick(1))), Pick::Unknown));
    target.state.report(&target.backends[1], Verdict::Good, Tick(1));
    tried.insert(lease(&target, &tried, 1).backend().id);
    assert_eq!(tried.len(), 2);
    assert!(matches!(target.pick(&Ask::new(&tried, &Chance::seeded(1), Tick(1))), Pick::None(_)));
}

#[test]
fn an_ejected_backend_is_skipped_and_the_others_share_evenly() {
    let target = target(&unprobed(4));
    eject(&target, "b1", SECOND);
    let counts = count((0..300).map(|_| pick_and_succeed(&target, SECOND)));
    // Four tickets serve three requests: each of the others gets its own turn and b1's goes to b2.
    // A second ticket is a turn, not a gift to the neighbour.
    assert_eq!(counts.values().sum::<usize>(), 300);
    assert_eq!(counts, shares([("b0", 100), ("b2", 100), ("b3", 100)]));
}

#[test]
fn a_dead_backend_costs_one_connect_per_ejection_even_from_many_threads() {
    // When all threads fail in the first moment the breaker opens, too, and has trials of its own.
    let resilience = Resilience { breaker: None, ..Resilience::default() };
    let target = target(&TargetConfig { resilience, ..unprobed(2) });
    let connects = AtomicUsize::new(0);
    // Every 100 ms for 13 s: 8 threads with 4 requests each, and b0 refuses everyone.
    for step in 0..130 {
        let now = Tick(SECOND + step * SECOND / 10);
        let request = || {
            let mut tried = Tried::new();
            loop {
                let Pick::Lease(lease) = target.pick(&Ask::new(&tried, &Chance::seeded(1), now)) else {
                    panic!("b1 is there")
                };
                tried.insert(lease.backend().id);
                if &*lease.backend().name == "b1" {
                    return lease.finish(Outcome::Success, now);
                }
                connects.fetch_add(1, Ordering::Relaxed);
                lease.finish(Outcome::ConnectFailed, now);
            }
        };
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| (0..4).for_each(|_| request()));
            }
        });
        if step == 0 {
            // How many got through at the very first moment depends on the threads.
            assert!(connects.swap(0, Ordering::Relaxed) >= 1);
        }
    }
    // Trials after 1, 3, 7 and 12 s.
    assert_eq!(connects.load(Ordering::Relaxed), 4);
}

#[test]
fn ejection_never_empties_a_target() {
    let target = target(&unprobed(2));
    eject(&target, "b0", SECOND);
    eject(&target, "b1", SECOND);
    let mut tried = Tried::new();
    for _ in 0..2 {
        let lease = lease(&target, &tried, SECOND);
        assert!(!lease.is_trial());
        tried.insert(lease.backend().id);
        lease.finish(Outcome::ConnectFailed, Tick(SECOND));
    }
    assert_eq!(tried.len(), 2);
    assert!(matches!(target.pick(&Ask::new(&tried, &Chance::seeded(1), Tick(SECOND))), Pick::None(_)));
    // A success brings one back at once.
    let back = pick_and_succeed(&target, SECOND + 1);
    assert_eq!(count((0..10).map(|_| pick_and_succeed(&target, SECOND + 2))), shares([(&back, 10)]));
}

#[test]
fn a_successful_trial_ends_the_ejection() {
    let target = target(&unprobed(3));
    eject(&target, "b2", SECOND);
    let counts = count((0..999).map(|_| pick_and_succeed(&target, 2 * SECOND)));
    assert_eq!(counts, shares([("b0", 333), ("b1", 333), ("b2", 333)]));
}

#[test]
fn many_ejected_backends_leave_the_last_one_reachable() {
    let target = target(&unprobed(50));
    for number in 0..49 {
        eject(&target, &format!("b{number}"), SECOND);
    }
    assert_eq!(count((0..100).map(|_| pick_and_succeed(&target, SECOND))), shares([("b49", 100)]));
}

#[test]
fn a_target_without_backends_gives_nothing() {
    assert!(matches!(
        target(&unprobed(0)).pick(&Ask::new(&Tried::new(), &Chance::seeded(1), Tick(1))),
        Pick::None(_)
    ));
}
