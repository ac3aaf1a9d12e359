//! What did not end well, by target and cause, and what was tried again. Counted on the way of failure only.

use super::counter::Counter;
use super::table::Table;
use crate::message::{Cause, Record, TargetId};

#[derive(Debug)]
struct FaultRow {
    causes: [Counter; Cause::ALL.len()],
    retries: Counter,
    hedges: Counter,
}

impl Default for FaultRow {
    fn default() -> FaultRow {
        let causes = std::array::from_fn(|_| Counter::default());
        FaultRow { causes, retries: Counter::default(), hedges: Counter::default() }
    }
}

/// What one worker counts of it.
#[derive(Debug, Default)]
pub(super) struct FaultCells {
    targets: Table<FaultRow>,
    /// Of what never got a target.
    early: FaultRow,
}

impl FaultCells {
    fn row(&self, target: Option<TargetId>) -> &FaultRow {
        target.map_or(&self.early, |target| self.targets.entry(target.0.into()))
    }

    /// Counts an end that is not [`Cause::Done`]. Only the owning worker calls this.
    #[cold]
    pub(super) fn note(&self, record: &Record) {
        self.row(record.target).causes[record.cause as usize].increment();
    }

    /// Counts the attempts beyond the first. Only the owning worker calls this.
    #[cold]
    pub(super) fn note_attempts(&self, record: &Record) {
        let beyond = u64::from(record.attempts_made.saturating_sub(1));
        // One of the two was sooner than the other.
        let raced =
            record.kept_attempts().iter().filter(|one| one.outcome == Cause::Overtaken).count() as u64;
        let row = self.row(record.target);
        row.hedges.add(raced.min(beyond));
        row.retries.add(beyond - raced.min(beyond));
    }

    /// Counts a target anew. Only the owning worker calls this.
    pub(super) fn renew(&self, target: TargetId) {
        self.targets.met(target.0.into()).inspect(|row| {
            row.causes.iter().chain([&row.retries, &row.hedges]).for_each(Counter::clear);
        });
    }

    /// Adds what was counted of a target, or of what never got one.
    pub(super) fn add_to(&self, target: Option<TargetId>, reading: &mut FaultReading) {
        let row = match target {
            Some(target) => self.targets.met(target.0.into()),
            None => Some(&self.early),
        };
        let Some(row) = row else { return };
        for (total, count) in reading.causes.iter_mut().zip(&row.causes) {
            *total += count.value();
        }
        reading.retries += row.retries.value();
        reading.hedges += row.hedges.value();
    }
}

/// What was counted of one target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FaultReading {
    causes: [u64; Cause::ALL.len()],
    /// Attempts after one that had failed.
    pub retries: u64,
    /// Attempts beside one that was slow.
    pub hedges: u64,
}

impl Default for FaultReading {
    fn default() -> FaultReading {
        FaultReading { causes: [0; Cause::ALL.len()], retries: 0, hedges: 0 }
    }
}

impl FaultReading {
    /// The causes that were met, and how often.
    pub fn causes(&self) -> impl Iterator<Item = (Cause, u64)> {
        Cause::ALL.iter().copied().zip(self.causes).filter(|(_, count)| *count > 0)
    }
}
