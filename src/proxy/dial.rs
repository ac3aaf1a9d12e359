//! Opening a connection to a backend: its addresses in turn, under one deadline.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::{Context, Poll};
use std::time::Duration;

use super::WorkerCtx;
use crate::message::Cause;
use crate::net::{Deadline, Stream, connect};
use crate::target::{Backend, Endpoint};

/// Opens a connection to `backend`. `gone` is polled beside; when it is ready nobody needs the connection.
///
/// # Errors
/// [`Cause::ConnectFailed`], [`Cause::ConnectTimeout`], [`Cause::LocalShortage`] or [`Cause::ClientGone`].
pub async fn dial(
    ctx: &WorkerCtx,
    backend: &Backend,
    patience: Duration,
    deadline: &Deadline,
    gone: impl FnMut(&mut Context<'_>) -> Poll<()>,
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
    deadline.set(patience);
    let outcome = within(deadline, Cause::ConnectTimeout, gone, attempt).await;
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
