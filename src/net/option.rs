//! Options of sockets that no library offers.

#![expect(unsafe_code, reason = "options of sockets that no library offers")]

use std::os::fd::{AsRawFd as _, BorrowedFd};

/// Bytes that are written ahead of what the network takes, for a connection on which something more urgent may come next.
const UNSENT: libc::c_int = 128 * 1024;

/// Has the kernel take no more than that (TCP_NOTSENT_LOWAT): it would take megabytes, and what is written behind them waits for all of them. A
/// kernel that does not know the option goes on as before.
pub(super) fn limit_unsent(socket: BorrowedFd<'_>) {
    set(socket, libc::IPPROTO_TCP, libc::TCP_NOTSENT_LOWAT, UNSENT);
}

/// Has a socket that is bound to an address without a port get its port when it connects (IP_BIND_ADDRESS_NO_PORT): one port then serves
/// connections to several backends. A kernel that does not know the option chooses it at once.
pub(super) fn choose_port_late(socket: BorrowedFd<'_>) {
    set(socket, libc::IPPROTO_IP, libc::IP_BIND_ADDRESS_NO_PORT, 1);
}

/// Bytes of datagrams that the kernel holds for us while we do something else.
const RECEIVE_BUFFER: libc::c_int = 4 << 20;

/// Gives a socket for datagrams a receive buffer of that size, where we may (SO_RCVBUFFORCE), or the largest that everybody may have
/// (`net.core.rmem_max`): what there is no room for is lost.
pub(super) fn enlarge_receive_buffer(socket: BorrowedFd<'_>) {
    set(socket, libc::SOL_SOCKET, libc::SO_RCVBUF, RECEIVE_BUFFER);
    set(socket, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, RECEIVE_BUFFER);
}

/// Lets the kernel cut datagrams that are too long for the way into fragments, as it does by default, and has it not note when each came:
/// a library for QUIC has said otherwise.
pub(super) fn allow_fragments(socket: BorrowedFd<'_>, is_v4: bool) {
    set(socket, libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_WANT);
    if !is_v4 {
        set(socket, libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER, libc::IPV6_PMTUDISC_WANT);
        set(socket, libc::IPPROTO_IPV6, libc::IPV6_DONTFRAG, 0);
    }
    set(socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 0);
}

/// Has the kernel report on a connected socket for datagrams all that machines on the way say (IP_RECVERR), and not only that nobody listens.
pub(super) fn hear_of_errors(socket: BorrowedFd<'_>, is_v4: bool) {
    if is_v4 {
        set(socket, libc::IPPROTO_IP, libc::IP_RECVERR, 1);
    } else {
        set(socket, libc::IPPROTO_IPV6, libc::IPV6_RECVERR, 1);
    }
}

/// Has the kernel hand over datagrams of one length that came in a row as one (UDP_GRO). One that can't goes on as before.
pub(super) fn join_datagrams_in_a_row(socket: BorrowedFd<'_>) {
    set(socket, libc::SOL_UDP, libc::UDP_GRO, 1);
}

fn set(socket: BorrowedFd<'_>, level: libc::c_int, name: libc::c_int, value: libc::c_int) {
    // SAFETY: the kernel reads the bytes of `value`, as many as it is told, while they are borrowed.
    let _ = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            name,
            (&raw const value).cast(),
            size_of_val(&value) as libc::socklen_t,
        )
    };
}

#[cfg(test)]
mod tests {
    use std::io::{ErrorKind, Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsFd;

    use super::*;

    /// How many bytes a socket takes for a peer that reads nothing.
    fn taken(limited: bool) -> usize {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let mut ours = TcpStream::connect(listener.local_addr().expect("it is bound")).expect("connects");
        let (mut theirs, _) = listener.accept().expect("accepts");
        socket2::SockRef::from(&ours).set_send_buffer_size(4 << 20).expect("it is allowed");
        if limited {
            limit_unsent(ours.as_fd());
        }
        ours.set_nonblocking(true).expect("a socket");
        let mut count = 0;
        loop {
            match ours.write(&[7; 64 * 1024]) {
                Ok(written) => count += written,
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::WouldBlock);
                    break;
                }
            }
        }
        ours.shutdown(std::net::Shutdown::Write).expect("it is open");
        let mut received = Vec::new();
        assert_eq!(theirs.read_to_end(&mut received).expect("reads"), count, "all of it arrives");
        count
    }

    #[test]
    fn less_waits_in_the_kernel_where_that_is_limited() {
        let (limited, usual) = (taken(true), taken(false));
        assert!(limited > 128 * 1024 && limited + (64 << 10) < usual, "{limited} {usual}");
    }
}
