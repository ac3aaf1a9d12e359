//! Reloads that take everybody away.

use crate::config::model::{self, Resilience, Sticky};
use crate::targets::fixtures::{granted, host, probed, unprobed};
use crate::targets::{
    Ask, Backend, Chance, Circuit, Lease, Outcome, Pick, Queued, Registry, Target, Tried, Verdict,
};
use crate::tick::Tick;

use super::*;

fn at(millis: u64) -> Tick {
    Tick((1_000_000 + millis) * 1_000_000)
}

/// A registry with one target of two backends that are up, at the addresses of this generation.
struct Lab {
    registry: Registry,
    config: model::TargetConfig,
}

impl Lab {
    fn start(config: model::TargetConfig) -> (Lab, Arc<Target>) {
        let mut lab = Lab { registry: Registry::new(), config };
        let target = lab.apply();
        target.backends.iter().for_each(|backend| drop(target.state.report(backend, Verdict::Good, at(0))));
        (lab, target)
    }

    fn apply(&mut self) -> Arc<Target> {
        self.registry.apply(std::slice::from_ref(&self.config)).remove(0)
    }

    /// All backends at other addresses.
    fn replace(&mut self, generation: u16) -> Arc<Target> {
        for (number, backend) in (0..).zip(&mut self.config.backends) {
            backend.address = host("127.0.0.1", 1000 + 100 * generation + number);
        }
        self.apply()
    }
}

/// The backend that a request gets.
fn picked(target: &Target, now: Tick) -> Option<Arc<Backend>> {
    let (tried, chance) = (Tried::new(), Chance::seeded(1));
    match target.pick(&Ask::new(&tried, &chance, now)) {
        Pick::Lease(lease) => Some(Arc::clone(lease.backend())),
        Pick::Unknown | Pick::Full | Pick::None(_) => None,
    }
}

/// Whether the next requests get these, and all of these.
fn serve(target: &Target, these: &[Arc<Backend>]) -> bool {
    let all: Option<HashSet<BackendId>> =
        (0..4 * these.len()).map(|_| picked(target, at(1)).map(|one| one.id)).collect();
    all == Some(these.iter().map(|backend| backend.id).collect())
}

#[test]
fn those_before_serve_until_one_of_the_new_ones_may_be_picked() {
    let (mut lab, before) = Lab::start(probed(2));
    let after = lab.replace(1);
    assert!(serve(&after, &before.backends) && serve(&before, &before.backends));
    assert_eq!(before.backends[0].generation(), 0, "their connections stay");
    after.state.report(&after.backends[0], Verdict::Bad("no".into()), at(10));
    assert!(serve(&after, &before.backends), "a bad one changes nothing");
    after.state.report(&after.backends[1], Verdict::Good, at(20));
    assert!(serve(&after, &after.backends[1..]));
    assert!(before.backends.iter().all(|backend| backend.generation() == 1), "they are dismissed once");
    let succession = after.state.take_succession();
    assert_eq!(succession, Some(Succession { before: 2, succeeded: true }));
    assert_eq!((after.state.take_succession(), after.state.stand_in(at(30))), (None, None));
    // Their tunnels end within the time that they had, from then on.
    let departure = Departure { since: at(20), window: model::TargetConfig::DRAIN_TIMEOUT };
    assert!(
        before.backends.iter().all(|backend| backend.departure() == Some(departure) && backend.is_gone())
    );
    assert_eq!((after.state.take_departed().len(), after.state.take_departed().len()), (2, 0));
}

#[test]
fn after_five_seconds_it_is_over_whoever_is_up() {
    let (mut lab, before) = Lab::start(probed(2));
    let after = lab.replace(1);
    assert_eq!(after.state.stand_in(at(1000)), Some(STAND_IN));
    assert_eq!(after.state.stand_in(at(5999)), Some(Duration::from_millis(1)));
    assert!(serve(&after, &before.backends));
    assert_eq!(after.state.stand_in(at(6000)), None);
    assert!(picked(&after, at(6000)).is_none());
    assert!(before.backends.iter().all(|backend| backend.generation() == 1));
    assert_eq!(after.state.take_succession(), Some(Succession { before: 2, succeeded: false }));
    after.state.report(&after.backends[0], Verdict::Good, at(7000));
    assert!(serve(&after, &after.backends[..1]));
}

