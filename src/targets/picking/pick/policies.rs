//! What holds under every algorithm, and what weights, priorities, zones and slow start make of it.

use std::time::Duration;

use proptest::prelude::*;

use super::tests::{count, eject, shares};
use super::*;
use crate::config::model::{Balance, Policy, Portion};
use crate::targets::fixtures::{probed, target, unprobed};
use crate::targets::{Chance, Outcome, Registry, Tried, Verdict};
use crate::tick::Tick;

const SECOND: u64 = 1_000_000_000;

fn with(backends: u16, policy: impl Into<Policy>) -> model::TargetConfig {
    model::TargetConfig { balance: policy.into(), ..unprobed(backends) }
}

/// The same with what each backend gets.
fn portioned(policy: impl Into<Policy>, portions: &[Portion]) -> model::TargetConfig {
    let mut config = with(u16::try_from(portions.len()).expect("few"), policy);
    for (backend, portion) in config.backends.iter_mut().zip(portions) {
        backend.portion = portion.clone();
    }
    config
}

fn weights(weights: &[u16]) -> Vec<Portion> {
    weights.iter().map(|&weight| Portion { weight, ..Portion::default() }).collect()
}

fn pick(target: &Target, chance: &Chance, now: u64) -> Option<Lease> {
    match target.pick(&Ask { key: Some(chance.bits()), ..Ask::new(&Tried::new(), chance, Tick(now)) }) {
        Pick::Lease(lease) => Some(lease),
        Pick::Unknown | Pick::Full | Pick::None(_) => None,
    }
}

fn names(target: &Target, picks: usize, now: u64) -> Vec<String> {
    let chance = Chance::seeded(5);
    let name = |_| pick(target, &chance, now).expect("a backend").backend().name.to_string();
    (0..picks).map(name).collect()
}

#[test]
fn weights_of_5_1_1_take_turns_in_the_smooth_order() {
    let target = target(&portioned(Balance::RoundRobin, &weights(&[5, 1, 1])));
    assert_eq!(names(&target, 14, 1).join(" "), "b0 b0 b1 b0 b2 b0 b0 b0 b0 b1 b0 b2 b0 b0");
}

#[test]
fn weights_hold_under_every_algorithm_without_a_key_on_an_idle_target() {
    let shares = |algorithm: &Balance| !algorithm.is_hash() && *algorithm != Balance::First;
    for (_, algorithm) in Balance::ALL.iter().filter(|(_, algorithm)| shares(algorithm)) {
        let weighted = [Balance::RoundRobin, Balance::LeastConnections, Balance::Random].contains(algorithm);
        let target = target(&portioned(*algorithm, &weights(&[4, 1, 1])));
        let counts = count(names(&target, 6_000, 1));
        let first = counts.get("b0").copied().unwrap_or(0);
        if weighted {
            assert!((3_900..=4_100).contains(&first), "{algorithm:?}: {counts:?}");
        }
        assert!(counts.len() == 3, "{algorithm:?}: {counts:?}");
    }
}

#[test]
fn a_weight_of_zero_gets_only_its_pinned_clients() {
    let chance = Chance::seeded(1);
    for (_, algorithm) in Balance::ALL {
        let target = target(&portioned(*algorithm, &weights(&[0, 1])));
        assert_eq!(count(names(&target, 50, 1)), shares([("b1", 50)]));
        let tried = Tried::new();
        let ask = Ask { pin: Some(&target.backends[0]), ..Ask::new(&tried, &chance, Tick(1)) };
        let Pick::Lease(lease) = target.pick(&ask) else { panic!("it is up") };
        assert_eq!(&*lease.backend().name, "b0");
    }
}

