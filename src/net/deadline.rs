//! The clock, and deadlines that cost next to nothing.
//!
//! A timer of the runtime per read costs over a thousand instructions. Here a deadline is a slot in a
//! per-worker table that one coarse ticker looks through: setting one is a store. A deadline fires up to
//! [`GRANULARITY`] late and never early. While nothing is set the ticker sleeps.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::OnceLock;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant, SystemTime};

use slab::Slab;
use tokio::sync::Notify;

use crate::tick::Tick;

/// How late a deadline may fire.
pub const GRANULARITY: Duration = Duration::from_millis(20);

static START: OnceLock<(Instant, SystemTime)> = OnceLock::new();

#[allow(clippy::disallowed_methods, reason = "the one place that reads the clock")]
fn start() -> &'static (Instant, SystemTime) {
    START.get_or_init(|| (Instant::now(), SystemTime::now()))
}

/// The time since the process started (strictly: since this was first asked).
#[must_use]
#[allow(clippy::disallowed_methods, reason = "the one place that reads the clock")]
pub fn now() -> Tick {
    // One nanosecond more, so that a real reading is never Tick::ZERO, which a Record reads as "did not happen".
    Tick(crate::tick::nanos(start().0.elapsed()).saturating_add(1))
}

/// The wall clock at tick zero: add a [`Tick`] to get a date.
#[must_use]
pub fn wall_start() -> SystemTime {
    start().1
}

struct Slot {
    due: Tick,
    waker: Option<Waker>,
}

/// One worker's deadlines.
pub struct Ticker {
    slots: RefCell<Slab<Slot>>,
    /// The last reading; at most one granularity old while anything is set.
    coarse: Cell<Tick>,
    /// No set deadline is due before this.
    earliest: Cell<Tick>,
    armed: Cell<usize>,
    started: Notify,
}

impl Ticker {
    /// An empty table. Somebody must await [`Ticker::run`].
    #[must_use]
    pub fn new() -> Rc<Ticker> {
        Rc::new(Ticker {
            slots: RefCell::default(),
            coarse: Cell::new(now()),
            earliest: Cell::new(Tick::NEVER),
            armed: Cell::new(0),
            started: Notify::new(),
        })
    }

    /// Looks through the table again and again; never ends.
    pub async fn run(&self) {
        loop {
            if self.armed.get() == 0 {
                self.started.notified().await;
            }
            tokio::time::sleep(GRANULARITY).await;
            self.tick(now());
        }
    }

    /// Wakes every connection whose deadline has come.
    pub fn tick(&self, now: Tick) {
        self.coarse.set(now);
        if self.earliest.get() > now {
            return;
        }
        let mut earliest = Tick::NEVER;
        for (_, slot) in self.slots.borrow_mut().iter_mut() {
            if slot.due > now {
                earliest = earliest.min(slot.due);
            } else if let Some(waker) = slot.waker.take() {
                waker.wake();
            }
        }
        self.earliest.set(earliest);
    }

    /// Wakes everybody who waits on a deadline, due or not: they look again at whatever else they watch.
    pub fn wake_all(&self) {
        for (_, slot) in self.slots.borrow_mut().iter_mut() {
            if let Some(waker) = slot.waker.take() {
                waker.wake();
            }
        }
    }

    /// A new deadline, not set.
    #[must_use]
    pub fn deadline(self: &Rc<Self>) -> Deadline {
        let key = self.slots.borrow_mut().insert(Slot { due: Tick::NEVER, waker: None });
        Deadline { ticker: self.clone(), key }
    }

    /// Deadlines that exist, set or not.
    #[must_use]
    pub fn len(&self) -> usize {
        self.slots.borrow().len()
    }

    /// True when no deadline exists.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn set(&self, key: usize, due: Tick) {
        let mut slots = self.slots.borrow_mut();
        let was = std::mem::replace(&mut slots[key].due, due);
        match (was == Tick::NEVER, due == Tick::NEVER) {
            (true, false) => {
                self.armed.set(self.armed.get() + 1);
                if self.armed.get() == 1 {
                    self.started.notify_one();
                }
            }
            (false, true) => self.armed.set(self.armed.get() - 1),
            (true, true) | (false, false) => {}
        }
        self.earliest.set(self.earliest.get().min(due));
    }

    /// A reading that is good enough to set a deadline by.
    fn reading(&self) -> Tick {
        if self.armed.get() == 0 {
            self.coarse.set(now());
        }
        self.coarse.get()
    }
}

/// One point in time that a task waits for beside its I/O. Freed on drop.
pub struct Deadline {
    ticker: Rc<Ticker>,
    key: usize,
}

impl Deadline {
    /// Due `span` from now.
    pub fn set(&self, span: Duration) {
        let due = self.ticker.reading().after(span).after(GRANULARITY);
        self.ticker.set(self.key, due);
    }

    /// As [`Deadline::set`], unless it is set already.
    pub fn set_if_clear(&self, span: Duration) {
        if !self.is_set() {
            self.set(span);
        }
    }

    /// Never due.
    pub fn clear(&self) {
        self.ticker.set(self.key, Tick::NEVER);
    }

    /// True between `set` and `clear`.
    #[must_use]
    pub fn is_set(&self) -> bool {
        self.ticker.slots.borrow()[self.key].due != Tick::NEVER
    }

    /// Ready once due. Also wakes its task on [`Ticker::wake_all`].
    pub fn poll(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut slots = self.ticker.slots.borrow_mut();
        let slot = &mut slots[self.key];
        if slot.due <= self.ticker.coarse.get() {
            return Poll::Ready(());
        }
        if !slot.waker.as_ref().is_some_and(|waker| waker.will_wake(cx.waker())) {
            slot.waker = Some(cx.waker().clone());
        }
        Poll::Pending
    }
}

impl Drop for Deadline {
    fn drop(&mut self) {
        self.clear();
        self.ticker.slots.borrow_mut().remove(self.key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn poll(deadline: &Deadline) -> bool {
        deadline.poll(&mut Context::from_waker(Waker::noop())).is_ready()
    }

    #[test]
    fn fires_after_its_span_and_not_before() {
        let ticker = Ticker::new();
        let deadline = ticker.deadline();
        deadline.set(Duration::from_secs(1));
        let set_at = now();
        assert!(!poll(&deadline));
        ticker.tick(set_at.after(Duration::from_millis(900)));
        assert!(!poll(&deadline));
        ticker.tick(set_at.after(Duration::from_millis(1100)));
        assert!(poll(&deadline));
        deadline.clear();
        assert!(!poll(&deadline));
    }

    #[test]
    fn slots_are_freed_and_counted() {
        let ticker = Ticker::new();
        let (one, two) = (ticker.deadline(), ticker.deadline());
        one.set(Duration::from_secs(1));
        two.set(Duration::from_secs(1));
        one.set_if_clear(Duration::from_secs(9));
        assert_eq!((ticker.len(), ticker.armed.get()), (2, 2));
        drop(one);
        drop(two);
        assert_eq!((ticker.len(), ticker.armed.get()), (0, 0));
    }
}
