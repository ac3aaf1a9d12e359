//! The run: events in order, and what each of them leads to.

use core::time::Duration;
use std::collections::VecDeque;
use std::sync::Arc;

use slab::Slab;

use super::SimulationReport;
use super::calendar::Calendar;
use super::draw::{self, Crowd, SECOND, Service, Weibull};
use super::fake::{Answer, RunningRequest};
use super::histogram::LatencyHistogram;
use super::workload::{Arrivals, Workload};
use crate::config::model::{self, BackendAddress, Policy, Protocol, Timeouts};
use crate::targets::state::health::schedule;
use crate::targets::{Ask, Chance, Heard, Lease, Outcome, Pick, Registry, SWEEP, Target, Tried, Verdict};
use crate::tick::Tick;

/// When a run begins. Not at zero, which stands for "never" in some places.
const START: Tick = Tick(1_000_000_000);
/// Backends tried for one request, as by the proxy.
const ATTEMPTS: usize = 3;
/// How long a client of a closed loop waits after an error that cost no time, so that time goes on.
const REBUFF: Duration = Duration::from_millis(1);

/// Sends `requests` of `workload` through a target with this policy (its `slow_start` and what it does about failures are the workload's) and tells what
/// came of them. The same `seed` gives the same requests to every algorithm.
#[must_use]
pub fn run(workload: &Workload, policy: &Policy, requests: u64, seed: u64) -> SimulationReport {
    let mut engine = Engine::new(workload, policy, requests, seed);
    engine.begin();
    engine.go();
    engine.report()
}

/// What happens at a point in time.
#[derive(Clone, Copy, Debug)]
enum What {
    /// A client of the closed loop sends its next request.
    Send(u32),
    /// The head of a request's answer comes.
    Head(u32),
    /// The last byte of it comes.
    End(u32),
    /// A backend is probed.
    Probe(u32),
    /// The backends are compared.
    Sweep,
}

/// A request under way.
#[derive(Debug)]
struct Request {
    sent: Tick,
    client: u32,
    /// Where it is served.
    place: u32,
    key: u64,
    /// Nanoseconds that a backend works on it when all is well.
    service: u64,
    /// Nanoseconds that its answer takes from its first byte to the last.
    transfer: u64,
    fault: bool,
    tried: Tried,
    lease: Option<Lease>,
}

struct Engine<'a> {
    workload: &'a Workload,
    target: Arc<Target>,
    fakes: Vec<RunningRequest<'a>>,
    calendar: Calendar<What>,
    under_way: Slab<Request>,
    /// What is kept of flows that were answered, and until when: the oldest first.
    silent: VecDeque<(Tick, Lease)>,
    /// When the next request of an open loop comes.
    next: Tick,
    now: Tick,
    /// Requests that were sent, of so many.
    sent: u64,
    requests: u64,
    errors: u64,
    /// Ejections by comparison.
    ejected: u64,
    times: LatencyHistogram,
    service: Service,
    transfer: Weibull,
    crowd: Crowd,
    /// What the workload is drawn with: nothing that an algorithm does changes it.
    world: Chance,
    /// What the algorithm throws.
    chance: Chance,
    /// What spreads the probes.
    probes: Chance,
}

