//! A connected byte stream of whatever kind, for both sides of the proxy.
//!
//! One enum instead of a boxed trait: the kinds are few, and a read through a match costs nothing.

use std::future::{Future as _, poll_fn};
use std::io::{self, IoSlice};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker, ready};

use rustix::net::{RecvFlags, SendFlags, recv, send};
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::{TcpStream, UnixStream};

use super::Tls;

/// What [`Stream::dismiss`] reads at most, in bytes: no peer may hold up the accept loop.
const DISMISSED: usize = 256 * 1024;

/// A connected stream.
pub enum Stream {
    /// TCP.
    Tcp(TcpStream),
    /// A unix stream socket.
    Unix(UnixStream),
    /// A TLS session on one of the others.
    Tls(Box<Tls>),
}

/// The same for both kinds of socket, and something else for TLS.
macro_rules! each {
    ($stream:expr, $inner:ident => $body:expr, $tls:ident => $secured:expr) => {
        match $stream {
            Stream::Tcp($inner) => $body,
            Stream::Unix($inner) => $body,
            Stream::Tls($tls) => $secured,
        }
    };
}

impl Stream {
    /// Reads once. What is found at once does not count against the task's share of its turn: who reads in a loop
    /// asks [`Stream::poll_readable`] before.
    ///
    /// # Errors
    /// What the socket reports.
    pub fn poll_read(&mut self, cx: &mut Context<'_>, space: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        each!(self, inner => {
            let room = space.initialize_unfilled();
            let (most, mut count) = (room.len(), 0);
            let tried = inner.try_io(Interest::READABLE, || {
                count = recv(&*inner, room, RecvFlags::empty())?.0;
                whole(count, most)
            });
            match settled(tried, count) {
                Some(outcome) => Poll::Ready(outcome.map(|count| space.advance(count))),
                None => Pin::new(inner).poll_read(cx, space),
            }
        }, tls => tls.poll_read(cx, space))
    }

    /// Writes once. After `Pending` the next call must begin with the same bytes.
    ///
    /// # Errors
    /// What the socket reports.
    pub fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        each!(self, inner => {
            let mut count = 0;
            let tried = inner.try_io(Interest::WRITABLE, || {
                count = send(&*inner, bytes, SendFlags::NOSIGNAL)?;
                whole(count, bytes.len())
            });
            match settled(tried, count) {
                Some(outcome) => Poll::Ready(outcome),
                None => Pin::new(inner).poll_write(cx, bytes),
            }
        }, tls => tls.poll_write(cx, &[IoSlice::new(bytes)]))
    }

    /// Writes several pieces at once. After `Pending` the next call must begin with the same bytes.
    ///
    /// # Errors
    /// What the socket reports.
    pub fn poll_write_vectored(
        &mut self,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        each!(self, inner => Pin::new(inner).poll_write_vectored(cx, parts), tls => tls.poll_write(cx, parts))
    }

    /// True while bytes are on their way of a write that has not been reported as done. A plain socket has none.
    #[must_use]
    pub fn is_writing(&self) -> bool {
        each!(self, _inner => false, tls => tls.is_writing())
    }

    /// Says that we have sent our last byte.
    ///
    /// # Errors
    /// What the socket reports.
    pub fn poll_shutdown(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        each!(self, inner => Pin::new(inner).poll_shutdown(cx), tls => tls.poll_shutdown(cx))
    }

    /// Says within a TLS session that we have sent our last byte, and waits until that is out. Without TLS the
    /// close will say it.
    ///
    /// # Errors
    /// What the socket reports.
    pub fn poll_close_notify(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        each!(self, _inner => Poll::Ready(Ok(())), tls => tls.poll_close_notify(cx))
    }

    /// Ready when a read would not wait: bytes, the end, or an error. Costs no system call.
    ///
    /// # Errors
    /// What the runtime reports.
    pub fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        each!(self, inner => inner.poll_read_ready(cx), tls => tls.poll_readable(cx))
    }

    /// As [`Stream::poll_readable`], without counting against the task's share of its turn: for what comes once per
    /// request, not for a loop over a body.
    ///
    /// # Errors
    /// What the runtime reports.
    pub fn poll_awaited(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !matches!(self, Stream::Tls(_)) && self.is_readable_now() {
            return Poll::Ready(Ok(()));
        }
        self.poll_readable(cx)
    }

    /// True when the runtime has already seen something to read or the end: a connection that should be
    /// silent is not. Costs no system call, and so may be one turn of the event loop late, or wrong behind a read
    /// that filled its buffer to the last byte: [`Stream::is_silent`] knows.
    #[must_use]
    pub fn is_readable_now(&self) -> bool {
        each!(self, inner => inner.try_io(Interest::READABLE, || Ok(())).is_ok(), _tls => {
            // Unconstrained: a task that has done much in this turn would be told that nothing is there.
            let look = pin!(tokio::task::unconstrained(poll_fn(|cx| self.poll_readable(cx))));
            look.poll(&mut Context::from_waker(Waker::noop())).is_ready()
        })
    }

    /// Asks the kernel, with one system call, whether a connection that should be silent is silent and open.
    #[must_use]
    pub fn is_silent(&self) -> bool {
        let mut byte = [0u8; 1];
        let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
        let peeked = each!(self, inner => recv(inner, &mut byte, flags), tls => return tls.is_silent());
        matches!(peeked, Err(rustix::io::Errno::AGAIN))
    }

    /// True when bytes of the peer were taken off the socket that no read has given out. Only TLS holds any back.
    #[must_use]
    pub fn has_leftover(&self) -> bool {
        each!(self, _inner => false, tls => tls.has_leftover())
    }

    /// True for a socket without TLS: what is sent is what was given.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        !matches!(self, Stream::Tls(_))
    }

    /// Calls `operate` on a plain socket whenever the runtime takes it for ready, until it does not say that it would have to
    /// wait.
    ///
    /// # Errors
    /// What `operate` reports; `Unsupported` for a TLS session, which is not all in its socket.
    pub(super) fn poll_io<T>(
        &self,
        cx: &mut Context<'_>,
        interest: Interest,
        mut operate: impl FnMut(BorrowedFd<'_>) -> io::Result<T>,
    ) -> Poll<io::Result<T>> {
        loop {
            let outcome = each!(
                self,
                inner => {
                    ready!(if interest.is_readable() { inner.poll_read_ready(cx) } else { inner.poll_write_ready(cx) })?;
                    inner.try_io(interest, || operate(inner.as_fd()))
                },
                _tls => return Poll::Ready(Err(io::ErrorKind::Unsupported.into()))
            );
            match outcome {
                // What the runtime took for ready was not; it knows now.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                outcome => return Poll::Ready(outcome),
            }
        }
    }

    /// Says one last thing without waiting and without the runtime, which has not yet learned that a new socket
    /// can be written: takes what has come, within a bound, sends `bytes`, ends our side. True when all of it was
    /// taken. A TLS session is told nothing.
    pub fn dismiss(&self, bytes: &[u8]) -> bool {
        use rustix::net::Shutdown;
        let (mut space, mut room) = ([0u8; 4096], DISMISSED);
        each!(self, inner => {
            while room > 0
                && let Ok((count @ 1.., _)) = recv(inner, &mut space, RecvFlags::DONTWAIT)
            {
                room = room.saturating_sub(count);
            }
            let sent = send(inner, bytes, SendFlags::DONTWAIT | SendFlags::NOSIGNAL);
            let _ = rustix::net::shutdown(inner, Shutdown::Write);
            sent == Ok(bytes.len())
        }, _tls => false)
    }

    /// Makes closing reset the connection, so that the peer sees an abort and not an end.
    pub fn reset_on_close(&self) {
        match self {
            // A failure leaves an ordinary close, which framing still shows to be incomplete.
            Stream::Tcp(tcp) => {
                let _ = socket2::SockRef::from(tcp).set_linger(Some(std::time::Duration::ZERO));
            }
            Stream::Unix(_) => {}
            Stream::Tls(tls) => tls.reset_on_close(),
        }
    }
}

