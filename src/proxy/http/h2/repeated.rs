//! What the requests of a connection have in common: behind its path a program says the same in each of them, and says it in the same bytes.
//!
//! Invariants. `lines` is what `block`, read as the end of a block while the decoder's table had been changed `changes` times, appends to the head of
//! a request that has an authority; reading it changes the table no more, says no Host and has no fault. A table that has been changed as often is
//! the same table, and what else decides about lines, the limits, is the same for the whole connection: so whoever comes upon the same bytes may
//! append the same lines.

use super::hpack::BlockReading;
use crate::message::LineRun;

/// Bytes of a block, and of the lines it says, that are kept.
const MOST_BLOCK: usize = 512;
const MOST_LINES: usize = 1024;
/// Where nothing was repeated so often, only every such request is kept for comparison.
const SELDOM: u32 = 8;

/// The last request's lines, but for its first ones.
#[derive(Debug, Default)]
pub struct RepeatedLines {
    /// `None`: nothing was kept.
    kept: Option<Box<KeptLines>>,
    /// Requests since it was of use.
    missed: u32,
}

#[derive(Debug)]
struct KeptLines {
    block: Vec<u8>,
    changes: u64,
    /// What it counts, in bytes, as HPACK counts.
    counts: usize,
    lines: LineRun,
}

impl RepeatedLines {
    /// The lines that the rest of a block says, if they are the ones that are kept.
    #[inline]
    #[must_use]
    pub fn find(&self, reading: &BlockReading<'_>, changes: u64) -> Option<&LineRun> {
        let kept = self.kept.as_deref()?;
        let is_same = kept.block.len() == reading.rest().len()
            && kept.changes == changes
            && kept.counts <= reading.left()
            && kept.block == reading.rest();
        is_same.then_some(&kept.lines)
    }

    /// They were of use.
    #[inline]
    pub fn found(&mut self) {
        self.missed = 0;
    }

    /// Something else was said: whether it is to be kept.
    pub fn is_wanted(&mut self, block: &[u8]) -> bool {
        self.missed = self.missed.wrapping_add(1);
        (1..=MOST_BLOCK).contains(&block.len()) && (self.missed <= 2 || self.missed.is_multiple_of(SELDOM))
    }

    /// Keeps what a block said behind `reading`: `copy` appends it. `counts`: what it counted.
    pub fn keep(
        &mut self,
        reading: &BlockReading<'_>,
        (changes, counts): (u64, usize),
        copy: impl FnOnce(&mut LineRun),
    ) {
        let (block, lines) = self.kept.take().map_or_else(Default::default, |kept| (kept.block, kept.lines));
        let mut kept = KeptLines { block, changes, counts, lines };
        kept.block.clear();
        kept.block.extend_from_slice(reading.rest());
        copy(&mut kept.lines);
        self.kept = (kept.lines.len() <= MOST_LINES).then(|| Box::new(kept));
    }
}
