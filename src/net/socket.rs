//! Listening sockets and the options of every socket.
//!
//! Each worker has its own socket per address in one SO_REUSEPORT group, so that the kernel spreads new
//! connections. Before a group is made the address is bound once *without* that option: otherwise a second
//! instance would silently join the group and take half of the traffic.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{SocketFlags, accept_with, acceptfrom_with};
use socket2::{Domain, Protocol, SockAddr, SockRef, Socket, TcpKeepalive, Type};

use super::Stream;
use super::fresh::Fresh;
use super::option::enlarge_receive_buffer;
use crate::config::model::KeepaliveTimes;

/// Connections the kernel may hold for us between the handshake and our accept.
pub const BACKLOG: i32 = 4096;

/// The same for a socket that few talk to.
const PRIVATE_BACKLOG: i32 = 128;

/// Sets keepalive: a peer that vanished without a word is noticed after these times instead of never.
///
/// # Errors
/// What the system reports.
pub fn set_keepalive(socket: &SockRef<'_>, times: &KeepaliveTimes) -> io::Result<()> {
    let KeepaliveTimes { idle, interval, count } = *times;
    let keepalive = TcpKeepalive::new().with_time(idle).with_interval(interval).with_retries(count);
    socket.set_tcp_keepalive(&keepalive)
}

/// A non-blocking listening socket that has `address` for itself, and the address that the system chose (for port 0).
///
/// # Errors
/// `AddrInUse` when anybody else has the address, or what the system reports.
pub fn listen_alone(address: SocketAddr) -> io::Result<(std::net::TcpListener, SocketAddr)> {
    let socket = tcp_socket(address)?;
    set_keepalive(&SockRef::from(&socket), &KeepaliveTimes::default())?;
    socket.bind(&address.into())?;
    socket.listen(PRIVATE_BACKLOG)?;
    socket.set_nonblocking(true)?;
    let bound = socket.local_addr()?.as_socket().unwrap_or(address);
    Ok((socket.into(), bound))
}

/// Binds `address` once without SO_REUSEPORT and gives the address that the system chose (for port 0). The
/// socket that is returned holds the claim; it does not listen.
///
/// # Errors
/// `AddrInUse` when anybody else has the address, also another instance of this program.
pub fn claim(address: SocketAddr) -> io::Result<(Socket, SocketAddr)> {
    let socket = tcp_socket(address)?;
    socket.bind(&address.into())?;
    let bound = socket.local_addr()?.as_socket().unwrap_or(address);
    // From here on our own sockets may join; the claim itself was exclusive.
    socket.set_reuse_port(true)?;
    Ok((socket, bound))
}

/// A non-blocking listening socket in the SO_REUSEPORT group of `address`. Accepted sockets inherit
/// `TCP_NODELAY` and keepalive, which saves system calls per connection.
///
/// # Errors
/// What the system reports.
pub fn listen(address: SocketAddr) -> io::Result<std::net::TcpListener> {
    let socket = reserve(address)?;
    start_listening(&socket)?;
    Ok(socket)
}

/// The same without listening: nobody is accepted before [`start_listening`].
///
/// # Errors
/// What the system reports.
pub fn reserve(address: SocketAddr) -> io::Result<std::net::TcpListener> {
    let socket = tcp_socket(address)?;
    socket.set_reuse_port(true)?;
    socket.set_tcp_nodelay(true)?;
    set_keepalive(&SockRef::from(&socket), &KeepaliveTimes::default())?;
    socket.bind(&address.into())?;
    socket.set_nonblocking(true)?;
    Ok(socket.into())
}

/// Has a reserved socket listen.
///
/// # Errors
/// What the system reports.
pub fn start_listening(socket: &std::net::TcpListener) -> io::Result<()> {
    SockRef::from(socket).listen(BACKLOG)
}

/// A non-blocking socket for datagrams that has `address` for itself, and the address that the system chose (for port 0). Others of ours may
/// join it from then on ([`join_datagrams`]); until then nothing that comes is anybody else's.
///
/// # Errors
/// `AddrInUse` when anybody else has the address, or what the system reports.
pub fn claim_datagrams(address: SocketAddr) -> io::Result<(std::net::UdpSocket, SocketAddr)> {
    let socket = udp_socket(address)?;
    socket.bind(&address.into())?;
    let bound = socket.local_addr()?.as_socket().unwrap_or(address);
    socket.set_reuse_port(true)?;
    Ok((socket.into(), bound))
}

/// Another one in the SO_REUSEPORT group of `address`.
///
/// # Errors
/// What the system reports.
pub fn join_datagrams(address: SocketAddr) -> io::Result<std::net::UdpSocket> {
    let socket = udp_socket(address)?;
    socket.set_reuse_port(true)?;
    socket.bind(&address.into())?;
    Ok(socket.into())
}

/// SO_REUSEADDR would let others of this user take what comes: it is not set.
fn udp_socket(address: SocketAddr) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    socket.set_nonblocking(true)?;
    enlarge_receive_buffer(socket.as_fd());
    Ok(socket)
}

