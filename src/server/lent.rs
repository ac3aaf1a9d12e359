//! Sockets that whoever supervises the process has bound, and keeps when it ends: socket activation, as in sd_listen_fds(3).

use std::io;

use listenfd::ListenFd;

use crate::worker::SocketKind;

/// All of them. The variables that tell of them are gone then: they are for nobody else.
///
/// # Errors
/// One is neither a listening socket of TCP or unix, nor one of UDP.
pub fn lent_sockets() -> io::Result<Vec<SocketKind>> {
    let mut all = ListenFd::from_env();
    (0..all.len()).map(|place| lent(&mut all, place)).collect()
}

fn lent(all: &mut ListenFd, place: usize) -> io::Result<SocketKind> {
    if let Ok(Some(tcp)) = all.take_tcp_listener(place) {
        tcp.set_nonblocking(true)?;
        return Ok(SocketKind::Tcp(tcp));
    }
    if let Ok(Some(unix)) = all.take_unix_listener(place) {
        unix.set_nonblocking(true)?;
        return Ok(SocketKind::Unix(unix));
    }
    if let Ok(Some(udp)) = all.take_udp_socket(place) {
        udp.set_nonblocking(true)?;
        return Ok(SocketKind::Udp(udp, Vec::new()));
    }
    let text = format!(
        "descriptor {} of the supervisor (`LISTEN_FDS`) is no listening socket of TCP or unix, and none of UDP\n  hint: a unit has `Accept=no`, which is the default",
        place + 3
    );
    Err(io::Error::new(io::ErrorKind::InvalidInput, text))
}
