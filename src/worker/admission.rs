//! Where an accepted connection becomes a task: takes a slot, spawns, forgets.

use std::cell::Cell;
use std::io;
use std::rc::Rc;
use std::sync::Arc;

use tokio::task::spawn_local;
use tokio_util::task::TaskTracker;

use crate::config::model::Protocol;
use crate::proxy::WorkerCtx;
use crate::proxy::http::client::Client;
use crate::proxy::http::connection::{dismiss, serve, turn_away};

use super::connection::greet;
use super::connection_limits::{ConnectionLimits, ConnectionSlot};
use super::handover::NewConnection;

/// Connections per worker that are told at leisure that there is no room; more are told in passing.
const TURNED_AWAY: usize = 32;

/// Admits connections to one worker.
pub(super) struct Admitter {
    ctx: Rc<WorkerCtx>,
    limits: Arc<ConnectionLimits>,
    tracker: TaskTracker,
    turned_away: Rc<Cell<usize>>,
}

impl Admitter {
    pub(super) fn new(
        ctx: Rc<WorkerCtx>,
        limits: Arc<ConnectionLimits>,
        tracker: TaskTracker,
    ) -> Rc<Admitter> {
        Rc::new(Admitter { ctx, limits, tracker, turned_away: Rc::default() })
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
        let NewConnection { socket, peer } = connection;
        let listener = &self.ctx.snapshot.listeners[usize::from(peer.listener.0)];
        let speaks_at_once = listener.config.protocol == Protocol::Http && listener.tls.is_none();
        let is_tried = speaks_at_once && self.ctx.promptness.expects();
        let stream = if is_tried { socket.into_fresh_stream() } else { socket.into_stream() }?;
        let slot = ConnectionSlot::take(&self.limits, &self.ctx, &peer);
        // Held by the task itself: a future around it would be polled as often as it is.
        let tracked = self.tracker.token();
        let ctx = Rc::clone(&self.ctx);
        match (slot.refusal(), speaks_at_once) {
            // Each future is as small as it can be: thousands of them are idle.
            (None, true) => {
                let client = Client::new(ctx, stream, peer, None);
                spawn_local(async move {
                    let (_tracked, _slot) = (tracked, slot);
                    serve(client).await;
                });
            }
            (None, false) => {
                let greeting = Box::pin(greet(ctx, stream, peer));
                spawn_local(async move {
                    let (_tracked, _slot) = (tracked, slot);
                    if let Some(client) = greeting.await {
                        serve(client).await;
                    }
                });
            }
            // Nothing can be said before a handshake, and that costs more than what we are short of.
            (Some(_), false) => {}
            (Some(cause), true) if self.turned_away.get() >= TURNED_AWAY => {
                dismiss(&ctx, &stream, &peer, cause)
            }
            (Some(cause), true) => {
                let count = Rc::clone(&self.turned_away);
                count.set(count.get() + 1);
                let client = Client::new(ctx, stream, peer, None);
                spawn_local(async move {
                    let _tracked = tracked;
                    turn_away(client, cause).await;
                    drop(slot);
                    count.set(count.get() - 1);
                });
            }
        }
        Ok(())
    }
}
