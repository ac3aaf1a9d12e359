//! Picks under breakers, outliers and limits: who is passed over, who is tried again, who waits.

use std::sync::Barrier;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use super::*;
use crate::config::model::resilience::{BreakerConfig, Outlier};
use crate::config::model::{self, Balance, Resilience};
use crate::targets::fixtures::{granted, target, unprobed};
use crate::targets::{Chance, Circuit, Heard, Outcome, QueueTicket, Queued, Source, Tried, Verdict};
use crate::tick::Tick;

/// All the algorithms, each with a target of `backends` backends under this resilience.
fn each(backends: u16, resilience: &Resilience) -> impl Iterator<Item = (Balance, Arc<Target>)> {
    let resilience = resilience.clone();
    Balance::ALL.iter().map(move |&(_, algorithm)| {
        let config = model::TargetConfig {
            balance: algorithm.into(),
            resilience: resilience.clone(),
            ..unprobed(backends)
        };
        (algorithm, target(&config))
    })
}

fn at(millis: u64) -> Tick {
    Tick((1_000_000 + millis) * 1_000_000)
}

fn pick(target: &Target, now: Tick) -> Pick {
    let (tried, chance) = (Tried::new(), Chance::seeded(now.0));
    target.pick(&Ask { key: Some(chance.bits()), ..Ask::new(&tried, &chance, now) })
}

fn lease(target: &Target, now: Tick) -> Lease {
    match pick(target, now) {
        Pick::Lease(lease) => lease,
        other => panic!("no lease but {other:?}"),
    }
}

/// Fails `times` attempts on the `nth` backend at `now`.
fn fail(target: &Target, nth: usize, times: u32, now: Tick) {
    for _ in 0..times {
        let lease = Lease::take(&target.backends[nth], Trial::NONE, now).expect("there is room");
        lease.finish(Outcome::Failed, now);
    }
}

/// An attempt with this status in its answer.
fn answer(lease: Lease, heard: Heard, now: Tick) {
    lease.note_answer(heard, now);
    lease.finish(Outcome::Success, now);
}

const ERROR: Heard = Heard { fault: true, error: true, failure: false, retry_after: None };

fn breaker_only() -> Resilience {
    Resilience { outlier: None, ..Resilience::default() }
}

fn circuit(target: &Target, nth: usize) -> Circuit {
    target.status()[nth].circuit
}

#[test]
fn while_one_breaker_is_open_the_others_are_used_and_none_only_if_all_are() {
    for (algorithm, target) in each(3, &breaker_only()) {
        fail(&target, 0, 20, at(0));
        assert_eq!(circuit(&target, 0), Circuit::Open(at(5_000)), "{algorithm:?}");
        for turn in 0..100 {
            let lease = lease(&target, at(turn));
            assert_ne!(&*lease.backend().name, "b0", "{algorithm:?}");
            lease.finish(Outcome::Success, at(turn));
        }
        let status = &target.status()[0];
        assert_eq!((status.health, status.source, status.since), (Health::Down, Source::Breaker, at(0)));
        assert_eq!(&*status.reason, "20 attempts in a row failed");
        fail(&target, 1, 20, at(100));
        fail(&target, 2, 20, at(100));
        assert!(matches!(pick(&target, at(101)), Pick::None(Cause::BreakerOpen)), "{algorithm:?}");
    }
}

#[test]
fn at_half_open_one_of_a_thousand_reaches_the_backend_and_decides() {
    for (algorithm, target) in each(2, &breaker_only()) {
        fail(&target, 0, 20, at(0));
        for (outcome, after) in
            [(Outcome::Failed, Circuit::Open(at(10_000))), (Outcome::Success, Circuit::Closed)]
        {
            let now = if outcome == Outcome::Failed { at(5_000) } else { at(10_000) };
            let start = Barrier::new(4);
            let ask = || {
                start.wait();
                let leases: Vec<Lease> = (0..250).map(|_| lease(&target, now)).collect();
                leases.into_iter().filter(|lease| &*lease.backend().name == "b0").collect::<Vec<_>>()
            };
            let mut reached: Vec<Lease> = std::thread::scope(|scope| {
                let threads: Vec<_> = (0..4).map(|_| scope.spawn(ask)).collect();
                threads.into_iter().flat_map(|thread| thread.join().expect("no panic")).collect()
            });
            assert_eq!(reached.len(), 1, "{algorithm:?}");
            assert_eq!(circuit(&target, 0), Circuit::HalfOpen);
            assert_eq!(target.status()[0].health, Health::Down);
            reached.remove(0).finish(outcome, now);
            assert_eq!(circuit(&target, 0), after, "{algorithm:?}");
        }
        assert_eq!(target.status()[0].health, Health::Up);
    }
}

