//! What all workers have counted of one object, and what of objects that are gone: little at a time, so that thousands can be read
//! without anybody waiting.
//!
//! Numbers are given again. Invariants:
//!
//! 1. Whoever reads holds what holds the numbers that it asks for, so none of them is given to another meanwhile.
//! 2. Under a number that the newest config has given, a worker that has not gone over to that config has counts of somebody who is
//!    gone: [`Sums`] looks at that once, at its beginning, and takes them for the one before.
//! 3. What was counted of a backend or a route that is gone stands under its own number until that is given again, then in its
//!    target's or its listener's row for those that are gone. [`Sums::gone`] reads both, and begins anew when a worker moves
//!    something from one to the other just then.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::routes::{ByClass, add_classes};
use super::{
    BackendCells, BackendReading, CallReading, Cells, CopyReading, Counter, DatagramReading, Distribution,
    FaultReading, NewNumbers, SpanReading, Traffic,
};
use crate::message::{BackendId, ListenerId, RouteId, TargetId};

/// Numbers that the config has given to somebody new.
#[derive(Clone, Debug, Default)]
struct Given {
    listeners: HashSet<u32>,
    targets: HashSet<u32>,
    backends: HashSet<u32>,
    routes: HashSet<u32>,
}

/// The cells of all workers, as one config sees them.
#[derive(Debug)]
pub struct Sums {
    /// Each with whether it counts for those that the config has given numbers to.
    workers: Vec<(Arc<Cells>, bool)>,
    given: Given,
}

/// Numbers whose counts are told by themselves.
#[derive(Clone, Debug, Default)]
pub struct LiveNumbers {
    /// Of backends.
    pub backends: HashSet<BackendId>,
    /// Of routes, and of all ways that count as theirs.
    pub routes: HashSet<RouteId>,
    /// Of ways that there are.
    pub ways: HashSet<RouteId>,
}

/// What was counted of backends and routes that are gone.
#[derive(Clone, Debug, Default)]
pub struct GoneReading {
    targets: HashMap<u32, BackendReading>,
    listeners: HashMap<u32, ByClass>,
    times: HashMap<u32, SpanReading>,
}

impl GoneReading {
    /// Of backends of this target.
    #[must_use]
    pub fn of_target(&self, id: TargetId) -> BackendReading {
        self.targets.get(&u32::from(id.0)).cloned().unwrap_or_default()
    }

    /// Where the time has gone of requests for this target, by ways that are gone.
    #[must_use]
    pub fn times_of_target(&self, id: TargetId) -> SpanReading {
        self.times.get(&u32::from(id.0)).copied().unwrap_or_default()
    }

    /// Of routes of this listener.
    #[must_use]
    pub fn of_listener(&self, id: ListenerId) -> ByClass {
        self.listeners.get(&u32::from(id.0)).copied().unwrap_or_default()
    }
}

impl Sums {
    /// Of these workers under the config of this number, which has given these numbers.
    #[must_use]
    pub fn new(workers: &[Arc<Cells>], number: u64, given: &NewNumbers<'_>) -> Sums {
        let is_over = |cells: &Cells| number <= 1 || cells.turn.adopted() >= number;
        let workers = workers.iter().map(|cells| (Arc::clone(cells), is_over(cells))).collect();
        let given = Given {
            listeners: given.listeners.iter().map(|id| id.0.into()).collect(),
            targets: given.targets.iter().map(|id| id.0.into()).collect(),
            backends: given.backends.iter().map(|id| id.0).collect(),
            routes: given.routes.iter().map(|id| id.0.into()).collect(),
        };
        Sums { workers, given }
    }

    /// Those who count for the one who has this number now.
    fn of<'s>(&'s self, given: &'s HashSet<u32>, number: u32) -> impl Iterator<Item = &'s Cells> {
        let is_new = given.contains(&number);
        self.workers.iter().filter(move |(_, is_over)| *is_over || !is_new).map(|(cells, _)| &**cells)
    }

    /// Each worker.
    pub fn workers(&self) -> impl Iterator<Item = &Cells> {
        self.workers.iter().map(|(cells, _)| &**cells)
    }

