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
//! A connection of HTTP/1 waits in its own task; a stream of HTTP/2 has none yet, so that the tasks of those that are served now, of which the
//! last one to end is given the next job, stay in the caches however many wait.
//!
//! Invariants. Streams wait only while there is somebody who opens rounds: whoever waits holds its connection, and that this worker. A line is in `turns` exactly once while somebody waits in it, and in `free` exactly once while nobody does. It numbers those
//! who wait in rising order, never one twice, and lets go of them in that order: who has a number has passed when `Line::passed` has reached
//! it, also when the line has become another connection's since then. A line that is made anew begins above all numbers of those that were
//! given back, so that who waited in one of them has passed as well.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use super::http::stream_tasks::StreamJob;

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

/// Who waits.
enum WaitingRequest {
    /// The task of its connection.
    Task(Waker),
    /// A stream, and who begins it.
    Stream(StreamJob, fn(StreamJob)),
}

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
    waiting: VecDeque<WaitingRequest>,
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
    fn wait(&mut self, last: PlaceInLine, request: WaitingRequest) -> PlaceInLine {
        let line = if self.has_passed(last) { self.take_line() } else { last.line as usize };
        let Line { waiting, passed, .. } = &mut self.lines[line];
        waiting.push_back(request);
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
            for request in line.waiting.drain(..run) {
                match request {
                    WaitingRequest::Task(waker) => waker.wake(),
                    WaitingRequest::Stream(job, start) => start(job),
                }
            }
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
            RequestTicket::Waiting { .. } => {
                *ticket = RequestTicket::New;
                Poll::Ready(())
            }
        }
    }

    /// Has `start` begin `job` while `inside` are being served: at once, or when its turn has come. Until then it is a place in a line and nothing more.
    /// `start` only puts something into a queue of its own: it does not come back here.
    pub fn begin(&self, job: StreamJob, start: fn(StreamJob), last: &LastInLine, inside: usize) {
        if self.is_open(inside) || self.takes_room() {
            return start(job);
        }
        last.0.set(self.crowd.borrow_mut().wait(last.0.get(), WaitingRequest::Stream(job, start)));
    }

    #[cold]
    fn poll_enter(&self, waker: &Waker, ticket: &mut RequestTicket, last: &LastInLine) -> Poll<()> {
        if self.takes_room() {
            return Poll::Ready(());
        }
        let place = self.crowd.borrow_mut().wait(last.0.get(), WaitingRequest::Task(waker.clone()));
        last.0.set(place);
        *ticket = RequestTicket::Waiting { line: place.line, number: place.number };
        Poll::Pending
    }

    /// Takes a place of those that may still pass in this round, if there is one.
    fn takes_room(&self) -> bool {
        // While anybody waits the next round is about to be opened, and there is no room: it lets in who waits before it has any.
        if !self.crowd.borrow().turns.is_empty() {
            return false;
        }
        if let Some(opener) = self.waker.take() {
            opener.wake();
        }
        let left = self.room.get().checked_sub(1);
        left.inspect(|left| self.room.set(*left)).is_some()
    }

    /// Opens one round after the other, as long as there is anybody to pass. Never ends; a task of its own, which
    /// so has its turn behind those of all answers that are there.
    pub fn let_in(&self) -> RequestRounds<'_> {
        RequestRounds(self)
    }

    /// Opens a round. How many passed in the last one or will in this one.
    fn open(&self) -> usize {
        let lot = self.crowd.borrow_mut().pass();
        LOT - self.room.replace(LOT - lot) + lot
    }
}

/// Opens rounds. When it is dropped whoever waits is let go of.
#[must_use = "rounds are opened while it is polled"]
pub struct RequestRounds<'a>(&'a RequestQueue);

impl Future for RequestRounds<'_> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.0.open() > 0 {
            cx.waker().wake_by_ref();
        } else {
            self.0.waker.set(Some(cx.waker().clone()));
        }
        Poll::Pending
    }
}

impl Drop for RequestRounds<'_> {
    fn drop(&mut self) {
        // First out of its cell: what waits may be the last to hold a connection.
        drop(self.0.crowd.take());
    }
}

#[cfg(test)]
mod tests;
