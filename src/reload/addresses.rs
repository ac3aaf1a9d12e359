//! The addresses that the process listens on: which are bound, whose they are, and what another config changes of that.
//!
//! An address belongs to the process and not to a listener: one that goes on under another listener keeps its sockets. One that
//! is in the way of another (`*:80` and `127.0.0.1:80`) and is given up for it is there until the other listens, so that
//! somebody always does.

pub mod left;

use std::collections::{HashMap, HashSet};
use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::path::Path;

use super::bound::{Bound, ListeningPlace, Opened, Unbound};
use super::plan::{AddressChange, PlannedAddress};
use crate::config::model::Bind;
use crate::message::ListenerId;
use crate::net::holder::{self, Transport};
use crate::net::socket;
use crate::net::socket_file::SocketFile;
use crate::snapshot::Snapshot;
use crate::worker::{Socket, SocketId, SocketKind};
use left::LeftAddress;

/// One address, with a socket for each worker.
#[derive(Debug)]
pub struct BoundAddress {
    /// The number of its sockets.
    pub id: SocketId,
    /// The listener's name.
    pub listener: String,
    /// As it is written.
    pub bind: Bind,
    /// As it is.
    pub address: Bound,
    file: Option<SocketFile>,
}

/// The addresses that are bound.
#[derive(Debug, Default)]
pub struct Addresses {
    all: Vec<BoundAddress>,
    next: u32,
    /// Those that were given up: workers may still accept what is queued there.
    given_up: HashSet<(Transport, SocketAddr)>,
    /// Those that the process before has left, as long as nobody wanted them.
    left: Vec<LeftAddress>,
}

/// Which of the addresses that are bound a config keeps, and what it wants beside them.
#[derive(Debug)]
pub struct Matching<'a> {
    /// Those that go on.
    kept: Vec<Kept>,
    /// Listener's name, address, listener's number.
    wanted: Vec<(&'a str, &'a Bind, ListenerId)>,
    /// Places of those that are given up.
    left: Vec<usize>,
}

/// What a config changes of that. Dropping it closes what was bound for it, and nothing else has changed.
#[derive(Debug)]
pub struct Rebinding {
    /// New ones.
    pub new: Vec<BoundAddress>,
    /// Their sockets, by worker.
    pub sockets: Vec<Vec<Socket>>,
    /// Those that go on.
    kept: Vec<Kept>,
    /// The numbers of those that do not listen before the last moment.
    reserved: Vec<SocketId>,
    next: u32,
}

/// An address that goes on.
#[derive(Debug)]
struct Kept {
    /// Its place in the list.
    place: usize,
    /// As it is written from now on.
    bind: Bind,
    /// The listener's name from now on.
    listener: String,
    /// And its number.
    id: ListenerId,
}

/// How an address that is wanted may be one that is bound, best first.
const MATCHES: [fn(&BoundAddress, &str, &Bind) -> bool; 3] = [
    // Of several that let the system choose the port, those of the same listener go together; then any will do.
    |place, name, bind| place.bind == *bind && place.listener == name,
    |place, _, bind| place.bind == *bind,
    // The port that the system chose is written out.
    |place, _, bind| match (bind, &place.address) {
        (Bind::Tcp(one), Bound::Tcp(other)) | (Bind::Udp(one), Bound::Udp(other)) => one == other,
        _ => false,
    },
];

impl BoundAddress {
    /// Where it is in the network.
    fn endpoint(&self) -> Option<(Transport, SocketAddr)> {
        match self.address {
            Bound::Tcp(address) => Some((Transport::Tcp, address)),
            Bound::Udp(address) => Some((Transport::Udp, address)),
            Bound::Unix(_) => None,
        }
    }
}

impl Rebinding {
    /// Has those listen that were in the way of others. Whatever comes in goes to them from now on.
    ///
    /// # Errors
    /// One can't; nothing has changed.
    pub fn listen(&self) -> Result<(), Unbound> {
        for socket in self.sockets.iter().flatten().filter(|socket| self.reserved.contains(&socket.id)) {
            if let SocketKind::Tcp(tcp) = &socket.kind
                && let Err(error) = socket::start_listening(tcp)
                && let Some(place) = self.new.iter().find(|place| place.id == socket.id)
            {
                return Err(Unbound::new(&place.listener, &place.bind, error));
            }
        }
        Ok(())
    }
}

impl Addresses {
    /// None, but that these are bound already and need not be again.
    #[must_use]
    pub fn with_left(left: Vec<LeftAddress>) -> Addresses {
        Addresses { left, ..Addresses::default() }
    }

    /// What the sockets with this number are.
    #[must_use]
    pub fn place(&self, id: SocketId) -> Option<ListeningPlace> {
        let place = self.all.iter().find(|place| place.id == id)?;
        let BoundAddress { listener, bind, address, .. } = place;
        Some(ListeningPlace { listener: listener.clone(), bind: bind.clone(), address: address.clone() })
    }

