//! The flight recorder: what became of requests that are over, for whoever asks why.
//!
//! Each worker keeps the latest of those that failed, were tried again or were slow, and one in a thousand of the others, in memory of
//! fixed size that nobody else writes (`ring`). What is kept of one is its Record, the names of what it met, and of its head what
//! is no secret: method, host, path, the names in its query (`mask`), and the header lines that `show_headers` lists. Nothing of bodies.
//!
//! A request that is not kept costs its worker a few comparisons ([`KeptFor::of`]) and a count. Names are written out, since numbers may
//! be somebody else's when somebody asks. Readers are on control.

mod codec;
mod kept;
mod kept_for;
mod mask;
mod ring;
mod slow;

use std::sync::Arc;

use crate::config::model::RecorderConfig;
use crate::message::Record;
use ring::{ENTRY_MAX, EntryRing, PIECE_BYTES};

pub use kept::{KeptRequest, KeptSubject};
pub use kept_for::{KeptFor, ONE_IN};
pub use slow::{LOOK, SlowFinder, SlowMarks};

/// What one worker keeps, under one config.
#[derive(Clone, Debug)]
pub struct FlightRecorder {
    rings: Arc<[EntryRing; 4]>,
    /// Bytes that they may take.
    memory: u64,
    shows: Arc<[Box<str>]>,
    slow: Arc<SlowMarks>,
}

impl FlightRecorder {
    /// One that has kept nothing yet.
    #[must_use]
    pub fn new(config: &RecorderConfig, slow: &Arc<SlowMarks>) -> FlightRecorder {
        let rings = kept_for::shares(config.memory / PIECE_BYTES).map(EntryRing::new);
        FlightRecorder {
            rings: Arc::new(rings),
            memory: config.memory,
            shows: config.show_headers.iter().map(|name| name.as_str().into()).collect(),
            slow: Arc::clone(slow),
        }
    }

    /// The same worker's under another config: what it has kept stays, unless it gets other memory for it.
    #[must_use]
    pub fn under(&self, config: &RecorderConfig) -> FlightRecorder {
        let next = FlightRecorder::new(config, &self.slow);
        if self.memory == config.memory {
            FlightRecorder { rings: Arc::clone(&self.rings), ..next }
        } else {
            next
        }
    }

    /// Calls `take` with each request that is kept for any of these reasons, the latest of each ring first, until it says that this is
    /// enough of that ring. From any thread; nobody waits for it.
    pub fn read(&self, reasons: &[KeptFor], mut take: impl FnMut(KeptRequest) -> bool) {
        for (number, ring) in self.rings.iter().enumerate() {
            if !reasons.iter().any(|reason| reason.ring() == number) {
                continue;
            }
            ring.read(|bytes| match codec::decode(bytes) {
                Some(kept) if reasons.contains(&kept.kept_for) => take(kept),
                Some(_) | None => true,
            });
        }
    }
}

/// What a request that is over looks like to whoever sends traces. It has no header lines.
#[cold]
#[must_use]
pub fn write_down(record: &Record, why: KeptFor, subject: &KeptSubject<'_>) -> Box<[u8]> {
    let mut bytes = Vec::with_capacity(ENTRY_MAX / 4);
    codec::encode((record, why), subject, &[], &mut bytes);
    bytes.into()
}

/// What was written down; `None`: it is nothing of the kind.
#[must_use]
pub fn read_back(bytes: &[u8]) -> Option<KeptRequest> {
    codec::decode(bytes)
}

/// By which a worker writes into its recorder. There is one for each recorder.
#[derive(Debug)]
pub struct RecorderPen {
    recorder: FlightRecorder,
    /// Requests until the next sample.
    left: u64,
    /// Where entries are made.
    scratch: Vec<u8>,
}

impl RecorderPen {
    /// That of `recorder`.
    #[must_use]
    pub fn new(recorder: FlightRecorder) -> RecorderPen {
        RecorderPen { recorder, left: ONE_IN, scratch: Vec::with_capacity(ENTRY_MAX / 4) }
    }

    /// Why `record`, which is over, is to be kept; `None`: it is not.
    #[inline]
    pub fn wants(&mut self, record: &Record) -> Option<KeptFor> {
        let slow = record.target.map_or(u64::MAX, |target| self.recorder.slow.of(target));
        let why = KeptFor::of(record, slow);
        if why.is_some() {
            return why;
        }
        self.left -= 1;
        if self.left > 0 {
            return None;
        }
        self.left = ONE_IN;
        Some(KeptFor::Sampled)
    }

    /// Keeps it.
    #[cold]
    pub fn keep(&mut self, record: &Record, why: KeptFor, subject: &KeptSubject<'_>) {
        self.scratch.clear();
        codec::encode((record, why), subject, &self.recorder.shows, &mut self.scratch);
        self.recorder.rings[why.ring()].push(&self.scratch);
    }
}

#[cfg(test)]
mod tests;