/// What to tell the runtime of `count` bytes that were moved of `most`: fewer say that the kernel has no more, or no
/// more room, and the next attempt then waits for an event instead of finding that out by a system call.
fn whole(count: usize, most: usize) -> io::Result<()> {
    if 0 < count && count < most { Err(io::ErrorKind::WouldBlock.into()) } else { Ok(()) }
}

/// The outcome of an attempt that moved `count` bytes. `None`: the socket was not ready.
fn settled(tried: io::Result<()>, count: usize) -> Option<io::Result<usize>> {
    match tried {
        Err(error) if count == 0 && error.kind() == io::ErrorKind::WouldBlock => None,
        Err(error) if count == 0 => Some(Err(error)),
        Ok(()) | Err(_) => Some(Ok(count)),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[tokio::test]
    async fn a_dismissal_ends_however_much_there_is_to_read() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a listener");
        let mut far = std::net::TcpStream::connect(listener.local_addr().expect("bound")).expect("connects");
        let near = Stream::Tcp(listener.accept().await.expect("accepts").0);
        far.set_nonblocking(true).expect("non-blocking");
        let mut total = 0;
        // The kernel's buffers grow while it moves bytes on, which takes it a moment.
        let filled = tokio::time::timeout(std::time::Duration::from_secs(20), async {
            while total <= 2 * DISMISSED {
                match far.write(&[0; 65_536]) {
                    Ok(count) => total += count,
                    Err(_) => tokio::task::yield_now().await,
                }
            }
        });
        assert!(filled.await.is_ok(), "the kernel holds {total}");
        assert!(near.dismiss(b"no"), "the answer is taken");
        assert!(!near.is_silent(), "and not everything was read for it");
    }

    #[tokio::test]
    async fn what_can_be_read_is_seen_also_by_a_task_that_has_done_much_already() {
        let (near, far) = UnixStream::pair().expect("a pair of sockets");
        drop(far);
        near.readable().await.expect("its end has come");
        let near = Stream::Unix(near);
        assert!((0..1000).all(|_| near.is_readable_now()));
    }
}