    /// All that came to a listener.
    #[must_use]
    pub fn listener(&self, id: ListenerId) -> Traffic {
        let number = id.0.into();
        let mut sum = Traffic::default();
        let met = self.of(&self.given.listeners, number).filter_map(|cells| cells.listeners.met(number));
        met.for_each(|cells| sum.add(cells));
        sum
    }

    /// What came to a listener and had no route.
    #[must_use]
    pub fn unrouted(&self, id: ListenerId) -> ByClass {
        let number = id.0.into();
        let mut sum = ByClass::default();
        let met =
            self.of(&self.given.listeners, number).filter_map(|cells| cells.routes.listeners.met(number));
        met.for_each(|row| row.unrouted.add_to(&mut sum));
        sum
    }

    /// How requests of a route, or on a way from it to a target, have ended.
    #[must_use]
    pub fn route(&self, id: RouteId) -> ByClass {
        let number = id.0.into();
        let mut sum = ByClass::default();
        let met = self.of(&self.given.routes, number).filter_map(|cells| cells.routes.routes.met(number));
        met.for_each(|row| row.classes.add_to(&mut sum));
        sum
    }

    /// Where their time has gone.
    #[must_use]
    pub fn route_times(&self, id: RouteId) -> SpanReading {
        let number = id.0.into();
        let mut sum = SpanReading::default();
        let met = self.of(&self.given.routes, number).filter_map(|cells| cells.routes.routes.met(number));
        met.for_each(|row| sum.add(&row.times));
        sum
    }

    /// All that went to a target.
    #[must_use]
    pub fn target(&self, id: TargetId) -> Traffic {
        let number = id.0.into();
        let mut sum = Traffic::default();
        let met = self.of(&self.given.targets, number).filter_map(|cells| cells.targets.met(number));
        met.for_each(|cells| sum.add(&cells.traffic));
        sum
    }

    /// From a request sent to a backend of a target to the first byte of the answer.
    #[must_use]
    pub fn first_byte(&self, id: TargetId) -> Distribution {
        let number = id.0.into();
        let mut sum = Distribution::default();
        let met = self.of(&self.given.targets, number).filter_map(|cells| cells.targets.met(number));
        met.for_each(|cells| sum.add(&cells.stages.first_byte));
        sum
    }

    /// What of a target did not end well, or was tried again; `None`: of what never got one.
    #[must_use]
    pub fn faults(&self, target: Option<TargetId>) -> FaultReading {
        let mut sum = FaultReading::default();
        match target {
            Some(id) => {
                let all = self.of(&self.given.targets, id.0.into());
                all.for_each(|cells| cells.faults.add_to(target, &mut sum));
            }
            None => self.workers().for_each(|cells| cells.faults.add_to(None, &mut sum)),
        }
        sum
    }

    /// What calls of gRPC to a target have ended with.
    #[must_use]
    pub fn calls(&self, id: TargetId) -> CallReading {
        let mut sum = CallReading::default();
        self.of(&self.given.targets, id.0.into()).for_each(|cells| cells.calls.add_to(id, &mut sum));
        sum
    }

    /// Copies of requests for a target.
    #[must_use]
    pub fn copies(&self, id: TargetId) -> CopyReading {
        let mut sum = CopyReading::default();
        self.of(&self.given.targets, id.0.into()).for_each(|cells| cells.copies.add_to(id, &mut sum));
        sum
    }

    /// Datagrams of a listener.
    #[must_use]
    pub fn datagrams(&self, id: ListenerId) -> DatagramReading {
        let mut sum = DatagramReading::default();
        self.of(&self.given.listeners, id.0.into()).for_each(|cells| cells.datagrams.add_to(id, &mut sum));
        sum
    }

    /// What was counted of a backend.
    #[must_use]
    pub fn backend(&self, id: BackendId) -> BackendReading {
        let mut sum = BackendReading::default();
        let met = self.of(&self.given.backends, id.0).filter_map(|cells| cells.backends.met(id.0));
        met.for_each(|cells| sum.add(cells));
        sum
    }

