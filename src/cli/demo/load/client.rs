//! Whoever asks the demo: connections that are kept for the next request.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};

use http::Request;
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite};
use tokio::net::{TcpStream, UdpSocket};
use tokio_rustls::TlsConnector;

/// What is read of a TCP connection at most.
const GREETING_MAX: u64 = 4096;

type Connection = SendRequest<Full<Bytes>>;

/// Asks one listener. Who uses it says how many connections it has, by how many requests it sends at once.
#[derive(Debug)]
pub(super) struct DemoClient {
    to: SocketAddr,
    trust: Option<Arc<ClientConfig>>,
    idle: Mutex<Vec<Connection>>,
}

impl DemoClient {
    /// In clear, or over TLS to whoever `trust` knows as `localhost`.
    pub(super) fn new(to: SocketAddr, trust: Option<Arc<ClientConfig>>) -> DemoClient {
        DemoClient { to, trust, idle: Mutex::default() }
    }

    /// Sends a request and reads its answer to the end, whatever it says.
    pub(super) async fn ask(&self, request: Request<Full<Bytes>>) -> anyhow::Result<()> {
        let mut connection = match self.kept() {
            Some(kept) => kept,
            None => self.connect().await?,
        };
        let mut body: Incoming = connection.send_request(request).await?.into_body();
        while let Some(frame) = body.frame().await {
            frame?;
        }
        connection.ready().await?;
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
        Ok(())
    }

    /// The one that was used last, so that those which are not needed any more get old and end.
    fn kept(&self) -> Option<Connection> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.retain(|connection| !connection.is_closed());
        idle.pop()
    }

    async fn connect(&self) -> anyhow::Result<Connection> {
        let socket = TcpStream::connect(self.to).await?;
        socket.set_nodelay(true)?;
        match &self.trust {
            None => begin(socket).await,
            Some(trust) => {
                let name = ServerName::try_from("localhost")?;
                begin(TlsConnector::from(Arc::clone(trust)).connect(name, socket).await?).await
            }
        }
    }
}

async fn begin(stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static) -> anyhow::Result<Connection> {
    let (connection, driver) = http1::handshake(TokioIo::new(stream)).await?;
    // It ends with the connection, and what is wrong with that the request says.
    tokio::spawn(driver);
    Ok(connection)
}

/// Hears what a TCP backend has to say.
pub(super) async fn listen(to: SocketAddr) -> anyhow::Result<()> {
    let mut heard = TcpStream::connect(to).await?.take(GREETING_MAX);
    heard.read_to_end(&mut Vec::new()).await?;
    Ok(())
}

/// Says something to a UDP backend, and hears the answer.
pub(super) async fn greet(to: SocketAddr) -> anyhow::Result<()> {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    socket.connect(to).await?;
    socket.send(b"hi").await?;
    socket.recv(&mut [0; 64]).await?;
    Ok(())
}
