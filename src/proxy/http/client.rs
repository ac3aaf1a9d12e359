//! The client's side of an HTTP/1 connection: its socket, what was read from it, its patience.
//!
//! Reading (the request's body, on its way to the backend) and writing (the answer) go on at the same time in
//! one task, through two owners; both borrow the socket for the length of one poll only.

use std::cell::{Cell, RefCell};
use std::io::{self, IoSlice};
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use crate::config::model::{ClientTimeouts, Limits};
use crate::message::{Cause, Framing};
use crate::net::{Buffer, Deadline, FreeList, Stream, Ticker, now};
use crate::tick::Tick;

use super::edge::Secured;
use super::h1::decode::{Broken, Decoder};

/// How long a body may take before `limits.body_rate` counts.
const GRACE: Duration = Duration::from_secs(20);

/// A client that has sent its end may only have finished sending, or may be gone. It is given this long to
/// show which: a write to one that is gone fails.
const HALF_CLOSED: Duration = Duration::from_secs(1);

/// One client connection.
pub struct Client {
    stream: RefCell<Stream>,
    held: RefCell<Option<Buffer>>,
    decoder: RefCell<Decoder>,
    framing: Cell<Framing>,
    pace: Cell<Pace>,
    ended: Cell<bool>,
    /// A piece of the current body was handed out.
    taken: Cell<bool>,
    /// What its TLS session says; `None`: there is none.
    pub secured: Option<Rc<Secured>>,
    /// For what the client sends.
    pub reading: Deadline,
    /// For what the client takes.
    pub writing: Deadline,
    /// Relay buffers.
    pub buffers: FreeList,
    /// What a request may cost.
    pub limits: Limits,
    /// How long it may take.
    pub timeouts: ClientTimeouts,
}

/// How long we have waited for the client inside one body.
#[derive(Clone, Copy, Default)]
struct Pace {
    waited: Duration,
    since: Option<Tick>,
}

impl Client {
    /// A connection that was just accepted.
    #[must_use]
    pub fn new(
        stream: Stream,
        secured: Option<Rc<Secured>>,
        ticker: &Rc<Ticker>,
        buffers: FreeList,
        limits: Limits,
        timeouts: ClientTimeouts,
    ) -> Client {
        Client {
            stream: RefCell::new(stream),
            held: RefCell::new(None),
            decoder: RefCell::new(Decoder::new(Framing::None)),
            framing: Cell::new(Framing::None),
            pace: Cell::default(),
            ended: Cell::new(false),
            taken: Cell::new(false),
            secured,
            reading: ticker.deadline(),
            writing: ticker.deadline(),
            buffers,
            limits,
            timeouts,
        }
    }

    /// Starts the body of the next request.
    pub fn start_body(&self, framing: Framing) {
        self.framing.set(framing);
        self.pace.set(Pace::default());
        self.taken.set(false);
        *self.decoder.borrow_mut() = Decoder::new(framing);
    }

    /// The framing of the current request's body.
    #[must_use]
    pub fn framing(&self) -> Framing {
        self.framing.get()
    }

    /// True when the current body was taken whole.
    #[must_use]
    pub fn is_body_done(&self) -> bool {
        self.decoder.borrow().is_done()
    }

    /// True once a piece of the current body was handed out. It may be framing alone, without content.
    #[must_use]
    pub fn is_body_begun(&self) -> bool {
        self.taken.get()
    }

    /// See [`Decoder::set_raw`].
    #[must_use]
    pub fn set_raw(&self) -> bool {
        self.decoder.borrow_mut().set_raw()
    }

    /// Bytes of content of the current body so far.
    #[must_use]
    pub fn content(&self) -> u64 {
        self.decoder.borrow().content()
    }

    /// The current body's trailer lines.
    #[must_use]
    pub fn trailers(&self) -> Vec<u8> {
        self.decoder.borrow().trailers().to_vec()
    }

    /// True when bytes of the next request are here already.
    #[must_use]
    pub fn has_held(&self) -> bool {
        self.held.borrow().is_some()
    }

    /// Looks at what was read and not yet used.
    pub fn with_held<T>(&self, look: impl FnOnce(&mut Option<Buffer>) -> T) -> T {
        look(&mut self.held.borrow_mut())
    }

