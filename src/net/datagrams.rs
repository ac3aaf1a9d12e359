//! Sockets for datagrams.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd as _, AsRawFd, BorrowedFd, OwnedFd};

use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, connect, socket_with};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use super::connect::source;
use super::option;
use crate::config::model::Dialing;

/// Longer than any datagram over IP, and than any row of them that the kernel hands over as one.
pub const UDP_MAX: usize = 65_536;

/// Lets the kernel cut what is too long for the way into fragments: see `option::allow_fragments`.
pub fn allow_fragments(socket: BorrowedFd<'_>, is_v4: bool) {
    option::allow_fragments(socket, is_v4);
}

/// Has the kernel hand over datagrams of one length that came in a row as one.
pub fn join_rows(socket: &UdpSocket) {
    option::join_datagrams_in_a_row(socket.as_fd());
}

/// A non-blocking socket that takes datagrams from `peer` alone and sends to nobody else, from an address that `dialing` says. What machines on the
/// way say about it (ICMP) is an error of the next call on it, also where that can be over again soon.
///
/// # Errors
/// What the system reports; `AddrNotAvailable`, too, when nothing may be sent from an address of this family.
pub fn to_peer(peer: SocketAddr, dialing: &Dialing) -> io::Result<UdpSocket> {
    let family = if peer.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = socket_with(family, SocketType::DGRAM, flags, None)?;
    option::hear_of_errors(socket.as_fd(), peer.is_ipv4());
    if !dialing.sources.is_empty() {
        let source = source(&dialing.sources, peer.is_ipv4(), rand::random())
            .ok_or(io::ErrorKind::AddrNotAvailable)?;
        bind(&socket, &SocketAddr::new(source, 0))?;
    }
    connect(&socket, &peer)?;
    Ok(socket.into())
}

/// Has the event loop watch a descriptor.
///
/// # Errors
/// What the system reports.
#[allow(
    deprecated,
    reason = "its successor is unsafe because a type may lie about its descriptor; std's do not"
)]
pub fn watch<L: AsRawFd + Into<OwnedFd>>(descriptor: L, interest: Interest) -> io::Result<AsyncFd<L>> {
    AsyncFd::with_interest(descriptor, interest)
}