/// Whether a socket takes no IPv4: with IPV6_V6ONLY, and where the system does not say.
#[must_use]
pub fn is_for_v6_only(socket: &std::net::TcpListener) -> bool {
    SockRef::from(socket).only_v6().unwrap_or(true)
}

/// Whether sockets at both addresses would get in each other's way: the port is the same, and so is the address, or one of
/// them stands for all of its family. Ours for v6 take no v4.
#[must_use]
pub fn overlap(one: SocketAddr, other: SocketAddr) -> bool {
    let (a, b) = (one.ip(), other.ip());
    let is_same = a == b || a.is_unspecified() || b.is_unspecified();
    one.port() == other.port() && a.is_ipv4() == b.is_ipv4() && is_same
}

fn tcp_socket(address: SocketAddr) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    if address.is_ipv6() {
        // "*:80" is two sockets of ours; a v6 socket that also took v4 would collide with the other one.
        socket.set_only_v6(true)?;
    }
    Ok(socket)
}

/// A non-blocking unix listening socket. A socket file that nobody listens on any more is replaced; nothing
/// else is ever removed.
///
/// # Errors
/// `AddrInUse` when somebody still listens there, `AlreadyExists` when the file is no socket, or what the system
/// reports.
pub fn listen_unix(path: &Path) -> io::Result<UnixListener> {
    listen_over_stale(path, |path| UnixListener::bind(path))
}

/// The same, for this user and root only: nobody else can connect, at no moment.
///
/// # Errors
/// As [`listen_unix`].
pub fn listen_unix_private(path: &Path) -> io::Result<UnixListener> {
    listen_over_stale(path, |path| {
        let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
        // The file that is made by the bind gets the mode of the socket.
        let socket = std::fs::File::from(OwnedFd::from(socket));
        socket.set_permissions(std::fs::Permissions::from_mode(0o600))?;
        let socket = Socket::from(OwnedFd::from(socket));
        socket.bind(&SockAddr::unix(path)?)?;
        socket.listen(PRIVATE_BACKLOG)?;
        Ok(socket.into())
    })
}

fn listen_over_stale(
    path: &Path,
    bind: impl Fn(&Path) -> io::Result<UnixListener>,
) -> io::Result<UnixListener> {
    let listener = match bind(path) {
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
            refuse_live(path, error)?;
            std::fs::remove_file(path)?;
            bind(path)?
        }
        other => other?,
    };
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// Fails unless what stands at `path` is a socket on which nobody listens; `taken` is the error if somebody does.
fn refuse_live(path: &Path, taken: io::Error) -> io::Result<()> {
    if !std::fs::symlink_metadata(path)?.file_type().is_socket() {
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, "there is a file that is no socket"));
    }
    // One whose queue is full would make a connect that blocks wait for ever.
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    socket.set_nonblocking(true)?;
    let answer = socket.connect(&SockAddr::unix(path)?);
    // Any other failure than a refusal says nothing about whether somebody listens.
    let is_refused = answer.is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused);
    if is_refused { Ok(()) } else { Err(taken) }
}

/// Whether [`listen_unix`] would bind `path`, without a trace: a socket file that nobody listens on stays where it is.
///
/// # Errors
/// As [`listen_unix`].
pub fn try_unix(path: &Path) -> io::Result<()> {
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    match socket.bind(&SockAddr::unix(path)?) {
        Ok(()) => std::fs::remove_file(path),
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => refuse_live(path, error),
        Err(error) => Err(error),
    }
}

/// An accepted connection that no event loop knows yet, so that any thread may serve it.
pub enum Accepted {
    /// TCP.
    Tcp(std::net::TcpStream),
    /// A unix stream socket.
    Unix(UnixStream),
}

impl Accepted {
    /// A stream of the calling thread whose event loop need not know of it yet.
    ///
    /// # Errors
    /// What the system reports.
    pub fn into_fresh_stream(self) -> io::Result<Stream> {
        match self {
            Accepted::Tcp(tcp) => Ok(Stream::Fresh(Fresh::new(tcp))),
            Accepted::Unix(_) => self.into_stream(),
        }
    }

    /// Hands it to the event loop of the calling thread.
    ///
    /// # Errors
    /// What the system reports.
    pub fn into_stream(self) -> io::Result<Stream> {
        Ok(match self {
            Accepted::Tcp(tcp) => tokio::net::TcpStream::from_std(tcp)?.into(),
            Accepted::Unix(unix) => tokio::net::UnixStream::from_std(unix)?.into(),
        })
    }
}

/// Takes a connection out of a listener's queue, with the client's address: one system call, since all options are
/// inherited or said with it.
///
/// # Errors
/// `WouldBlock` when the queue is empty, or what the system reports.
pub fn accept_tcp(listener: &std::net::TcpListener) -> io::Result<(Accepted, Option<(IpAddr, u16)>)> {
    let (socket, address) = acceptfrom_with(listener, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC)?;
    let address = address.and_then(|address| SocketAddr::try_from(address).ok());
    let client = address.map(|address| (address.ip().to_canonical(), address.port()));
    Ok((Accepted::Tcp(socket.into()), client))
}

