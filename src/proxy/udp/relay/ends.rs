//! How flows end, make way, and leave backends.

use std::net::IpAddr;
use std::time::Duration;

use crate::access::{NetworkVerdict, Networks};
use crate::config::model::Timeouts;
use crate::message::Cause;
use crate::proxy::Here;
use crate::proxy::recording::Recording;
use crate::proxy::udp::flows::FlowClient;
use crate::proxy::udp::leg::{LastWord, Leg, LegDuty};
use crate::snapshot::owner;
use crate::targets::{Outcome, Tried};
use crate::tick::Tick;

use super::{DatagramRelay, FlowRow};

/// Who a flow is counted for where clients have limits.
fn owner_of(flow: &FlowClient) -> IpAddr {
    owner(flow.address.ip())
}

/// How long a leg without a flow passes on what still comes back, and how long where an answer is waited for.
const LINGER: Duration = Duration::from_secs(2);
const LINGER_FOR_ANSWER: Duration = Duration::from_secs(10);
/// Flows that silence ends in one turn.
const SWEPT: usize = 256;
/// An answer of several datagrams is complete when nothing has come for so long.
const COMPLETE: Duration = Duration::from_millis(200);

impl DatagramRelay {
    /// Ends a flow so that one of a client at this address may begin (`true`: it comes back). False: none makes way.
    pub fn make_way(&mut self, (newcomer, returns): (IpAddr, bool), here: &Here, now: Tick) -> bool {
        let place = self.flows.makes_way(newcomer, returns, now);
        place.is_some_and(|place| self.give_way(place, here, now))
    }

    /// The same among the flows of a client that has as many as it may have.
    pub fn make_way_of(&mut self, (client, returns): (IpAddr, bool), here: &Here, now: Tick) -> bool {
        let owner = owner(client);
        let place = self.flows.makes_way_of(|flow| owner_of(flow) == owner, returns, now);
        place.is_some_and(|place| self.give_way(place, here, now))
    }

    /// Ends a flow that nobody may be behind, so that somebody elsewhere in this process has room. False: there is none.
    pub fn give_room(&mut self, here: &Here, now: Tick) -> bool {
        let place = self.flows.makes_room(now);
        place.is_some_and(|place| self.give_way(place, here, now))
    }

    fn give_way(&mut self, place: usize, here: &Here, now: Tick) -> bool {
        self.ctx.cells.datagrams.of(here.id).evict();
        let backend = self.flows.get(place).and_then(|row| self.legs.get(row.leg)?.lease());
        let backend = backend.map(|lease| lease.backend().id);
        if let (true, Some(client), Some(backend)) =
            (self.flows.is_answered(place), self.flows.client(place), backend)
        {
            self.returning.remember(client, backend);
            self.end(place, Cause::Done, now);
        } else {
            // Whoever forges thousands of senders does not fill a log with them.
            drop(self.take(place, now));
        }
        true
    }

    /// The backend of a leg can't be reached: that counts against it, and the leg's flow goes elsewhere at once, if there is anybody else.
    pub(super) fn give_up(&mut self, place: usize, here: &Here, now: Tick) {
        let Some(leg) = self.legs.remove(place) else { return };
        let number = leg.number_of_address;
        let LegDuty::Serves { flow, lease } = leg.duty else { return };
        let Some(lease) = self.go_to_next_address(flow, (lease, number), now) else { return };
        let mut tried = Tried::new();
        tried.insert(lease.backend().id);
        if let Some(attempt) = self.flows.get_mut(flow).and_then(|row| row.record.last_attempt()) {
            (attempt.outcome, attempt.end) = (Cause::ConnectFailed, now);
        }
        lease.finish(Outcome::ConnectFailed, now);
        if !self.go_to_another(flow, &tried, here, now) {
            self.end(flow, Cause::ConnectFailed, now);
        }
    }

    /// A flow's backend is no place to stay: it goes to another one if there is any. What still comes back from there is passed on for a while.
    pub(super) fn move_away(&mut self, flow: usize, here: &Here, now: Tick) {
        let Some(place) = self.flows.get(flow).map(|row| row.leg) else { return };
        let mut tried = Tried::new();
        if let Some(lease) = self.legs.get(place).and_then(Leg::lease) {
            tried.insert(lease.backend().id);
        }
        // Of the datagram that is to be passed on now nothing can have come back.
        let waits = self.flows.waited(flow);
        if self.go_to_another(flow, &tried, here, now) {
            self.let_linger(place, flow, waits, here, now);
        }
    }