#[test]
fn a_client_that_leaves_frees_the_trial_and_counts_as_nothing() {
    let target = target(&model::TargetConfig { resilience: breaker_only(), ..unprobed(1) });
    fail(&target, 0, 20, at(0));
    let trial = lease(&target, at(5_000));
    assert!(trial.is_trial());
    assert!(matches!(pick(&target, at(5_000)), Pick::None(Cause::BreakerOpen)), "one is finding out");
    trial.finish(Outcome::Neutral, at(5_100));
    let trial = lease(&target, at(5_100));
    drop(trial);
    let trial = lease(&target, at(5_100));
    trial.note_answer(Heard::GOOD, at(5_200));
    assert_eq!(circuit(&target, 0), Circuit::Closed, "a download need not end first");
    let other = lease(&target, at(5_200));
    answer(other, Heard::GOOD, at(5_300));
    trial.finish(Outcome::Neutral, at(9_000));
    fail(&target, 0, 19, at(9_000));
    assert_eq!(circuit(&target, 0), Circuit::Closed);
}

#[test]
fn probes_do_not_close_a_breaker() {
    let config = model::TargetConfig {
        health: Some(model::HealthCheck::default()),
        resilience: breaker_only(),
        ..unprobed(2)
    };
    let target = target(&config);
    let report = |verdict, now| target.state.report(&target.backends[0], verdict, now);
    report(Verdict::Good, at(0));
    target.state.report(&target.backends[1], Verdict::Good, at(0));
    fail(&target, 0, 20, at(0));
    for now in 1..4 {
        report(Verdict::Bad("connection refused".into()), at(now));
    }
    report(Verdict::Good, at(4));
    report(Verdict::Good, at(5));
    assert_eq!((target.backends[0].health(), circuit(&target, 0)), (Health::Up, Circuit::Open(at(5_000))));
    assert!((0..20).all(|_| &*lease(&target, at(6)).backend().name == "b1"));
}

#[test]
fn statuses_count_for_a_breaker_that_asks_for_them() {
    let resilience = Resilience {
        breaker: Some(BreakerConfig { statuses: vec![500..=599], ..BreakerConfig::default() }),
        ..breaker_only()
    };
    let target = target(&model::TargetConfig { resilience, ..unprobed(1) });
    for _ in 0..20 {
        assert_eq!(circuit(&target, 0), Circuit::Closed);
        answer(lease(&target, at(0)), Heard { failure: true, ..ERROR }, at(1));
    }
    assert_eq!(circuit(&target, 0), Circuit::Open(at(5_001)));
}

#[test]
fn five_errors_in_a_row_eject_until_a_trial_goes_well() {
    for (algorithm, target) in each(3, &Resilience::default()) {
        let one = Arc::clone(&target.backends[1]);
        let take = |now| Lease::take(&one, Trial::NONE, now).expect("there is no limit");
        for turn in 0..9 {
            // A good one in between starts the count again.
            answer(take(at(0)), if turn == 4 { Heard::GOOD } else { ERROR }, at(0));
        }
        assert_eq!(target.status()[1].ejected_until, None, "{algorithm:?}");
        answer(take(at(0)), ERROR, at(0));
        let status = &target.status()[1];
        assert_eq!((status.health, status.source), (Health::Down, Source::Outlier), "{algorithm:?}");
        assert_eq!(&*status.reason, "5 errors in a row");
        for turn in 0..60 {
            assert!(lease(&target, at(turn)).backend().id != one.id, "{algorithm:?}");
        }
        // Twice as long after a trial that failed, and over after one that went well.
        let trial = lease(&target, at(1_000));
        assert_eq!((trial.backend().id, trial.is_trial()), (one.id, true), "{algorithm:?}");
        answer(trial, ERROR, at(1_010));
        assert!((0..30).all(|turn| lease(&target, at(1_011 + turn)).backend().id != one.id));
        let trial = lease(&target, at(3_010));
        assert_eq!(trial.backend().id, one.id, "{algorithm:?}");
        answer(trial, Heard::GOOD, at(3_020));
        assert_eq!(target.status()[1].health, Health::Up, "{algorithm:?}");
    }
}

