//! Bytes that the store has to answer for: who has them holds them, and gives them back by being dropped.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::chunk::Chunk;

/// Bytes of a chunk; the last one of a body has fewer.
pub(super) const CHUNK: usize = 64 * 1024;
/// The part of what may be held that lies ready in free chunks at most.
const READY: u64 = 32;

/// What a shard of the store has given out.
#[derive(Debug, Default)]
pub(super) struct Holdings {
    bytes: AtomicU64,
    /// Chunks that nobody uses: from body to body they go without the system's help.
    free: Mutex<FreeChunks>,
}

#[derive(Debug, Default)]
struct FreeChunks {
    chunks: Vec<Chunk>,
    most: usize,
}

/// Bytes that somebody has, or may have.
#[derive(Debug)]
pub(super) struct Held {
    holdings: Arc<Holdings>,
    bytes: u64,
}

impl Holdings {
    /// Bytes that are held.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Acquire)
    }

    /// Says how much may be held.
    pub(super) fn resize(&self, memory: u64) {
        let most = usize::try_from(memory / READY / CHUNK as u64).unwrap_or(usize::MAX);
        let surplus = {
            let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
            free.most = most;
            let left = most.min(free.chunks.len());
            free.chunks.split_off(left)
        };
        drop(surplus);
    }

    /// Gives up the chunks that nobody uses.
    pub(super) fn clear(&self) {
        let free = std::mem::take(&mut self.free.lock().unwrap_or_else(PoisonError::into_inner).chunks);
        drop(free);
    }

    /// A chunk that nobody else has. What is in it is of no meaning.
    pub(super) fn chunk(&self) -> Chunk {
        let free = self.free.lock().unwrap_or_else(PoisonError::into_inner).chunks.pop();
        free.unwrap_or_else(|| Chunk::zeroed(CHUNK))
    }

    /// A chunk of these bytes, `CHUNK` at most.
    pub(super) fn chunk_of(&self, bytes: &[u8]) -> Chunk {
        if bytes.len() < CHUNK {
            return Chunk::of(bytes);
        }
        let mut chunk = self.chunk();
        chunk.get_mut().expect("nobody else has it").copy_from_slice(bytes);
        chunk
    }

    /// Takes back a chunk, if it is a whole one that nobody else has.
    pub(super) fn take_back(&self, mut chunk: Chunk) {
        if chunk.len() != CHUNK || chunk.get_mut().is_none() {
            return;
        }
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        if free.chunks.len() < free.most {
            free.chunks.push(chunk);
        }
    }
}

impl Held {
    /// So many more.
    pub(super) fn new(holdings: &Arc<Holdings>, bytes: u64) -> Held {
        holdings.bytes.fetch_add(bytes, Ordering::AcqRel);
        Held { holdings: Arc::clone(holdings), bytes }
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Whose they are.
    pub(super) fn holdings(&self) -> &Holdings {
        &self.holdings
    }

    /// These as well.
    pub(super) fn join(&mut self, mut other: Held) {
        self.bytes += std::mem::take(&mut other.bytes);
    }

    /// Gives back all but so many.
    pub(super) fn shrink(&mut self, most: u64) {
        let back = self.bytes.saturating_sub(most);
        self.bytes -= back;
        self.holdings.bytes.fetch_sub(back, Ordering::AcqRel);
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.shrink(0);
    }
}
