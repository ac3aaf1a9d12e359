//! One attempt: a connection to the receiver and nobody else, one POST, and what the answer's status says. No body of an answer is
//! read, and no redirect is followed.

use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{Request, StatusCode, header};
use http_body_util::Full;
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, lookup_host};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use super::message::WebhookMessage;
use super::signature::{SIGNATURE, signature};
use crate::config::model::tls::UpstreamTls;
use crate::config::model::{Protocol, Webhook};
use crate::net::connect::first_of;
use crate::tls::{self, Roots, Upstream};

/// An attempt that takes longer has failed.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);
/// The most bytes of an answer's head.
const HEAD_SIZE: usize = 16 * 1024;

/// Somebody who is told, and how to reach them.
#[derive(Debug)]
pub(super) struct Receiver {
    /// What the config says.
    pub(super) webhook: Webhook,
    tls: Option<(Arc<ClientConfig>, ServerName<'static>)>,
    authorization: Option<String>,
}

impl Receiver {
    /// The one that the config means. `roots`: whom the system trusts.
    #[must_use]
    pub(super) fn new(webhook: Webhook, roots: &Roots) -> Receiver {
        let url = &webhook.url;
        let name = url.is_tls.then(|| ServerName::try_from(url.host.trim_end_matches('.').to_owned()).ok());
        let tls = name.flatten().map(|name| {
            let trust = UpstreamTls { authorities: None, name, identity: None, insecure: false };
            let upstream = Upstream::new(&trust, Protocol::Http, roots);
            (upstream.config, upstream.name)
        });
        let authorization = url.user.as_ref().map(|user| format!("Basic {}", STANDARD.encode(user)));
        Receiver { webhook, tls, authorization }
    }

    /// Sends a message; `Err`: it was not taken, and why. `states`: how all backends are at `at_ms`, in milliseconds since 1970.
    ///
    /// # Errors
    /// In a few words, with nothing of the URL.
    pub(super) async fn send(
        &self,
        message: &WebhookMessage,
        states: &str,
        at_ms: u64,
    ) -> Result<(), String> {
        let request = self.request(message, states, at_ms);
        let request = request.map_err(|_| "the URL can't be sent".to_owned())?;
        match timeout(PATIENCE, self.put(request)).await {
            Ok(Ok(status)) => judge(status),
            Ok(Err(reason)) => Err(reason),
            Err(_) => Err(format!("timeout after {}", humantime::format_duration(PATIENCE))),
        }
    }

    fn request(
        &self,
        message: &WebhookMessage,
        states: &str,
        at_ms: u64,
    ) -> http::Result<Request<Full<Bytes>>> {
        let body = message.body(states, at_ms);
        let mut request = Request::post(&*self.webhook.url.path)
            .header(header::HOST, self.webhook.url.authority())
            .header(header::USER_AGENT, concat!("evenkeel/", env!("CARGO_PKG_VERSION")))
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::CONNECTION, "close")
            .header("evenkeel-event", &message.event)
            .header("evenkeel-id", &message.id);
        if let Some(secret) = &self.webhook.secret {
            request = request.header(SIGNATURE, signature(secret, at_ms / 1000, &body));
        }
        if let Some(authorization) = &self.authorization {
            request = request.header(header::AUTHORIZATION, authorization);
        }
        request.body(Full::new(body.into()))
    }

    async fn put(&self, request: Request<Full<Bytes>>) -> Result<StatusCode, String> {
        let stream = self.connect().await?;
        match &self.tls {
            Some((config, name)) => {
                let connector = TlsConnector::from(Arc::clone(config));
                let stream = connector.connect(name.clone(), stream).await;
                exchange(stream.map_err(|error| words(&error))?, request).await
            }
            None if self.webhook.url.is_tls => Err("no certificate can be for this host".to_owned()),
            None => exchange(stream, request).await,
        }
    }

    async fn connect(&self) -> Result<TcpStream, String> {
        let url = &self.webhook.url;
        let addresses: Vec<SocketAddr> = match url.host.parse::<IpAddr>() {
            Ok(ip) => vec![SocketAddr::new(ip, url.port)],
            Err(_) => match lookup_host((url.host.as_str(), url.port)).await {
                Ok(found) => found.collect(),
                Err(error) => return Err(format!("name does not resolve: {error}")),
            },
        };
        let mut reason = "no address".to_owned();
        let attempts = addresses.iter().map(|address| TcpStream::connect(*address));
        let first = first_of(attempts, |error: io::Error| reason = words(&error)).await;
        first.ok_or(reason)
    }
}

fn judge(status: StatusCode) -> Result<(), String> {
    match status.as_u16() {
        200..=299 => Ok(()),
        300..=399 => Err(format!("it answered {}; redirects are not followed", status.as_u16())),
        other => Err(format!("it answered {other}")),
    }
}

async fn exchange<S>(stream: S, request: Request<Full<Bytes>>) -> Result<StatusCode, String>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let opened = http1::Builder::new().max_buf_size(HEAD_SIZE).handshake(TokioIo::new(stream)).await;
    let (mut sender, connection) = opened.map_err(|error| of_http(&error))?;
    let mut asking = pin!(async move { sender.send_request(request).await.map(|answer| answer.status()) });
    let mut connection = pin!(connection);
    let answer = tokio::select! {
        biased;
        answer = &mut asking => answer,
        // It can end in the very step that delivers the answer.
        ended = &mut connection => match asking.await {
            Ok(status) => Ok(status),
            Err(dropped) => Err(ended.err().unwrap_or(dropped)),
        },
    };
    answer.map_err(|error| of_http(&error))
}

/// `error` in a few words.
fn words(error: &io::Error) -> String {
    if let Some(broken) = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
        return format!("TLS: {}", tls::words(broken, true));
    }
    let known = match error.kind() {
        ErrorKind::ConnectionRefused => "connection refused",
        ErrorKind::ConnectionReset => "connection reset",
        ErrorKind::BrokenPipe | ErrorKind::UnexpectedEof => "connection closed",
        ErrorKind::HostUnreachable => "host unreachable",
        ErrorKind::NetworkUnreachable => "network unreachable",
        ErrorKind::TimedOut => "connection timed out",
        // The kinds are an open list; the system's text is the best that is left.
        _ => return error.to_string(),
    };
    known.to_owned()
}

fn of_http(error: &hyper::Error) -> String {
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        if let Some(error) = cause.downcast_ref::<io::Error>() {
            return words(error);
        }
        source = cause.source();
    }
    if error.is_incomplete_message() { "it closed without an answer".to_owned() } else { error.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_status_from_200_to_299_takes_a_message() {
        for (code, taken) in [(200, true), (204, true), (299, true), (302, false), (404, false), (503, false)]
        {
            assert_eq!(judge(StatusCode::from_u16(code).expect("a status")).is_ok(), taken, "{code}");
        }
        assert!(judge(StatusCode::FOUND).expect_err("no").contains("not followed"));
    }
}