#[test]
fn nobody_stands_in_where_nobody_has_to_or_nobody_can() {
    // Somebody stays who is up.
    let (mut lab, before) = Lab::start(probed(2));
    lab.config.backends[0].address = host("127.0.0.1", 99);
    let after = lab.apply();
    assert!(serve(&after, &before.backends[1..]) && after.state.stand_in(at(1)).is_none());
    assert_eq!(before.backends[0].generation(), 1);
    // Those before are dead themselves.
    let (mut lab, before) = Lab::start(probed(2));
    for backend in &before.backends {
        (0..3).for_each(|turn| {
            before.state.report(backend, Verdict::Bad("no".into()), at(turn));
        });
    }
    let after = lab.replace(1);
    assert!(picked(&after, at(1)).is_none() && after.state.stand_in(at(1)).is_none());
    // The new ones are not probed, so they count as healthy.
    let (mut lab, before) = Lab::start(unprobed(2));
    let after = lab.replace(1);
    assert!(serve(&after, &after.backends) && after.state.stand_in(at(1)).is_none());
    assert_eq!(before.backends[0].generation(), 1);
}

#[test]
fn who_stays_and_is_down_does_not_keep_others_from_standing_in() {
    let (mut lab, before) = Lab::start(probed(2));
    (0..3).for_each(|turn| {
        before.state.report(&before.backends[0], Verdict::Bad("no".into()), at(turn));
    });
    lab.config.backends[1].address = host("127.0.0.1", 99);
    let after = lab.apply();
    assert!(serve(&after, &before.backends[1..]));
    // It comes back, and is one of the members.
    (10..12).for_each(|turn| drop(after.state.report(&after.backends[0], Verdict::Good, at(turn))));
    assert!(serve(&after, &after.backends[..1]));
    assert_eq!(
        (before.backends[0].generation(), before.backends[1].generation()),
        (1, 1),
        "it went down once"
    );
}

#[test]
fn another_reload_keeps_who_serves_and_time_begins_anew_only_for_newcomers() {
    let (mut lab, first) = Lab::start(probed(2));
    let second = lab.replace(1);
    assert_eq!(second.state.stand_in(at(0)), Some(STAND_IN));
    lab.config.backends[0].portion.weight = 7;
    let same = lab.apply();
    assert_eq!(same.state.stand_in(at(4000)), Some(Duration::from_secs(1)));
    assert!(serve(&same, &first.backends));
    let third = lab.replace(2);
    assert!(serve(&third, &first.backends));
    assert_eq!(second.backends[0].generation(), 1, "nobody waits for these any more");
    assert_eq!(third.state.stand_in(at(4500)), Some(STAND_IN));
    third.state.report(&third.backends[0], Verdict::Good, at(4600));
    assert!(serve(&third, &third.backends[..1]));
    assert!(first.backends.iter().all(|backend| backend.generation() == 1));
}

#[test]
fn a_config_that_is_taken_back_finds_its_backends_as_they_were() {
    let (mut lab, first) = Lab::start(probed(2));
    let second = lab.replace(1);
    let again = lab.replace(0);
    assert!(first.backends.iter().zip(&again.backends).all(|(was, now)| Arc::ptr_eq(was, now)));
    assert!(serve(&again, &first.backends) && again.state.stand_in(at(1)).is_none());
    assert_eq!((first.backends[0].generation(), second.backends[0].generation()), (0, 1));
    // Also where its check was switched off in between, which must not leave a verdict that nobody gives any more.
    first.state.report(&first.backends[0], Verdict::Good, at(2));
    lab.config.health = None;
    let off = lab.replace(0);
    assert!(serve(&off, &first.backends));
}

#[test]
fn a_target_that_is_removed_takes_them_with_it() {
    let (mut lab, before) = Lab::start(probed(2));
    let after = lab.replace(1);
    let gone = lab.registry.commit(&lab.registry.prepare(&[]), at(1));
    assert_eq!(gone.backends.len(), 4);
    let all = before.backends.iter().chain(&after.backends);
    assert!(all.into_iter().all(|backend| backend.generation() == 1));
    assert!(serve(&after, &before.backends), "who holds it is served");
    assert_eq!(after.state.stand_in(at(1)), None);
}

#[test]
fn a_cookie_leads_to_who_stands_in_under_that_name_and_then_to_the_new_one() {
    let mut config = probed(3);
    config.sticky =
        Some(Sticky { cookie: "c".into(), key: b"0123456789abcdef"[..].into(), is_fleeting: false });
    let (mut lab, before) = Lab::start(config);
    let after = lab.replace(1);
    let (tried, chance) = (Tried::new(), Chance::seeded(1));
    let pinned = |pin: &Arc<Backend>| {
        let ask = Ask { pin: Some(pin), ..Ask::new(&tried, &chance, at(1)) };
        let Pick::Lease(lease) = after.pick(&ask) else { panic!("somebody serves") };
        lease.backend().id
    };
    for (was, now) in before.backends.iter().zip(&after.backends) {
        let value = before.pins.as_ref().and_then(|pins| pins.value_of(was.id)).expect("it has one");
        let pin = after.pins.as_ref().and_then(|pins| pins.find(value.as_bytes())).expect("the same name");
        assert_eq!((pin.id, pinned(pin)), (now.id, was.id));
    }
    after.state.report(&after.backends[1], Verdict::Good, at(2));
    assert_eq!(pinned(&after.backends[1]), after.backends[1].id);
}

