//! Bytes to a peer and back, in clear or with TLS, without ever waiting.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};

use anyhow::{Context, Result};
use rustls::ClientConnection;

use crate::drive::Sessions;

/// What uploads are made of.
static FILLER: [u8; 64 * 1024] = [b'u'; 64 * 1024];

/// One connection, and what still has to be sent on it.
pub(super) struct Link {
    pub(super) socket: TcpStream,
    tls: Option<Box<ClientConnection>>,
    queued: Vec<u8>,
    /// Bytes of `queued` that are sent.
    sent: usize,
    /// Bytes that follow what is queued, of no meaning.
    filler: usize,
}

impl Link {
    pub(super) fn open(to: SocketAddr, sessions: Option<&Sessions>) -> Result<Link> {
        let socket = TcpStream::connect(to).with_context(|| format!("cannot connect to {to}"))?;
        socket.set_nodelay(true)?;
        socket.set_nonblocking(true)?;
        let tls = sessions.map(|sessions| sessions.begin().map(Box::new)).transpose()?;
        Ok(Link { socket, tls, queued: Vec::new(), sent: 0, filler: 0 })
    }

    /// Has `bytes` sent by the next calls of [`Link::flush`], and behind them so much of no meaning.
    pub(super) fn queue(&mut self, bytes: &[u8], filler: usize) {
        self.queued.extend_from_slice(bytes);
        self.filler += filler;
    }

    /// Says that nothing more will be sent.
    pub(super) fn finish(&self) -> io::Result<()> {
        self.socket.shutdown(Shutdown::Write)
    }

    /// Sends as much as there is room for. False: the rest waits for room.
    pub(super) fn flush(&mut self) -> io::Result<bool> {
        loop {
            let Link { socket, tls, queued, sent, filler } = self;
            if let Some(tls) = tls {
                while tls.wants_write() {
                    match tls.write_tls(socket) {
                        Ok(_) => {}
                        Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                        Err(error) => return Err(error),
                    }
                }
            }
            let left = &queued[*sent..];
            let piece = if left.is_empty() { &FILLER[..(*filler).min(FILLER.len())] } else { left };
            if piece.is_empty() {
                queued.clear();
                *sent = 0;
                return Ok(true);
            }
            let outcome = match tls {
                Some(tls) => tls.writer().write(piece),
                None => socket.write(piece),
            };
            match outcome {
                // A handshake is under way, whose end is something to read.
                Ok(0) => return Ok(true),
                Ok(count) if left.is_empty() => *filler -= count,
                Ok(count) => *sent += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error),
            }
        }
    }

    /// Reads once; `None`: nothing is there. 0 is the end, with or without close_notify: whoever waits for something knows
    /// whether it was whole.
    pub(super) fn read(&mut self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        let Some(tls) = &mut self.tls else { return unless_blocked(self.socket.read(buffer)) };
        loop {
            match tls.reader().read(buffer) {
                Ok(count) => return Ok(Some(count)),
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(Some(0)),
                Err(error) if error.kind() != ErrorKind::WouldBlock => return Err(error),
                Err(_) => {}
            }
            match unless_blocked(tls.read_tls(&mut self.socket))? {
                None => return Ok(None),
                Some(0) => return Ok(Some(0)),
                Some(_) => {}
            }
            tls.process_new_packets().map_err(io::Error::other)?;
        }
    }
}

fn unless_blocked(outcome: io::Result<usize>) -> io::Result<Option<usize>> {
    match outcome {
        Ok(count) => Ok(Some(count)),
        Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(None),
        Err(error) => Err(error),
    }
}
