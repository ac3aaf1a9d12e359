//! Who waits for a backend with room, and who need not: pins, limits that change, backends that come and go.

use std::sync::mpsc;
use std::task::{Context, Waker};
use std::time::Duration;

use super::*;
use crate::config::model::{self, Balance, Portion, Resilience};
use crate::targets::fixtures::{granted, probed, target, unprobed};
use crate::targets::state::health::agent::AgentReport;
use crate::targets::{Chance, Heard, Outcome, QueueTicket, Queued, Tried, Verdict};
use crate::tick::Tick;

fn at(millis: u64) -> Tick {
    Tick((1_000_000 + millis) * 1_000_000)
}

fn limited(max_in_flight: u32) -> Resilience {
    Resilience { max_in_flight: Some(max_in_flight), queue: 100, ..Resilience::default() }
}

fn with_agents(backends: u16) -> Arc<Target> {
    let health = model::HealthCheck { agent: Some(9), ..model::HealthCheck::default() };
    let config = model::TargetConfig { health: Some(health), resilience: limited(1), ..unprobed(backends) };
    let target = target(&config);
    for backend in &target.backends {
        target.state.report(backend, Verdict::Good, at(0));
    }
    target
}

/// A request at a moment: where it has been, and whose cookie it carries.
struct Request {
    tried: Tried,
    chance: Chance,
    pin: Option<Arc<Backend>>,
}

impl Request {
    fn new() -> Request {
        Request { tried: Tried::new(), chance: Chance::seeded(1), pin: None }
    }

    fn pinned(target: &Target, nth: usize) -> Request {
        Request { pin: Some(Arc::clone(&target.backends[nth])), ..Request::new() }
    }

    fn ask(&self, now: Tick) -> Ask<'_> {
        Ask { pin: self.pin.as_ref(), ..Ask::new(&self.tried, &self.chance, now) }
    }

    fn lease(&self, target: &Target, now: Tick) -> Lease {
        match target.pick(&self.ask(now)) {
            Pick::Lease(lease) => lease,
            other => panic!("no lease but {other:?}"),
        }
    }

    /// Picks in vain and waits.
    fn ticket(&self, target: &Target, now: Tick) -> QueueTicket {
        assert!(matches!(target.pick(&self.ask(now)), Pick::Full));
        match target.enqueue(&self.ask(now)) {
            Queued::Ticket(ticket) => ticket,
            other => panic!("no ticket but {other:?}"),
        }
    }
}

fn name(lease: &Lease) -> &str {
    &lease.backend().name
}

#[test]
fn one_who_waits_for_its_own_backend_does_not_send_the_others_to_the_queue() {
    let target = target(&model::TargetConfig { resilience: limited(1), ..unprobed(2) });
    let held = Request::pinned(&target, 0).lease(&target, at(0));
    let mut waiting = Request::pinned(&target, 0).ticket(&target, at(0));
    let idle = Request::new().lease(&target, at(1));
    assert_eq!(name(&idle), "b1");
    let mut next = Request::new().ticket(&target, at(1));
    drop(idle);
    assert_eq!(granted(&mut next).as_ref().map(name), Some("b1"), "its own queue has nobody for it");
    assert!(granted(&mut waiting).is_none());
    drop(held);
    assert_eq!(granted(&mut waiting).as_ref().map(name), Some("b0"));
}

#[test]
fn who_waits_for_a_draining_backend_is_served_by_it() {
    let target = with_agents(2);
    let held = Request::pinned(&target, 0).lease(&target, at(0));
    target.state.hear(&target.backends[0], &AgentReport::read(b"drain"), at(1));
    let mut waiting = Request::pinned(&target, 0).ticket(&target, at(2));
    held.finish(Outcome::Success, at(3));
    assert_eq!(granted(&mut waiting).as_ref().map(name), Some("b0"));
}

#[test]
fn who_waits_for_a_backend_of_weight_zero_is_served_by_it() {
    let mut config = model::TargetConfig { resilience: limited(1), ..unprobed(2) };
    config.backends[0].portion = Portion { weight: 0, ..Portion::default() };
    let target = target(&config);
    let held = Request::pinned(&target, 0).lease(&target, at(0));
    let mut waiting = Request::pinned(&target, 0).ticket(&target, at(0));
    held.finish(Outcome::Success, at(3));
    assert_eq!(granted(&mut waiting).as_ref().map(name), Some("b0"));
}

