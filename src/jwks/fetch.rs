//! One attempt to fetch keys: a connection, one GET, and the body of a 200. No redirect is followed.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use http::{Request, StatusCode, header};
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, lookup_host};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use crate::config::model::jwt::{KeySet, KeysUrl};
use crate::config::model::tls::UpstreamTls;
use crate::config::model::{HttpUrl, Protocol};
use crate::net::connect::first_of;
use crate::tls::{self, Roots, Upstream};

/// An attempt that takes longer has failed.
const PATIENCE: Duration = Duration::from_secs(10);
/// The most bytes of an answer's head.
const HEAD_SIZE: usize = 16 * 1024;

/// Where keys are fetched, and how that place is reached.
#[derive(Clone, Debug)]
pub(super) struct KeySource {
    url: HttpUrl,
    tls: Option<(Arc<ClientConfig>, ServerName<'static>)>,
}

impl KeySource {
    /// The one that the config means. `roots`: whom the system trusts.
    #[must_use]
    pub(super) fn new(config: KeysUrl, roots: &Roots) -> KeySource {
        let KeysUrl { url, authorities } = config;
        let name = url.is_tls.then(|| ServerName::try_from(url.host.trim_end_matches('.').to_owned()).ok());
        let tls = name.flatten().map(|name| {
            let trust = UpstreamTls { authorities, name, identity: None, insecure: false };
            let upstream = Upstream::new(&trust, Protocol::Http, roots);
            (upstream.config, upstream.name)
        });
        KeySource { url, tls }
    }
}

/// Fetches what is at `source`: at most [`KeySet::SIZE`] bytes.
///
/// # Errors
/// Why nothing came of it, in a few words.
pub(super) async fn fetch(source: &KeySource) -> Result<Vec<u8>, String> {
    let patient = timeout(PATIENCE, get(source)).await;
    patient.unwrap_or_else(|_| Err(format!("timeout after {}", humantime::format_duration(PATIENCE))))
}

async fn get(source: &KeySource) -> Result<Vec<u8>, String> {
    let stream = connect(&source.url).await?;
    match &source.tls {
        Some((config, name)) => {
            let connector = TlsConnector::from(Arc::clone(config));
            let stream = connector.connect(name.clone(), stream).await;
            exchange(stream.map_err(|error| of_handshake(&error))?, &source.url).await
        }
        None if source.url.is_tls => Err("no certificate can be for this host".to_owned()),
        None => exchange(stream, &source.url).await,
    }
}

fn of_handshake(error: &io::Error) -> String {
    match error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
        Some(broken) => format!("TLS: {}", tls::words(broken, true)),
        None => format!("TLS: {error}"),
    }
}

async fn connect(url: &HttpUrl) -> Result<TcpStream, String> {
    let addresses: Vec<SocketAddr> = match url.host.parse::<IpAddr>() {
        Ok(ip) => vec![SocketAddr::new(ip, url.port)],
        Err(_) => match lookup_host((url.host.as_str(), url.port)).await {
            Ok(found) => found.collect(),
            Err(error) => return Err(format!("name does not resolve: {error}")),
        },
    };
    let mut reason = "no address".to_owned();
    let attempts = addresses.iter().map(|address| TcpStream::connect(*address));
    first_of(attempts, |error: io::Error| reason = error.to_string()).await.ok_or(reason)
}

async fn exchange<S>(stream: S, url: &HttpUrl) -> Result<Vec<u8>, String>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let request = Request::get(&*url.path)
        .header(header::HOST, url.authority())
        .header(header::USER_AGENT, concat!("evenkeel/", env!("CARGO_PKG_VERSION")))
        .header(header::ACCEPT, "application/json")
        .header(header::CONNECTION, "close")
        .body(Empty::<Bytes>::new())
        .map_err(|_| "the URL can't be asked for".to_owned())?;
    let opened = http1::Builder::new().max_buf_size(HEAD_SIZE).handshake(TokioIo::new(stream)).await;
    let (mut sender, connection) = opened.map_err(|error| error.to_string())?;
    let asking = async move {
        let answer = sender.send_request(request).await.map_err(|error| error.to_string())?;
        match answer.status() {
            StatusCode::OK => {}
            status if status.is_redirection() => {
                return Err(format!("it answered {}; redirects are not followed", status.as_u16()));
            }
            status => return Err(format!("it answered {}", status.as_u16())),
        }
        let body = Limited::new(answer.into_body(), KeySet::SIZE).collect().await;
        Ok(body.map_err(|error| error.to_string())?.to_bytes().to_vec())
    };
    // The connection moves only while it is polled; it ends with the answer, whose end it has handed over by then.
    let moving = async {
        let _ = connection.await;
    };
    tokio::join!(asking, moving).0
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;

    /// What comes of a server that answers so and closes; and the request that it got.
    async fn asked(answer: String) -> (Result<Vec<u8>, String>, String) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let url =
            HttpUrl { is_tls: false, host: "127.0.0.1".to_owned(), port, path: "/keys?a".into(), user: None };
        let source = KeySource::new(KeysUrl { url, authorities: None }, &Roots::default());
        let served = async {
            let (mut stream, _) = listener.accept().await.expect("a connection");
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                head.push(stream.read_u8().await.expect("a byte"));
            }
            // Who has read enough leaves.
            let _ = stream.write_all(answer.as_bytes()).await;
            String::from_utf8(head).expect("ascii")
        };
        let (outcome, head) = tokio::join!(fetch(&source), served);
        (outcome, head)
    }

    #[tokio::test]
    async fn the_body_of_a_200_is_what_was_fetched_and_nothing_else_is() {
        let (body, head) = asked("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}".to_owned()).await;
        assert_eq!(body, Ok(b"{}".to_vec()));
        assert!(head.starts_with("GET /keys?a HTTP/1.1\r\nhost: 127.0.0.1:"), "{head}");
        let (body, _) = asked("HTTP/1.1 200 OK\r\n\r\n{\"keys\": []}".to_owned()).await;
        assert_eq!(body, Ok(b"{\"keys\": []}".to_vec()), "up to the end of the connection");
        for (answer, why) in [
            (
                "HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n",
                "not followed",
            ),
            ("HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\n{}", "404"),
            ("HTTP/1.1 204 No Content\r\n\r\n", "204"),
            ("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{}", ""),
            ("no HTTP\r\n\r\n", ""),
            ("", ""),
        ] {
            let (outcome, _) = asked(answer.to_owned()).await;
            let told = outcome.expect_err(answer);
            assert!(told.contains(why) && !told.is_empty(), "{answer}: {told}");
        }
        let long = " ".repeat(KeySet::SIZE + 1);
        let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{long}", long.len());
        let (outcome, _) = asked(answer).await;
        assert!(outcome.is_err(), "more than there may be");
    }

    #[tokio::test]
    async fn nobody_who_listens_is_told() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        drop(listener);
        let (host, path) = ("127.0.0.1".to_owned(), "/".into());
        let url = HttpUrl { is_tls: false, host, port, path, user: None };
        let told = fetch(&KeySource::new(KeysUrl { url, authorities: None }, &Roots::default()))
            .await
            .expect_err("nobody is there");
        assert!(told.contains("refused"), "{told}");
    }
}
