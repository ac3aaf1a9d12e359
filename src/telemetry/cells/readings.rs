//! What all workers counted together, read at one moment.
//!
//! Tests and exporters call this; it allocates and takes time in proportion to what was counted. Cells go
//! on changing while they are read, so two numbers of one reading may be a request apart.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::times::histogram::Distribution;
use super::{
    CacheReading, Cells, CoarseReading, CopyReading, Counter, RateReading, StageCells, StatusClass,
    TrafficCells,
};
use crate::message::{BackendId, Cause, ListenerId, TargetId};

/// Records and bytes of one listener, target or backend.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    pub(super) by_class: [u64; StatusClass::ALL.len()],
    /// Body bytes from clients.
    pub bytes_in: u64,
    /// Body bytes to clients.
    pub bytes_out: u64,
}

impl Traffic {
    /// Requests, tunnels and TCP connections that ended.
    #[must_use]
    pub fn requests(&self) -> u64 {
        self.by_class.iter().sum()
    }

    /// Those that ended with a status of this class.
    #[must_use]
    pub fn with(&self, class: StatusClass) -> u64 {
        self.by_class[class as usize]
    }

    pub(super) fn add(&mut self, cells: &TrafficCells) {
        for (total, cell) in self.by_class.iter_mut().zip(&cells.by_class) {
            *total += cell.value();
        }
        self.bytes_in += cells.bytes_in.value();
        self.bytes_out += cells.bytes_out.value();
    }
}

/// How long things took.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stages {
    /// From the first byte of the request (or the accept) to the last byte of the answer.
    pub duration: Distribution,
    /// From the request sent to the first byte of the backend's answer, per attempt.
    pub first_byte: Distribution,
    /// Opening an upstream connection, per attempt that did.
    pub connect: Distribution,
}

impl Stages {
    fn add(&mut self, cells: &StageCells) {
        self.duration.add(&cells.duration);
        self.first_byte.add(&cells.first_byte);
        self.connect.add(&cells.connect);
    }

    fn merge(&mut self, other: &Stages) {
        self.duration.merge(&other.duration);
        self.first_byte.merge(&other.first_byte);
        self.connect.merge(&other.connect);
    }
}

/// What was counted for one target.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TargetReading {
    /// Records and bytes.
    pub traffic: Traffic,
    /// Times.
    pub stages: Stages,
    /// Copies of requests that it got, which are in nothing else.
    pub copies: CopyReading,
}

/// What was counted for one backend.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BackendReading {
    /// Records whose last attempt was here, with the status the client got, and their bytes.
    pub traffic: Traffic,
    /// Attempts on it.
    pub attempts: u64,
    /// Attempts that ended in its fault.
    pub failures: u64,
    /// Those of them that the client was told of, by a status from 500 on.
    pub told: u64,
    /// From the request sent to the first byte of its answer.
    pub first_byte: CoarseReading,
}

impl BackendReading {
    /// Attempts that were no good, each once: those that ended in its fault, and answers of its own from 500 on.
    #[must_use]
    pub fn errors(&self) -> u64 {
        (self.failures + self.traffic.with(StatusClass::ServerError)).saturating_sub(self.told)
    }
}

/// What was counted for upstream connections; see [`PoolCells`](super::PoolCells).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoolReading {
    /// Requests sent on an idle connection.
    pub reused: u64,
    /// Connections opened.
    pub opened: u64,
    /// Idle connections closed by us.
    pub closed_idle: u64,
    /// Idle connections that turned out unusable.
    pub discarded_stale: u64,
}

/// What was counted for client connections; see [`ConnectionCells`](super::ConnectionCells).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConnectionReading {
    /// Accepted, refused ones included.
    pub accepted: u64,
    /// Open now.
    pub open: u64,
    /// Turned away because of `max_connections`.
    pub refused: u64,
}

/// The sum over all workers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Readings {
    /// Upstream connections.
    pub pool: PoolReading,
    /// Client connections.
    pub connections: ConnectionReading,
    /// Failed accepts.
    pub accept_errors: u64,
    /// Tasks that ended in a panic.
    pub panics: u64,
    /// Access records that never reached their destination.
    pub access_dropped: u64,
    /// Attempts after the first.
    pub retries: u64,
    /// What caches have done.
    pub cache: CacheReading,
    causes: BTreeMap<usize, u64>,
    listeners: BTreeMap<u32, Traffic>,
    targets: BTreeMap<u32, TargetReading>,
    backends: BTreeMap<u32, BackendReading>,
    rates: BTreeMap<u32, RateReading>,
    unrouted: Stages,
}

impl Readings {
    /// Reads the cells of every worker and adds them up.
    #[must_use]
    pub fn sum(workers: &[Arc<Cells>]) -> Readings {
        let mut all = Readings::default();
        for cells in workers {
            all.add(cells);
        }
        let open: i64 = workers.iter().map(|cells| cells.connections.open.value()).sum();
        all.connections.open = u64::try_from(open).unwrap_or(0);
        all
    }

