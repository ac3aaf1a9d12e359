//! What is going to happen, earliest first; what is due at the same moment, in the order it was entered.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::tick::Tick;

/// Events to come.
#[derive(Debug)]
pub(super) struct Calendar<T> {
    heap: BinaryHeap<Reverse<Entry<T>>>,
    entered: u64,
}

/// Compared by its time and its number only.
#[derive(Debug)]
struct Entry<T> {
    at: Tick,
    number: u64,
    what: T,
}

impl<T> Calendar<T> {
    pub(super) fn new() -> Calendar<T> {
        Calendar { heap: BinaryHeap::new(), entered: 0 }
    }

    pub(super) fn enter(&mut self, at: Tick, what: T) {
        self.entered += 1;
        self.heap.push(Reverse(Entry { at, number: self.entered, what }));
    }

    /// When the next event is due.
    pub(super) fn next(&self) -> Option<Tick> {
        self.heap.peek().map(|Reverse(entry)| entry.at)
    }

    pub(super) fn take(&mut self) -> Option<(Tick, T)> {
        self.heap.pop().map(|Reverse(entry)| (entry.at, entry.what))
    }
}

impl<T> Entry<T> {
    fn key(&self) -> (Tick, u64) {
        (self.at, self.number)
    }
}

impl<T> PartialEq for Entry<T> {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl<T> Eq for Entry<T> {}

impl<T> PartialOrd for Entry<T> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Entry<T> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key().cmp(&other.key())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_earliest_comes_first_and_ties_come_in_order() {
        let mut calendar = Calendar::new();
        for (at, what) in [(5, 'c'), (3, 'a'), (5, 'd'), (3, 'b'), (9, 'e')] {
            calendar.enter(Tick(at), what);
        }
        assert_eq!(calendar.next(), Some(Tick(3)));
        let order: String = std::iter::from_fn(|| calendar.take()).map(|(_, what)| what).collect();
        assert_eq!(order, "abcde");
    }
}
