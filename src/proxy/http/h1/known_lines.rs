//! Header lines of requests that came lately. A program says the same behind each of its request lines, in the same bytes: those lines need be read
//! once.
//!
//! Invariants. There are no places, or `PLACES`; what has a place by its last bytes has no other. `run` is empty, or it is all lines of a request of
//! HTTP/1.1 for a path, which stood between its first line and the empty one, `host` is its authority there, and [`parse`] found nothing wrong with
//! them. What it finds depends on no byte before, so whoever comes upon the same bytes between such a line and an empty one, at the end of what has
//! come, may take the same lines.

use crate::message::{Head, LineRun, Span, Version};

use super::parse;

/// Places for lines.
const PLACES: usize = 16;
/// Bytes of lines that are kept. Fewer are read as fast.
const KEPT: std::ops::RangeInclusive<usize> = 40..=1024;
/// Where nothing was of use so often, only every such request is kept for comparison.
const SELDOM: u32 = 8;
/// What a head ends with.
const END: usize = b"\r\n\r\n".len();

/// One worker's known lines.
#[derive(Debug, Default)]
pub struct KnownLines(Vec<KnownRun>);

#[derive(Clone, Debug, Default)]
struct KnownRun {
    /// That of the head that was noted last, whether it was kept or not.
    tag: u64,
    /// Heads with this place since it was of use.
    missed: u32,
    run: LineRun,
    host: Span,
}

impl KnownLines {
    /// Indexes the request's head that `bytes` are, if its lines are known. False: it is to be read. `most`: lines that it may have.
    #[inline]
    pub(super) fn read(&mut self, bytes: &[u8], most: usize, head: &mut Head) -> bool {
        let Some(tag) = tag(bytes) else { return false };
        let Some(known) = self.0.get_mut(place(tag)) else { return false };
        if known.tag != tag || known.run.count() > most || known.run.is_empty() {
            return false;
        }
        let line = bytes.strip_suffix(b"\r\n").and_then(|lines| lines.strip_suffix(known.run.bytes()));
        let is_read =
            line.is_some_and(|line| parse::with_lines(bytes, line.len(), &known.run, known.host, head));
        if is_read {
            known.missed = 0;
        }
        is_read
    }

    /// Another one was read, and is `bytes`: it is kept if one that ends like it was here just before.
    #[inline(never)]
    pub(super) fn note(&mut self, bytes: &[u8], head: &Head) {
        let Some(tag) = tag(bytes) else { return };
        if self.0.is_empty() {
            self.0.resize_with(PLACES, KnownRun::default);
        }
        let known = &mut self.0[place(tag)];
        known.missed = known.missed.wrapping_add(1);
        let is_wanted = std::mem::replace(&mut known.tag, tag) == tag
            && (known.missed <= 2 || known.missed.is_multiple_of(SELDOM))
            && head.version == Version::Http11
            && head.path().first() == Some(&b'/')
            && head.path() == head.target();
        let lines = head.start_line().end as usize;
        if is_wanted && bytes.get(lines..).is_some_and(|lines| KEPT.contains(&lines.len())) {
            head.copy_run(0, &mut known.run);
            known.host = head.authority_span().moved((lines as u32).wrapping_neg());
        }
    }
}

/// What tells heads apart: their last bytes before the end. `None`: it is too short.
#[inline]
fn tag(bytes: &[u8]) -> Option<u64> {
    bytes.get(..bytes.len().wrapping_sub(END))?.last_chunk().map(|last| u64::from_le_bytes(*last))
}

#[inline]
fn place(tag: u64) -> usize {
    (tag.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 60) as usize % PLACES
}

#[cfg(test)]
mod tests;
