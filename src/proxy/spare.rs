//! Memory of one request that serves the next one of the same worker.

use std::cell::RefCell;
use std::ops::{Deref, DerefMut};
use std::rc::Rc;

/// Things kept for the next taker; more than these go back to the allocator.
const KEPT: usize = 64;

/// Memory that one thing may hold on to, in bytes: a single large head must not cost for ever.
pub const MOST: usize = 8 * 1024;

/// What can be used again.
pub trait Reuse: Default {
    /// Forgets its content, keeps its memory.
    fn clear(&mut self);
    /// Bytes of memory that it holds on to, about.
    fn held(&self) -> usize;
}

impl Reuse for Vec<u8> {
    fn clear(&mut self) {
        Vec::clear(self);
    }

    fn held(&self) -> usize {
        self.capacity()
    }
}

/// One worker's spare things of a kind.
pub struct Shelf<T> {
    spare: Rc<RefCell<Vec<Spare<T>>>>,
}

/// Boxed, so that to pass it on is to move a pointer.
type Spare<T> = Box<T>;

impl<T: Reuse> Shelf<T> {
    /// An empty one, either fresh or with the memory of one that was dropped.
    #[must_use]
    pub fn take(&self) -> Lent<T> {
        let thing = self.spare.borrow_mut().pop().unwrap_or_default();
        Lent { thing: Some(thing), home: self.clone() }
    }
}

impl<T> Default for Shelf<T> {
    fn default() -> Shelf<T> {
        Shelf { spare: Rc::default() }
    }
}

impl<T> Clone for Shelf<T> {
    fn clone(&self) -> Shelf<T> {
        Shelf { spare: Rc::clone(&self.spare) }
    }
}

/// A thing off a [`Shelf`]; goes back when dropped.
pub struct Lent<T: Reuse> {
    /// `None` only within the drop.
    thing: Option<Spare<T>>,
    home: Shelf<T>,
}

impl<T: Reuse> Deref for Lent<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.thing.as_ref().expect("only the drop takes it out")
    }
}

impl<T: Reuse> DerefMut for Lent<T> {
    fn deref_mut(&mut self) -> &mut T {
        self.thing.as_mut().expect("only the drop takes it out")
    }
}

impl<T: Reuse> Drop for Lent<T> {
    fn drop(&mut self) {
        let Some(mut thing) = self.thing.take() else { return };
        let mut spare = self.home.spare.borrow_mut();
        if spare.len() < KEPT && thing.held() <= MOST {
            thing.clear();
            spare.push(thing);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_dropped_serves_the_next_taker_empty() {
        let shelf: Shelf<Vec<u8>> = Shelf::default();
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
        let shelf: Shelf<Vec<u8>> = Shelf::default();
        shelf.take().reserve(MOST + 1);
        assert!(shelf.spare.borrow().is_empty());
        drop((0..=KEPT).map(|_| shelf.take()).collect::<Vec<_>>());
        assert_eq!(shelf.spare.borrow().len(), KEPT);
    }
}
