//! Which request is begun next when more have come than can be served at once.
//!
//! Answers go before new requests. Otherwise thousands that come at the same time would all be forwarded before
//! the first answer is looked at: each with a connection to a backend, and with memory that has left the caches by
//! the time its answer comes. So from `FREE` requests on only `LOT` are begun in one round of the worker's
//! tasks; the others wait unread. Nothing waits for an answer: when none comes the rounds are short.
//!
//! Those of one connection wait in one line, in the order in which they came, and the lines take turns: a connection that asks for a thousand
//! things at once stands in its own way.
//!
//! Invariants. A line is in `turns` exactly once while somebody waits in it, and in `free` exactly once while nobody does. It numbers those
//! who wait in rising order, never one twice, and lets go of them in that order: who has a number has passed when `Line::passed` has reached
//! it, also when the line has become another connection's since then. A line that is made anew begins above all numbers of those that were
//! given back, so that who waited in one of them has passed as well.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::task::{Context, Poll, Waker};

/// While fewer than these are being served a request is begun at once.
const FREE: usize = 128;
/// Requests begun in one round.
const LOT: usize = 64;

/// A line of up to so many has one turn: answers on one connection are written together.
const SHORT: usize = 32;
/// Those of a longer line that begin when it has its turn.
const RUN: usize = 8;
/// Lines kept for the next crowd.
const KEPT: usize = 256;

/// A place among those who wait.
#[derive(Debug, Default, PartialEq, Eq)]
pub enum RequestTicket {
    /// Has not asked.
    #[default]
    New,
    /// Waits there: see [`PlaceInLine`].
    Waiting {
        /// The line.
        // Beside the other one, and not as one of them: idle connections hold it.
        line: u32,
        /// The number in it.
        number: u64,
    },
    /// May begin, and has not yet.
    Passed,
}

/// Which line it is and which number in it. The default is nobody's, and has passed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PlaceInLine {
    line: u32,
    number: u64,
}

/// Where the last request of a connection waits, if it still does: the next one stands behind it.
#[derive(Debug, Default)]
pub struct LastInLine(Cell<PlaceInLine>);

/// One worker's queue of requests that are not begun.
pub struct RequestQueue {
    crowd: RefCell<WaitingCrowd>,
    /// How many may still pass in this round.
    room: Cell<usize>,
    /// Who opens the next round; `None`: is about to.
    waker: Cell<Option<Waker>>,
}

/// Everybody who waits: see above for what holds.
#[derive(Default)]
struct WaitingCrowd {
    lines: Vec<Line>,
    /// The lines in which somebody waits: whose turn is next is the first.
    turns: VecDeque<usize>,
    /// The lines in which nobody does.
    free: Vec<usize>,
    /// No line that was given back had a number above this.
    base: u64,
}

/// The requests of one connection.
struct Line {
    waiting: VecDeque<Waker>,
    /// How many begin in each of its turns, from its first turn until nobody waits in it.
    run: usize,
    /// The highest number that may begin.
    passed: u64,
}

impl WaitingCrowd {
    fn has_passed(&self, place: PlaceInLine) -> bool {
        self.lines.get(place.line as usize).is_none_or(|line| line.passed >= place.number)
    }

    /// Lets somebody wait behind `last`, or in a line of its own.
    fn wait(&mut self, last: PlaceInLine, waker: Waker) -> PlaceInLine {
        let line = if self.has_passed(last) { self.take_line() } else { last.line as usize };
        let Line { waiting, passed, .. } = &mut self.lines[line];
        waiting.push_back(waker);
        PlaceInLine { line: line as u32, number: *passed + waiting.len() as u64 }
    }

    /// A line in which nobody waits, which is to have its turn.
    fn take_line(&mut self) -> usize {
        let line = self.free.pop().unwrap_or_else(|| {
            self.lines.push(Line { waiting: VecDeque::new(), run: 0, passed: self.base });
            self.lines.len() - 1
        });
        self.turns.push_back(line);
        line
    }

    /// Lets up to `LOT` pass, and says how many.
    fn pass(&mut self) -> usize {
        let mut lot = 0;
        while lot < LOT
            && let Some(number) = self.turns.pop_front()
        {
            let line = &mut self.lines[number];
            if line.run == 0 {
                line.run = if line.waiting.len() > SHORT { RUN } else { SHORT };
            }
            let run = line.waiting.len().min(line.run).min(LOT - lot);
            line.waiting.drain(..run).for_each(Waker::wake);
            line.passed += run as u64;
            lot += run;
            if line.waiting.is_empty() {
                line.run = 0;
                self.free.push(number);
            } else {
                self.turns.push_back(number);
            }
        }
        if self.turns.is_empty() && self.lines.len() > KEPT {
            let base = self.lines.iter().map(|line| line.passed).max().unwrap_or_default();
            *self = WaitingCrowd { base, ..WaitingCrowd::default() };
        }
        lot
    }
}

impl Default for RequestQueue {
    fn default() -> RequestQueue {
        RequestQueue { crowd: RefCell::default(), room: Cell::new(LOT), waker: Cell::new(None) }
    }
}

impl RequestQueue {
    /// True when anybody may begin at once while `inside` are being served.
    #[must_use]
    pub fn is_open(&self, inside: usize) -> bool {
        inside < FREE && self.crowd.borrow().turns.is_empty()
    }

    /// Ready when the holder of `ticket` may begin while as many as `inside` says are being served. Who asked before on the same connection goes first.
    pub fn poll_pass(
        &self,
        cx: &Context<'_>,
        ticket: &mut RequestTicket,
        last: &LastInLine,
        inside: impl FnOnce() -> usize,
    ) -> Poll<()> {
        match *ticket {
            RequestTicket::New if self.is_open(inside()) => Poll::Ready(()),
            RequestTicket::New => self.poll_enter(cx.waker(), ticket, last),
            RequestTicket::Waiting { line, number }
                if !self.crowd.borrow().has_passed(PlaceInLine { line, number }) =>
            {
                Poll::Pending
            }
            RequestTicket::Waiting { .. } | RequestTicket::Passed => {
                *ticket = RequestTicket::New;
                Poll::Ready(())
            }
        }
    }

    /// Wakes `waker` when its holder may begin, which may be at once. For one that has nothing to do before: it is woken once, and then its ticket
    /// passes.
    pub fn enter(&self, waker: &Waker, last: &LastInLine, inside: usize) -> RequestTicket {
        let mut ticket = RequestTicket::New;
        if self.is_open(inside) || self.poll_enter(waker, &mut ticket, last).is_ready() {
            waker.wake_by_ref();
            ticket = RequestTicket::Passed;
        }
        ticket
    }

    #[cold]
    fn poll_enter(&self, waker: &Waker, ticket: &mut RequestTicket, last: &LastInLine) -> Poll<()> {
        let mut crowd = self.crowd.borrow_mut();
        // While anybody waits the next round is about to be opened, and there is no room: it lets in who waits before it has any.
        if crowd.turns.is_empty() {
            if let Some(opener) = self.waker.take() {
                opener.wake();
            }
            if let Some(room) = self.room.get().checked_sub(1) {
                self.room.set(room);
                return Poll::Ready(());
            }
        }
        let place = crowd.wait(last.0.get(), waker.clone());
        last.0.set(place);
        *ticket = RequestTicket::Waiting { line: place.line, number: place.number };
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
        let lot = self.crowd.borrow_mut().pass();
        LOT - self.room.replace(LOT - lot) + lot
    }
}

#[cfg(test)]
mod tests;