    /// The files of unix sockets that the process before has left are this one's own from now on.
    pub fn claim_files(&mut self) {
        self.all.iter_mut().filter_map(|place| place.file.as_mut()).for_each(SocketFile::claim);
    }

    /// Leaves the files of unix sockets where they are: another process has these.
    pub fn leave_files(&mut self) {
        self.all.iter_mut().filter_map(|place| place.file.as_mut()).for_each(SocketFile::leave);
    }

    /// Those that are bound, in the order in which they were.
    #[must_use]
    pub fn all(&self) -> &[BoundAddress] {
        &self.all
    }

    /// Which of them `snapshot` keeps, and what it wants beside them.
    #[must_use]
    pub fn compare<'a>(&self, snapshot: &'a Snapshot) -> Matching<'a> {
        let mut left: Vec<usize> = (0..self.all.len()).collect();
        let mut kept = Vec::new();
        let wanted = snapshot.listeners.iter().flat_map(|listener| {
            listener.config.binds.iter().map(move |bind| (&*listener.config.name, bind, listener.id))
        });
        let mut wanted: Vec<_> = wanted.collect();
        for is_match in MATCHES {
            wanted.retain(|&(name, bind, id)| {
                let found = left.iter().position(|&place| is_match(&self.all[place], name, bind));
                kept.extend(found.map(|found| {
                    let (place, bind, listener) = (left.swap_remove(found), bind.clone(), name.to_owned());
                    Kept { place, bind, listener, id }
                }));
                found.is_none()
            });
        }
        Matching { kept, wanted, left }
    }

    /// Binds what is wanted, once after the other, and lets it go: what could not be bound. Nobody can connect meanwhile.
    #[must_use]
    pub fn try_out(&self, matching: &Matching<'_>) -> Vec<Unbound> {
        // All at the same time, since that is how they would be bound.
        let mut claims = Vec::new();
        let mut unbound = Vec::new();
        for &(name, bind, _) in &matching.wanted {
            let outcome = match bind {
                Bind::Tcp(address) if self.is_in_the_way(&matching.left, (Transport::Tcp, *address)) => {
                    socket::reserve(*address).map(drop)
                }
                Bind::Tcp(address) => {
                    socket::claim(*address).map(|(claim, _)| claims.push(OwnedFd::from(claim)))
                }
                Bind::Udp(address) if self.is_in_the_way(&matching.left, (Transport::Udp, *address)) => {
                    socket::join_datagrams(*address).map(drop)
                }
                Bind::Udp(address) => {
                    socket::claim_datagrams(*address).map(|(claim, _)| claims.push(claim.into()))
                }
                Bind::Unix(path) => socket::try_unix(path),
            };
            unbound.extend(outcome.err().map(|error| Unbound::new(name, bind, error)));
        }
        unbound
    }

    /// What becomes of them.
    #[must_use]
    pub fn changes(&self, matching: &Matching<'_>) -> Vec<PlannedAddress> {
        let new = matching.wanted.iter().map(|(name, bind, _)| PlannedAddress {
            address: Bound::asked(bind).to_string(),
            listener: (*name).to_owned(),
            change: AddressChange::Bound,
        });
        let moved = matching.kept.iter().filter_map(|Kept { place, listener: name, .. }| {
            let place = &self.all[*place];
            let change = AddressChange::Moved { from: place.listener.clone() };
            let is_moved = place.listener != *name;
            let address = place.address.to_string();
            is_moved.then(|| PlannedAddress { address, listener: name.clone(), change })
        });
        let closed = matching.left.iter().map(|place| {
            let BoundAddress { address, listener, .. } = &self.all[*place];
            let change = AddressChange::Closed;
            PlannedAddress { address: address.to_string(), listener: listener.clone(), change }
        });
        new.chain(moved).chain(closed).collect()
    }

    /// Binds what `snapshot` wants and is not bound yet, once for each of `workers`.
    ///
    /// # Errors
    /// An address can't be bound; nothing is, then.
    pub fn rebind(&mut self, snapshot: &Snapshot, workers: usize) -> Result<Rebinding, Unbound> {
        let Matching { kept, wanted, left } = self.compare(snapshot);
        let mut sockets: Vec<Vec<Socket>> = std::iter::repeat_with(Vec::new).take(workers).collect();
        let (mut new, mut next, mut reserved) = (Vec::new(), self.next, Vec::new());
        for (name, bind, listener) in wanted {
            let id = SocketId(next);
            next = next.wrapping_add(1);
            let outcome = match bind {
                _ if let Some(before) = LeftAddress::take(&mut self.left, name, bind) => {
                    before.give(id, listener, &mut sockets)
                }
                Bind::Tcp(address) if self.is_in_the_way(&left, (Transport::Tcp, *address)) => {
                    reserved.push(id);
                    reserve_tcp(*address, id, listener, &mut sockets)
                }
                Bind::Tcp(address) => bind_tcp(*address, id, listener, &mut sockets),
                Bind::Udp(address) => {
                    let beside = self.is_in_the_way(&left, (Transport::Udp, *address));
                    bind_udp((*address, beside), id, listener, &mut sockets)
                }
                Bind::Unix(path) => bind_unix(path, id, listener, &mut sockets),
            };
            let (address, file) = outcome.map_err(|error| Unbound::new(name, bind, error))?;
            let (listener, bind) = (name.to_owned(), bind.clone());
            new.push(BoundAddress { id, listener, bind, address, file });
        }
        Ok(Rebinding { new, sockets, kept, reserved, next })
    }

    /// Whether one of those that are `left`, which are given up, or were before, is in the way of `address`, and nobody else's
    /// is: then a claim would meet ourselves.
    fn is_in_the_way(&self, left: &[usize], (transport, address): (Transport, SocketAddr)) -> bool {
        let is_overlapped =
            |ours: (Transport, SocketAddr)| ours.0 == transport && socket::overlap(ours.1, address);
        let is_ours = left.iter().filter_map(|&place| self.all[place].endpoint()).any(is_overlapped)
            || self.given_up.iter().copied().any(is_overlapped);
        is_ours && holder::is_this_process_alone(transport, address)
    }

    /// Makes a rebinding the addresses that are bound: each socket and its listener, and those that were given up. Their
    /// files are gone with them; their sockets close when the workers have accepted what is queued there.
    pub fn settle(
        &mut self,
        rebinding: Rebinding,
        snapshot: &Snapshot,
    ) -> (Vec<(SocketId, ListenerId)>, Vec<BoundAddress>) {
        let Rebinding { new, kept, next, .. } = rebinding;
        // Nobody wants them.
        self.left.clear();
        let mut all: Vec<Option<BoundAddress>> = self.all.drain(..).map(Some).collect();
        let mut orders = Vec::new();
        for Kept { place, bind, listener, id } in kept {
            if let Some(mut place) = all[place].take() {
                (place.listener, place.bind) = (listener, bind);
                orders.push((place.id, id));
                self.all.push(place);
            }
        }
        for place in new {
            if let Some(listener) = snapshot.listener_named(&place.listener) {
                orders.push((place.id, listener.id));
            }
            self.all.push(place);
        }
        self.next = next;
        let closed: Vec<BoundAddress> = all.into_iter().flatten().collect();
        self.given_up.extend(closed.iter().filter_map(BoundAddress::endpoint));
        for address in self.all.iter().filter_map(BoundAddress::endpoint) {
            self.given_up.remove(&address);
        }
        // As a config reads.
        let order: HashMap<&str, usize> = snapshot
            .listeners
            .iter()
            .zip(0..)
            .map(|(one, place)| (one.config.name.as_str(), place))
            .collect();
        self.all.sort_by_key(|place| order.get(place.listener.as_str()).copied());
        (orders, closed)
    }
}

