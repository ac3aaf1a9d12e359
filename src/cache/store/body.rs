//! A stored body: chunks that never change, shared by all who send them.

use std::ops::Range;
use std::sync::Arc;

use crate::chunk::Chunk;

use super::held::{CHUNK, Held};
use super::weight::{block, chunk};

/// A whole body.
#[derive(Clone, Debug, Default)]
pub struct StoredBody {
    /// `None`: it is empty.
    bytes: Option<Arc<Bytes>>,
    length: u64,
}

/// All of them but the last have `CHUNK` bytes.
#[derive(Debug)]
struct Bytes {
    chunks: Box<[Chunk]>,
    /// For as long as anybody reads them.
    held: Held,
}

impl Drop for Bytes {
    fn drop(&mut self) {
        for chunk in std::mem::take(&mut self.chunks) {
            self.held.holdings().take_back(chunk);
        }
    }
}

/// Bytes of memory behind a body of so many bytes.
pub(super) fn weight(length: u64) -> u64 {
    let (whole, rest) = (length / CHUNK as u64, length % CHUNK as u64);
    let list = block((whole + u64::from(rest > 0)) * size_of::<Chunk>() as u64);
    whole * chunk(CHUNK as u64) + chunk(rest) + list + block(16 + size_of::<Bytes>() as u64)
}

impl StoredBody {
    /// That of these chunks, of which all but the last have `CHUNK` bytes. `held`: at least what it [weighs](weight).
    pub(super) fn new(chunks: Vec<Chunk>, mut held: Held) -> StoredBody {
        let length = chunks.iter().map(|chunk| chunk.len() as u64).sum();
        if length == 0 {
            return StoredBody::default();
        }
        held.shrink(weight(length));
        StoredBody { bytes: Some(Arc::new(Bytes { chunks: chunks.into(), held })), length }
    }

    /// That of these bytes.
    pub(super) fn whole(bytes: &[u8], held: Held) -> StoredBody {
        let chunks = bytes.chunks(CHUNK).map(|bytes| held.holdings().chunk_of(bytes)).collect();
        StoredBody::new(chunks, held)
    }

    /// Whether it is the very same, and not one with the same bytes.
    #[must_use]
    pub(super) fn is(&self, other: &StoredBody) -> bool {
        match (&self.bytes, &other.bytes) {
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => false,
        }
    }

    /// Its bytes.
    #[must_use]
    #[inline]
    pub fn length(&self) -> u64 {
        self.length
    }

    /// What of one chunk lies from `at` on, up to `end` at most; `None`: there is nothing.
    #[must_use]
    #[inline]
    pub fn part(&self, at: u64, end: u64) -> Option<(&Chunk, Range<usize>)> {
        let end = end.min(self.length);
        if at >= end {
            return None;
        }
        let place = usize::try_from(at).ok()?;
        let chunk = self.bytes.as_ref()?.chunks.get(place / CHUNK)?;
        let (from, most) = (place % CHUNK, usize::try_from(end - at).unwrap_or(usize::MAX));
        Some((chunk, from..chunk.len().min(from.saturating_add(most))))
    }

    /// Bytes of memory behind it.
    #[must_use]
    pub fn weight(&self) -> u64 {
        self.bytes.as_ref().map_or(0, |bytes| bytes.held.bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::super::held::Holdings;
    use super::*;

    #[test]
    fn parts_are_those_of_the_whole() {
        let bytes: Vec<u8> = (0..3 * CHUNK + 17).map(|at| (at % 251) as u8).collect();
        let held = Held::new(&Arc::new(Holdings::default()), 1 << 20);
        let body = StoredBody::whole(&bytes, held);
        assert_eq!(body.length(), bytes.len() as u64);
        for (from, to) in [(0, bytes.len()), (5, 6), (CHUNK - 1, CHUNK + 1), (2 * CHUNK, 3 * CHUNK), (9, 9)] {
            let (mut at, mut read) = (from as u64, Vec::new());
            while let Some((chunk, range)) = body.part(at, to as u64) {
                at += range.len() as u64;
                read.extend_from_slice(&chunk[range]);
            }
            assert!(read == bytes[from..to], "{from}..{to}");
        }
        assert!(
            body.part(bytes.len() as u64, u64::MAX).is_none() && StoredBody::default().part(0, 9).is_none()
        );
    }

    #[test]
    fn what_a_body_holds_is_given_back_with_its_last_reader_and_its_chunks_serve_the_next_one() {
        let holdings = Arc::new(Holdings::default());
        holdings.resize(1 << 30);
        let body = StoredBody::whole(&vec![7; 2 * CHUNK + 1], Held::new(&holdings, 1 << 20));
        assert_eq!((body.weight(), holdings.bytes()), (weight(2 * CHUNK as u64 + 1), body.weight()));
        let reader = body.clone();
        let place = body.part(0, 1).expect("it has bytes").0.as_ptr();
        drop(body);
        assert!(holdings.bytes() > 0);
        let sent = reader.part(CHUNK as u64, u64::MAX).expect("there is more").0.clone();
        drop(reader);
        assert_eq!(holdings.bytes(), 0);
        assert_eq!(holdings.chunk().as_ptr(), place, "the other one is still being sent");
        assert!(sent.iter().all(|byte| *byte == 7));
    }
}
