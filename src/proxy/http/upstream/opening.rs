//! A place for a request on a connection that does not stand yet.

use std::cell::Cell;
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::task::spawn_local;

use crate::config::model::Timeouts;
use crate::message::Cause;
use crate::net::now;
use crate::proxy::WorkerCtx;
use crate::proxy::passed_on::Passing;
use crate::targets::Backend;
use crate::tick::Tick;

use super::connection;
use super::session::{BackendSession, StreamPlace};
use super::sessions::BackendLines;

/// A place on a connection to `backend` that began as `passing` says; one is made if there is none with a place. `gone` is polled beside; when it is ready nobody needs it. `stood`
/// is set as [`crate::proxy::dial::dial`] does.
///
/// # Errors
/// As [`crate::proxy::dial::dial`], or [`Cause::ConnectTimeout`] where the backend takes no streams.
pub async fn place(
    ctx: &Rc<WorkerCtx>,
    (backend, passing): (&Arc<Backend>, Option<&Passing>),
    patience: &Timeouts,
    stood: &Cell<Tick>,
    mut gone: impl FnMut(&mut Context<'_>) -> Poll<()>,
) -> Result<StreamPlace, Cause> {
    let owner = passing.and_then(|passing| passing.owner);
    let lines = ctx.backend_sessions.of(backend, owner, |owner| ctx.pool.is_live(owner));
    let deadline = ctx.ticker.deadline();
    deadline.set(patience.connect + patience.tls);
    let failures = lines.failures.get().0;
    let mut seeker = lines.waiting.seeker();
    let outcome = poll_fn(|cx| {
        if let Some(place) = lines.place() {
            return Poll::Ready(Ok(place));
        }
        let (count, cause) = lines.failures.get();
        if count != failures {
            return Poll::Ready(Err(cause));
        }
        if deadline.poll(cx).is_ready() {
            return Poll::Ready(Err(Cause::ConnectTimeout));
        }
        if gone(cx).is_ready() {
            return Poll::Ready(Err(Cause::ClientGone));
        }
        if lines.wants_another() {
            begin(ctx, &lines, (backend, passing), patience);
        }
        seeker.wait(cx);
        Poll::Pending
    })
    .await;
    match &outcome {
        // Of one that stood before it is not known any more, and nobody has waited for it.
        Ok(place) if !place.is_first() => {}
        Ok(_) | Err(_) => stood.set(lines.stood.get()),
    }
    if outcome.is_ok() {
        seeker.settle();
    }
    outcome
}

/// Has the next connection made.
fn begin(
    ctx: &Rc<WorkerCtx>,
    lines: &Rc<BackendLines>,
    (backend, passing): (&Arc<Backend>, Option<&Passing>),
    patience: &Timeouts,
) {
    lines.is_dialing.set(true);
    let greeting = passing.map(|passing| Rc::clone(&passing.header));
    let (ctx, lines, backend, patience) = (Rc::clone(ctx), Rc::clone(lines), Arc::clone(backend), *patience);
    spawn_local(Box::pin(async move {
        lines.stood.set(Tick::ZERO);
        let generation = backend.generation();
        let dialed = connection::dial(&ctx, (&backend, greeting.as_deref()), &patience, &lines.stood).await;
        lines.is_dialing.set(false);
        let stream = match dialed {
            Ok(stream) => stream,
            Err(cause) => {
                lines.failed(cause);
                return lines.waiting.call(usize::MAX);
            }
        };
        let engine = connection::engine(&ctx, now());
        let waiting = Rc::clone(&lines.waiting);
        let session = BackendSession::new(backend, generation, engine, waiting);
        lines.open.borrow_mut().push(Rc::clone(&session));
        session.call_waiting();
        let is_ended = Rc::clone(&lines.is_ended);
        connection::serve(&ctx, &session, stream, is_ended).await;
        lines.open.borrow_mut().retain(|other| !Rc::ptr_eq(other, &session));
        if !session.is_used() {
            // It was closed before anybody could ask: whoever waits is not to have the next one made, and the next.
            lines.failed(Cause::ConnectFailed);
        }
        lines.waiting.call(usize::MAX);
    }));
}