fn bind_tcp(
    address: SocketAddr,
    id: SocketId,
    listener: ListenerId,
    sockets: &mut [Vec<Socket>],
) -> io::Result<Opened> {
    let (_claim, address) = socket::claim(address)?;
    for of_worker in sockets {
        of_worker.push(Socket {
            id,
            listener,
            kind: SocketKind::Tcp(socket::listen(address)?),
            is_lent: false,
        });
    }
    Ok((Bound::Tcp(address), None))
}

/// Sockets for datagrams, of which the first keeps out everybody else, unless sockets of ours that are given up are in the way: those
/// for a single address take what comes there, beside others for all.
fn bind_udp(
    (address, beside): (SocketAddr, bool),
    id: SocketId,
    listener: ListenerId,
    sockets: &mut [Vec<Socket>],
) -> io::Result<Opened> {
    let (mut first, address) = if beside {
        (None, address)
    } else {
        let (first, bound) = socket::claim_datagrams(address)?;
        (Some(first), bound)
    };
    for of_worker in sockets {
        let socket = first.take().map_or_else(|| socket::join_datagrams(address), Ok)?;
        of_worker.push(Socket { id, listener, kind: SocketKind::Udp(socket, Vec::new()), is_lent: false });
    }
    Ok((Bound::Udp(address), None))
}

/// The same where sockets of ours that are given up are in the way: they do not listen yet.
fn reserve_tcp(
    address: SocketAddr,
    id: SocketId,
    listener: ListenerId,
    sockets: &mut [Vec<Socket>],
) -> io::Result<Opened> {
    for of_worker in sockets {
        of_worker.push(Socket {
            id,
            listener,
            kind: SocketKind::Tcp(socket::reserve(address)?),
            is_lent: false,
        });
    }
    Ok((Bound::Tcp(address), None))
}

fn bind_unix(
    path: &Path,
    id: SocketId,
    listener: ListenerId,
    sockets: &mut [Vec<Socket>],
) -> io::Result<Opened> {
    let socket = socket::listen_unix(path)?;
    let file = SocketFile::of(path)?;
    for of_worker in sockets {
        of_worker.push(Socket { id, listener, kind: SocketKind::Unix(socket.try_clone()?), is_lent: false });
    }
    Ok((Bound::Unix(path.to_owned()), Some(file)))
}