#[test]
fn a_pinned_backend_that_is_out_is_not_picked() {
    let chance = Chance::seeded(1);
    for (_, algorithm) in Balance::ALL {
        let target = target(&model::TargetConfig { balance: (*algorithm).into(), ..probed(2) });
        let up = |number: usize| target.state.report(&target.backends[number], Verdict::Good, Tick(1));
        up(0);
        up(1);
        let picked = |tried: &Tried, now| {
            let pin = Some(&target.backends[0]);
            match target.pick(&Ask { pin, ..Ask::new(tried, &chance, Tick(now)) }) {
                Pick::Lease(lease) => lease.backend().name.to_string(),
                Pick::Unknown | Pick::Full | Pick::None(_) => String::new(),
            }
        };
        assert_eq!(picked(&Tried::new(), 1), "b0");
        let mut tried = Tried::new();
        tried.insert(target.backends[0].id);
        assert_eq!(picked(&tried, 1), "b1");
        eject(&target, "b0", SECOND);
        assert_eq!(picked(&Tried::new(), SECOND), "b1");
        assert_eq!(picked(&Tried::new(), 3 * SECOND), "b0", "the trial");
        for _ in 0..3 {
            target.state.report(&target.backends[0], Verdict::Bad("timeout after 1s".into()), Tick(SECOND));
        }
        assert_eq!(picked(&Tried::new(), 9 * SECOND), "b1");
        assert!(target.backends.iter().all(|backend| backend.in_flight() == 0));
    }
}

#[test]
fn a_backup_serves_only_while_all_others_are_out() {
    let backup = Portion { priority: Portion::BACKUP, ..Portion::default() };
    let second = Portion { priority: 1, ..Portion::default() };
    for (_, algorithm) in Balance::ALL {
        let config = portioned(*algorithm, &[backup.clone(), Portion::default(), second.clone()]);
        let target = target(&model::TargetConfig { health: probed(0).health, ..config });
        let report = |number: usize, verdict: &Verdict| {
            for _ in 0..3 {
                target.state.report(&target.backends[number], verdict.clone(), Tick(1));
            }
        };
        let bad = Verdict::Bad("timeout after 1s".into());
        (0..3).for_each(|number| report(number, &Verdict::Good));
        assert_eq!(count(names(&target, 20, 1)), shares([("b1", 20)]));
        eject(&target, "b1", SECOND);
        assert_eq!(count(names(&target, 20, SECOND)), shares([("b2", 20)]), "an ejection counts as well");
        report(1, &bad);
        report(2, &bad);
        assert_eq!(count(names(&target, 20, 1)), shares([("b0", 20)]));
        report(2, &Verdict::Good);
        assert_eq!(count(names(&target, 20, 1)), shares([("b2", 20)]));
    }
}

#[test]
fn a_zone_is_preferred_while_half_of_it_is_up() {
    let policy = Policy { zone: Some("here".into()), ..Policy::default() };
    let zone = |name: &str| Portion { zone: Some(name.into()), ..Portion::default() };
    let portions = [zone("here"), zone("there"), zone("here"), zone("here"), Portion::default()];
    let config = portioned(policy, &portions);
    let target = target(&model::TargetConfig { health: probed(0).health, ..config });
    let report = |number: usize, verdict: &Verdict| {
        for _ in 0..3 {
            target.state.report(&target.backends[number], verdict.clone(), Tick(1));
        }
    };
    let bad = Verdict::Bad("timeout after 1s".into());
    (0..5).for_each(|number| report(number, &Verdict::Good));
    assert_eq!(count(names(&target, 30, 1)), shares([("b0", 10), ("b2", 10), ("b3", 10)]));
    report(0, &bad);
    assert_eq!(count(names(&target, 30, 1)), shares([("b2", 15), ("b3", 15)]));
    report(2, &bad);
    let all = shares([("b1", 10), ("b3", 10), ("b4", 10)]);
    assert_eq!(count(names(&target, 30, 1)), all, "a third of the zone would get the load of all");
    report(3, &bad);
    assert_eq!(count(names(&target, 30, 1)), shares([("b1", 15), ("b4", 15)]));
}

