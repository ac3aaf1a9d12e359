//! The run: events in order, as for a single node, with turns in which nodes hear one another.

use core::time::Duration;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use slab::Slab;

use super::case::{NodeSharing, NodesReport, NodesWorkload};
use super::work::WorkTimes;
use crate::config::model::{
    self, BackendAddress, Balance, OwnerMode, Policy, Protocol, Resilience, Timeouts,
};
use crate::simulate::calendar::Calendar;
use crate::simulate::draw::{self, SECOND, Weibull};
use crate::simulate::fake::RunningRequest;
use crate::simulate::histogram::LatencyHistogram;
use crate::simulate::workload::Fake;
use crate::targets::sharing::evening::{EVENING, Evening, EveningScene};
use crate::targets::sharing::hearing::{HeardCount, are_short, turn};
use crate::targets::sharing::levelling::{LevelScene, Levelling};
use crate::targets::sharing::owners::{MovedBackends, Owners};
use crate::targets::sharing::stays::Stays;
use crate::targets::sharing::uses::Uses;
use crate::targets::{
    Ask, Chance, Heard, Lease, Outcome, Pick, QueueTicket, Queued, Registry, Target, Tried,
};
use crate::tick::Tick;

/// When a run begins. Not at zero, which stands for "never" in some places.
const START: Tick = Tick(1_000_000_000);
/// After a flip, moves are its consequences for so long.
const SETTLES: Duration = Duration::from_secs(15);
/// After a flip it takes so long until all backends are used alike.
const SPILLS: Duration = Duration::from_secs(5);

#[derive(Clone, Copy, Debug)]
enum What {
    /// The next request comes.
    Arrival,
    /// A request ends.
    End(u32),
    /// A node says what it has, and hears the others.
    Turn(usize),
    /// Backends move.
    Evening,
    /// Backends have worked for another second.
    Second,
}

/// Requests whose turn has come.
#[derive(Debug, Default)]
struct Woken(Mutex<Vec<u32>>);

/// Tells of one.
struct Call {
    woken: Arc<Woken>,
    key: u32,
}

impl Wake for Call {
    fn wake(self: Arc<Self>) {
        self.woken.0.lock().unwrap_or_else(PoisonError::into_inner).push(self.key);
    }
}

#[derive(Debug)]
struct Request {
    came: Tick,
    service: u64,
    place: usize,
    ticket: Option<QueueTicket>,
    lease: Option<Lease>,
}

/// What a node has said last.
#[derive(Clone, Debug, Default)]
struct Said {
    busy: Vec<HeardCount>,
    /// Requests that wait because all of its own are full.
    waiting: u32,
    /// All that wait.
    queued: u32,
    /// How many it has begun lately, by place.
    lately: Vec<f64>,
}

struct Engine<'a> {
    of: &'a NodesWorkload,
    targets: Vec<Arc<Target>>,
    fakes: Vec<RunningRequest<'a>>,
    calendar: Calendar<What>,
    under_way: Slab<Request>,
    woken: Arc<Woken>,
    said: Vec<Said>,
    /// What all have said together.
    sums: Vec<HeardCount>,
    lately: Vec<f64>,
    /// How long requests stay, as each node sees it.
    stays: Vec<Stays>,
    /// What each has begun, as it says it, and what it makes of that of all.
    uses: Vec<Uses>,
    levels: Vec<Levelling>,
    work: WorkTimes,
    names: Vec<String>,
    moved: MovedBackends,
    owners: Owners,
    evening: Evening,
    service: Weibull,
    world: Chance,
    chance: Chance,
    tried: Tried,
    now: Tick,
    times: LatencyHistogram,
    report: NodesReport,
}

