//! What became of copies of requests, by the target that gets them.

use std::collections::BTreeMap;

use super::counter::Counter;
use super::table::Table;
use crate::message::{Cause, TargetId};

#[derive(Debug)]
struct CopyRow {
    chosen: Counter,
    ends: [Counter; Cause::ALL.len()],
}

impl Default for CopyRow {
    fn default() -> CopyRow {
        CopyRow { chosen: Counter::default(), ends: std::array::from_fn(|_| Counter::default()) }
    }
}

/// What one worker counts of copies. They are in no record and in no count of requests.
#[derive(Debug, Default)]
pub struct CopyCells(Table<CopyRow>);

impl CopyCells {
    /// Counts a request that was chosen to be copied. Only the owning worker calls this.
    pub fn choose(&self, target: TargetId) {
        self.0.entry(target.0.into()).chosen.increment();
    }

    /// Counts how a copy has ended, or why there was none after all; [`Cause::Done`]: it was answered. Each one that was chosen
    /// ends once. Only the owning worker calls this.
    pub fn end(&self, target: TargetId, cause: Cause) {
        self.0.entry(target.0.into()).ends[cause as usize].increment();
    }

    /// Counts a target anew. Only the owning worker calls this.
    pub(super) fn renew(&self, target: TargetId) {
        self.0.met(target.0.into()).inspect(|row| {
            row.chosen.clear();
            row.ends.iter().for_each(Counter::clear);
        });
    }

    /// Adds what was counted for a target.
    pub(super) fn add_to(&self, target: TargetId, reading: &mut CopyReading) {
        if let Some(row) = self.0.met(target.0.into()) {
            reading.add(&row.reading());
        }
    }

    /// What was counted for each target so far.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, CopyReading)> {
        self.0.iter().map(|(number, row)| (number, row.reading()))
    }
}

impl CopyRow {
    fn reading(&self) -> CopyReading {
        let mut reading = CopyReading { chosen: self.chosen.value(), ends: BTreeMap::new() };
        for (cause, count) in Cause::ALL.iter().zip(&self.ends) {
            if count.value() > 0 {
                reading.ends.insert(cause.token(), count.value());
            }
        }
        reading
    }
}

/// What was counted of the copies for one target.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CopyReading {
    /// Requests that were chosen to be copied. Those that have not ended are in the making, wait or are under way.
    pub chosen: u64,
    /// How they ended, by the names of causes.
    ends: BTreeMap<&'static str, u64>,
}

impl CopyReading {
    /// Copies that were answered.
    #[must_use]
    pub fn answered(&self) -> u64 {
        self.ended_with(Cause::Done)
    }

    /// Copies that ended with this cause.
    #[must_use]
    pub fn ended_with(&self, cause: Cause) -> u64 {
        self.ends.get(cause.token()).copied().unwrap_or_default()
    }

    /// Copies that have ended in any way.
    #[must_use]
    pub fn ended(&self) -> u64 {
        self.ends.values().sum()
    }

    /// The causes of those that were not answered, and how often.
    pub fn failed(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let all = self.ends.iter().map(|(cause, count)| (*cause, *count));
        all.filter(|(cause, _)| *cause != Cause::Done.token())
    }

    pub(super) fn add(&mut self, other: &CopyReading) {
        self.chosen += other.chosen;
        for (cause, count) in &other.ends {
            *self.ends.entry(cause).or_default() += count;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_are_counted_by_target_and_anew_with_another_one() {
        let cells = CopyCells::default();
        let (shadow, other) = (TargetId(2), TargetId(9));
        for cause in [Cause::Done, Cause::MirrorFull, Cause::Done] {
            cells.choose(shadow);
            cells.end(shadow, cause);
        }
        cells.choose(other);
        let mut all = CopyReading::default();
        cells.iter().for_each(|(_, reading)| all.add(&reading));
        assert_eq!((all.chosen, all.answered(), all.ended()), (4, 2, 3));
        assert_eq!(all.failed().collect::<Vec<_>>(), [("mirror_full", 1)]);
        cells.renew(shadow);
        let left: Vec<_> = cells.iter().map(|(number, reading)| (number, reading.chosen)).collect();
        assert_eq!(left, [(2, 0), (9, 1)]);
    }
}
