use crate::config::model::Resilience;
use crate::targets::Target;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use super::*;
use crate::config::model;
use crate::targets::fixtures::unprobed;
use crate::targets::resilience::gradient::{LEAST, START};
use crate::targets::{Ask, Chance, Heard, Lease, Outcome, Pick, QueueTicket, Queued, Registry, Tried};
use crate::tick::Tick;

fn at(seconds: u64) -> Tick {
    Tick(1_000_000_000 * (1_000 + seconds))
}

fn adaptive(backends: u16) -> model::TargetConfig {
    model::TargetConfig {
        resilience: Resilience { adaptive: true, outlier: None, ..Resilience::default() },
        ..unprobed(backends)
    }
}

fn pick(target: &Target, now: Tick) -> Pick {
    target.pick(&Ask::new(&Tried::new(), &Chance::seeded(now.0), now))
}

/// A target whose backends work on `slots` requests at once, each in `service`, with more clients than they can take.
struct Crowd {
    target: Arc<Target>,
    slots: u32,
    service: Duration,
    second: u64,
}

impl Crowd {
    fn new(config: &model::TargetConfig, slots: u32) -> Crowd {
        let target = Registry::new().apply(std::slice::from_ref(config)).remove(0);
        Crowd { target, slots, service: Duration::from_millis(10), second: 0 }
    }

    /// A second in which each backend has as many requests as it may have: the limit after it.
    fn pass(&mut self) -> u32 {
        let now = at(self.second);
        self.second += 1;
        let mut held: Vec<Lease> = Vec::new();
        while let Pick::Lease(lease) = pick(&self.target, now) {
            held.push(lease);
            assert!(held.len() <= 100_000, "there is a limit");
        }
        for lease in &held {
            let share = f64::from(lease.backend().in_flight()) / f64::from(self.slots);
            lease.note_answer(Heard::GOOD, now.after(self.service.mul_f64(share.max(1.0))));
        }
        let end = at(self.second);
        self.target.sweep(end);
        held.into_iter().for_each(|lease| lease.finish(Outcome::Success, end));
        self.target.limit().expect("it is adaptive")
    }

    /// So many of them.
    fn passes(&mut self, seconds: usize) -> Vec<u32> {
        (0..seconds).map(|_| self.pass()).collect()
    }
}

#[test]
fn the_limit_follows_what_the_backends_can_take() {
    for backends in [1, 3] {
        let mut crowd = Crowd::new(&adaptive(backends), 60);
        assert_eq!(crowd.target.limit(), Some(START));
        let settled = crowd.passes(40);
        assert!(settled[25..].iter().all(|limit| (60..=100).contains(limit)), "{settled:?}");
        // A quarter of the slots: four times as slow under the same load.
        crowd.slots = 15;
        let fewer = crowd.passes(25);
        assert!(fewer[20..].iter().all(|limit| (15..=35).contains(limit)), "{fewer:?}");
        crowd.slots = 60;
        let back = crowd.passes(50);
        assert!(back[45..].iter().all(|limit| (60..=100).contains(limit)), "{back:?}");
    }
}

#[test]
fn when_latency_doubles_the_limit_falls_and_grows_back() {
    let mut crowd = Crowd::new(&adaptive(2), 60);
    let before = *crowd.passes(40).last().expect("40 of them");
    crowd.service *= 2;
    let limits = crowd.passes(25);
    let least = *limits.iter().min().expect("25 of them");
    assert!(least * 3 / 2 < before, "{before}: {limits:?}");
    // Fewer requests were no quicker, so they were not the reason.
    assert!(limits[20..].iter().all(|limit| (60..=100).contains(limit)), "{limits:?}");
}