/// Sends requests through all nodes and tells what came of it. The same `seed` gives the same requests however nodes share.
#[must_use]
pub fn run(of: &NodesWorkload, seed: u64) -> NodesReport {
    let fake = Fake::new(of.slots);
    let names = (0..of.nodes).map(|number| format!("node-{number:02}")).collect();
    let report = NodesReport {
        requests: 0,
        errors: 0,
        mean: 0.0,
        p99: 0.0,
        collided: 0,
        moves: 0,
        settled: Duration::ZERO,
        restless: 0,
        apart: 0.0,
    };
    let mut engine = Engine {
        of,
        targets: (0..of.nodes).map(|_| Registry::new().apply(&[config(of)]).remove(0)).collect(),
        fakes: (0..of.backends).map(|_| RunningRequest::new(&fake)).collect(),
        calendar: Calendar::new(),
        under_way: Slab::new(),
        woken: Arc::default(),
        said: vec![
            Said {
                busy: vec![HeardCount::default(); of.backends],
                lately: vec![0.0; of.backends],
                ..Said::default()
            };
            of.nodes
        ],
        sums: vec![HeardCount::default(); of.backends],
        lately: vec![0.0; of.backends],
        stays: (0..of.nodes).map(|_| Stays::default()).collect(),
        uses: (0..of.nodes).map(|_| Uses::default()).collect(),
        levels: (0..of.nodes).map(|_| Levelling::default()).collect(),
        work: WorkTimes::of(of.backends, of.slots),
        names,
        moved: MovedBackends::new(),
        owners: Owners::default(),
        evening: Evening::default(),
        service: Weibull::new(of.service),
        world: Chance::seeded(seed),
        chance: Chance::seeded(!seed),
        tried: Tried::new(),
        now: START,
        times: LatencyHistogram::new(),
        report,
    };
    engine.begin();
    engine.go();
    engine.report.mean = engine.times.mean().as_secs_f64() * 1e3;
    engine.report.apart = engine.work.apart();
    engine.report.p99 = engine.times.quantile(0.99).as_secs_f64() * 1e3;
    engine.report
}