/// A rebuild replaces the live set under a pick: what is full from then on is not marked in the old one.
#[test]
fn a_pick_that_holds_a_live_set_of_before_does_not_spin_on_a_full_backend() {
    let target = with_agents(1);
    let old = target.state.live.load_full();
    target.state.hear(&target.backends[0], &AgentReport::read(b"50%"), at(1));
    let held = Request::new().lease(&target, at(1));
    assert_eq!(name(&held), "b0");
    let (done, waited) = mpsc::channel();
    std::thread::spawn(move || {
        let request = Request { tried: Tried::new(), ..Request::new() };
        let tier = &old.tiers[0];
        let draw =
            Draw { tier, board: &target.state.board, cursor: &target.state.cursor, ask: &request.ask(at(2)) };
        let _ = done.send(take_another(tier, &draw).is_none());
    });
    assert_eq!(waited.recv_timeout(Duration::from_secs(20)), Ok(true), "it ends, without a lease");
}

#[test]
fn who_waits_for_a_backend_that_goes_down_is_served_by_any() {
    let target = with_agents(2);
    let held = [0, 1].map(|nth| Request::pinned(&target, nth).lease(&target, at(0)));
    let mut pinned = Request::pinned(&target, 0).ticket(&target, at(0));
    let mut other = Request::new().ticket(&target, at(1));
    target.state.hear(&target.backends[0], &AgentReport::read(b"maint"), at(2));
    let [zero, one] = held;
    drop(zero);
    assert!(granted(&mut pinned).is_none());
    drop(one);
    let lease = granted(&mut pinned);
    assert_eq!(lease.as_ref().map(name), Some("b1"), "as if it had waited for any from the start");
    assert!(granted(&mut other).is_none());
    drop(lease);
    assert_eq!(granted(&mut other).as_ref().map(name), Some("b1"));
}

#[test]
fn no_place_is_handed_on_at_a_backend_that_has_more_than_a_lowered_limit() {
    let registry = crate::targets::Registry::new();
    let config = |limit| model::TargetConfig { resilience: limited(limit), ..unprobed(1) };
    let target = registry.apply(&[config(3)]).remove(0);
    let mut held: Vec<Lease> = (0..3).map(|_| Request::new().lease(&target, at(0))).collect();
    let mut waiting = Request::new().ticket(&target, at(0));
    let target = registry.apply(&[config(1)]).remove(0);
    for left in [2, 1] {
        held.pop();
        assert!(granted(&mut waiting).is_none());
        assert_eq!(target.backends[0].in_flight(), left);
    }
    held.pop();
    assert!(granted(&mut waiting).is_some());
}

#[test]
fn who_waits_is_served_when_the_limit_rises_or_goes() {
    let registry = crate::targets::Registry::new();
    let config = |limit| model::TargetConfig {
        resilience: Resilience { max_in_flight: limit, ..limited(1) },
        ..unprobed(1)
    };
    let target = registry.apply(&[config(Some(1))]).remove(0);
    let _held = Request::new().lease(&target, at(0));
    let mut waiting: Vec<QueueTicket> = (0..4).map(|_| Request::new().ticket(&target, at(0))).collect();
    registry.apply(&[config(Some(2))]);
    let _next = granted(&mut waiting[0]).expect("the second place is the first one's");
    assert!(granted(&mut waiting[1]).is_none());
    registry.apply(&[config(None)]);
    assert!(waiting[1..].iter_mut().all(|ticket| granted(ticket).is_some()), "there is no limit any more");
}

#[test]
fn a_retry_waits_for_a_backend_where_it_has_not_been() {
    let target = target(&model::TargetConfig { resilience: limited(1), ..unprobed(2) });
    let held = Request::pinned(&target, 1).lease(&target, at(0));
    let mut retry = Request::new();
    retry.tried.insert(target.backends[0].id);
    let mut waiting = retry.ticket(&target, at(0));
    let idle = Request::new().lease(&target, at(1));
    assert_eq!(name(&idle), "b0", "where it has been others still go");
    drop(idle);
    assert!(granted(&mut waiting).is_none());
    drop(held);
    assert_eq!(granted(&mut waiting).as_ref().map(name), Some("b1"));
}

/// Fails so many attempts on one of two backends; the other one is full.
fn with_one_full(failures: u32, outcome: Outcome) -> (Arc<Target>, Lease, QueueTicket) {
    let mut resilience = limited(1);
    if outcome == Outcome::Failed {
        // Its breaker alone shall be what keeps it out.
        resilience.outlier = None;
    }
    let target = target(&model::TargetConfig { resilience, ..unprobed(2) });
    for _ in 0..failures {
        let lease = Lease::take(&target.backends[0], Trial::NONE, at(0)).expect("there is room");
        lease.finish(outcome, at(0));
    }
    let held = Request::new().lease(&target, at(1));
    assert_eq!(name(&held), "b1");
    let waiting = Request::new().ticket(&target, at(1));
    (target, held, waiting)
}

