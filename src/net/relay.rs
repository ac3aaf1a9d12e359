//! Two streams, copied into each other until both have ended.
//!
//! Each direction ends on its own: the end of one side is passed on as a half-close and the other direction
//! goes on, so "client finished sending, backend still answers" works. A direction owns a buffer only while
//! bytes wait to be written. Callers: TCP targets and upgraded HTTP connections.

use std::cell::Cell;
use std::io;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use super::{Buffer, Deadline, FreeList, Stream};

/// Bytes moved so far; readable while the relay runs, and after it was cut.
#[derive(Debug, Default)]
pub struct Moved {
    /// From the client to the backend.
    pub up: Cell<u64>,
    /// From the backend to the client.
    pub down: Cell<u64>,
}

/// How a relay ended.
#[derive(Debug)]
pub enum End {
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

/// A relay under way. It borrows its streams for one poll at a time.
pub struct Relay<'a> {
    up: Direction,
    down: Direction,
    buffers: &'a FreeList,
    deadline: &'a Deadline,
    idle: Duration,
    moved: &'a Moved,
}

impl<'a> Relay<'a> {
    /// A relay that ends after `idle` without a byte; `deadline` is used for that.
    #[must_use]
    pub fn new(
        early: Early,
        buffers: &'a FreeList,
        deadline: &'a Deadline,
        idle: Duration,
        moved: &'a Moved,
    ) -> Self {
        deadline.set(idle);
        let (up, down) = (Direction::new(early.client), Direction::new(early.backend));
        Relay { up, down, buffers, deadline, idle, moved }
    }

    /// Copies until both directions ended, one side failed, or nothing moved for the idle time.
    pub fn poll(&mut self, cx: &mut Context<'_>, client: &mut Stream, backend: &mut Stream) -> Poll<End> {
        let moved = self.moved;
        let before = moved.up.get() + moved.down.get();
        let up = self.up.poll(cx, client, backend, self.buffers, &moved.up);
        let down = self.down.poll(cx, backend, client, self.buffers, &moved.down);
        match (up, down) {
            (Poll::Ready(Err(Side::Source(error))), _) | (_, Poll::Ready(Err(Side::Sink(error)))) => {
                return Poll::Ready(End::Client(error));
            }
            (Poll::Ready(Err(Side::Sink(error))), _) | (_, Poll::Ready(Err(Side::Source(error)))) => {
                return Poll::Ready(End::Backend(error));
            }
            (Poll::Ready(Ok(())), Poll::Ready(Ok(()))) => return Poll::Ready(End::Closed),
            (Poll::Pending, _) | (_, Poll::Pending) => {}
        }
        if moved.up.get() + moved.down.get() != before {
            self.deadline.set(self.idle);
        }
        self.deadline.poll(cx).map(|()| End::Idle)
    }
}

enum Side {
    Source(io::Error),
    Sink(io::Error),
}

#[derive(Default)]
struct Direction {
    waiting: Option<Buffer>,
    ended: bool,
    shut: bool,
}

impl Direction {
    fn new(early: Option<Buffer>) -> Direction {
        Direction { waiting: early.filter(|buffer| !buffer.is_empty()), ..Direction::default() }
    }

    fn poll(
        &mut self,
        cx: &mut Context<'_>,
        source: &mut Stream,
        sink: &mut Stream,
        buffers: &FreeList,
        moved: &Cell<u64>,
    ) -> Poll<Result<(), Side>> {
        loop {
            if let Some(buffer) = &mut self.waiting {
                let count = ready!(sink.poll_write(cx, buffer.data())).map_err(Side::Sink)?;
                if count == 0 {
                    return Poll::Ready(Err(Side::Sink(io::ErrorKind::WriteZero.into())));
                }
                moved.set(moved.get() + count as u64);
                buffer.consume(count);
                if buffer.is_empty() {
                    self.waiting = None;
                }
            } else if self.ended {
                if !self.shut {
                    match ready!(sink.poll_shutdown(cx)) {
                        // The sink may have closed already: the end has reached it either way.
                        Ok(()) => {}
                        Err(error) if error.kind() == io::ErrorKind::NotConnected => {}
                        Err(error) => return Poll::Ready(Err(Side::Sink(error))),
                    }
                    self.shut = true;
                }
                return Poll::Ready(Ok(()));
            } else {
                ready!(source.poll_readable(cx)).map_err(Side::Source)?;
                let mut buffer = buffers.take();
                match ready!(buffer.poll_fill(cx, source)).map_err(Side::Source)? {
                    0 => self.ended = true,
                    _ => self.waiting = Some(buffer),
                }
            }
        }
    }
}
