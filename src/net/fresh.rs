//! An accepted TCP connection that the event loop does not know yet.
//!
//! Most connections that carry one request need no event loop: the request is there when they are accepted, and there
//! is room for the answer. Telling the event loop of each and taking it back are two system calls, and every segment
//! that comes meanwhile wakes it. So it gets to know of a socket when there is something to wait for.

use std::io::{self, IoSlice, Read as _, Write as _};
use std::net::{Shutdown, TcpStream};

use tokio::io::ReadBuf;

/// A connection that is only read and written, and never waited for.
pub struct Fresh {
    /// `None`: the event loop did not take it, and it is closed.
    socket: Option<TcpStream>,
    /// A read has taken all there was.
    drained: bool,
}

impl Fresh {
    /// A non-blocking socket that was just accepted.
    #[must_use]
    pub fn new(socket: TcpStream) -> Fresh {
        Fresh { socket: Some(socket), drained: false }
    }

    /// The socket, while there is one.
    #[must_use]
    pub fn socket(&self) -> Option<&TcpStream> {
        self.socket.as_ref()
    }

    fn open(&self) -> io::Result<&TcpStream> {
        self.socket.as_ref().ok_or_else(|| io::ErrorKind::NotConnected.into())
    }

    /// True when a read took less than there was room for, so that the next one has to wait.
    #[must_use]
    pub fn is_drained(&self) -> bool {
        self.drained
    }

    /// Reads once; `None`: it has to be waited for.
    pub fn read(&mut self, space: &mut ReadBuf<'_>) -> Option<io::Result<()>> {
        if self.drained {
            return None;
        }
        let room = space.initialize_unfilled();
        match self.open().and_then(|mut socket| socket.read(room)) {
            Ok(count) => {
                // The end stays readable.
                self.drained = count > 0 && count < room.len();
                space.advance(count);
                Some(Ok(()))
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => None,
            Err(error) => Some(Err(error)),
        }
    }

    /// Writes once; `None`: it has to be waited for.
    #[must_use]
    pub fn write(&self, parts: &[IoSlice<'_>]) -> Option<io::Result<usize>> {
        let written = self.open().and_then(|mut socket| match parts {
            [one] => socket.write(one),
            _ => socket.write_vectored(parts),
        });
        match written {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => None,
            outcome => Some(outcome),
        }
    }

    /// Ends our side.
    ///
    /// # Errors
    /// What the socket reports.
    pub fn shutdown(&self) -> io::Result<()> {
        self.open()?.shutdown(Shutdown::Write)
    }

    /// The same connection as the event loop of the calling thread knows it.
    ///
    /// # Errors
    /// What the system reports; the connection is closed then.
    pub fn register(&mut self) -> io::Result<tokio::net::TcpStream> {
        let socket = self.socket.take().ok_or(io::ErrorKind::NotConnected)?;
        tokio::net::TcpStream::from_std(socket)
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::os::fd::AsRawFd as _;

    use tokio::io::AsyncWriteExt as _;

    use super::*;
    use crate::net::Stream;

    async fn pair() -> (Stream, tokio::net::TcpStream) {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a listener");
        let far = TcpStream::connect(listener.local_addr().expect("bound")).expect("connects");
        let (near, _) = listener.accept().expect("accepts");
        for each in [&near, &far] {
            each.set_nonblocking(true).expect("non-blocking");
        }
        (Stream::Fresh(Fresh::new(near)), tokio::net::TcpStream::from_std(far).expect("inside of a runtime"))
    }

    async fn read(near: &mut Stream, room: usize) -> Vec<u8> {
        let mut space = vec![0; room];
        let mut space = ReadBuf::new(&mut space);
        poll_fn(|cx| near.poll_read(cx, &mut space)).await.expect("reads");
        space.filled().to_vec()
    }

    #[tokio::test]
    async fn what_is_there_is_read_and_answered_without_the_event_loop() {
        let (mut near, mut far) = pair().await;
        far.write_all(b"question").await.expect("writes");
        assert_eq!(read(&mut near, 4).await, b"ques");
        let ready = poll_fn(|cx| std::task::Poll::Ready(near.poll_readable(cx))).await;
        assert!(ready.is_ready(), "there may be more behind a read that took all it had room for");
        assert_eq!(read(&mut near, 64).await, b"tion");
        assert!(!near.is_readable_now());
        let written =
            poll_fn(|cx| near.poll_write_vectored(cx, &[IoSlice::new(b"an"), IoSlice::new(b"swer")]));
        assert_eq!(written.await.expect("writes"), 6);
        assert!(near.is_fresh() && !near.has_unread());
        drop(near);
        let mut answer = Vec::new();
        tokio::io::AsyncReadExt::read_to_end(&mut far, &mut answer).await.expect("a clean end");
        assert_eq!(answer, b"answer");
    }

    #[tokio::test]
    async fn only_bytes_are_unread_and_not_the_end() {
        for registered in [false, true] {
            let (mut near, mut far) = pair().await;
            far.write_all(b"x").await.expect("writes");
            if registered {
                near.register().expect("taken");
                poll_fn(|cx| near.poll_readable(cx)).await.expect("readable");
            }
            assert!(near.has_unread());
            assert_eq!(read(&mut near, 64).await, b"x");
            drop(far);
            poll_fn(|cx| near.poll_readable(cx)).await.expect("the end has come");
            assert!(near.is_readable_now() && !near.has_unread());
        }
    }

    #[tokio::test]
    async fn what_is_not_there_is_waited_for_by_the_event_loop() {
        for first in [&b""[..], b"early"] {
            let (mut near, mut far) = pair().await;
            if !first.is_empty() {
                far.write_all(first).await.expect("writes");
                assert_eq!(read(&mut near, 64).await, first);
            }
            let late = async {
                tokio::task::yield_now().await;
                far.write_all(b"late").await.expect("writes");
            };
            let (came, ()) = tokio::join!(read(&mut near, 64), late);
            assert_eq!(came, b"late");
            assert!(!near.is_fresh());
        }
    }

    #[tokio::test]
    async fn a_peer_that_does_not_read_is_waited_for_by_the_event_loop() {
        let (mut near, mut far) = pair().await;
        let piece = vec![b'x'; 1 << 20];
        let mut sent = 0;
        while near.is_fresh() {
            let written = poll_fn(|cx| std::task::Poll::Ready(near.poll_write(cx, &piece))).await;
            if let std::task::Poll::Ready(count) = written {
                sent += count.expect("writes");
            }
        }
        let reading = async {
            let mut space = vec![0; 1 << 20];
            let mut came = 0;
            while came < sent {
                came += tokio::io::AsyncReadExt::read(&mut far, &mut space).await.expect("reads");
            }
        };
        reading.await;
        assert!(poll_fn(|cx| near.poll_write(cx, b"more")).await.is_ok(), "there is room again");
    }

    #[tokio::test]
    async fn one_that_the_event_loop_did_not_take_is_broken_and_nothing_worse() {
        let (near, _far) = pair().await;
        let Stream::Fresh(mut fresh) = near else { panic!("a fresh one") };
        let taken = fresh.register().expect("taken");
        assert!(taken.as_raw_fd() > 0);
        let mut near = Stream::Fresh(fresh);
        assert!(poll_fn(|cx| near.poll_write(cx, b"x")).await.is_err());
        assert!(near.register().is_err() && !near.is_silent() && !near.dismiss(b"x"));
        near.reset_on_close();
    }
}
