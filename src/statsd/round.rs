//! What was sent at one time, until it is known whether it has arrived.

use crate::telemetry::statsd::{SeriesKey, StatsdDatagram, StatsdLedger};

/// Datagrams of which nobody has said yet that they did not arrive.
#[derive(Debug, Default)]
pub(super) struct SentRound {
    pub(super) datagrams: usize,
    counters: Vec<(SeriesKey, u64)>,
}

impl SentRound {
    pub(super) fn add(&mut self, datagram: StatsdDatagram) {
        self.datagrams += 1;
        self.counters.extend(datagram.counters);
    }

    /// It has arrived, as far as anybody can know.
    pub(super) fn settle(self, ledger: &mut StatsdLedger) {
        self.counters.into_iter().for_each(|(key, more)| ledger.tell(key, more));
    }
}
