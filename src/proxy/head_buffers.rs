//! Bytes of one message on its way out whose memory serves the next one of the same worker.

use std::cell::RefCell;
use std::ops::{Deref, DerefMut};
use std::rc::Rc;

/// Things kept for the next taker; more than these go back to the allocator.
const KEPT: usize = 64;

/// Memory that one thing may hold on to, in bytes: a single large head must not cost for ever.
pub const MOST: usize = 8 * 1024;

/// One worker's free memory.
#[derive(Clone, Default)]
pub struct HeadBuffers {
    free: Rc<RefCell<Vec<Vec<u8>>>>,
}

impl HeadBuffers {
    /// An empty one, either fresh or with the memory of one that was dropped.
    #[must_use]
    pub fn take(&self) -> HeadBuffer {
        let bytes = self.free.borrow_mut().pop().unwrap_or_default();
        HeadBuffer { bytes, home: self.clone() }
    }
}

/// Bytes off a [`HeadBuffers`]; their memory goes back when they are dropped.
pub struct HeadBuffer {
    bytes: Vec<u8>,
    home: HeadBuffers,
}

impl Deref for HeadBuffer {
    type Target = Vec<u8>;

    fn deref(&self) -> &Vec<u8> {
        &self.bytes
    }
}

impl DerefMut for HeadBuffer {
    fn deref_mut(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }
}

impl Drop for HeadBuffer {
    fn drop(&mut self) {
        let mut free = self.home.free.borrow_mut();
        if free.len() < KEPT && self.bytes.capacity() <= MOST {
            self.bytes.clear();
            free.push(std::mem::take(&mut self.bytes));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_dropped_serves_the_next_taker_empty() {
        let buffers = HeadBuffers::default();
        let mut first = buffers.take();
        first.extend_from_slice(b"a head");
        let memory = first.as_ptr();
        drop(first);
        let second = buffers.take();
        assert!(second.is_empty() && second.as_ptr() == memory);
        assert!(buffers.take().capacity() == 0, "a second one at the same time is a fresh one");
    }

    #[test]
    fn neither_many_nor_large_ones_are_kept() {
        let buffers = HeadBuffers::default();
        buffers.take().reserve(MOST + 1);
        assert!(buffers.free.borrow().is_empty());
        drop((0..=KEPT).map(|_| buffers.take()).collect::<Vec<_>>());
        assert_eq!(buffers.free.borrow().len(), KEPT);
    }
}
