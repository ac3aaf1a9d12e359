//! What a connection goes over, in clear or with TLS. Everything blocks, for a bounded time.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use rustix::net::{self, AddressFamily, SocketFlags, SocketType, sockopt};
use rustls::{ClientConnection, HandshakeKind, StreamOwned};

use super::tls::Sessions;

/// Longest wait for anything: a proxy under an instruction counter is 50 times slower.
const PATIENCE: Duration = Duration::from_secs(60);
/// Room for answers that are not read yet, so that the proxy never waits for it. The kernel allows as much
/// without being asked for more.
const RECEIVE_BYTES: usize = 200 * 1024;

enum Kind {
    Plain(TcpStream),
    Secure(Box<StreamOwned<ClientConnection, TcpStream>>),
}

/// Bytes to a server and back.
pub(super) struct Transport {
    kind: Kind,
    shaken: bool,
}

impl Transport {
    /// Connects; with TLS, also sends the first flight of the handshake.
    pub(super) fn open(to: SocketAddr, sessions: Option<&Sessions>) -> Result<Transport> {
        let socket = connect(to).with_context(|| format!("cannot connect to {to}"))?;
        let kind = match sessions {
            None => Kind::Plain(socket),
            Some(sessions) => {
                let mut stream = StreamOwned::new(sessions.begin()?, socket);
                flush(&mut stream)?;
                Kind::Secure(Box::new(stream))
            }
        };
        Ok(Transport { kind, shaken: false })
    }

    /// Finishes the handshake if there is one to finish. Tells whether a session was resumed by it.
    pub(super) fn shake_hands(&mut self) -> Result<bool> {
        let Kind::Secure(stream) = &mut self.kind else { return Ok(false) };
        if std::mem::replace(&mut self.shaken, true) {
            return Ok(false);
        }
        while stream.conn.is_handshaking() {
            let count = stream.conn.read_tls(&mut stream.sock).context("handshake")?;
            ensure!(count > 0, "closed during the handshake");
            stream.conn.process_new_packets().context("handshake")?;
            // The last flight waits for the request, to go out in one piece with it.
            if stream.conn.is_handshaking() {
                flush(stream)?;
            }
        }
        Ok(stream.conn.handshake_kind() == Some(HandshakeKind::Resumed))
    }

    /// Whether `protocol` may be spoken: without TLS nobody was asked.
    pub(super) fn may_speak(&self, protocol: &[u8]) -> bool {
        match &self.kind {
            Kind::Plain(_) => true,
            Kind::Secure(stream) => stream.conn.alpn_protocol() == Some(protocol),
        }
    }

    pub(super) fn send(&mut self, mut bytes: &[u8]) -> Result<()> {
        match &mut self.kind {
            Kind::Plain(socket) => socket.write_all(bytes).context("cannot send"),
            Kind::Secure(stream) => {
                while !bytes.is_empty() {
                    let count = stream.conn.writer().write(bytes)?;
                    bytes = &bytes[count..];
                    flush(stream).context("cannot send")?;
                }
                Ok(())
            }
        }
    }

    /// Reads once. 0 is the end, with or without close_notify: HTTP says where an answer ends.
    pub(super) fn read(&mut self, room: &mut [u8]) -> Result<usize> {
        let outcome = match &mut self.kind {
            Kind::Plain(socket) => socket.read(room),
            Kind::Secure(stream) => stream.read(room),
        };
        match outcome {
            Ok(count) => Ok(count),
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(0),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                bail!("no answer within {} s", PATIENCE.as_secs())
            }
            Err(error) => Err(error).context("cannot receive"),
        }
    }
}

fn connect(to: SocketAddr) -> Result<TcpStream> {
    let family = if to.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket: OwnedFd = net::socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    // Before connecting: the window's scale is told with the first packet.
    sockopt::set_socket_recv_buffer_size(&socket, RECEIVE_BYTES)?;
    sockopt::set_tcp_nodelay(&socket, true)?;
    net::connect(&socket, &to)?;
    let socket = TcpStream::from(socket);
    socket.set_read_timeout(Some(PATIENCE))?;
    socket.set_write_timeout(Some(PATIENCE))?;
    Ok(socket)
}

/// Sends the records that are made.
fn flush(stream: &mut StreamOwned<ClientConnection, TcpStream>) -> Result<()> {
    while stream.conn.wants_write() {
        stream.conn.write_tls(&mut stream.sock)?;
    }
    Ok(())
}