    /// The same without what was counted of single objects: little, however many there are.
    #[must_use]
    pub fn overall(workers: &[Arc<Cells>]) -> Readings {
        let mut all = Readings::default();
        for cells in workers {
            all.add_overall(cells);
        }
        let open: i64 = workers.iter().map(|cells| cells.connections.open.value()).sum();
        all.connections.open = u64::try_from(open).unwrap_or(0);
        all
    }

    fn add_overall(&mut self, cells: &Cells) {
        let plus = |total: &mut u64, cell: &Counter| *total += cell.value();
        plus(&mut self.pool.reused, &cells.pool.reused);
        plus(&mut self.pool.opened, &cells.pool.opened);
        plus(&mut self.pool.closed_idle, &cells.pool.closed_idle);
        plus(&mut self.pool.discarded_stale, &cells.pool.discarded_stale);
        plus(&mut self.connections.accepted, &cells.connections.accepted);
        plus(&mut self.connections.refused, &cells.connections.refused);
        plus(&mut self.accept_errors, &cells.accept_errors);
        plus(&mut self.panics, &cells.panics);
        plus(&mut self.access_dropped, &cells.access_dropped);
        plus(&mut self.retries, &cells.retries);
        self.cache.add(&cells.cache);
        for (number, cell) in cells.causes.iter().enumerate() {
            plus(self.causes.entry(number).or_default(), cell);
        }
        for (number, rates) in cells.rates.iter() {
            self.rates.entry(number).or_default().add(rates);
        }
    }

    fn add(&mut self, cells: &Cells) {
        self.add_overall(cells);
        for (number, traffic) in cells.listeners.iter() {
            self.listeners.entry(number).or_default().add(traffic);
        }
        for (number, target) in cells.targets.iter() {
            let total = self.targets.entry(number).or_default();
            total.traffic.add(&target.traffic);
            total.stages.add(&target.stages);
        }
        for (number, copies) in cells.copies.iter() {
            self.targets.entry(number).or_default().copies.add(&copies);
        }
        for (number, backend) in cells.backends.iter() {
            self.backends.entry(number).or_default().add(backend);
        }
        self.unrouted.add(&cells.unrouted);
    }

    /// Everything that ended, on all listeners.
    #[must_use]
    pub fn traffic(&self) -> Traffic {
        let mut all = Traffic::default();
        for traffic in self.listeners.values() {
            for (total, more) in all.by_class.iter_mut().zip(traffic.by_class) {
                *total += more;
            }
            all.bytes_in += traffic.bytes_in;
            all.bytes_out += traffic.bytes_out;
        }
        all
    }

    /// Requests, tunnels and TCP connections that ended, on all listeners.
    #[must_use]
    pub fn requests(&self) -> u64 {
        self.traffic().requests()
    }

    /// How many records ended with this cause.
    #[must_use]
    pub fn ended_with(&self, cause: Cause) -> u64 {
        self.causes.get(&(cause as usize)).copied().unwrap_or(0)
    }

    /// The causes that were met and how often, in the order of [`Cause::ALL`], without [`Cause::Done`].
    pub fn errors(&self) -> impl Iterator<Item = (Cause, u64)> {
        let all = Cause::ALL.iter().map(|&cause| (cause, self.ended_with(cause)));
        all.filter(|&(cause, count)| cause != Cause::Done && count > 0)
    }

    /// What was counted of the rate limit with this number.
    #[must_use]
    pub fn rate(&self, limit: u32) -> RateReading {
        self.rates.get(&limit).copied().unwrap_or_default()
    }

    /// Times over all targets, and of records that never got one.
    #[must_use]
    pub fn stages(&self) -> Stages {
        let mut all = self.unrouted.clone();
        for target in self.targets.values() {
            all.merge(&target.stages);
        }
        all
    }

    /// What a listener counted; `None`: nothing yet.
    #[must_use]
    pub fn listener(&self, id: ListenerId) -> Option<&Traffic> {
        self.listeners.get(&u32::from(id.0))
    }

    /// What a target counted; `None`: nothing yet.
    #[must_use]
    pub fn target(&self, id: TargetId) -> Option<&TargetReading> {
        self.targets.get(&u32::from(id.0))
    }

    /// What a backend counted; `None`: nothing yet. Backends from number 2,097,120 on share one entry,
    /// which is found under that number only.
    #[must_use]
    pub fn backend(&self, id: BackendId) -> Option<&BackendReading> {
        self.backends.get(&id.0)
    }

    /// Every backend that was met, by number.
    pub fn backends(&self) -> impl Iterator<Item = (BackendId, &BackendReading)> {
        self.backends.iter().map(|(&number, reading)| (BackendId(number), reading))
    }
}
