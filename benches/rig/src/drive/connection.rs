//! One connection of the client, with what is spoken on it.

use std::net::SocketAddr;

use anyhow::{Result, ensure};

use crate::message::{Body, Head};

use super::request::Request;
use super::streams::Streams;
use super::tls::Sessions;
use super::transport::Transport;

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

/// A connection on which requests are sent one after the other, or several at a time.
pub(super) struct Connection {
    transport: Transport,
    buffer: Vec<u8>,
    /// What is under way, once HTTP/2 is spoken.
    streams: Option<Streams>,
}

impl Connection {
    /// Connects; with TLS, also sends the first flight of the handshake.
    pub(super) fn open(to: SocketAddr, sessions: Option<&Sessions>) -> Result<Connection> {
        let transport = Transport::open(to, sessions)?;
        Ok(Connection { transport, buffer: vec![0; 64 * 1024], streams: None })
    }

    /// Finishes the handshake if there is one to finish. Tells whether a session was resumed by it.
    pub(super) fn shake_hands(&mut self) -> Result<bool> {
        self.transport.shake_hands()
    }

    /// Sends the request, over HTTP/2 so many times in one piece.
    pub(super) fn send(&mut self, request: &Request, count: u64) -> Result<()> {
        match request {
            Request::Lines(bytes) => self.transport.send(bytes),
            Request::Fields(blocks) => {
                if self.streams.is_none() {
                    ensure!(self.transport.may_speak(b"h2"), "the server does not speak HTTP/2");
                }
                let streams = self.streams.get_or_insert_with(Streams::begin);
                streams.send(&mut self.transport, blocks, count)
            }
        }
    }

    /// Reads the answers to what was sent, and calls `ended` at the end of each. Tells whether the connection can be used again.
    pub(super) fn receive(&mut self, expected: Expected, mut ended: impl FnMut()) -> Result<bool> {
        if let Some(streams) = &mut self.streams {
            streams.receive(&mut self.transport, &mut self.buffer, expected.content, ended)?;
            return Ok(true);
        }
        let goes_on = self.receive_one(expected)?;
        ended();
        Ok(goes_on)
    }

    fn receive_one(&mut self, expected: Expected) -> Result<bool> {
        let mut filled = 0;
        let head = loop {
            ensure!(filled < self.buffer.len() && filled < MOST_HEAD, "the head of the answer never ends");
            let count = self.transport.read(&mut self.buffer[filled..])?;
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
            ensure!(self.transport.read(&mut self.buffer)? == 0, "more than the answer");
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
            (start, end) = (0, self.transport.read(&mut self.buffer)?);
            ensure!(end > 0, "closed in the middle of an answer");
        }
        Ok(match body {
            Body::Length(_) => head.length.unwrap_or_default(),
            Body::Chunks(chunks) => chunks.content,
        })
    }
}