    /// The socket, for the length of one poll.
    #[must_use]
    pub fn stream(&self) -> std::cell::RefMut<'_, Stream> {
        self.stream.borrow_mut()
    }

    /// Reads once behind what is held. `Ok(0)`: the client has sent its last byte.
    ///
    /// # Errors
    /// What the socket reports.
    pub fn poll_fill(&self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let mut held = self.held.borrow_mut();
        let mut stream = self.stream.borrow_mut();
        if held.is_none() {
            ready!(stream.poll_awaited(cx))?;
        }
        let mut buffer = held.take().unwrap_or_else(|| self.buffers.take());
        let outcome = buffer.poll_fill(cx, &mut stream);
        *held = Some(buffer).filter(|buffer| !buffer.is_empty());
        outcome
    }

    /// Writes once.
    ///
    /// # Errors
    /// What the socket reports.
    pub fn poll_write(&self, cx: &mut Context<'_>, parts: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        let mut stream = self.stream.borrow_mut();
        match parts {
            [one] => stream.poll_write(cx, one),
            _ => stream.poll_write_vectored(cx, parts),
        }
    }

    /// The next piece of the request's body.
    ///
    /// # Errors
    /// [`Cause::BodyTimeout`], [`Cause::BodyTooLarge`], [`Cause::BadChunk`], [`Cause::ClientGone`].
    pub fn poll_piece(&self, cx: &mut Context<'_>) -> Poll<Result<Option<Buffer>, Cause>> {
        let mut decoder = self.decoder.borrow_mut();
        let mut held = self.held.borrow_mut();
        let mut stream = self.stream.borrow_mut();
        let polled = decoder.poll(cx, &mut stream, &mut held, &self.buffers);
        drop((held, stream));
        match polled {
            Poll::Ready(outcome) => {
                self.arrived();
                let piece = outcome.map_err(|broken| match broken {
                    Broken::Malformed => Cause::BadChunk,
                    Broken::Cut => Cause::ClientGone,
                })?;
                if self.limits.body.is_some_and(|limit| decoder.content() > limit) {
                    return Poll::Ready(Err(Cause::BodyTooLarge));
                }
                self.taken.set(self.taken.get() || piece.is_some());
                Poll::Ready(Ok(piece))
            }
            Poll::Pending => {
                self.awaited(decoder.content());
                self.reading.poll(cx).map(|()| Err(Cause::BodyTimeout))
            }
        }
    }

    /// Only time that we spend waiting for the client counts against it: a backend that takes the body slowly
    /// is not the client's fault.
    fn awaited(&self, content: u64) {
        let mut pace = self.pace.get();
        if pace.since.is_some() {
            return;
        }
        pace.since = Some(now());
        self.pace.set(pace);
        self.reading.set(self.timeouts.idle.min(allowance(content, self.limits.body_rate, pace.waited)));
    }

    fn arrived(&self) {
        let mut pace = self.pace.get();
        if let Some(since) = pace.since.take() {
            pace.waited += now().since(since);
            self.pace.set(pace);
            self.reading.clear();
        }
    }

    /// Ready when the client has left while we wait for a backend. Bytes that come meanwhile are the next
    /// request; they are kept.
    pub fn poll_gone(&self, cx: &mut Context<'_>) -> Poll<()> {
        // While a body is read, its reader sees the end.
        if !self.is_body_done() {
            return Poll::Pending;
        }
        while !self.ended.get() {
            if self.held.borrow().as_ref().is_some_and(Buffer::is_full) {
                return Poll::Pending;
            }
            match ready!(self.poll_fill(cx)) {
                Ok(0) => self.ended.set(true),
                Ok(_) => {}
                Err(_) => return Poll::Ready(()),
            }
        }
        self.reading.set_if_clear(HALF_CLOSED);
        self.reading.poll(cx)
    }

    /// Notes that a client that may be gone was written to: how that ends is waited for once more.
    pub fn try_again(&self) {
        if self.ended.get() {
            self.reading.clear();
        }
    }

    /// True once the client has sent its end.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.ended.get()
    }
}

/// How much longer a client may keep us waiting inside a body of which `content` bytes came and for which we
/// have waited `waited`: everything beyond the grace must be earned at `rate` bytes per second (0: any).
fn allowance(content: u64, rate: u64, waited: Duration) -> Duration {
    let earned = content.checked_div(rate).map(Duration::from_secs);
    earned.map_or(Duration::MAX, |earned| (GRACE + earned).saturating_sub(waited))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_must_keep_its_rate_once_the_grace_is_over() {
        let seconds = Duration::from_secs;
        assert_eq!(allowance(0, 240, seconds(0)), GRACE);
        assert_eq!(allowance(2400, 240, seconds(25)), seconds(5), "ten seconds more were earned");
        assert_eq!(allowance(239, 240, seconds(20)), seconds(0), "a drip earns nothing");
        assert_eq!(allowance(2400, 240, seconds(90)), seconds(0));
        assert_eq!(allowance(0, 0, seconds(90)), Duration::MAX, "no rate is asked for");
    }
}
