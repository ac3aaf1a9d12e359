//! How flows begin, and how they come to another backend.

use std::net::{IpAddr, UdpSocket};
use std::sync::Arc;

use crate::message::{Blame, Cause, ClientAddress, Peer, Record, RecordKind};
use crate::proxy::Here;
use crate::proxy::udp::flows::FlowClient;
use crate::proxy::udp::leg::{self, Leg, LegDuty};
use crate::snapshot::CountedConnection;
use crate::targets::{Ask, Backend, Lease, Outcome, Pick, Target, Tried, hash_address};
use crate::tick::Tick;

use super::{DatagramRelay, FlowRow, StrangerDatagram, note_attempt};

/// What becomes of somebody's first datagram.
pub enum FlowBegun {
    /// There is a flow now.
    Flow,
    /// There is none: what is to be recorded of that, and of whom.
    Refused(StrangerDatagram, Box<Record>, Cause),
    /// It may be tried again. The cause is what is told if it never comes to a flow: no backend has a verdict, or each has as many as it
    /// may have.
    Later(StrangerDatagram, CountedConnection, Cause),
}

impl DatagramRelay {
    /// Where a client was whose flow has made way, if that is a place to go to.
    pub fn returning(&mut self, client: &FlowClient, target: &Target) -> Option<Arc<Backend>> {
        let backend = self.returning.take(client)?;
        target.backends.iter().find(|one| one.id == backend && one.holds()).map(Arc::clone)
    }

    /// What is known of a client before it has a flow.
    pub fn record_of(&self, stranger: &StrangerDatagram, here: &Here) -> Record {
        let address = stranger.client.address;
        let peer = Peer {
            client: Some(ClientAddress::new(address.ip(), address.port())),
            listener: here.id,
            accepted: stranger.came,
            ..Peer::default()
        };
        let route = here.bytes_route().map(|route| route.id);
        Record { kind: RecordKind::Udp, id: self.ctx.request_id(), route, ..peer.record() }
    }

    /// Begins a flow. `pin`: where its client was before.
    pub fn begin(
        &mut self,
        stranger: StrangerDatagram,
        counted: CountedConnection,
        pin: Option<&Arc<Backend>>,
        here: &Here,
        now: Tick,
    ) -> FlowBegun {
        let mut record = self.record_of(&stranger, here);
        let Some(way) = here.bytes_route().and_then(|route| route.destinations.first()) else {
            return FlowBegun::Refused(stranger, Box::new(record), Cause::NoBackend);
        };
        let target = Arc::clone(&way.target);
        (record.route, record.target, record.routed) = (Some(way.id), Some(target.id), now);
        let newcomer = (stranger.client.address.ip(), pin.is_some());
        let mut tried = Tried::new();
        let mut has_made_way = false;
        let opened = loop {
            let lease = match self.pick(&target, &stranger.client, &tried, pin, now) {
                Pick::Lease(lease) => lease,
                Pick::None(cause) => break Err(cause),
                Pick::Unknown | Pick::Full if !tried.is_empty() => break Err(Cause::NoBackend),
                Pick::Unknown => return FlowBegun::Later(stranger, counted, Cause::NoVerdict),
                // A place that nobody may be at is given to somebody who is there.
                Pick::Full if !has_made_way && self.give_room(here, now) => {
                    has_made_way = true;
                    continue;
                }
                Pick::Full => return FlowBegun::Later(stranger, counted, Cause::QueueTimeout),
            };
            note_attempt(&mut record, &lease, now);
            match self.open(&lease, newcomer, here, now) {
                Ok(socket) => break Ok((lease, socket)),
                Err(cause) => {
                    if let Some(attempt) = record.last_attempt() {
                        (attempt.outcome, attempt.end) = (cause, now);
                    }
                    tried.insert(lease.backend().id);
                    let theirs = cause.blame() == Blame::Backend;
                    lease.finish(if theirs { Outcome::ConnectFailed } else { Outcome::Neutral }, now);
                    if !theirs {
                        break Err(cause);
                    }
                }
            }
        };
        let kept = opened.and_then(|(lease, (socket, number))| {
            self.legs.keep(socket, number, LegDuty::Serves { flow: usize::MAX, lease }, now)
        });
        match kept {
            Ok(leg) => {
                let row = FlowRow { leg, record, _counted: counted };
                let flow = self.flows.begin(stranger.client, stranger.bytes.len(), pin.is_some(), now, row);
                if let Some(Leg { duty: LegDuty::Serves { flow: of, .. }, .. }) = self.legs.get_mut(leg) {
                    *of = flow;
                }
                self.ctx.cells.connections.accepted.increment();
                self.ctx.cells.connections.open.raise();
                self.pass(flow, &stranger.row(), here, now, true);
                FlowBegun::Flow
            }
            Err(cause) => {
                self.ctx.cells.refusals.refuse(target.id, cause);
                FlowBegun::Refused(stranger, Box::new(record), cause)
            }
        }
    }

