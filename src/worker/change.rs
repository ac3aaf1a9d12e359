//! Another config while a worker serves: what it is told, and what it does then.
//!
//! Invariants:
//!
//! 1. A worker has one config at a time and goes over to the next one between two turns of its event loop, so no task
//!    sees half of either. Whatever was begun under the one before holds the objects of that one.
//! 2. An accept loop is told whose connections it accepts by its [`Orders`]; one that a change tells to end does so as in a
//!    drain: it accepts what is queued, then closes.
//! 3. Who is cut at the end of a listener's time is a connection of that very listener: its number is nobody else's while
//!    the one who cuts holds its state.
//! 4. Who is blocked is one table for all workers, never changed and replaced whole. A worker takes it and cuts in one turn of its event
//!    loop ([`BlockOrder`]); [`blocked`](crate::proxy::blocked) says why nobody slips between.
//! 5. A Record is written to the access log that the worker has when it ends, whatever it was begun under. Going over, a worker
//!    hands over all that it holds; what finds no room goes back with [`Before`], and none is lost.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io;
use std::os::fd::OwnedFd;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use tokio::sync::{mpsc, oneshot};
use tokio::task::spawn_local;
use tokio::time::sleep;

use crate::access::Networks;
use crate::lasting::Vital;
use crate::message::ListenerId;
use crate::net::now;
use crate::proxy::WorkerCtx;
use crate::proxy::udp::relay::LeftFlow;
use crate::snapshot::{ConnectionLimits, Listener, Snapshot};
use crate::targets::{Backend, Departure};
use crate::telemetry::access_log::{Handle, LogRest};

use super::admission::Admitter;
use super::datagrams::DatagramLoop;
use super::handover::Neighbours;
use super::listen::{Acceptor, Loop, Orders, SharedSocket, Socket, SocketId, SocketKind};

/// Another config, for one worker. What it costs the worker goes by what differs, and not by how large the config is.
pub struct Change {
    /// What is in force from now on.
    pub snapshot: Arc<Snapshot>,
    /// What differs, the same for all workers.
    pub turnover: Arc<Turnover>,
    /// Addresses that it did not listen on before.
    pub sockets: Vec<Socket>,
    /// Backends that leave, or stay after all: their words have changed.
    pub departing: Arc<[Arc<Backend>]>,
    /// Its end of another access log, or of none; `None`: that stays.
    pub log: Option<Option<Handle>>,
    /// How long connections of listeners that are gone may finish, and all of them at the end.
    pub patience: Duration,
    /// Is told once this is in force.
    pub done: oneshot::Sender<Before>,
}

/// What differs for a worker from the config before.
#[derive(Debug, Default)]
pub struct Turnover {
    /// Listeners that are new or not what they were.
    pub listeners: Vec<Arc<Listener>>,
    /// Those that are no longer there.
    pub gone: Vec<Arc<Listener>>,
    /// Sockets whose connections belong to one of these listeners from now on; `None`: it accepts what is queued and ends.
    pub orders: Vec<(SocketId, Option<ListenerId>)>,
}

/// What a worker gives back when another config is in force, so that its end costs no worker time.
pub struct Before {
    /// The config before.
    pub snapshot: Arc<Snapshot>,
    /// What differed.
    pub turnover: Arc<Turnover>,
    /// Lines for the access log before, if that is another one.
    pub log_rest: Option<LogRest>,
    /// What the change has cost the worker's thread on a processor: for so long no connection got its turn.
    pub spent: Duration,
}

/// Others are blocked from now on.
pub struct BlockOrder {
    /// All of them, the same for all workers.
    pub table: Arc<Networks>,
    /// Those of them whose requests under way and tunnels are cut.
    pub cut: Arc<Networks>,
    /// Is told once this is in force and everything is told to end: how many connections that was.
    pub done: oneshot::Sender<usize>,
}

