//! The clock, and deadlines that cost next to nothing.
//!
//! A timer of the runtime per read costs over a thousand instructions. Here setting and clearing a deadline are a store
//! each. Who waits for one has a slot in a per-worker table that one coarse ticker looks through; the slot of a
//! deadline that is put off again and again stays as it is and wakes its task once in between, for nothing. A deadline fires up to two
//! [`GRANULARITY`] late and never early. While nothing happens the ticker rests until the earliest slot is due.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use slab::Slab;
use tokio::sync::Notify;

use crate::tick::Tick;

/// How often the table is looked through while deadlines are being set.
pub const GRANULARITY: Duration = Duration::from_millis(20);

/// So many tasks are woken before others have their turn: where thousands give up in the same moment, each closes a connection.
const LOT: usize = 64;

/// The clock that nobody sets. It begins at [`Tick::ZERO`] when the machine starts, and has left that behind when a process
/// reads it: a Record takes that tick for "did not happen". Not `Instant`: the difference of two of those costs several
/// times as much as the reading.
#[must_use]
pub fn now() -> Tick {
    let reading = clock_gettime(ClockId::Monotonic);
    // So neither part is ever negative.
    Tick(reading.tv_sec.cast_unsigned() * 1_000_000_000 + reading.tv_nsec.cast_unsigned())
}

/// The key of a deadline that has no slot yet.
const NO_SLOT: usize = usize::MAX;

struct Slot {
    /// When its deadline is due, or before.
    due: Tick,
    /// `None`: it was woken.
    waker: Option<Waker>,
}

/// One worker's deadlines.
pub struct Ticker {
    slots: RefCell<Slab<Slot>>,
    /// The last reading; at most one granularity old unless `resting`.
    coarse: Cell<Tick>,
    /// No slot is due before this.
    earliest: Cell<Tick>,
    /// Deadlines were set since the last look.
    busy: Cell<bool>,
    /// The ticker sleeps until the earliest deadline or the next one to be set.
    resting: Cell<bool>,
    stirred: Notify,
}

impl Ticker {
    /// An empty table. Somebody must await [`Ticker::run`].
    #[must_use]
    pub fn new() -> Rc<Ticker> {
        Rc::new(Ticker {
            slots: RefCell::default(),
            coarse: Cell::new(now()),
            earliest: Cell::new(Tick::NEVER),
            busy: Cell::new(false),
            resting: Cell::new(true),
            stirred: Notify::new(),
        })
    }

    /// Looks through the table again and again; never ends.
    pub async fn run(&self) {
        loop {
            if self.busy.replace(false) {
                tokio::time::sleep(GRANULARITY).await;
            } else {
                self.rest().await;
            }
            let mut from = self.begin_look(now());
            while let Some(next) = self.look(from) {
                from = next;
                tokio::task::yield_now().await;
            }
        }
    }

    /// Sleeps until there is something to do: idle connections cost no wake-ups.
    async fn rest(&self) {
        self.resting.set(true);
        let stirred = self.stirred.notified();
        if self.earliest.get() == Tick::NEVER {
            stirred.await;
        } else {
            let span = self.earliest.get().since(now()).max(GRANULARITY);
            // Either is fine: the table is looked through next.
            let _ = tokio::time::timeout(span, stirred).await;
        }
        self.resting.set(false);
    }

    /// Wakes every connection whose deadline has come.
    pub fn tick(&self, now: Tick) {
        let mut from = self.begin_look(now);
        while let Some(next) = self.look(from) {
            from = next;
        }
    }

    /// Reads the clock. From which slot on the table is to be looked through.
    fn begin_look(&self, now: Tick) -> usize {
        self.coarse.set(now);
        if self.earliest.get() > now {
            return usize::MAX;
        }
        // As low as the lowest of those that are looked at or put down from now on.
        self.earliest.set(Tick::NEVER);
        0
    }

