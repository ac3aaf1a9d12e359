//! What calls of gRPC have ended with, by target. A request that is none costs nothing here.

use super::counter::Counter;
use super::table::Table;
use crate::config::model::GrpcStatus;
use crate::message::TargetId;

#[derive(Debug)]
struct CallRow([Counter; GrpcStatus::ALL.len()]);

impl Default for CallRow {
    fn default() -> CallRow {
        CallRow(std::array::from_fn(|_| Counter::default()))
    }
}

/// What one worker counts of them.
#[derive(Debug, Default)]
pub(super) struct CallCells(Table<CallRow>);

impl CallCells {
    /// Counts the end of a call. Only the owning worker calls this.
    pub(super) fn count(&self, target: TargetId, status: GrpcStatus) {
        self.0.entry(target.0.into()).0[status as usize].increment();
    }

    /// Counts a target anew. Only the owning worker calls this.
    pub(super) fn renew(&self, target: TargetId) {
        self.0.met(target.0.into()).inspect(|row| row.0.iter().for_each(Counter::clear));
    }

    /// Adds what was counted of a target.
    pub(super) fn add_to(&self, target: TargetId, reading: &mut CallReading) {
        let Some(row) = self.0.met(target.0.into()) else { return };
        for (total, count) in reading.0.iter_mut().zip(&row.0) {
            *total += count.value();
        }
    }
}

/// What was counted of one target.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallReading([u64; GrpcStatus::ALL.len()]);

impl CallReading {
    /// The statuses that were met, and how often.
    pub fn statuses(&self) -> impl Iterator<Item = (GrpcStatus, u64)> {
        GrpcStatus::ALL.iter().copied().zip(self.0).filter(|(_, count)| *count > 0)
    }
}
