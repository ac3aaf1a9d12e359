//! Picks while the operator drains backends or takes them down: who is passed over, who may stay, who takes over.

use std::time::Duration;

use super::*;
use crate::config::model::{BackendState, Balance, Portion, Resilience, Sticky};
use crate::targets::fixtures::{granted, probed, unprobed};
use crate::targets::{Chance, Departure, Outcome, Queued, Registry, Source, Tried, Verdict};
use crate::tick::Tick;

fn at(millis: u64) -> Tick {
    Tick((1_000_000 + millis) * 1_000_000)
}

/// One target under one config after the other.
struct Scene {
    registry: Registry,
    config: model::TargetConfig,
    target: Arc<Target>,
}

impl Scene {
    fn new(config: model::TargetConfig) -> Scene {
        let registry = Registry::new();
        let target = commit(&registry, &config, at(0));
        Scene { registry, config, target }
    }

    /// A reload that sets the state of the `nth` backend.
    fn set(&mut self, nth: usize, state: BackendState, now: Tick) {
        self.config.backends[nth].state = state;
        self.target = commit(&self.registry, &self.config, now);
    }

    fn backend(&self, nth: usize) -> &Arc<Backend> {
        &self.target.backends[nth]
    }

    fn health(&self, nth: usize) -> (Health, Source) {
        let status = self.target.status().swap_remove(nth);
        (status.health, status.source)
    }

    /// Who serves 60 new clients.
    fn serving(&self, now: Tick) -> Vec<String> {
        let (tried, chance) = (Tried::new(), Chance::seeded(now.0));
        let mut names: Vec<String> = (0..60)
            .filter_map(|_| {
                let ask = Ask { key: Some(chance.bits()), ..Ask::new(&tried, &chance, now) };
                match self.target.pick(&ask) {
                    Pick::Lease(lease) => Some(lease.backend().name.to_string()),
                    Pick::Unknown | Pick::Full | Pick::None(_) => None,
                }
            })
            .collect();
        names.sort();
        names.dedup();
        names
    }

    /// What a client finds whose cookie names the `nth` backend.
    fn pinned(&self, nth: usize, now: Tick) -> Pick {
        let (tried, chance) = (Tried::new(), Chance::seeded(now.0));
        self.target.pick(&Ask { pin: Some(self.backend(nth)), ..Ask::new(&tried, &chance, now) })
    }
}

fn commit(registry: &Registry, config: &model::TargetConfig, now: Tick) -> Arc<Target> {
    let prepared = registry.prepare(std::slice::from_ref(config));
    registry.commit(&prepared, now);
    Arc::clone(&prepared.targets[0])
}

fn name(pick: &Pick) -> Option<&str> {
    match pick {
        Pick::Lease(lease) => Some(&lease.backend().name),
        Pick::Unknown | Pick::Full | Pick::None(_) => None,
    }
}

#[test]
fn no_algorithm_gives_new_clients_to_one_that_is_drained_or_down() {
    for &(_, algorithm) in Balance::ALL {
        let mut scene = Scene::new(model::TargetConfig { balance: algorithm.into(), ..unprobed(3) });
        let same = Arc::clone(scene.backend(1));
        for state in [BackendState::Drain, BackendState::Down] {
            scene.set(1, state, at(1));
            assert!(!scene.serving(at(2)).contains(&"b1".to_owned()), "{algorithm:?} {state:?}");
        }
        scene.set(1, BackendState::Up, at(3));
        assert!(Arc::ptr_eq(scene.backend(1), &same), "{algorithm:?}: another state is the same backend");
        assert_eq!(scene.health(1), (Health::Up, Source::Probe));
        if algorithm != Balance::First {
            assert!(scene.serving(at(4)).contains(&"b1".to_owned()), "{algorithm:?}");
        }
    }
}

#[test]
fn a_drained_one_keeps_its_sticky_clients_and_one_that_is_down_loses_them() {
    let sticky = Sticky { cookie: "c".into(), key: b"0123456789abcdef"[..].into(), is_fleeting: false };
    let mut scene = Scene::new(model::TargetConfig { sticky: Some(sticky), ..unprobed(2) });
    scene.set(0, BackendState::Drain, at(1));
    assert_eq!(scene.health(0), (Health::Draining, Source::Operator));
    assert_eq!(name(&scene.pinned(0, at(2))), Some("b0"));
    assert_eq!(scene.backend(0).generation(), 0, "its connections are still of use");
    scene.set(0, BackendState::Down, at(3));
    assert_eq!(name(&scene.pinned(0, at(4))), Some("b1"));
    assert_eq!(scene.backend(0).generation(), 1, "its idle connections are closed");
    scene.set(0, BackendState::Down, at(5));
    assert_eq!(scene.backend(0).generation(), 1, "the same state is no change");
}

