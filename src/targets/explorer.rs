//! Looks for interleavings that break the invariants of [`crate::targets::queueing::board`].
//!
//! Threads that pick, wait, leave and change things run one at a time: at each [`point`](crate::steps::point) between two steps on what they share
//! the one that runs passes the baton to another, chosen by a seed. So a seed is an interleaving, the same each time, and
//! a few thousand of them meet what a machine meets once a month. No point lies inside a critical section.

use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use crate::config::model::{self, BackendAddress, BackendState, Balance, HealthCheck, Portion, Resilience};
use crate::steps::{play, point};
use crate::targets::fixtures::unprobed;
use crate::targets::queueing::lease::Heard;
use crate::targets::queueing::queue::QueueLine;
use crate::targets::queueing::wants::Wants;
use crate::targets::state::health::agent::AgentReport;
use crate::targets::{
    Ask, Backend, Chance, Circuit, Lease, Outcome, Pick, QueueTicket, Queued, Registry, Target, Tried,
};
use crate::targets::{Health, Verdict};
use crate::tick::Tick;

fn at(millis: u64) -> Tick {
    Tick((1_000_000 + millis) * 1_000_000)
}

/// What an exploration is about.
#[derive(Clone, Copy, Debug)]
struct Scene {
    algorithm: Balance,
    limit: u32,
    /// The limit is changed meanwhile.
    relimits: bool,
    /// Backends go, drain and come back meanwhile.
    churns: bool,
    /// Attempts fail, so that backends are left out.
    fails: bool,
}

impl Scene {
    /// Three backends, and one of weight 0 that only cookies name.
    fn config(self) -> model::TargetConfig {
        let health = HealthCheck { agent: Some(9), rise: 1, fall: 1, ..HealthCheck::default() };
        let mut resilience =
            Resilience { max_in_flight: Some(self.limit), queue: 100, ..Resilience::default() };
        if self.fails {
            // Soon enough that ten turns see all of it: ejections, breakers, panics.
            resilience.breaker.iter_mut().for_each(|breaker| breaker.failures = 3);
            resilience
                .outlier
                .iter_mut()
                .for_each(|outlier| (outlier.failures, outlier.max_ejected) = (2, 100));
        }
        let mut config = model::TargetConfig {
            health: Some(health),
            balance: self.algorithm.into(),
            resilience,
            ..unprobed(4)
        };
        config.backends[3].portion = Portion { weight: 0, ..Portion::default() };
        config
    }
}

/// What a client has.
#[derive(Default)]
struct Hands {
    leases: Vec<Lease>,
    tickets: Vec<QueueTicket>,
}

impl Hands {
    /// Takes the leases of the tickets whose turn it is.
    fn look(&mut self) {
        let leases = &mut self.leases;
        self.tickets.retain_mut(|ticket| {
            match ticket.poll(&mut Context::from_waker(Waker::noop())) {
                Poll::Ready(lease) => leases.push(lease),
                Poll::Pending => return true,
            }
            false
        });
    }
}

/// A client that comes, waits and goes, by chance.
fn client(target: &Target, scene: Scene, seed: u64) -> Hands {
    let chance = Chance::seeded(seed);
    let mut hands = Hands::default();
    for turn in 0..10 {
        let now = at(turn * 300);
        match chance.below(8) {
            0..4 => {
                let mut tried = Tried::new();
                for _ in 0..[0, 0, 0, 0, 1, 2][chance.below(6)] {
                    tried.insert(target.backends[chance.below(3)].id);
                }
                let pin = (chance.below(3) == 0).then(|| &target.backends[chance.below(4)]);
                let ask = Ask { pin, key: Some(chance.bits()), ..Ask::new(&tried, &chance, now) };
                match target.pick(&ask) {
                    Pick::Lease(lease) => hands.leases.push(lease),
                    Pick::Full => match target.enqueue(&ask) {
                        Queued::Lease(lease) => hands.leases.push(lease),
                        Queued::Ticket(ticket) => hands.tickets.push(ticket),
                        Queued::Refused(_) => {}
                    },
                    Pick::Unknown | Pick::None(_) => {}
                }
            }
            4 if !hands.tickets.is_empty() => drop(hands.tickets.remove(chance.below(hands.tickets.len()))),
            5 => hands.look(),
            _ if !hands.leases.is_empty() => {
                let lease = hands.leases.remove(chance.below(hands.leases.len()));
                let bad = scene.fails && chance.below(2) == 0;
                if !bad {
                    lease.note_answer(Heard::GOOD, now);
                }
                let fault = if chance.below(2) == 0 { Outcome::Failed } else { Outcome::ConnectFailed };
                lease.finish(if bad { fault } else { Outcome::Success }, now);
            }
            // Chance asked for a lease or a ticket to be dropped, and there is none.
            _ => {}
        }
        if !scene.relimits {
            for lease in &hands.leases {
                assert!(lease.backend().in_flight() <= scene.limit, "more than the limit");
            }
        }
    }
    hands
}

