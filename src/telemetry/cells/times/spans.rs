//! Where the time of a request has gone: all of it, what backends took, and what is left.

use super::durations::{DurationReading, Durations, Placed};
use crate::message::{Attempt, Record, RecordKind};
use crate::tick::Tick;

/// The times of one request.
#[derive(Clone, Copy, Debug)]
pub(in crate::telemetry::cells) struct RequestTimes {
    whole: Placed,
    own: Placed,
    /// `None`: none was asked.
    backend: Option<Placed>,
}

impl RequestTimes {
    /// Of a request that took `whole` nanoseconds; `None`: it is a tunnel or a connection, which last as long as somebody likes.
    #[inline]
    pub(in crate::telemetry::cells) fn of(record: &Record, whole: u64) -> Option<RequestTimes> {
        if record.kind != RecordKind::Http {
            return None;
        }
        let Some(waited) = waited_for_backends(record, whole) else {
            let whole = Placed::new(whole);
            return Some(RequestTimes { whole, own: whole, backend: None });
        };
        Some(RequestTimes {
            whole: Placed::new(whole),
            own: Placed::new(whole - waited),
            backend: Some(Placed::new(waited)),
        })
    }
}

/// How long a request took, in nanoseconds; `None`: it is not over.
#[must_use]
pub fn whole_time(record: &Record) -> Option<u64> {
    let start = if record.started == Tick::ZERO { record.accepted } else { record.started };
    span(start, record.done)
}

/// How long backends were waited for of `whole`, in nanoseconds: from the first pick until an answer begins, or nobody waits any more. `None`: none
/// was asked.
#[inline]
#[must_use]
pub fn waited_for_backends(record: &Record, whole: u64) -> Option<u64> {
    let attempts = record.kept_attempts();
    let (first, last) = (attempts.first()?, attempts.last()?);
    let waited = span(first.picked, last.first_byte).or_else(|| span(first.picked, record.done));
    Some(waited.unwrap_or(0).min(whole))
}

/// The times of requests on one way to a target.
#[derive(Debug, Default)]
pub(in crate::telemetry::cells) struct SpanCells {
    whole: Durations,
    own: Durations,
    backend: Durations,
}

impl SpanCells {
    #[inline]
    pub(in crate::telemetry::cells) fn add(&self, times: &RequestTimes) {
        self.whole.add(times.whole);
        self.own.add(times.own);
        if let Some(backend) = times.backend {
            self.backend.add(backend);
        }
    }

    /// Takes over what another one has. Only the owning worker calls this.
    pub(in crate::telemetry::cells) fn take(&self, other: &SpanCells) {
        self.whole.take(&other.whole);
        self.own.take(&other.own);
        self.backend.take(&other.backend);
    }

    pub(in crate::telemetry::cells) fn clear(&self) {
        [&self.whole, &self.own, &self.backend].into_iter().for_each(Durations::clear);
    }
}

/// The same as it was read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpanReading {
    /// From the first byte of the request to the last one of its answer.
    pub whole: DurationReading,
    /// What of it no backend was waited for.
    pub own: DurationReading,
    /// From the first pick of a backend to the first byte of an answer, of those that asked one.
    pub backend: DurationReading,
}

impl SpanReading {
    /// Adds another reading.
    pub fn merge(&mut self, other: &SpanReading) {
        self.whole.merge(&other.whole);
        self.own.merge(&other.own);
        self.backend.merge(&other.backend);
    }

    pub(in crate::telemetry::cells) fn add(&mut self, cells: &SpanCells) {
        self.whole.add(&cells.whole);
        self.own.add(&cells.own);
        self.backend.add(&cells.backend);
    }
}

/// Nanoseconds that opening the connection took; `None` on a pooled one and when it never stood.
pub(in crate::telemetry) fn connect_time(attempt: &Attempt) -> Option<u64> {
    if attempt.reused { None } else { span(attempt.picked, attempt.connected) }
}

/// Nanoseconds from the last byte of the request head to the first byte of the answer; `None` when none came.
pub(in crate::telemetry) fn first_byte_time(attempt: &Attempt) -> Option<u64> {
    span(attempt.sent, attempt.first_byte)
}

/// The nanoseconds between two points; `None` when one of them did not happen.
pub(in crate::telemetry) fn span(from: Tick, to: Tick) -> Option<u64> {
    (from != Tick::ZERO && to != Tick::ZERO).then(|| to.0.saturating_sub(from.0))
}