#[test]
fn no_more_than_the_share_is_ejected_and_never_the_last() {
    for (backends, ejected) in [(1_u16, 0), (2, 1), (3, 1), (4, 2), (9, 4)] {
        let target = target(&unprobed(backends));
        for nth in 0..usize::from(backends) {
            fail(&target, nth, 10, at(0));
        }
        let out = target.status().iter().filter(|status| status.ejected_until.is_some()).count();
        assert_eq!(out, ejected, "of {backends}");
    }
}

/// Half of four are outliers, and another one is down: a quarter is left.
#[test]
fn a_panic_sets_outliers_aside_but_nobody_who_is_down() {
    let outlier = Some(Outlier { ejection: Duration::from_secs(600), ..Outlier::default() });
    for (algorithm, target) in each(4, &Resilience { outlier, ..Resilience::default() }) {
        fail(&target, 0, 5, at(0));
        fail(&target, 1, 5, at(0));
        target.settle(at(1));
        let names = |now: u64| -> std::collections::BTreeSet<String> {
            (0..400).map(|turn| lease(&target, at(now + turn)).backend().name.to_string()).collect()
        };
        let first = algorithm == Balance::First;
        if !first {
            assert_eq!(names(1).len(), 2, "{algorithm:?}");
        }
        fail(&target, 2, 20, at(500));
        target.settle(at(501));
        let panicking = names(501);
        assert!(!panicking.contains("b2"), "{algorithm:?}: its breaker is open");
        assert!(panicking.contains("b0"), "{algorithm:?} {panicking:?}");
        assert_eq!(panicking.len(), if first { 1 } else { 3 }, "{algorithm:?}");
        let status = &target.status()[0];
        assert_eq!((status.health, status.source), (Health::Up, Source::Outlier));
        assert_eq!(&*status.reason, "5 errors in a row; set aside, since too few backends are left");

        answer(lease(&target, at(5_500)), Heard::GOOD, at(5_501));
        target.settle(at(5_502));
        assert_eq!(target.status()[2].circuit, Circuit::Closed);
        assert_eq!(target.status()[0].health, Health::Down, "{algorithm:?}: there are enough again");
    }
}

/// Three backends, the third a backup, which refuses connections at the beginning until its breaker is open, for five seconds.
fn with_a_broken_backup(algorithm: Balance) -> Arc<Target> {
    let mut config = model::TargetConfig { balance: algorithm.into(), ..unprobed(3) };
    config.backends[2].portion.priority = 1;
    let target = target(&config);
    for _ in 0..20 {
        let lease = Lease::take(&target.backends[2], Trial::NONE, at(0)).expect("there is room");
        lease.finish(Outcome::ConnectFailed, at(0));
    }
    assert_eq!(circuit(&target, 2), Circuit::Open(at(5_000)));
    target
}

/// A backup that was needed once, and broken, gets no request that would show that it is back.
#[test]
fn a_backup_that_nobody_needs_is_no_reason_to_panic() {
    for &(_, algorithm) in Balance::ALL {
        let target = with_a_broken_backup(algorithm);
        fail(&target, 0, 5, at(6_000));
        assert!(target.status()[0].ejected_until.is_some(), "{algorithm:?}");
        target.settle(at(6_001));
        assert!(!target.state.board.panics(), "{algorithm:?}: two of three are left");
        let served = (0..200).map(|turn| lease(&target, at(6_002 + turn)).backend().id);
        assert!(served.into_iter().all(|id| id == target.backends[1].id), "{algorithm:?}");
        assert_eq!(target.status()[2].health, Health::Down, "nobody has found out");
    }
}

#[test]
fn a_backup_whose_breaker_has_just_opened_is_not_left() {
    let target = with_a_broken_backup(Balance::RoundRobin);
    fail(&target, 0, 5, at(4_500));
    target.settle(at(4_501));
    assert!(target.state.board.panics(), "one of three is left");
    target.settle(at(5_999));
    assert!(target.state.board.panics(), "somebody may be about to find out");
    target.settle(at(6_000));
    assert!(!target.state.board.panics());
}