#[test]
fn who_waits_is_served_when_an_ejection_or_a_breaker_ends_and_not_a_second_later() {
    for (failures, outcome, due) in [(1, Outcome::ConnectFailed, at(1_000)), (20, Outcome::Failed, at(5_000))]
    {
        let (target, _held, mut waiting) = with_one_full(failures, outcome);
        let mut behind = Request::new().ticket(&target, at(2));
        assert_eq!(target.due().0 >> 10, due.0 >> 10, "to some nanoseconds");
        target.serve(at(900));
        assert!(granted(&mut waiting).is_none());
        // The first one finds out, nobody with it.
        target.serve(due);
        let trial = granted(&mut waiting).expect("the time is up");
        assert_eq!((name(&trial), trial.is_trial()), ("b0", true));
        assert!(granted(&mut behind).is_none());
        trial.note_connected();
        trial.note_answer(Heard::GOOD, due);
        trial.finish(Outcome::Success, due);
        assert_eq!(granted(&mut behind).as_ref().map(name), Some("b0"), "it is well, and has room");
    }
}

#[test]
fn who_comes_when_an_ejection_ends_does_not_find_out_before_who_waits() {
    let (target, _held, mut waiting) = with_one_full(1, Outcome::ConnectFailed);
    assert!(matches!(target.pick(&Request::new().ask(at(1_000))), Pick::Full));
    target.serve(at(1_000));
    assert!(granted(&mut waiting).expect("the time is up").is_trial());
}

/// Opens the breaker of a backend.
fn break_down(target: &Target, nth: usize) {
    let rules = target.state.board.rules().breaker.expect("there is one");
    for _ in 0..rules.failures {
        target.backends[nth].breaker().update(|word| word.fail(false, rules, at(1), at(1)));
    }
    target.state.board.lock().refresh(&target.backends[nth]);
}

#[test]
fn what_a_pick_found_in_a_live_set_of_before_is_no_verdict() {
    let target = with_agents(2);
    target.state.hear(&target.backends[1], &AgentReport::read(b"maint"), at(1));
    let before = target.state.live.load_full();
    break_down(&target, 0);
    target.state.hear(&target.backends[1], &AgentReport::read(b"ready"), at(2));
    match target.state.pick_last(&before, &Request::new().ask(at(3))) {
        Pick::Lease(lease) => assert_eq!(name(&lease), "b1", "it is back"),
        other => panic!("no lease but {other:?}"),
    }
}

#[test]
fn who_waits_does_not_give_up_while_a_backend_has_no_verdict() {
    let target = target(&model::TargetConfig { resilience: limited(1), ..probed(2) });
    target.state.report(&target.backends[0], Verdict::Good, at(0));
    let _held = Request::new().lease(&target, at(0));
    let mut waiting = Request::new().ticket(&target, at(0));
    break_down(&target, 0);
    assert_eq!(target.gives_up(&Request::new().ask(at(2))), None);
    target.state.report(&target.backends[1], Verdict::Good, at(2));
    assert_eq!(granted(&mut waiting).as_ref().map(name), Some("b1"));
}

#[test]
fn whether_to_give_up_is_asked_without_taking_a_lease() {
    let (target, held, _waiting) = with_one_full(20, Outcome::Failed);
    // At this time a pick would be the trial of the breaker.
    assert_eq!(target.gives_up(&Request::new().ask(at(5_000))), None, "one is full, and will have room");
    let circuits = || target.status().iter().map(|status| status.circuit).collect::<Vec<_>>();
    let before = circuits();
    let attempts = |nth: usize| target.backends[nth].in_flight();
    let open = Duration::from_secs(9);
    let rules = crate::targets::resilience::breaker::BreakerRules { failures: 1, open, alone: open };
    for _ in 0..20 {
        held.backend().breaker().update(|word| word.fail(false, rules, at(2), at(2)));
    }
    assert_eq!(target.gives_up(&Request::new().ask(at(5_000))), Some(Cause::BreakerOpen), "both are broken");
    assert_eq!((attempts(0), attempts(1)), (0, 1));
    assert_eq!(circuits()[0], before[0], "nobody has begun a trial");
    let mut everywhere = Request::new();
    target.backends.iter().for_each(|backend| everywhere.tried.insert(backend.id));
    assert_eq!(target.gives_up(&everywhere.ask(at(5_000))), Some(Cause::NoBackend));
}