/// What a worker is told.
pub enum WorkerNews {
    /// Others are blocked.
    Blocked(BlockOrder),
    /// Another config.
    Change(Box<Change>),
    /// Backends leave, or stay after all, without one: their words have changed.
    Departing(Arc<[Arc<Backend>]>),
    /// Somebody wants its listening sockets.
    Sockets(oneshot::Sender<io::Result<Vec<SharedSocket>>>),
}

/// By which a worker is told of changes.
pub type ChangeSender = mpsc::UnboundedSender<WorkerNews>;

/// The other end of it.
pub struct Changes(mpsc::UnboundedReceiver<WorkerNews>);

/// Both ends of a worker's changes. There is no bound, because whoever sends waits for the answer.
#[must_use]
pub fn changes() -> (ChangeSender, Changes) {
    let (sender, receiver) = mpsc::unbounded_channel();
    (sender, Changes(receiver))
}

impl Changes {
    /// The next one; for ever if nobody can send any more.
    pub(super) async fn next(&mut self) -> WorkerNews {
        match self.0.recv().await {
            Some(news) => news,
            None => std::future::pending().await,
        }
    }
}

/// The accept loops of a worker.
pub(super) struct Accepting {
    ctx: Rc<WorkerCtx>,
    admitter: Rc<Admitter>,
    limits: Arc<ConnectionLimits>,
    neighbours: Neighbours,
    /// By number; of a process before us there may be several sockets with one.
    loops: HashMap<SocketId, AcceptingLoops>,
    /// Those for datagrams, among them some that are over.
    datagrams: Vec<Weak<DatagramLoop>>,
}

/// The loops of sockets that have one number.
struct AcceptingLoops {
    /// What they are told.
    orders: Rc<Orders>,
    /// Their sockets, until they close.
    sockets: Vec<OpenListening>,
}

/// A socket that its loop holds.
enum OpenListening {
    Stream(Weak<Acceptor>),
    Datagrams(Weak<DatagramLoop>),
}

impl OpenListening {
    /// Another descriptor of it; `None`: it is closed.
    fn share(&self) -> io::Result<Option<(OwnedFd, Vec<LeftFlow>)>> {
        match self {
            OpenListening::Stream(acceptor) => {
                let copy = acceptor.upgrade().map(|acceptor| acceptor.copy()).transpose()?;
                Ok(copy.map(|copy| (copy, Vec::new())))
            }
            OpenListening::Datagrams(datagrams) => {
                datagrams.upgrade().map(|datagrams| datagrams.share()).transpose()
            }
        }
    }
}

impl Accepting {
    pub(super) fn new(
        ctx: &Rc<WorkerCtx>,
        (admitter, limits): (&Rc<Admitter>, &Arc<ConnectionLimits>),
        neighbours: Neighbours,
    ) -> Accepting {
        Accepting {
            ctx: Rc::clone(ctx),
            admitter: Rc::clone(admitter),
            limits: Arc::clone(limits),
            neighbours,
            loops: HashMap::new(),
            datagrams: Vec::new(),
        }
    }

    /// Begins to accept from `socket`.
    ///
    /// # Errors
    /// The event loop does not take it.
    pub(super) fn begin(&mut self, socket: Socket, tasks: &mut Vital) -> io::Result<()> {
        let Socket { id, listener, kind, is_lent } = socket;
        let loops = match self.loops.entry(id) {
            Entry::Occupied(there) => there.into_mut(),
            Entry::Vacant(place) => {
                let orders = Orders::new(&self.ctx, listener, is_lent)?;
                place.insert(AcceptingLoops { orders, sockets: Vec::new() })
            }
        };
        let orders = Rc::clone(&loops.orders);
        let acceptor = match kind {
            SocketKind::Tcp(tcp) => Acceptor::tcp(tcp)?,
            SocketKind::Unix(unix) => Acceptor::unix(unix)?,
            SocketKind::Udp(udp, flows) => {
                let datagrams = DatagramLoop::new(&self.ctx, &self.limits, udp, Rc::clone(&orders))?;
                datagrams.go_on(flows);
                loops.sockets.push(OpenListening::Datagrams(Rc::downgrade(&datagrams)));
                self.datagrams.retain(|one| one.strong_count() > 0);
                self.datagrams.push(Rc::downgrade(&datagrams));
                tasks.spawn_until("datagrams", datagrams.run());
                return Ok(());
            }
        };
        let acceptor = Rc::new(acceptor);
        loops.sockets.push(OpenListening::Stream(Rc::downgrade(&acceptor)));
        let (ctx, admitter) = (Rc::clone(&self.ctx), Rc::clone(&self.admitter));
        let accept_loop = Loop::new(ctx, admitter, self.neighbours.clone(), acceptor, orders);
        tasks.spawn_until("accept loop", accept_loop.run());
        Ok(())
    }

