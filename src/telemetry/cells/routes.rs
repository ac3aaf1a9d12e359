//! How requests have ended, by listener and route, and where the time of those has gone that came as far as a target: each is counted
//! once, under the number of its route, or of the way from that to its target, or as one that had none; once that is gone, as one of
//! those that are.

use std::sync::atomic::{AtomicU16, AtomicU32, Ordering};

use super::counter::Counter;
use super::status_class::StatusClass;
use super::table::Table;
use super::times::spans::{RequestTimes, SpanCells};
use crate::message::{ListenerId, Record, RouteId};

/// How many ended with each class of status.
pub type ByClass = [u64; StatusClass::ALL.len()];

/// Whose something was when it was counted; 0: nobody's yet.
#[derive(Debug, Default)]
pub(super) struct CountedFor(AtomicU32);

impl CountedFor {
    /// Only the owning worker calls this.
    #[inline]
    pub(super) fn set(&self, number: Option<u16>) {
        self.0.store(number.map_or(0, |number| u32::from(number) + 1), Ordering::Relaxed);
    }

    pub(super) fn number(&self) -> Option<u32> {
        self.0.load(Ordering::Relaxed).checked_sub(1)
    }
}

#[derive(Debug, Default)]
pub(super) struct ClassCells([Counter; StatusClass::ALL.len()]);

impl ClassCells {
    pub(super) fn clear(&self) {
        self.0.iter().for_each(Counter::clear);
    }

    /// Takes over what another one has. Only the owning worker calls this.
    fn take(&self, other: &ClassCells) {
        for (mine, theirs) in self.0.iter().zip(&other.0) {
            mine.add(theirs.value());
        }
    }

    pub(super) fn add_to(&self, totals: &mut ByClass) {
        add_classes(&self.0, totals);
    }
}

pub(super) fn add_classes(cells: &[Counter; StatusClass::ALL.len()], totals: &mut ByClass) {
    for (total, cell) in totals.iter_mut().zip(cells) {
        *total += cell.value();
    }
}

/// A route, or its way to a target.
#[derive(Debug)]
pub(super) struct RouteRow {
    pub(super) classes: ClassCells,
    pub(super) times: SpanCells,
    /// [`NOBODY`]: nothing was counted yet.
    listener: AtomicU16,
    /// [`NOBODY`]: it leads to none.
    target: AtomicU16,
}

/// The number that many share, so that none of them is told from the others.
const NOBODY: u16 = u16::MAX;

impl Default for RouteRow {
    fn default() -> RouteRow {
        let nobody = || AtomicU16::new(NOBODY);
        RouteRow {
            classes: ClassCells::default(),
            times: SpanCells::default(),
            listener: nobody(),
            target: nobody(),
        }
    }
}

/// What of a listener is no route's.
#[derive(Debug, Default)]
pub(super) struct RestRow {
    /// There was none.
    pub(super) unrouted: ClassCells,
    /// It is gone.
    pub(super) gone: ClassCells,
}

/// What one worker counts of routes.
#[derive(Debug, Default)]
pub(super) struct RouteCells {
    pub(super) routes: Table<RouteRow>,
    pub(super) listeners: Table<RestRow>,
    /// Of targets, by ways that are gone.
    pub(super) gone_times: Table<SpanCells>,
}

impl RouteCells {
    /// Counts a request or a connection. Only the owning worker calls this.
    #[inline]
    pub(super) fn count(&self, record: &Record, class: StatusClass, whole: Option<u64>) {
        let Some(route) = record.route else {
            return self.listeners.entry(record.listener.0.into()).unrouted.0[class as usize].increment();
        };
        let row = self.routes.entry(route.0.into());
        row.listener.store(record.listener.0, Ordering::Relaxed);
        row.classes.0[class as usize].increment();
        if let Some(target) = record.target
            && let Some(whole) = whole
            && let Some(times) = RequestTimes::of(record, whole)
        {
            row.target.store(target.0, Ordering::Relaxed);
            row.times.add(&times);
        }
    }

    /// These numbers are others' from now on. What was counted of routes is kept for their listeners and targets. Only the owning
    /// worker calls this.
    pub(super) fn renew(
        &self,
        (listeners, is_listener): (&[ListenerId], &NumberSet),
        is_target: &NumberSet,
        routes: &[RouteId],
    ) {
        if !(is_listener.is_empty() && is_target.is_empty()) {
            // Nobody asks any more what was counted for somebody who is gone as a whole.
            for (_, row) in self.routes.iter() {
                if row.listener().is_some_and(|number| is_listener.has(number)) {
                    row.listener.store(NOBODY, Ordering::Relaxed);
                }
                if row.target().is_some_and(|number| is_target.has(number)) {
                    // The route has been on this way all the same.
                    row.target.store(NOBODY, Ordering::Relaxed);
                }
            }
        }
        for row in routes.iter().filter_map(|route| self.routes.met(route.0.into())) {
            if let Some(listener) = row.listener() {
                self.listeners.entry(listener).gone.take(&row.classes);
            }
            if let Some(target) = row.target() {
                self.gone_times.entry(target).take(&row.times);
            }
            row.clear();
        }
        for row in listeners.iter().filter_map(|listener| self.listeners.met(listener.0.into())) {
            row.unrouted.clear();
            row.gone.clear();
        }
        self.gone_times
            .iter()
            .filter(|(number, _)| is_target.has(*number))
            .for_each(|(_, times)| times.clear());
    }
}

/// Some numbers, each found at once.
#[derive(Debug, Default)]
pub(super) struct NumberSet(Vec<bool>);

impl NumberSet {
    pub(super) fn of(numbers: impl Iterator<Item = u16>) -> NumberSet {
        let mut marks = Vec::new();
        for place in numbers.map(usize::from) {
            if marks.len() <= place {
                marks.resize(place + 1, false);
            }
            marks[place] = true;
        }
        NumberSet(marks)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn has(&self, number: u32) -> bool {
        self.0.get(number as usize).copied().unwrap_or(false)
    }
}

impl RouteRow {
    /// Whose it is.
    pub(super) fn listener(&self) -> Option<u32> {
        Some(self.listener.load(Ordering::Relaxed)).filter(|number| *number != NOBODY).map(u32::from)
    }

    /// Where it leads.
    pub(super) fn target(&self) -> Option<u32> {
        Some(self.target.load(Ordering::Relaxed)).filter(|number| *number != NOBODY).map(u32::from)
    }

    fn clear(&self) {
        self.classes.clear();
        self.times.clear();
        self.listener.store(NOBODY, Ordering::Relaxed);
        self.target.store(NOBODY, Ordering::Relaxed);
    }
}
