//! Metric cells: what one worker counted.
//!
//! Each worker owns one [`Cells`] and is the only one that writes it; everybody else holds an `Arc` and
//! reads, summed over workers by [`Readings`]. Nothing is looked up by name: listeners, targets and
//! backends are numbers, and an entry is allocated when a worker first meets its number.

mod cached;
mod calls;
mod copies;
mod counter;
mod datagrams;
mod ends;
mod faults;
mod handshakes;
mod rates;
mod readings;
mod refused;
mod routes;
mod status_class;
mod sums;
mod table;
mod times;
mod totals;
mod turn;

use std::sync::atomic::AtomicI32;

use self::calls::CallCells;
use self::faults::FaultCells;
use self::routes::{CountedFor, NumberSet, RouteCells};
use self::table::Table;
use self::turn::Turn;
use crate::message::{BackendId, Blame, Cause, ListenerId, Record, RouteId, TargetId};
use crate::tick::Tick;

pub use cached::{CacheCells, CacheReading};
pub use calls::CallReading;
pub use copies::{CopyCells, CopyReading};
pub use counter::{Counter, Gauge};
pub use datagrams::{DatagramCells, DatagramDrop, DatagramReading};
pub use ends::{EndCells, EndTally};
pub use faults::FaultReading;
pub use handshakes::HandshakeCells;
pub use rates::{RateCells, RateReading};
pub use readings::{
    BackendReading, ConnectionReading, PoolReading, Readings, Stages, TargetReading, Traffic,
};
pub use refused::{RefusalCells, RefusedAt};
pub use routes::ByClass;
pub use status_class::StatusClass;
pub use sums::{GoneReading, LiveNumbers, Sums};
pub use times::coarse::{COARSE, CoarseDurations, CoarseReading};
pub use times::durations::{DurationReading, Durations, EDGES, Placed};
pub use times::histogram::{BUCKETS, Distribution, Histogram};
pub use times::spans::{SpanReading, waited_for_backends, whole_time};
pub(super) use times::spans::{connect_time, first_byte_time, span};
pub use totals::{Tally, Totals};

/// Numbers that mean somebody new.
#[derive(Clone, Copy, Debug, Default)]
pub struct NewNumbers<'n> {
    /// Of listeners.
    pub listeners: &'n [ListenerId],
    /// Of routes.
    pub routes: &'n [RouteId],
    /// Of targets.
    pub targets: &'n [TargetId],
    /// Of backends.
    pub backends: &'n [BackendId],
}

/// Records and bytes of one listener, target or backend.
#[derive(Debug, Default)]
struct TrafficCells {
    by_class: [Counter; StatusClass::ALL.len()],
    bytes_in: Counter,
    bytes_out: Counter,
}

impl TrafficCells {
    fn clear(&self) {
        self.by_class.iter().chain([&self.bytes_in, &self.bytes_out]).for_each(Counter::clear);
    }

    fn count(&self, record: &Record, class: StatusClass) {
        self.by_class[class as usize].increment();
        self.bytes_in.add(record.bytes_in);
        self.bytes_out.add(record.bytes_out);
    }
}

/// How long the stages took.
#[derive(Debug, Default)]
struct StageCells {
    duration: Histogram,
    first_byte: Histogram,
    connect: Histogram,
}

impl StageCells {
    fn clear(&self) {
        [&self.duration, &self.first_byte, &self.connect].into_iter().for_each(Histogram::clear);
    }
}

#[derive(Debug, Default)]
struct TargetCells {
    traffic: TrafficCells,
    stages: StageCells,
    /// What was counted of backends whose numbers others have.
    gone: BackendCells,
}

impl TargetCells {
    fn clear(&self) {
        self.traffic.clear();
        self.stages.clear();
        self.gone.clear();
    }
}

#[derive(Debug, Default)]
struct BackendCells {
    traffic: TrafficCells,
    attempts: Counter,
    failures: Counter,
    /// Those of them that the client was told of, by a status from 500 on.
    told: Counter,
    /// From the request sent to the first byte of the answer.
    first_byte: CoarseDurations,
    /// Its target.
    owner: CountedFor,
}

