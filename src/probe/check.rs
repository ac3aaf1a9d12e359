//! One probe: connect, shake hands where TLS is spoken, and for HTTP ask and judge the status, all under one timeout.

use std::io;
use std::ops::RangeInclusive;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use http::{Request, StatusCode, header};
use http_body_util::Empty;
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::{Instant, timeout};

use super::session::Session;
use super::{Finding, fault};
use crate::config::model::{BackendAddress, HealthCheck};
use crate::target::{Backend, Endpoint, Verdict};

/// The most bytes of an answer's head. hyper allows no less than 8 KiB.
const HEAD_SIZE: usize = 16 * 1024;

/// How one backend is probed.
pub(super) struct Check {
    timeout: Duration,
    session: Option<Session>,
    question: Option<Question>,
}

/// What an HTTP probe asks and which statuses it takes for good.
struct Question {
    path: Arc<str>,
    host: String,
    expect: Vec<RangeInclusive<u16>>,
}

impl Check {
    /// The check of `backend` by the rules of `health`: GET when it has a path, else a TCP connect, with TLS where it
    /// is spoken.
    pub(super) fn new(backend: &Backend, health: &HealthCheck) -> Check {
        let question = backend.probe_path.as_ref().map(|path| Question {
            path: Arc::clone(path),
            host: health.host.clone().unwrap_or_else(|| authority(&backend.address, backend.tls.is_some())),
            expect: health.expect.clone(),
        });
        let session = backend.tls.as_ref().map(Session::new);
        Check { timeout: health.timeout, session, question }
    }

    /// Probes once: the first of `endpoints` that accepts a connection is judged.
    pub(super) async fn run(&self, endpoints: &[Endpoint]) -> Finding {
        // Before the timeout, which would be held against a backend whose silence means consent.
        let consent = Instant::now() + self.timeout * 9 / 10;
        match timeout(self.timeout, self.ask(endpoints, consent)).await {
            Ok(finding) => finding,
            Err(_) => Finding::bad(format!("timeout after {}", humantime::format_duration(self.timeout))),
        }
    }

    async fn ask(&self, endpoints: &[Endpoint], consent: Instant) -> Finding {
        let stream = match connect(endpoints).await {
            Ok(stream) => stream,
            Err(finding) => return finding,
        };
        match stream {
            Stream::Tcp(stream) => self.ask_on(stream, consent).await,
            Stream::Unix(stream) => self.ask_on(stream, consent).await,
        }
    }

    async fn ask_on<S: AsyncRead + AsyncWrite + Unpin>(&self, stream: S, consent: Instant) -> Finding {
        match (&self.session, &self.question) {
            (None, None) => Finding::Verdict(Verdict::Good),
            (None, Some(question)) => question.put(stream).await,
            (Some(session), question) => match (session.open(stream).await, question) {
                (Ok(stream), Some(question)) => question.put(stream).await,
                (Ok(stream), None) => session.judge(stream, consent).await,
                (Err(finding), _) => finding,
            },
        }
    }
}

impl Question {
    /// Asks on `stream` and judges the head of the answer; its body is not read.
    async fn put<S: AsyncRead + AsyncWrite + Unpin>(&self, stream: S) -> Finding {
        let request = match self.request() {
            Ok(request) => request,
            Err(error) => return Finding::bad(format!("the probe's path or host is invalid: {error}")),
        };
        let opened = http1::Builder::new().max_buf_size(HEAD_SIZE).handshake(TokioIo::new(stream)).await;
        let (mut sender, connection) = match opened {
            Ok(opened) => opened,
            Err(error) => return fault::of_http(&error),
        };
        let mut answer = pin!(sender.send_request(request));
        let mut connection = pin!(connection);
        let answer = tokio::select! {
            biased;
            answer = &mut answer => answer,
            // It can end in the very step that delivers the answer. If it ended without one, its own
            // error tells more than the request's, which was merely dropped.
            ended = &mut connection => match answer.await {
                Ok(answer) => Ok(answer),
                Err(dropped) => Err(ended.err().unwrap_or(dropped)),
            },
        };
        match answer {
            Ok(answer) => self.judge(answer.status()),
            Err(error) => fault::of_http(&error),
        }
    }

    fn request(&self) -> http::Result<Request<Empty<Bytes>>> {
        Request::get(&*self.path)
            .header(header::HOST, &self.host)
            .header(header::USER_AGENT, "evenkeel-probe")
            .header(header::CONNECTION, "close")
            .body(Empty::new())
    }

    fn judge(&self, status: StatusCode) -> Finding {
        let status = status.as_u16();
        if self.expect.iter().any(|range| range.contains(&status)) {
            return Finding::Verdict(Verdict::Good);
        }
        let range = |range: &RangeInclusive<u16>| match (range.start(), range.end()) {
            (start, end) if start == end => start.to_string(),
            (start, end) => format!("{start}-{end}"),
        };
        let expected: Vec<String> = self.expect.iter().map(range).collect();
        Finding::bad(format!("status {status}, expected {}", expected.join(", ")))
    }
}

/// A connection to a backend.
enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

/// Connects to the first of `endpoints` that accepts.
async fn connect(endpoints: &[Endpoint]) -> Result<Stream, Finding> {
    let mut failed: Option<Finding> = None;
    for endpoint in endpoints {
        let connected: io::Result<Stream> = match endpoint {
            Endpoint::Tcp(address) => TcpStream::connect(address).await.map(Stream::Tcp),
            Endpoint::Unix(path) => UnixStream::connect(path).await.map(Stream::Unix),
        };
        match connected {
            Ok(stream) => return Ok(stream),
            // One address that did refuse outweighs another that could not be asked.
            Err(error) => match (fault::of_io(&error), &failed) {
                (Finding::Starved(_), Some(_)) => {}
                (finding, Some(Finding::Starved(_)) | None) => failed = Some(finding),
                (Finding::Verdict(_), Some(Finding::Verdict(_))) => {}
            },
        }
    }
    Err(failed.unwrap_or_else(|| Finding::bad("no address")))
}

/// The Host of a probe: `host:port`, without the port where HTTP implies it (RFC 9110 §7.2).
fn authority(address: &BackendAddress, tls: bool) -> String {
    let implied = if tls { 443 } else { 80 };
    match address {
        BackendAddress::Host { host, port } if *port == implied && host.contains(':') => format!("[{host}]"),
        BackendAddress::Host { host, port } if *port == implied => host.clone(),
        BackendAddress::Host { .. } => address.to_string(),
        // A path is no authority; servers on unix sockets rarely look at it.
        BackendAddress::Unix(_) => "localhost".to_owned(),
    }
}

#[cfg(test)]
mod tests;
