//! What became of datagrams, by the listener that they came in on.

use super::counter::Counter;
use super::table::Table;
use crate::message::ListenerId;

/// Why a datagram was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum DatagramDrop {
    /// More strangers came at once than were let in at once.
    Crowded,
    /// Its client may have no flow: a list, a limit, or no flow that makes way.
    Refused,
    /// No backend could be given, or reached.
    NoBackend,
    /// A client that may be forged has had `limits.reply_factor` times what it has sent.
    ReplyFactor,
    /// It is too long for the way to the backend.
    TooLong,
    /// The kernel did not take it.
    Unsent,
}

impl DatagramDrop {
    /// All of them, in the order of their numbers.
    pub const ALL: &'static [DatagramDrop] = &[
        DatagramDrop::Crowded,
        DatagramDrop::Refused,
        DatagramDrop::NoBackend,
        DatagramDrop::ReplyFactor,
        DatagramDrop::TooLong,
        DatagramDrop::Unsent,
    ];

    /// The name in metrics and status.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            DatagramDrop::Crowded => "crowded",
            DatagramDrop::Refused => "refused",
            DatagramDrop::NoBackend => "no_backend",
            DatagramDrop::ReplyFactor => "reply_factor",
            DatagramDrop::TooLong => "too_long",
            DatagramDrop::Unsent => "unsent",
        }
    }
}

/// What one worker counts of the datagrams of one listener. Only that worker writes.
#[derive(Debug, Default)]
pub struct DatagramRowCells {
    received: Counter,
    passed: Counter,
    sent: Counter,
    evicted: Counter,
    dropped: [Counter; DatagramDrop::ALL.len()],
}

impl DatagramRowCells {
    /// Clients have sent some.
    #[inline]
    pub fn receive(&self, count: u64) {
        self.received.add(count);
    }

    /// They were passed on to a backend.
    #[inline]
    pub fn pass(&self, count: u64) {
        self.passed.add(count);
    }

    /// Some were sent to a client.
    #[inline]
    pub fn send(&self, count: u64) {
        self.sent.add(count);
    }

    /// Some were dropped, in whichever direction.
    #[cold]
    pub fn drop(&self, why: DatagramDrop, count: u64) {
        self.dropped[why as usize].add(count);
    }

    /// A flow has made way for another.
    #[cold]
    pub fn evict(&self) {
        self.evicted.increment();
    }

    fn clear(&self) {
        [&self.received, &self.passed, &self.sent, &self.evicted]
            .into_iter()
            .chain(&self.dropped)
            .for_each(Counter::clear);
    }
}

/// What one worker counts of datagrams.
#[derive(Debug, Default)]
pub struct DatagramCells(Table<DatagramRowCells>);

impl DatagramCells {
    /// Of a listener.
    #[inline]
    pub fn of(&self, listener: ListenerId) -> &DatagramRowCells {
        self.0.entry(listener.0.into())
    }

    /// Counts a listener anew. Only the owning worker calls this.
    pub(super) fn renew(&self, listener: ListenerId) {
        self.0.met(listener.0.into()).inspect(|row| row.clear());
    }

    /// Adds what was counted for a listener.
    pub(super) fn add_to(&self, listener: ListenerId, reading: &mut DatagramReading) {
        if let Some(row) = self.0.met(listener.0.into()) {
            reading.add(&row.reading());
        }
    }
}

impl DatagramRowCells {
    fn reading(&self) -> DatagramReading {
        DatagramReading {
            received: self.received.value(),
            passed: self.passed.value(),
            sent: self.sent.value(),
            evicted: self.evicted.value(),
            dropped: std::array::from_fn(|place| self.dropped[place].value()),
        }
    }
}

/// What was counted of the datagrams of one listener.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DatagramReading {
    /// That clients have sent.
    pub received: u64,
    /// Those of them that were passed on to backends.
    pub passed: u64,
    /// That were sent to clients.
    pub sent: u64,
    /// Flows that have made way for others.
    pub evicted: u64,
    dropped: [u64; DatagramDrop::ALL.len()],
}

impl DatagramReading {
    /// How many were dropped for this reason.
    #[must_use]
    pub fn dropped(&self, why: DatagramDrop) -> u64 {
        self.dropped[why as usize]
    }

    pub(super) fn add(&mut self, other: &DatagramReading) {
        self.received += other.received;
        self.passed += other.passed;
        self.sent += other.sent;
        self.evicted += other.evicted;
        self.dropped.iter_mut().zip(&other.dropped).for_each(|(all, one)| *all += one);
    }
}