impl Engine<'_> {
    fn begin(&mut self) {
        if let NodeSharing::Soft { evens } = self.of.sharing {
            self.prefer();
            for node in 0..self.of.nodes {
                // Each has its own beat.
                let share = node as f64 / self.of.nodes as f64;
                let begin = turn(self.of.nodes).mul_f64(share);
                self.calendar.enter(START.after(begin), What::Turn(node));
            }
            if evens {
                self.calendar.enter(START.after(EVENING), What::Evening);
            }
        }
        self.calendar.enter(START, What::Arrival);
        self.calendar.enter(START, What::Second);
    }

    fn go(&mut self) {
        let end = START.after(self.of.span);
        while let Some((now, what)) = self.calendar.take() {
            let is_over = now > end;
            if is_over && self.under_way.is_empty() {
                return;
            }
            self.now = now;
            match what {
                What::Arrival if is_over => {}
                What::Arrival => self.arrive(),
                What::End(key) => self.end(key),
                What::Turn(node) => self.turn(node),
                What::Evening => self.even(),
                What::Second => self.second(),
            }
            self.serve_woken();
        }
    }

    fn arrive(&mut self) {
        let rate = self.of.load * self.of.backends as f64 * f64::from(self.of.slots) / self.of.service.mean;
        let pause = draw::exponential(&self.world) * SECOND / rate;
        self.calendar.enter(Tick(self.now.0.saturating_add(pause as u64)), What::Arrival);
        let [shortest, longest] = self.of.bounds.map(|bound| bound.as_secs_f64());
        let service = self.service.draw(&self.world).clamp(shortest, longest) * SECOND;
        let node = self.node();
        let request =
            Request { came: self.now, service: service as u64, place: 0, ticket: None, lease: None };
        let key = u32::try_from(self.under_way.insert(request)).expect("memory ends before 2^32 requests");
        let target = Arc::clone(&self.targets[node]);
        let ask = Ask::new(&self.tried, &self.chance, self.now);
        let queued = match target.pick(&ask) {
            Pick::Lease(lease) => Queued::Lease(lease),
            _ => target.enqueue(&ask),
        };
        match queued {
            Queued::Lease(lease) => self.serve(key, lease),
            Queued::Ticket(ticket) => {
                self.under_way[key as usize].ticket = Some(ticket);
                self.poll(key);
            }
            Queued::Refused(_) => {
                self.report.errors += 1;
                self.under_way.remove(key as usize);
            }
        }
    }

    /// Which node the next request comes to.
    fn node(&self) -> usize {
        let heavy = match self.of.flips.as_nanos() as u64 {
            0 => 0,
            flips => ((self.now.0 - START.0) / flips) as usize % self.of.nodes,
        };
        let is_heavy = (self.world.bits() >> 11) as f64 / (1_u64 << 53) as f64;
        // Drawn in any case: with another number of nodes the requests are the same.
        let other = self.world.below(self.of.nodes.max(2) - 1);
        if self.of.nodes == 1 || is_heavy < self.of.heavy {
            heavy
        } else {
            other + usize::from(other >= heavy)
        }
    }

    fn poll(&mut self, key: u32) {
        let Some(request) = self.under_way.get_mut(key as usize) else { return };
        let Some(ticket) = &mut request.ticket else { return };
        let waker = Waker::from(Arc::new(Call { woken: Arc::clone(&self.woken), key }));
        if let Poll::Ready(lease) = ticket.poll(&mut Context::from_waker(&waker)) {
            request.ticket = None;
            self.serve(key, lease);
        }
    }

    fn serve_woken(&mut self) {
        loop {
            let woken = std::mem::take(&mut *self.woken.0.lock().unwrap_or_else(PoisonError::into_inner));
            if woken.is_empty() {
                return;
            }
            woken.into_iter().for_each(|key| self.poll(key));
        }
    }

    fn serve(&mut self, key: u32, lease: Lease) {
        let place = lease.backend().id.0 as usize;
        let request = &mut self.under_way[key as usize];
        (request.place, request.lease) = (place, Some(lease));
        if self.fakes[place].admit(key) {
            self.work.begin(place, self.now);
            self.calendar.enter(Tick(self.now.0 + request.service), What::End(key));
        } else if self.counts() {
            self.report.collided += 1;
        }
    }

    fn end(&mut self, key: u32) {
        let request = self.under_way.remove(key as usize);
        self.work.end(request.place, request.service, self.now);
        if let Some(next) = self.fakes[request.place].release() {
            self.work.begin(request.place, self.now);
            let service = self.under_way[next as usize].service;
            self.calendar.enter(Tick(self.now.0 + service), What::End(next));
        }
        if self.counts() {
            self.report.requests += 1;
            self.times.add(self.now.0 - request.came.0);
        }
        if let Some(lease) = request.lease {
            lease.note_answer(Heard::GOOD, self.now);
            lease.finish(Outcome::Success, self.now);
        }
    }

    fn second(&mut self) {
        self.calendar.enter(self.now.after(Duration::from_secs(1)), What::Second);
        let is_spilt = self.since_flip() >= SPILLS + Duration::from_secs(1);
        self.work.second(self.now, self.counts() && is_spilt);
    }

    /// Whether the beginning is over.
    fn counts(&self) -> bool {
        self.now.since(START) * 5 >= self.of.span
    }

    /// A node says what it has, and the others hear it at once.
    fn turn(&mut self, node: usize) {
        self.calendar.enter(self.now.after(turn(self.of.nodes)), What::Turn(node));
        self.uses[node].look(&self.targets[node], self.now);
        let said = self.said(node);
        let before = std::mem::replace(&mut self.said[node], said);
        for ((sum, now), before) in self.sums.iter_mut().zip(&self.said[node].busy).zip(&before.busy) {
            sum.last = sum.last + now.last - before.last;
            sum.still = sum.still + now.still - before.still;
        }
        for ((sum, now), before) in self.lately.iter_mut().zip(&self.said[node].lately).zip(&before.lately) {
            *sum += now - before;
        }
        self.stays[node].look(&self.targets[node], self.now);
        if node == 0 {
            // It is the one that evens.
            let demand = |said: &Said| said.busy.iter().map(|busy| busy.last).sum::<u32>() + said.queued;
            self.evening.hear(&self.said.iter().map(demand).collect::<Vec<_>>());
        }
        for (own, target) in self.targets.iter().enumerate().filter(|(own, _)| *own != node) {
            let others =
                self.said.iter().enumerate().filter(|(other, said)| *other != own && said.waiting > 0);
            let waiting: Vec<&str> = others.map(|(other, _)| &*self.names[other]).collect();
            let busy = |place: usize| {
                let (all, own) = (self.sums[place], self.said[own].busy[place]);
                HeardCount { last: all.last - own.last, still: all.still - own.still }
            };
            let stays = self.stays[own].mean();
            target.hear_others(&self.owners, busy, &waiting, stays);
            let lately = |place: usize| self.lately[place] - self.said[own].lately[place];
            let stay = stays.filter(|_| are_short(&self.owners, stays) && target.is_levelled());
            let scene = stay.map(|stay| LevelScene {
                lately: &lately,
                // Nobody is cut off here.
                is_doubted: &|_| false,
                node: (own, self.of.nodes),
                stay,
            });
            target.level(&mut self.levels[own], scene.as_ref(), self.now);
        }
    }

    fn said(&self, node: usize) -> Said {
        let target = &self.targets[node];
        let busy = target.backends.iter().map(|backend| {
            let last = backend.in_flight();
            HeardCount { last, still: last.saturating_sub(self.uses[node].fresh(backend.id)) }
        });
        let busy = busy.collect();
        let lately = target.backends.iter().map(|backend| self.uses[node].of(backend.id)).collect();
        let queued = u32::try_from(target.waiting()).unwrap_or(u32::MAX);
        Said { busy, waiting: target.waiting_in_need(), queued, lately }
    }

    /// Who prefers what, on all nodes.
    fn prefer(&mut self) {
        let identities = self.targets[0].backends.iter().map(|backend| &*backend.identity);
        self.owners = Owners::of(&self.names, identities, &self.moved);
        for (target, name) in self.targets.iter().zip(&self.names) {
            target.prefer_own(name, &self.owners, self.now);
        }
    }

    fn even(&mut self) {
        self.calendar.enter(self.now.after(EVENING), What::Evening);
        let target = Arc::clone(&self.targets[0]);
        let identities: Vec<&str> = target.backends.iter().map(|backend| &*backend.identity).collect();
        let scene = EveningScene {
            owners: &self.owners,
            identities: &identities,
            places: self.of.slots,
            is_leaving: &vec![false; self.of.nodes],
            is_busy: &|place| target.backends[place].taken() > 0,
            is_free: &|_| true,
            calm: Duration::ZERO,
        };
        let moves = self.evening.tick(&scene, self.now);
        if moves.is_empty() {
            return;
        }
        self.evening.moved(&identities, &moves, self.now);
        for one in &moves {
            self.moved.insert(identities[one.backend].to_owned(), self.names[one.to].clone());
        }
        if self.counts() {
            let since = self.since_flip();
            self.report.moves += moves.len() as u64;
            if since <= SETTLES {
                self.report.settled = self.report.settled.max(since);
            } else {
                self.report.restless += moves.len() as u64;
            }
        }
        self.prefer();
    }

    /// How long ago the latest flip was; very long where there are none.
    fn since_flip(&self) -> Duration {
        match self.of.flips.as_nanos() as u64 {
            0 => Duration::MAX,
            flips => Duration::from_nanos((self.now.0 - START.0) % flips),
        }
    }
}