    /// What was counted of those who have none of these numbers any more.
    #[must_use]
    pub fn gone(&self, live: &LiveNumbers) -> GoneReading {
        let mut all = GoneReading::default();
        for (cells, is_over) in &self.workers {
            let others = |given: &HashSet<u32>, number: u32| !*is_over && given.contains(&number);
            let read = cells.turn.settled(|| {
                let mut read = GoneReading::default();
                for (number, target) in cells.targets.iter() {
                    if !others(&self.given.targets, number) {
                        read.targets.entry(number).or_default().add(&target.gone);
                    }
                }
                for (number, backend) in cells.backends.iter() {
                    let is_there = live.backends.contains(&BackendId(number));
                    if is_there && !others(&self.given.backends, number) {
                        continue;
                    }
                    let owner = backend.owner.number();
                    if let Some(owner) = owner.filter(|owner| !others(&self.given.targets, *owner)) {
                        read.targets.entry(owner).or_default().add(backend);
                    }
                }
                for (number, listener) in cells.routes.listeners.iter() {
                    if !others(&self.given.listeners, number) {
                        listener.gone.add_to(read.listeners.entry(number).or_default());
                    }
                }
                for (number, times) in cells.routes.gone_times.iter() {
                    if !others(&self.given.targets, number) {
                        read.times.entry(number).or_default().add(times);
                    }
                }
                for (number, route) in cells.routes.routes.iter() {
                    let is_in = |these: &HashSet<RouteId>| {
                        let id = u16::try_from(number).map(RouteId);
                        id.is_ok_and(|id| these.contains(&id)) && !others(&self.given.routes, number)
                    };
                    let listener = route.listener().filter(|owner| !others(&self.given.listeners, *owner));
                    if let Some(listener) = listener.filter(|_| !is_in(&live.routes)) {
                        route.classes.add_to(read.listeners.entry(listener).or_default());
                    }
                    let target = route.target().filter(|owner| !others(&self.given.targets, *owner));
                    if let Some(target) = target.filter(|_| !is_in(&live.ways)) {
                        read.times.entry(target).or_default().add(&route.times);
                    }
                }
                read
            });
            for (number, target) in read.targets {
                all.targets.entry(number).or_default().merge(&target);
            }
            for (number, times) in read.times {
                all.times.entry(number).or_default().merge(&times);
            }
            for (number, listener) in read.listeners {
                let total = all.listeners.entry(number).or_default();
                total.iter_mut().zip(listener).for_each(|(total, more)| *total += more);
            }
        }
        all
    }
}

impl BackendCells {
    /// Takes over what another one has, but for its times. Only the owning worker calls this.
    pub(super) fn take(&self, other: &BackendCells) {
        let pairs = self.traffic.by_class.iter().zip(&other.traffic.by_class);
        pairs.for_each(|(mine, theirs)| mine.add(theirs.value()));
        for (mine, theirs) in [
            (&self.traffic.bytes_in, &other.traffic.bytes_in),
            (&self.traffic.bytes_out, &other.traffic.bytes_out),
            (&self.attempts, &other.attempts),
            (&self.failures, &other.failures),
            (&self.told, &other.told),
        ] {
            mine.add(theirs.value());
        }
    }

    pub(super) fn clear(&self) {
        self.traffic.clear();
        [&self.attempts, &self.failures, &self.told].into_iter().for_each(Counter::clear);
        self.first_byte.clear();
        self.owner.set(None);
    }
}

impl Traffic {
    fn merge(&mut self, other: &Traffic) {
        self.by_class.iter_mut().zip(other.by_class).for_each(|(total, more)| *total += more);
        self.bytes_in += other.bytes_in;
        self.bytes_out += other.bytes_out;
    }
}

impl BackendReading {
    pub(super) fn add(&mut self, cells: &BackendCells) {
        add_classes(&cells.traffic.by_class, &mut self.traffic.by_class);
        self.traffic.bytes_in += cells.traffic.bytes_in.value();
        self.traffic.bytes_out += cells.traffic.bytes_out.value();
        self.attempts += cells.attempts.value();
        self.failures += cells.failures.value();
        self.told += cells.told.value();
        self.first_byte.add(&cells.first_byte);
    }

    fn merge(&mut self, other: &BackendReading) {
        self.traffic.merge(&other.traffic);
        self.attempts += other.attempts;
        self.failures += other.failures;
        self.told += other.told;
    }
}
