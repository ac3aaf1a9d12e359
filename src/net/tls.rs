//! TLS on a connected stream, driven by readiness like any other stream.
//!
//! The session is rustls; this file moves its records. A write is reported as done when the kernel has taken the
//! last byte of its records, so "blocked" means the same here as on a plain socket: the peer does not read. A
//! peer that ends without close_notify has cut the connection, and reading it fails (RFC 8446 §6.1).
//!
//! A session that waits owns no buffer. Records come and go through space that all sessions of a thread share
//! (`scratch`); only what is left of them is kept: a part of a record, content that the reader had no space for, records
//! that the socket did not take.

pub(super) mod rest;
mod scratch;
pub(super) mod session;

use std::cell::Cell;
use std::io::{self, IoSlice};
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};

use rustls::client::UnbufferedClientConnection;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::server::UnbufferedServerConnection;
use rustls::{ClientConfig, HandshakeKind, ProtocolVersion, ServerConfig};
use tokio::io::ReadBuf;

use super::stream::{Stream, Tls};
use rest::Rest;
use scratch::{MOST_HELD, MOST_READ, Scratch};
use session::{Session, Taken};

/// The alert decode_error in clear (RFC 8446 §6.2).
const DECODE_ERROR: &[u8] = &[21, 3, 3, 0, 2, 2, 50];

/// Kinds of records (RFC 5246 §6.2.1).
const ALERT: u8 = 21;
const HANDSHAKE: u8 = 22;

/// What is read at once, at least: a reader with less space must not make a large record cost many calls.
const LEAST_READ: usize = 4 * 1024;

/// Why there is no session.
#[derive(Debug)]
pub enum TlsBroken {
    /// The peer closed, or the socket failed.
    Closed(io::Error),
    /// The peer's messages are wrong, or it was told to go away.
    Protocol(rustls::Error),
}

impl std::fmt::Display for TlsBroken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            TlsBroken::Closed(error) => error.fmt(f),
            TlsBroken::Protocol(error) => error.fmt(f),
        }
    }
}

impl Tls {
    /// The server's side of a session that has not begun. `first` is what was read of it already.
    ///
    /// # Errors
    /// The config can't serve anybody.
    pub fn server(stream: Stream, config: Arc<ServerConfig>, first: &[u8]) -> Result<Tls, rustls::Error> {
        let session = Session::Server(UnbufferedServerConnection::new(config)?);
        Ok(Tls::new(stream, session, first))
    }

    /// The client's side of a session that has not begun, with a server that proves to be `name`.
    ///
    /// # Errors
    /// The config can't be used for this name.
    pub fn client(
        stream: Stream,
        config: Arc<ClientConfig>,
        name: ServerName<'static>,
    ) -> Result<Tls, rustls::Error> {
        let session = Session::Client(UnbufferedClientConnection::new(config, name)?);
        Ok(Tls::new(stream, session, &[]))
    }

    fn new(stream: Stream, session: Session, first: &[u8]) -> Tls {
        Tls {
            stream,
            session,
            held: first.to_vec(),
            fresh: true,
            content: Rest::default(),
            out: Rest::default(),
            encrypts: false,
            alert: &[],
            owed: 0,
            ended: false,
            closed: false,
            fault: None,
            aborted: Cell::new(false),
        }
    }

    /// Shakes hands. There is no time limit in here.
    ///
    /// # Errors
    /// See [`TlsBroken`]. The peer has been told why, as far as it listened.
    pub fn poll_handshake(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), TlsBroken>> {
        loop {
            // Also tickets, for which nobody waits, go out before anything else is done: a client that sends its request by
            // Nagle's rule waits for our acknowledgement, which comes with them or 40 ms later.
            if let Err(error) = ready!(self.poll_flush(cx)) {
                return self.last_words(cx).map(|told| Err(told.unwrap_or(TlsBroken::Closed(error))));
            }
            if !self.session.common().is_handshaking() {
                return Poll::Ready(Ok(()));
            }
            match ready!(self.poll_records(cx, &mut ReadBuf::new(&mut []))) {
                Ok(true) => {}
                Ok(false) => return Poll::Ready(Err(TlsBroken::Closed(io::ErrorKind::UnexpectedEof.into()))),
                Err(broken) => return Poll::Ready(Err(broken)),
            }
        }
    }

