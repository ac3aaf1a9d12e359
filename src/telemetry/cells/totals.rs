//! How many requests and errors each listener, target and backend has had, over all workers: little enough to be read every few
//! seconds and kept, for rates.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Cells, StatusClass, TrafficCells};
use crate::message::{BackendId, ListenerId, TargetId};

/// Requests, and those of them that were errors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Requests, tunnels and TCP connections that ended; of a backend: attempts.
    pub requests: u64,
    /// Answers from 500 on; of a backend: attempts that ended in its fault.
    pub errors: u64,
}

impl Tally {
    fn add(&mut self, cells: &TrafficCells) {
        self.requests += cells.by_class.iter().map(super::Counter::value).sum::<u64>();
        self.errors += cells.by_class[StatusClass::ServerError as usize].value();
    }

    /// What has come since `before`. A number that was given to somebody else in between counts from zero.
    #[must_use]
    pub fn since(self, before: Tally) -> Tally {
        if self.requests < before.requests || self.errors < before.errors {
            return self;
        }
        Tally { requests: self.requests - before.requests, errors: self.errors - before.errors }
    }
}

/// What all workers have counted at one moment. Who was never met has nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    listeners: BTreeMap<u32, Tally>,
    targets: BTreeMap<u32, Tally>,
    backends: BTreeMap<u32, Tally>,
}

impl Totals {
    /// Reads the cells of every worker and adds them up.
    #[must_use]
    pub fn sum(workers: &[Arc<Cells>]) -> Totals {
        let mut all = Totals::default();
        for cells in workers {
            for (number, traffic) in cells.listeners.iter() {
                all.listeners.entry(number).or_default().add(traffic);
            }
            for (number, target) in cells.targets.iter() {
                all.targets.entry(number).or_default().add(&target.traffic);
            }
            for (number, backend) in cells.backends.iter() {
                let total = all.backends.entry(number).or_default();
                total.requests += backend.attempts.value();
                total.errors += backend.failures.value();
            }
        }
        all
    }

    /// Those of a listener.
    #[must_use]
    pub fn listener(&self, id: ListenerId) -> Tally {
        self.listeners.get(&u32::from(id.0)).copied().unwrap_or_default()
    }

    /// Those of a target.
    #[must_use]
    pub fn target(&self, id: TargetId) -> Tally {
        self.targets.get(&u32::from(id.0)).copied().unwrap_or_default()
    }

    /// Those of a backend.
    #[must_use]
    pub fn backend(&self, id: BackendId) -> Tally {
        self.backends.get(&id.0).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Record;

    #[test]
    fn totals_are_those_of_all_workers_and_differences_begin_anew_with_a_number() {
        let workers: Vec<Arc<Cells>> = (0..2).map(|_| Arc::default()).collect();
        for (worker, status) in [(0, 200), (1, 502), (1, 204)] {
            let record = Record { status, target: Some(TargetId(3)), ..Record::default() };
            workers[worker].record(&record);
        }
        let totals = Totals::sum(&workers);
        assert_eq!(totals.target(TargetId(3)), Tally { requests: 3, errors: 1 });
        assert_eq!(totals.target(TargetId(4)), Tally::default());
        let before = Tally { requests: 1, errors: 1 };
        assert_eq!(totals.target(TargetId(3)).since(before), Tally { requests: 2, errors: 0 });
        let other = Tally { requests: 900, errors: 0 };
        assert_eq!(totals.target(TargetId(3)).since(other), totals.target(TargetId(3)));
    }
}
