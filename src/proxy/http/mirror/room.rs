//! How much room there is for copies. Nobody ever waits for room: what finds none is dropped by whoever has made it.
//!
//! Invariants, of one worker, whose tasks take turns (nothing here is held over an `await`):
//!
//! 1. [`Lanes`]: of the copies for one target at most [`UNDER_WAY`] are under way and at most [`WAITING`] wait. One waits only
//!    while as many as may be are under way.
//! 2. Whoever was told to begin holds one place of its lane until [`Lanes::next`] gives it nothing more, or it calls
//!    [`Lanes::leave`]. The last one to leave takes those with it that wait, so nobody waits who is never asked for.
//! 3. A lane in which nothing is does not exist: lanes do not pile up from one config to the next.
//! 4. [`Room`]: the bytes of all [`Load`]s that exist together are at most [`BYTES`].

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::rc::Rc;

use crate::message::TargetId;

/// Copies under way at once, of one worker to one target.
pub const UNDER_WAY: usize = 64;
/// Copies that wait behind those.
pub const WAITING: usize = 256;
/// Bytes of all copies of one worker: in the making, waiting and under way.
pub const BYTES: usize = 8 * 1024 * 1024;

/// What becomes of a copy that is ready.
#[derive(Debug, PartialEq, Eq)]
pub enum Entered<T> {
    /// It is sent at once, by whoever was told.
    Begin(T),
    /// It waits.
    Wait,
    /// There is no room for it.
    Full(T),
}

/// Copies by the target that gets them.
#[derive(Debug)]
pub struct Lanes<T>(RefCell<HashMap<TargetId, Lane<T>>>);

#[derive(Debug)]
struct Lane<T> {
    under_way: usize,
    waiting: VecDeque<T>,
}

impl<T> Default for Lanes<T> {
    fn default() -> Lanes<T> {
        Lanes(RefCell::default())
    }
}

impl<T> Default for Lane<T> {
    fn default() -> Lane<T> {
        Lane { under_way: 0, waiting: VecDeque::new() }
    }
}

impl<T> Lanes<T> {
    /// Whether one more for this target would be dropped.
    #[must_use]
    pub fn is_full(&self, target: TargetId) -> bool {
        self.0.borrow().get(&target).is_some_and(|lane| lane.waiting.len() >= WAITING)
    }

    /// Takes in a copy.
    pub fn enter(&self, target: TargetId, copy: T) -> Entered<T> {
        let mut lanes = self.0.borrow_mut();
        let lane = lanes.entry(target).or_default();
        if lane.under_way < UNDER_WAY {
            lane.under_way += 1;
            Entered::Begin(copy)
        } else if lane.waiting.len() < WAITING {
            lane.waiting.push_back(copy);
            Entered::Wait
        } else {
            Entered::Full(copy)
        }
    }

    /// The next one for whoever is done with one; `None`: its place is free again.
    pub fn next(&self, target: TargetId) -> Option<T> {
        let mut lanes = self.0.borrow_mut();
        let lane = lanes.get_mut(&target)?;
        let next = lane.waiting.pop_front();
        if next.is_none() {
            lane.under_way = lane.under_way.saturating_sub(1);
            if lane.under_way == 0 {
                lanes.remove(&target);
            }
        }
        next
    }

    /// Gives a place back in the middle of a copy. Gives those that nobody is left for.
    pub fn leave(&self, target: TargetId) -> VecDeque<T> {
        let mut lanes = self.0.borrow_mut();
        let Some(lane) = lanes.get_mut(&target) else { return VecDeque::new() };
        lane.under_way = lane.under_way.saturating_sub(1);
        if lane.under_way > 0 {
            return VecDeque::new();
        }
        lanes.remove(&target).map(|lane| lane.waiting).unwrap_or_default()
    }

    /// Copies under way and waiting, over all targets.
    #[must_use]
    pub fn count(&self) -> (usize, usize) {
        let lanes = self.0.borrow();
        lanes.values().fold((0, 0), |(under_way, waiting), lane| {
            (under_way + lane.under_way, waiting + lane.waiting.len())
        })
    }
}

/// The memory that copies may take.
#[derive(Clone, Debug, Default)]
pub struct Room(Rc<Cell<usize>>);

impl Room {
    /// Nothing yet, of which more can be asked for.
    #[must_use]
    pub fn load(&self) -> Load {
        Load { room: self.clone(), bytes: 0 }
    }

    /// Bytes that are taken.
    #[must_use]
    pub fn taken(&self) -> usize {
        self.0.get()
    }
}

