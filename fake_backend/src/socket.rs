//! Listening and connected sockets, TCP or Unix, behind one pair of types. `door` opens and shuts listeners;
//! a connected socket goes into a `stream`, with TLS around it or not.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use socket2::{Domain, SockRef, Type};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream, UdpSocket, UnixListener, UnixStream};

use crate::state::lock;

/// Connections the kernel may complete before they are accepted.
const BACKLOG: i32 = 4_096;

/// Where a fake listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// A TCP address; port 0 until it is bound.
    Tcp(SocketAddr),
    /// A UDP address; port 0 until it is bound.
    Udp(SocketAddr),
    /// A path.
    Unix(PathBuf),
}

/// A listening socket.
#[derive(Debug)]
pub(crate) enum Listener {
    /// TCP.
    Tcp(TcpListener),
    /// A Unix stream socket.
    Unix(UnixListener),
    /// UDP: whoever reads from it has it, and the port is free when nobody does.
    Udp(Mutex<Option<Arc<UdpSocket>>>),
}

impl Listener {
    /// Binds and listens; the place comes back with its port. Needs a runtime's context.
    pub(crate) fn open(place: &Place) -> io::Result<(Self, Place)> {
        match place {
            Place::Tcp(wanted) => {
                // A port given to bind by number stays bound when the listening ends (see `shut`); one the kernel
                // chose does not. So the kernel's choice is bound a second time by its number.
                let choice = bound(*wanted)?;
                let address = choice.local_addr()?.as_socket().ok_or(io::ErrorKind::AddrNotAvailable)?;
                let socket = if wanted.port() == 0 { bound(address)? } else { choice };
                socket.listen(BACKLOG)?;
                socket.set_nonblocking(true)?;
                Ok((Self::Tcp(TcpListener::from_std(socket.into())?), Place::Tcp(address)))
            }
            Place::Udp(wanted) => {
                let socket = std::net::UdpSocket::bind(wanted)?;
                socket.set_nonblocking(true)?;
                let address = socket.local_addr()?;
                let socket = Arc::new(UdpSocket::from_std(socket)?);
                Ok((Self::Udp(Mutex::new(Some(socket))), Place::Udp(address)))
            }
            Place::Unix(path) => {
                // A file left behind by an earlier run would refuse the bind, and nobody listens on it.
                if std::os::unix::net::UnixStream::connect(path)
                    .is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
                {
                    std::fs::remove_file(path)?;
                }
                Ok((Self::Unix(UnixListener::bind(path)?), place.clone()))
            }
        }
    }

    /// The next connection.
    pub(crate) async fn accept(&self) -> io::Result<Socket> {
        match self {
            Self::Tcp(listener) => {
                let (stream, _) = listener.accept().await?;
                stream.set_nodelay(true)?;
                Ok(Socket::Tcp(stream))
            }
            Self::Unix(listener) => Ok(Socket::Unix(listener.accept().await?.0)),
            // There are no connections.
            Self::Udp(_) => std::future::pending().await,
        }
    }

    /// The socket for datagrams, if it is one and not shut.
    pub(crate) fn datagrams(&self) -> Option<Arc<UdpSocket>> {
        match self {
            Self::Udp(socket) => lock(socket).clone(),
            Self::Tcp(_) | Self::Unix(_) => None,
        }
    }

    /// Ends the listening at once: from now on the kernel refuses, whoever still holds the socket. The port
    /// stays bound, so nobody else gets it before the fake listens again.
    pub(crate) fn shut(&self) {
        let socket = match self {
            Self::Tcp(listener) => SockRef::from(listener),
            Self::Unix(listener) => SockRef::from(listener),
            Self::Udp(socket) => {
                lock(socket).take();
                return;
            }
        };
        // It can only fail when the socket does not listen any more, which is what is wanted.
        let _ = socket.shutdown(std::net::Shutdown::Both);
    }
}

/// A TCP socket bound to this address and not listening.
fn bound(address: SocketAddr) -> io::Result<socket2::Socket> {
    let socket = socket2::Socket::new(Domain::for_address(address), Type::STREAM, None)?;
    socket.set_reuse_address(true)?;
    socket.bind(&address.into())?;
    Ok(socket)
}

/// A connected socket.
#[derive(Debug)]
pub(crate) enum Socket {
    /// TCP.
    Tcp(TcpStream),
    /// A Unix stream socket.
    Unix(UnixStream),
}

impl AsyncRead for Socket {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_read(context, buffer),
            Self::Unix(stream) => Pin::new(stream).poll_read(context, buffer),
        }
    }
}

impl AsyncWrite for Socket {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_write(context, bytes),
            Self::Unix(stream) => Pin::new(stream).poll_write(context, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        // Nothing is held back: a write has reached the kernel.
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_shutdown(context),
            Self::Unix(stream) => Pin::new(stream).poll_shutdown(context),
        }
    }
}
