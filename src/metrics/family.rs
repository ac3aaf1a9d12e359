//! One family of metrics: what it is called, and who writes its samples.

use super::sources::ScrapeSources;
use crate::telemetry::exposition::{FamilyHead, MetricKind, SampleSink};

/// Bytes after which a piece is sent.
pub(super) const PIECE: usize = 32 * 1024;

/// Writes samples from this place on, until a piece is full. Gives the place where to go on; `None`: there is nothing left.
pub(super) type Write = fn(&ScrapeSources, usize, &mut dyn SampleSink) -> Option<usize>;

/// One family.
#[derive(Clone, Copy, Debug)]
pub struct Family {
    /// What is said of it.
    pub head: FamilyHead,
    /// The labels of its samples, in their order, but for `le`.
    pub labels: &'static [&'static str],
    pub(super) write: Write,
}

impl Family {
    const fn new(
        kind: MetricKind,
        name: &'static str,
        labels: &'static [&'static str],
        help: &'static str,
        write: Write,
    ) -> Family {
        Family { head: FamilyHead { name, kind, help }, labels, write }
    }

    /// One that only grows.
    pub(super) const fn counter(
        name: &'static str,
        labels: &'static [&'static str],
        help: &'static str,
        write: Write,
    ) -> Family {
        Family::new(MetricKind::Counter, name, labels, help, write)
    }

    /// One that goes up and down.
    pub(super) const fn gauge(
        name: &'static str,
        labels: &'static [&'static str],
        help: &'static str,
        write: Write,
    ) -> Family {
        Family::new(MetricKind::Gauge, name, labels, help, write)
    }

    /// Times in buckets.
    pub(super) const fn histogram(
        name: &'static str,
        labels: &'static [&'static str],
        help: &'static str,
        write: Write,
    ) -> Family {
        Family::new(MetricKind::Histogram, name, labels, help, write)
    }
}

/// Has `put` write each of `items` from a place on, until a piece is full.
pub(super) fn each<T>(
    items: &[T],
    from: usize,
    out: &mut dyn SampleSink,
    mut put: impl FnMut(&mut dyn SampleSink, &T),
) -> Option<usize> {
    for (place, item) in items.iter().enumerate().skip(from) {
        put(out, item);
        if out.waiting() >= PIECE {
            return Some(place + 1).filter(|next| *next < items.len());
        }
    }
    None
}
