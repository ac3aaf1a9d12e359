//! One question by HTTP, of either version, on a connection that is made for it.

use std::pin::pin;

use http::{Request, Response};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::{AsyncRead, AsyncWrite};

use super::fault;
use super::finding::Finding;

/// The most bytes of an answer's head. hyper allows no less than 8 KiB.
const HEAD_SIZE: usize = 16 * 1024;

/// What the question is asked in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ProbeWire {
    /// HTTP/1.1.
    Http1,
    /// HTTP/2, of which the backend is known to be able.
    Http2,
}

/// Asks on `stream`, and has what comes judged.
pub(super) async fn ask<S>(
    stream: S,
    wire: ProbeWire,
    request: Request<Full<Bytes>>,
    judge: impl AsyncFnOnce(Response<Incoming>) -> Finding,
) -> Finding
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let io = TokioIo::new(stream);
    let judged = match wire {
        ProbeWire::Http1 => match http1::Builder::new().max_buf_size(HEAD_SIZE).handshake(io).await {
            Ok((mut sender, connection)) => {
                let asking = async move { Ok(judge(sender.send_request(request).await?).await) };
                first(asking, connection).await
            }
            Err(error) => Err(error),
        },
        ProbeWire::Http2 => {
            let mut builder = http2::Builder::new(TokioExecutor::new());
            match builder.max_header_list_size(HEAD_SIZE as u32).handshake(io).await {
                Ok((mut sender, connection)) => {
                    let asking = async move { Ok(judge(sender.send_request(request).await?).await) };
                    first(asking, connection).await
                }
                Err(error) => Err(error),
            }
        }
    };
    let other = if wire == ProbeWire::Http1 { "not HTTP" } else { "not HTTP/2" };
    judged.unwrap_or_else(|error| fault::of_http(&error, other))
}

/// Waits for the answer while the connection is driven.
async fn first(
    asking: impl Future<Output = hyper::Result<Finding>>,
    connection: impl Future<Output = hyper::Result<()>>,
) -> hyper::Result<Finding> {
    let (mut asking, mut connection) = (pin!(asking), pin!(connection));
    tokio::select! {
        biased;
        answer = &mut asking => answer,
        // It can end in the very step that delivers the answer. If it ended without one, its own
        // error tells more than the request's, which was merely dropped.
        ended = &mut connection => match asking.await {
            Ok(answer) => Ok(answer),
            Err(dropped) => Err(ended.err().unwrap_or(dropped)),
        },
    }
}
