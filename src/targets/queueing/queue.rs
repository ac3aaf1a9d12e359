//! Who waits for a backend with room: first come, first served, and no more than so many.
//!
//! One queue per target, for all workers; the board keeps it behind its mutex. Numbers say who came first. Whoever waits
//! stands in a line with those who wait for the same, so that finding the first for a backend costs a look at three
//! lines, however many wait. Whoever leaves frees the place at once.

use std::collections::BTreeMap;

use crate::message::BackendId;

/// For whom somebody waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::targets) enum QueueLine {
    /// Any backend.
    Any,
    /// Any but those where it has been.
    Other,
    /// This one.
    Pinned(u32),
}

/// Waiters in the order in which they came.
#[derive(Debug)]
pub(in crate::targets) struct Queue<W> {
    /// No line in it is empty.
    lines: BTreeMap<QueueLine, BTreeMap<u64, W>>,
    next: u64,
    len: usize,
}

impl<W> Default for Queue<W> {
    fn default() -> Self {
        Queue { lines: BTreeMap::new(), next: 0, len: 0 }
    }
}

impl<W> Queue<W> {
    /// Puts `waiter` at the end and gives the number by which it can leave. `None`: `most` are waiting already.
    pub(in crate::targets) fn join(&mut self, waiter: W, line: QueueLine, most: usize) -> Option<u64> {
        if self.len >= most {
            return None;
        }
        let number = self.next;
        self.next += 1;
        self.lines.entry(line).or_default().insert(number, waiter);
        self.len += 1;
        Some(number)
    }

    /// Takes out the waiter with this number, which joined this line, if it is still there. It may be in that of those who wait
    /// for any: see [`Queue::unpin`].
    pub(in crate::targets) fn leave(&mut self, line: QueueLine, number: u64) -> Option<W> {
        self.take(line, number).or_else(|| self.take(QueueLine::Any, number))
    }

    fn take(&mut self, line: QueueLine, number: u64) -> Option<W> {
        let waiting = self.lines.get_mut(&line)?;
        let waiter = waiting.remove(&number)?;
        if waiting.is_empty() {
            self.lines.remove(&line);
        }
        self.len -= 1;
        Some(waiter)
    }

    /// Where the first stands who is served by a place at `backend`, which is there for everybody or only for those who wait
    /// for it. `takes` says whether one in [`QueueLine::Other`] takes it.
    fn find(
        &self,
        backend: BackendId,
        for_all: bool,
        takes: impl Fn(&W) -> bool,
    ) -> Option<(u64, QueueLine)> {
        let first = |line: QueueLine| {
            let waiting = self.lines.get(&line)?;
            let (number, _) = waiting.iter().find(|(_, waiter)| line != QueueLine::Other || takes(waiter))?;
            Some((*number, line))
        };
        let shared = [QueueLine::Any, QueueLine::Other].into_iter().filter(|_| for_all);
        shared.chain([QueueLine::Pinned(backend.0)]).filter_map(first).min()
    }

    /// Whether [`Queue::first_for`] would find somebody.
    pub(in crate::targets) fn has_for(
        &self,
        backend: BackendId,
        for_all: bool,
        takes: impl Fn(&W) -> bool,
    ) -> bool {
        self.find(backend, for_all, takes).is_some()
    }

    /// Takes out the first who is served by a place at `backend`: see [`Queue::find`].
    pub(in crate::targets) fn first_for(
        &mut self,
        backend: BackendId,
        for_all: bool,
        takes: impl Fn(&W) -> bool,
    ) -> Option<W> {
        let (number, line) = self.find(backend, for_all, takes)?;
        self.take(line, number)
    }

    /// The first, from this number on, of those in these lines.
    pub(in crate::targets) fn next_of(&self, lines: &[QueueLine], from: u64) -> Option<(u64, QueueLine, &W)> {
        let first = |line: &QueueLine| {
            let (number, waiter) = self.lines.get(line)?.range(from..).next()?;
            Some((*number, *line, waiter))
        };
        lines.iter().filter_map(first).min_by_key(|(number, ..)| *number)
    }

    /// The same of those who don't wait for one backend alone.
    #[cfg(test)]
    pub(in crate::targets) fn next_unpinned(&self, from: u64) -> Option<(u64, QueueLine, &W)> {
        self.next_of(&[QueueLine::Any, QueueLine::Other], from)
    }

    /// Lets those who wait for `backend` alone wait for any, as if they had from the start. False: nobody did.
    pub(in crate::targets) fn unpin(&mut self, backend: BackendId) -> bool {
        let Some(line) = self.lines.remove(&QueueLine::Pinned(backend.0)) else { return false };
        self.lines.entry(QueueLine::Any).or_default().extend(line);
        true
    }

    /// The first of each line.
    pub(in crate::targets) fn firsts(&self) -> impl Iterator<Item = &W> {
        self.lines.values().filter_map(|line| line.values().next())
    }

    /// How many wait in this line.
    #[must_use]
    pub(in crate::targets) fn count(&self, line: QueueLine) -> usize {
        self.lines.get(&line).map_or(0, BTreeMap::len)
    }

