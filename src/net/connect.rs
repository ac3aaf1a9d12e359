//! Opening a connection to a backend, and telling our own shortage from its failure.

use std::io;
use std::net::SocketAddr;
use std::path::Path;

use tokio::net::{TcpSocket, UnixStream};

use super::{Stream, socket};

/// Connects over TCP with `TCP_NODELAY` and keepalive set. There is no time limit in here.
///
/// # Errors
/// What the system reports; see [`is_shortage`].
pub async fn tcp(address: SocketAddr) -> io::Result<Stream> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    socket.set_nodelay(true)?;
    socket::set_keepalive(&socket2::SockRef::from(&socket))?;
    Ok(Stream::Tcp(socket.connect(address).await?))
}

/// Connects to a unix stream socket.
///
/// # Errors
/// What the system reports; see [`is_shortage`].
pub async fn unix(path: &Path) -> io::Result<Stream> {
    Ok(Stream::Unix(UnixStream::connect(path).await?))
}

/// True when an error says that *this* machine or process ran out of something. Such an error is never held
/// against a backend.
#[must_use]
pub fn is_shortage(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let Some(code) = error.raw_os_error() else { return false };
    [Errno::MFILE, Errno::NFILE, Errno::NOBUFS, Errno::NOMEM, Errno::ADDRNOTAVAIL]
        .iter()
        .any(|errno| errno.raw_os_error() == code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_connect_is_no_shortage_but_a_lack_of_descriptors_is() {
        let from = |errno: rustix::io::Errno| io::Error::from_raw_os_error(errno.raw_os_error());
        assert!(is_shortage(&from(rustix::io::Errno::MFILE)));
        assert!(!is_shortage(&from(rustix::io::Errno::CONNREFUSED)));
        assert!(!is_shortage(&io::Error::other("x")));
    }
}