#[test]
fn tunnels_to_one_that_is_down_end_within_drain_timeout_unless_it_comes_back() {
    let mut scene = Scene::new(unprobed(2));
    scene.set(0, BackendState::Drain, at(1));
    assert_eq!((scene.backend(0).departure(), scene.target.state.take_departed().len()), (None, 0));
    scene.set(0, BackendState::Down, at(2));
    let departure = Departure { since: at(2), window: model::TargetConfig::DRAIN_TIMEOUT };
    assert_eq!(scene.backend(0).departure(), Some(departure));
    assert_eq!(scene.target.state.take_departed().len(), 1, "workers are to look");
    scene.set(0, BackendState::Down, at(3));
    assert_eq!(scene.backend(0).departure(), Some(departure), "the time is not begun anew");
    scene.set(0, BackendState::Drain, at(4));
    assert_eq!(scene.backend(0).departure(), None);
    assert_eq!(scene.target.state.take_departed().len(), 1, "workers are to look again");
    assert!(!scene.backend(0).is_gone());
}

#[test]
fn up_forces_nothing() {
    let mut scene = Scene::new(probed(2));
    let verdict = |scene: &Scene, verdict, now| {
        scene.target.state.report(scene.backend(0), verdict, now);
    };
    verdict(&scene, Verdict::Bad("connection refused".into()), at(1));
    scene.set(0, BackendState::Down, at(2));
    assert_eq!(scene.health(0), (Health::Down, Source::Operator));
    scene.set(0, BackendState::Up, at(3));
    assert_eq!(scene.health(0), (Health::Down, Source::Probe));
    // A probe that finds it well meanwhile does not let it in either.
    scene.set(0, BackendState::Down, at(4));
    (0..2).for_each(|_| verdict(&scene, Verdict::Good, at(5)));
    assert_eq!(scene.health(0), (Health::Down, Source::Operator));
    scene.set(0, BackendState::Up, at(6));
    assert_eq!(scene.health(0), (Health::Up, Source::Probe));
}

#[test]
fn backups_take_over_when_all_others_are_drained() {
    let mut config = unprobed(3);
    config.backends[2].portion = Portion { priority: Portion::BACKUP, ..Portion::default() };
    let mut scene = Scene::new(config);
    scene.set(0, BackendState::Drain, at(1));
    assert_eq!(scene.serving(at(2)), ["b1"]);
    scene.set(1, BackendState::Drain, at(3));
    assert_eq!(scene.serving(at(4)), ["b2"]);
    scene.set(2, BackendState::Drain, at(5));
    assert_eq!(scene.serving(at(6)), [""; 0]);
    assert!(matches!(scene.pinned(0, at(7)), Pick::Lease(_)));
}

/// A drain is planned: it is no reason to send requests to those that fail.
#[test]
fn who_is_out_on_purpose_does_not_count_for_a_panic() {
    let resilience = Resilience { panic_threshold: 60, ..Resilience::default() };
    let fail = |scene: &Scene, nth: usize| {
        for _ in 0..5 {
            let lease = Lease::take(scene.backend(nth), Trial::NONE, at(2)).expect("no limit");
            lease.finish(Outcome::Failed, at(2));
        }
        scene.target.announce(at(3));
        scene.target.overview(at(3)).panics
    };
    let six = || Scene::new(model::TargetConfig { resilience: resilience.clone(), ..probed(6) });
    let good = |scene: &Scene, nth: usize| {
        scene.target.state.report(scene.backend(nth), Verdict::Good, at(1));
    };
    // Three of six are drained and one of the three others fails: two of three are left.
    let mut scene = six();
    (0..6).for_each(|nth| good(&scene, nth));
    (3..6).for_each(|nth| scene.set(nth, BackendState::Drain, at(1)));
    assert!(!fail(&scene, 0));
    assert_eq!(scene.health(0), (Health::Down, Source::Outlier));
    // Three of six are sick and one fails: two of six are left.
    let scene = six();
    (0..3).for_each(|nth| good(&scene, nth));
    (3..6).for_each(|nth| {
        scene.target.state.report(scene.backend(nth), Verdict::Bad("status 500".into()), at(1));
    });
    assert!(fail(&scene, 0));
}

