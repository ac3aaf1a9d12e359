//! One connection to one member: HTTP/2, with TLS where its URL says so.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::Duration;

use http::uri::PathAndQuery;
use http::{Request, Response, Uri};
use hyper::body::Incoming;
use hyper::client::conn::http2::{Builder, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use prost::Message;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsConnector;
use tonic::body::Body;
use tonic::client::{Grpc, GrpcService};
use tonic::metadata::MetadataValue;
use tonic::{Status, Streaming};
use tonic_prost::ProstCodec;

use crate::config::model::EtcdConfig;
use crate::config::model::HttpUrl;
use crate::config::model::tls::{AlpnProtocol, UpstreamTls};
use crate::net::connect::to_host;
use crate::tls::{self, Roots, Upstream};

/// A member takes a PING each 5 s at most, and none where nothing is asked: whoever sends more is cut off.
const PING: Duration = Duration::from_secs(6);
/// How long its answer is waited for.
const PONG: Duration = Duration::from_secs(3);
/// The longest answer.
const ANSWER: usize = 64 << 20;

/// Where one member is, and how it is spoken to.
#[derive(Clone, Debug)]
pub(super) struct EtcdMember {
    pub(super) url: HttpUrl,
    tls: Option<(Arc<ClientConfig>, ServerName<'static>)>,
}

impl EtcdMember {
    /// All of a config.
    pub(super) fn all(config: &EtcdConfig) -> Vec<EtcdMember> {
        let roots = Roots::default();
        let member = |url: &HttpUrl| {
            let name = url.is_tls.then(|| ServerName::try_from(url.host.trim_end_matches('.').to_owned()));
            let tls = name.and_then(Result::ok).map(|name| {
                let (authorities, identity) = (config.authorities.clone(), config.identity.clone());
                let trust = UpstreamTls { authorities, name, identity, insecure: false };
                let upstream = Upstream::new(&trust, Some(AlpnProtocol::H2), &roots);
                (upstream.config, upstream.name)
            });
            EtcdMember { url: url.clone(), tls }
        };
        config.endpoints.iter().map(member).collect()
    }

    /// A connection to it.
    ///
    /// # Errors
    /// In words.
    pub(super) async fn open(&self) -> Result<EtcdLine, String> {
        let stream = to_host(&self.url.host, self.url.port, words).await?;
        let _ = stream.set_nodelay(true);
        let (sender, ending) = match &self.tls {
            Some((config, name)) => {
                let stream = TlsConnector::from(Arc::clone(config)).connect(name.clone(), stream).await;
                begin(stream.map_err(|error| words(&error))?).await?
            }
            None if self.url.is_tls => return Err("no certificate can be for this host".to_owned()),
            None => begin(stream).await?,
        };
        let scheme = if self.url.is_tls { "https" } else { "http" };
        let origin =
            Uri::builder().scheme(scheme).authority(self.url.authority()).path_and_query("/").build();
        Ok(EtcdLine { sender, ending, origin: origin.map_err(|error| error.to_string())? })
    }
}

/// Begins HTTP/2; the connection ends with the last who may send on it.
async fn begin<S>(stream: S) -> Result<(SendRequest<Body>, Ending), String>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let mut builder = Builder::new(TokioExecutor::new());
    builder.timer(TokioTimer::new()).keep_alive_interval(PING).keep_alive_timeout(PONG);
    builder.keep_alive_while_idle(false).adaptive_window(true);
    let (sender, connection) =
        builder.handshake(TokioIo::new(stream)).await.map_err(|error| of_http(&error))?;
    let ending = Ending::default();
    let told = Arc::clone(&ending);
    // Whoever waits for an answer hears of its end, and looks here for the reason.
    tokio::spawn(async move {
        if let Err(error) = connection.await {
            let _ = told.set(of_http(&error));
        }
    });
    Ok((sender, ending))
}

/// Why a connection has ended, once it has.
type Ending = Arc<OnceLock<String>>;

/// A connection. Clones share it.
#[derive(Clone, Debug)]
pub(super) struct EtcdLine {
    sender: SendRequest<Body>,
    ending: Ending,
    origin: Uri,
}

impl GrpcService<Body> for EtcdLine {
    type ResponseBody = Incoming;
    type Error = hyper::Error;
    type Future = Pin<Box<dyn Future<Output = hyper::Result<Response<Incoming>>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<hyper::Result<()>> {
        self.sender.poll_ready(cx)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        Box::pin(self.sender.send_request(request))
    }
}

impl EtcdLine {
    /// Whether it is of no use any more.
    pub(super) fn is_closed(&self) -> bool {
        self.sender.is_closed()
    }

    async fn ready(&self) -> Result<Grpc<EtcdLine>, Status> {
        let mut grpc = Grpc::with_origin(self.clone(), self.origin.clone()).max_decoding_message_size(ANSWER);
        grpc.ready().await.map_err(|error| Status::unavailable(self.reason(&error)))?;
        Ok(grpc)
    }

    /// The same error, with what has ended the connection if that is why. Whether it was heard nobody knows.
    fn told(&self, status: Status) -> Status {
        use std::error::Error as _;
        match self.ending.get() {
            Some(reason) if status.source().is_some() => Status::unknown(reason.clone()),
            _ => status,
        }
    }

    /// Why nobody answers: what has ended the connection says more than that it has.
    fn reason(&self, error: &(dyn std::error::Error + 'static)) -> String {
        self.ending.get().cloned().unwrap_or_else(|| of_http(error))
    }

    /// One question, one answer.
    pub(super) async fn ask<Q, A>(&self, path: &'static str, ask: Q) -> Result<A, Status>
    where
        Q: Message + 'static,
        A: Message + Default + 'static,
    {
        let mut grpc = self.ready().await?;
        let codec = ProstCodec::<Q, A>::default();
        let answer = grpc.unary(tonic::Request::new(ask), PathAndQuery::from_static(path), codec).await;
        answer.map(tonic::Response::into_inner).map_err(|status| self.told(status))
    }

    /// Answers for as long as `asks` has not ended. `wants_leader`: it ends where the member has none.
    pub(super) async fn talk<Q, A, S>(
        &self,
        path: &'static str,
        asks: S,
        wants_leader: bool,
    ) -> Result<Streaming<A>, Status>
    where
        Q: Message + 'static,
        A: Message + Default + 'static,
        S: tokio_stream::Stream<Item = Q> + Send + 'static,
    {
        let mut grpc = self.ready().await?;
        let mut request = tonic::Request::new(asks);
        if wants_leader {
            request.metadata_mut().insert("hasleader", MetadataValue::from_static("true"));
        }
        let codec = ProstCodec::<Q, A>::default();
        let answer = grpc.streaming(request, PathAndQuery::from_static(path), codec).await;
        answer.map(tonic::Response::into_inner).map_err(|status| self.told(status))
    }
}

/// `error` in a few words.
fn words(error: &io::Error) -> String {
    match error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
        Some(broken) => format!("TLS: {}", tls::words(broken, true)),
        None => of_text(error.to_string()),
    }
}

/// HTTP/2 keeps of what has ended a connection its text alone.
fn of_text(text: String) -> String {
    if text.starts_with("received fatal alert") { format!("TLS: {text}") } else { text }
}

/// The innermost reason.
pub(super) fn of_http(error: &(dyn std::error::Error + 'static)) -> String {
    let mut innermost = error;
    loop {
        if let Some(error) = innermost.downcast_ref::<io::Error>() {
            return words(error);
        }
        match innermost.source() {
            Some(source) => innermost = source,
            None => return of_text(innermost.to_string()),
        }
    }
}