    /// Lets go of a leg that a flow has left, but for what still comes back.
    fn let_linger(&mut self, place: usize, flow: usize, waits: bool, here: &Here, now: Tick) {
        let (Some(token), Some(client)) = (self.legs.token(place), self.flows.client(flow)) else { return };
        let left = self.flows.left(flow, here.config.limits.reply_factor);
        let Some(leg) = self.legs.get_mut(place) else { return };
        let outcome = if leg.is_answered { Outcome::Success } else { Outcome::Neutral };
        let duty = LegDuty::Lingers { client, left };
        if let LegDuty::Serves { lease, .. } = std::mem::replace(&mut leg.duty, duty) {
            lease.finish(outcome, now);
        }
        let due = now.after(if waits { LINGER_FOR_ANSWER } else { LINGER });
        self.lingering.push_back(LastWord { due, leg: token });
    }

    /// Ends a flow and records it.
    pub(super) fn end(&mut self, place: usize, cause: Cause, now: Tick) {
        let Some(mut row) = self.take(place, now) else { return };
        if let Some(attempt) = row.record.last_attempt() {
            attempt.end = now;
        }
        row.record.done = now;
        Recording::new(&self.ctx, None, &mut row.record).settle(cause);
    }

    fn take(&mut self, place: usize, now: Tick) -> Option<FlowRow> {
        let (_, row, is_answered) = self.flows.end(place)?;
        self.ctx.cells.connections.open.lower();
        if let Some(Leg { duty: LegDuty::Serves { lease, .. }, .. }) = self.legs.remove(row.leg) {
            lease.finish(if is_answered { Outcome::Success } else { Outcome::Neutral }, now);
        }
        Some(row)
    }

    /// Ends what silence has ended, and gives the moment of the next.
    pub fn sweep(&mut self, here: &Here, now: Tick) -> Tick {
        let way = here.bytes_route().and_then(|route| route.destinations.first());
        let timeout = way.map_or_else(|| Timeouts::default().flow, |way| way.target.config.timeouts.flow);
        for _ in 0..SWEPT {
            let Some(place) = self.flows.expired(timeout, now) else { break };
            self.end(place, Cause::Done, now);
        }
        let legs = &mut self.legs;
        self.lingering.retain(|word| {
            let is_over = word.due <= now;
            if is_over && legs.told(word.leg).is_some_and(|leg| leg.lease().is_none()) {
                legs.remove(word.leg.place);
            }
            !is_over
        });
        let words = self.lingering.iter().map(|word| word.due).min().unwrap_or(Tick::NEVER);
        self.flows.next_expiry(timeout).unwrap_or(Tick::NEVER).min(words)
    }

    /// Ends flows whose backends are to have nobody before long, that wait for nothing and have been silent for a moment. The others go at their next
    /// datagram.
    pub fn leave(&mut self, now: Tick) {
        let leaves = |row: &FlowRow| {
            let lease = self.legs.get(row.leg).and_then(Leg::lease);
            lease.is_some_and(|lease| lease.backend().is_leaving())
        };
        let is_over = |place: usize| !self.flows.waits(place) && self.flows.silence(place, now) >= LINGER;
        let all = self.flows.iter().filter(|(place, _, row)| leaves(row) && is_over(*place));
        let those: Vec<usize> = all.map(|(place, ..)| place).collect();
        those.iter().for_each(|place| self.end(*place, Cause::Drained, now));
    }

    /// Ends the flows of clients in `networks`; says how many.
    pub fn cut(&mut self, networks: &Networks, now: Tick) -> usize {
        let is_in = |client: &FlowClient| networks.verdict(client.address.ip()) == Some(NetworkVerdict::Deny);
        let all = self.flows.iter().filter(|(_, client, _)| is_in(client));
        let those: Vec<usize> = all.map(|(place, ..)| place).collect();
        those.iter().for_each(|place| self.end(*place, Cause::Blocked, now));
        those.len()
    }

    /// Ends flows that wait for nothing, and through which nothing passes any more. Where nothing has ever come back nothing is waited for: what goes
    /// one way has no answers.
    pub fn finish(&mut self, cause: Cause, now: Tick) {
        let is_over = |place: usize| {
            let silence = self.flows.silence(place, now);
            let is_complete = !self.flows.waits(place) && silence >= COMPLETE;
            is_complete || self.flows.is_one_way(place) || silence >= LINGER
        };
        let those: Vec<usize> =
            self.flows.iter().map(|(place, ..)| place).filter(|place| is_over(*place)).collect();
        those.iter().for_each(|place| self.end(*place, cause, now));
    }

    /// Ends all that are left.
    pub fn finish_all(&mut self, cause: Cause, now: Tick) {
        while let Some(place) = self.flows.any() {
            self.end(place, cause, now);
        }
    }
}
