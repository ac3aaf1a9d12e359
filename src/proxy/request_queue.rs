//! Which request is begun next when more have come than can be served at once.
//!
//! Answers go before new requests. Otherwise thousands that come at the same time would all be forwarded before
//! the first answer is looked at: each with a connection to a backend, and with memory that has left the caches by
//! the time its answer comes. So from `FREE` requests on only `LOT` are begun in one round of the worker's
//! tasks; the others wait unread, in the order in which they came. Nothing waits for an answer: when none comes the
//! rounds are short.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::task::{Context, Poll, Waker};

/// While fewer than these are being served a request is begun at once.
const FREE: usize = 128;
/// Requests begun in one round.
const LOT: usize = 64;

/// A place among those who wait.
#[derive(Debug, Default, PartialEq, Eq)]
pub enum RequestTicket {
    /// Has not asked.
    #[default]
    New,
    /// Has this number.
    Waiting(u64),
    /// May begin, and has not yet.
    Passed,
}

/// One worker's queue of requests that are not begun.
pub struct RequestQueue {
    waiting: RefCell<VecDeque<Waker>>,
    /// The number of the first that waits.
    first: Cell<u64>,
    /// How many may still pass in this round.
    room: Cell<usize>,
    /// Who opens the next round; `None`: is about to.
    waker: Cell<Option<Waker>>,
}

impl Default for RequestQueue {
    fn default() -> RequestQueue {
        RequestQueue {
            waiting: RefCell::default(),
            first: Cell::new(0),
            room: Cell::new(LOT),
            waker: Cell::new(None),
        }
    }
}

impl RequestQueue {
    /// True when anybody may begin at once while `inside` are being served.
    #[must_use]
    pub fn is_open(&self, inside: usize) -> bool {
        inside < FREE && self.waiting.borrow().is_empty()
    }

    /// Ready when the holder of `ticket` may begin while `inside` are being served. Who asked before goes first.
    pub fn poll_pass(&self, cx: &Context<'_>, ticket: &mut RequestTicket, inside: usize) -> Poll<()> {
        match *ticket {
            RequestTicket::New if self.is_open(inside) => Poll::Ready(()),
            RequestTicket::New => self.poll_enter(cx.waker(), ticket),
            RequestTicket::Waiting(number) if number >= self.first.get() => Poll::Pending,
            RequestTicket::Waiting(_) | RequestTicket::Passed => {
                *ticket = RequestTicket::New;
                Poll::Ready(())
            }
        }
    }

    /// Wakes `waker` when its holder may begin, which may be at once. For one that has nothing to do before: it is woken once, and then its ticket
    /// passes.
    pub fn enter(&self, waker: &Waker, inside: usize) -> RequestTicket {
        let mut ticket = RequestTicket::New;
        if self.is_open(inside) || self.poll_enter(waker, &mut ticket).is_ready() {
            waker.wake_by_ref();
            ticket = RequestTicket::Passed;
        }
        ticket
    }

    #[cold]
    fn poll_enter(&self, waker: &Waker, ticket: &mut RequestTicket) -> Poll<()> {
        if let Some(opener) = self.waker.take() {
            opener.wake();
        }
        // While anybody waits there is no room: a round lets in who waits before it has any.
        if let Some(room) = self.room.get().checked_sub(1) {
            self.room.set(room);
            return Poll::Ready(());
        }
        let mut waiting = self.waiting.borrow_mut();
        *ticket = RequestTicket::Waiting(self.first.get() + waiting.len() as u64);
        waiting.push_back(waker.clone());
        Poll::Pending
    }

    /// Opens one round after the other, as long as there is anybody to pass. Never ends; a task of its own, which
    /// so has its turn behind those of all answers that are there.
    pub async fn let_in(&self) {
        poll_fn(|cx| {
            if self.open() > 0 {
                cx.waker().wake_by_ref();
            } else {
                self.waker.set(Some(cx.waker().clone()));
            }
            Poll::Pending
        })
        .await
    }

