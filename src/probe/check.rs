//! One probe: connect, shake hands where TLS is spoken, and for HTTP ask and judge the answer, all under one timeout.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::{Instant, timeout};

use super::fault;
use super::finding::Finding;
use super::question::Question;
use super::session::ProbeSession;
use crate::config::model::{BackendAddress, HealthCheck};
use crate::net::connect::first_of;
use crate::targets::{Backend, Endpoint, Verdict};

/// How one backend is probed.
pub(super) struct ProbeCheck {
    timeout: Duration,
    session: Option<ProbeSession>,
    question: Option<Question>,
}

impl ProbeCheck {
    /// The check of `backend` by the rules of `health`: GET when it has a path, else a TCP connect, with TLS where it
    /// is spoken.
    pub(super) fn new(backend: &Backend, health: &HealthCheck) -> ProbeCheck {
        let question = backend.probe_path.as_ref().map(|path| Question {
            path: Arc::clone(path),
            host: health.host.clone().unwrap_or_else(|| authority(&backend.address, backend.tls.is_some())),
            expect: health.expect.clone(),
            body: health.body.clone(),
        });
        let session = backend.tls.as_ref().map(ProbeSession::new);
        ProbeCheck { timeout: health.timeout, session, question }
    }

    /// Whether it asks for something, instead of connecting only.
    pub(super) fn asks(&self) -> bool {
        self.question.is_some()
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
            ProbeStream::Tcp(stream) => self.ask_on(stream, consent).await,
            ProbeStream::Unix(stream) => self.ask_on(stream, consent).await,
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

/// A connection to a backend.
pub(super) enum ProbeStream {
    /// TCP.
    Tcp(TcpStream),
    /// A unix socket.
    Unix(UnixStream),
}

/// Connects to the first of `endpoints` that accepts, as a request would.
pub(super) async fn connect(endpoints: &[Endpoint]) -> Result<ProbeStream, Finding> {
    let attempts = endpoints.iter().map(async |endpoint| match endpoint {
        Endpoint::Tcp(address) => TcpStream::connect(address).await.map(ProbeStream::Tcp),
        Endpoint::Unix(path) => UnixStream::connect(path).await.map(ProbeStream::Unix),
    });
    let mut failed: Option<Finding> = None;
    // One address that did refuse outweighs another that could not be asked.
    let first = first_of(attempts, |error: io::Error| match (fault::of_io(&error), &failed) {
        (Finding::Starved(_), Some(_)) => {}
        (finding, Some(Finding::Starved(_)) | None) => failed = Some(finding),
        (Finding::Verdict(_), Some(Finding::Verdict(_))) => {}
    });
    first.await.ok_or_else(|| failed.unwrap_or_else(|| Finding::bad("no address")))
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
