//! One worker's connections of HTTP/2 to backends.
//!
//! A request gets a place on the first connection that has one. Where none has, the next connection is made, one at a time, and everybody who
//! waits has a place on it, as far as the backend takes so many.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::task::spawn_local;

use crate::config::model::Timeouts;
use crate::message::{BackendId, Cause};
use crate::net::now;
use crate::proxy::WorkerCtx;
use crate::targets::Backend;
use crate::tick::Tick;

use super::connection;
use super::session::{BackendSession, StreamPlace};
use super::waiting::PlaceSeekers;

/// Those of one worker.
#[derive(Default)]
pub struct BackendSessions {
    by_backend: RefCell<Vec<Option<Rc<BackendLines>>>>,
}

/// Connections to one backend.
struct BackendLines {
    open: RefCell<Vec<Rc<BackendSession>>>,
    /// Those who wait for a place.
    waiting: Rc<PlaceSeekers>,
    /// The next connection is being made.
    is_dialing: Cell<bool>,
    /// How often that has failed, and with what the last time. Whoever waits when it fails has failed with it.
    failures: Cell<(u64, Cause)>,
    /// Since when the last connection that was made stood as TCP, where TLS followed.
    stood: Cell<Tick>,
}

impl BackendLines {
    fn place(&self) -> Option<StreamPlace> {
        self.open.borrow().iter().find_map(BackendSession::place)
    }

    /// True when another connection would have places. A backend that takes no streams on one on which there are none takes none on the next.
    fn wants_another(&self) -> bool {
        !self.is_dialing.get()
            && self.open.borrow().iter().all(|session| !session.is_unused() || !session.engine().is_open())
    }

    fn failed(&self, cause: Cause) {
        self.failures.set((self.failures.get().0 + 1, cause));
    }
}

impl BackendSessions {
    fn of(&self, backend: &Backend) -> Rc<BackendLines> {
        let place = backend.id.0 as usize;
        let mut by_backend = self.by_backend.borrow_mut();
        if by_backend.len() <= place {
            by_backend.resize_with(place + 1, || None);
        }
        let lines = by_backend[place].get_or_insert_with(|| {
            Rc::new(BackendLines {
                open: RefCell::default(),
                waiting: Rc::default(),
                is_dialing: Cell::new(false),
                failures: Cell::new((0, Cause::Done)),
                stood: Cell::new(Tick::ZERO),
            })
        });
        Rc::clone(lines)
    }

    /// A place on a connection that stands.
    #[must_use]
    pub fn place(&self, backend: &Backend) -> Option<StreamPlace> {
        self.by_backend.borrow().get(backend.id.0 as usize)?.as_ref()?.place()
    }

    /// Closes what nobody uses and what belongs to a backend that has failed or gone. Every second.
    pub fn sweep(&self) {
        for place in &mut *self.by_backend.borrow_mut() {
            let Some(lines) = place else { continue };
            for session in &*lines.open.borrow() {
                if session.backend.generation() != session.generation {
                    session.engine().leave();
                    session.stir();
                }
            }
            if lines.open.borrow().is_empty() && !lines.is_dialing.get() && lines.waiting.is_empty() {
                // A backend that is gone is not held on to.
                *place = None;
            }
        }
    }

    /// Asks all backends to expect nothing more: the worker ends.
    pub fn leave(&self) {
        for lines in self.by_backend.borrow().iter().flatten() {
            for session in &*lines.open.borrow() {
                session.engine().leave();
                session.stir();
            }
        }
    }

    /// True when there is no connection to this backend.
    #[must_use]
    pub fn is_without(&self, backend: BackendId) -> bool {
        let by_backend = self.by_backend.borrow();
        let lines = by_backend.get(backend.0 as usize).and_then(Option::as_ref);
        lines.is_none_or(|lines| lines.open.borrow().is_empty())
    }
}

/// A place on a connection to `backend`; one is made if there is none with a place. `gone` is polled beside; when it is ready nobody needs it. `stood`
/// is set as [`crate::proxy::dial::dial`] does.
///
/// # Errors
/// As [`crate::proxy::dial::dial`], or [`Cause::ConnectTimeout`] where the backend takes no streams.
pub async fn place(
    ctx: &Rc<WorkerCtx>,
    backend: &Arc<Backend>,
    patience: &Timeouts,
    stood: &Cell<Tick>,
    mut gone: impl FnMut(&mut Context<'_>) -> Poll<()>,
) -> Result<StreamPlace, Cause> {
    let lines = ctx.backend_sessions.of(backend);
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
            begin(ctx, &lines, backend, patience);
        }
        seeker.wait(cx);
        Poll::Pending
    })
    .await;
    if outcome.is_ok() {
        seeker.settle();
    }
    stood.set(lines.stood.get());
    outcome
}

/// Has the next connection made.
fn begin(ctx: &Rc<WorkerCtx>, lines: &Rc<BackendLines>, backend: &Arc<Backend>, patience: &Timeouts) {
    lines.is_dialing.set(true);
    let (ctx, lines, backend, patience) = (Rc::clone(ctx), Rc::clone(lines), Arc::clone(backend), *patience);
    spawn_local(Box::pin(async move {
        lines.stood.set(Tick::ZERO);
        let generation = backend.generation();
        let dialed = connection::dial(&ctx, &backend, &patience, &lines.stood).await;
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
        connection::serve(&ctx, &session, stream).await;
        lines.open.borrow_mut().retain(|other| !Rc::ptr_eq(other, &session));
        lines.waiting.call(usize::MAX);
    }));
}
