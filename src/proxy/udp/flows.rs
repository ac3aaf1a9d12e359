//! The flows of one socket as a table: whose they are, when silence ends them, and which makes way for another. No socket and no clock.
//!
//! A flow is what one client's address and port send to one of our addresses, and what comes back. It stands in one of three lines:
//!
//! * **asked**: its client has sent once and has no answer. Anybody can forge such a sender: these make way first, the oldest before the
//!   others. One that is younger than [`FRESH`] may still be answered: before that goes, one that is over does.
//! * **open**: it was answered, or its client has sent more than once. It makes way when no other is asked, and has been silent for
//!   [`QUIET`]: what a server of DNS is asked is one question, and its answer is all there is. For a client that comes back to a flow which has
//!   made way, silence is not needed.
//! * **proven**: its client has sent something behind our first answer, so it is where it says. It makes way for nobody but a newcomer from the
//!   same address, and for that one only where it has been silent for [`REST`]: a resolver that asks from one port after the other comes back to
//!   those that it had, and stands in nobody's way but its own.
//!
//! Invariants:
//!
//! 1. Each flow is in `by_client` once, under its client, and in exactly one line.
//! 2. A line is in the order of its flows' `last`, the oldest at the head: a flow that something passes through goes to the end.
//! 3. A flow never goes back to a line before its own: what was proven stays so until it ends.
//! 4. What a client that is not proven gets is at most `factor` times what it has sent (one that sends nothing counts as one byte).

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use slab::Slab;

use crate::tick::Tick;

/// How long an open flow has been silent before it makes way.
pub const QUIET: Duration = Duration::from_millis(50);

/// Of a line, those that are looked at for one of a certain client.
const LOOKED_AT: usize = 16;

/// How long an answer may take before a question that nobody has answered makes way sooner than one that was.
pub const FRESH: Duration = Duration::from_millis(100);

/// How long a proven flow has been silent before it makes way for another one of its address.
pub const REST: Duration = Duration::from_millis(200);

/// Whose a flow is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FlowClient {
    /// Where the client sends from.
    pub address: SocketAddr,
    /// Which address of ours it sends to; `None`: there is but one.
    pub to: Option<IpAddr>,
}

/// How it stands with a flow, whoever serves it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowState {
    standing: FlowStanding,
    answered: bool,
    waits: bool,
    /// That its client has sent, and has had.
    bytes: (u64, u64),
    /// Datagrams, the same.
    counts: (u32, u32),
    /// When something passed through it last.
    last: u64,
}

impl FlowState {
    /// When something passed through it last.
    #[must_use]
    pub fn last(&self) -> Tick {
        Tick(self.last)
    }
}

/// How well a flow's client is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FlowStanding {
    /// It has sent once and has no answer.
    Asked,
    /// It was answered, or has sent more than once.
    Open,
    /// It has sent something behind our first answer.
    Proven,
}

/// What a place is when a line ends there.
const NOBODY: usize = usize::MAX;

/// A flow.
#[derive(Debug)]
struct FlowEntry<T> {
    client: FlowClient,
    standing: FlowStanding,
    /// Something has come back.
    answered: bool,
    /// Nothing has since its client has sent something.
    waits: bool,
    /// The same before the latest that its client has sent.
    waited: bool,
    sent: u64,
    received: u64,
    /// Datagrams that its client has sent, and has had.
    counts: (u32, u32),
    last: Tick,
    before: usize,
    behind: usize,
    value: T,
}

/// The ends of a line.
#[derive(Clone, Copy, Debug)]
struct FlowLine {
    head: usize,
    tail: usize,
}

/// The flows of one socket, each with a `T`.
#[derive(Debug)]
pub struct Flows<T> {
    by_client: HashMap<FlowClient, usize>,
    flows: Slab<FlowEntry<T>>,
    lines: [FlowLine; 3],
}

impl<T> Default for Flows<T> {
    fn default() -> Flows<T> {
        let nobody = FlowLine { head: NOBODY, tail: NOBODY };
        Flows { by_client: HashMap::new(), flows: Slab::new(), lines: [nobody; 3] }
    }
}

