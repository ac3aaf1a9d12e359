//! A stored body: chunks that never change, shared by all who send them.

use std::ops::Range;
use std::sync::Arc;

/// Bytes of a chunk; the last one has fewer. With its two counts it takes no more than 64 KiB: a byte above, and allocators give it half
/// as much again.
pub(super) const CHUNK: usize = 64 * 1024 - 64;

/// A whole body.
#[derive(Clone, Debug, Default)]
pub struct StoredBody {
    chunks: Arc<[Arc<[u8]>]>,
    length: u64,
}

impl StoredBody {
    /// That of these chunks, of which all but the last have `CHUNK` bytes.
    #[must_use]
    pub fn of(chunks: Vec<Arc<[u8]>>) -> StoredBody {
        let length = chunks.iter().map(|chunk| chunk.len() as u64).sum();
        StoredBody { chunks: chunks.into(), length }
    }

    /// That of these bytes.
    #[must_use]
    pub fn whole(bytes: &[u8]) -> StoredBody {
        StoredBody::of(bytes.chunks(CHUNK).map(Arc::from).collect())
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
    pub fn part(&self, at: u64, end: u64) -> Option<(&Arc<[u8]>, Range<usize>)> {
        let end = end.min(self.length);
        if at >= end {
            return None;
        }
        let place = usize::try_from(at).ok()?;
        let chunk = self.chunks.get(place / CHUNK)?;
        let (from, most) = (place % CHUNK, usize::try_from(end - at).unwrap_or(usize::MAX));
        Some((chunk, from..chunk.len().min(from.saturating_add(most))))
    }

    /// Bytes of memory behind it.
    #[must_use]
    pub fn weight(&self) -> u64 {
        // Each chunk has two counts beside its bytes, and a pointer of two words to it.
        self.length + 32 * self.chunks.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_those_of_the_whole() {
        let bytes: Vec<u8> = (0..3 * CHUNK + 17).map(|at| (at % 251) as u8).collect();
        let body = StoredBody::whole(&bytes);
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
}