#[test]
fn slow_start_gives_a_backend_that_came_back_its_share_little_by_little_under_every_algorithm() {
    for (_, algorithm) in Balance::ALL.iter().filter(|(_, algorithm)| *algorithm != Balance::First) {
        let policy = Policy { slow_start: Duration::from_secs(10), ..Policy::from(*algorithm) };
        let target = target(&model::TargetConfig { balance: policy, ..probed(4) });
        let report = |number: usize, verdict: Verdict, times: u64, now: u64| {
            (0..times).for_each(|_| {
                target.state.report(&target.backends[number], verdict.clone(), Tick(now));
            });
        };
        (0..4).for_each(|number| report(number, Verdict::Good, 1, 1));
        let share = |now: u64| {
            let counts = count(names(&target, 4_000, now));
            counts.get("b3").copied().unwrap_or(0)
        };
        let full = share(1);
        assert!((880..=1_120).contains(&full), "{algorithm:?}: {full}: nobody is cold at the start");
        report(3, Verdict::Bad("timeout after 1s".into()), 3, SECOND);
        report(3, Verdict::Good, 2, 100 * SECOND);
        let shares = [100, 102, 105, 110].map(|second| share(second * SECOND));
        assert!(shares.is_sorted(), "{algorithm:?}: {shares:?}");
        assert!((20..=full / 4).contains(&shares[0]), "{algorithm:?}: {shares:?}: the floor gets traffic");
        assert!(shares[2] > full / 3 && shares[2] < full * 4 / 5, "{algorithm:?}: {shares:?}");
        assert!((880..=1_120).contains(&shares[3]), "{algorithm:?}: {shares:?}");
    }
}

/// The scenario of jkalsi1's load balancer in simulated time: 10 clients, 60 requests, a takes 100 ms, the others 10 ms. A
/// fair share would be 20.
#[test]
fn slow_a_gets_at_most_14_of_60_in_20_runs_of_20() {
    for seed in 0..20 {
        let chance = Chance::seeded(seed);
        let target = target(&with(3, Balance::LeastConnections));
        // When each client asks next, and what it waits for.
        let mut clients: Vec<(u64, Option<Lease>)> =
            (0..10).map(|_| (chance.bits() % 1_000_000, None)).collect();
        let mut counts = [0; 3];
        for _ in 0..60 {
            let next = clients.iter_mut().min_by_key(|(time, _)| *time).expect("ten");
            let now = next.0;
            next.1 = None;
            let lease = pick(&target, &chance, now).expect("all are up");
            let place = target.backends.iter().position(|other| Arc::ptr_eq(other, lease.backend()));
            let place = place.expect("a member");
            counts[place] += 1;
            // A little uneven, as answers are.
            let millis = if place == 0 { 100_000_000 } else { 10_000_000 };
            *next = (now + millis * 9 / 10 + chance.bits() % (millis / 5), Some(lease));
        }
        assert!((1..=14).contains(&counts[0]), "run {seed}: {counts:?}");
    }
}

#[test]
fn first_takes_the_first_of_the_file_that_may_be_used() {
    let target = target(&model::TargetConfig { balance: Balance::First.into(), ..probed(3) });
    let report = |number: usize, verdict: Verdict| {
        (0..3).for_each(|_| {
            target.state.report(&target.backends[number], verdict.clone(), Tick(1));
        });
    };
    (0..3).for_each(|number| report(number, Verdict::Good));
    assert_eq!(count(names(&target, 20, 1)), shares([("b0", 20)]));
    eject(&target, "b0", SECOND);
    assert_eq!(count(names(&target, 20, SECOND)), shares([("b1", 20)]));
    report(1, Verdict::Bad("timeout after 1s".into()));
    assert_eq!(count(names(&target, 20, SECOND)), shares([("b2", 20)]));
    report(1, Verdict::Good);
    assert_eq!(count(names(&target, 20, SECOND)), shares([("b1", 20)]));
    assert_eq!(
        count(names(&target, 20, 3 * SECOND)),
        shares([("b0", 1), ("b1", 19)]),
        "the trial failed nobody"
    );
}