impl<T> Flows<T> {
    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.flows.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.flows.is_empty()
    }

    /// Where the flow of this client is; `None`: it has none.
    #[must_use]
    #[inline]
    pub fn find(&self, client: &FlowClient) -> Option<usize> {
        self.by_client.get(client).copied()
    }

    /// What stands at a place.
    #[must_use]
    #[inline]
    pub fn get(&self, place: usize) -> Option<&T> {
        self.flows.get(place).map(|flow| &flow.value)
    }

    /// The same, to be changed.
    #[inline]
    pub fn get_mut(&mut self, place: usize) -> Option<&mut T> {
        self.flows.get_mut(place).map(|flow| &mut flow.value)
    }

    /// Whose flow stands there.
    #[must_use]
    #[inline]
    pub fn client(&self, place: usize) -> Option<FlowClient> {
        self.flows.get(place).map(|flow| flow.client)
    }

    /// Whether something has come back to its client.
    #[must_use]
    pub fn is_answered(&self, place: usize) -> bool {
        self.flows.get(place).is_some_and(|flow| flow.answered)
    }

    /// All places, whose they are and what stands there.
    pub fn iter(&self) -> impl Iterator<Item = (usize, &FlowClient, &T)> {
        self.flows.iter().map(|(place, flow)| (place, &flow.client, &flow.value))
    }

    /// Begins the flow of a client that has none, for `bytes` that it has sent. `returns`: it had one that was answered and has made way.
    pub fn begin(&mut self, client: FlowClient, bytes: usize, returns: bool, now: Tick, value: T) -> usize {
        let standing = if returns { FlowStanding::Open } else { FlowStanding::Asked };
        let place = self.flows.insert(FlowEntry {
            client,
            standing,
            answered: false,
            waits: true,
            waited: false,
            sent: 0,
            received: 0,
            counts: (1, 0),
            last: now,
            before: NOBODY,
            behind: NOBODY,
            value,
        });
        let before = self.by_client.insert(client, place);
        debug_assert!(before.is_none(), "it has one");
        self.append(place);
        if let Some(flow) = self.flows.get_mut(place) {
            flow.sent = counted(bytes);
        }
        place
    }

    /// How it stands with the flow at a place, for another table.
    #[must_use]
    pub fn state(&self, place: usize) -> Option<FlowState> {
        let flow = self.flows.get(place)?;
        Some(FlowState {
            standing: flow.standing,
            answered: flow.answered,
            waits: flow.waits,
            bytes: (flow.sent, flow.received),
            counts: flow.counts,
            last: flow.last.0,
        })
    }

    /// Goes on with the flow of a client that has none here, from how it stood in another table. Called in the order in which something passed through them
    /// last, and before any other flow begins: so the lines stay in their order.
    pub fn go_on(&mut self, client: FlowClient, state: FlowState, value: T) -> usize {
        let place = self.begin(client, 0, false, Tick(state.last), value);
        self.take_out(place);
        if let Some(flow) = self.flows.get_mut(place) {
            (flow.standing, flow.answered, flow.waits) = (state.standing, state.answered, state.waits);
            ((flow.sent, flow.received), flow.counts) = (state.bytes, state.counts);
        }
        self.append(place);
        place
    }

    /// Its client has sent something again.
    #[inline]
    pub fn note_sent(&mut self, place: usize, bytes: usize, now: Tick) {
        let Some(flow) = self.flows.get_mut(place) else { return };
        flow.sent = flow.sent.saturating_add(counted(bytes));
        flow.waited = std::mem::replace(&mut flow.waits, true);
        flow.counts.0 = flow.counts.0.saturating_add(1);
        let standing = if flow.answered { FlowStanding::Proven } else { FlowStanding::Open };
        self.move_on(place, standing, now);
    }

    /// Something has come back for it: whether its client may have that. It is counted then.
    #[inline]
    pub fn may_receive(&mut self, place: usize, bytes: usize, factor: Option<u32>, now: Tick) -> bool {
        let Some(flow) = self.flows.get_mut(place) else { return false };
        let received = flow.received.saturating_add(bytes as u64);
        if let (Some(factor), true) = (factor, flow.standing != FlowStanding::Proven)
            && received > flow.sent.saturating_mul(factor.into())
        {
            return false;
        }
        flow.received = received;
        (flow.answered, flow.waits) = (true, false);
        flow.counts.1 = flow.counts.1.saturating_add(1);
        self.move_on(place, FlowStanding::Open, now);
        true
    }

    /// Whether its client has had so many answers to each of its datagrams.
    #[must_use]
    #[inline]
    pub fn is_complete(&self, place: usize, replies: u32) -> bool {
        let counts = self.flows.get(place).map(|flow| flow.counts);
        counts.is_some_and(|(sent, received)| received >= sent.saturating_mul(replies))
    }

    /// Puts a flow to the end of the line of this standing, or of its own if that is behind it.
    #[inline]
    fn move_on(&mut self, place: usize, standing: FlowStanding, now: Tick) {
        let Some(flow) = self.flows.get(place) else { return };
        let standing = if flow.standing as usize > standing as usize { flow.standing } else { standing };
        if flow.behind != NOBODY || flow.standing != standing {
            self.take_out(place);
            if let Some(flow) = self.flows.get_mut(place) {
                flow.standing = standing;
            }
            self.append(place);
        }
        if let Some(flow) = self.flows.get_mut(place) {
            flow.last = flow.last.max(now);
        }
    }

    /// A flow that has been silent for `timeout`.
    #[must_use]
    pub fn expired(&self, timeout: Duration, now: Tick) -> Option<usize> {
        let heads = self.lines.iter().map(|line| line.head);
        heads.filter(|head| *head != NOBODY).find(|head| self.silence(*head, now) >= timeout)
    }

    /// When the next one will have been; `None`: there is none.
    #[must_use]
    pub fn next_expiry(&self, timeout: Duration) -> Option<Tick> {
        let heads = self.lines.iter().filter_map(|line| self.flows.get(line.head));
        heads.map(|flow| flow.last.after(timeout)).min()
    }

    /// Which flow makes way for one of a client at `newcomer`; `None`: none does, and whoever comes is refused. `returns`: see [`Flows::begin`].
    #[must_use]
    pub fn makes_way(&self, newcomer: IpAddr, returns: bool, now: Tick) -> Option<usize> {
        self.gives(|_| true, returns, now).or_else(|| self.resting(newcomer, now))
    }

    /// The same among the flows of clients that are `meant`, for another one of them.
    #[must_use]
    pub fn makes_way_of(
        &self,
        meant: impl Fn(&FlowClient) -> bool,
        returns: bool,
        now: Tick,
    ) -> Option<usize> {
        let resting =
            || self.find_in(FlowStanding::Proven, &meant).filter(|one| self.silence(*one, now) >= REST);
        self.gives(&meant, returns, now).or_else(resting)
    }

    /// A flow that nobody may be behind, or that is over: it gives way to whoever has none in this process.
    #[must_use]
    pub fn makes_room(&self, now: Tick) -> Option<usize> {
        let overdue =
            self.find_in(FlowStanding::Asked, |_| true).filter(|one| self.silence(*one, now) >= FRESH);
        overdue.or_else(|| self.quiet(self.find_in(FlowStanding::Open, |_| true), false, now))
    }

    fn gives(&self, meant: impl Fn(&FlowClient) -> bool, returns: bool, now: Tick) -> Option<usize> {
        let asked = self.find_in(FlowStanding::Asked, &meant);
        let overdue = asked.filter(|asked| self.silence(*asked, now) >= FRESH);
        overdue.or_else(|| self.quiet(self.find_in(FlowStanding::Open, &meant), returns, now)).or(asked)
    }

    /// An open flow, if it has been silent for long enough.
    fn quiet(&self, open: Option<usize>, returns: bool, now: Tick) -> Option<usize> {
        open.filter(|open| returns || self.silence(*open, now) >= QUIET)
    }

    /// The oldest proven flow of a client, if it has been silent for long enough.
    fn resting(&self, client: IpAddr, now: Tick) -> Option<usize> {
        let own = self.find_in(FlowStanding::Proven, |flow| flow.address.ip() == client);
        own.filter(|proven| self.silence(*proven, now) >= REST)
    }

    /// The oldest flow of a line whose client is `meant`. Of many only the oldest are looked at.
    fn find_in(&self, standing: FlowStanding, meant: impl Fn(&FlowClient) -> bool) -> Option<usize> {
        let head = Some(self.lines[standing as usize].head).filter(|at| *at != NOBODY);
        let behind = |at: &usize| Some(self.flows.get(*at)?.behind).filter(|behind| *behind != NOBODY);
        let mut line = std::iter::successors(head, behind).take(LOOKED_AT);
        line.find(|at| self.flows.get(*at).is_some_and(|flow| meant(&flow.client)))
    }

    /// Whether its client has sent more than once, and nothing has ever come back.
    #[must_use]
    pub fn is_one_way(&self, place: usize) -> bool {
        self.flows.get(place).is_some_and(|flow| !flow.answered && flow.counts.0 > 1)
    }

    /// Whether it waited for an answer when its client sent the latest.
    #[must_use]
    pub fn waited(&self, place: usize) -> bool {
        self.flows.get(place).is_some_and(|flow| flow.waited)
    }

    /// How many bytes its client may still have before it is proven; `None`: any number.
    #[must_use]
    pub fn left(&self, place: usize, factor: Option<u32>) -> Option<u64> {
        let flow = self.flows.get(place).filter(|flow| flow.standing != FlowStanding::Proven)?;
        Some(flow.sent.saturating_mul(factor?.into()).saturating_sub(flow.received))
    }

    /// Whether its client has sent something that nothing has come back for.
    #[must_use]
    pub fn waits(&self, place: usize) -> bool {
        self.flows.get(place).is_some_and(|flow| flow.waits)
    }

    /// For how long nothing has passed through it.
    #[must_use]
    pub fn silence(&self, place: usize, now: Tick) -> Duration {
        self.flows.get(place).map_or(Duration::ZERO, |flow| now.since(flow.last))
    }

    /// Ends a flow: what stood there, and whether it was answered.
    pub fn end(&mut self, place: usize) -> Option<(FlowClient, T, bool)> {
        if !self.flows.contains(place) {
            return None;
        }
        self.take_out(place);
        let flow = self.flows.remove(place);
        if self.by_client.get(&flow.client) == Some(&place) {
            self.by_client.remove(&flow.client);
        }
        Some((flow.client, flow.value, flow.answered))
    }

    /// The place of any flow.
    #[must_use]
    pub fn any(&self) -> Option<usize> {
        self.flows.iter().next().map(|(place, _)| place)
    }

    fn append(&mut self, place: usize) {
        let Some(flow) = self.flows.get_mut(place) else { return };
        let line = &mut self.lines[flow.standing as usize];
        (flow.before, flow.behind) = (line.tail, NOBODY);
        let last = std::mem::replace(&mut line.tail, place);
        if last == NOBODY {
            line.head = place;
        } else if let Some(last) = self.flows.get_mut(last) {
            last.behind = place;
        }
    }

    fn take_out(&mut self, place: usize) {
        let Some(flow) = self.flows.get(place) else { return };
        let (before, behind, standing) = (flow.before, flow.behind, flow.standing as usize);
        match self.flows.get_mut(before) {
            Some(flow) => flow.behind = behind,
            None => self.lines[standing].head = behind,
        }
        match self.flows.get_mut(behind) {
            Some(flow) => flow.before = before,
            None => self.lines[standing].tail = before,
        }
    }
}

/// An empty datagram may be answered as well.
fn counted(bytes: usize) -> u64 {
    bytes.max(1) as u64
}

#[cfg(test)]
mod tests;
