//! Two streams, copied into each other until both have ended.
//!
//! Each direction ends on its own: the end of one side is passed on as a half-close and the other direction
//! goes on, so "client finished sending, backend still answers" works. A direction owns a buffer, or a pipe, only
//! while bytes wait to be written. Callers: TCP targets and upgraded HTTP connections.
//!
//! What the bytes are is nobody's business, unless somebody [follows](Follow) them. Then a relay can [part](parting) with both sides
//! between two of their units.

use std::cell::Cell;
use std::io;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use super::splice::{self, Pipe, Run};
use super::{Buffer, Deadline, FreeList, Stream};

/// Bytes that one direction moves before other connections of the worker get their turn.
const TURN: usize = 4 * 1024 * 1024;

/// Bytes moved so far; readable while the relay runs, and after it was cut.
#[derive(Debug, Default)]
pub struct BytesMoved {
    /// From the client to the backend.
    pub up: Cell<u64>,
    /// From the backend to the client.
    pub down: Cell<u64>,
}

/// How a relay ended. Whatever it is but [`RelayEnd::Closed`], something was not passed on whole: both streams are to be closed with
/// [`Stream::reset_on_close`].
#[derive(Debug)]
pub enum RelayEnd {
    /// Both sides said that they were done.
    Closed,
    /// Neither side sent or took a byte for the idle time.
    Idle,
    /// The client's socket failed.
    Client(io::Error),
    /// The backend's socket failed.
    Backend(io::Error),
}

/// Bytes that were read before the relay took over.
#[derive(Default)]
pub struct Early {
    /// From the client.
    pub client: Option<Buffer>,
    /// From the backend.
    pub backend: Option<Buffer>,
}

/// Somebody who knows what passes in one direction, and so where a unit of it ends.
///
/// It sees every byte once, in order, as the sink takes it.
pub trait Follow {
    /// The sink has taken these.
    fn see(&mut self, bytes: &[u8]);

    /// The sink has taken so many, of [`Follow::unseen`], that nobody has looked at.
    fn skip(&mut self, count: usize);

    /// How many of those that come next need not be seen.
    fn unseen(&self) -> usize;

    /// How many of these are left of the unit that has begun; 0: none has. `None`: it does not end in them.
    fn gap(&self, bytes: &[u8]) -> Option<usize>;

    /// The sender has said its last unit.
    fn is_over(&self) -> bool;

    /// Nobody knows where units end.
    fn is_lost(&self) -> bool;
}

/// Bytes of which nothing is known.
#[derive(Debug, Default)]
pub struct Unknown;

impl Follow for Unknown {
    #[inline]
    fn see(&mut self, _: &[u8]) {}

    #[inline]
    fn skip(&mut self, _: usize) {}

    #[inline]
    fn unseen(&self) -> usize {
        usize::MAX
    }

    fn gap(&self, _: &[u8]) -> Option<usize> {
        None
    }

    fn is_over(&self) -> bool {
        false
    }

    fn is_lost(&self) -> bool {
        true
    }
}

/// A relay under way. It borrows its streams for one poll at a time.
pub struct Relay<'a, F = Unknown> {
    up: Direction<F>,
    down: Direction<F>,
    buffers: &'a FreeList,
    deadline: &'a Deadline,
    idle: Duration,
    moved: &'a BytesMoved,
}

impl<'a> Relay<'a> {
    /// A relay that ends after `idle` without a byte; `deadline` is used for that.
    #[must_use]
    pub fn new(
        early: Early,
        buffers: &'a FreeList,
        deadline: &'a Deadline,
        idle: Duration,
        moved: &'a BytesMoved,
    ) -> Self {
        Relay::following([Unknown, Unknown], early, buffers, deadline, idle, moved)
    }
}

impl<'a, F: Follow> Relay<'a, F> {
    /// The same, with who follows what the client says, and what the backend does.
    #[must_use]
    pub fn following(
        [client, backend]: [F; 2],
        early: Early,
        buffers: &'a FreeList,
        deadline: &'a Deadline,
        idle: Duration,
        moved: &'a BytesMoved,
    ) -> Self {
        deadline.set(idle);
        let (up, down) = (Direction::new(client, early.client), Direction::new(backend, early.backend));
        Relay { up, down, buffers, deadline, idle, moved }
    }

    /// Copies until both directions ended, one side failed, or nothing moved for the idle time.
    pub fn poll(
        &mut self,
        cx: &mut Context<'_>,
        client: &mut Stream,
        backend: &mut Stream,
    ) -> Poll<RelayEnd> {
        let moved = self.moved;
        let before = moved.up.get() + moved.down.get();
        let up = self.up.poll(cx, client, backend, self.buffers, &moved.up);
        let down = self.down.poll(cx, backend, client, self.buffers, &moved.down);
        match (up, down) {
            (Poll::Ready(Err(Side::Source(error))), _) | (_, Poll::Ready(Err(Side::Sink(error)))) => {
                return Poll::Ready(RelayEnd::Client(error));
            }
            (Poll::Ready(Err(Side::Sink(error))), _) | (_, Poll::Ready(Err(Side::Source(error)))) => {
                return Poll::Ready(RelayEnd::Backend(error));
            }
            (Poll::Ready(Ok(())), Poll::Ready(Ok(()))) => return Poll::Ready(RelayEnd::Closed),
            (Poll::Pending, _) | (_, Poll::Pending) => {}
        }
        if moved.up.get() + moved.down.get() != before {
            self.deadline.set(self.idle);
        }
        self.deadline.poll(cx).map(|()| RelayEnd::Idle)
    }
}