#[test]
fn an_outlier_that_nobody_needs_takes_nobodys_place_among_those_that_may_be_left_out() {
    let mut config = unprobed(3);
    config.backends[2].portion.priority = 1;
    let target = target(&config);
    fail(&target, 2, 5, at(0));
    assert!(target.status()[2].ejected_until.is_some());
    fail(&target, 0, 5, at(500));
    assert!(target.status()[0].ejected_until.is_none(), "half of three is one");
    fail(&target, 0, 5, at(2_000));
    assert!(target.status()[0].ejected_until.is_some());
}

fn limited(max_in_flight: u32, queue: u32) -> Resilience {
    Resilience { max_in_flight: Some(max_in_flight), queue, ..Resilience::default() }
}

fn ticket(target: &Target, now: Tick) -> QueueTicket {
    let (tried, chance) = (Tried::new(), Chance::seeded(1));
    match target.enqueue(&Ask::new(&tried, &chance, now)) {
        Queued::Ticket(ticket) => ticket,
        other => panic!("no ticket but {other:?}"),
    }
}

#[test]
fn a_full_target_has_nobody_to_give_and_its_queue_is_served_in_order() {
    for (algorithm, target) in each(3, &limited(2, 4)) {
        let mut held: Vec<Lease> = (0..6).map(|_| lease(&target, at(0))).collect();
        assert!(target.backends.iter().all(|backend| backend.in_flight() == 2), "{algorithm:?}");
        assert!(matches!(pick(&target, at(0)), Pick::Full), "{algorithm:?}");
        let mut tickets: Vec<QueueTicket> = (0..4).map(|_| ticket(&target, at(0))).collect();
        let (tried, chance) = (Tried::new(), Chance::seeded(1));
        let fifth = target.enqueue(&Ask::new(&tried, &chance, at(0)));
        assert!(matches!(fifth, Queued::Refused(Cause::QueueFull)), "{algorithm:?}");

        // The second leaves; its place is free again at once.
        drop(tickets.remove(1));
        tickets.push(ticket(&target, at(1)));
        for turn in 0..4 {
            assert!(tickets.iter_mut().all(|ticket| granted(ticket).is_none()));
            drop(held.remove(0));
            assert!(matches!(pick(&target, at(1)), Pick::Full), "{algorithm:?}: nobody overtakes");
            held.push(granted(&mut tickets[0]).expect("the first is served"));
            tickets.remove(0);
            assert_eq!(held.len(), 6, "{algorithm:?} {turn}");
            assert!(target.backends.iter().all(|backend| backend.in_flight() == 2), "{algorithm:?}");
        }
        drop(held);
        assert!(target.backends.iter().all(|backend| backend.in_flight() == 0), "{algorithm:?}");
        let held: Vec<Lease> = (0..6).map(|_| lease(&target, at(2))).collect();
        assert!(matches!(pick(&target, at(2)), Pick::Full), "{algorithm:?}");
        drop(held);
    }
}

#[test]
fn a_waiter_that_left_with_its_lease_in_hand_hands_it_on() {
    let target = target(&model::TargetConfig { resilience: limited(1, 4), ..unprobed(1) });
    let held = lease(&target, at(0));
    let (first, mut second) = (ticket(&target, at(0)), ticket(&target, at(0)));
    drop(held);
    // It was granted and never looked.
    drop(first);
    assert_eq!(granted(&mut second).map(|lease| lease.backend().in_flight()), Some(1));
    assert_eq!(target.backends[0].in_flight(), 0);
}

#[test]
fn who_waits_is_served_when_a_backend_comes_back() {
    let config = model::TargetConfig {
        health: Some(model::HealthCheck::default()),
        resilience: limited(1, 4),
        ..unprobed(2)
    };
    let target = target(&config);
    target.state.report(&target.backends[0], Verdict::Good, at(0));
    target.state.report(&target.backends[1], Verdict::Bad("no".into()), at(0));
    let held = lease(&target, at(0));
    let (mut first, mut second) = (ticket(&target, at(0)), ticket(&target, at(0)));
    target.state.report(&target.backends[1], Verdict::Good, at(1));
    target.state.report(&target.backends[1], Verdict::Good, at(2));
    target.serve(at(2));
    let lease = granted(&mut first).expect("the first is served");
    assert_eq!(&*lease.backend().name, "b1");
    assert!(granted(&mut second).is_none());
    // What is out is not handed on: it would be a failure more.
    target.state.report(&target.backends[0], Verdict::Bad("no".into()), at(3));
    for now in 4..6 {
        target.state.report(&target.backends[0], Verdict::Bad("no".into()), at(now));
    }
    drop(held);
    assert!(granted(&mut second).is_none());
    drop(lease);
    assert!(granted(&mut second).is_some());
}

