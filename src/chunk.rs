//! Memory that many read, and that never changes while they do: a block of the allocator's or, where it is long, one of the system's own.
//!
//! What an allocator is given back stays with it, cut to the length that it had: a cache whose bodies come and go takes a tenth more than
//! is in it by that. A mapping takes whole pages, not one more, and is gone from resident memory the moment nobody has it any more.

use std::ops::Deref;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};

use memmap2::{MmapMut, MmapOptions};

/// From so many bytes on a chunk is mapped: what its last page wastes is an eighth of it at most, and less than its mapping costs.
pub const MAPPED: usize = 16 * 1024;
/// The kernel's bound of mappings where it does not tell (`vm.max_map_count`).
const MAPPINGS: usize = 65_530;

/// Mappings that there are.
static THERE: AtomicUsize = AtomicUsize::new(0);
/// Mappings that there may be: half of what the kernel allows, so that the allocator and threads never come short of them.
static ALLOWED: LazyLock<usize> = LazyLock::new(|| {
    let told = std::fs::read_to_string("/proc/sys/vm/max_map_count").ok();
    told.and_then(|text| text.trim().parse().ok()).unwrap_or(MAPPINGS) / 2
});

/// Bytes that many share.
#[derive(Clone, Debug)]
pub enum Chunk {
    /// A block of the allocator's.
    Block(Arc<[u8]>),
    /// Pages of its own.
    Mapped(Arc<Mapping>),
}

/// Pages that nobody else has.
#[derive(Debug)]
pub struct Mapping(MmapMut);

impl Mapping {
    /// Of so many bytes, which are 0; `None`: the system gives no more of them.
    fn new(length: usize) -> Option<Mapping> {
        let is_one_more = |there| (there < *ALLOWED).then_some(there + 1);
        THERE.try_update(Ordering::Relaxed, Ordering::Relaxed, is_one_more).ok()?;
        // All its pages are there at once: taken one by one as they are written they cost several times that.
        let map = MmapOptions::new().len(length).populate().map_anon();
        if map.is_err() {
            THERE.fetch_sub(1, Ordering::Relaxed);
        }
        map.ok().map(Mapping)
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        THERE.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Chunk {
    /// One of so many bytes, which are 0.
    #[must_use]
    pub fn zeroed(length: usize) -> Chunk {
        match (length >= MAPPED).then(|| Mapping::new(length)).flatten() {
            Some(mapping) => Chunk::Mapped(Arc::new(mapping)),
            None => Chunk::Block(std::iter::repeat_n(0, length).collect()),
        }
    }

    /// One of these bytes.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Chunk {
        if bytes.len() < MAPPED {
            return Chunk::Block(bytes.into());
        }
        let mut chunk = Chunk::zeroed(bytes.len());
        if let Some(room) = chunk.get_mut() {
            room.copy_from_slice(bytes);
        }
        chunk
    }

    /// Its bytes, to be written; `None`: somebody else has it too.
    #[must_use]
    pub fn get_mut(&mut self) -> Option<&mut [u8]> {
        match self {
            Chunk::Block(block) => Arc::get_mut(block),
            Chunk::Mapped(mapping) => Arc::get_mut(mapping).map(|mapping| &mut *mapping.0),
        }
    }
}

impl Deref for Chunk {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match self {
            Chunk::Block(block) => block,
            Chunk::Mapped(mapping) => &mapping.0,
        }
    }
}

/// Bytes of a page of memory.
#[must_use]
pub fn page() -> usize {
    rustix::param::page_size()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_long_has_pages_of_its_own_and_what_is_short_has_none() {
        for length in [0, 1, MAPPED - 1, MAPPED, MAPPED + 1, 1 << 20] {
            let bytes: Vec<u8> = (0..length).map(|at| (at % 251) as u8).collect();
            let (mut chunk, zeroed) = (Chunk::of(&bytes), Chunk::zeroed(length));
            assert!(*chunk == *bytes && zeroed.len() == length && zeroed.iter().all(|byte| *byte == 0));
            assert_eq!(matches!(chunk, Chunk::Mapped(_)), length >= MAPPED, "{length}");
            let other = chunk.clone();
            assert!(chunk.get_mut().is_none() && other.as_ptr() == chunk.as_ptr());
            drop(other);
            assert_eq!(chunk.get_mut().map(|bytes| bytes.len()), Some(length));
        }
    }

    #[test]
    fn a_mapping_is_counted_for_as_long_as_anybody_has_it() {
        // Other tests have some of their own, so it is looked at from both sides.
        let many: Vec<Chunk> = (0..1_000).map(|_| Chunk::zeroed(MAPPED)).collect();
        let there = THERE.load(Ordering::Relaxed);
        assert!(there >= 1_000, "{there}");
        let others = many.clone();
        drop(many);
        assert!(THERE.load(Ordering::Relaxed) >= 1_000);
        drop(others);
        assert!(THERE.load(Ordering::Relaxed) < there);
    }
}