    /// Opens a round. How many passed in the last one or will in this one.
    fn open(&self) -> usize {
        let mut waiting = self.waiting.borrow_mut();
        let lot = waiting.len().min(LOT);
        self.first.set(self.first.get() + lot as u64);
        waiting.drain(..lot).for_each(Waker::wake);
        LOT - self.room.replace(LOT - lot) + lot
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;

    use super::*;

    /// Counts how often it was woken.
    #[derive(Default)]
    struct Bell(AtomicUsize);

    impl Wake for Bell {
        fn wake(self: Arc<Bell>) {
            self.0.fetch_add(1, Ordering::AcqRel);
        }
    }

    /// Who wants to pass, one after the other, and which of them have.
    struct Crowd {
        request_queue: RequestQueue,
        tickets: Vec<RequestTicket>,
        bell: Arc<Bell>,
    }

    impl Crowd {
        fn new(count: usize) -> Crowd {
            let tickets = (0..count).map(|_| RequestTicket::default()).collect();
            Crowd { request_queue: RequestQueue::default(), tickets, bell: Arc::default() }
        }

        /// The places of those who pass when everybody asks once.
        fn pass(&mut self, inside: usize) -> Vec<usize> {
            let waker = Waker::from(Arc::clone(&self.bell));
            let cx = Context::from_waker(&waker);
            let asked = self.tickets.iter_mut().enumerate();
            asked
                .filter_map(|(place, ticket)| {
                    self.request_queue.poll_pass(&cx, ticket, inside).is_ready().then_some(place)
                })
                .collect()
        }

        fn woken(&self) -> usize {
            self.bell.0.swap(0, Ordering::AcqRel)
        }
    }

    #[test]
    fn while_few_are_inside_everybody_passes() {
        let mut crowd = Crowd::new(1000);
        assert_eq!(crowd.pass(FREE - 1).len(), 1000);
        assert_eq!(crowd.request_queue.open(), 0, "nobody was counted");
    }

    #[test]
    fn a_round_is_a_lot_in_the_order_in_which_they_came() {
        let mut crowd = Crowd::new(2 * LOT + 10);
        assert!(crowd.pass(FREE).into_iter().eq(0..LOT));
        crowd.tickets.drain(..LOT);
        assert!(crowd.pass(FREE).is_empty(), "the round is over");
        assert_eq!((crowd.request_queue.open(), crowd.woken()), (2 * LOT, LOT));
        let mut late = Crowd { request_queue: std::mem::take(&mut crowd.request_queue), ..Crowd::new(1) };
        assert!(late.pass(0).is_empty(), "who comes now does not overtake, however few are inside");
        crowd.request_queue = late.request_queue;
        assert!(crowd.pass(FREE).into_iter().eq(0..LOT));
        crowd.tickets.drain(..LOT);
        assert_eq!(
            (crowd.request_queue.open(), crowd.woken()),
            (LOT + 11, 10),
            "the last one has a bell of its own"
        );
        assert!(crowd.pass(FREE).into_iter().eq(0..10));
    }

    #[test]
    fn a_round_without_anybody_is_the_last_until_somebody_comes() {
        let mut crowd = Crowd::new(1);
        let bell = Arc::new(Bell::default());
        let waker = Waker::from(Arc::clone(&bell));
        let poll = |request_queue: &RequestQueue| {
            let mut rounds = std::pin::pin!(request_queue.let_in());
            assert!(rounds.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
            bell.0.swap(0, Ordering::AcqRel)
        };
        assert_eq!(poll(&crowd.request_queue), 0, "nobody is let in");
        assert_eq!(crowd.pass(FREE), [0]);
        assert_eq!(bell.0.swap(0, Ordering::AcqRel), 1, "and is called");
        assert_eq!(crowd.pass(FREE), [0]);
        assert_eq!(bell.0.load(Ordering::Acquire), 0, "once");
        assert_eq!(poll(&crowd.request_queue), 1, "two have passed");
        assert_eq!(poll(&crowd.request_queue), 0, "nobody has");
    }
}