#[test]
fn who_waits_behind_a_retry_finds_out_about_the_backend_where_that_has_been() {
    let target = target(&model::TargetConfig { resilience: limited(1), ..unprobed(2) });
    let _held = Request::pinned(&target, 1).lease(&target, at(0));
    Request::pinned(&target, 0).lease(&target, at(0)).finish(Outcome::ConnectFailed, at(0));
    let mut retry = Request::new();
    retry.tried.insert(target.backends[0].id);
    let mut first = retry.ticket(&target, at(0));
    let mut second = Request::new().ticket(&target, at(0));
    target.serve(at(1_000));
    assert!(granted(&mut first).is_none());
    let trial = granted(&mut second).expect("nobody before it can use it");
    assert_eq!((name(&trial), trial.is_trial()), ("b0", true));
}

#[test]
fn a_retry_does_not_wait_for_a_backend_where_it_has_been() {
    let target = target(&model::TargetConfig { resilience: limited(1), ..unprobed(2) });
    let _held = Request::pinned(&target, 0).lease(&target, at(0));
    Request::pinned(&target, 1).lease(&target, at(0)).finish(Outcome::ConnectFailed, at(0));
    let mut retry = Request::new();
    retry.tried.insert(target.backends[0].id);
    let lease = retry.lease(&target, at(1));
    assert_eq!(name(&lease), "b1", "an ejection never empties a target");
    drop(lease);
    match target.enqueue(&retry.ask(at(1))) {
        Queued::Lease(lease) => assert_eq!(name(&lease), "b1"),
        other => panic!("no lease but {other:?}"),
    }
}

#[test]
fn who_waits_for_a_draining_outlier_is_served_by_any_when_the_panic_ends() {
    let target = with_agents(3);
    let eject = |nth: usize| {
        for _ in 0..5 {
            let lease = Lease::take(&target.backends[nth], Trial::NONE, at(0)).expect("there is room");
            lease.finish(Outcome::Failed, at(0));
        }
    };
    eject(0);
    target.state.hear(&target.backends[0], &AgentReport::read(b"drain"), at(0));
    eject(1);
    target.settle(at(0));
    assert!(target.state.board.panics(), "one of three is left");
    let _held = Request::pinned(&target, 0).lease(&target, at(0));
    let mut waiting = Request::pinned(&target, 0).ticket(&target, at(0));
    let trial = Request::new().lease(&target, at(1_000));
    assert_eq!((name(&trial), trial.is_trial()), ("b1", true));
    trial.note_answer(Heard::GOOD, at(1_001));
    trial.finish(Outcome::Success, at(1_001));
    target.settle(at(1_001));
    assert!(!target.state.board.panics());
    assert!(granted(&mut waiting).is_some(), "its own is out, and others have room");
}

/// Under the bounded loads of `ring_hash` the total is what all leases come to, however they came to be.
#[test]
fn every_lease_counts_in_the_total() {
    let balance = Balance::RingHash.into();
    let target = target(&model::TargetConfig { balance, resilience: limited(1), ..unprobed(2) });
    let total = || target.state.board.total();
    Request::pinned(&target, 0).lease(&target, at(0)).finish(Outcome::ConnectFailed, at(0));
    let held = Request::new().lease(&target, at(1));
    assert_eq!((name(&held), total()), ("b1", 1));
    let trial = Request::new().lease(&target, at(1_000));
    assert_eq!((name(&trial), trial.is_trial(), total()), ("b0", true, 2));
    let mut waiting = Request::new().ticket(&target, at(1_000));
    drop(held);
    let handed_on = granted(&mut waiting).expect("it has room");
    assert_eq!(total(), 2);
    trial.finish(Outcome::ConnectFailed, at(1_001));
    handed_on.finish(Outcome::ConnectFailed, at(1_001));
    assert_eq!(total(), 0);
    let any = Request::new().lease(&target, at(1_002));
    assert_eq!(total(), 1, "both are ejected, and one is used nevertheless");
    drop(any);
    let trial = Request::pinned(&target, 0).lease(&target, at(60_000));
    assert_eq!((trial.is_trial(), total()), (true, 1));
    drop(trial);
    assert_eq!(total(), 0);
}

#[test]
fn the_trial_of_a_backend_that_is_alone_is_not_begun_where_there_is_no_room_for_it() {
    let resilience = Resilience { outlier: None, ..limited(1) };
    let target = target(&model::TargetConfig { resilience, ..unprobed(1) });
    let held = Request::new().lease(&target, at(0));
    let rules = target.state.board.rules().breaker.expect("there is one");
    for _ in 0..rules.failures {
        held.backend().breaker().update(|word| word.fail(false, rules, at(0), at(0)));
    }
    target.state.board.lock().refresh(held.backend());
    assert!(matches!(target.pick(&Request::new().ask(at(1_500))), Pick::None(Cause::BreakerOpen)));
    drop(held);
    assert!(Request::new().lease(&target, at(1_500)).is_trial(), "it is not half-open for ever");
}

