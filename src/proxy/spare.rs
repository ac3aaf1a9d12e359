//! Bytes of one message on its way out whose memory serves the next one of the same worker.

use std::cell::RefCell;
use std::ops::{Deref, DerefMut};
use std::rc::Rc;

/// Things kept for the next taker; more than these go back to the allocator.
const KEPT: usize = 64;

/// Memory that one thing may hold on to, in bytes: a single large head must not cost for ever.
pub const MOST: usize = 8 * 1024;

/// One worker's spare memory.
#[derive(Clone, Default)]
pub struct Shelf {
    spare: Rc<RefCell<Vec<Vec<u8>>>>,
}

impl Shelf {
    /// An empty one, either fresh or with the memory of one that was dropped.
    #[must_use]
    pub fn take(&self) -> Lent {
        let bytes = self.spare.borrow_mut().pop().unwrap_or_default();
        Lent { bytes, home: self.clone() }
    }
}

/// Bytes off a [`Shelf`]; their memory goes back when they are dropped.
pub struct Lent {
    bytes: Vec<u8>,
    home: Shelf,
}

impl Deref for Lent {
    type Target = Vec<u8>;

    fn deref(&self) -> &Vec<u8> {
        &self.bytes
    }
}

impl DerefMut for Lent {
    fn deref_mut(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        let mut spare = self.home.spare.borrow_mut();
        if spare.len() < KEPT && self.bytes.capacity() <= MOST {
            self.bytes.clear();
            spare.push(std::mem::take(&mut self.bytes));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_dropped_serves_the_next_taker_empty() {
        let shelf = Shelf::default();
        let mut first = shelf.take();
        first.extend_from_slice(b"a head");
        let memory = first.as_ptr();
        drop(first);
        let second = shelf.take();
        assert!(second.is_empty() && second.as_ptr() == memory);
        assert!(shelf.take().capacity() == 0, "a second one at the same time is a fresh one");
    }

    #[test]
    fn neither_many_nor_large_ones_are_kept() {
        let shelf = Shelf::default();
        shelf.take().reserve(MOST + 1);
        assert!(shelf.spare.borrow().is_empty());
        drop((0..=KEPT).map(|_| shelf.take()).collect::<Vec<_>>());
        assert_eq!(shelf.spare.borrow().len(), KEPT);
    }
}
