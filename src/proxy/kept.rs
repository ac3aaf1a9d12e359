//! What is left of a request when it is over, beside its line in the access log and its counts: what the flight recorder keeps, and its
//! trace. Both are few requests' business.

use super::WorkerCtx;
use crate::message::{Head, HeaderField, Record, TraceContext, TraceParent, Tracing};
use crate::telemetry::access_log::RouteName;
use crate::telemetry::recorder::{KeptFor, KeptSubject, write_down};
use crate::telemetry::traces::{Tracer, place};
use crate::tick::Tick;

impl WorkerCtx {
    /// Notes whether a request is traced. `is_trusted`: whoever sent it may decide about that.
    #[inline(always)]
    pub fn begin_trace(&self, record: &mut Record, head: &Head, is_trusted: bool) {
        if self.watched.get().is_traced {
            self.choose(record, head, is_trusted);
        }
    }

    #[inline(never)]
    fn choose(&self, record: &mut Record, head: &Head, is_trusted: bool) {
        let tracer = self.tracer.borrow();
        let Some(tracer) = tracer.as_ref() else { return };
        record.span = tracer.span(record.id, record.head_read);
        let is_sampled = if is_trusted && head.has(HeaderField::TraceParent) {
            decided(tracer, record, head)
        } else {
            tracer.samples(record.span)
        };
        record.tracing = match is_sampled.then(|| tracer.outlet().admits()) {
            Some(true) => Tracing::Sampled,
            Some(false) => Tracing::Surplus,
            None => Tracing::Unsampled,
        };
    }

    /// The place of a request in its trace; `None`: nothing is traced.
    #[inline(always)]
    #[must_use]
    pub fn trace(record: &Record, head: &Head) -> Option<TraceContext> {
        if record.tracing == Tracing::Off { None } else { Some(placed(record, head)) }
    }

    /// The place of a question that no client has asked, such as one for the cache in the background: a trace of its own, which nobody
    /// keeps. `None`: nothing is traced.
    #[must_use]
    pub fn trace_of_its_own(&self, id: u128, now: Tick) -> Option<TraceContext> {
        let tracer = self.tracer.borrow();
        let span = tracer.as_ref()?.span(id, now);
        Some(TraceContext { trace: id, parent: 0, span, flags: 0 })
    }

    /// Keeps a request that is over, unless nothing is to be kept of it.
    #[inline]
    pub fn keep(&self, record: &Record, head: Option<&Head>, route: Option<&RouteName>) {
        let why = match self.recorder.borrow_mut().as_mut() {
            Some(pen) => pen.wants(record),
            None => KeptFor::of(record, u64::MAX),
        };
        if why.is_some() || record.tracing == Tracing::Sampled || self.watched.get().is_timed {
            self.keep_it(record, why, (head, route));
        }
    }

    #[cold]
    fn keep_it(
        &self,
        record: &Record,
        why: Option<KeptFor>,
        (head, route): (Option<&Head>, Option<&RouteName>),
    ) {
        if let Some(pen) = self.timings.borrow().as_ref()
            && pen.draws(self.chance.bits())
        {
            self.with_names(|names| pen.hand_in(record, names));
        }
        let is_sampled = record.tracing == Tracing::Sampled;
        if why.is_none() && !is_sampled {
            return;
        }
        let (mut recorder, tracer) = (self.recorder.borrow_mut(), self.tracer.borrow());
        let snapshot = self.snapshot.borrow();
        let head = head.filter(|_| record.kind.is_of_http());
        let subject = KeptSubject {
            head,
            route,
            names: &snapshot.names,
            config: snapshot.number,
            // Of a request that was malformed nothing is known.
            trace: head.and_then(|head| WorkerCtx::trace(record, head)),
        };
        if let (Some(why), Some(pen)) = (why, recorder.as_mut()) {
            pen.keep(record, why, &subject);
        }
        let is_worth_it = is_sampled || why.is_some_and(KeptFor::is_worth_a_trace);
        if let (true, Some(tracer), Some(_)) = (is_worth_it, tracer.as_ref(), subject.trace)
            && (is_sampled || record.tracing == Tracing::Unsampled && tracer.outlet().admits_beside())
        {
            tracer.outlet().hand_in(|| write_down(record, why.unwrap_or(KeptFor::Sampled), &subject));
        }
    }
}

/// What a trusted proxy has decided, if it has.
#[cold]
fn decided(tracer: &Tracer, record: &Record, head: &Head) -> bool {
    TraceParent::of(head).map_or_else(|| tracer.samples(record.span), TraceParent::is_sampled)
}

#[inline]
fn placed(record: &Record, head: &Head) -> TraceContext {
    place(record, if head.has(HeaderField::TraceParent) { TraceParent::of(head) } else { None })
}
