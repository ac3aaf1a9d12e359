//! Limits of client connections: of the process, of each listener and of each client address, and the slot that each
//! connection holds.

use std::net::{IpAddr, Ipv6Addr};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use dashmap::DashMap;
use dashmap::mapref::entry::Entry;

use crate::config::model::Limits;
use crate::message::{Cause, ListenerId, Peer};
use crate::proxy::WorkerCtx;

/// Bits of an IPv6 address that one client has to itself: it can choose the others as it likes (RFC 6177).
const V6_PREFIX: u32 = 64;

/// A count with a limit, exact over all threads: nobody who is refused is counted for a moment.
#[derive(Debug)]
struct Count {
    taken: AtomicUsize,
    limit: usize,
}

impl Count {
    fn new(limit: usize) -> Count {
        Count { taken: AtomicUsize::new(0), limit }
    }

    fn enter(&self) -> bool {
        let more = |taken| (taken < self.limit).then_some(taken + 1);
        self.taken.fetch_update(Ordering::AcqRel, Ordering::Relaxed, more).is_ok()
    }

    fn leave(&self) {
        self.taken.fetch_sub(1, Ordering::AcqRel);
    }
}

/// What one listener counts.
#[derive(Debug)]
struct ListenerCounts {
    connections: Option<Count>,
    clients: Option<Clients>,
}

/// Connections by client. Whoever has none has no entry, so it never holds more entries than there are connections.
#[derive(Debug)]
struct Clients {
    limit: u32,
    counts: DashMap<IpAddr, u32>,
}

impl Clients {
    fn enter(&self, client: IpAddr) -> bool {
        match self.counts.entry(client) {
            Entry::Vacant(_) if self.limit == 0 => false,
            Entry::Vacant(free) => {
                free.insert(1);
                true
            }
            Entry::Occupied(mut count) => {
                let more = *count.get() < self.limit;
                *count.get_mut() += u32::from(more);
                more
            }
        }
    }

    fn leave(&self, client: IpAddr) {
        self.counts.remove_if_mut(&client, |_, count| {
            *count -= 1;
            *count == 0
        });
    }
}

/// Whom an address belongs to: all of an IPv4 address, a /64 of IPv6.
fn owner(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) => Ipv6Addr::from_bits(v6.to_bits() & u128::MAX << (128 - V6_PREFIX)).into(),
        v4 @ IpAddr::V4(_) => v4,
    }
}

/// The limits of client connections, and what counts against them.
#[derive(Debug)]
pub struct ConnectionLimits {
    all: Count,
    /// By the listener's place in the snapshot.
    listeners: Vec<ListenerCounts>,
}

impl ConnectionLimits {
    /// ConnectionLimits for `limit` connections, on listeners with these limits.
    #[must_use]
    pub fn new<'a>(limit: usize, listeners: impl IntoIterator<Item = &'a Limits>) -> Arc<ConnectionLimits> {
        let counts = |limits: &Limits| ListenerCounts {
            connections: limits
                .connections
                .map(|most| Count::new(usize::try_from(most).unwrap_or(usize::MAX))),
            clients: limits.connections_per_client.map(|limit| Clients { limit, counts: DashMap::new() }),
        };
        Arc::new(ConnectionLimits {
            all: Count::new(limit),
            listeners: listeners.into_iter().map(counts).collect(),
        })
    }

    /// How many there is room for.
    #[must_use]
    pub fn limit(&self) -> usize {
        self.all.limit
    }

    /// Connections open now.
    #[must_use]
    pub fn taken(&self) -> usize {
        self.all.taken.load(Ordering::Relaxed)
    }

    /// Lets a connection in on `listener`, if the client (whose address counts, if it has one), the listener and the
    /// process each have limits. A client that has too many is told so also where everything is full.
    fn enter(
        self: &Arc<ConnectionLimits>,
        listener: ListenerId,
        client: Option<IpAddr>,
    ) -> Result<Counted, Cause> {
        let counts = self.listeners.get(usize::from(listener.0));
        let clients = counts.and_then(|counts| counts.clients.as_ref()).zip(client.map(owner));
        if clients.is_some_and(|(clients, client)| !clients.enter(client)) {
            return Err(Cause::TooManyFromClient);
        }
        let connections = counts.and_then(|counts| counts.connections.as_ref());
        let has_entered = connections.is_none_or(Count::enter);
        if has_entered && self.all.enter() {
            // A box, and only where there is something to remember: thousands of connections are idle.
            let client = clients.map(|(_, client)| Box::new(client));
            return Ok(Counted { limits: Arc::clone(self), listener, client });
        }
        if let Some(connections) = connections.filter(|_| has_entered) {
            connections.leave();
        }
        if let Some((clients, client)) = clients {
            clients.leave(client);
        }
        Err(Cause::TooManyConnections)
    }
}