impl<'a> Engine<'a> {
    fn new(workload: &'a Workload, policy: &Policy, requests: u64, seed: u64) -> Engine<'a> {
        // Bytes to nanoseconds.
        let pace = if workload.bandwidth > 0.0 { SECOND / workload.bandwidth } else { 0.0 };
        let mut size = workload.size;
        size.mean *= pace;
        Engine {
            workload,
            target: Registry::new().apply(&[config(workload, policy)]).remove(0),
            fakes: workload.backends.iter().map(RunningRequest::new).collect(),
            calendar: Calendar::new(),
            under_way: Slab::new(),
            silent: VecDeque::new(),
            next: Tick::NEVER,
            now: START,
            sent: 0,
            requests,
            errors: 0,
            ejected: 0,
            times: LatencyHistogram::new(),
            service: Service::new(&workload.classes),
            transfer: Weibull::new(size),
            crowd: Crowd::new(workload.clients),
            world: Chance::seeded(seed),
            chance: Chance::seeded(!seed),
            probes: Chance::seeded(seed.rotate_left(32)),
        }
    }

    /// Gives every probed backend its first verdict and sets the clients off.
    fn begin(&mut self) {
        if self.workload.health.is_some() {
            (0..self.fakes.len()).for_each(|place| self.probe(place));
        }
        match self.workload.arrivals {
            Arrivals::Open { .. } => self.schedule_arrival(),
            Arrivals::Closed { clients, think } => {
                // Spread over the time in which each of them sends one request.
                let classes = &self.workload.classes;
                let whole: f64 = classes.iter().map(|class| class.share).sum();
                let service: f64 = classes.iter().map(|class| class.share * class.service.mean).sum();
                let turn = (think.as_secs_f64() + service / whole) * SECOND;
                for client in 0..clients {
                    let share = f64::from(client) / f64::from(clients);
                    self.calendar.enter(Tick(START.0 + (turn * share) as u64), What::Send(client));
                }
            }
        }
        // Time that nobody uses must not go on for ever.
        if self.next != Tick::NEVER || self.calendar.next().is_some() {
            self.sweep();
        }
    }

    /// Until every request has its end.
    fn go(&mut self) {
        while self.sent < self.requests || !self.under_way.is_empty() {
            if self.next <= self.calendar.next().unwrap_or(Tick::NEVER) {
                if self.next == Tick::NEVER {
                    return;
                }
                self.now = self.next;
                self.let_go();
                self.schedule_arrival();
                let client = self.crowd.draw(&self.world);
                self.send(client);
                continue;
            }
            let Some((now, what)) = self.calendar.take() else { return };
            self.now = now;
            self.let_go();
            match what {
                What::Send(client) => self.send(client),
                What::Head(key) => self.head(key),
                What::End(key) => self.end(key),
                What::Probe(place) => self.probe(place as usize),
                What::Sweep => self.sweep(),
            }
        }
    }

    /// Ends the flows that have been silent for long enough.
    fn let_go(&mut self) {
        while let Some((due, lease)) = self.silent.pop_front_if(|(due, _)| *due <= self.now) {
            lease.finish(Outcome::Success, due);
        }
    }

    fn elapsed(&self) -> u64 {
        self.now.0 - START.0
    }

    fn schedule_arrival(&mut self) {
        // The one that is being sent now is not counted yet.
        let due = u64::from(self.next != Tick::NEVER);
        let next = draw::arrival(self.elapsed(), &self.workload.arrivals, &self.world);
        self.next = match next {
            Some(elapsed) if self.sent + due < self.requests => Tick(START.0.saturating_add(elapsed)),
            _ => Tick::NEVER,
        };
    }

    fn send(&mut self, client: u32) {
        if self.sent == self.requests {
            return;
        }
        self.sent += 1;
        let request = Request {
            sent: self.now,
            client,
            place: 0,
            key: draw::hash(client),
            service: self.service.draw(&self.world),
            transfer: self.transfer.draw(&self.world) as u64,
            fault: false,
            tried: Tried::new(),
            lease: None,
        };
        let key = u32::try_from(self.under_way.insert(request)).expect("memory ends before 2^32 requests");
        self.attempt(key);
    }

    /// The attempt loop of the proxy: a backend that can't be connected to costs another pick.
    fn attempt(&mut self, key: u32) {
        let (now, elapsed) = (self.now, self.elapsed());
        let request = &mut self.under_way[key as usize];
        while request.tried.len() < ATTEMPTS {
            let ask = Ask { key: Some(request.key), ..Ask::new(&request.tried, &self.chance, now) };
            // None waits for a first verdict: all of them are in before the first request.
            let Pick::Lease(lease) = self.target.pick(&ask) else { break };
            let id = lease.backend().id;
            request.tried.insert(id);
            // The registry is new, so numbers are places.
            let fake = &mut self.fakes[id.0 as usize];
            if fake.refuses(elapsed) {
                lease.finish(Outcome::ConnectFailed, now);
                continue;
            }
            if lease.is_trial() {
                // The others go out on connections from the pool.
                lease.note_connected();
            }
            request.lease = Some(lease);
            request.place = id.0;
            if fake.admit(key) {
                self.serve(key);
            }
            return;
        }
        request.fault = true;
        self.finish(key);
    }

    /// The request has a slot of its backend.
    fn serve(&mut self, key: u32) {
        let elapsed = self.elapsed();
        let request = &mut self.under_way[key as usize];
        let fake = &mut self.fakes[request.place as usize];
        let after = match fake.serve(elapsed, request.service, request.transfer) {
            Answer::Good(after) => after,
            Answer::Fault(after) => {
                request.fault = true;
                request.transfer = 0;
                after
            }
        };
        self.calendar.enter(Tick(self.now.0.saturating_add(after)), What::Head(key));
    }

    fn head(&mut self, key: u32) {
        let request = &self.under_way[key as usize];
        if let Some(lease) = &request.lease {
            let fault = request.fault;
            lease.note_answer(Heard { fault, error: fault, ..Heard::GOOD }, self.now);
        }
        if request.transfer == 0 {
            self.end(key);
        } else {
            self.calendar.enter(Tick(self.now.0.saturating_add(request.transfer)), What::End(key));
        }
    }

    fn end(&mut self, key: u32) {
        let request = &mut self.under_way[key as usize];
        if let Some(lease) = request.lease.take() {
            if self.workload.silence.is_zero() {
                lease.finish(Outcome::Success, self.now);
            } else {
                self.silent.push_back((self.now.after(self.workload.silence), lease));
            }
        }
        let place = request.place as usize;
        self.finish(key);
        if let Some(next) = self.fakes[place].release() {
            self.serve(next);
        }
    }

    /// The client has its answer, or knows that there is none.
    fn finish(&mut self, key: u32) {
        let request = self.under_way.remove(key as usize);
        let took = self.now.since(request.sent);
        if request.fault {
            self.errors += 1;
        } else {
            self.times.add(self.now.0 - request.sent.0);
        }
        if let Arrivals::Closed { think, .. } = self.workload.arrivals {
            let pause = if think.is_zero() {
                0.0
            } else {
                think.as_secs_f64() * SECOND * draw::exponential(&self.world)
            };
            let pause = Duration::from_nanos(pause as u64);
            let pause = if took.is_zero() { pause.max(REBUFF) } else { pause };
            self.calendar.enter(self.now.after(pause), What::Send(request.client));
        }
    }

    fn probe(&mut self, place: usize) {
        let Some(health) = &self.workload.health else { return };
        let backend = &self.target.backends[place];
        let verdict = if self.fakes[place].refuses(self.elapsed()) {
            Verdict::Bad(Arc::from("connection refused"))
        } else {
            Verdict::Good
        };
        self.target.state.report(backend, verdict, self.now);
        let roll = self.probes.bits() as f64 / u64::MAX as f64;
        let wait = schedule::wait(health.interval, Duration::ZERO, backend.in_doubt(), roll);
        let place = u32::try_from(place).expect("a backend's number is a u32");
        self.calendar.enter(self.now.after(wait), What::Probe(place));
    }

    /// Leaves out who does worse than its siblings, as control does.
    fn sweep(&mut self) {
        self.ejected += self.target.sweep(self.now).len() as u64;
        self.calendar.enter(self.now.after(SWEEP), What::Sweep);
    }

    fn report(&self) -> SimulationReport {
        let busy: Vec<f64> = self.fakes.iter().map(RunningRequest::busy).collect();
        let slots = |place: usize| f64::from(self.workload.backends[place].slots.max(1));
        let whole: f64 = (0..busy.len()).map(slots).sum();
        let mean = busy.iter().enumerate().map(|(place, busy)| busy * slots(place)).sum::<f64>() / whole;
        let most = busy.iter().copied().fold(0.0, f64::max);
        SimulationReport {
            requests: self.sent,
            errors: self.errors,
            ejected: self.ejected,
            mean: self.times.mean(),
            p50: self.times.quantile(0.5),
            p99: self.times.quantile(0.99),
            max: self.times.max(),
            imbalance: if mean > 0.0 { most / mean } else { 0.0 },
            shares: self.fakes.iter().map(|fake| fake.requests).collect(),
            span: self.now.since(START),
        }
    }
}

/// The target that the proxy would have.
fn config(workload: &Workload, policy: &Policy) -> model::TargetConfig {
    let backends = workload.backends.iter().enumerate().map(|(place, fake)| model::BackendConfig {
        name: format!("fake-{}", place + 1),
        address: BackendAddress::Host { host: "127.0.0.1".into(), port: 1 },
        probe_path: None,
        tls: None,
        portion: fake.portion.clone(),
        state: model::BackendState::Up,
        state_by: None,
        dialing: Default::default(),
        found: None,
    });
    model::TargetConfig {
        name: workload.name.clone(),
        protocol: Protocol::Http,
        send_proxy: None,
        host: model::HostHeader::Pass,
        balance: Policy { slow_start: workload.slow_start, ..policy.clone() },
        sticky: None,
        health: workload.health.clone(),
        timeouts: Timeouts::default(),
        drain_timeout: model::TargetConfig::DRAIN_TIMEOUT,
        resilience: model::Resilience { max_in_flight: None, adaptive: false, ..workload.resilience.clone() },
        upgrade: Vec::new(),
        upstream: model::UpstreamProtocol::Http,
        backends: backends.collect(),
        sources: Vec::new(),
    }
}