    /// Another descriptor of each of its sockets, in the order of their numbers.
    ///
    /// # Errors
    /// What the system reports.
    pub(super) fn sockets(&self) -> io::Result<Vec<SharedSocket>> {
        let mut shared = Vec::new();
        for (id, loops) in &self.loops {
            for socket in &loops.sockets {
                let (id, is_lent) = (*id, loops.orders.is_lent);
                let one = socket.share()?;
                shared.extend(one.map(|(descriptor, flows)| SharedSocket { id, descriptor, flows, is_lent }));
            }
        }
        shared.sort_by_key(|one| one.id.0);
        Ok(shared)
    }

    /// Another process has these sockets: who comes next is its own.
    pub(super) fn leave(&self) {
        self.loops.values().for_each(|loops| loops.orders.is_left.set(true));
    }

    /// The same of those that are lent: who comes next is for whoever is started next.
    pub(super) fn leave_lent(&self) {
        let lent = self.loops.values().filter(|loops| loops.orders.is_lent);
        lent.for_each(|loops| loops.orders.is_left.set(true));
    }

    /// Keeps out whom `order` blocks, and cuts what they have under way.
    pub(super) fn block(&self, order: BlockOrder) {
        let BlockOrder { table, cut, done } = order;
        self.ctx.blocked.replace(table);
        // Whoever asked may have gone.
        let flows = self.datagrams.iter().filter_map(Weak::upgrade).map(|datagrams| datagrams.cut(&cut));
        let flows: usize = flows.sum();
        let _ = done.send(self.admitter.cut_clients(&cut) + flows);
    }

    /// Goes over to another config.
    ///
    /// # Errors
    /// A new socket can't be accepted from.
    pub(super) fn change(&mut self, change: Change, tasks: &mut Vital) -> io::Result<()> {
        let begun = thread_time();
        let Change { snapshot, turnover, sockets, departing, log, patience, done } = change;
        let snapshot = self.ctx.adopt(snapshot, &turnover.listeners, &turnover.gone);
        self.ctx.tunnels.look(&departing);
        let log_rest = log.and_then(|next| Handle::replace(&mut self.ctx.log.borrow_mut(), next));
        let mut ends = !turnover.gone.is_empty();
        for (id, order) in &turnover.orders {
            match order {
                Some(listener) => {
                    if let (Some(loops), Some(here)) = (self.loops.get(id), self.ctx.here(*listener)) {
                        loops.orders.here.replace(here);
                    }
                }
                None => {
                    ends = true;
                    if let Some(loops) = self.loops.remove(id) {
                        loops.orders.ends.set(true);
                    }
                }
            }
        }
        for socket in sockets {
            self.begin(socket, tasks)?;
        }
        for listener in &turnover.gone {
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
        let spent = thread_time().saturating_sub(begun);
        // Whoever asked may have gone.
        let _ = done.send(Before { snapshot, turnover, log_rest, spent });
        Ok(())
    }
}

/// Time that this thread has had a processor.
fn thread_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::try_from(time).unwrap_or_default()
}