#[test]
fn the_bound_holds_over_threads_and_everybody_is_served() {
    const THREADS: u32 = 4;
    const TURNS: u32 = 2_000;
    for (algorithm, target) in each(3, &limited(1, THREADS * TURNS)) {
        let busy: [AtomicU32; 3] = Default::default();
        let served = AtomicU32::new(0);
        let work = |lease: Lease| {
            let place = lease.backend().id.0 as usize;
            assert_eq!(busy[place].fetch_add(1, Ordering::SeqCst), 0, "{algorithm:?}: two at once");
            std::hint::spin_loop();
            busy[place].fetch_sub(1, Ordering::SeqCst);
            served.fetch_add(1, Ordering::SeqCst);
            lease.finish(Outcome::Success, at(0));
        };
        std::thread::scope(|scope| {
            for seed in 0..THREADS {
                let (target, work) = (&target, &work);
                scope.spawn(move || {
                    let (tried, chance) = (Tried::new(), Chance::seeded(seed.into()));
                    let mut waiting: Vec<QueueTicket> = Vec::new();
                    let look = |waiting: &mut Vec<QueueTicket>| {
                        waiting.retain_mut(|ticket| granted(ticket).map(work).is_none());
                    };
                    for _ in 0..TURNS {
                        let ask = Ask { key: Some(chance.bits()), ..Ask::new(&tried, &chance, at(0)) };
                        match target.pick(&ask) {
                            Pick::Lease(lease) => work(lease),
                            Pick::Full => match target.enqueue(&ask) {
                                Queued::Lease(lease) => work(lease),
                                Queued::Ticket(ticket) => waiting.push(ticket),
                                Queued::Refused(cause) => panic!("{cause}"),
                            },
                            other => panic!("{other:?}"),
                        }
                        if waiting.len() > 100 {
                            look(&mut waiting);
                        }
                    }
                    // Whoever is left is granted by another thread, or was already.
                    while !waiting.is_empty() {
                        look(&mut waiting);
                        std::thread::yield_now();
                    }
                });
            }
        });
        assert_eq!(served.into_inner(), THREADS * TURNS, "{algorithm:?}");
        assert!(target.backends.iter().all(|backend| backend.in_flight() == 0), "{algorithm:?}");
    }
}

#[test]
fn a_target_that_has_nobody_else_finds_out_each_second_and_one_at_a_time() {
    for (algorithm, target) in each(1, &breaker_only()) {
        fail(&target, 0, 20, at(0));
        assert!(matches!(pick(&target, at(999)), Pick::None(Cause::BreakerOpen)), "{algorithm:?}");
        let trial = lease(&target, at(1_000));
        assert!(trial.is_trial(), "{algorithm:?}");
        assert!(matches!(pick(&target, at(1_900)), Pick::None(Cause::BreakerOpen)), "{algorithm:?}");
        trial.finish(Outcome::Failed, at(2_000));
        assert!(matches!(pick(&target, at(2_999)), Pick::None(Cause::BreakerOpen)), "{algorithm:?}");
        answer(lease(&target, at(3_000)), Heard::GOOD, at(3_001));
        assert_eq!(circuit(&target, 0), Circuit::Closed, "{algorithm:?}");
    }
    // Where there is somebody else, or the time was written, it is as long as it is.
    let two = target(&model::TargetConfig { resilience: breaker_only(), ..unprobed(2) });
    fail(&two, 0, 20, at(0));
    assert!((0..30).all(|turn| &*lease(&two, at(4_000 + turn)).backend().name == "b1"));
    let breaker = Some(BreakerConfig { open_is_default: false, ..BreakerConfig::default() });
    let written =
        target(&model::TargetConfig { resilience: Resilience { breaker, ..breaker_only() }, ..unprobed(1) });
    fail(&written, 0, 20, at(0));
    assert!(matches!(pick(&written, at(4_999)), Pick::None(Cause::BreakerOpen)));
    assert!(lease(&written, at(5_000)).is_trial());
}
