//! Whether a client is still there while it waits for a backend, as far as TCP can tell.
//!
//! A reset says that it is gone. Its end (FIN) does not: it may have finished sending and read on, or be gone. How long that may
//! stay open is `timeouts.half_closed`. What it sends meanwhile is kept, up to a buffer; behind a full one nothing is read
//! any more, and so a reset shows only when it is looked for.

use std::cell::Cell;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use crate::net::{Buffer, Deadline, FreeList, Stream, now};
use crate::tick::Tick;

/// How often a client of which nothing is read is looked at.
const LOOK: Duration = Duration::from_millis(500);

/// What is known of a client's presence.
pub struct Presence {
    /// When its end was read, or an answer to it has last got on; [`Tick::NEVER`]: it has not ended.
    ended: Cell<Tick>,
}

/// A client that waits.
pub struct Waiting<'a> {
    /// Its connection.
    pub stream: &'a mut Stream,
    /// What it has sent, and nobody has used.
    pub held: &'a mut Option<Buffer>,
    /// Where a buffer for that comes from.
    pub buffers: &'a FreeList,
    /// A deadline that nothing else uses while it waits.
    pub timer: &'a Deadline,
    /// How long its end may be that of its sending alone; `None`: for ever.
    pub half_closed: Option<Duration>,
}

impl Default for Presence {
    fn default() -> Presence {
        Presence { ended: Cell::new(Tick::NEVER) }
    }
}

impl Presence {
    /// Ready when the client has left. Reads what it sends.
    #[inline]
    pub fn poll_gone(&self, cx: &mut Context<'_>, mut waiting: Waiting<'_>) -> Poll<()> {
        while !self.has_ended() && !waiting.held.as_ref().is_some_and(Buffer::is_full) {
            match ready!(waiting.buffers.poll_fill(waiting.held, cx, waiting.stream)) {
                Ok(0) => self.ended.set(now()),
                Ok(_) => {}
                Err(_) => return Poll::Ready(()),
            }
        }
        self.poll_look(cx, &mut waiting)
    }

    /// The same of a client of which nothing is read.
    #[cold]
    fn poll_look(&self, cx: &mut Context<'_>, waiting: &mut Waiting<'_>) -> Poll<()> {
        loop {
            let left = match waiting.half_closed {
                Some(span) if self.has_ended() => span.saturating_sub(now().since(self.ended.get())),
                _ => Duration::MAX,
            };
            if left.is_zero() {
                return Poll::Ready(());
            }
            waiting.timer.set_if_clear(LOOK.min(left));
            ready!(waiting.timer.poll(cx));
            waiting.timer.clear();
            if waiting.stream.has_failed() {
                return Poll::Ready(());
            }
        }
    }

    /// Notes that a client that may be gone was written to: how that ends is waited for once more.
    pub fn try_again(&self) {
        if self.has_ended() {
            self.ended.set(now());
        }
    }

    /// True once the client has sent its end.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.ended.get() != Tick::NEVER
    }
}
