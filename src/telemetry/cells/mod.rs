//! Metric cells: what one worker counted.
//!
//! Each worker owns one [`Cells`] and is the only one that writes it; everybody else holds an `Arc` and
//! reads, summed over workers by [`Readings`]. Nothing is looked up by name: listeners, targets and
//! backends are numbers, and an entry is allocated when a worker first meets its number.

mod cached;
mod copies;
mod counter;
mod ends;
mod histogram;
mod rates;
mod readings;
mod refused;
mod table;
mod totals;

use std::sync::atomic::AtomicI32;

use self::table::Table;
use crate::message::{Attempt, BackendId, Blame, Cause, ListenerId, Record, TargetId};
use crate::tick::Tick;

pub use cached::{CacheCells, CacheReading};
pub use copies::{CopyCells, CopyReading};
pub use counter::{Counter, Gauge};
pub use ends::{EndCells, EndTally};
pub use histogram::{BUCKETS, Distribution, Histogram};
pub use rates::{RateCells, RateReading};
pub use readings::{
    BackendReading, ConnectionReading, PoolReading, Readings, Stages, TargetReading, Traffic,
};
pub use refused::{RefusalCells, RefusedAt};
pub use totals::{Tally, Totals};

/// The first digit of a status (RFC 9110 §15).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum StatusClass {
    /// No status was sent: a TCP connection, or nobody was there to answer.
    #[default]
    None,
    /// 1xx; the end of an upgraded connection counts here as 101.
    Informational,
    /// 2xx.
    Success,
    /// 3xx.
    Redirection,
    /// 4xx.
    ClientError,
    /// 5xx, and everything above as RFC 9110 §15 asks.
    ServerError,
}

impl StatusClass {
    /// Every class, in the order of its number.
    pub const ALL: [StatusClass; 6] = [
        StatusClass::None,
        StatusClass::Informational,
        StatusClass::Success,
        StatusClass::Redirection,
        StatusClass::ClientError,
        StatusClass::ServerError,
    ];

    /// The class of `status`; below 100: [`StatusClass::None`].
    #[must_use]
    pub const fn of(status: u16) -> StatusClass {
        match status {
            0..100 => StatusClass::None,
            100..200 => StatusClass::Informational,
            200..300 => StatusClass::Success,
            300..400 => StatusClass::Redirection,
            400..500 => StatusClass::ClientError,
            500.. => StatusClass::ServerError,
        }
    }
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
}

#[derive(Debug, Default)]
struct BackendCells {
    traffic: TrafficCells,
    attempts: Counter,
    failures: Counter,
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
    cache: CacheCells,
    /// Rate limits.
    pub rates: RateCells,
    /// Ends that are not what their status says.
    pub ends: EndCells,
    /// Tasks that ended in a panic.
    pub panics: Counter,
    /// Access records that this worker had to drop because the writer was behind.
    pub access_dropped: Counter,
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
            cache: CacheCells::default(),
            rates: RateCells::default(),
            ends: EndCells::default(),
            panics: Counter::default(),
            access_dropped: Counter::default(),
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
        let class = StatusClass::of(record.status);
        self.listeners.entry(u32::from(record.listener.0)).count(record, class);
        let stages = match record.target {
            Some(target) => {
                let cells = self.targets.entry(u32::from(target.0));
                cells.traffic.count(record, class);
                &cells.stages
            }
            None => &self.unrouted,
        };
        let start = if record.started == Tick::ZERO { record.accepted } else { record.started };
        if let Some(whole) = span(start, record.done) {
            stages.duration.record(whole);
        }
        self.causes[record.cause as usize].increment();
        if let Some(note) = record.cache {
            self.cache.count(note);
        }
        self.retries.add(u64::from(record.attempts_made.saturating_sub(1)));

        let attempts = record.kept_attempts();
        for (place, attempt) in attempts.iter().enumerate() {
            let cells = self.backends.entry(attempt.backend.0);
            cells.attempts.increment();
            if attempt.outcome.blame() == Blame::Backend {
                cells.failures.increment();
                if place + 1 < attempts.len() {
                    self.ends.try_again(record.target);
                }
            }
            if let Some(connect) = connect_time(attempt) {
                stages.connect.record(connect);
            }
            if let Some(first_byte) = first_byte_time(attempt) {
                stages.first_byte.record(first_byte);
            }
            if place + 1 == attempts.len() {
                cells.traffic.count(record, class);
            }
        }
    }

    /// Counts these anew: their numbers are somebody else's from now on. Only the owning worker calls this.
    pub fn renew(&self, listeners: &[ListenerId], targets: &[TargetId], backends: &[BackendId]) {
        self.ends.renew(listeners, targets);
        for id in listeners {
            self.listeners.met(u32::from(id.0)).inspect(|cells| cells.clear());
        }
        for id in targets {
            self.copies.renew(*id);
            self.targets.met(u32::from(id.0)).inspect(|cells| {
                cells.traffic.clear();
                cells.stages.clear();
            });
        }
        for id in backends {
            self.backends.met(id.0).inspect(|cells| {
                cells.traffic.clear();
                cells.attempts.clear();
                cells.failures.clear();
            });
        }
    }

    /// How many records ended with this cause.
    #[must_use]
    pub fn ended_with(&self, cause: Cause) -> u64 {
        self.causes[cause as usize].value()
    }
}

/// Nanoseconds that opening the connection took; `None` on a pooled one and when it never stood.
pub(super) fn connect_time(attempt: &Attempt) -> Option<u64> {
    if attempt.reused { None } else { span(attempt.picked, attempt.connected) }
}

/// Nanoseconds from the last byte of the request head to the first byte of the answer; `None` when none came.
pub(super) fn first_byte_time(attempt: &Attempt) -> Option<u64> {
    span(attempt.sent, attempt.first_byte)
}

/// The nanoseconds between two points; `None` when one of them did not happen.
pub(super) fn span(from: Tick, to: Tick) -> Option<u64> {
    (from != Tick::ZERO && to != Tick::ZERO).then(|| to.0.saturating_sub(from.0))
}

#[cfg(test)]
mod tests;
