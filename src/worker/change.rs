//! Another config while a worker serves: what it is told, and what it does then.
//!
//! Invariants:
//!
//! 1. A worker has one config at a time and goes over to the next one between two turns of its event loop, so no task
//!    sees half of either. Whatever was begun under the one before holds the objects of that one.
//! 2. An accept loop is told whose connections it accepts by its [`Orders`]; one that is not named by a change ends as in a
//!    drain: it accepts what is queued, then closes.
//! 3. Who is cut at the end of a listener's time is a connection of that very listener: its number is nobody else's while
//!    the one who cuts holds its state.

use std::collections::HashMap;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::task::spawn_local;
use tokio::time::sleep;

use crate::lasting::Vital;
use crate::message::ListenerId;
use crate::net::now;
use crate::proxy::WorkerCtx;
use crate::snapshot::{Listener, Snapshot};
use crate::targets::{Backend, Departure};

use super::admission::Admitter;
use super::handover::Neighbours;
use super::listen::{Loop, Orders, Socket, SocketId};

/// Another config, for one worker.
pub struct Change {
    /// What is in force from now on.
    pub snapshot: Arc<Snapshot>,
    /// Addresses that it did not listen on before.
    pub sockets: Vec<Socket>,
    /// Every socket that goes on, and whose connections it accepts.
    pub places: Vec<(SocketId, ListenerId)>,
    /// Backends that leave, or stay after all: their words have changed.
    pub departing: Arc<[Arc<Backend>]>,
    /// How long connections of listeners that are gone may finish.
    pub patience: Duration,
    /// Gets the config before once this one is in force, so that its end costs no worker time.
    pub done: oneshot::Sender<Arc<Snapshot>>,
}

/// By which a worker is told of changes.
pub type ChangeSender = mpsc::UnboundedSender<Change>;

/// What a worker is told.
pub struct Changes(mpsc::UnboundedReceiver<Change>);

/// Both ends of a worker's changes. There is no bound, because whoever sends waits for the answer.
#[must_use]
pub fn changes() -> (ChangeSender, Changes) {
    let (sender, receiver) = mpsc::unbounded_channel();
    (sender, Changes(receiver))
}

impl Changes {
    /// The next one; for ever if nobody can send any more.
    pub(super) async fn next(&mut self) -> Change {
        match self.0.recv().await {
            Some(change) => change,
            None => std::future::pending().await,
        }
    }
}

/// The accept loops of a worker.
pub(super) struct Accepting {
    ctx: Rc<WorkerCtx>,
    admitter: Rc<Admitter>,
    neighbours: Neighbours,
    loops: HashMap<SocketId, Rc<Orders>>,
}

impl Accepting {
    pub(super) fn new(ctx: &Rc<WorkerCtx>, admitter: &Rc<Admitter>, neighbours: Neighbours) -> Accepting {
        Accepting { ctx: Rc::clone(ctx), admitter: Rc::clone(admitter), neighbours, loops: HashMap::new() }
    }

    /// Begins to accept from `socket`.
    ///
    /// # Errors
    /// The event loop does not take it.
    pub(super) fn begin(&mut self, socket: Socket, tasks: &mut Vital) -> io::Result<()> {
        let id = socket.id;
        let (ctx, admitter) = (Rc::clone(&self.ctx), Rc::clone(&self.admitter));
        let accept_loop = Loop::new(ctx, admitter, self.neighbours.clone(), socket)?;
        self.loops.insert(id, accept_loop.orders());
        tasks.spawn_until("accept loop", accept_loop.run());
        Ok(())
    }

    /// Goes over to another config.
    ///
    /// # Errors
    /// A new socket can't be accepted from.
    pub(super) fn change(&mut self, change: Change, tasks: &mut Vital) -> io::Result<()> {
        let Change { snapshot, sockets, places, departing, patience, done } = change;
        let before = self.ctx.adopt(snapshot);
        self.ctx.tunnels.look(&departing);
        let places: HashMap<SocketId, ListenerId> = places.into_iter().collect();
        let mut ends = false;
        self.loops.retain(|id, orders| match places.get(id) {
            Some(&listener) => {
                if let Some(here) = self.ctx.here(listener) {
                    orders.here.replace(here);
                }
                true
            }
            None => {
                orders.ends.set(true);
                ends = true;
                false
            }
        });
        for socket in sockets {
            self.begin(socket, tasks)?;
        }
        let gone = |listener: &&Arc<Listener>| self.ctx.here(listener.id).is_none();
        for listener in before.listeners.iter().filter(gone) {
            ends = true;
            let (admitter, state, id) = (Rc::clone(&self.admitter), Arc::clone(&listener.state), listener.id);
            let ctx = Rc::clone(&self.ctx);
            ctx.tunnels.close(id, Departure { since: now(), window: patience });
            spawn_local(async move {
                sleep(patience).await;
                admitter.cut(id);
                ctx.tunnels.forget(id);
                drop(state);
            });
        }
        if ends {
            // Whoever waits for something looks up who it belongs to.
            self.ctx.ticker.wake_all();
        }
        // Whoever asked may have gone.
        let _ = done.send(before);
        Ok(())
    }
}
