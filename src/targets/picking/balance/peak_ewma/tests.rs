use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;
use std::time::Duration;

use crate::config::model::{self, Balance, Policy};
use crate::targets::fixtures::{target, unprobed};
use crate::targets::{Ask, Chance, Heard, Lease, Outcome, Pick, Target, Tried};
use crate::tick::{Tick, nanos};

const START: u64 = 1_000_000_000_000;
/// Requests in a second.
const RATE: f64 = 300.0;

/// How a backend answers a request.
#[derive(Clone, Copy)]
enum Reply {
    /// 200, after exponentially distributed milliseconds of this mean.
    Good(f64),
    /// 500, after so many milliseconds.
    Fault(u64),
    /// 503 with Retry-After, at once.
    Busy(Duration),
    /// Not at all: the client leaves after so many milliseconds.
    Never(u64),
}

/// Requests that come independently of each other, and those under way.
struct World {
    target: Arc<Target>,
    chance: Chance,
    /// Seconds since the start.
    clock: f64,
    ends: BinaryHeap<Reverse<(Tick, usize)>>,
    under_way: Vec<Option<(Lease, Reply)>>,
    /// Where requests went, in order, with when.
    sent: Vec<(f64, usize)>,
}

impl World {
    fn new(backends: u16) -> World {
        let config = model::TargetConfig { balance: Policy::from(Balance::PeakEwma), ..unprobed(backends) };
        World {
            target: target(&config),
            chance: Chance::seeded(11),
            clock: 0.0,
            ends: BinaryHeap::new(),
            under_way: Vec::new(),
            sent: Vec::new(),
        }
    }

    /// Sends requests until so many seconds after the start. `reply` is what a backend makes of the one that it gets at a
    /// moment.
    fn run(&mut self, until: f64, reply: impl Fn(usize, f64) -> Reply) {
        while self.clock < until {
            self.clock += self.exponential() / RATE;
            let now = Tick(START + (self.clock * 1e9) as u64);
            self.end(now);
            let Pick::Lease(lease) = self.target.pick(&Ask::new(&Tried::new(), &self.chance, now)) else {
                panic!("all are up");
            };
            let place = lease.backend().id.0 as usize;
            let reply = reply(place, self.clock);
            let takes = match reply {
                Reply::Good(mean) => Duration::from_nanos((mean * 1e6 * self.exponential()) as u64),
                Reply::Fault(millis) | Reply::Never(millis) => Duration::from_millis(millis),
                Reply::Busy(_) => Duration::ZERO,
            };
            self.sent.push((self.clock, place));
            self.ends.push(Reverse((Tick(now.0 + nanos(takes)), self.under_way.len())));
            self.under_way.push(Some((lease, reply)));
        }
    }

    fn exponential(&self) -> f64 {
        -((self.chance.bits() >> 11) as f64 / (1_u64 << 53) as f64).max(1e-12).ln()
    }

    /// Ends what ends by `now`.
    fn end(&mut self, now: Tick) {
        while let Some(&Reverse((at, number))) = self.ends.peek().filter(|next| next.0.0 <= now) {
            self.ends.pop();
            let Some((lease, reply)) = self.under_way[number].take() else { continue };
            match reply {
                Reply::Good(_) => lease.note_answer(Heard::GOOD, at),
                Reply::Fault(_) => lease.note_answer(Heard { fault: true, ..Heard::GOOD }, at),
                Reply::Busy(rest) => {
                    lease.note_answer(Heard { fault: true, retry_after: Some(rest), ..Heard::GOOD }, at)
                }
                Reply::Never(_) => {
                    lease.finish(Outcome::Neutral, at);
                    continue;
                }
            }
            lease.finish(Outcome::Success, at);
        }
    }

    /// What part of the requests between two moments went to `place`.
    fn share(&self, place: usize, from: f64, until: f64) -> f64 {
        let between = || self.sent.iter().filter(|(at, _)| (from..until).contains(at));
        let here = between().filter(|(_, other)| *other == place).count();
        here as f64 / between().count() as f64
    }

