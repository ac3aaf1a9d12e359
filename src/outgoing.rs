//! Requests of our own over HTTP/1.1: a connection to one place and nobody else, one request, one answer. No redirect is followed.

use std::io::{self, ErrorKind};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{Method, Request, Response, header, request};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use crate::config::model::HttpUrl;
use crate::config::model::tls::{AlpnProtocol, Authorities, UpstreamTls};
use crate::net::connect::to_host;
use crate::tls::{self, Roots, Upstream};

/// The most bytes of an answer's head.
const HEAD_SIZE: usize = 16 * 1024;
/// How long a body is waited for that an answer can do without.
const SOON: Duration = Duration::from_secs(2);

/// Who is spoken to, and how they are reached.
#[derive(Clone, Debug)]
pub struct OtherSide {
    url: HttpUrl,
    tls: Option<(Arc<ClientConfig>, ServerName<'static>)>,
}

/// What is read of an answer beside its head.
#[derive(Clone, Copy, Debug)]
pub enum AnswerReading {
    /// Nothing.
    Head,
    /// Its body, of at most so many bytes: without it the answer is none.
    Body(usize),
    /// The same of one that is a success, where it comes soon: an answer is one without it.
    BodyIfAny(usize),
}

impl OtherSide {
    /// The one at `url`, whose certificate `authorities` vouch for, or else whom the system trusts: `roots`.
    #[must_use]
    pub fn new(url: HttpUrl, authorities: Option<Authorities>, roots: &Roots) -> OtherSide {
        let name = url.is_tls.then(|| ServerName::try_from(url.host.trim_end_matches('.').to_owned()).ok());
        let tls = name.flatten().map(|name| {
            let trust = UpstreamTls { authorities, name, identity: None, insecure: false };
            let upstream = Upstream::new(&trust, Some(AlpnProtocol::Http1), roots);
            (upstream.config, upstream.name)
        });
        OtherSide { url, tls }
    }

    /// The same at another path.
    #[must_use]
    pub fn at(&self, path: &str) -> OtherSide {
        OtherSide { url: HttpUrl { path: path.into(), ..self.url.clone() }, tls: self.tls.clone() }
    }

    /// Begins a request for it.
    #[must_use]
    pub fn request(&self, method: Method) -> request::Builder {
        let request = Request::builder()
            .method(method)
            .uri(&*self.url.path)
            .header(header::HOST, self.url.authority())
            .header(header::USER_AGENT, concat!("evenkeel/", env!("CARGO_PKG_VERSION")))
            .header(header::CONNECTION, "close");
        match &self.url.user {
            Some(user) => request.header(header::AUTHORIZATION, format!("Basic {}", STANDARD.encode(user))),
            None => request,
        }
    }

    /// Sends a request and gives the answer.
    ///
    /// # Errors
    /// Why there is no answer, in a few words, with nothing of the URL.
    pub async fn ask(
        &self,
        request: http::Result<Request<Full<Bytes>>>,
        reading: AnswerReading,
    ) -> Result<Response<Bytes>, String> {
        let request = request.map_err(|_| "the URL can't be sent".to_owned())?;
        let stream = to_host(&self.url.host, self.url.port, words).await?;
        match &self.tls {
            Some((config, name)) => {
                let connector = TlsConnector::from(Arc::clone(config));
                let stream = connector.connect(name.clone(), stream).await;
                exchange(stream.map_err(|error| words(&error))?, request, reading).await
            }
            None if self.url.is_tls => Err("no certificate can be for this host".to_owned()),
            None => exchange(stream, request, reading).await,
        }
    }
}

/// What a status other than success says, in a few words.
#[must_use]
pub fn refusal(status: u16) -> String {
    match status {
        300..=399 => format!("it answered {status}; redirects are not followed"),
        other => format!("it answered {other}"),
    }
}

async fn exchange<S>(
    stream: S,
    request: Request<Full<Bytes>>,
    reading: AnswerReading,
) -> Result<Response<Bytes>, String>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let opened = http1::Builder::new().max_buf_size(HEAD_SIZE).handshake(TokioIo::new(stream)).await;
    let (mut sender, connection) = opened.map_err(|error| of_http(&error))?;
    let mut asking = pin!(async move {
        let (head, body) = sender.send_request(request).await.map_err(Broken::Exchange)?.into_parts();
        let body = match reading {
            AnswerReading::Head => Bytes::new(),
            AnswerReading::BodyIfAny(_) if !head.status.is_success() => Bytes::new(),
            AnswerReading::BodyIfAny(most) => match timeout(SOON, Limited::new(body, most).collect()).await {
                Ok(Ok(body)) => body.to_bytes(),
                Ok(Err(_)) | Err(_) => Bytes::new(),
            },
            AnswerReading::Body(most) => match Limited::new(body, most).collect().await {
                Ok(body) => body.to_bytes(),
                Err(error) if error.is::<hyper::Error>() => return Err(Broken::Within),
                Err(_) => return Err(Broken::TooLong(most)),
            },
        };
        Ok(Response::from_parts(head, body))
    });
    let mut connection = pin!(connection);
    let answer = tokio::select! {
        biased;
        answer = &mut asking => answer,
        // It can end in the very step that delivers the answer.
        ended = &mut connection => match (asking.await, ended) {
            (Err(Broken::Exchange(_)), Err(why)) => Err(Broken::Exchange(why)),
            (answer, _) => answer,
        },
    };
    answer.map_err(|broken| match broken {
        Broken::Exchange(error) => of_http(&error),
        Broken::Within => "it broke off within its answer".to_owned(),
        Broken::TooLong(most) => format!("its answer has more than {} KiB", most / 1024),
    })
}

/// Why there is no answer, or not all of it.
enum Broken {
    Exchange(hyper::Error),
    Within,
    TooLong(usize),
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
    if error.is_parse_too_large() {
        format!("the head of its answer has more than {} KiB", HEAD_SIZE / 1024)
    } else if error.is_parse() {
        "it does not speak HTTP".to_owned()
    } else if error.is_incomplete_message() {
        "it closed without an answer".to_owned()
    } else {
        error.to_string()
    }
}