/// What a connection counts for; given back on drop.
#[derive(Debug)]
struct Counted {
    limits: Arc<ConnectionLimits>,
    listener: ListenerId,
    client: Option<Box<IpAddr>>,
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.limits.all.leave();
        let Some(counts) = self.limits.listeners.get(usize::from(self.listener.0)) else { return };
        if let Some(connections) = &counts.connections {
            connections.leave();
        }
        if let (Some(clients), Some(client)) = (&counts.clients, &self.client) {
            clients.leave(**client);
        }
    }
}

/// A connection's place; given back on drop, also when its task panics.
pub(super) struct ConnectionSlot {
    counted: Result<Counted, Cause>,
    ctx: Rc<WorkerCtx>,
}

impl ConnectionSlot {
    /// Takes a place, if there is one; otherwise the value stands for a connection that is turned away.
    pub(super) fn take(limits: &Arc<ConnectionLimits>, ctx: &Rc<WorkerCtx>, peer: &Peer) -> ConnectionSlot {
        ctx.cells.connections.accepted.increment();
        ctx.cells.connections.open.raise();
        let counted = limits.enter(peer.listener, peer.client.map(|client| client.ip));
        if let Err(cause) = &counted {
            ctx.cells.connections.refused.increment();
            let is_crowd = *cause == Cause::TooManyConnections;
            ctx.cells.connections.without_room.add(u64::from(is_crowd));
        }
        ConnectionSlot { counted, ctx: Rc::clone(ctx) }
    }

