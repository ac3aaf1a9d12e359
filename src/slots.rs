//! Numbers for objects that live on over configs: listeners, targets, backends.
//!
//! A number is an index into tables that are read without a lock (metric cells, idle connections, names), so the
//! numbers in use stay small: the least that is free is given first. Invariants:
//!
//! 1. Nobody has two numbers at a time, and no two have the same one: a [`HeldSlot`] is its number.
//! 2. A number is free again when its slot is dropped, and not before. Whoever writes down a number (a Record) holds
//!    what holds the slot until that is done, so a number in a Record always means one thing.
//! 3. Who gets a number that was somebody's begins with tables that say so: `Snapshot::given` names the new ones.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The numbers of one kind of object.
#[derive(Debug, Default)]
pub struct Slots(Arc<Mutex<Numbers>>);

#[derive(Debug, Default)]
struct Numbers {
    /// Below `next`, and nobody's.
    free: BTreeSet<u32>,
    next: u32,
}

fn lock(numbers: &Mutex<Numbers>) -> MutexGuard<'_, Numbers> {
    // Nothing in here can panic half-way.
    numbers.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Slots {
    /// The least number that is free. Past `u32::MAX` objects at a time, the last one is shared.
    #[must_use]
    pub fn give(&self) -> HeldSlot {
        let mut numbers = lock(&self.0);
        let number = numbers.free.pop_first().unwrap_or_else(|| {
            let number = numbers.next;
            numbers.next = numbers.next.saturating_add(1);
            number
        });
        HeldSlot { number, home: Some(Arc::clone(&self.0)) }
    }
}

/// A number, as long as this lives. The default is number 0 of nobody.
#[derive(Debug, Default)]
pub struct HeldSlot {
    number: u32,
    home: Option<Arc<Mutex<Numbers>>>,
}

impl HeldSlot {
    /// The number.
    #[must_use]
    pub fn number(&self) -> u32 {
        self.number
    }
}

impl Drop for HeldSlot {
    fn drop(&mut self) {
        if let Some(home) = &self.home {
            lock(home).free.insert(self.number);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn nobody_shares_a_number_and_as_many_are_in_use_as_ever_lived_at_once(steps in prop::collection::vec(any::<u8>(), 1..300)) {
            let slots = Slots::default();
            let (mut alive, mut most) = (Vec::new(), 0);
            for step in steps {
                if step % 2 == 0 || alive.is_empty() {
                    alive.push(slots.give());
                } else {
                    alive.swap_remove(usize::from(step) % alive.len());
                }
                most = most.max(alive.len());
                let numbers: HashSet<u32> = alive.iter().map(HeldSlot::number).collect();
                prop_assert_eq!(numbers.len(), alive.len());
                prop_assert!(numbers.iter().all(|&number| (number as usize) < most));
            }
        }
    }

    #[test]
    fn threads_that_give_and_take_never_meet_at_a_number() {
        let (slots, taken) = (Slots::default(), Mutex::new(HashSet::new()));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..2000 {
                        let slot = slots.give();
                        assert!(taken.lock().expect("no panic").insert(slot.number()));
                        assert!(taken.lock().expect("no panic").remove(&slot.number()));
                    }
                });
            }
        });
        assert!(lock(&slots.0).next <= 4);
    }
}