#[test]
fn least_connections_always_takes_a_least_one_and_ties_take_turns() {
    let chance = Chance::seeded(3);
    for algorithm in [Balance::LeastConnections, Balance::LeastBusy] {
        let target = target(&with(7, algorithm));
        assert_eq!(count(names(&target, 70, 1)).into_values().collect::<Vec<_>>(), vec![10; 7]);
        let mut held: Vec<Lease> = Vec::new();
        for _ in 0..2_000 {
            if !held.is_empty() && chance.happens(0.48) {
                drop(held.swap_remove(chance.below(held.len())));
            }
            let least = target.backends.iter().map(|backend| backend.in_flight()).min().expect("seven");
            let lease = pick(&target, &chance, 1).expect("all are up");
            assert_eq!(lease.backend().in_flight(), least + 1);
            held.push(lease);
        }
        drop(held);
        assert!(target.backends.iter().all(|backend| backend.in_flight() == 0));
    }
}

/// Every request has the same key, so without the bound one backend would get them all.
#[test]
fn no_pick_by_ring_hash_goes_beyond_the_bound() {
    let chance = Chance::seeded(9);
    let parts = [3_u16, 1, 1, 2, 1];
    let target = target(&portioned(Balance::RingHash, &weights(&parts)));
    let mut held: Vec<Lease> = Vec::new();
    for _ in 0..1_500 {
        if !held.is_empty() && chance.happens(0.4) {
            drop(held.swap_remove(chance.below(held.len())));
        }
        let tried = Tried::new();
        let ask = Ask { key: Some(77), ..Ask::new(&tried, &chance, Tick(1)) };
        let Pick::Lease(lease) = target.pick(&ask) else { panic!("all are up") };
        let place = target.backends.iter().position(|other| Arc::ptr_eq(other, lease.backend()));
        let weight = u64::from(parts[place.expect("a member")]);
        held.push(lease);
        let load = u64::from(held.last().expect("just pushed").backend().in_flight());
        // 125 % of its share of all that there are now, rounded up.
        let bound = (125 * held.len() as u64 * weight).div_ceil(100 * 8);
        assert!(load <= bound, "{load} of {}, bound {bound}", held.len());
    }
    // Full ones hold 125 % of their weight's share, so 7 of the 8 units of weight are needed for all.
    let busy = target.backends.iter().filter(|backend| backend.in_flight() > 0).count();
    assert!(busy >= 4, "others took what was too much: {busy}");
}

/// A reload may change the algorithm while leases are held.
#[test]
fn leases_of_another_algorithm_count_after_a_reload() {
    let registry = Registry::new();
    let chance = Chance::seeded(3);
    let apply = |algorithm| registry.apply(&[with(3, algorithm)]).remove(0);
    let before = apply(Balance::RoundRobin);
    let mut held: Vec<Lease> = (0..9).map(|_| pick(&before, &chance, 1).expect("up")).collect();
    held.retain(|lease| &*lease.backend().name != "b1");
    let after = apply(Balance::LeastConnections);
    let names: Vec<String> = (0..3)
        .map(|_| pick(&after, &chance, 1).expect("up"))
        .map(|lease| lease.backend().name.to_string())
        .collect();
    assert_eq!(names, ["b1", "b1", "b1"]);
    held.clear();
    let even =
        |target| count(self::names(target, 90, 1)).into_values().all(|turns| (29..=31).contains(&turns));
    assert!(even(&after));
    // The old config's targets pick by the new one's algorithm: they share the live set.
    assert!(even(&before));
}

