//! Where an accepted connection becomes a task: takes a slot, spawns, forgets.

use std::cell::{Cell, RefCell};
use std::io;
use std::rc::Rc;
use std::sync::Arc;

use slab::Slab;
use tokio::task::{AbortHandle, spawn_local};
use tokio_util::task::TaskTracker;

use crate::config::model::Protocol;
use crate::message::{ListenerId, Record, RecordKind};
use crate::proxy::WorkerCtx;
use crate::proxy::http::client::Client;
use crate::proxy::http::connection::{dismiss, serve, turn_away};
use crate::proxy::http::gate::{Denial, at_the_door};
use crate::proxy::recording::Recording;
use crate::proxy::tcp;
use crate::snapshot::ConnectionLimits;

use super::connection::greet;
use super::connection_slot::ConnectionSlot;
use super::handover::NewConnection;

/// Connections per worker that are told at leisure that there is no room; more are told in passing.
const TURNED_AWAY: usize = 32;

/// Admits connections to one worker.
pub(super) struct Admitter {
    ctx: Rc<WorkerCtx>,
    limits: Arc<ConnectionLimits>,
    tracker: TaskTracker,
    turned_away: Rc<Cell<usize>>,
    tasks: Rc<Tasks>,
}

/// The tasks of the connections that are served.
#[derive(Default)]
struct Tasks(RefCell<Slab<(ListenerId, AbortHandle)>>);

impl Tasks {
    /// Spawns what `work` makes as a connection of `listener`; it keeps what it is given until it ends.
    fn spawn<W: Future<Output = ()> + 'static>(
        self: &Rc<Tasks>,
        listener: ListenerId,
        work: impl FnOnce(Listed) -> W,
    ) {
        let mut tasks = self.0.borrow_mut();
        let entry = tasks.vacant_entry();
        // It does not run before this turn is over.
        let task = spawn_local(work(Listed { tasks: Rc::clone(self), place: entry.key() }));
        entry.insert((listener, task.abort_handle()));
    }

    /// Ends the tasks of a listener; says how many there were.
    fn abort(&self, listener: ListenerId) -> usize {
        let tasks = self.0.borrow();
        let of_it: Vec<AbortHandle> =
            tasks.iter().filter(|(_, (of, _))| *of == listener).map(|(_, (_, task))| task.clone()).collect();
        // One that is dropped at once takes itself out.
        drop(tasks);
        of_it.iter().for_each(AbortHandle::abort);
        of_it.len()
    }
}

/// Takes a task out when that ends, however.
struct Listed {
    tasks: Rc<Tasks>,
    place: usize,
}

impl Drop for Listed {
    fn drop(&mut self) {
        self.tasks.0.borrow_mut().try_remove(self.place);
    }
}

impl Admitter {
    pub(super) fn new(
        ctx: Rc<WorkerCtx>,
        limits: Arc<ConnectionLimits>,
        tracker: TaskTracker,
    ) -> Rc<Admitter> {
        Rc::new(Admitter { ctx, limits, tracker, turned_away: Rc::default(), tasks: Rc::default() })
    }

    /// Cuts the connections of a listener whose time is up; each leaves its record.
    pub(super) fn cut(&self, listener: ListenerId) {
        let cut = self.tasks.abort(listener);
        if cut > 0 {
            self.ctx.cells.refusals.cut(listener, cut);
        }
    }

    /// Whether the process has room for one more connection.
    pub(super) fn has_room(&self) -> bool {
        self.limits.taken() < self.limits.limit()
    }

    /// Connections open on this worker, and on all.
    pub(super) fn loads(&self) -> (usize, usize) {
        let own = self.ctx.cells.connections.open.value();
        (usize::try_from(own).unwrap_or(0), self.limits.taken())
    }

