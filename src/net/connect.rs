//! Opening a connection to a backend, and telling our own shortage from its failure.

use std::io;
use std::net::SocketAddr;
use std::path::Path;

use rustix::io::Errno;
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
    Ok(socket.connect(address).await?.into())
}

/// Connects to a unix stream socket.
///
/// # Errors
/// What the system reports; see [`is_shortage`].
pub async fn unix(path: &Path) -> io::Result<Stream> {
    Ok(UnixStream::connect(path).await?.into())
}

/// What running out of something of ours looks like; none of it says anything about a backend.
const SHORTAGES: [(Errno, &str); 5] = [
    (Errno::MFILE, "out of descriptors (EMFILE)"),
    (Errno::NFILE, "out of descriptors on this machine (ENFILE)"),
    (Errno::NOBUFS, "out of socket buffers (ENOBUFS)"),
    (Errno::NOMEM, "out of memory (ENOMEM)"),
    (Errno::ADDRNOTAVAIL, "no local address or port left (EADDRNOTAVAIL)"),
];

/// What *this* machine or process ran out of, if that is what `error` says.
#[must_use]
pub fn shortage(error: &io::Error) -> Option<&'static str> {
    let code = error.raw_os_error()?;
    SHORTAGES.iter().find(|(errno, _)| errno.raw_os_error() == code).map(|&(_, text)| text)
}

/// True when an error says that *this* machine or process ran out of something. Such an error is never held
/// against a backend.
#[must_use]
pub fn is_shortage(error: &io::Error) -> bool {
    shortage(error).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_connect_is_no_shortage_but_a_lack_of_descriptors_is() {
        let from = |errno: Errno| io::Error::from_raw_os_error(errno.raw_os_error());
        for (errno, text) in SHORTAGES {
            assert_eq!(shortage(&from(errno)), Some(text));
        }
        assert!(!is_shortage(&from(Errno::CONNREFUSED)));
        assert!(!is_shortage(&io::Error::other("x")));
    }
}
