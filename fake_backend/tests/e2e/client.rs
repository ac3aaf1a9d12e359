//! A raw client for the tests of this folder: bytes out, bytes in, and just enough HTTP to find an answer's end.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// How long anything may take that should take no time.
pub(crate) const SOON: Duration = Duration::from_secs(10);

/// A connection and what was read from it and not used.
pub(crate) struct Client<S = TcpStream> {
    pub(crate) stream: S,
    pub(crate) input: Vec<u8>,
}

/// An answer taken apart.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn status(&self) -> u16 {
        self.head.split(' ').nth(1).unwrap().parse().unwrap()
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.split("\r\n").filter_map(|line| line.split_once(": "));
        lines.into_iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }
}

impl Client {
    pub(crate) async fn connect(address: SocketAddr) -> Self {
        Self::over(TcpStream::connect(address).await.unwrap())
    }

    /// Whether the peer is silent for a moment: nothing arrives and nothing ends.
    pub(crate) async fn is_quiet(&mut self) -> bool {
        let mut byte = [0];
        self.input.is_empty()
            && timeout(Duration::from_millis(50), self.stream.peek(&mut byte)).await.is_err()
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Client<S> {
    pub(crate) fn over(stream: S) -> Self {
        Self { stream, input: Vec::new() }
    }

    pub(crate) async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream.write_all(bytes.as_ref()).await.unwrap();
        self.stream.flush().await.unwrap();
    }

    pub(crate) async fn finish(&mut self) {
        self.stream.shutdown().await.unwrap();
    }

    /// A request without a body and its answer.
    pub(crate) async fn get(&mut self, path: &str) -> Answer {
        self.send(format!("GET {path} HTTP/1.1\r\nHost: fake\r\n\r\n")).await;
        self.answer().await
    }

    async fn fill(&mut self) -> io::Result<usize> {
        timeout(SOON, self.stream.read_buf(&mut self.input)).await.expect("something comes soon")
    }

    /// Everything up to and including `mark`.
    pub(crate) async fn until(&mut self, mark: &[u8]) -> Vec<u8> {
        loop {
            if let Some(at) = self.input.windows(mark.len()).position(|window| window == mark) {
                return self.input.drain(..at + mark.len()).collect();
            }
            let read = self.fill().await.unwrap();
            assert!(read > 0, "the end came before {:?}: {:?}", text(mark), text(&self.input));
        }
    }

    pub(crate) async fn take(&mut self, length: usize) -> Vec<u8> {
        while self.input.len() < length {
            let read = self.fill().await.unwrap();
            assert!(read > 0, "the end came {} bytes early", length - self.input.len());
        }
        self.input.drain(..length).collect()
    }

    pub(crate) async fn head(&mut self) -> String {
        text(&self.until(b"\r\n\r\n").await)
    }

    /// The next answer, framed by length or until the end.
    pub(crate) async fn answer(&mut self) -> Answer {
        let mut answer = Answer { head: self.head().await, body: Vec::new() };
        answer.body = match answer.header("content-length") {
            Some(length) => self.take(length.parse().unwrap()).await,
            None if matches!(answer.status(), 100..=199 | 204 | 304) => Vec::new(),
            None => self.rest().await.unwrap(),
        };
        answer
    }

    /// Everything up to the peer's FIN, or the error that came instead.
    pub(crate) async fn rest(&mut self) -> Result<Vec<u8>, io::ErrorKind> {
        loop {
            match self.fill().await {
                Ok(0) => return Ok(std::mem::take(&mut self.input)),
                Ok(_) => {}
                Err(error) => return Err(error.kind()),
            }
        }
    }
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