/// What happens to a target in the property test.
#[derive(Clone, Debug)]
enum Step {
    Verdict(usize, bool),
    Refuse,
    Pick { tried: Vec<usize>, pin: Option<usize> },
    Release(usize),
    Wait(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (0..6_usize, any::<bool>()).prop_map(|(number, good)| Step::Verdict(number, good)),
        Just(Step::Refuse),
        (proptest::collection::vec(0..6_usize, 0..4), proptest::option::of(0..6_usize))
            .prop_map(|(tried, pin)| Step::Pick { tried, pin }),
        (0..64_usize).prop_map(Step::Release),
        (0..3_000_000_000_u64).prop_map(Step::Wait),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// No algorithm ever picks a backend that is down or was tried, nor an ejected one while another is ready; and one
    /// is picked whenever there is one.
    #[test]
    fn no_algorithm_picks_an_ineligible_backend(
        steps in proptest::collection::vec(step(), 1..150),
        portions in proptest::collection::vec((1_u16..4, 0_u8..2), 6),
        slow in any::<bool>(),
    ) {
        for (_, algorithm) in Balance::ALL {
            let slow_start = Duration::from_secs(if slow { 5 } else { 0 });
            let portions: Vec<Portion> = portions
                .iter()
                .map(|&(weight, priority)| Portion { weight, priority, zone: None })
                .collect();
            let config = portioned(Policy { slow_start, ..Policy::from(*algorithm) }, &portions);
            let target = target(&model::TargetConfig { health: probed(0).health, ..config });
            let chance = Chance::seeded(11);
            let mut now = Tick(SECOND);
            let mut held: Vec<Lease> = Vec::new();
            for step in &steps {
                match step {
                    Step::Verdict(number, good) => {
                        let verdict = if *good { Verdict::Good } else { Verdict::Bad("no".into()) };
                        target.state.report(&target.backends[*number], verdict, now);
                    }
                    Step::Wait(nanos) => now = Tick(now.0 + nanos),
                    Step::Refuse => {
                        if let Some(lease) = held.pop() {
                            lease.finish(Outcome::ConnectFailed, now);
                        }
                    }
                    Step::Release(number) => {
                        if !held.is_empty() {
                            let lease = held.swap_remove(number % held.len());
                            lease.finish(Outcome::Success, now);
                        }
                    }
                    Step::Pick { tried: numbers, pin } => {
                        let mut tried = Tried::new();
                        numbers.iter().for_each(|&number| tried.insert(target.backends[number].id));
                        let open = |backend: &Backend| {
                            backend.health() == Health::Up && !tried.contains(backend.id)
                        };
                        let ready = |backend: &Backend| {
                            open(backend) && backend.ejection().word().until().is_none_or(|until| until <= now)
                        };
                        let somebody = target.backends.iter().any(|backend| open(backend));
                        let somebody_ready = target.backends.iter().any(|backend| ready(backend));
                        let was_ready: Vec<bool> =
                            target.backends.iter().map(|backend| ready(backend)).collect();
                        let pin = pin.map(|number| &target.backends[number]);
                        let ask = Ask { pin, key: Some(chance.bits()), ..Ask::new(&tried, &chance, now) };
                        match target.pick(&ask) {
                            Pick::Lease(lease) => {
                                let backend = lease.backend();
                                prop_assert!(open(backend), "{:?}", algorithm);
                                let number =
                                    target.backends.iter().position(|other| Arc::ptr_eq(other, backend));
                                let was_ready = was_ready[number.expect("a member")];
                                prop_assert!(was_ready || !somebody_ready, "{:?}", algorithm);
                                held.push(lease);
                            }
                            // Its cookie's backend may turn out to be up.
                            Pick::Unknown if pin.is_some_and(|pin| pin.health() == Health::Unknown) => {}
                            Pick::Unknown | Pick::Full | Pick::None(_) => prop_assert!(!somebody, "{:?}", algorithm),
                        }
                    }
                }
            }
            drop(held);
            prop_assert!(target.backends.iter().all(|backend| backend.in_flight() == 0));
            prop_assert_eq!(target.state.board.total(), 0);
        }
    }
}
