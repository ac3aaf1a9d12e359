//! Who waits for a backend with room: first come, first served, and no more than so many.
//!
//! One queue per target, for all workers; the board keeps it behind its mutex. Whoever leaves frees the place at once.

use std::collections::BTreeMap;

/// Waiters in the order in which they came.
#[derive(Debug)]
pub(super) struct Queue<W> {
    waiting: BTreeMap<u64, W>,
    next: u64,
}

impl<W> Default for Queue<W> {
    fn default() -> Self {
        Queue { waiting: BTreeMap::new(), next: 0 }
    }
}

impl<W> Queue<W> {
    /// Puts `waiter` at the end and gives the number by which it can leave. `None`: `most` are waiting already.
    pub(super) fn join(&mut self, waiter: W, most: usize) -> Option<u64> {
        if self.waiting.len() >= most {
            return None;
        }
        let number = self.next;
        self.next += 1;
        self.waiting.insert(number, waiter);
        Some(number)
    }

    /// Takes out the waiter with this number, if it is still there.
    pub(super) fn leave(&mut self, number: u64) -> Option<W> {
        self.waiting.remove(&number)
    }

    /// Takes out the first waiter that `may` be served.
    pub(super) fn first(&mut self, may: impl Fn(&W) -> bool) -> Option<W> {
        let number = self.waiting.iter().find(|(_, waiter)| may(waiter)).map(|(number, _)| *number)?;
        self.waiting.remove(&number)
    }

    /// How many wait.
    #[must_use]
    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_full_queue_takes_nobody_until_one_has_left() {
        let mut queue = Queue::default();
        let numbers: Vec<u64> = (0..3).map(|waiter| queue.join(waiter, 3).expect("there is room")).collect();
        assert_eq!((queue.join(3, 3), queue.len()), (None, 3));
        assert_eq!((queue.leave(numbers[1]), queue.leave(numbers[1])), (Some(1), None));
        assert!(queue.join(4, 3).is_some());
        let order: Vec<i32> = std::iter::from_fn(|| queue.first(|_| true)).collect();
        assert_eq!(order, [0, 2, 4]);
    }

    #[test]
    fn one_that_can_only_be_served_elsewhere_is_passed_over_and_keeps_its_place() {
        let mut queue = Queue::default();
        for waiter in ["b", "any", "b", "any"] {
            queue.join(waiter, 9);
        }
        assert_eq!(queue.first(|waiter| *waiter != "b"), Some("any"));
        assert_eq!(queue.first(|_| true), Some("b"));
    }

    proptest! {
        /// However they come and leave, it is first come, first served.
        #[test]
        fn it_agrees_with_a_list(steps in prop::collection::vec((0_u8..3, any::<prop::sample::Index>()), 0..200)) {
            let (mut queue, mut model, mut next) = (Queue::default(), Vec::<(u64, u32)>::new(), 0_u32);
            for (step, index) in steps {
                match step {
                    0 => {
                        let joined = queue.join(next, 8);
                        prop_assert_eq!(joined.is_some(), model.len() < 8);
                        model.extend(joined.map(|number| (number, next)));
                        next += 1;
                    }
                    1 if !model.is_empty() => {
                        let (number, waiter) = model.remove(index.index(model.len()));
                        prop_assert_eq!(queue.leave(number), Some(waiter));
                    }
                    _ => {
                        let first = (!model.is_empty()).then(|| model.remove(0).1);
                        prop_assert_eq!(queue.first(|_| true), first);
                    }
                }
                prop_assert_eq!(queue.len(), model.len());
            }
        }
    }
}