/// What happened to upstream connections of one worker.
#[derive(Debug, Default)]
pub struct PoolCells {
    /// Requests sent on an idle connection.
    pub reused: Counter,
    /// Connections opened.
    pub opened: Counter,
    /// Idle connections closed by us: too old, too many, backend removed or failed.
    pub closed_idle: Counter,
    /// Idle connections found closed, or readable, when they were to be used.
    pub discarded_stale: Counter,
}

/// What happened to client connections of one worker.
#[derive(Debug, Default)]
pub struct ConnectionCells {
    /// Accepted, refused ones included.
    pub accepted: Counter,
    /// Open now.
    pub open: Gauge,
    /// Turned away because of one of the limits of connections.
    pub refused: Counter,
}

/// Everything one worker counts. Only that worker writes; see [`Counter`] for what a second writer costs.
///
/// Aligned to two cache lines, so that no other worker's data shares one with it.
#[derive(Debug)]
#[repr(align(128))]
pub struct Cells {
    /// Upstream connections.
    pub pool: PoolCells,
    /// Client connections.
    pub connections: ConnectionCells,
    /// Failed accepts (EMFILE and the like).
    pub accept_errors: Counter,
    /// Those of them after which accepting pauses.
    pub accept_shortages: Counter,
    /// The system's number for the latest of these; 0: there was none.
    pub accept_error: AtomicI32,
    /// What was refused, by place and cause.
    pub refusals: RefusalCells,
    /// Copies of requests.
    pub copies: CopyCells,
    /// Datagrams.
    pub datagrams: DatagramCells,
    /// What caches have done.
    pub cache: CacheCells,
    /// Rate limits.
    pub rates: RateCells,
    /// Ends that are not what their status says.
    pub ends: EndCells,
    /// Tasks that ended in a panic.
    pub panics: Counter,
    /// Access records that this worker had to drop because the writer was behind.
    pub access_dropped: Counter,
    /// TLS handshakes with clients.
    pub handshakes: HandshakeCells,
    /// By how much the worker's event loop was late at what it had planned.
    pub lateness: Durations,
    turn: Turn,
    faults: FaultCells,
    calls: CallCells,
    routes: RouteCells,
    retries: Counter,
    causes: [Counter; Cause::ALL.len()],
    listeners: Table<TrafficCells>,
    targets: Table<TargetCells>,
    backends: Table<BackendCells>,
    /// Stages of records that never got a target.
    unrouted: StageCells,
}

impl Default for Cells {
    fn default() -> Self {
        Cells {
            pool: PoolCells::default(),
            connections: ConnectionCells::default(),
            accept_errors: Counter::default(),
            accept_shortages: Counter::default(),
            accept_error: AtomicI32::default(),
            refusals: RefusalCells::default(),
            copies: CopyCells::default(),
            datagrams: DatagramCells::default(),
            cache: CacheCells::default(),
            rates: RateCells::default(),
            ends: EndCells::default(),
            panics: Counter::default(),
            access_dropped: Counter::default(),
            handshakes: HandshakeCells::default(),
            lateness: Durations::default(),
            turn: Turn::default(),
            faults: FaultCells::default(),
            calls: CallCells::default(),
            routes: RouteCells::default(),
            retries: Counter::default(),
            causes: std::array::from_fn(|_| Counter::default()),
            listeners: Table::default(),
            targets: Table::default(),
            backends: Table::default(),
            unrouted: StageCells::default(),
        }
    }
}