/// Control: verdicts, agents, reloads, the look once a second.
fn control(registry: &Registry, target: &Target, scene: Scene, seed: u64) -> Hands {
    let chance = Chance::seeded(seed);
    for turn in 0..8 {
        let now = at(turn * 400);
        let backend = &target.backends[chance.below(4)];
        match chance.below(10) {
            0 if scene.relimits => {
                let limit = [0, 1, 2, 3][chance.below(4)];
                let mut config = scene.config();
                config.resilience.max_in_flight = (limit > 0).then_some(limit);
                registry.apply(&[config]);
            }
            1 if scene.churns => {
                let verdict = if chance.below(2) == 0 { Verdict::Good } else { Verdict::Bad("no".into()) };
                drop(target.state.report(backend, verdict, now));
            }
            2 if scene.churns => {
                let words: [&[u8]; 4] = [b"drain", b"ready", b"50%", b"100%"];
                drop(target.state.hear(backend, &AgentReport::read(words[chance.below(4)]), now));
            }
            3 => target.settle(now),
            // As an adaptive one does.
            4 if scene.relimits => {
                let mut locked = target.state.board.lock();
                target.state.board.set_limit(&mut locked, 1 + u32::try_from(chance.below(3)).expect("small"));
                target.state.live.load().backends().for_each(|backend| locked.refresh(backend));
            }
            5 if scene.churns => {
                let mut config = scene.config();
                match chance.below(4) {
                    0 => drop(config.backends.remove(chance.below(4))),
                    state => config.backends[chance.below(4)].state = BackendState::ALL[state - 1].1,
                }
                registry.apply(&[config]);
            }
            6 if scene.churns => {
                // Everybody at other addresses, back again, or nobody new.
                let mut config = scene.config();
                let move_on = u16::try_from(chance.below(3)).expect("small") * 100;
                for backend in &mut config.backends {
                    if let BackendAddress::Host { port, .. } = &mut backend.address {
                        *port += move_on;
                    }
                }
                let newest = registry.apply(&[config]).remove(0);
                if chance.below(2) == 0 {
                    drop(newest.state.report(&newest.backends[chance.below(4)], Verdict::Good, now));
                }
            }
            7 if scene.churns => drop(target.state.stand_in(now)),
            // What other nodes have on it, and which this one prefers.
            8 => target.state.set_elsewhere(backend, u32::try_from(chance.below(3)).expect("small")),
            9 => target.state.prefer(|one| one.id.0 % 2 == u32::try_from(turn % 2).expect("0 or 1"), now),
            _ => point(),
        }
    }
    Hands::default()
}

/// What must hold when nobody is on the way. `now`: later than anything that happened.
fn examine(target: &Target, hands: &[Hands]) {
    let board = &target.state.board;
    let locked = board.lock();
    let live = target.state.live.load();
    let is_full = |backend: &Backend| locked.limit > 0 && backend.taken() >= locked.limit;
    for (number, tier) in live.tiers.iter().enumerate() {
        for (place, backend) in tier.backends.iter().enumerate() {
            let bit = tier.watch.ready.contains(place);
            let is_in = backend.serves_pins(locked.panics);
            assert!(bit || is_full(backend) || !is_in, "room at {} is forgotten", backend.name);
            if let Some(rank) = &locked.rows[number].rank {
                let load = bit.then(|| backend.taken());
                assert!(rank.agrees(place, load), "{} stands in the wrong place", backend.name);
            }
        }
    }
    for backend in &target.backends {
        let held =
            hands.iter().flat_map(|hands| &hands.leases).filter(|lease| lease.backend().id == backend.id);
        assert_eq!(backend.in_flight() as usize, held.count(), "leases of {}", backend.name);
        if locked.queue.count(QueueLine::Pinned(backend.id.0)) > 0 {
            assert!(backend.serves_pins(locked.panics), "somebody waits for {}, which is out", backend.name);
            assert!(is_full(backend), "somebody waits for {}, which has room", backend.name);
        }
    }
    if board.is_for(Wants::Total) {
        let held: usize = hands.iter().map(|hands| hands.leases.len()).sum();
        assert_eq!(board.total() as usize, held, "the total of leases");
    }
    assert_eq!(board.waiting() as usize, locked.queue.count(QueueLine::Any));
    let waiting: usize = hands.iter().map(|hands| hands.tickets.len()).sum();
    assert_eq!(locked.queue.len(), waiting, "tickets and waiters");
    let mut from = 0;
    while let Some((number, _, waiter)) = locked.queue.next_unpinned(from) {
        let others = || live.backends().filter(|backend| !waiter.tried.contains(backend.id));
        assert!(
            !others().any(|backend| backend.serves_pins(locked.panics) && !is_full(backend)),
            "somebody waits while a backend has room"
        );
        let is_hopeless = others().all(|backend| backend.breaker().word().circuit() != Circuit::Closed);
        let is_closed = |backend: &&Arc<Backend>| backend.breaker().word().circuit() == Circuit::Closed;
        assert!(
            is_hopeless
                || others().any(|backend| backend.serves_pins(locked.panics))
                || others().filter(is_closed).all(|backend| is_full(backend)),
            "nobody is waited for"
        );
        from = number + 1;
    }
}

