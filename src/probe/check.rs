//! One probe: connect, shake hands where TLS is spoken, and for HTTP ask and judge the answer, all under one timeout.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::{Instant, timeout};

use super::call::HealthCall;
use super::datagrams::DatagramQuestion;
use super::exchange::ProbeWire;
use super::fault;
use super::finding::Finding;
use super::question::ProbeQuestion;
use super::rules::ProbeRules;
use super::session::ProbeSession;
use super::talk::Talk;
use crate::config::model::{BackendAddress, Dialing, HostHeader, Protocol};
use crate::message::proxy_header::of_nobody;
use crate::net::connect::{first_of, tcp};
use crate::targets::{Backend, Endpoint, Verdict};

/// How one backend is probed.
pub(super) struct ProbeCheck {
    timeout: Duration,
    /// Where to connect; `None`: where requests go.
    port: Option<u16>,
    /// What is said as soon as a connection stands.
    greeting: Vec<u8>,
    dialing: Arc<Dialing>,
    session: Option<ProbeSession>,
    ask: ProbeAsk,
}

/// What is asked on a connection that stands.
enum ProbeAsk {
    /// Nothing.
    Nothing,
    /// By HTTP.
    ProbeQuestion(Box<ProbeQuestion>),
    /// By gRPC.
    HealthCall(Box<HealthCall>),
    /// By bytes.
    Talk(Box<Talk>),
    /// By a datagram.
    Datagram(Box<DatagramQuestion>),
}

impl ProbeCheck {
    /// The check of `backend` by these rules: GET when there is a path, else a TCP connect, with TLS where it is spoken.
    pub(super) fn new(backend: &Backend, rules: &ProbeRules) -> ProbeCheck {
        let ProbeRules { health, path, host, protocol, upstream, send_proxy, .. } = rules;
        let host = || health.host.clone().unwrap_or_else(|| host_of(backend, health.port, host));
        let is_secure = backend.tls.is_some();
        // What listens at another port is mostly something else.
        let is_http2 = upstream.is_http2() && health.port.is_none();
        let wire = if is_http2 { ProbeWire::Http2 } else { ProbeWire::Http1 };
        let ask = match (path, &health.receive) {
            _ if let Some(name) = &health.dns => ProbeAsk::Datagram(Box::new(DatagramQuestion::dns(name))),
            (_, Some(receive)) if *protocol == Protocol::Udp => {
                ProbeAsk::Datagram(Box::new(DatagramQuestion::Bytes {
                    send: health.send.clone().unwrap_or_default(),
                    receive: receive.clone(),
                }))
            }
            _ if let Some(service) = &health.grpc => ProbeAsk::HealthCall(Box::new(HealthCall {
                service: service.clone(),
                host: host(),
                is_secure,
            })),
            (Some(path), _) => ProbeAsk::ProbeQuestion(Box::new(ProbeQuestion {
                path: path.as_str().into(),
                host: host(),
                wire,
                is_secure,
                expect: health.expect.clone(),
                body: health.body.clone(),
            })),
            (None, Some(receive)) => {
                ProbeAsk::Talk(Box::new(Talk::new(health.send.clone(), receive.clone())))
            }
            (None, None) => ProbeAsk::Nothing,
        };
        let asks_http2 = match &ask {
            ProbeAsk::HealthCall(_) => true,
            ProbeAsk::ProbeQuestion(question) => question.wire == ProbeWire::Http2,
            ProbeAsk::Nothing | ProbeAsk::Talk(_) | ProbeAsk::Datagram(_) => false,
        };
        let session = backend.tls.as_ref().map(|tls| ProbeSession::new(tls, asks_http2));
        // Nobody's connection is passed on. What listens at another port is mostly something else.
        let greeting = send_proxy.filter(|_| health.port.is_none()).map(of_nobody).unwrap_or_default();
        let dialing = Arc::clone(&backend.dialing);
        ProbeCheck { timeout: health.timeout, port: health.port, greeting, dialing, session, ask }
    }