/// The target of each node.
fn config(of: &NodesWorkload) -> model::TargetConfig {
    let backend = |number: usize| model::BackendConfig {
        name: format!("b{number}"),
        address: BackendAddress::Host { host: "127.0.0.1".into(), port: 1 },
        probe_path: None,
        tls: None,
        portion: model::Portion::default(),
        state: model::BackendState::Up,
        state_by: None,
        dialing: Default::default(),
        found: None,
    };
    let (owner, limit) = match of.sharing {
        NodeSharing::Nothing => (OwnerMode::default(), None),
        NodeSharing::Soft { .. } => (OwnerMode::Soft, Some(of.slots)),
    };
    model::TargetConfig {
        name: "web".to_owned(),
        protocol: Protocol::Http,
        send_proxy: None,
        host: model::HostHeader::Pass,
        balance: Policy { owner, ..Balance::LeastConnections.into() },
        sticky: None,
        health: None,
        timeouts: Timeouts::default(),
        drain_timeout: model::TargetConfig::DRAIN_TIMEOUT,
        resilience: Resilience {
            max_in_flight: limit,
            queue: if limit.is_some() { 1_000_000 } else { 0 },
            breaker: None,
            outlier: None,
            ..Resilience::default()
        },
        upgrade: Vec::new(),
        upstream: model::UpstreamProtocol::Http,
        backends: (0..of.backends).map(backend).collect(),
        sources: Vec::new(),
    }
}
