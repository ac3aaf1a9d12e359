//! Bytes that are left over and wait for their turn.

/// Bytes that are taken from the front. Without any it owns no memory.
#[derive(Default)]
pub(in crate::net) struct Rest {
    bytes: Vec<u8>,
    start: usize,
}

impl Rest {
    pub(super) fn data(&self) -> &[u8] {
        &self.bytes[self.start..]
    }

    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Bytes of memory.
    #[cfg(test)]
    pub(super) fn capacity(&self) -> usize {
        self.bytes.capacity()
    }

    pub(super) fn consume(&mut self, count: usize) {
        self.start += count;
        if self.start >= self.bytes.len() {
            *self = Rest::default();
        }
    }
}