    /// Whether it asks for something, instead of connecting only.
    pub(super) fn asks(&self) -> bool {
        !matches!(self.ask, ProbeAsk::Nothing)
    }

    /// Probes once: the first of `endpoints` that accepts a connection is judged.
    pub(super) async fn run(&self, endpoints: &[Endpoint]) -> Finding {
        // Before the timeout, which would be held against a backend whose silence means consent.
        let consent = Instant::now() + self.timeout * 9 / 10;
        let at_port: Vec<Endpoint>;
        let endpoints = match self.port {
            Some(port) => {
                at_port = endpoints.iter().filter_map(|endpoint| endpoint.at(port)).collect();
                &at_port
            }
            None => endpoints,
        };
        match timeout(self.timeout, self.ask(endpoints, consent)).await {
            Ok(finding) => finding,
            Err(_) => Finding::bad(match &self.ask {
                ProbeAsk::Talk(talk) => talk.late(self.timeout),
                ProbeAsk::Nothing
                | ProbeAsk::ProbeQuestion(_)
                | ProbeAsk::HealthCall(_)
                | ProbeAsk::Datagram(_) => {
                    format!("timeout after {}", humantime::format_duration(self.timeout))
                }
            }),
        }
    }

    async fn ask(&self, endpoints: &[Endpoint], consent: Instant) -> Finding {
        if let ProbeAsk::Datagram(question) = &self.ask {
            return Box::pin(question.put(endpoints, &self.dialing)).await;
        }
        let stream = match connect(endpoints, &self.dialing).await {
            Ok(stream) => stream,
            Err(finding) => return finding,
        };
        // What a session needs is there while one is under way: a task that waits for its next probe does not carry it.
        match stream {
            ProbeStream::Tcp(stream) => Box::pin(self.ask_on(stream, consent)).await,
            ProbeStream::Unix(stream) => Box::pin(self.ask_on(stream, consent)).await,
        }
    }

    async fn ask_on<S>(&self, mut stream: S, consent: Instant) -> Finding
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        if let Err(error) = stream.write_all(&self.greeting).await {
            return fault::of_io(&error);
        }
        match (&self.session, &self.ask) {
            // Those have no stream.
            (None, ProbeAsk::Nothing | ProbeAsk::Datagram(_)) => Finding::Verdict(Verdict::Good),
            (None, ProbeAsk::ProbeQuestion(question)) => question.put(stream).await,
            (None, ProbeAsk::HealthCall(call)) => call.put(stream).await,
            (None, ProbeAsk::Talk(talk)) => talk.hold(stream).await,
            (Some(session), ask) => match (session.open(stream).await, ask) {
                (Ok(stream), ProbeAsk::ProbeQuestion(question)) => question.put(stream).await,
                (Ok(stream), ProbeAsk::HealthCall(call)) => call.put(stream).await,
                (Ok(stream), ProbeAsk::Talk(talk)) => talk.hold(stream).await,
                (Ok(stream), ProbeAsk::Nothing | ProbeAsk::Datagram(_)) => {
                    session.judge(stream, consent).await
                }
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
pub(super) async fn connect(endpoints: &[Endpoint], dialing: &Dialing) -> Result<ProbeStream, Finding> {
    let attempts = endpoints.iter().map(async |endpoint| match endpoint {
        Endpoint::Tcp(address) => tcp(*address, dialing).await.map(ProbeStream::Tcp),
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

/// The Host of a probe: what requests bring, where they all bring the same; else the address that is probed.
fn host_of(backend: &Backend, port: Option<u16>, host: &HostHeader) -> String {
    match (host, port, &backend.address) {
        (HostHeader::Name(name), ..) => name.clone(),
        (HostHeader::Pass | HostHeader::Backend, Some(port), BackendAddress::Host { host, .. }) => {
            let probed = BackendAddress::Host { host: host.clone(), port };
            probed.authority(backend.tls.is_some())
        }
        (HostHeader::Pass | HostHeader::Backend, ..) => backend.authority.to_string(),
    }
}

#[cfg(test)]
mod tests;
