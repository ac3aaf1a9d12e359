//! Where an accepted connection becomes a task: takes a slot, spawns, forgets.

use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::io;
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;

use slab::Slab;
use tokio::task::{AbortHandle, Id, spawn_local};
use tokio_util::task::TaskTracker;

use crate::access::{NetworkVerdict, Networks};
use crate::config::model::Protocol;
use crate::message::{Cause, ListenerId, Peer, Record, RecordKind};
use crate::net::Stream;
use crate::proxy::Here;
use crate::proxy::WorkerCtx;
use crate::proxy::http::client::Client;
use crate::proxy::http::connection::{Stay, dismiss, serve, turn_away};
use crate::proxy::http::gate::{Denial, at_the_door};
use crate::proxy::recording::Recording;
use crate::proxy::tcp;
use crate::snapshot::ConnectionLimits;

use super::connection::greet;
use super::connection_slot::ConnectionSlot;
use super::handover::NewConnection;
use super::newcomer::Newcomer;

/// Connections per worker that are told at leisure that there is no room; more are told in passing.
const TURNED_AWAY: usize = 32;

/// Admits connections to one worker.
pub(super) struct Admitter {
    pub(super) ctx: Rc<WorkerCtx>,
    pub(super) limits: Arc<ConnectionLimits>,
    pub(super) tracker: TaskTracker,
    turned_away: Rc<Cell<usize>>,
    pub(super) tasks: Rc<Tasks>,
}

/// Counts one of those that are told at leisure that there is no room.
pub(super) struct Leisure(Rc<Cell<usize>>);

impl Drop for Leisure {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}

/// The tasks of the connections that are served.
#[derive(Default)]
pub(super) struct Tasks(RefCell<Slab<ConnectionTask>>);

struct ConnectionTask {
    listener: ListenerId,
    peer: Option<IpAddr>,
    /// The balancer in front that has told of `peer`.
    sender: Option<IpAddr>,
    handle: AbortHandle,
}

impl Tasks {
    /// Spawns what `work` makes as the connection of `peer`; it keeps what it is given until it ends.
    pub(super) fn spawn<W: Future<Output = ()> + 'static>(
        self: &Rc<Tasks>,
        peer: &Peer,
        work: impl FnOnce(ListedTask) -> W,
    ) {
        let mut tasks = self.0.borrow_mut();
        let entry = tasks.vacant_entry();
        // It does not run before this turn is over.
        let task = spawn_local(work(ListedTask { tasks: Rc::clone(self), place: entry.key() }));
        let client = peer.client.map(|client| client.ip);
        let (listener, handle) = (peer.listener, task.abort_handle());
        entry.insert(ConnectionTask { listener, peer: client, sender: None, handle });
    }

    /// Ends those that are `meant`; says which.
    fn abort(&self, meant: impl Fn(&ConnectionTask) -> bool) -> Vec<Id> {
        let tasks = self.0.borrow();
        let those = tasks.iter().map(|(_, task)| task).filter(|task| meant(task));
        let those: Vec<AbortHandle> = those.map(|task| task.handle.clone()).collect();
        // One that is dropped at once takes itself out.
        drop(tasks);
        those.iter().for_each(AbortHandle::abort);
        those.iter().map(AbortHandle::id).collect()
    }

    fn ids(&self) -> HashSet<Id> {
        self.0.borrow().iter().map(|(_, task)| task.handle.id()).collect()
    }
}

/// Takes a task out when that ends, however.
pub(super) struct ListedTask {
    tasks: Rc<Tasks>,
    place: usize,
}

impl ListedTask {
    /// It is the connection of somebody else than who has connected.
    pub(super) fn belongs_to(&self, client: Option<IpAddr>) {
        if let Some(task) = self.tasks.0.borrow_mut().get_mut(self.place) {
            task.sender = std::mem::replace(&mut task.peer, client);
        }
    }
}

