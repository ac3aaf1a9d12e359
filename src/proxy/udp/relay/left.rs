//! Flows that go from one process to the one that comes into its place, with their sockets to backends.
//!
//! For a while both serve them: each datagram, of a client or of a backend, is read by one of the two, and both know where it goes.

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::OwnedFd;

use serde::{Deserialize, Serialize};

use crate::message::Cause;
use crate::proxy::Here;
use crate::proxy::udp::flows::{FlowClient, FlowState};
use crate::proxy::udp::leg::{Leg, LegDuty, LegState};
use crate::snapshot::CountedConnection;
use crate::targets::{Outcome, Pick, Tried};
use crate::tick::Tick;

use super::{DatagramRelay, FlowRow, StrangerDatagram, note_attempt};

/// What is told of a flow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct ToldFlow {
    client: SocketAddr,
    /// Which address of ours it sends to, where there are several.
    to: Option<IpAddr>,
    /// The name of its backend.
    backend: String,
    /// To which of that one's addresses its leg leads.
    number_of_address: usize,
    flow: FlowState,
    leg: LegState,
}

/// A flow that another process has served, and its leg.
#[derive(Debug)]
pub struct LeftFlow {
    told: ToldFlow,
    socket: UdpSocket,
}

impl LeftFlow {
    /// One of which this is told, with its leg; `None`: nobody understands it.
    #[must_use]
    pub fn of(told: serde_json::Value, leg: OwnedFd) -> Option<LeftFlow> {
        Some(LeftFlow { told: serde_json::from_value(told).ok()?, socket: leg.into() })
    }

    /// What is told of it, and its leg.
    #[must_use]
    pub fn into_parts(self) -> (serde_json::Value, OwnedFd) {
        (serde_json::to_value(self.told).unwrap_or_default(), self.socket.into())
    }

    /// When something passed through it last.
    #[must_use]
    pub fn last(&self) -> Tick {
        self.told.flow.last()
    }

    /// Where its client sends from.
    #[must_use]
    pub fn client(&self) -> SocketAddr {
        self.told.client
    }
}

impl DatagramRelay {
    /// All flows, for another process. This one goes on with them. One for whose leg there is no descriptor any more is left out.
    pub fn leave_flows(&mut self) -> Vec<LeftFlow> {
        let mut left = Vec::new();
        for (place, client, row) in self.flows.iter() {
            let Some((leg, state)) = self.legs.get_mut(row.leg).zip(self.flows.state(place)) else {
                continue;
            };
            let Some(backend) = leg.lease().map(|lease| lease.backend().name.to_string()) else { continue };
            let number_of_address = leg.number_of_address;
            let Ok((socket, leg)) = leg.share() else { continue };
            let (client, to) = (client.address, client.to);
            let told = ToldFlow { client, to, backend, number_of_address, flow: state, leg };
            left.push(LeftFlow { told, socket: socket.into() });
        }
        left
    }

    /// Goes on with a flow of another process. It begins anew, with its next datagram, where its backend is no place to stay.
    ///
    /// # Errors
    /// Why it can't go on.
    pub fn take_flow(
        &mut self,
        left: LeftFlow,
        counted: CountedConnection,
        here: &Here,
        now: Tick,
    ) -> Result<(), Cause> {
        let LeftFlow { told, socket } = left;
        let client = FlowClient { address: told.client, to: told.to };
        let way = here.bytes_route().and_then(|route| route.destinations.first()).ok_or(Cause::NoBackend)?;
        let own = way.target.backends.iter().find(|one| *one.name == told.backend && one.holds());
        let own = own.ok_or(Cause::NoBackend)?;
        if self.flows.find(&client).is_some() {
            return Err(Cause::NoBackend);
        }
        let Pick::Lease(lease) = self.pick(&way.target, &client, &Tried::new(), Some(own), now) else {
            return Err(Cause::NoBackend);
        };
        if lease.backend().id != own.id {
            lease.finish(Outcome::Neutral, now);
            return Err(Cause::NoBackend);
        }
        let stranger = StrangerDatagram { client, bytes: Vec::new(), came: now };
        let mut record = self.record_of(&stranger, here);
        (record.route, record.target, record.routed) = (Some(way.id), Some(way.target.id), now);
        note_attempt(&mut record, &lease, now);
        let duty = LegDuty::Serves { flow: usize::MAX, lease };
        let leg = self.legs.keep(socket, told.number_of_address, duty, now)?;
        let flow = self.flows.go_on(client, told.flow, FlowRow { leg, record, _counted: counted });
        if let Some(Leg { duty: LegDuty::Serves { flow: of, .. }, .. }) = self.legs.get_mut(leg) {
            *of = flow;
        }
        if let Some(leg) = self.legs.get_mut(leg) {
            leg.go_on(told.leg);
        }
        // The process that it began in has counted it.
        self.ctx.cells.connections.open.raise();
        Ok(())
    }

    /// Another process serves the flows that it was given: they are over here, and what has come for them and was not read is read there.
    pub fn leave_shared(&mut self, now: Tick) {
        let is_shared = |row: &FlowRow| self.legs.get(row.leg).is_some_and(Leg::is_shared);
        let all = self.flows.iter().filter(|(_, _, row)| is_shared(row));
        let those: Vec<usize> = all.map(|(place, ..)| place).collect();
        those.iter().for_each(|place| self.end(*place, Cause::Done, now));
    }
}
