//! A connected byte stream of whatever kind, for both sides of the proxy.
//!
//! One enum instead of a boxed trait: the kinds are few, and a read through a match costs nothing.

use std::cell::Cell;
use std::future::{Future as _, poll_fn};
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

use rustix::io::writev;
use rustix::net::{RecvFlags, SendFlags, getsockname, recv, send};
use tokio::io::{AsyncWrite, Interest, ReadBuf};
use tokio::net::{TcpStream, UnixStream};

use super::carried::Carried;
use super::fresh::Fresh;
use super::option::limit_unsent;
use super::plain::{Plain, Progress};
use super::tls::rest::Rest;
use super::tls::session::Session;

/// What [`Stream::dismiss`] reads at most, in bytes: no peer may hold up the accept loop.
const DISMISSED: usize = 256 * 1024;

/// A connected stream.
pub enum Stream {
    /// TCP.
    Tcp(Plain<TcpStream>),
    /// A unix stream socket.
    Unix(Plain<UnixStream>),
    /// TCP, and the event loop does not know of it.
    Fresh(Fresh),
    /// A TLS session on one of the others.
    Tls(Box<Tls>),
    /// A part of somebody else's connection.
    Carried(Box<dyn Carried>),
}

/// A TLS session on a stream. What it does is in [`tls`](super::tls); it stands here because the two hold each other.
pub struct Tls {
    pub(super) stream: Stream,
    pub(super) session: Session,
    /// What was read and is not whole: a part of a record, or of a message in several.
    pub(super) held: Vec<u8>,
    /// Nothing was taken in yet: what was read before there was a session waits in `held`, and a client has to begin.
    pub(super) fresh: bool,
    /// Content that the reader had no space for.
    pub(super) content: Rest,
    /// Records that the socket has not taken.
    pub(super) out: Rest,
    /// What we say is not in clear any more.
    pub(super) encrypts: bool,
    /// What is left to say of an alert that the session does not make.
    pub(super) alert: &'static [u8],
    /// Bytes that the caller wrote and we have not said so, because their records are not all out.
    pub(super) owed: usize,
    /// The peer has said that it is done.
    pub(super) ended: bool,
    /// We have said it, or can't any more.
    pub(super) closed: bool,
    /// What the peer has done wrong.
    pub(super) fault: Option<Box<rustls::Error>>,
    /// Closing is meant to be seen as a cut: without close_notify.
    pub(super) aborted: Cell<bool>,
}

/// The same for both kinds of socket, and something else for those that are fresh, for TLS, and for what is no socket.
macro_rules! each {
    ($stream:expr, $inner:ident => $body:expr, $fresh:ident => $early:expr, $tls:ident => $secured:expr, $carried:ident => $part:expr) => {
        match $stream {
            Stream::Tcp($inner) => $body,
            Stream::Unix($inner) => $body,
            Stream::Fresh($fresh) => $early,
            Stream::Tls($tls) => $secured,
            Stream::Carried($carried) => $part,
        }
    };
}

impl From<TcpStream> for Stream {
    fn from(socket: TcpStream) -> Stream {
        Stream::Tcp(socket.into())
    }
}

impl From<UnixStream> for Stream {
    fn from(socket: UnixStream) -> Stream {
        Stream::Unix(socket.into())
    }
}