enum Side {
    Source(io::Error),
    Sink(io::Error),
}

/// Bytes that were taken from the source and wait for the sink.
#[derive(Default)]
enum Waiting {
    #[default]
    Nothing,
    Buffer(Buffer),
    Pipe(Pipe),
}

struct Direction<F> {
    follow: F,
    waiting: Waiting,
    run: Run,
    ended: bool,
    shut: bool,
}

impl<F: Follow> Direction<F> {
    fn new(follow: F, early: Option<Buffer>) -> Direction<F> {
        let waiting = early.filter(|buffer| !buffer.is_empty()).map_or(Waiting::Nothing, Waiting::Buffer);
        Direction { follow, waiting, run: Run::default(), ended: false, shut: false }
    }

    fn poll(
        &mut self,
        cx: &mut Context<'_>,
        source: &mut Stream,
        sink: &mut Stream,
        buffers: &FreeList,
        moved: &Cell<u64>,
    ) -> Poll<Result<(), Side>> {
        let mut room = TURN;
        loop {
            if !matches!(self.waiting, Waiting::Nothing) {
                let count = ready!(self.poll_pass(cx, sink, usize::MAX)).map_err(Side::Sink)?;
                moved.set(moved.get() + count as u64);
                room = room.saturating_sub(count);
                if room == 0 {
                    cx.waker().wake_by_ref();
                    return Poll::Pending;
                }
            } else if self.ended {
                if !self.shut {
                    match ready!(sink.poll_shutdown(cx)) {
                        Ok(()) => {}
                        // The sink may have closed already, and under TLS our end is bytes that it does not take any
                        // more. Whether it had finished, reading from it tells.
                        Err(error) if is_closed(&error) => {}
                        Err(error) => return Poll::Ready(Err(Side::Sink(error))),
                    }
                    self.shut = true;
                }
                return Poll::Ready(Ok(()));
            } else {
                ready!(self.poll_take(cx, source, sink, buffers)).map_err(Side::Source)?;
            }
        }
    }

    /// Hands some of what waits to the sink: of a buffer at most `most` bytes.
    fn poll_pass(&mut self, cx: &mut Context<'_>, sink: &mut Stream, most: usize) -> Poll<io::Result<usize>> {
        let (count, empty) = match &mut self.waiting {
            Waiting::Nothing => (0, true),
            Waiting::Buffer(buffer) => {
                let data = buffer.data();
                let count = ready!(sink.poll_write(cx, &data[..most.min(data.len())]))?;
                self.follow.see(&data[..count.min(data.len())]);
                buffer.consume(count);
                (count, buffer.is_empty())
            }
            Waiting::Pipe(pipe) => {
                let count = ready!(pipe.poll_drain(cx, sink))?;
                self.follow.skip(count);
                (count, pipe.is_empty())
            }
        };
        if count == 0 {
            return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
        }
        if empty {
            self.waiting = Waiting::Nothing;
        }
        Poll::Ready(Ok(count))
    }

    /// Takes what the source has, or its end, while nothing waits.
    fn poll_take(
        &mut self,
        cx: &mut Context<'_>,
        source: &mut Stream,
        sink: &Stream,
        buffers: &FreeList,
    ) -> Poll<io::Result<()>> {
        ready!(source.poll_readable(cx))?;
        let unseen = self.follow.unseen();
        if self.run.is_long()
            && unseen >= splice::SHORT
            && source.is_plain()
            && sink.is_plain()
            && let Some(mut pipe) = buffers.pipes().take()
        {
            match ready!(pipe.poll_fill(cx, source, unseen.min(splice::SIZE))) {
                Ok(count) => {
                    self.run.spliced(count);
                    if count > 0 {
                        self.waiting = Waiting::Pipe(pipe);
                    }
                    return Poll::Ready(Ok(()));
                }
                Err(error) if splice::is_unsupported(&error) => self.run.end(),
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
        let mut buffer = buffers.take();
        match ready!(buffer.poll_fill(cx, source))? {
            0 => self.ended = true,
            _ => {
                self.run.read(buffer.is_filled());
                self.waiting = Waiting::Buffer(buffer);
            }
        }
        Poll::Ready(Ok(()))
    }
}

/// The other side is not there any more.
fn is_closed(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionReset, NotConnected};
    matches!(error.kind(), BrokenPipe | ConnectionReset | NotConnected)
}

pub mod parting;
#[cfg(test)]
mod tests;