    pub(super) fn pick(
        &self,
        target: &Target,
        client: &FlowClient,
        tried: &Tried,
        pin: Option<&Arc<Backend>>,
        now: Tick,
    ) -> Pick {
        let is_hash = target.config.balance.algorithm.is_hash();
        let key = is_hash.then(|| hash_address(client.address.ip()));
        target.pick(&Ask { key, pin, ..Ask::new(tried, &self.ctx.chance, now) })
    }

    /// Opens a socket to a backend, and says to which of its addresses. Where something of ours is short, a flow makes way for it.
    fn open(
        &mut self,
        lease: &Lease,
        newcomer: (IpAddr, bool),
        here: &Here,
        now: Tick,
    ) -> Result<(UdpSocket, usize), Cause> {
        let backend = lease.backend();
        let first = self.addresses.get(&backend.id).copied().unwrap_or_default();
        match leg::open(backend, first) {
            Err(cause @ (Cause::LocalShortage | Cause::NoLocalPort)) => {
                if cause == Cause::LocalShortage {
                    self.ctx.spare_descriptors();
                }
                if self.make_way(newcomer, here, now) { leg::open(backend, first) } else { Err(cause) }
            }
            opened => opened,
        }
    }

    /// Gives a flow another leg; the one that it had is nobody's then. Only a backend that is a place to stay will do, or one of which it is to be
    /// found out: otherwise a flow would go to and fro between those that are none.
    pub(super) fn go_to_another(&mut self, flow: usize, tried: &Tried, here: &Here, now: Tick) -> bool {
        let way = here.bytes_route().and_then(|route| route.destinations.first());
        let (Some(way), Some(client)) = (way, self.flows.client(flow)) else { return false };
        let target = Arc::clone(&way.target);
        let Pick::Lease(lease) = self.pick(&target, &client, tried, None, now) else { return false };
        let is_place = lease.backend().holds() || lease.is_trial();
        if tried.contains(lease.backend().id) || !is_place {
            lease.finish(Outcome::Neutral, now);
            return false;
        }
        let Ok((socket, number)) = self.open(&lease, (client.address.ip(), true), here, now) else {
            lease.finish(Outcome::Neutral, now);
            return false;
        };
        // Another one may have made way, and be the very one.
        let Some(row) = self.flows.get_mut(flow) else { return false };
        let Ok(place) = self.legs.keep(socket, number, LegDuty::Serves { flow, lease }, now) else {
            return false;
        };
        row.leg = place;
        if let Some(lease) = self.legs.get(place).and_then(Leg::lease) {
            note_attempt(&mut row.record, lease, now);
        }
        true
    }

    /// Goes to another address of the same backend, if it has one that was not tried for this flow. None: nothing is left to do, the flow is there,
    /// or has ended because something of ours is short.
    pub(super) fn go_to_next_address(
        &mut self,
        flow: usize,
        (lease, number): (Lease, usize),
        now: Tick,
    ) -> Option<Lease> {
        let count = lease.backend().endpoints().len();
        let next = number + 1;
        let is_new = self.addresses.get(&lease.backend().id).copied().unwrap_or_default() <= number;
        if next >= count {
            // From the first again, whoever comes next.
            self.addresses.remove(&lease.backend().id);
            return Some(lease);
        }
        if is_new {
            self.addresses.insert(lease.backend().id, next);
        }
        let Ok((socket, number)) = leg::open(lease.backend(), next) else { return Some(lease) };
        let Some(row) = self.flows.get_mut(flow) else { return Some(lease) };
        match self.legs.keep(socket, number, LegDuty::Serves { flow, lease }, now) {
            Ok(place) => row.leg = place,
            Err(cause) => self.end(flow, cause, now),
        }
        None
    }
}
