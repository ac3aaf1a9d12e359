//! TLS on a connected stream, driven by readiness like any other stream.
//!
//! The session is rustls; this file moves its records. A write is reported as done when the kernel has taken the
//! last byte of its records, so "blocked" means the same here as on a plain socket: the peer does not read. A
//! peer that ends without close_notify has cut the connection, and reading it fails (RFC 8446 §6.1).

mod records;

use std::cell::Cell;
use std::io::{self, IoSlice, Read, Write};
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};

use rustls::client::ClientConnection;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::server::ServerConnection;
use rustls::{ClientConfig, Connection, HandshakeKind, ProtocolVersion, ServerConfig};
use tokio::io::ReadBuf;

use super::Stream;
use records::Records;

/// The alert decode_error in clear (RFC 8446 §6.2).
const DECODE_ERROR: &[u8] = &[21, 3, 3, 0, 2, 2, 50];

/// A TLS session on a stream.
pub struct Tls {
    stream: Stream,
    session: Connection,
    records: Records,
    /// A byte of ours is out.
    spoken: bool,
    /// What is left to say of an alert that the session does not make.
    alert: &'static [u8],
    /// Bytes that the caller wrote and we have not said so, because their records are not all out.
    owed: usize,
    /// Decrypted bytes that wait to be read.
    ready: usize,
    /// The peer has said that it is done.
    ended: bool,
    /// We have said it, or can't any more.
    closed: bool,
    /// Closing is meant to be seen as a cut: without close_notify.
    aborted: Cell<bool>,
}

/// Why there is no session.
#[derive(Debug)]
pub enum Broken {
    /// The peer closed, or the socket failed.
    Closed(io::Error),
    /// The peer's messages are wrong, or it was told to go away.
    Protocol(rustls::Error),
}

impl std::fmt::Display for Broken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Broken::Closed(error) => error.fmt(f),
            Broken::Protocol(error) => error.fmt(f),
        }
    }
}

impl Tls {
    /// The server's side of a session that has not begun.
    ///
    /// # Errors
    /// The config can't serve anybody.
    pub fn server(stream: Stream, config: Arc<ServerConfig>) -> Result<Tls, rustls::Error> {
        ServerConnection::new(config).map(|session| Tls::new(stream, session.into()))
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
        ClientConnection::new(config, name).map(|session| Tls::new(stream, session.into()))
    }

    fn new(stream: Stream, session: Connection) -> Tls {
        Tls {
            stream,
            session,
            records: Records::default(),
            spoken: false,
            alert: &[],
            owed: 0,
            ready: 0,
            ended: false,
            closed: false,
            aborted: Cell::new(false),
        }
    }

