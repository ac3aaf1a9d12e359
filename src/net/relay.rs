//! Two streams, copied into each other until both have ended.
//!
//! Each direction ends on its own: the end of one side is passed on as a half-close and the other direction
//! goes on, so "client finished sending, backend still answers" works. A direction owns a buffer only while
//! bytes wait to be written. Callers: TCP targets and upgraded HTTP connections.

use std::cell::Cell;
use std::future::poll_fn;
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

/// Copies until both directions ended, one side failed, or `idle` passed without a byte.
pub async fn relay(
    client: &mut Stream,
    backend: &mut Stream,
    early: Early,
    buffers: &FreeList,
    deadline: &Deadline,
    idle: Duration,
    moved: &Moved,
) -> End {
    let mut up = Direction::new(early.client);
    let mut down = Direction::new(early.backend);
    deadline.set(idle);
    let end = poll_fn(|cx| {
        let before = moved.up.get() + moved.down.get();
        let up_done = match up.poll(cx, client, backend, buffers, &moved.up) {
            Poll::Ready(Ok(())) => true,
            Poll::Ready(Err(Side::Source(error))) => return Poll::Ready(End::Client(error)),
            Poll::Ready(Err(Side::Sink(error))) => return Poll::Ready(End::Backend(error)),
            Poll::Pending => false,
        };
        let down_done = match down.poll(cx, backend, client, buffers, &moved.down) {
            Poll::Ready(Ok(())) => true,
            Poll::Ready(Err(Side::Source(error))) => return Poll::Ready(End::Backend(error)),
            Poll::Ready(Err(Side::Sink(error))) => return Poll::Ready(End::Client(error)),
            Poll::Pending => false,
        };
        if up_done && down_done {
            return Poll::Ready(End::Closed);
        }
        if moved.up.get() + moved.down.get() != before {
            deadline.set(idle);
        }
        deadline.poll(cx).map(|()| End::Idle)
    })
    .await;
    deadline.clear();
    end
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