    /// Reads decrypted bytes once.
    ///
    /// # Errors
    /// What the socket reports, a broken record, or an end without close_notify.
    pub fn poll_read(&mut self, cx: &mut Context<'_>, space: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if space.remaining() == 0 {
            return Poll::Ready(Ok(()));
        }
        let before = space.remaining();
        loop {
            if !self.content.is_empty() {
                let count = self.content.data().len().min(space.remaining());
                space.put_slice(&self.content.data()[..count]);
                self.content.consume(count);
                return Poll::Ready(Ok(()));
            }
            if self.ended {
                return Poll::Ready(Ok(()));
            }
            let outcome = ready!(self.poll_records(cx, space));
            // What came before a fault is good. The fault is there to be met again.
            if space.remaining() < before {
                return Poll::Ready(Ok(()));
            }
            match outcome {
                Ok(true) => {}
                Ok(false) => return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into())),
                Err(TlsBroken::Closed(error)) => return Poll::Ready(Err(error)),
                Err(TlsBroken::Protocol(error)) => {
                    return Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, error)));
                }
            }
        }
    }

    /// Writes once. After `Pending` the next call must begin with the same bytes: they are on their way.
    ///
    /// # Errors
    /// What the socket reports.
    pub fn poll_write(&mut self, cx: &mut Context<'_>, parts: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        if self.owed == 0 {
            if let Some(fault) = &self.fault {
                let fault = rustls::Error::clone(fault);
                return Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, fault)));
            }
            ready!(self.poll_flush(cx))?;
            ready!(scratch::with(|scratch| self.poll_say(cx, parts, scratch)))?;
        }
        ready!(self.poll_flush(cx))?;
        Poll::Ready(Ok(std::mem::take(&mut self.owed)))
    }

    /// Encrypts and sends. `Pending`: what the socket did not take waits.
    fn poll_say(
        &mut self,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
        scratch: &mut Scratch,
    ) -> Poll<io::Result<()>> {
        let Scratch { outgoing, gathered, .. } = scratch;
        let said = self.session.say(&mut self.held, parts, gathered, outgoing);
        let said = said.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        if said == 0 && parts.iter().any(|part| !part.is_empty()) {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        self.owed = said;
        let mut sent = 0;
        while sent < outgoing.data().len() {
            match self.stream.poll_write(cx, &outgoing.data()[sent..]) {
                Poll::Ready(Ok(0)) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                Poll::Ready(Ok(count)) => sent += count,
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => {
                    self.out.push(&outgoing.data()[sent..]);
                    return Poll::Pending;
                }
            }
        }
        Poll::Ready(Ok(()))
    }

    /// What is below, for last words when there is no session.
    pub fn socket(&mut self) -> &mut Stream {
        &mut self.stream
    }

    /// True while bytes of a write are on their way that was not reported as done.
    #[must_use]
    pub fn is_writing(&self) -> bool {
        self.owed > 0
    }

    /// Says within the session that we have sent our last byte, and waits until that is out.
    ///
    /// # Errors
    /// What the socket reports.
    pub fn poll_close_notify(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.closed {
            self.closed = true;
            self.end();
        }
        self.poll_flush(cx)
    }

    /// Says that we have sent our last byte: with close_notify, then on the socket.
    ///
    /// # Errors
    /// What the socket reports.
    pub fn poll_shutdown(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_close_notify(cx))?;
        self.stream.poll_shutdown(cx)
    }

    /// Ready when a read would probably not wait. A part of a record makes the socket readable, and no byte.
    ///
    /// # Errors
    /// What the runtime reports.
    pub fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.has_news() { Poll::Ready(Ok(())) } else { self.stream.poll_seen(cx) }
    }

    /// True when nothing was decrypted that nobody has read, and the socket is silent and open.
    #[must_use]
    pub fn is_silent(&self) -> bool {
        !self.has_news() && self.stream.is_silent()
    }

    /// True when the connection below has failed; see [`Stream::has_failed`].
    #[must_use]
    pub fn has_failed(&self) -> bool {
        self.stream.has_failed()
    }

    /// True when a read has something to say whatever the socket does.
    fn has_news(&self) -> bool {
        !self.content.is_empty() || self.ended || self.fault.is_some()
    }

    /// True when bytes of the peer were taken off the socket that no read has given out: content, or a part of a
    /// record, which is nothing yet and will be something.
    #[must_use]
    pub fn has_leftover(&self) -> bool {
        !self.content.is_empty() || !self.held.is_empty()
    }

    /// Makes closing reset the connection, without close_notify.
    pub fn reset_on_close(&self) {
        self.aborted.set(true);
        self.stream.reset_on_close();
    }

    /// The version that was agreed on.
    #[must_use]
    pub fn version(&self) -> Option<ProtocolVersion> {
        self.session.common().protocol_version()
    }

    /// True when the session continues an earlier one.
    #[must_use]
    pub fn is_resumed(&self) -> bool {
        self.session.common().handshake_kind() == Some(HandshakeKind::Resumed)
    }

    /// True when both sides have agreed on HTTP/2 (ALPN, RFC 9113 §3.2).
    #[must_use]
    pub fn is_http2(&self) -> bool {
        self.session.common().alpn_protocol() == Some(b"h2")
    }

    /// What was agreed on for what is spoken inside (ALPN), of what we know.
    #[must_use]
    pub fn agreed(&self) -> Option<&'static str> {
        match self.session.common().alpn_protocol()? {
            b"h2" => Some("h2"),
            b"http/1.1" => Some("http/1.1"),
            _ => None,
        }
    }

    /// The peer's certificate, if it has shown one and it was verified.
    #[must_use]
    pub fn peer_certificate(&self) -> Option<&CertificateDer<'static>> {
        self.session.common().peer_certificates()?.first()
    }

    /// Takes in what the socket has; content goes to `space` as long as there is any. `Ok(false)`: it has ended.
    fn poll_records(
        &mut self,
        cx: &mut Context<'_>,
        space: &mut ReadBuf<'_>,
    ) -> Poll<Result<bool, TlsBroken>> {
        if let Some(fault) = &self.fault {
            return Poll::Ready(Err(TlsBroken::Protocol(rustls::Error::clone(fault))));
        }
        scratch::with(|scratch| {
            let held = self.held.len();
            let mut read = 0;
            if !std::mem::take(&mut self.fresh) {
                // No more than the reader can take, so that nothing is left over when it comes in bulk.
                let most = space.remaining().clamp(LEAST_READ, MOST_READ);
                let mut bytes = ReadBuf::new(&mut scratch.incoming[held..held + most]);
                match self.stream.poll_read(cx, &mut bytes) {
                    Poll::Ready(Ok(())) => read = bytes.filled().len(),
                    Poll::Ready(Err(error)) => return Poll::Ready(Err(TlsBroken::Closed(error))),
                    Poll::Pending => return Poll::Pending,
                }
                if read == 0 {
                    return Poll::Ready(Ok(false));
                }
            }
            scratch.incoming[..held].copy_from_slice(&self.held);
            Poll::Ready(self.take_in(cx, held + read, space, scratch).map(|()| true))
        })
    }

    /// Takes in the first `count` bytes of what is incoming.
    fn take_in(
        &mut self,
        cx: &mut Context<'_>,
        count: usize,
        space: &mut ReadBuf<'_>,
        scratch: &mut Scratch,
    ) -> Result<(), TlsBroken> {
        let Scratch { incoming, outgoing, .. } = scratch;
        let rest = &mut self.content;
        let outcome = self.session.take_in(&mut incoming[..count], outgoing, |content| {
            let (now, later) = content.split_at(content.len().min(space.remaining()));
            space.put_slice(now);
            rest.push(later);
        });
        let (taken, fault) = match outcome {
            Ok(taken) if !taken.ended && count - taken.used >= MOST_HELD => {
                (taken, Some(rustls::Error::General("a message that is too long".to_owned())))
            }
            Ok(taken) => (taken, None),
            Err(error) => (Taken::default(), Some(error)),
        };
        let said = outgoing.data();
        let (answers, alerts) = (!said.is_empty(), kinds(said).last() == Some(ALERT));
        self.encrypts = self.encrypts || kinds(said).any(|kind| !matches!(kind, HANDSHAKE | ALERT));
        self.out.push(said);
        self.ended = taken.ended;
        if self.ended || fault.is_some() || taken.used == count {
            self.held = Vec::new();
        } else {
            self.held.clear();
            self.held.extend_from_slice(&incoming[taken.used..count]);
        }
        let Some(error) = fault else {
            // What answers the peer (an alert, a new key) goes out with the next write at the latest. A peer that takes nothing any
            // more may still have said something that is worth reading.
            if answers && !self.session.common().is_handshaking() {
                let _ = self.poll_flush(cx);
            }
            return Ok(());
        };
        // For a few faults rustls makes no alert. While nothing is encrypted, under TLS 1.2 up to our change of ciphers, one
        // of ours is as good (RFC 5246 §7.2.2). A peer's own alert is not answered.
        let told = matches!(error, rustls::Error::AlertReceived(_));
        if !told && !self.encrypts && !alerts {
            self.alert = DECODE_ERROR;
        }
        // The alert that says why. What there is no room for now goes out with the shutdown, if that comes.
        let _ = self.poll_flush(cx);
        self.closed = true;
        self.fault = Some(Box::new(error.clone()));
        Err(TlsBroken::Protocol(error))
    }

    /// Why a peer that takes nothing any more has gone, if it has said so before. Its end follows, so this does.
    fn last_words(&mut self, cx: &mut Context<'_>) -> Poll<Option<TlsBroken>> {
        loop {
            match ready!(self.poll_records(cx, &mut ReadBuf::new(&mut []))) {
                Ok(true) => {}
                Err(told @ TlsBroken::Protocol(_)) => return Poll::Ready(Some(told)),
                Ok(false) | Err(TlsBroken::Closed(_)) => return Poll::Ready(None),
            }
        }
    }

    /// Puts close_notify behind what is not out yet.
    fn end(&mut self) {
        scratch::with(|scratch| {
            self.session.end(&mut self.held, &mut scratch.outgoing);
            self.out.push(scratch.outgoing.data());
        });
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.out.is_empty() {
            match ready!(self.stream.poll_write(cx, self.out.data()))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                count => self.out.consume(count),
            }
        }
        while !self.alert.is_empty() {
            match ready!(self.stream.poll_write(cx, self.alert))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                count => self.alert = &self.alert[count..],
            }
        }
        Poll::Ready(Ok(()))
    }
}

/// The kinds of these records.
fn kinds(mut records: &[u8]) -> impl Iterator<Item = u8> {
    std::iter::from_fn(move || {
        let [kind, _, _, high, low, behind @ ..] = records else { return None };
        records = behind.get(usize::from(u16::from_be_bytes([*high, *low]))..).unwrap_or_default();
        Some(*kind)
    })
}

impl Drop for Tls {
    fn drop(&mut self) {
        // A clean close says so; a session that never stood, or was cut in the middle of a write, has nothing
        // to say. Nor has one that a panic ends: it may be the session that broke, and a second panic in here would
        // end the process.
        let cut = self.aborted.get() || self.owed > 0 || std::thread::panicking();
        if !self.closed && !cut && !self.session.common().is_handshaking() {
            self.end();
            let _ = self.poll_flush(&mut Context::from_waker(Waker::noop()));
        }
    }
}

#[cfg(test)]
pub(crate) mod fixture;
#[cfg(test)]
mod flow;
#[cfg(test)]
mod gone;
#[cfg(test)]
mod tests;