    /// Serves a connection, or turns it away when there is no room.
    ///
    /// # Errors
    /// The event loop does not take it.
    pub(super) fn admit(&self, connection: NewConnection) -> io::Result<()> {
        let NewConnection { socket, peer, listener } = connection;
        // As this worker knows it: what it does not know yet it will be told of.
        let known = self.ctx.here(listener.id).filter(|here| Arc::ptr_eq(&here.state, &listener.state));
        let listener = known.unwrap_or_else(|| Rc::new(listener));
        let speaks_at_once = listener.config.protocol == Protocol::Http && listener.tls.is_none();
        let is_tried = speaks_at_once && self.ctx.promptness.expects();
        let stream = if is_tried { socket.into_fresh_stream() } else { socket.into_stream() }?;
        let denial = at_the_door(&listener, peer.client.map(|client| client.ip)).map(Denial::by_address);
        let denied = denial.as_ref().map(|denial| denial.cause);
        let is_tcp = listener.config.protocol == Protocol::Tcp;
        let slot = ConnectionSlot::take(&self.limits, &self.ctx, &listener.state, &peer, denied);
        // Of those who may come in there may be too many.
        let denial = slot.refusal().map(|cause| denial.unwrap_or_else(|| Denial::of(cause)));
        // Held by the task itself: a future around it would be polled as often as it is.
        let tracked = self.tracker.token();
        let ctx = Rc::clone(&self.ctx);
        if is_tcp && denial.is_none() && tcp::comes_too_soon(&ctx, &peer, &listener) {
            // Before a handshake, which costs more than all else.
            return Ok(());
        }
        match (denial, speaks_at_once) {
            // Each future is as small as it can be: thousands of them are idle.
            (None, true) => {
                let client = Client::new(ctx, stream, peer, listener, None);
                self.tasks.spawn(peer.listener, |listed| async move {
                    let (_listed, _tracked, _slot) = (listed, tracked, slot);
                    serve(client).await;
                });
            }
            (None, false) => {
                let greeting = Box::pin(greet(ctx, stream, peer, listener));
                self.tasks.spawn(peer.listener, |listed| async move {
                    let (_listed, _tracked, _slot) = (listed, tracked, slot);
                    if let Some(client) = greeting.await {
                        serve(client).await;
                    }
                });
            }
            // Nothing can be said before a handshake, and whoever may not come in is worth none.
            (Some(denial), false) if denied.is_some() => {
                let is_tcp = listener.config.protocol == Protocol::Tcp;
                let kind = if is_tcp { RecordKind::Tcp } else { RecordKind::Http };
                let mut record = Record { kind, id: ctx.request_id(), ..peer.record() };
                Recording::new(&ctx, None, &mut record).settle(denial.cause);
            }
            // A handshake costs more than what we are short of.
            (Some(_), false) => self.ctx.cells.ends.fail_unrecorded(peer.listener),
            (Some(denial), true) if denial.status.is_none() || self.turned_away.get() >= TURNED_AWAY => {
                dismiss(&ctx, &stream, &peer, &denial);
            }
            (Some(denial), true) => {
                let count = Rc::clone(&self.turned_away);
                count.set(count.get() + 1);
                let client = Client::new(ctx, stream, peer, listener, None);
                spawn_local(async move {
                    let _tracked = tracked;
                    turn_away(client, denial).await;
                    drop(slot);
                    count.set(count.get() - 1);
                });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;
    use crate::message::{Cause, Peer};
    use crate::net::socket::Accepted;
    use crate::proxy::fixtures::{context, here};

    #[test]
    fn only_so_many_are_turned_away_at_leisure() {
        let options = tokio::runtime::LocalOptions::default();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build_local(options);
        runtime.expect("a runtime").block_on(async {
            let ctx = context();
            let admitter = Admitter::new(Rc::clone(&ctx), ConnectionLimits::new(0), TaskTracker::new());
            let come = || {
                let (near, far) = UnixStream::pair().expect("a pair of sockets");
                near.set_nonblocking(true).expect("a socket");
                let (socket, listener) = (Accepted::Unix(near), Arc::clone(&*here(&ctx)));
                admitter
                    .admit(NewConnection { socket, peer: Peer::default(), listener })
                    .expect("it is taken");
                far
            };
            let _clients: Vec<UnixStream> = (0..TURNED_AWAY + 8).map(|_| come()).collect();
            assert_eq!(admitter.turned_away.get(), TURNED_AWAY);
            assert_eq!(ctx.cells.ended_with(Cause::TooManyConnections), 8, "they are told in passing");
        });
    }
}
