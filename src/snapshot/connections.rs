//! Limits for client connections: of the process, of each listener and of each client address; and what a listener is under
//! every config, which has its counts.
//!
//! Every connection is counted, limit or not, because a reload may bring a limit while it is there. Connections of single
//! clients are counted only where they are limited; those that were there when such a limit came count from their next.

use std::net::{IpAddr, Ipv6Addr};
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use dashmap::DashMap;
use dashmap::mapref::entry::Entry;

use crate::config::model::Limits;
use crate::message::Cause;
use crate::slots::HeldSlot;
use crate::tick::Tick;

/// Bits of an IPv6 address that one client has to itself: it can choose the others as it likes (RFC 6177).
const V6_PREFIX: u32 = 64;

/// A count with a limit, exact over all threads: nobody who is refused is counted for a moment.
#[derive(Debug)]
struct Count {
    taken: AtomicUsize,
    limit: AtomicUsize,
}

impl Default for Count {
    /// Without a limit.
    fn default() -> Count {
        Count { taken: AtomicUsize::new(0), limit: AtomicUsize::new(usize::MAX) }
    }
}

impl Count {
    fn enter(&self) -> bool {
        let limit = self.limit.load(Ordering::Relaxed);
        let more = |taken| (taken < limit).then_some(taken + 1);
        self.taken.fetch_update(Ordering::AcqRel, Ordering::Relaxed, more).is_ok()
    }