#[test]
fn who_waits_for_room_gets_it_where_those_before_serve_and_where_the_new_ones_do() {
    let resilience = Resilience { max_in_flight: Some(1), queue: 10, ..Resilience::default() };
    let (mut lab, before) = Lab::start(model::TargetConfig { resilience, ..probed(2) });
    let (tried, chance) = (Tried::new(), Chance::seeded(1));
    let ask = || Ask::new(&tried, &chance, at(1));
    let mut held: Vec<Lease> = (0..2)
        .map(|_| match before.pick(&ask()) {
            Pick::Lease(lease) => lease,
            other => panic!("{other:?}"),
        })
        .collect();
    let wait = |target: &Target| match target.enqueue(&ask()) {
        Queued::Ticket(ticket) => ticket,
        other => panic!("all are full: {other:?}"),
    };
    let (mut first, mut second) = (wait(&before), wait(&before));
    let after = lab.replace(1);
    assert!(granted(&mut first).is_none());
    held.remove(0).finish(Outcome::Success, at(2));
    let lease = granted(&mut first).expect("the place that came free");
    assert!(before.backends.iter().any(|backend| backend.id == lease.backend().id));
    assert!(granted(&mut second).is_none());
    after.state.report(&after.backends[0], Verdict::Good, at(3));
    let second = granted(&mut second).expect("a new one has room");
    assert_eq!(second.backend().id, after.backends[0].id);
    drop((held, lease, second));
    let all = before.backends.iter().chain(&after.backends);
    assert!(all.into_iter().all(|backend| backend.in_flight() == 0));
}

#[test]
fn a_stand_in_that_fails_is_left_out_like_any_other() {
    let (mut lab, before) = Lab::start(probed(2));
    let after = lab.replace(1);
    let (tried, chance) = (Tried::new(), Chance::seeded(1));
    let Pick::Lease(lease) = after.pick(&Ask::new(&tried, &chance, at(1))) else { panic!("they serve") };
    let failed = Arc::clone(lease.backend());
    lease.finish(Outcome::ConnectFailed, at(1));
    let others: Vec<_> = before.backends.iter().filter(|backend| backend.id != failed.id).cloned().collect();
    assert!(serve(&after, &others));
}

#[test]
fn breaker_and_ejection_of_who_stays_hold_over_a_reload() {
    let mut config = probed(3);
    config.resilience.breaker.iter_mut().for_each(|breaker| breaker.failures = 1);
    let (mut lab, target) = Lab::start(config);
    let (tried, chance) = (Tried::new(), Chance::seeded(1));
    let Pick::Lease(lease) = target.pick(&Ask::new(&tried, &chance, at(1))) else { panic!("they are up") };
    let broken = Arc::clone(lease.backend());
    lease.finish(Outcome::Failed, at(1));
    let circuit = broken.breaker().word();
    assert!(matches!(circuit.circuit(), Circuit::Open(_)));
    for turn in 0..5 {
        lab.config.balance.slow_start = Duration::from_secs(turn);
        lab.config.backends[2].address = host("127.0.0.1", 5000 + u16::try_from(turn).expect("small"));
        let after = lab.apply();
        assert_eq!(broken.breaker().word(), circuit);
        let gets_it = (0..20).any(|_| picked(&after, at(2)).is_some_and(|one| one.id == broken.id));
        assert!(!gets_it, "its breaker is open");
    }
    // The one that finds out was picked before the reload, and reports after it.
    let Circuit::Open(until) = circuit.circuit() else { panic!("it is open") };
    let later = until.after(Duration::from_secs(1));
    let trial = (0..20).find_map(|_| match target.pick(&Ask::new(&tried, &chance, later)) {
        Pick::Lease(lease) if lease.is_trial() => Some(lease),
        _ => None,
    });
    let trial = trial.expect("one finds out");
    assert_eq!(broken.breaker().word().circuit(), Circuit::HalfOpen);
    lab.config.backends[2].address = host("127.0.0.1", 6000);
    let after = lab.apply();
    assert_eq!(broken.breaker().word().circuit(), Circuit::HalfOpen);
    trial.note_answer(crate::targets::Heard::GOOD, later);
    trial.finish(Outcome::Success, later);
    assert_eq!(broken.breaker().word().circuit(), Circuit::Closed);
    assert!((0..20).any(|_| picked(&after, later).is_some_and(|one| one.id == broken.id)), "it is back");
}