    /// Why there was no room; `None`: there was.
    pub(super) fn refusal(&self) -> Option<Cause> {
        self.counted.as_ref().err().copied()
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.ctx.cells.connections.open.lower();
        if std::thread::panicking() {
            self.ctx.cells.panics.increment();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Record;
    use crate::proxy::fixtures::context;
    use crate::proxy::recording::Recording;

    #[test]
    fn there_is_never_more_than_the_limit() {
        let limits = ConnectionLimits::new(2, [&Limits::default()]);
        let enter = || limits.enter(ListenerId(0), None);
        let (first, second) = (enter().expect("room"), enter().expect("room"));
        assert_eq!(enter().expect_err("full"), Cause::TooManyConnections);
        drop(first);
        let third = enter().expect("room");
        assert_eq!(limits.taken(), 2);
        drop((second, third));
        assert_eq!(limits.taken(), 0);
    }

    #[test]
    fn each_listener_and_each_client_has_its_own_limit_and_nothing_is_left_behind() {
        let ip = |text: &str| Some(text.parse::<IpAddr>().expect("an address"));
        let limits = Limits { connections: Some(3), connections_per_client: Some(2), ..Limits::default() };
        let limits = ConnectionLimits::new(6, [&limits, &Limits::default()]);
        let enter = |listener, client| limits.enter(ListenerId(listener), client);
        let refused = |listener, client| enter(listener, client).expect_err("no room");
        let mut held = vec![enter(0, ip("10.0.0.1")), enter(0, ip("::ffff:10.0.0.1"))];
        assert_eq!(refused(0, ip("10.0.0.1")), Cause::TooManyFromClient, "mapped into v6 it is the same");
        held.push(enter(0, ip("10.0.0.2")));
        assert_eq!(refused(0, ip("10.0.0.2")), Cause::TooManyConnections);
        assert_eq!(refused(0, ip("10.0.0.1")), Cause::TooManyFromClient, "its own doing is told first");
        assert_eq!(refused(0, None), Cause::TooManyConnections);
        held.extend([enter(1, ip("10.0.0.1")), enter(1, ip("10.0.0.1")), enter(1, ip("10.0.0.1"))]);
        assert!(held.iter().all(Result::is_ok), "the other listener has no limits");
        assert_eq!((refused(1, None), limits.taken()), (Cause::TooManyConnections, 6));
        assert_eq!(held.len(), 6);
        drop(held.remove(0));
        held.push(enter(0, ip("10.0.0.1")));
        assert!(held.iter().all(Result::is_ok), "whoever was refused took nothing");
        held.clear();
        assert_eq!(limits.taken(), 0);
        let counts = &limits.listeners[0];
        assert_eq!(counts.connections.as_ref().map(|count| count.taken.load(Ordering::Relaxed)), Some(0));
        assert!(counts.clients.as_ref().is_some_and(|clients| clients.counts.is_empty()));
    }

    #[test]
    fn a_client_of_ipv6_is_a_64() {
        let owner = |text: &str| owner(text.parse().expect("an address")).to_string();
        assert_eq!(owner("2001:db8:1:2:3:4:5:6"), owner("2001:db8:1:2::9"));
        assert_ne!(owner("2001:db8:1:2::9"), owner("2001:db8:1:3::9"));
        assert_eq!(owner("::ffff:192.0.2.1"), "192.0.2.1");
        assert_ne!(owner("192.0.2.1"), owner("192.0.2.2"));
    }

    #[test]
    fn the_limits_are_exact_over_threads() {
        let limits = Limits { connections: Some(7), connections_per_client: Some(3), ..Limits::default() };
        let limits = ConnectionLimits::new(100, [&limits]);
        let most = [AtomicUsize::new(0), AtomicUsize::new(0)];
        std::thread::scope(|scope| {
            for number in 0..4u8 {
                let (limits, most) = (&limits, &most);
                scope.spawn(move || {
                    for turn in 0..5_000u32 {
                        // Two clients, who also meet themselves.
                        let client = IpAddr::from([10, 0, 0, number % 2]);
                        let counted = limits.enter(ListenerId(0), Some(client));
                        let counts = &limits.listeners[0];
                        let count =
                            counts.connections.as_ref().map_or(0, |count| count.taken.load(Ordering::SeqCst));
                        let own = counts
                            .clients
                            .as_ref()
                            .and_then(|clients| clients.counts.get(&client).map(|own| *own));
                        most[0].fetch_max(count, Ordering::SeqCst);
                        most[1].fetch_max(own.unwrap_or(0) as usize, Ordering::SeqCst);
                        if counted.is_ok() && turn % 3 == 0 {
                            std::thread::yield_now();
                        }
                    }
                });
            }
        });
        let [count, own] = most.map(AtomicUsize::into_inner);
        assert!((1..=7).contains(&count) && (1..=3).contains(&own), "{count} {own}");
        assert_eq!(limits.taken(), 0);
        assert!(limits.listeners[0].clients.as_ref().is_some_and(|clients| clients.counts.is_empty()));
    }

    #[test]
    fn a_panic_in_one_connection_is_counted_and_recorded_and_ends_no_other() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build_local(tokio::runtime::LocalOptions::default())
            .expect("a runtime");
        let (ctx, limits) = (context(), ConnectionLimits::new(2, []));
        let connection = |breaks: bool| {
            let (ctx, place) = (Rc::clone(&ctx), ConnectionSlot::take(&limits, &ctx, &Peer::default()));
            tokio::task::spawn_local(async move {
                let _place = place;
                let mut record = Record::default();
                let mut recording = Recording::new(&ctx, None, &mut record);
                tokio::task::yield_now().await;
                assert!(!breaks, "this panic is wanted");
                recording.settle(Cause::Done);
            })
        };
        let (broken, whole) = runtime.block_on(async { tokio::join!(connection(true), connection(false)) });
        assert!(broken.is_err_and(|error| error.is_panic()));
        assert!(whole.is_ok(), "the worker goes on");
        assert_eq!(limits.taken(), 0, "both places are free again");
        let cells = &ctx.cells;
        assert_eq!((cells.panics.value(), cells.connections.open.value()), (1, 0));
        assert_eq!((cells.ended_with(Cause::Internal), cells.ended_with(Cause::Done)), (1, 1));
    }
}