/// What one copy takes of the room; it goes back when this is dropped.
#[derive(Debug)]
pub struct Load {
    room: Room,
    bytes: usize,
}

impl Load {
    /// Nothing of the same room.
    #[must_use]
    pub fn another(&self) -> Load {
        self.room.load()
    }

    /// Takes over what another one of the same room has.
    pub fn join(&mut self, mut other: Load) {
        self.bytes += std::mem::take(&mut other.bytes);
    }

    /// Takes so much more. False: there is not so much, and nothing is taken.
    #[must_use]
    pub fn grow(&mut self, bytes: usize) -> bool {
        let taken = self.room.taken();
        if bytes > BYTES - taken.min(BYTES) {
            return false;
        }
        self.room.0.set(taken + bytes);
        self.bytes += bytes;
        true
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.room.0.set(self.room.taken().saturating_sub(self.bytes));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SHADOW: TargetId = TargetId(3);

    #[test]
    fn so_many_are_under_way_so_many_wait_and_the_rest_is_dropped() {
        let lanes = Lanes::default();
        for number in 0..UNDER_WAY {
            assert_eq!(lanes.enter(SHADOW, number), Entered::Begin(number));
        }
        for number in 0..WAITING {
            assert!(!lanes.is_full(SHADOW));
            assert_eq!(lanes.enter(SHADOW, number), Entered::Wait);
        }
        assert!(lanes.is_full(SHADOW) && !lanes.is_full(TargetId(4)));
        assert_eq!(lanes.enter(SHADOW, 7), Entered::Full(7));
        // Another target is none the worse for it.
        assert_eq!(lanes.enter(TargetId(4), 8), Entered::Begin(8));
        assert_eq!(lanes.next(SHADOW), Some(0));
        assert_eq!(lanes.enter(SHADOW, 9), Entered::Wait);
        assert_eq!(lanes.count(), (UNDER_WAY + 1, WAITING));
    }

    #[test]
    fn bytes_are_taken_once_and_given_back() {
        let room = Room::default();
        let (mut one, mut other) = (room.load(), room.load());
        assert!(one.grow(BYTES - 10) && other.grow(10) && !other.grow(1) && other.grow(0));
        assert_eq!(room.taken(), BYTES);
        drop(one);
        assert_eq!(room.taken(), 10);
        assert!(!other.grow(usize::MAX) && other.grow(BYTES - 10));
        let mut third = room.load();
        third.join(other);
        assert_eq!(room.taken(), BYTES);
        drop(third);
        assert_eq!(room.taken(), 0);
    }

    proptest! {
        /// Whatever comes and goes in whichever order, the invariants hold and every copy is somewhere once.
        #[test]
        fn any_order_of_turns_keeps_the_invariants(turns in prop::collection::vec((0u8..4, 0u16..2), 1..2000)) {
            let lanes = Lanes::default();
            let mut busy = [0usize; 2];
            let mut made = 0usize;
            let (mut over, mut dropped) = (0usize, 0usize);
            for (turn, target) in turns {
                let id = TargetId(target);
                let at = usize::from(target);
                match turn {
                    // More come than go.
                    0 | 1 => {
                        made += 1;
                        let was_full = lanes.is_full(id);
                        match lanes.enter(id, made) {
                            Entered::Begin(_) => busy[at] += 1,
                            Entered::Wait => prop_assert!(busy[at] == UNDER_WAY && !was_full),
                            Entered::Full(_) => {
                                prop_assert!(busy[at] == UNDER_WAY && was_full);
                                dropped += 1;
                            }
                        }
                    }
                    2 if busy[at] > 0 => {
                        over += 1;
                        if lanes.next(id).is_none() {
                            busy[at] -= 1;
                        }
                    }
                    3 if busy[at] > 0 => {
                        over += 1;
                        busy[at] -= 1;
                        let left = lanes.leave(id);
                        prop_assert!(left.is_empty() || busy[at] == 0);
                        over += left.len();
                    }
                    _ => {}
                }
                let (under_way, waiting) = lanes.count();
                prop_assert_eq!(under_way, busy[0] + busy[1]);
                prop_assert!(busy.iter().all(|busy| *busy <= UNDER_WAY) && waiting <= 2 * WAITING);
                prop_assert_eq!(made, over + dropped + under_way + waiting);
                prop_assert_eq!(lanes.0.borrow().len(), busy.iter().filter(|busy| **busy > 0).count());
            }
        }
    }
}