    /// Shakes hands. There is no time limit in here.
    ///
    /// # Errors
    /// See [`Broken`]. The peer has been told why, as far as it listened.
    pub fn poll_handshake(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Broken>> {
        loop {
            if let Err(error) = ready!(self.poll_flush(cx)) {
                return self.last_words(cx).map(|told| Err(told.unwrap_or(Broken::Closed(error))));
            }
            if !self.session.is_handshaking() {
                return Poll::Ready(Ok(()));
            }
            match ready!(self.poll_records(cx)) {
                Ok(0) => return Poll::Ready(Err(Broken::Closed(io::ErrorKind::UnexpectedEof.into()))),
                Ok(_) => {}
                Err(broken) => return Poll::Ready(Err(broken)),
            }
        }
    }

    /// Reads decrypted bytes once.
    ///
    /// # Errors
    /// What the socket reports, a broken record, or an end without close_notify.
    pub fn poll_read(&mut self, cx: &mut Context<'_>, space: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        loop {
            match self.session.reader().read(space.initialize_unfilled()) {
                Ok(count) => {
                    space.advance(count);
                    self.ready = self.ready.saturating_sub(count);
                    return Poll::Ready(Ok(()));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
            match ready!(self.poll_records(cx)) {
                Ok(_) => {
                    // Answers to what came (a new key, an alert) go out with the next write at the latest. A peer that
                    // takes nothing any more may still have said something that is worth reading.
                    let _ = self.poll_flush(cx);
                }
                Err(Broken::Closed(error)) => return Poll::Ready(Err(error)),
                Err(Broken::Protocol(error)) => {
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
            ready!(self.poll_flush(cx))?;
            self.owed = self.session.writer().write_vectored(parts)?;
        }
        ready!(self.poll_flush(cx))?;
        Poll::Ready(Ok(std::mem::take(&mut self.owed)))
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
            self.session.send_close_notify();
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
        if self.ready > 0 || self.ended { Poll::Ready(Ok(())) } else { self.stream.poll_seen(cx) }
    }

    /// True when nothing was decrypted that nobody has read, and the socket is silent and open.
    #[must_use]
    pub fn is_silent(&self) -> bool {
        self.ready == 0 && !self.ended && self.stream.is_silent()
    }

    /// True when bytes of the peer were taken off the socket that no read has given out: content, or a part of a
    /// record, which is nothing yet and will be something.
    #[must_use]
    pub fn has_leftover(&self) -> bool {
        self.ready > 0 || !self.records.is_between()
    }

    /// Makes closing reset the connection, without close_notify.
    pub fn reset_on_close(&self) {
        self.aborted.set(true);
        self.stream.reset_on_close();
    }

    /// The version that was agreed on.
    #[must_use]
    pub fn version(&self) -> Option<ProtocolVersion> {
        self.session.protocol_version()
    }

    /// True when the session continues an earlier one.
    #[must_use]
    pub fn is_resumed(&self) -> bool {
        self.session.handshake_kind() == Some(HandshakeKind::Resumed)
    }

    /// The peer's certificate, if it has shown one and it was verified.
    #[must_use]
    pub fn peer_certificate(&self) -> Option<&CertificateDer<'static>> {
        self.session.peer_certificates()?.first()
    }

    /// Takes in what the socket has. `Ok(0)`: it has ended.
    fn poll_records(&mut self, cx: &mut Context<'_>) -> Poll<Result<usize, Broken>> {
        let mut source = Source { stream: &mut self.stream, records: &mut self.records, cx };
        let count = match self.session.read_tls(&mut source) {
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Poll::Pending,
            // No socket reports this: it is the session, which will not hold a message of such a length.
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                return Poll::Ready(Err(Broken::Protocol(rustls::Error::General(error.to_string()))));
            }
            Err(error) => return Poll::Ready(Err(Broken::Closed(error))),
        };
        Poll::Ready(match self.session.process_new_packets() {
            Ok(state) => {
                self.ready = state.plaintext_bytes_to_read();
                self.ended = state.peer_has_closed();
                Ok(count)
            }
            Err(error) => {
                // For a few faults rustls makes no alert. While nothing is encrypted one of ours is as good. A
                // peer's own alert is not answered.
                let told = matches!(error, rustls::Error::AlertReceived(_));
                if !told && !self.spoken && !self.session.wants_write() {
                    self.alert = DECODE_ERROR;
                }
                // The alert that says why. What there is no room for now goes out with the shutdown, if that comes.
                let _ = self.poll_flush(cx);
                self.closed = true;
                Err(Broken::Protocol(error))
            }
        })
    }

    /// Why a peer that takes nothing any more has gone, if it has said so before. Its end follows, so this does.
    fn last_words(&mut self, cx: &mut Context<'_>) -> Poll<Option<Broken>> {
        loop {
            match ready!(self.poll_records(cx)) {
                Ok(1..) => {}
                Err(told @ Broken::Protocol(_)) => return Poll::Ready(Some(told)),
                Ok(0) | Err(Broken::Closed(_)) => return Poll::Ready(None),
            }
        }
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.session.wants_write() {
            let mut sink = Sink { stream: &mut self.stream, cx };
            match self.session.write_tls(&mut sink) {
                Ok(0) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                Ok(_) => self.spoken = true,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Poll::Pending,
                Err(error) => return Poll::Ready(Err(error)),
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

impl Drop for Tls {
    fn drop(&mut self) {
        // A clean close says so; a session that never stood, or was cut in the middle of a write, has nothing
        // to say. Nor has one that a panic ends: it may be the session that broke, and a second panic in here would
        // end the process.
        let cut = self.aborted.get() || self.owed > 0 || std::thread::panicking();
        if !self.closed && !cut && !self.session.is_handshaking() {
            self.session.send_close_notify();
            let _ = self.poll_flush(&mut Context::from_waker(Waker::noop()));
        }
    }
}

/// The socket as rustls reads it.
struct Source<'s, 'c, 'w> {
    stream: &'s mut Stream,
    records: &'s mut Records,
    cx: &'c mut Context<'w>,
}

impl Read for Source<'_, '_, '_> {
    fn read(&mut self, space: &mut [u8]) -> io::Result<usize> {
        let mut space = ReadBuf::new(space);
        match self.stream.poll_read(self.cx, &mut space) {
            Poll::Ready(outcome) => outcome.map(|()| {
                self.records.pass(space.filled());
                space.filled().len()
            }),
            Poll::Pending => Err(io::ErrorKind::WouldBlock.into()),
        }
    }
}

/// The socket as rustls writes it.
struct Sink<'s, 'c, 'w> {
    stream: &'s mut Stream,
    cx: &'c mut Context<'w>,
}

impl Sink<'_, '_, '_> {
    fn taken(polled: Poll<io::Result<usize>>) -> io::Result<usize> {
        match polled {
            Poll::Ready(outcome) => outcome,
            Poll::Pending => Err(io::ErrorKind::WouldBlock.into()),
        }
    }
}

impl Write for Sink<'_, '_, '_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Sink::taken(self.stream.poll_write(self.cx, bytes))
    }

    fn write_vectored(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        Sink::taken(self.stream.poll_write_vectored(self.cx, parts))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
pub(crate) mod fixture;
#[cfg(test)]
mod gone;
#[cfg(test)]
mod tests;