    /// Wakes those from slot `from` on whose deadline has come, [`LOT`] of them at the most. The slot after the last one; `None`: all were looked at.
    fn look(&self, from: usize) -> Option<usize> {
        let (now, mut earliest, mut woken) = (self.coarse.get(), self.earliest.get(), 0);
        let mut slots = self.slots.borrow_mut();
        let mut keys = from..slots.capacity();
        while woken < LOT
            && let Some(key) = keys.next()
        {
            let Some(slot) = slots.get_mut(key) else { continue };
            if slot.due > now {
                earliest = earliest.min(slot.due);
            } else if let Some(waker) = slot.waker.take() {
                waker.wake();
                woken += 1;
            }
        }
        self.earliest.set(earliest);
        (!keys.is_empty()).then_some(keys.start)
    }

    /// Wakes everybody who waits on a deadline, due or not: they look again at whatever else they watch.
    pub fn wake_all(&self) {
        for (_, slot) in self.slots.borrow_mut().iter_mut() {
            if let Some(waker) = slot.waker.take() {
                waker.wake();
            }
        }
    }

    /// A new deadline, not set. It takes a slot when it is first waited for.
    #[must_use]
    pub fn deadline(self: &Rc<Self>) -> Deadline {
        Deadline { ticker: self.clone(), due: Cell::new(Tick::NEVER), key: Cell::new(NO_SLOT) }
    }

    /// A reading of the clock that may be [`GRANULARITY`] old.
    #[must_use]
    #[inline]
    pub fn reading(&self) -> Tick {
        if self.resting.get() {
            self.stir();
        }
        self.coarse.get()
    }

    #[cold]
    fn stir(&self) {
        self.resting.set(false);
        self.coarse.set(now());
        self.stirred.notify_one();
    }
}

/// One point in time that a task waits for beside its I/O. Its slot is freed on drop.
pub struct Deadline {
    ticker: Rc<Ticker>,
    due: Cell<Tick>,
    key: Cell<usize>,
}

impl Deadline {
    /// Due `span` from now.
    pub fn set(&self, span: Duration) {
        self.due.set(self.ticker.reading().after(span).after(GRANULARITY));
        self.ticker.busy.set(true);
    }

    /// Due at `due`, also for who waits for it already.
    pub fn set_at(&self, due: Tick) {
        self.due.set(due);
        let ticker = &self.ticker;
        if let Some(slot) = ticker.slots.borrow_mut().get_mut(self.key.get())
            && due < slot.due
        {
            slot.due = due;
            ticker.earliest.set(ticker.earliest.get().min(due));
        }
        ticker.busy.set(true);
        // It may have gone to rest.
        let _ = ticker.reading();
    }

    /// As [`Deadline::set`], unless it is set already.
    pub fn set_if_clear(&self, span: Duration) {
        if !self.is_set() {
            self.set(span);
        }
    }

    /// Never due.
    pub fn clear(&self) {
        self.due.set(Tick::NEVER);
    }

    /// True between `set` and `clear`.
    #[must_use]
    pub fn is_set(&self) -> bool {
        self.due.get() != Tick::NEVER
    }

    /// Ready once due. Also wakes its task on [`Ticker::wake_all`], and now and then when it was due before it was last
    /// set.
    pub fn poll(&self, cx: &mut Context<'_>) -> Poll<()> {
        let due = self.due.get();
        if due <= self.ticker.coarse.get() {
            return Poll::Ready(());
        }
        let mut slots = self.ticker.slots.borrow_mut();
        let stands = slots.get(self.key.get()).is_some_and(|slot| {
            // Whom it wakes too early comes here again.
            slot.due <= due && slot.waker.as_ref().is_some_and(|waker| waker.will_wake(cx.waker()))
        });
        if !stands {
            self.put_down(&mut slots, Slot { due, waker: Some(cx.waker().clone()) });
        }
        Poll::Pending
    }