#[test]
fn nobody_waits_for_the_verdict_on_one_that_is_drained() {
    let mut config = probed(2);
    config.backends[0].state = BackendState::Drain;
    let scene = Scene::new(config);
    let (tried, chance) = (Tried::new(), Chance::seeded(1));
    let ask = Ask::new(&tried, &chance, at(1));
    assert!(matches!(scene.target.pick(&ask), Pick::Unknown), "the other one may be up in a moment");
    scene.target.state.report(scene.backend(1), Verdict::Bad("connection refused".into()), at(2));
    assert!(matches!(scene.target.pick(&ask), Pick::None(Cause::NoBackend)));
    assert!(matches!(scene.pinned(0, at(3)), Pick::Unknown), "who has its cookie does");
}

#[test]
fn slow_start_spares_one_that_was_down_and_not_one_that_was_drained() {
    let mut config = unprobed(2);
    config.balance.slow_start = Duration::from_secs(10);
    let mut scene = Scene::new(config);
    let share = |scene: &Scene, now| {
        let (tried, chance) = (Tried::new(), Chance::seeded(7));
        let picks = (0..400).map(|_| scene.target.pick(&Ask::new(&tried, &chance, now)));
        picks.filter(|pick| name(pick) == Some("b0")).count()
    };
    scene.set(0, BackendState::Drain, at(1));
    scene.set(0, BackendState::Up, at(2));
    assert_eq!(share(&scene, at(3)), 200);
    scene.set(0, BackendState::Down, at(4));
    scene.set(0, BackendState::Up, at(1_000));
    let cold = share(&scene, at(2_000));
    assert!((1..80).contains(&cold), "{cold} of 400 for a tenth of its share");
    assert_eq!(share(&scene, at(11_000)), 200);
}

#[test]
fn who_waits_for_a_place_is_served_by_those_that_are_left() {
    let resilience = Resilience { max_in_flight: Some(1), queue: 10, ..Resilience::default() };
    let mut scene = Scene::new(model::TargetConfig { resilience, ..unprobed(2) });
    let (tried, chance) = (Tried::new(), Chance::seeded(3));
    let lease = |scene: &Scene| match scene.target.pick(&Ask::new(&tried, &chance, at(1))) {
        Pick::Lease(lease) => lease,
        other => panic!("no lease but {other:?}"),
    };
    let leases = [lease(&scene), lease(&scene)];
    let pin = Arc::clone(scene.backend(0));
    let ask = Ask { pin: Some(&pin), ..Ask::new(&tried, &chance, at(1)) };
    let Queued::Ticket(mut pinned) = scene.target.enqueue(&ask) else { panic!("both are full") };
    let Queued::Ticket(mut any) = scene.target.enqueue(&Ask::new(&tried, &chance, at(1))) else {
        panic!("both are full")
    };
    scene.set(0, BackendState::Down, at(2));
    // The place at the one that is down is given to nobody.
    let [first, second] = leases;
    let (own, other) = if first.backend().id == pin.id { (first, second) } else { (second, first) };
    own.finish(Outcome::Success, at(3));
    assert!(granted(&mut pinned).is_none() && granted(&mut any).is_none());
    other.finish(Outcome::Success, at(4));
    let served = granted(&mut pinned).expect("who waited for the one that is down takes any, in its turn");
    assert_eq!(&*served.backend().name, "b1");
    served.finish(Outcome::Success, at(5));
    assert_eq!(granted(&mut any).map(|lease| lease.backend().name.to_string()).as_deref(), Some("b1"));
    assert_eq!(pin.in_flight(), 0);
}

#[test]
fn a_request_under_way_at_one_that_goes_down_ends_and_is_repeated_elsewhere() {
    let mut scene = Scene::new(unprobed(2));
    let (mut tried, chance) = (Tried::new(), Chance::seeded(3));
    let Pick::Lease(lease) = scene.pinned(0, at(1)) else { panic!("it is up") };
    scene.set(0, BackendState::Down, at(2));
    assert_eq!(scene.backend(0).in_flight(), 1, "it goes on");
    tried.insert(lease.backend().id);
    lease.finish(Outcome::Failed, at(3));
    let again = scene.target.pick(&Ask::new(&tried, &chance, at(3)));
    assert_eq!(name(&again), Some("b1"));
}
