//! One connection of the client, in clear or with TLS. Everything blocks, for a bounded time.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use rustix::net::{self, AddressFamily, SocketFlags, SocketType, sockopt};
use rustls::{ClientConnection, HandshakeKind, StreamOwned};

use crate::message::{Body, Head};

use super::tls::Sessions;

/// Longest wait for anything: a proxy under an instruction counter is 50 times slower.
const PATIENCE: Duration = Duration::from_secs(60);
/// Room for answers that are not read yet, so that the proxy never waits for it. The kernel allows as much
/// without being asked for more.
const RECEIVE_BYTES: usize = 200 * 1024;
/// Longest head of an answer.
const MOST_HEAD: usize = 64 * 1024;

/// What every answer must be.
#[derive(Clone, Copy)]
pub(super) struct Expected {
    /// Bytes of content.
    pub(super) content: u64,
    /// Whether the connection ends behind it.
    pub(super) close: bool,
}

enum Transport {
    Plain(TcpStream),
    Secure(Box<StreamOwned<ClientConnection, TcpStream>>),
}

/// A connection on which requests are sent one after the other.
pub(super) struct Connection {
    transport: Transport,
    shaken: bool,
    buffer: Vec<u8>,
}

impl Connection {
    /// Connects; with TLS, also sends the first flight of the handshake.
    pub(super) fn open(to: SocketAddr, sessions: Option<&Sessions>) -> Result<Connection> {
        let socket = connect(to).with_context(|| format!("cannot connect to {to}"))?;
        let transport = match sessions {
            None => Transport::Plain(socket),
            Some(sessions) => {
                let mut stream = StreamOwned::new(sessions.begin()?, socket);
                flush(&mut stream)?;
                Transport::Secure(Box::new(stream))
            }
        };
        Ok(Connection { transport, shaken: false, buffer: vec![0; 64 * 1024] })
    }

    /// Finishes the handshake if there is one to finish. Tells whether a session was resumed by it.
    pub(super) fn shake_hands(&mut self) -> Result<bool> {
        let Transport::Secure(stream) = &mut self.transport else { return Ok(false) };
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

    pub(super) fn send(&mut self, mut request: &[u8]) -> Result<()> {
        match &mut self.transport {
            Transport::Plain(socket) => socket.write_all(request).context("cannot send"),
            Transport::Secure(stream) => {
                while !request.is_empty() {
                    let count = stream.conn.writer().write(request)?;
                    request = &request[count..];
                    flush(stream).context("cannot send")?;
                }
                Ok(())
            }
        }
    }

    /// Reads one answer. Tells whether the connection can be used again.
    pub(super) fn receive(&mut self, expected: Expected) -> Result<bool> {
        let mut filled = 0;
        let head = loop {
            ensure!(filled < self.buffer.len() && filled < MOST_HEAD, "the head of the answer never ends");
            let count = self.read(filled)?;
            ensure!(count > 0, "closed before an answer");
            filled += count;
            if let Some(head) = Head::read(&self.buffer[..filled]) {
                break head;
            }
        };
        let line = self.buffer.split(|&byte| byte == b'\r').next().unwrap_or_default();
        ensure!(line.starts_with(b"HTTP/1.1 200"), "answered {}", line.escape_ascii());
        ensure!(head.chunked || head.length.is_some(), "an answer without a length");
        let content = self.content(&head, filled)?;
        ensure!(content == expected.content, "{content} bytes of content, not {}", expected.content);
        if expected.close {
            // The proxy is to close first: whoever does has the socket in TIME_WAIT.
            ensure!(self.read(0)? == 0, "more than the answer");
        }
        Ok(!expected.close && !head.close)
    }

    /// Reads the body, of which a part may be in the buffer. Returns its length.
    fn content(&mut self, head: &Head, filled: usize) -> Result<u64> {
        let Some(mut body) = Body::after(head) else {
            ensure!(filled == head.len, "more than the answer");
            return Ok(0);
        };
        let (mut start, mut end) = (head.len, filled);
        loop {
            let (taken, done) = body.skip(&self.buffer[start..end]);
            if done {
                ensure!(start + taken == end, "more than the answer");
                break;
            }
            (start, end) = (0, self.read(0)?);
            ensure!(end > 0, "closed in the middle of an answer");
        }
        Ok(match body {
            Body::Length(_) => head.length.unwrap_or_default(),
            Body::Chunks(chunks) => chunks.content,
        })
    }

    /// Reads once, behind `filled`. 0 is the end, and so is a reset.
    fn read(&mut self, filled: usize) -> Result<usize> {
        let room = &mut self.buffer[filled..];
        let outcome = match &mut self.transport {
            Transport::Plain(socket) => socket.read(room),
            Transport::Secure(stream) => stream.read(room),
        };
        match outcome {
            Ok(count) => Ok(count),
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