impl Drop for ListedTask {
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
        let cut = self.tasks.abort(|task| task.listener == listener).len();
        if cut > 0 {
            self.ctx.cells.refusals.cut(listener, cut);
        }
    }

    /// Cuts the connections of clients in `networks`, and those on which a trusted proxy has sent a request for one of them that is
    /// under way. Says how many.
    pub(super) fn cut_clients(&self, networks: &Networks) -> usize {
        if networks.is_empty() {
            return 0;
        }
        let blocked = &self.ctx.blocked;
        let there = self.tasks.ids();
        blocked.forget_cut(|task| there.contains(task));
        let proxied = blocked.tasks_for(networks);
        let is_in = |peer| networks.verdict(peer) == Some(NetworkVerdict::Deny);
        let meant = |task: &ConnectionTask| {
            let id = task.handle.id();
            // Once is enough for those that have had no turn since.
            !blocked.has_cut(id)
                && ([task.peer, task.sender].into_iter().flatten().any(is_in) || proxied.contains(&id))
        };
        let cut = self.tasks.abort(meant);
        let count = cut.len();
        blocked.note_cut(cut);
        count
    }

    /// Whether the process has room for one more connection.
    pub(super) fn has_room(&self) -> bool {
        self.limits.taken() < self.limits.limit()
    }

    /// Whether one more may be told at leisure that it may not come in.
    pub(super) fn has_leisure(&self) -> bool {
        self.turned_away.get() < TURNED_AWAY
    }

    /// Counts one that is told so, as long as the value lives.
    pub(super) fn take_leisure(&self) -> Leisure {
        self.turned_away.set(self.turned_away.get() + 1);
        Leisure(Rc::clone(&self.turned_away))
    }

    /// Reads one request of a client that no list lets in: an authority comes from anywhere, and may ask for a proof. Whoever asks for
    /// anything else gets as request what it would have got here.
    fn hear_outsider(self: &Rc<Admitter>, stream: Stream, peer: Peer, listener: Here) {
        let mut slot = ConnectionSlot::take(&self.limits, &self.ctx, &listener.state, &peer, None);
        if let Some(cause) = slot.refusal() {
            dismiss(&self.ctx, &stream, &peer, &Denial::of(cause));
            return;
        }
        slot.stand_aside();
        let (leisure, tracked) = (self.take_leisure(), self.tracker.token());
        let client = Client::new(Rc::clone(&self.ctx), stream, peer, listener, None);
        self.tasks.spawn(&peer, |listed| async move {
            let (_listed, _tracked, _slot, _leisure) = (listed, tracked, slot, leisure);
            serve(client, Stay::OneRequest).await;
        });
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
    pub(super) fn admit(self: &Rc<Admitter>, connection: NewConnection) -> io::Result<()> {
        let NewConnection { socket, peer, listener } = connection;
        // As this worker knows it: what it does not know yet it will be told of.
        let known = self.ctx.here(listener.id).filter(|here| Arc::ptr_eq(&here.state, &listener.state));
        let listener = known.unwrap_or_else(|| Rc::new(listener));
        let speaks_at_once = listener.config.protocol == Protocol::Http && !listener.is_secured();
        let is_tried = speaks_at_once && self.ctx.promptness.expects();
        let stream = if is_tried { socket.into_fresh_stream() } else { socket.into_stream() }?;
        let address = peer.client.map(|client| client.ip);
        let senders = listener.config.proxy_protocol.clone();
        if let Some(senders) = senders.filter(|senders| senders.are_heard_first(address)) {
            self.hear(Newcomer::new(&self.ctx, stream, peer, listener), &senders);
            return Ok(());
        }
        let blocked = self.ctx.blocked.refusal(address).map(Denial::of);
        if blocked.is_none()
            && speaks_at_once
            && self.ctx.proofs.has_answers()
            && self.has_leisure()
            && at_the_door(&listener, address).is_some()
        {
            self.hear_outsider(stream, peer, listener);
            return Ok(());
        }
        let denial = blocked.or_else(|| at_the_door(&listener, address).map(Denial::by_address));
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
                self.tasks.spawn(&peer, |listed| async move {
                    let (_listed, _tracked, _slot) = (listed, tracked, slot);
                    serve(client, Stay::Open).await;
                });
            }
            (None, false) => {
                let greeting = Box::pin(greet(Newcomer::new(&ctx, stream, peer, listener)));
                self.tasks.spawn(&peer, |listed| async move {
                    let (_listed, _tracked, _slot) = (listed, tracked, slot);
                    if let Some(client) = greeting.await {
                        serve(client, Stay::Open).await;
                    }
                });
            }
            // Nothing can be said before a handshake, and whoever may not come in is worth none.
            (Some(denial), false) if denied.is_some() => {
                refuse_unheard(&Newcomer::new(&ctx, stream, peer, listener), denial.cause);
            }
            // A handshake costs more than what we are short of.
            (Some(_), false) => self.ctx.cells.ends.fail_unrecorded(peer.listener),
            (Some(denial), true) if denial.status.is_none() || !self.has_leisure() => {
                dismiss(&ctx, &stream, &peer, &denial);
            }
            (Some(denial), true) => {
                let leisure = self.take_leisure();
                let client = Client::new(ctx, stream, peer, listener, None);
                spawn_local(async move {
                    let _tracked = tracked;
                    turn_away(client, denial).await;
                    drop((slot, leisure));
                });
            }
        }
        Ok(())
    }
}