#[test]
fn who_fails_takes_the_place_of_one_that_is_slow_and_of_nobody_else() {
    use crate::targets::resilience::ejection::EjectionKind;
    use crate::targets::resilience::reports::eject;
    let target = target(&unprobed(4));
    for (nth, kind) in [(0, EjectionKind::Failing), (1, EjectionKind::Slow)] {
        assert!(eject(&target.backends[nth], kind, "a test", true, at(0)));
    }
    assert!(eject(&target.backends[2], EjectionKind::Failing, "a test", true, at(0)));
    let out = target.backends.iter().map(|backend| backend.ejection().word().kind()).collect::<Vec<_>>();
    assert_eq!(out, [Some(EjectionKind::Failing), None, Some(EjectionKind::Failing), None]);
    assert!(!eject(&target.backends[3], EjectionKind::Failing, "a test", true, at(0)), "nobody is only slow");
}

#[test]
fn who_makes_a_backend_full_says_so_at_once() {
    let target = target(&model::TargetConfig { resilience: limited(1), ..unprobed(2) });
    let held = Request::pinned(&target, 0).lease(&target, at(0));
    let is_ready = || target.state.live.load().tiers[0].watch.ready.contains(0);
    assert!(!is_ready());
    drop(held);
    assert!(is_ready());
}

#[test]
fn the_attempt_of_one_that_waited_begins_when_its_wait_ends() {
    let target = target(&model::TargetConfig { resilience: limited(1), ..unprobed(1) });
    let held = Request::new().lease(&target, at(0));
    let mut waiting = Request::new().ticket(&target, at(0));
    drop(held);
    let lease = granted(&mut waiting).expect("it is its turn").begin(at(700));
    assert_eq!(lease.picked(), at(700));
}

#[test]
fn who_waits_hears_of_a_backend_that_is_left_out() {
    let target = target(&model::TargetConfig { resilience: limited(1), ..unprobed(2) });
    let held = [0, 1].map(|nth| Request::pinned(&target, nth).lease(&target, at(0)));
    let _waiting = Request::new().ticket(&target, at(0));
    let mut changed = std::pin::pin!(target.state.changed());
    let mut poll = || changed.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready();
    assert!(!poll());
    let [one, _other] = held;
    one.finish(Outcome::ConnectFailed, at(1));
    assert!(poll());
}

#[test]
fn a_trial_whose_answer_began_well_is_over_and_one_that_may_not_be_leaves_nothing_behind() {
    let target = target(&model::TargetConfig { resilience: limited(2), ..unprobed(1) });
    let one = &target.backends[0];
    let rules = target.state.board.rules().breaker.expect("there is one");
    let break_down = || {
        for _ in 0..rules.failures {
            one.breaker().update(|word| word.fail(false, rules, at(0), at(0)));
        }
        target.state.board.lock().refresh(one);
    };
    break_down();
    let trial = Request::new().lease(&target, at(5_000));
    assert!(trial.is_trial());
    trial.note_answer(Heard::GOOD, at(5_001));
    assert!(!trial.is_trial());
    drop(trial);
    one.breaker().clear();
    break_down();
    // The breaker's time is up, that of the ejection is not.
    let ejection = target.state.board.rules().ejection.expect("there is one");
    one.ejection().update(|word| {
        word.fail(crate::targets::resilience::ejection::EjectionKind::Refused, false, ejection, at(5_000))
    });
    assert_eq!(on_trial(one, at(5_500)), None);
    assert_ne!(one.breaker().word().circuit(), Circuit::HalfOpen);
}

#[test]
fn who_waits_for_a_backend_of_weight_zero_is_served_when_the_limit_that_is_found_out_rises() {
    let mut config = model::TargetConfig { resilience: limited(1), ..unprobed(2) };
    config.backends[0].portion = Portion { weight: 0, ..Portion::default() };
    let target = target(&config);
    let _held = Request::pinned(&target, 0).lease(&target, at(0));
    let mut waiting = Request::pinned(&target, 0).ticket(&target, at(0));
    let mut locked = target.state.board.lock();
    target.state.board.set_limit(&mut locked, 2);
    drop(locked);
    assert_eq!(granted(&mut waiting).as_ref().map(name), Some("b0"));
}