    fn leave(&self) {
        self.taken.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Connections by client. Whoever has none has no entry, so it never holds more entries than there are connections.
#[derive(Debug)]
struct Clients {
    /// `u32::MAX`: none, and nobody is counted.
    limit: AtomicU32,
    counts: DashMap<IpAddr, u32>,
}

impl Default for Clients {
    fn default() -> Clients {
        // The fewest shards that a map can have: it is empty in most listeners.
        Clients { limit: AtomicU32::new(u32::MAX), counts: DashMap::with_shard_amount(2) }
    }
}

impl Clients {
    fn is_limited(&self) -> bool {
        self.limit.load(Ordering::Relaxed) != u32::MAX
    }

    fn enter(&self, client: IpAddr) -> bool {
        let limit = self.limit.load(Ordering::Relaxed);
        match self.counts.entry(client) {
            Entry::Vacant(_) if limit == 0 => false,
            Entry::Vacant(free) => {
                free.insert(1);
                true
            }
            Entry::Occupied(mut count) => {
                let more = *count.get() < limit;
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
#[must_use]
pub fn owner(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) => Ipv6Addr::from_bits(v6.to_bits() & u128::MAX << (128 - V6_PREFIX)).into(),
        v4 @ IpAddr::V4(_) => v4,
    }
}

/// The connections of one listener.
#[derive(Debug, Default)]
pub struct ListenerCounts {
    connections: Count,
    clients: Clients,
}

impl ListenerCounts {
    /// Sets the limits from now on. Who is there stays.
    pub(super) fn limit(&self, limits: &Limits) {
        let most = limits.connections.map_or(usize::MAX, |most| usize::try_from(most).unwrap_or(usize::MAX));
        self.connections.limit.store(most, Ordering::Relaxed);
        self.clients.limit.store(limits.connections_per_client.unwrap_or(u32::MAX), Ordering::Relaxed);
    }

    /// Connections open now.
    #[must_use]
    pub fn taken(&self) -> usize {
        self.connections.taken.load(Ordering::Relaxed)
    }

    /// The limits in force: of connections, and of those of one client.
    #[must_use]
    pub fn limits(&self) -> (usize, u32) {
        (self.connections.limit.load(Ordering::Relaxed), self.clients.limit.load(Ordering::Relaxed))
    }

    /// Clients that are counted now.
    #[must_use]
    pub fn clients(&self) -> usize {
        self.clients.counts.len()
    }
}

/// What a listener is under every config.
#[derive(Debug, Default)]
pub struct ListenerState {
    /// Its connections.
    pub counts: ListenerCounts,
    /// Since when it is in force; empty: not yet.
    since: OnceLock<Tick>,
    slot: HeldSlot,
}

impl ListenerState {
    /// One that nobody has been connected to, with a number of its own.
    pub(super) fn new(slot: HeldSlot) -> ListenerState {
        ListenerState { slot, ..ListenerState::default() }
    }

    /// Its number, as long as this lives.
    pub(super) fn slot(&self) -> &HeldSlot {
        &self.slot
    }

    /// It is in force from `now` on, unless it is already.
    pub(super) fn begin(&self, now: Tick) {
        self.since.get_or_init(|| now);
    }

    /// Since when it is in force; zero: not yet.
    #[must_use]
    pub fn since(&self) -> Tick {
        self.since.get().copied().unwrap_or_default()
    }
}

/// The client connections of the process.
#[derive(Debug, Default)]
pub struct ConnectionLimits {
    all: Count,
    /// How many found no room of late, up to [`WANTED`]: flows that nobody may be behind make way for others in this process.
    wanted: AtomicU32,
}

/// As many are asked to make way at once.
const WANTED: u32 = 64;

impl ConnectionLimits {
    /// At most `limit`.
    #[must_use]
    pub fn new(limit: usize) -> Arc<ConnectionLimits> {
        let limits = ConnectionLimits::default();
        limits.set(limit);
        Arc::new(limits)
    }

    /// Sets the limit from now on. Who is there stays.
    pub fn set(&self, limit: usize) {
        self.all.limit.store(limit, Ordering::Relaxed);
    }

    /// How many there is room for.
    #[must_use]
    pub fn limit(&self) -> usize {
        self.all.limit.load(Ordering::Relaxed)
    }

    /// Connections open now.
    #[must_use]
    pub fn taken(&self) -> usize {
        self.all.taken.load(Ordering::Relaxed)
    }

    /// Lets a connection in on `listener`, if the client (whose address counts, if it has one), the listener and the
    /// process each have room. A client that has too many is told so also where everything is full.
    ///
    /// # Errors
    /// [`Cause::TooManyFromClient`], [`Cause::TooManyConnections`].
    pub fn enter(
        self: &Arc<ConnectionLimits>,
        listener: &Arc<ListenerState>,
        client: Option<IpAddr>,
    ) -> Result<CountedConnection, Cause> {
        let ListenerCounts { connections, clients } = &listener.counts;
        let client = if clients.is_limited() { client.map(owner) } else { None };
        if client.is_some_and(|client| !clients.enter(client)) {
            return Err(Cause::TooManyFromClient);
        }
        let has_entered = connections.enter();
        if has_entered && self.all.enter() {
            // A box, and only where there is something to remember: thousands of connections are idle.
            let client = client.map(Box::new);
            return Ok(CountedConnection {
                limits: Arc::clone(self),
                listener: Arc::clone(listener),
                client,
            });
        }
        if has_entered {
            connections.leave();
        }
        if let Some(client) = client {
            clients.leave(client);
        }
        self.want_room();
        Err(Cause::TooManyConnections)
    }

    /// Somebody found no room.
    #[cold]
    fn want_room(&self) {
        let more = |wanted| (wanted < WANTED).then_some(wanted + 1);
        let _ = self.wanted.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
    }

    /// How many found no room since this was asked for the last time, at most so many.
    #[must_use]
    pub fn wanted(&self) -> u32 {
        if self.wanted.load(Ordering::Relaxed) == 0 { 0 } else { self.wanted.swap(0, Ordering::Relaxed) }
    }

    /// Whether so little room is left that whoever can't show that he is there takes no more of it.
    #[must_use]
    pub fn is_tight(&self) -> bool {
        let limit = self.limit();
        self.taken() >= limit - limit / 4
    }
}

/// What a connection takes of the limits; given back on drop.
#[derive(Debug)]
pub struct CountedConnection {
    limits: Arc<ConnectionLimits>,
    listener: Arc<ListenerState>,
    client: Option<Box<IpAddr>>,
}

impl CountedConnection {
    /// Counts it as one of `client`, which was not known when it came in; it was counted as nobody's.
    ///
    /// # Errors
    /// [`Cause::TooManyFromClient`]: it is still counted as nobody's.
    pub fn name(&mut self, client: Option<IpAddr>) -> Result<(), Cause> {
        let clients = &self.listener.counts.clients;
        let Some(client) = client.map(owner).filter(|_| clients.is_limited() && self.client.is_none()) else {
            return Ok(());
        };
        if !clients.enter(client) {
            return Err(Cause::TooManyFromClient);
        }
        self.client = Some(Box::new(client));
        Ok(())
    }
}

impl Drop for CountedConnection {
    fn drop(&mut self) {
        self.limits.all.leave();
        self.listener.counts.connections.leave();
        if let Some(client) = &self.client {
            self.listener.counts.clients.leave(**client);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listener(limits: &Limits) -> Arc<ListenerState> {
        let state = ListenerState::default();
        state.counts.limit(limits);
        Arc::new(state)
    }

    fn ip(text: &str) -> Option<IpAddr> {
        Some(text.parse().expect("an address"))
    }

    #[test]
    fn there_is_never_more_than_the_limit() {
        let (limits, web) = (ConnectionLimits::new(2), listener(&Limits::default()));
        let enter = || limits.enter(&web, None);
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
        let few = Limits { connections: Some(3), connections_per_client: Some(2), ..Limits::default() };
        let (limits, listeners) = (ConnectionLimits::new(6), [listener(&few), listener(&Limits::default())]);
        let enter = |number: usize, client| limits.enter(&listeners[number], client);
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
        assert_eq!((listeners[0].counts.taken(), listeners[0].counts.clients()), (0, 0));
    }

    #[test]
    fn a_limit_that_comes_later_counts_who_is_there() {
        let (limits, web) = (ConnectionLimits::new(100), listener(&Limits::default()));
        let mut held: Vec<CountedConnection> =
            (0..3).map(|_| limits.enter(&web, ip("10.0.0.1")).expect("room")).collect();
        web.counts.limit(&Limits { connections: Some(3), ..Limits::default() });
        assert_eq!(limits.enter(&web, None).expect_err("full"), Cause::TooManyConnections);
        limits.set(2);
        held.pop();
        assert_eq!(limits.enter(&web, None).expect_err("full"), Cause::TooManyConnections);
        limits.set(100);
        web.counts.limit(&Limits { connections_per_client: Some(1), ..Limits::default() });
        let one = limits.enter(&web, ip("10.0.0.1")).expect("those before it are not counted");
        assert_eq!(limits.enter(&web, ip("10.0.0.1")).expect_err("two"), Cause::TooManyFromClient);
        web.counts.limit(&Limits::default());
        drop(one);
        drop(held);
        assert_eq!((limits.taken(), web.counts.taken(), web.counts.clients()), (0, 0, 0));
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
        let few = Limits { connections: Some(7), connections_per_client: Some(3), ..Limits::default() };
        let (limits, web) = (ConnectionLimits::new(100), listener(&few));
        let most = [AtomicUsize::new(0), AtomicUsize::new(0)];
        std::thread::scope(|scope| {
            for number in 0..4u8 {
                let (limits, web, most) = (&limits, &web, &most);
                scope.spawn(move || {
                    for turn in 0..5_000u32 {
                        // Two clients, who also meet themselves.
                        let client = IpAddr::from([10, 0, 0, number % 2]);
                        let counted = limits.enter(web, Some(client));
                        let own = web.counts.clients.counts.get(&client).map(|own| *own);
                        most[0].fetch_max(web.counts.taken(), Ordering::SeqCst);
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
        assert_eq!((limits.taken(), web.counts.taken(), web.counts.clients()), (0, 0, 0));
    }
}