impl Stream {
    /// Reads once. What is found at once does not count against the task's share of its turn: who reads in a loop
    /// asks [`Stream::poll_readable`] before.
    ///
    /// # Errors
    /// What the socket reports.
    pub fn poll_read(&mut self, cx: &mut Context<'_>, space: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        each!(
            self,
            inner => {
                let read = inner.poll_read(cx, |socket| receive(socket, space.initialize_unfilled()));
                read.map_ok(|count| space.advance(count))
            },
            fresh => match fresh.read(space) {
                Some(outcome) => Poll::Ready(outcome),
                None => {
                    self.register()?;
                    self.poll_read(cx, space)
                }
            },
            tls => tls.poll_read(cx, space),
            carried => {
                let read = carried.poll_read(cx, space.initialize_unfilled());
                read.map_ok(|count| space.advance(count))
            }
        )
    }

    /// Writes once. After `Pending` the next call must begin with the same bytes.
    ///
    /// # Errors
    /// What the socket reports.
    pub fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        each!(
            self,
            inner => inner.poll_write(cx, |socket| {
                Ok(Progress { count: send(socket, bytes, SendFlags::NOSIGNAL)?, most: bytes.len() })
            }),
            fresh => match fresh.write(&[IoSlice::new(bytes)]) {
                Some(outcome) => Poll::Ready(outcome),
                None => {
                    self.register()?;
                    self.poll_write(cx, bytes)
                }
            },
            tls => tls.poll_write(cx, &[IoSlice::new(bytes)]),
            carried => carried.poll_write(cx, bytes)
        )
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
        each!(
            self,
            inner => inner.poll_write(cx, |socket| {
                Ok(Progress { count: writev(socket, parts)?, most: parts.iter().map(|part| part.len()).sum() })
            }),
            fresh => match fresh.write(parts) {
                Some(outcome) => Poll::Ready(outcome),
                None => {
                    self.register()?;
                    self.poll_write_vectored(cx, parts)
                }
            },
            tls => tls.poll_write(cx, parts),
            carried => carried.poll_write(cx, parts.iter().find(|part| !part.is_empty()).map_or(&[], |part| part))
        )
    }

    /// True while bytes are on their way of a write that has not been reported as done. A plain socket has none.
    #[must_use]
    pub fn is_writing(&self) -> bool {
        each!(self, _inner => false, _fresh => false, tls => tls.is_writing(), _carried => false)
    }

    /// Says that we have sent our last byte.
    ///
    /// # Errors
    /// What the socket reports.
    pub fn poll_shutdown(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        each!(
            self,
            inner => Pin::new(inner.socket_mut()).poll_shutdown(cx),
            fresh => Poll::Ready(fresh.shutdown()),
            tls => tls.poll_shutdown(cx),
            carried => Poll::Ready(carried.shutdown())
        )
    }

    /// Says within a TLS session that we have sent our last byte, and waits until that is out. Without TLS the
    /// close will say it.
    ///
    /// # Errors
    /// What the socket reports.
    pub fn poll_close_notify(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        each!(
            self,
            _inner => Poll::Ready(Ok(())),
            _fresh => Poll::Ready(Ok(())),
            tls => tls.poll_close_notify(cx),
            _carried => Poll::Ready(Ok(()))
        )
    }

    /// Ready when a read would not wait: bytes, the end, or an error. Costs no system call, except that the event
    /// loop gets to know of a socket when it has to be waited for.
    ///
    /// # Errors
    /// What the runtime reports.
    pub fn poll_readable(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if let Stream::Fresh(fresh) = self
            && fresh.is_drained()
        {
            self.register()?;
        }
        self.poll_seen(cx)
    }

    /// The same of what the event loop has seen. A fresh socket counts as readable, as the runtime takes a new one
    /// for readable: only a read shows.
    pub(super) fn poll_seen(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        each!(self, inner => inner.poll_readable(cx), _fresh => Poll::Ready(Ok(())), tls => tls.poll_readable(cx), carried => carried.poll_readable(cx).map(Ok))
    }

    /// True while the event loop does not know of it, so that nobody would be woken.
    #[must_use]
    pub fn is_fresh(&self) -> bool {
        matches!(self, Stream::Fresh(_))
    }

    /// Where its peer has connected to; `None`: to a unix socket, or it is a part of somebody else's connection.
    #[must_use]
    pub fn local_address(&self) -> Option<SocketAddr> {
        let address = each!(
            self,
            inner => getsockname(inner).ok(),
            fresh => fresh.socket().and_then(|socket| getsockname(socket).ok()),
            tls => return tls.stream.local_address(),
            _carried => None
        );
        address?.try_into().ok()
    }

    /// Makes the event loop watch the socket, if it does not yet.
    ///
    /// # Errors
    /// What the system reports.
    pub fn register(&mut self) -> io::Result<()> {
        if let Stream::Fresh(fresh) = self {
            *self = fresh.register()?.into();
        }
        Ok(())
    }

    /// True when the runtime has already seen something to read or the end: a connection that should be
    /// silent is not. Costs no system call (one on a fresh socket), and so may be one turn of the event loop late, or wrong behind a read
    /// that filled its buffer to the last byte: [`Stream::is_silent`] knows.
    #[must_use]
    pub fn is_readable_now(&self) -> bool {
        each!(self, inner => inner.is_readable_now(), _fresh => !self.is_silent(), _tls => {
            // Unconstrained: a task that has done much in this turn would be told that nothing is there.
            let look = pin!(tokio::task::unconstrained(poll_fn(|cx| self.poll_seen(cx))));
            look.poll(&mut Context::from_waker(Waker::noop())).is_ready()
        }, carried => carried.is_readable())
    }

    /// Asks the kernel, with one system call, whether a connection that should be silent is silent and open.
    #[must_use]
    pub fn is_silent(&self) -> bool {
        if let Stream::Tls(tls) = self {
            return tls.is_silent();
        }
        if let Stream::Carried(_) = self {
            return !self.is_readable_now();
        }
        matches!(self.peek(), Err(rustix::io::Errno::AGAIN))
    }

    /// True when the peer has sent bytes that nobody has read, so that a plain close would reset our last words away.
    /// Its end alone is none. As much a guess as [`Stream::is_readable_now`], but costs a system call where that is
    /// true.
    #[must_use]
    pub fn has_unread(&self) -> bool {
        match self {
            Stream::Tls(_) | Stream::Carried(_) => self.is_readable_now(),
            Stream::Tcp(_) | Stream::Unix(_) if !self.is_readable_now() => false,
            Stream::Tcp(_) | Stream::Unix(_) | Stream::Fresh(_) => self.peek().is_ok_and(|count| count > 0),
        }
    }

    /// True when the connection has failed, as a reset makes it: also behind bytes that nobody has read. One system call, which
    /// takes the error out of the socket.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        let error = each!(
            self,
            inner => inner.socket().take_error(),
            fresh => fresh.socket().map_or(Ok(None), std::net::TcpStream::take_error),
            tls => return tls.has_failed(),
            carried => return carried.is_cut()
        );
        !matches!(error, Ok(None))
    }

    /// How many bytes are there to be read, up to one. A TLS session says none.
    fn peek(&self) -> rustix::io::Result<usize> {
        let mut byte = [0u8; 1];
        let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
        let (count, _) = each!(
            self,
            inner => recv(inner, &mut byte, flags),
            fresh => match fresh.socket() {
                Some(socket) => recv(socket, &mut byte, flags),
                None => Err(rustix::io::Errno::NOTCONN),
            },
            _tls => Ok((0, 0)),
            _carried => Ok((0, 0))
        )?;
        Ok(count)
    }

    /// True when bytes of the peer were taken off the socket that no read has given out. Only TLS holds any back.
    #[must_use]
    pub fn has_leftover(&self) -> bool {
        each!(self, _inner => false, _fresh => false, tls => tls.has_leftover(), _carried => false)
    }

    /// True for a socket without TLS that the event loop knows: what is sent is what was given.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        matches!(self, Stream::Tcp(_) | Stream::Unix(_))
    }

    /// Calls `operate` on a plain socket whenever the runtime takes it for ready, until it does not say that it would have to
    /// wait.
    ///
    /// # Errors
    /// What `operate` reports; `Unsupported` for a TLS session, which is not all in its socket, and for what is none.
    pub(super) fn poll_io<T>(
        &self,
        cx: &mut Context<'_>,
        interest: Interest,
        operate: impl FnMut(BorrowedFd<'_>) -> io::Result<T>,
    ) -> Poll<io::Result<T>> {
        let unsupported = || Poll::Ready(Err(io::ErrorKind::Unsupported.into()));
        each!(self, inner => inner.poll_io(cx, interest, operate), _fresh => unsupported(), _tls => unsupported(), _carried => unsupported())
    }

    /// Says one last thing without waiting and without the runtime, which has not yet learned that a new socket
    /// can be written: takes what has come, within a bound, sends `bytes`, ends our side. True when all of it was
    /// taken. A TLS session is told nothing.
    pub fn dismiss(&self, bytes: &[u8]) -> bool {
        use rustix::net::Shutdown;
        let (mut space, mut room) = ([0u8; 4096], DISMISSED);
        let mut leave = |socket: BorrowedFd<'_>| {
            while room > 0
                && let Ok((count @ 1.., _)) = recv(socket, &mut space, RecvFlags::DONTWAIT)
            {
                room = room.saturating_sub(count);
            }
            let sent = send(socket, bytes, SendFlags::DONTWAIT | SendFlags::NOSIGNAL);
            let _ = rustix::net::shutdown(socket, Shutdown::Write);
            sent == Ok(bytes.len())
        };
        each!(self, inner => leave(inner.as_fd()), fresh => fresh.socket().is_some_and(|socket| leave(socket.as_fd())), _tls => false, _carried => false)
    }

    /// Has little wait in the kernel, for a connection on which something more urgent may have to be said next.
    pub fn limit_unsent(&self) {
        match self {
            Stream::Tcp(tcp) => limit_unsent(tcp.as_fd()),
            Stream::Fresh(fresh) => {
                let _ = fresh.socket().map(|socket| limit_unsent(socket.as_fd()));
            }
            Stream::Unix(_) | Stream::Carried(_) => {}
            Stream::Tls(tls) => tls.stream.limit_unsent(),
        }
    }

    /// Makes closing reset the connection, so that the peer sees an abort and not an end.
    pub fn reset_on_close(&self) {
        match self {
            // A failure leaves an ordinary close, which framing still shows to be incomplete.
            Stream::Tcp(tcp) => {
                let _ = socket2::SockRef::from(tcp.socket()).set_linger(Some(std::time::Duration::ZERO));
            }
            Stream::Fresh(fresh) => {
                let socket = fresh.socket().map(socket2::SockRef::from);
                let _ = socket.map(|socket| socket.set_linger(Some(std::time::Duration::ZERO)));
            }
            Stream::Unix(_) => {}
            Stream::Tls(tls) => tls.reset_on_close(),
            Stream::Carried(carried) => carried.reset_on_close(),
        }
    }
}

/// Reads once into `room`.
#[inline]
pub(super) fn receive(socket: BorrowedFd<'_>, room: &mut [u8]) -> rustix::io::Result<Progress> {
    let most = room.len();
    let (count, _) = recv(socket, room, RecvFlags::empty())?;
    Ok(Progress { count, most })
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[tokio::test]
    async fn a_dismissal_ends_however_much_there_is_to_read() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a listener");
        let mut far = std::net::TcpStream::connect(listener.local_addr().expect("bound")).expect("connects");
        let near = Stream::from(listener.accept().await.expect("accepts").0);
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
        let near = Stream::from(near);
        assert!((0..1000).all(|_| near.is_readable_now()));
    }
}