/// The same for a unix socket, whose clients have no address.
///
/// # Errors
/// `WouldBlock` when the queue is empty, or what the system reports.
pub fn accept_unix(listener: &UnixListener) -> io::Result<Accepted> {
    let socket = accept_with(listener, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC)?;
    Ok(Accepted::Unix(socket.into()))
}

/// Whether somebody waits to be accepted. True where the system does not say.
pub fn is_acceptable(listener: &impl std::os::fd::AsFd) -> bool {
    let mut asked = [PollFd::new(listener, PollFlags::IN)];
    poll(&mut asked, Some(&Timespec::default())).map_or(true, |ready| ready > 0)
}

/// Stops new handshakes on a listening TCP socket while letting those under way finish, so that everything
/// that reached us can be accepted before the socket is closed. Closing alone would reset a connection whose
/// handshake completes between our last accept and the close.
///
/// The filter drops segments that carry SYN without ACK; their senders try again a second later and find
/// either nobody (refused) or our successor.
///
/// # Errors
/// What the system reports, for instance where filters are not allowed.
pub fn refuse_handshakes(listener: &impl std::os::fd::AsFd) -> io::Result<()> {
    // Classic BPF over the TCP header: A = byte 13 (flags); A &= SYN|ACK; A == SYN ? drop : keep.
    let filter = [
        socket2::SockFilter::new(0x30, 0, 0, 13),
        socket2::SockFilter::new(0x54, 0, 0, 0x12),
        socket2::SockFilter::new(0x15, 0, 1, 0x02),
        socket2::SockFilter::new(0x06, 0, 0, 0),
        socket2::SockFilter::new(0x06, 0, 0, u32::MAX),
    ];
    SockRef::from(listener).attach_filter(&filter)
}

/// Raises the soft limit of descriptors to the hard one and gives the limit in force.
///
/// # Errors
/// What the system reports.
pub fn raise_descriptor_limit() -> io::Result<u64> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let hard = limit.maximum.unwrap_or(u64::MAX);
    if limit.current != limit.maximum {
        setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum })?;
    }
    Ok(hard)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn whether_somebody_waits_is_known_without_an_accept() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a listener");
        let address = listener.local_addr().expect("bound");
        assert!(!is_acceptable(&listener));
        let _clients = [(); 2].map(|()| std::net::TcpStream::connect(address).expect("connects"));
        for left in [true, false] {
            assert!(is_acceptable(&listener));
            accept_tcp(&listener).expect("accepted");
            assert_eq!(is_acceptable(&listener), left);
        }
    }

    #[test]
    fn a_wildcard_is_in_the_way_of_its_own_family_and_port_only() {
        let overlapping = |one: &str, other: &str| {
            let [one, other] = [one, other].map(|text| text.parse().expect("an address"));
            assert_eq!(overlap(one, other), overlap(other, one));
            overlap(one, other)
        };
        assert!(overlapping("0.0.0.0:80", "10.0.0.1:80") && overlapping("10.0.0.1:80", "10.0.0.1:80"));
        assert!(overlapping("[::]:80", "[::1]:80"));
        assert!(!overlapping("[::]:80", "10.0.0.1:80") && !overlapping("0.0.0.0:80", "[::1]:80"));
        assert!(!overlapping("10.0.0.1:80", "10.0.0.2:80") && !overlapping("0.0.0.0:80", "10.0.0.1:81"));
    }

    #[test]
    fn a_second_claim_of_an_address_in_use_is_refused() {
        let any = "127.0.0.1:0".parse().expect("an address");
        let (claim_held, bound) = claim(any).expect("a free port");
        let _listening = listen(bound).expect("joins the group");
        drop(claim_held);
        let error = claim(bound).expect_err("taken");
        assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
    }

    #[test]
    fn after_refusing_handshakes_what_was_connected_can_still_be_accepted() {
        let (_claim, bound) = claim("127.0.0.1:0".parse().expect("an address")).expect("a free port");
        let listener = listen(bound).expect("listening");
        let _early = std::net::TcpStream::connect(bound).expect("connects");
        refuse_handshakes(&listener).expect("filters are allowed for one's own sockets");
        let late = std::net::TcpStream::connect_timeout(&bound, Duration::from_millis(50));
        assert!(late.is_err(), "a new handshake is not answered");
        assert!(listener.accept().is_ok(), "the early one is still there");
        assert!(listener.accept().is_err(), "and no other");
    }

    #[test]
    fn a_file_that_is_no_socket_is_never_removed() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("precious");
        std::fs::write(&path, "data").expect("written");
        assert!(listen_unix(&path).is_err());
        assert_eq!(std::fs::read_to_string(&path).expect("still there"), "data");
    }
}
