//! Opening a connection to a backend: its addresses in turn under one deadline, then TLS under another.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::WorkerCtx;
use crate::config::model::Timeouts;
use crate::message::Cause;
use crate::net::tls::Broken;
use crate::net::{Deadline, Stream, Tls, connect};
use crate::target::{Backend, Endpoint};
use crate::tls::{Fault, Upstream};

/// Opens a connection to `backend`. `gone` is polled beside; when it is ready nobody needs the connection.
///
/// # Errors
/// [`Cause::ConnectFailed`], [`Cause::ConnectTimeout`], [`Cause::LocalShortage`], [`Cause::ClientGone`], or one of
/// the causes of a failed TLS handshake.
pub async fn dial(
    ctx: &WorkerCtx,
    backend: &Backend,
    patience: &Timeouts,
    deadline: &Deadline,
    mut gone: impl FnMut(&mut Context<'_>) -> Poll<()>,
) -> Result<Stream, Cause> {
    let attempt = async {
        match try_all(backend).await {
            // Idle connections hold descriptors that are needed more urgently now.
            Err(Cause::LocalShortage) if !ctx.pool.is_empty() => {
                ctx.pool.clear(&ctx.cells);
                try_all(backend).await
            }
            other => other,
        }
    };
    deadline.set(patience.connect);
    let connected = within(deadline, Cause::ConnectTimeout, &mut gone, attempt).await;
    let outcome = match (connected, &backend.tls) {
        (Ok(stream), Some(tls)) => {
            deadline.set(patience.tls);
            within(deadline, Cause::UpstreamTlsTimeout, gone, Box::pin(secure(tls, stream, backend))).await
        }
        (connected, _) => connected,
    };
    deadline.clear();
    if outcome.is_ok() {
        ctx.cells.pool.opened.increment();
    }
    outcome
}

async fn try_all(backend: &Backend) -> Result<Stream, Cause> {
    let mut cause = Cause::ConnectFailed;
    let mut nth = 0;
    while let Some(endpoint) = backend.endpoint(nth) {
        let outcome = match endpoint {
            Endpoint::Tcp(address) => connect::tcp(address).await,
            Endpoint::Unix(path) => connect::unix(&path).await,
        };
        match outcome {
            Ok(stream) => return Ok(stream),
            Err(error) if connect::is_shortage(&error) => cause = Cause::LocalShortage,
            Err(error) => tracing::debug!(backend = %backend.identity, %error, "connect failed"),
        }
        nth += 1;
    }
    Err(cause)
}

/// Shakes hands with a backend and makes sure that it is the right one.
async fn secure(tls: &Upstream, stream: Stream, backend: &Backend) -> Result<Stream, Cause> {
    let failed = |broken: Broken| {
        tracing::debug!(backend = %backend.identity, error = %broken, "TLS handshake failed");
        match broken {
            Broken::Closed(error) if connect::is_shortage(&error) => Cause::LocalShortage,
            Broken::Closed(_) => Cause::UpstreamTls,
            Broken::Protocol(error) => match Fault::of(&error) {
                Fault::Name => Cause::UpstreamTlsName,
                Fault::Expired => Cause::UpstreamTlsExpired,
                Fault::Issuer => Cause::UpstreamTlsIssuer,
                Fault::Refused => Cause::UpstreamTlsRefused,
                Fault::NotTls => Cause::UpstreamNotTls,
                Fault::Other => Cause::UpstreamTls,
            },
        }
    };
    let session = Tls::client(stream, Arc::clone(&tls.config), tls.name.clone());
    let mut session = Box::new(session.map_err(|error| failed(Broken::Protocol(error)))?);
    poll_fn(|cx| session.poll_handshake(cx)).await.map_err(failed)?;
    Ok(Stream::Tls(session))
}

/// Runs `work` until it is done, its time is up, or nobody wants it any more.
async fn within<T>(
    deadline: &Deadline,
    late: Cause,
    mut gone: impl FnMut(&mut Context<'_>) -> Poll<()>,
    work: impl Future<Output = Result<T, Cause>>,
) -> Result<T, Cause> {
    let mut work = pin!(work);
    poll_fn(|cx| {
        if let Poll::Ready(outcome) = work.as_mut().poll(cx) {
            return Poll::Ready(outcome);
        }
        if deadline.poll(cx).is_ready() {
            return Poll::Ready(Err(late));
        }
        gone(cx).map(|()| Err(Cause::ClientGone))
    })
    .await
}