fn explore(scene: Scene, seed: u64) {
    let registry = Registry::new();
    let target = registry.apply(&[scene.config()]).remove(0);
    for backend in &target.backends {
        target.state.report(backend, Verdict::Good, at(0));
        target.state.hear(backend, &AgentReport::read(b"ready"), at(0));
    }
    let (registry, target) = (&registry, &target);
    let mut actors: Vec<Box<dyn FnOnce() -> Hands + Send + '_>> =
        vec![Box::new(move || control(registry, target, scene, seed ^ 0xc0de))];
    for number in 1..4 {
        actors.push(Box::new(move || client(target, scene, seed.wrapping_mul(31) + number)));
    }
    let mut hands = play(seed, actors);
    hands.iter_mut().for_each(Hands::look);
    examine(target, &hands);
    for backend in target.state.backends().iter().filter(|backend| backend.health() == Health::Unknown) {
        // One that came with a reload.
        target.state.report(backend, Verdict::Good, at(9_000));
    }
    // Others leave it one after the other.
    for backend in target.backends.iter().cloned().chain(target.state.backends()) {
        for left in (0..backend.elsewhere()).rev() {
            target.state.set_elsewhere(&backend, left);
            hands.iter_mut().for_each(Hands::look);
            examine(target, &hands);
        }
    }
    hands.iter_mut().for_each(Hands::look);

    // One after the other all leave. Who waits gets a backend when there is one.
    let mut now = at(10_000);
    while let Some(lease) = hands.iter_mut().find_map(|hands| hands.leases.pop()) {
        now = now.after(Duration::from_millis(10));
        lease.note_answer(Heard::GOOD, now);
        lease.finish(Outcome::Success, now);
        hands.iter_mut().for_each(Hands::look);
        examine(target, &hands);
        if hands.iter().all(|hands| hands.leases.is_empty()) {
            // What is out by its words is found out about when its time is up.
            now = now.after(Duration::from_secs(60));
            target.serve(now);
            hands.iter_mut().for_each(Hands::look);
        }
    }
    // Nobody holds a lease: who still waits is told that there is nobody to wait for.
    let waiting: usize = hands.iter().map(|hands| hands.tickets.len()).sum();
    let mut hopeless = 0;
    while let Some(tried) = tried_of(target, hopeless) {
        let chance = Chance::seeded(seed);
        assert!(target.gives_up(&Ask::new(&tried, &chance, now)).is_some(), "somebody waits for ever");
        hopeless += 1;
    }
    assert_eq!(hopeless, waiting, "somebody waits for its own backend for ever");
}

/// Where the one at this place in the queue has been.
fn tried_of(target: &Target, place: usize) -> Option<Tried> {
    let locked = target.state.board.lock();
    let mut from = 0;
    for _ in 0..place {
        from = locked.queue.next_unpinned(from)?.0 + 1;
    }
    locked.queue.next_unpinned(from).map(|(_, _, waiter)| waiter.tried)
}

/// Explores this scene with many seeds; a failure tells the seed.
fn search(scene: Scene) {
    for seed in 0..400 {
        let outcome = std::panic::catch_unwind(|| explore(scene, seed));
        assert!(outcome.is_ok(), "{scene:?} with seed {seed}");
    }
}

const QUIET: Scene =
    Scene { algorithm: Balance::RoundRobin, limit: 1, relimits: false, churns: false, fails: false };

#[test]
fn with_clients_alone() {
    for limit in [1, 2] {
        search(Scene { limit, ..QUIET });
    }
}

#[test]
fn with_backends_that_come_and_go() {
    search(Scene { churns: true, ..QUIET });
    search(Scene { churns: true, algorithm: Balance::LeastConnections, ..QUIET });
}

#[test]
fn with_limits_that_change() {
    search(Scene { relimits: true, limit: 2, ..QUIET });
    search(Scene { relimits: true, limit: 2, churns: true, ..QUIET });
}

#[test]
fn with_attempts_that_fail() {
    search(Scene { fails: true, ..QUIET });
    search(Scene { fails: true, churns: true, limit: 2, ..QUIET });
}

#[test]
fn with_all_of_it_under_every_algorithm() {
    for &(_, algorithm) in Balance::ALL {
        let scene = Scene { algorithm, limit: 2, relimits: true, churns: true, fails: true };
        for seed in 0..40 {
            let outcome = std::panic::catch_unwind(|| explore(scene, seed));
            assert!(outcome.is_ok(), "{scene:?} with seed {seed}");
        }
    }
}