    #[inline(never)]
    fn put_down(&self, slots: &mut Slab<Slot>, slot: Slot) {
        if slot.due < self.ticker.earliest.get() {
            self.ticker.earliest.set(slot.due);
            self.ticker.busy.set(true);
            // It may have gone to rest since the deadline was set.
            let _ = self.ticker.reading();
        }
        match slots.get_mut(self.key.get()) {
            Some(own) => *own = slot,
            None => self.key.set(slots.insert(slot)),
        }
    }
}

impl Drop for Deadline {
    fn drop(&mut self) {
        if self.key.get() != NO_SLOT {
            self.ticker.slots.borrow_mut().remove(self.key.get());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;

    use super::*;

    fn poll(deadline: &Deadline) -> bool {
        deadline.poll(&mut Context::from_waker(Waker::noop())).is_ready()
    }

    #[test]
    fn the_clock_begins_above_zero_and_never_goes_back() {
        let readings: Vec<Tick> = (0..1000).map(|_| now()).collect();
        assert!(readings[0] > Tick::ZERO && readings.is_sorted(), "{readings:?}");
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
    fn a_slot_is_taken_when_it_is_needed_and_freed() {
        let ticker = Ticker::new();
        let (one, two) = (ticker.deadline(), ticker.deadline());
        one.clear();
        assert!(!one.is_set() && ticker.slots.borrow().is_empty());
        assert!(!poll(&two), "whoever waits is woken by a drain, so it needs a slot");
        one.set(Duration::from_secs(1));
        one.set_if_clear(Duration::from_secs(9));
        assert_eq!(ticker.slots.borrow().len(), 1);
        assert!(one.is_set() && !two.is_set() && !poll(&one));
        assert_eq!(ticker.slots.borrow().len(), 2);
        drop(one);
        drop(two);
        assert!(ticker.slots.borrow().is_empty());
    }

    /// Counts how often it was woken.
    #[derive(Default)]
    struct Woken(AtomicUsize);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn one_that_is_put_off_is_woken_once_for_nothing_and_then_in_time() {
        let ticker = Ticker::new();
        let (deadline, woken) = (ticker.deadline(), Arc::new(Woken::default()));
        let waker = Waker::from(Arc::clone(&woken));
        let poll = || deadline.poll(&mut Context::from_waker(&waker)).is_ready();
        let count = || woken.0.load(Ordering::Relaxed);
        let start = now();
        for seconds in [10, 20, 30] {
            deadline.set(Duration::from_secs(seconds));
            assert!(!poll());
            deadline.clear();
        }
        deadline.set(Duration::from_secs(30));
        let at = |seconds| start.after(Duration::from_secs(seconds));
        ticker.tick(at(9));
        assert_eq!(count(), 0);
        ticker.tick(at(11));
        assert!(count() == 1 && !poll(), "its slot was due with the first of them");
        ticker.tick(at(21));
        assert_eq!(count(), 1);
        ticker.tick(at(31));
        assert!(count() == 2 && poll());
        deadline.set(Duration::from_secs(30));
        assert!(!poll());
        deadline.set(Duration::from_secs(5));
        assert!(!poll());
        ticker.tick(at(37));
        assert!(count() == 3 && poll(), "one that was brought forward is not late");
        deadline.clear();
        assert!(!poll());
        ticker.wake_all();
        assert!(count() == 4 && !poll(), "a drain reaches who waits for nothing");
    }

    #[test]
    fn who_waits_already_is_woken_when_a_deadline_is_brought_forward() {
        let ticker = Ticker::new();
        let (deadline, woken) = (ticker.deadline(), Arc::new(Woken::default()));
        let waker = Waker::from(Arc::clone(&woken));
        let poll = || deadline.poll(&mut Context::from_waker(&waker)).is_ready();
        let start = now();
        let at = |seconds| start.after(Duration::from_secs(seconds));
        assert!(!poll(), "it was never set");
        deadline.set_at(at(5));
        assert_eq!(woken.0.load(Ordering::Relaxed), 0);
        ticker.tick(at(4));
        assert_eq!(woken.0.load(Ordering::Relaxed), 0);
        deadline.set_at(at(9));
        ticker.tick(at(6));
        assert!(woken.0.load(Ordering::Relaxed) == 1 && !poll(), "woken for nothing");
        ticker.tick(at(9));
        assert!(woken.0.load(Ordering::Relaxed) == 2 && poll());
        deadline.clear();
        assert!(!poll());
        deadline.set_at(Tick(1));
        assert!(poll(), "what is over is due at once");
    }

    #[test]
    fn another_task_that_waits_for_it_is_the_one_that_is_woken() {
        let ticker = Ticker::new();
        let deadline = ticker.deadline();
        deadline.set(Duration::from_secs(1));
        let (first, second) = (Arc::new(Woken::default()), Arc::new(Woken::default()));
        for woken in [&first, &second] {
            let waker = Waker::from(Arc::clone(woken));
            assert!(deadline.poll(&mut Context::from_waker(&waker)).is_pending());
        }
        ticker.tick(now().after(Duration::from_secs(2)));
        assert_eq!((first.0.load(Ordering::Relaxed), second.0.load(Ordering::Relaxed)), (0, 1));
    }

    #[test]
    fn a_resting_ticker_reads_the_clock_before_a_deadline_is_set() {
        let ticker = Ticker::new();
        ticker.coarse.set(Tick(1));
        let deadline = ticker.deadline();
        deadline.set(Duration::from_secs(1));
        assert!(ticker.coarse.get() > Tick(1) && !ticker.resting.get() && ticker.busy.get());
        // While it looks through the table anyway, the last reading will do.
        let read = ticker.coarse.get();
        deadline.set(Duration::from_secs(2));
        assert_eq!(ticker.coarse.get(), read);
    }

    #[test]
    fn thousands_that_are_due_at_once_are_woken_in_lots_and_none_is_forgotten() {
        let ticker = Ticker::new();
        let woken = Arc::new(Woken::default());
        let waker = Waker::from(Arc::clone(&woken));
        let start = now();
        let wait = |seconds| {
            let deadline = ticker.deadline();
            deadline.set_at(start.after(Duration::from_secs(seconds)));
            assert!(deadline.poll(&mut Context::from_waker(&waker)).is_pending());
            deadline
        };
        let due: Vec<Deadline> = (0..2 * LOT).map(|_| wait(5)).collect();
        let _late = wait(60);
        let from = ticker.begin_look(start.after(Duration::from_secs(10)));
        let next = ticker.look(from);
        assert_eq!((next, woken.0.load(Ordering::Relaxed)), (Some(LOT), LOT));
        // One that is over takes its slot with it, and another one gets it.
        drop(due);
        let _again = wait(30);
        assert!(next.and_then(|from| ticker.look(from)).is_none());
        assert_eq!(woken.0.load(Ordering::Relaxed), LOT, "who is gone is not woken");
        for (seconds, count) in [(29, 0), (30, 1), (59, 1), (60, 2)] {
            ticker.tick(start.after(Duration::from_secs(seconds)));
            assert_eq!(woken.0.load(Ordering::Relaxed), LOT + count, "after {seconds} s");
        }
    }

    #[test]
    fn a_far_deadline_does_not_hide_a_near_one_set_later() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
        runtime.block_on(async {
            let ticker = Ticker::new();
            let (far, near) = (ticker.deadline(), ticker.deadline());
            far.set(Duration::from_secs(3600));
            let wait = std::future::poll_fn(|cx| near.poll(cx));
            let run = ticker.run();
            let later = async {
                // The ticker rests until the far one by now.
                tokio::time::sleep(GRANULARITY * 4).await;
                near.set(Duration::from_millis(1));
                wait.await;
            };
            tokio::select! { () = run => {}, () = later => {} }
            assert!(far.is_set() && poll(&near) && !poll(&far));
        });
    }
}
