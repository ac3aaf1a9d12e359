//! One question to an admin socket.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, bail};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1;
use hyper::header::{ACCEPT, CONTENT_TYPE, HOST};
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::UnixStream;
use tokio::time::timeout;

/// The longest answer that is read, in bytes.
const ANSWER_MAX: usize = 256 * 1024 * 1024;

/// What is asked.
pub(super) struct AdminQuestion {
    /// The method.
    pub(super) method: Method,
    /// Path and query.
    pub(super) path: String,
    /// The text of a config, a change as JSON, or nothing.
    pub(super) body: Vec<u8>,
}

/// Asks whoever listens at `socket`.
pub(super) async fn ask(
    socket: &Path,
    question: AdminQuestion,
    patience: Duration,
) -> anyhow::Result<(StatusCode, Vec<u8>)> {
    match timeout(patience, exchange(socket, question)).await {
        Ok(answer) => answer,
        Err(_) => bail!("not within {} seconds", patience.as_secs()),
    }
}

async fn exchange(socket: &Path, question: AdminQuestion) -> anyhow::Result<(StatusCode, Vec<u8>)> {
    let answer = begin(socket, question, "application/json").await?;
    let status = answer.status();
    let body =
        Limited::new(answer.into_body(), ANSWER_MAX).collect().await.map_err(anyhow::Error::from_boxed)?;
    Ok((status, body.to_bytes().into()))
}

/// Asks, and gives the answer as soon as its head is there. `accepted`: its media type.
pub(super) async fn begin(
    socket: &Path,
    question: AdminQuestion,
    accepted: &str,
) -> anyhow::Result<Response<Incoming>> {
    let stream = UnixStream::connect(socket).await?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    // Its outcome is that of the request.
    tokio::spawn(connection);
    let is_config = question.path.starts_with("/api/v1/config/");
    let request = Request::builder().method(question.method).uri(question.path);
    let mut request = request.header(HOST, "localhost").header(ACCEPT, accepted);
    if !question.body.is_empty() {
        request =
            request.header(CONTENT_TYPE, if is_config { "application/yaml" } else { "application/json" });
    }
    let request = request.body(Full::new(Bytes::from(question.body)))?;
    sender.send_request(request).await.context("the process closed the connection")
}
