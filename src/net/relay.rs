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

/// The other side is not there any more.
fn is_closed(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionReset, NotConnected};
    matches!(error.kind(), BrokenPipe | ConnectionReset | NotConnected)
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::os::unix::net::UnixStream;

    use super::*;
    use crate::net::Ticker;
    use crate::net::tls::fixture::{once, pair, settle};

    /// A relay between a TLS client that has done `before` and gone, and a backend that has answered nothing and ended: how it
    /// ended, and what the backend got.
    async fn relayed(before: impl FnOnce(&mut crate::net::tls::fixture::Far)) -> (End, Vec<u8>) {
        let (near, mut far) = pair().await;
        let mut client = Stream::Tls(Box::new(near));
        before(&mut far);
        drop(far);
        let (near, mut backend_end) = UnixStream::pair().expect("a pair of sockets");
        near.set_nonblocking(true).expect("non-blocking");
        backend_end.shutdown(std::net::Shutdown::Write).expect("open");
        let mut backend = Stream::Unix(tokio::net::UnixStream::from_std(near).expect("inside of a runtime"));
        let (ticker, buffers, moved) = (Ticker::new(), FreeList::new(), Moved::default());
        let deadline = ticker.deadline();
        let mut relay = Relay::new(Early::default(), &buffers, &deadline, Duration::from_secs(60), &moved);
        for _ in 0..100 {
            settle().await;
            if let Poll::Ready(end) = once(|cx| relay.poll(cx, &mut client, &mut backend)).await {
                drop(backend);
                let mut got = Vec::new();
                backend_end.read_to_end(&mut got).expect("an end");
                return (end, got);
            }
        }
        panic!("it does not end");
    }

    #[tokio::test]
    async fn a_client_that_has_said_its_end_and_gone_has_not_failed() {
        let (end, got) = relayed(|far| {
            far.write(b"last words");
            far.session.send_close_notify();
            far.send();
        })
        .await;
        assert!(matches!(end, End::Closed), "{end:?}");
        assert_eq!(got, b"last words");
        let (end, _) = relayed(|far| far.write(b"half of")).await;
        assert!(matches!(end, End::Client(_)), "{end:?}");
    }
}
