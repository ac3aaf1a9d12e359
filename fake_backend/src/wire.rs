//! One connection's bytes: a stream, what was read and not yet used, and the counters. Holds no buffer while
//! idle, so thousands of silent connections cost next to nothing. Used by `http` and `tcp`.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{sleep, timeout};

use crate::behaviour::{Ending, Pace, TlsFault};
use crate::login::Login;
use crate::pattern::{SLICE, pattern_slice};
use crate::state::State;
use crate::stream::Stream;
use crate::tls::TlsFacts;

/// How long an ordered close waits for the peer's end, and how much it reads meanwhile: closing with unread
/// bytes would reset the connection and take the answer away.
const LINGER: Duration = Duration::from_secs(1);
const LINGER_BYTES: u64 = 16 * 1024 * 1024;

/// What ended a silence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Silence {
    /// There is something to read, perhaps the peer's end.
    Broken,
    /// The idle time is over, or idle connections were told to close.
    Over,
}

/// A connection.
#[derive(Debug)]
pub(crate) struct Wire {
    stream: Stream,
    input: Vec<u8>,
    used: usize,
    state: Arc<State>,
    /// 1 for the first connection this fake accepted.
    pub(crate) number: u64,
    /// What its handshake agreed upon.
    pub(crate) tls: Option<Arc<TlsFacts>>,
    /// Who has logged in on it.
    pub(crate) login: Login,
}

impl Wire {
    pub(crate) fn new(stream: Stream, state: Arc<State>, number: u64, tls: Option<Arc<TlsFacts>>) -> Self {
        Self { stream, input: Vec::new(), used: 0, state, number, tls, login: Login::default() }
    }

    /// What was read and not used yet.
    pub(crate) fn pending(&self) -> &[u8] {
        &self.input[self.used..]
    }

    /// Marks bytes of [`Self::pending`] as used.
    pub(crate) fn consume(&mut self, length: usize) {
        self.used = (self.used + length).min(self.input.len());
        if self.used == self.input.len() {
            self.input.clear();
            self.used = 0;
        }
    }

    /// Reads once, up to `most` bytes; 0 is the peer's end.
    pub(crate) async fn fill(&mut self, most: usize) -> io::Result<usize> {
        if self.used > 0 {
            self.input.drain(..self.used);
            self.used = 0;
        }
        if self.input.capacity() == 0 {
            self.stream.readable().await?;
        }
        self.input.reserve(most);
        let read = self.stream.read(&mut self.input).await?;
        self.state.add(|counters| &counters.bytes_in, read as u64);
        Ok(read)
    }

    /// Reads more, taking the peer's end for an error.
    pub(crate) async fn need(&mut self, most: usize) -> io::Result<()> {
        match self.fill(most).await? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }

    /// Sends all of it.
    pub(crate) async fn send(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let written = self.stream.write(bytes).await?;
            if written == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            self.state.add(|counters| &counters.bytes_out, written as u64);
            bytes = &bytes[written..];
        }
        Ok(())
    }

    /// Sends part of the pattern, as it is or in chunks, at this pace.
    pub(crate) async fn send_pattern(
        &mut self,
        from: u64,
        length: u64,
        pace: Option<Pace>,
        chunked: bool,
    ) -> io::Result<()> {
        let most = pace.map_or(SLICE as u64, |pace| pace.bytes.clamp(1, SLICE as u64));
        let end = from + length;
        let mut at = from;
        while at < end {
            let piece = pattern_slice(at, most.min(end - at));
            self.send_piece(piece, chunked).await?;
            at += piece.len() as u64;
            if let Some(pace) = pace {
                sleep(pace.every).await;
            }
        }
        Ok(())
    }

    /// Sends bytes as they are or as one chunk.
    pub(crate) async fn send_piece(&mut self, bytes: &[u8], chunked: bool) -> io::Result<()> {
        if !chunked {
            return self.send(bytes).await;
        }
        let mut chunk = format!("{:x}\r\n", bytes.len()).into_bytes();
        chunk.extend_from_slice(bytes);
        chunk.extend_from_slice(b"\r\n");
        self.send(&chunk).await
    }

    /// Sends FIN, under TLS behind a close_notify; reading goes on.
    pub(crate) async fn finish(&mut self) -> io::Result<()> {
        let notify = self.state.behaviour().tls_fault != Some(TlsFault::NoCloseNotify);
        self.stream.finish(notify).await
    }

    /// Waits for a request with no buffer. Between two requests no longer than the behaviour of the moment
    /// allows; for the `first` one as long as it takes.
    pub(crate) async fn rest(&mut self, first: bool) -> io::Result<Silence> {
        self.input = Vec::new();
        self.used = 0;
        loop {
            let replanned = self.state.replanned();
            let cut = self.state.idle_cut();
            let limit = self.state.behaviour().idle_close.filter(|_| !first);
            if limit == Some(Duration::ZERO) {
                return Ok(Silence::Over);
            }
            let over = async {
                match limit {
                    Some(limit) => sleep(limit).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                // A request that is there is no silence, however late this looks.
                biased;
                readable = self.stream.readable() => return readable.map(|()| Silence::Broken),
                () = cut => return Ok(Silence::Over),
                () = replanned => {}
                () = over => return Ok(Silence::Over),
            }
        }
    }

    /// Reads and forgets until the peer ends or resets.
    pub(crate) async fn drain(&mut self) -> io::Result<u64> {
        let mut total = self.pending().len() as u64;
        loop {
            self.consume(usize::MAX - self.used);
            match self.fill(16 * 1024).await? {
                0 => return Ok(total),
                read => total += read as u64,
            }
        }
    }

    /// Reads nothing and waits until the peer resets, perhaps for ever.
    pub(crate) async fn stall(&mut self) {
        // Either way the connection is of no more use.
        let _ = self.stream.broken().await;
    }

    /// Ends the connection.
    pub(crate) async fn end(mut self, ending: Ending) {
        match ending {
            Ending::Reset => self.stream.reset_on_close(),
            Ending::KeepOpen | Ending::Serve => {
                // The peer's end or reset is all there is to wait for.
                let _ = self.drain().await;
            }
            Ending::Close => {
                if self.finish().await.is_ok() {
                    // A peer that keeps sending gets its reset in the end; nothing is left to say to it.
                    let _ = timeout(LINGER, self.linger()).await;
                }
            }
        }
    }

    async fn linger(&mut self) -> io::Result<()> {
        let mut total = 0;
        while total < LINGER_BYTES {
            self.consume(usize::MAX - self.used);
            match self.fill(16 * 1024).await? {
                0 => return Ok(()),
                read => total += read as u64,
            }
        }
        Ok(())
    }
}
