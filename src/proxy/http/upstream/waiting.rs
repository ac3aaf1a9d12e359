//! Those who wait for a place on some connection to a backend, in the order in which they came.
//!
//! Invariants. Who waits is here once, from the poll in which there was no place for it until it is called or leaves. Who is called and leaves without a
//! place calls the next one, so no place stays free while somebody waits.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::task::{Context, Waker};

/// Those of one backend.
#[derive(Default)]
pub struct PlaceSeekers {
    /// How many have left the front, ever: the first one here has the number behind that.
    gone: Cell<u64>,
    /// `None`: it has left from its place in the middle.
    waiting: RefCell<VecDeque<Option<Waker>>>,
}

/// One of them.
pub struct PlaceSeeker<'a> {
    all: &'a PlaceSeekers,
    /// Its number; 0: it has none.
    number: u64,
}

impl PlaceSeekers {
    /// Calls the first `most` of them.
    pub fn call(&self, most: usize) {
        let mut waiting = self.waiting.borrow_mut();
        let mut called = 0;
        while called < most
            && let Some(waker) = waiting.pop_front()
        {
            self.gone.set(self.gone.get() + 1);
            if let Some(waker) = waker {
                waker.wake();
                called += 1;
            }
        }
    }

    /// Whether nobody waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.waiting.borrow().is_empty()
    }

    /// Somebody who may have to wait.
    #[must_use]
    pub fn seeker(&self) -> PlaceSeeker<'_> {
        PlaceSeeker { all: self, number: 0 }
    }
}

impl PlaceSeeker<'_> {
    /// Waits to be called, if it does not yet.
    pub fn wait(&mut self, cx: &Context<'_>) {
        if self.number <= self.all.gone.get() {
            let mut waiting = self.all.waiting.borrow_mut();
            waiting.push_back(Some(cx.waker().clone()));
            self.number = self.all.gone.get() + waiting.len() as u64;
        }
    }

    /// It has got what it waited for, called or not.
    pub fn settle(mut self) {
        self.leave();
        self.number = 0;
    }

    /// Leaves if it waits. True: it was called before.
    fn leave(&self) -> bool {
        let Some(place) = self.number.checked_sub(self.all.gone.get() + 1) else { return self.number > 0 };
        if let Some(waiting) = self.all.waiting.borrow_mut().get_mut(place as usize) {
            *waiting = None;
        }
        false
    }
}

impl Drop for PlaceSeeker<'_> {
    fn drop(&mut self) {
        if self.leave() {
            self.all.call(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;

    use super::*;

    #[derive(Default)]
    struct Bell(AtomicUsize);

    impl Wake for Bell {
        fn wake(self: Arc<Bell>) {
            self.0.fetch_add(1, Ordering::AcqRel);
        }
    }

    #[test]
    fn who_leaves_when_it_was_called_calls_the_next_one() {
        let seekers = PlaceSeekers::default();
        let bells: Vec<Arc<Bell>> = (0..4).map(|_| Arc::default()).collect();
        let rung = || bells.iter().map(|bell| bell.0.load(Ordering::Acquire)).collect::<Vec<_>>();
        let mut waiting: Vec<PlaceSeeker<'_>> = bells
            .iter()
            .map(|bell| {
                let waker = Waker::from(Arc::clone(bell));
                let mut seeker = seekers.seeker();
                for _ in 0..3 {
                    // It is polled for other reasons too.
                    seeker.wait(&Context::from_waker(&waker));
                }
                seeker
            })
            .collect();
        seekers.call(1);
        assert_eq!(rung(), [1, 0, 0, 0], "each is here once");
        drop(waiting.remove(0));
        assert_eq!(rung(), [1, 1, 0, 0]);
        waiting.remove(0).settle();
        assert_eq!(rung(), [1, 1, 0, 0]);
        // One that was not called has nothing to pass on.
        drop(waiting.remove(0));
        assert_eq!(rung(), [1, 1, 0, 0]);
        // Nor is it called: the next one is.
        seekers.call(1);
        assert_eq!(rung(), [1, 1, 0, 1]);
        assert!(seekers.is_empty());
        drop(waiting);
        assert_eq!(rung(), [1, 1, 0, 1]);
    }
}
