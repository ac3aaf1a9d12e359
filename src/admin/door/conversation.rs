//! Requests and answers on one connection.

use std::convert::Infallible;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::Request;
use hyper::body::{Body, Bytes, Frame, Incoming, SizeHint};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;

use super::guest_list::{GuestPlace, Working};
use super::patient::Patient;
use crate::admin::exchange::answers::{AdminAnswer, AdminBody};

/// For a request's head: from the accept on, or from the end of the answer before.
pub const HEAD_TIME: Duration = Duration::from_secs(10);
/// Bytes of a request's head.
const HEAD_MAX: usize = 16 * 1024;
/// Lines of a request's head.
const LINES_MAX: usize = 100;

/// Answers requests on `stream` with `respond` until it ends, `place` is wanted by another, or, behind the answer that is under
/// way, until `drains`. `keeps`: more than one.
pub async fn converse<S, F, A>(
    stream: S,
    place: &GuestPlace,
    keeps: bool,
    drains: &CancellationToken,
    respond: F,
) where
    S: AsyncRead + AsyncWrite + Unpin,
    F: Fn(Request<Incoming>) -> A,
    A: Future<Output = AdminAnswer>,
{
    let answer = service_fn(|request| {
        let (working, answer) = (place.work(), respond(request));
        async move { Ok::<_, Infallible>(answer.await.map(|body| HeldBody { body, _working: working })) }
    });
    let serving = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIME)
        .max_buf_size(HEAD_MAX)
        .max_headers(LINES_MAX)
        .keep_alive(keeps)
        .serve_connection(TokioIo::new(Patient::new(stream)), answer);
    let mut serving = pin!(serving);
    // Whoever goes away, is too slow or speaks no HTTP is not told more than hyper tells.
    tokio::select! {
        _ = serving.as_mut() => return,
        () = place.left() => return,
        () = drains.cancelled() => serving.as_mut().graceful_shutdown(),
    }
    tokio::select! {
        _ = serving => {}
        () = place.left() => {}
    }
}

/// A body whose connection is not idle until it has been sent.
struct HeldBody {
    body: AdminBody,
    _working: Working,
}

impl Body for HeldBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