impl Cells {
    /// Counts a finished Record: once for its listener, once for its target, once for the backend of its
    /// last attempt, and each kept attempt for its backend. One that did not end well is noted in [`Cells::ends`] beside it.
    ///
    /// Times come from ticks that happened: the whole from `started` (else `accepted`) to `done`, connect
    /// from `picked` to `connected` of attempts that opened a connection, first byte from `sent` to
    /// `first_byte`. Only the owning worker calls this.
    pub fn record(&self, record: &Record) {
        let class = StatusClass::of(record.meaning());
        self.listeners.entry(u32::from(record.listener.0)).count(record, class);
        let start = if record.started == Tick::ZERO { record.accepted } else { record.started };
        let whole = span(start, record.done);
        self.routes.count(record, class, whole);
        let stages = match record.target {
            Some(target) => {
                let cells = self.targets.entry(u32::from(target.0));
                cells.traffic.count(record, class);
                &cells.stages
            }
            None => &self.unrouted,
        };
        if let Some(whole) = whole {
            stages.duration.record(whole);
        }
        if record.cause != Cause::Done {
            self.faults.note(record);
        }
        if let Some(note) = record.cache {
            self.cache.count(note);
        }
        if let (Some(status), Some(target)) = (record.grpc, record.target) {
            self.calls.count(target, status);
        }
        if record.attempts_made > 1 {
            self.retries.add(u64::from(record.attempts_made) - 1);
            self.faults.note_attempts(record);
        }

        let attempts = record.kept_attempts();
        for (place, attempt) in attempts.iter().enumerate() {
            let cells = self.backends.entry(attempt.backend.0);
            if cells.attempts.value() == 0 {
                cells.owner.set(record.target.map(|target| target.0));
            }
            cells.attempts.increment();
            if attempt.outcome != Cause::Done && attempt.outcome.blame() == Blame::Backend {
                cells.failures.increment();
                if place + 1 < attempts.len() {
                    self.ends.try_again(record.target);
                } else if class == StatusClass::ServerError {
                    cells.told.increment();
                }
            }
            if let Some(connect) = connect_time(attempt) {
                stages.connect.record(connect);
            }
            if let Some(first_byte) = first_byte_time(attempt) {
                let place = stages.first_byte.record_at(first_byte);
                cells.first_byte.record(place);
            }
            if place + 1 == attempts.len() {
                cells.traffic.count(record, class);
            }
        }
        // Last: who has seen how it ended finds everything else of it counted.
        self.causes[record.cause as usize].increment();
    }

    /// Goes over to the config of this `number`: under these numbers somebody else is counted from now on. What was counted of backends
    /// and routes is kept for their targets and listeners. Only the owning worker calls this.
    pub fn renew(&self, number: u64, new: &NewNumbers<'_>) {
        self.ends.renew(new.listeners, new.targets);
        self.turn.moving(number, || {
            let is_listener = NumberSet::of(new.listeners.iter().map(|id| id.0));
            let is_target = NumberSet::of(new.targets.iter().map(|id| id.0));
            self.routes.renew((new.listeners, &is_listener), &is_target, new.routes);
            if !is_target.is_empty() {
                // Of backends that are gone with their target as well.
                let all = self.backends.iter();
                all.filter(|(_, cells)| cells.owner.number().is_some_and(|number| is_target.has(number)))
                    .for_each(|(_, cells)| cells.clear());
            }
            for cells in new.backends.iter().filter_map(|id| self.backends.met(id.0)) {
                if let Some(target) = cells.owner.number() {
                    self.targets.entry(target).gone.take(cells);
                }
                cells.clear();
            }
            for id in new.targets {
                self.copies.renew(*id);
                self.faults.renew(*id);
                self.calls.renew(*id);
                self.targets.met(u32::from(id.0)).inspect(|cells| cells.clear());
            }
            for id in new.listeners {
                self.datagrams.renew(*id);
                self.listeners.met(u32::from(id.0)).inspect(|cells| cells.clear());
            }
        });
    }

    /// How many records there were.
    #[must_use]
    pub fn ended(&self) -> u64 {
        self.causes.iter().map(Counter::value).sum()
    }

    /// How many records ended with this cause.
    #[must_use]
    pub fn ended_with(&self, cause: Cause) -> u64 {
        self.causes[cause as usize].value()
    }
}

#[cfg(test)]
mod tests;