    /// The longest time without a request to `place`, of those that began between two moments.
    fn pause(&self, place: usize, from: f64, until: f64) -> f64 {
        let mut times: Vec<f64> =
            self.sent.iter().filter(|sent| sent.1 == place).map(|sent| sent.0).collect();
        times.push(self.clock);
        let pauses = times.windows(2).filter(|pair| (from..until).contains(&pair[0]));
        pauses.map(|pair| pair[1] - pair[0]).fold(0.0, f64::max)
    }
}

#[test]
fn one_that_fails_fast_gets_next_to_nothing_and_is_trusted_again_when_it_works() {
    for good_at_first in [true, false] {
        let mut world = World::new(3);
        let fails = |at: f64| if good_at_first { (10.0..60.0).contains(&at) } else { at < 60.0 };
        world.run(80.0, |place, at| match place {
            0 if fails(at) => Reply::Fault(1),
            _ => Reply::Good(10.0),
        });
        let share = world.share(0, 12.0, 60.0);
        assert!(share <= 0.03, "{share}");
        assert!(world.pause(0, 12.0, 60.0) < 5.0, "it is tried again and again");
        let share = world.share(0, 65.0, 80.0);
        assert!(share > 0.2, "it is back, with {share}");
    }
}

#[test]
fn one_fault_now_and_then_is_no_reason_to_go_elsewhere() {
    let mut world = World::new(3);
    // In every hundred seconds, which are 10,000 requests to each, there is a millisecond in which requests fail.
    world.run(300.0, |place, at| match place {
        0 if at % 100.0 > 50.0 && at % 100.0 < 50.005 => Reply::Fault(1),
        _ => Reply::Good(10.0),
    });
    assert!(world.pause(0, 0.0, 300.0) < 2.0, "{}", world.pause(0, 0.0, 300.0));
    assert!(world.share(0, 0.0, 300.0) > 0.3);
}

#[test]
fn when_all_fail_they_fail_alike() {
    let mut world = World::new(3);
    world.run(60.0, |_, _| Reply::Fault(1));
    for place in 0..3 {
        let share = world.share(place, 2.0, 60.0);
        assert!((0.28..0.39).contains(&share), "{place}: {share}");
    }
}

#[test]
fn one_that_is_slow_gets_little_and_one_that_never_answers_less() {
    let mut world = World::new(3);
    world.run(60.0, |place, _| Reply::Good(if place == 0 { 100.0 } else { 10.0 }));
    let share = world.share(0, 2.0, 60.0);
    assert!((0.001..0.05).contains(&share), "{share}");
    // Clients leave after 5 s: that is no fault of the backend's, and still it has not answered.
    let mut world = World::new(3);
    world.run(60.0, |place, at| if place == 0 && at > 5.0 { Reply::Never(5000) } else { Reply::Good(10.0) });
    let share = world.share(0, 6.0, 60.0);
    assert!(share < 0.005, "{share}");
}

#[test]
fn one_that_asks_to_be_left_alone_is_while_another_can_be_picked() {
    let mut world = World::new(5);
    let rest = Duration::from_secs(20);
    // All but the last ask for it, once.
    world.run(12.0, |place, at| match place {
        4 => Reply::Good(10.0),
        _ if (10.0..10.5).contains(&at) => Reply::Busy(rest),
        _ => Reply::Good(10.0),
    });
    world.run(40.0, |_, _| Reply::Good(10.0));
    for place in 0..4 {
        let last = world.sent.iter().rfind(|(at, other)| *other == place && *at < 25.0);
        assert!(last.is_some_and(|(at, _)| *at < 12.0), "{place}: {last:?}");
        assert!(world.share(place, 32.0, 40.0) > 0.1, "{place} is back");
    }
    // Nobody is left: those who asked are picked all the same.
    let mut world = World::new(2);
    world.run(10.0, |_, _| Reply::Busy(rest));
    assert!(world.share(0, 1.0, 10.0) > 0.3 && world.share(1, 1.0, 10.0) > 0.3);
}

#[test]
fn weights_count() {
    let mut config = model::TargetConfig { balance: Policy::from(Balance::PeakEwma), ..unprobed(3) };
    config.backends[0].portion.weight = 4;
    let mut world = World { target: target(&config), ..World::new(3) };
    world.run(60.0, |_, _| Reply::Good(30.0));
    let share = world.share(0, 2.0, 60.0);
    assert!((0.55..0.85).contains(&share), "{share}");
}