#[test]
fn who_waits_is_served_when_the_limit_grows() {
    let mut crowd = Crowd::new(&adaptive(1), 10_000);
    crowd.passes(5);
    let now = at(crowd.second);
    let limit = crowd.target.limit().expect("it is adaptive");
    let held: Vec<Lease> = (0..limit)
        .map(|_| match pick(&crowd.target, now) {
            Pick::Lease(lease) => lease,
            other => panic!("{other:?}"),
        })
        .collect();
    let (tried, chance) = (Tried::new(), Chance::seeded(1));
    let ticket = || match crowd.target.enqueue(&Ask::new(&tried, &chance, now)) {
        Queued::Ticket(ticket) => ticket,
        other => panic!("no ticket but {other:?}"),
    };
    let mut tickets: Vec<QueueTicket> = (0..5).map(|_| ticket()).collect();
    for lease in &held {
        lease.note_answer(Heard::GOOD, now.after(crowd.service));
    }
    crowd.target.sweep(at(crowd.second + 1));
    assert!(crowd.target.limit() > Some(limit));
    for ticket in &mut tickets {
        let Poll::Ready(lease) = ticket.poll(&mut Context::from_waker(Waker::noop())) else {
            panic!("there is room for five more")
        };
        drop(lease);
    }
    assert_eq!(crowd.target.waiting(), 0);
}

#[test]
fn a_lower_limit_holds_for_whoever_comes_and_breaks_nothing_off() {
    let mut crowd = Crowd::new(&adaptive(1), 10_000);
    crowd.passes(10);
    let (now, limit) = (at(crowd.second), crowd.target.limit().expect("it is adaptive"));
    let mut held: Vec<Lease> = Vec::new();
    while let Pick::Lease(lease) = pick(&crowd.target, now) {
        held.push(lease);
    }
    for lease in &held {
        lease.note_answer(Heard::GOOD, now.after(crowd.service * 10));
    }
    crowd.target.sweep(at(crowd.second + 1));
    let lower = crowd.target.limit().expect("it is adaptive");
    assert!(lower < limit && held.len() == limit as usize);
    // Those that end make no room until fewer than the limit are left.
    while held.len() > lower as usize {
        held.pop();
        assert!(matches!(pick(&crowd.target, now), Pick::Full), "{} of {lower}", held.len());
    }
    held.pop();
    assert!(matches!(pick(&crowd.target, now), Pick::Lease(_)));
}

#[test]
fn few_requests_are_no_reason_for_anything() {
    let crowd = Crowd::new(&adaptive(1), 1);
    for second in 0..u64::from(ENOUGH) - 1 {
        let Pick::Lease(lease) = pick(&crowd.target, at(second)) else { panic!("there is room") };
        lease.note_answer(Heard::GOOD, at(second).after(Duration::from_millis(1 << second)));
        lease.finish(Outcome::Success, at(second));
        crowd.target.sweep(at(second + 1));
        assert_eq!(crowd.target.limit(), Some(START));
    }
}

#[test]
fn what_was_found_out_outlives_a_reload_as_long_as_the_target_stays_adaptive() {
    let registry = Registry::new();
    let config = adaptive(1);
    let apply = |config: &model::TargetConfig| registry.apply(std::slice::from_ref(config)).remove(0);
    let mut crowd = Crowd { target: apply(&config), ..Crowd::new(&config, 8) };
    crowd.passes(30);
    let limit = crowd.target.limit();
    assert!(limit < Some(START));
    assert_eq!(apply(&config).limit(), limit);
    let fixed = Resilience { max_in_flight: Some(3), ..Resilience::default() };
    let fixed = apply(&model::TargetConfig { resilience: fixed, ..config.clone() });
    assert_eq!(fixed.limit(), Some(3));
    fixed.sweep(at(99));
    assert_eq!(fixed.limit(), Some(3));
    assert_eq!(apply(&unprobed(1)).limit(), None);
    assert_eq!(apply(&config).limit(), Some(START));
}

#[test]
fn it_is_said_once_that_the_limit_is_met() {
    let mut crowd = Crowd::new(&adaptive(1), 8);
    let now = at(0);
    let Pick::Lease(lease) = pick(&crowd.target, now) else { panic!("there is room") };
    assert_eq!(crowd.target.state.adapt(), None);
    drop(lease);
    let mut held: Vec<Lease> = Vec::new();
    while let Pick::Lease(lease) = pick(&crowd.target, now) {
        held.push(lease);
    }
    assert_eq!(crowd.target.state.adapt(), Some(START));
    assert_eq!(crowd.target.state.adapt(), None);
    drop(held);
    assert!(crowd.passes(20).iter().all(|limit| *limit >= LEAST));
    assert_eq!(crowd.target.state.adapt(), None);
}