    /// How many wait.
    #[must_use]
    pub(in crate::targets) fn len(&self) -> usize {
        self.len
    }

    /// Whether nobody waits.
    #[inline]
    #[must_use]
    pub(in crate::targets) fn is_empty(&self) -> bool {
        self.len == 0
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const B: BackendId = BackendId(7);

    #[test]
    fn a_full_queue_takes_nobody_until_one_has_left() {
        let mut queue = Queue::default();
        let join = |queue: &mut Queue<i32>, waiter| queue.join(waiter, QueueLine::Any, 3);
        let numbers: Vec<u64> =
            (0..3).map(|waiter| join(&mut queue, waiter).expect("there is room")).collect();
        assert_eq!((join(&mut queue, 3), queue.len()), (None, 3));
        assert_eq!(
            (queue.leave(QueueLine::Any, numbers[1]), queue.leave(QueueLine::Any, numbers[1])),
            (Some(1), None)
        );
        assert!(join(&mut queue, 4).is_some());
        let order: Vec<i32> = std::iter::from_fn(|| queue.first_for(B, true, |_| true)).collect();
        assert_eq!(order, [0, 2, 4]);
    }

    #[test]
    fn one_that_can_only_be_served_elsewhere_is_passed_over_and_keeps_its_place() {
        let mut queue = Queue::default();
        for (waiter, line) in [
            ("b", QueueLine::Pinned(1)),
            ("not here", QueueLine::Other),
            ("any", QueueLine::Any),
            ("b2", QueueLine::Pinned(1)),
        ] {
            queue.join(waiter, line, 9);
        }
        assert_eq!(queue.first_for(B, true, |waiter| *waiter != "not here"), Some("any"));
        assert_eq!(queue.first_for(B, false, |_| true), None, "it is there for those who wait for it only");
        assert_eq!(queue.next_unpinned(0).map(|(_, _, waiter)| *waiter), Some("not here"));
        assert!(queue.unpin(BackendId(1)) && !queue.unpin(BackendId(1)));
        let order: Vec<&str> = std::iter::from_fn(|| queue.first_for(B, true, |_| true)).collect();
        assert_eq!(order, ["b", "not here", "b2"], "as if they had waited for any from the start");
    }

    proptest! {
        /// However they come and leave, it is first come, first served.
        #[test]
        fn it_agrees_with_a_list(steps in prop::collection::vec((0_u8..5, 0_u32..4, any::<prop::sample::Index>()), 0..200)) {
            let (mut queue, mut model, mut next) = (Queue::default(), Vec::<(u64, QueueLine, u32)>::new(), 0_u32);
            let mut joined_line = BTreeMap::new();
            // One in the line of others takes what is not of its own parity.
            let takes = |waiter: u32, backend: u32| waiter % 2 != backend % 2;
            for (step, backend, index) in steps {
                let id = BackendId(backend);
                match step {
                    0 => {
                        let line = [QueueLine::Any, QueueLine::Other, QueueLine::Pinned(0), QueueLine::Pinned(1)][backend as usize];
                        let joined = queue.join(next, line, 8);
                        prop_assert_eq!(joined.is_some(), model.len() < 8);
                        model.extend(joined.map(|number| (number, line, next)));
                        joined_line.extend(joined.map(|number| (number, line)));
                        next += 1;
                    }
                    1 if !model.is_empty() => {
                        let (number, _, waiter) = model.remove(index.index(model.len()));
                        prop_assert_eq!(queue.leave(joined_line[&number], number), Some(waiter));
                    }
                    2 => {
                        let mut any = false;
                        for (_, line, _) in model.iter_mut().filter(|(_, line, _)| *line == QueueLine::Pinned(backend)) {
                            (*line, any) = (QueueLine::Any, true);
                        }
                        prop_assert_eq!(queue.unpin(id), any);
                    }
                    step => {
                        let for_all = step == 3;
                        let place = model.iter().position(|&(_, line, waiter)| match line {
                            QueueLine::Any => for_all,
                            QueueLine::Other => for_all && takes(waiter, backend),
                            QueueLine::Pinned(pin) => pin == backend,
                        });
                        prop_assert_eq!(queue.has_for(id, for_all, |waiter| takes(*waiter, backend)), place.is_some());
                        let first = place.map(|place| model.remove(place).2);
                        prop_assert_eq!(queue.first_for(id, for_all, |waiter| takes(*waiter, backend)), first);
                    }
                }
                prop_assert_eq!((queue.len(), queue.is_empty()), (model.len(), model.is_empty()));
                let unpinned = |line: &QueueLine| matches!(line, QueueLine::Any | QueueLine::Other);
                let first = model.iter().find(|(_, line, _)| unpinned(line)).map(|&(_, _, waiter)| waiter);
                prop_assert_eq!(queue.next_unpinned(0).map(|(_, _, waiter)| *waiter), first);
                prop_assert_eq!(queue.count(QueueLine::Any), model.iter().filter(|(_, line, _)| *line == QueueLine::Any).count());
            }
        }
    }
}
