//! A connection as `wire` reads and writes it: in clear, or through TLS with the same few operations.

use std::io;
use std::time::Duration;

use socket2::SockRef;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, Interest};
use tokio_rustls::server::TlsStream;

use crate::socket::Socket;

/// A connection on which clear bytes are read and written.
#[derive(Debug)]
pub(crate) enum Stream {
    /// Without TLS.
    Clear(Socket),
    /// After its handshake.
    Secure(Box<TlsStream<Socket>>),
}

impl Stream {
    fn socket(&self) -> &Socket {
        match self {
            Self::Clear(socket) => socket,
            Self::Secure(stream) => stream.get_ref().0,
        }
    }

    /// Waits for data, the peer's end or an error, holding no buffer of its own.
    pub(crate) async fn readable(&mut self) -> io::Result<()> {
        match self {
            Self::Clear(Socket::Tcp(stream)) => stream.readable().await,
            Self::Clear(Socket::Unix(stream)) => stream.readable().await,
            // A readable socket says nothing: its record may be a ticket, and clear bytes may wait in rustls.
            Self::Secure(stream) => stream.fill_buf().await.map(|_| ()),
        }
    }

    /// Waits for a reset, whatever data may wait to be read.
    pub(crate) async fn broken(&self) -> io::Result<()> {
        match self.socket() {
            Socket::Tcp(stream) => stream.ready(Interest::ERROR).await.map(|_| ()),
            Socket::Unix(stream) => stream.ready(Interest::ERROR).await.map(|_| ()),
        }
    }

    /// Appends what can be read, up to the buffer's spare capacity; 0 is the peer's end. Under TLS an end
    /// without close_notify is the error `UnexpectedEof` (RFC 8446 §6.1).
    pub(crate) async fn read(&mut self, buffer: &mut Vec<u8>) -> io::Result<usize> {
        match self {
            Self::Clear(socket) => socket.read_buf(buffer).await,
            Self::Secure(stream) => stream.read_buf(buffer).await,
        }
    }

    /// Writes some of the bytes, and all that was written before.
    pub(crate) async fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Clear(socket) => socket.write(bytes).await,
            Self::Secure(stream) => {
                let written = stream.write(bytes).await?;
                // Records that the socket did not take yet wait inside.
                stream.flush().await?;
                Ok(written)
            }
        }
    }

    /// Sends close_notify and FIN, or only the FIN.
    pub(crate) async fn finish(&mut self, notify: bool) -> io::Result<()> {
        match self {
            Self::Clear(socket) => socket.shutdown().await,
            Self::Secure(stream) if notify => stream.shutdown().await,
            Self::Secure(stream) => stream.get_mut().0.shutdown().await,
        }
    }

    /// Makes the close that follows a reset.
    pub(crate) fn reset_on_close(&self) {
        if let Socket::Tcp(stream) = self.socket() {
            // A socket the peer has already reset cannot take the option and needs no second reset.
            let _ = SockRef::from(stream).set_linger(Some(Duration::ZERO));
        }
    }
}