/// Leaves the record of a connection that ends unheard for `cause`, and is closed without a word.
pub(super) fn refuse_unheard(newcomer: &Newcomer, cause: Cause) {
    let Newcomer { ctx, peer, here, .. } = newcomer;
    let is_tcp = here.config.protocol == Protocol::Tcp;
    let kind = if is_tcp { RecordKind::Tcp } else { RecordKind::Http };
    let mut record = Record { kind, id: ctx.request_id(), ..peer.record() };
    Recording::new(ctx, None, &mut record).settle(cause);
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;
    use crate::message::ClientAddress;
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

    /// Connections from four addresses, orders with and without a cut, and turns of the event loop, in any order.
    #[test]
    fn whoever_is_blocked_is_out_whenever_he_came() {
        const NETWORKS: [&str; 4] = ["10.0.0.0/32", "10.0.0.0/31", "10.0.0.2/32", "10.0.0.0/30"];
        let options = tokio::runtime::LocalOptions::default();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build_local(options);
        let runtime = runtime.expect("a runtime");
        let network = |number: usize| NETWORKS[number].parse::<ipnet::IpNet>().expect("a network");
        let table = |all: &[usize]| {
            let all: Vec<_> = all.iter().map(|number| network(*number)).collect();
            Arc::new(Networks::new(&[], &all))
        };
        let client = |number: u8| IpAddr::from([10, 0, 0, number]);
        for seed in 0..200u64 {
            let mut draw = {
                let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
                move |end: u64| {
                    state ^= state << 13;
                    state ^= state >> 7;
                    state ^= state << 17;
                    state % end
                }
            };
            runtime.block_on(async {
                let ctx = context();
                let limits = ConnectionLimits::new(1_000);
                let admitter = Admitter::new(Rc::clone(&ctx), Arc::clone(&limits), TaskTracker::new());
                let (mut far, mut blocked, mut alive) = (Vec::new(), Vec::new(), Vec::<u8>::new());
                for step in 0..30 {
                    let number = draw(4) as usize;
                    match draw(5) {
                        0 => {
                            let keep = draw(3) == 0;
                            blocked.push(number);
                            ctx.blocked.replace(table(&blocked));
                            let cut = if keep { table(&[]) } else { table(&[number]) };
                            let before = alive.len();
                            alive.retain(|one| keep || !network(number).contains(&client(*one)));
                            let cuts = admitter.cut_clients(&cut);
                            assert_eq!(cuts, before - alive.len(), "seed {seed}, step {step}");
                        }
                        1 => {
                            blocked.retain(|one| *one != number);
                            ctx.blocked.replace(table(&blocked));
                        }
                        _ => {
                            let (near, other) = UnixStream::pair().expect("a pair of sockets");
                            near.set_nonblocking(true).expect("a socket");
                            far.push(other);
                            let ip = client(number as u8);
                            let peer = Peer { client: Some(ClientAddress::new(ip, 1)), ..Peer::default() };
                            let (socket, listener) = (Accepted::Unix(near), Arc::clone(&*here(&ctx)));
                            admitter.admit(NewConnection { socket, peer, listener }).expect("it is taken");
                            if !blocked.iter().any(|one| network(*one).contains(&ip)) {
                                alive.push(number as u8);
                            }
                        }
                    }
                    // Now and then nobody has had a turn since; what was told to end is listed until it has.
                    if draw(2) == 0 {
                        for _ in 0..4 {
                            tokio::task::yield_now().await;
                        }
                        let tasks = admitter.tasks.0.borrow();
                        let mut listed: Vec<_> = tasks.iter().filter_map(|(_, task)| task.peer).collect();
                        let mut expected: Vec<_> = alive.iter().map(|one| client(*one)).collect();
                        listed.sort();
                        expected.sort();
                        assert_eq!(listed, expected, "seed {seed}, step {step}");
                    }
                }
            });
        }
    }
}
