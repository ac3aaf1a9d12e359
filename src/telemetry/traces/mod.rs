//! What workers have to do with traces: which requests are traced, what their spans are called, and that what becomes of them is handed
//! to whoever sends it. Everything else is made of that, later and elsewhere (`crate::traces`).
//!
//! A request that comes in no trace begins one: its own number is the trace's. The numbers of spans follow from the request's number, the
//! time that it began and a secret of the process: the request's own, and of that those of its attempts with the times at which their
//! backends were picked. Whether a request is sampled follows from its span's, so no client can choose to be.

mod outlet;

use std::sync::Arc;

use crate::config::model::Share;
use crate::message::{Record, TraceContext, TraceParent, Tracing};
use crate::tick::Tick;

pub use outlet::{EndedRequest, TraceCounts, TraceOutlet};

/// What workers trace under one config.
#[derive(Clone, Debug)]
pub struct Tracer {
    /// A number below this is sampled, of all that 64 bits can be.
    threshold: u64,
    outlet: Arc<TraceOutlet>,
}

impl Tracer {
    /// One that samples so many requests, and hands what became of them to `outlet`.
    #[must_use]
    pub fn new(sample: Option<Share>, outlet: &Arc<TraceOutlet>) -> Tracer {
        let millionths = u64::from(sample.map_or(0, Share::millionths));
        // Of all of them 2⁶⁴, which is one too many.
        let threshold = (u128::from(millionths) << 64) / 1_000_000;
        Tracer { threshold: u64::try_from(threshold).unwrap_or(u64::MAX), outlet: Arc::clone(outlet) }
    }

    /// Where ended requests are handed over.
    #[must_use]
    pub fn outlet(&self) -> &TraceOutlet {
        &self.outlet
    }

    /// Whether a request with this span is traced, where nobody else has decided about it.
    #[inline]
    #[must_use]
    pub fn samples(&self, span: u64) -> bool {
        // Not the span's own number: then those that are sampled would begin alike.
        span.wrapping_mul(MIX) <= self.threshold && self.threshold > 0
    }

    /// The number of the span of a request whose head was complete at `read`; never zero.
    #[inline]
    #[must_use]
    pub fn span(&self, id: u128, read: Tick) -> u64 {
        // Two requests may have one number, if a trusted proxy gives it to both.
        let (high, low) = ((id >> 64) as u64, id as u64);
        mix(high ^ self.outlet.secret, low ^ read.0)
    }
}

/// The place of a request in its trace, which it came in from `parent` or begins.
#[inline]
#[must_use]
pub fn place(record: &Record, parent: Option<TraceParent>) -> TraceContext {
    let span = record.span;
    let sampled = if record.tracing == Tracing::Sampled { TraceParent::SAMPLED } else { 0 };
    match parent {
        None => TraceContext { trace: record.id, parent: 0, span, flags: sampled },
        Some(parent) => {
            let flags = sampled | parent.flags & TraceParent::RANDOM;
            TraceContext { trace: parent.trace, parent: parent.span, span, flags }
        }
    }
}

/// The number of a span within that of a request: of the attempt whose backend was picked at this time; never zero.
#[inline]
#[must_use]
pub fn attempt_span(request: u64, picked: Tick) -> u64 {
    mix(request, picked.0 ^ MIX)
}

/// The same of the question to another service whether its client may come in.
#[must_use]
pub fn question_span(request: u64) -> u64 {
    mix(request, !MIX)
}

/// The same of a part of a request or of an attempt, which has no number but a kind.
#[must_use]
pub fn part_span(whole: u64, kind: u64) -> u64 {
    mix(whole, !kind)
}

/// The golden ratio in 64 bits: odd, and without a pattern.
const MIX: u64 = 0x9e37_79b9_7f4a_7c15;

/// A number that both go into, in no way that can be turned back without one of them.
#[inline]
fn mix(one: u64, other: u64) -> u64 {
    let product = u128::from(one ^ MIX) * u128::from(other ^ 0xd1b5_4a32_d192_ed03);
    // One of so many is a zero, which is no number of a span.
    ((product >> 64) as u64 ^ product as u64).max(1)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn numbers_of_spans_are_all_different() {
        let outlet = Arc::new(TraceOutlet::new(11).0);
        let tracer = Tracer::new(None, &outlet);
        let mut seen = HashSet::new();
        for id in 0..1000 {
            let request = tracer.span(id << 64 | id, Tick(7));
            assert!(request != 0 && seen.insert(request));
            for picked in 1..5 {
                assert!(seen.insert(attempt_span(request, Tick(1_000_000 * picked))));
            }
            // The same number again, from a proxy that repeats a request.
            assert!(seen.insert(tracer.span(id << 64 | id, Tick(8))));
        }
    }

    #[test]
    fn so_many_are_sampled_as_were_asked_for() {
        let outlet = Arc::new(TraceOutlet::new(23).0);
        for (share, expected) in
            [(None, 0..=0), (Some(10_000), 900..=1100), (Some(1_000_000), 100_000..=100_000)]
        {
            let tracer = Tracer::new(share.and_then(Share::from_millionths), &outlet);
            let sampled = (0..100_000).filter(|&id| tracer.samples(tracer.span(id * 3, Tick(7)))).count();
            assert!(expected.contains(&sampled), "{share:?}: {sampled}");
        }
    }

    #[test]
    fn a_request_takes_its_place_in_the_trace_it_came_in() {
        let unsampled = Record { id: 9, span: 4, tracing: Tracing::Unsampled, ..Record::default() };
        let sampled = Record { id: 9, span: 4, tracing: Tracing::Sampled, ..Record::default() };
        let own = place(&sampled, None);
        assert_eq!((own.trace, own.parent, own.span, own.flags), (9, 0, 4, 1));
        let parent = TraceParent { trace: 77, span: 5, flags: 0xff };
        let of = |record: &Record| {
            let context = place(record, Some(parent));
            (context.trace, context.parent, context.flags)
        };
        assert_eq!(of(&sampled), (77, 5, 3));
        assert_eq!(of(&unsampled), (77, 5, 2), "who it came from does not decide here");
    }
}
