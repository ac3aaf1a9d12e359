//! Listening and connected sockets, TCP or Unix, behind one pair of types. `door` opens and shuts listeners,
//! `wire` reads and writes streams.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use socket2::{Domain, SockRef, Socket, Type};
use tokio::io::{AsyncReadExt, AsyncWriteExt, Interest};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};

/// Connections the kernel may complete before they are accepted.
const BACKLOG: i32 = 4_096;

/// Where a fake listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// A TCP address; port 0 until it is bound.
    Tcp(SocketAddr),
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
    pub(crate) async fn accept(&self) -> io::Result<Stream> {
        match self {
            Self::Tcp(listener) => {
                let (stream, _) = listener.accept().await?;
                stream.set_nodelay(true)?;
                Ok(Stream::Tcp(stream))
            }
            Self::Unix(listener) => Ok(Stream::Unix(listener.accept().await?.0)),
        }
    }

    /// Ends the listening at once: from now on the kernel refuses, whoever still holds the socket. The port
    /// stays bound, so nobody else gets it before the fake listens again.
    pub(crate) fn shut(&self) {
        let socket = match self {
            Self::Tcp(listener) => SockRef::from(listener),
            Self::Unix(listener) => SockRef::from(listener),
        };
        // It can only fail when the socket does not listen any more, which is what is wanted.
        let _ = socket.shutdown(std::net::Shutdown::Both);
    }
}

/// A TCP socket bound to this address and not listening.
fn bound(address: SocketAddr) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
    socket.set_reuse_address(true)?;
    socket.bind(&address.into())?;
    Ok(socket)
}

/// A connected socket.
#[derive(Debug)]
pub(crate) enum Stream {
    /// TCP.
    Tcp(TcpStream),
    /// A Unix stream socket.
    Unix(UnixStream),
}

impl Stream {
    /// Waits for data, the peer's end or an error, holding no buffer.
    pub(crate) async fn readable(&self) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => stream.readable().await,
            Self::Unix(stream) => stream.readable().await,
        }
    }

    /// Waits for a reset, whatever data may wait to be read.
    pub(crate) async fn broken(&self) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => stream.ready(Interest::ERROR).await.map(|_| ()),
            Self::Unix(stream) => stream.ready(Interest::ERROR).await.map(|_| ()),
        }
    }

    /// Appends what can be read, up to the buffer's spare capacity; 0 is the peer's end.
    pub(crate) async fn read(&mut self, buffer: &mut Vec<u8>) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.read_buf(buffer).await,
            Self::Unix(stream) => stream.read_buf(buffer).await,
        }
    }

    /// Writes some of the bytes.
    pub(crate) async fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.write(bytes).await,
            Self::Unix(stream) => stream.write(bytes).await,
        }
    }

    /// Sends FIN.
    pub(crate) async fn finish(&mut self) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => stream.shutdown().await,
            Self::Unix(stream) => stream.shutdown().await,
        }
    }

    /// Makes the close that follows a reset.
    pub(crate) fn reset_on_close(&self) {
        if let Self::Tcp(stream) = self {
            // A socket the peer has already reset cannot take the option and needs no second reset.
            let _ = SockRef::from(stream).set_linger(Some(Duration::ZERO));
        }
    }
}
