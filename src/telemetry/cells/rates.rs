//! What rate limits let through and refused, by the number of the limit.

use super::counter::Counter;
use super::table::Table;

#[derive(Debug, Default)]
struct RateRow {
    admitted: Counter,
    refused: Counter,
    would_refuse: Counter,
}

/// What one worker counts of rate limits.
#[derive(Debug, Default)]
pub struct RateCells(Table<RateRow>);

impl RateCells {
    /// Counts a request, or a connection, that a limit let through. Only the owning worker calls this.
    #[inline]
    pub fn admit(&self, limit: u32) {
        self.0.entry(limit).admitted.increment();
    }

    /// Counts one that a limit refused. Only the owning worker calls this.
    pub fn refuse(&self, limit: u32) {
        self.0.entry(limit).refused.increment();
    }

    /// Counts one that a limit on trial would have refused. Only the owning worker calls this.
    pub fn would_refuse(&self, limit: u32) {
        self.0.entry(limit).would_refuse.increment();
    }

    /// Counts these anew: their numbers are other limits' from now on. Only the owning worker calls this.
    pub fn renew(&self, limits: &[u32]) {
        for row in limits.iter().filter_map(|limit| self.0.met(*limit)) {
            [&row.admitted, &row.refused, &row.would_refuse].into_iter().for_each(Counter::clear);
        }
    }

    /// What was counted for each limit so far.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, RateReading)> {
        self.0.iter().map(|(number, row)| {
            let (admitted, refused) = (row.admitted.value(), row.refused.value());
            (number, RateReading { admitted, refused, would_refuse: row.would_refuse.value() })
        })
    }
}

/// What was counted of one rate limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RateReading {
    /// Let through.
    pub admitted: u64,
    /// Refused.
    pub refused: u64,
    /// Let through because it is a `dry_run`, and refused otherwise.
    pub would_refuse: u64,
}

impl RateReading {
    /// Adds what another worker counted.
    pub(super) fn add(&mut self, other: RateReading) {
        self.admitted += other.admitted;
        self.refused += other.refused;
        self.would_refuse += other.would_refuse;
    }
}
