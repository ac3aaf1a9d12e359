//! One socket of clients, its flows, and their sockets to backends: datagrams go in both directions, each whole.
//!
//! Flows that are there go before flows that are new: what is read is passed on at once where there is a flow, and waits in a bounded queue where
//! there is none. So a storm of strangers costs those who are there no more than the reading of it.
//!
//! Invariants, beside those of [`flows`](super::flows) and [`leg`](super::leg):
//!
//! 1. The leg of a flow serves that flow, and a leg that serves a flow is its leg.
//! 2. A client has one flow at most: whoever begins one has looked.
//! 3. What is read of a leg is read until there is no more, or the leg is told of again: see [`Legs::poll_told`].

mod begin;
mod ends;
mod left;

use std::collections::{HashMap, VecDeque};
use std::io;
use std::net::UdpSocket;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use crate::message::{BackendId, Cause, PickNote, Record};
use crate::proxy::{Here, WorkerCtx};
use crate::snapshot::CountedConnection;
use crate::targets::{Heard, Lease};
use crate::telemetry::cells::DatagramDrop;
use crate::tick::Tick;

use super::flows::{FlowClient, Flows};
use super::front::{BATCH, DatagramRow, DatagramSpace, Front};
use super::leg::{LastWord, Leg, LegDuty, LegToken, Legs, SendFailure};
use super::returning::ReturningClients;

pub use begin::FlowBegun;
pub use left::LeftFlow;

/// Strangers whose datagrams wait, in bytes and in number; those who come back have as much room to themselves.
const WAITING: (usize, usize) = (256 << 10, 1024);
/// Rounds of reading from clients in one turn.
const ROUNDS: usize = 4;
/// Rows that are read of one leg at once, and how often.
const LEG_BATCH: usize = 4;
const LEG_ROUNDS: usize = 8;
/// After so long without a word from the kernel somebody is there: it would have said so.
const NOBODY_SAYS: Duration = Duration::from_secs(1);

/// A datagram of a client that has no flow.
#[derive(Debug)]
pub struct StrangerDatagram {
    /// Who.
    pub client: FlowClient,
    /// What it has sent.
    pub bytes: Vec<u8>,
    /// When it came.
    pub came: Tick,
}

impl StrangerDatagram {
    fn row(&self) -> DatagramRow<'_> {
        let FlowClient { address, to } = self.client;
        DatagramRow { from: address, to, bytes: &self.bytes, length: self.bytes.len() }
    }
}

/// Strangers in the order in which they came.
#[derive(Debug, Default)]
struct StrangerQueue {
    all: VecDeque<StrangerDatagram>,
    bytes: usize,
}

impl StrangerQueue {
    /// Whether there was room.
    fn push(&mut self, stranger: StrangerDatagram) -> bool {
        let has_room = self.bytes + stranger.bytes.len() <= WAITING.0 && self.all.len() < WAITING.1;
        if has_room {
            self.bytes += stranger.bytes.len();
            self.all.push_back(stranger);
        }
        has_room
    }

    fn pop(&mut self) -> Option<StrangerDatagram> {
        let stranger = self.all.pop_front()?;
        self.bytes -= stranger.bytes.len();
        Some(stranger)
    }
}

/// What stands in the table for a flow.
struct FlowRow {
    leg: usize,
    record: Record,
    _counted: CountedConnection,
}

/// What is done with datagrams of one address on one worker.
pub struct DatagramRelay {
    ctx: Rc<WorkerCtx>,
    front: Front,
    flows: Flows<FlowRow>,
    legs: Legs,
    lingering: VecDeque<LastWord>,
    strangers: StrangerQueue,
    /// Those of them who come back.
    returners: StrangerQueue,
    returning: ReturningClients,
    /// Which of its addresses a backend was last heard to be at, where the first is not.
    addresses: HashMap<BackendId, usize>,
    told: Vec<(LegToken, bool)>,
}

impl DatagramRelay {
    /// One of a bound socket.
    ///
    /// # Errors
    /// What the system reports.
    pub fn new(ctx: Rc<WorkerCtx>, socket: UdpSocket) -> io::Result<DatagramRelay> {
        Ok(DatagramRelay {
            ctx,
            front: Front::new(socket)?,
            flows: Flows::default(),
            legs: Legs::default(),
            lingering: VecDeque::new(),
            strangers: StrangerQueue::default(),
            returners: StrangerQueue::default(),
            returning: ReturningClients::default(),
            addresses: HashMap::new(),
            told: Vec::new(),
        })
    }

    /// Whether anything is under way.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.flows.is_empty() && !self.has_strangers()
    }

    /// Whether there is nothing to look after either.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.is_idle() && self.legs.is_empty()
    }

    /// Passes on what backends have sent. Ready: there may be more.
    pub fn poll_replies(
        &mut self,
        cx: &mut Context<'_>,
        here: &Here,
        space: &mut DatagramSpace,
        now: Tick,
    ) -> Poll<io::Result<()>> {
        let mut told = std::mem::take(&mut self.told);
        let polled = self.legs.poll_told(cx, &mut told);
        if let Poll::Ready(Ok(())) = polled {
            for &(token, is_error) in &told {
                self.read_leg(token, is_error, here, space, now);
            }
        }
        self.told = told;
        polled
    }

    fn read_leg(
        &mut self,
        token: LegToken,
        mut is_error: bool,
        here: &Here,
        space: &mut DatagramSpace,
        now: Tick,
    ) {
        // What came before an error is passed on before anything is concluded from it.
        let mut is_drained = false;
        for _ in 0..LEG_ROUNDS {
            let Some(leg) = self.legs.told(token) else { return };
            if !leg.joins() && !is_error {
                match space.read_one(leg.socket()) {
                    Ok(()) => self.reply(token.place, &space.row(0), here, now),
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => is_drained = true,
                    Err(_) => is_error = true,
                }
                if !is_error {
                    // If there are more it is told of again.
                    break;
                }
                continue;
            }
            match space.read(self.front.kernel(), leg.socket(), LEG_BATCH) {
                Ok(count) => {
                    for number in 0..count {
                        self.reply(token.place, &space.row(number), here, now);
                    }
                    is_drained = count < LEG_BATCH;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => is_drained = true,
                // It is told once, and stands before what there is to read.
                Err(_) => is_error = true,
            }
            if is_drained {
                break;
            }
        }
        if !is_drained {
            self.legs.leave_rest();
        }
        if is_error && self.legs.told(token).is_some_and(|leg| leg.is_refused(self.front.kernel())) {
            self.give_up(token.place, here, now);
        }
    }

    /// Passes on what has come back on a leg.
    fn reply(&mut self, place: usize, row: &DatagramRow<'_>, here: &Here, now: Tick) {
        let Some(leg) = self.legs.get_mut(place) else { return };
        let cells = self.ctx.cells.datagrams.of(here.id);
        let count = row.count() as u64;
        let mut over = None;
        let (client, may) = match &mut leg.duty {
            LegDuty::Lingers { client, left } => {
                let may = left.is_none_or(|left| row.bytes.len() as u64 <= left);
                if may && let Some(left) = left {
                    *left -= row.bytes.len() as u64;
                }
                (*client, may)
            }
            LegDuty::Serves { flow, lease } => {
                let flow = *flow;
                if !leg.is_answered {
                    lease.note_connected();
                    lease.note_answer(Heard::GOOD, now);
                    if let Some(attempt) = self.flows.get_mut(flow).and_then(|row| row.record.last_attempt())
                    {
                        attempt.first_byte = now;
                    }
                }
                leg.note_answered();
                let may = self.flows.may_receive(flow, row.bytes.len(), here.config.limits.reply_factor, now);
                let Some(client) = self.flows.client(flow) else { return };
                let replies = here.config.limits.replies;
                over = replies.filter(|replies| self.flows.is_complete(flow, *replies)).map(|_| flow);
                (client, may)
            }
        };
        if !may {
            return cells.drop(DatagramDrop::ReplyFactor, count);
        }
        if let Some(flow) = self.flows.find(&client).and_then(|flow| self.flows.get_mut(flow)) {
            flow.record.bytes_out += row.bytes.len() as u64;
        }
        match self.front.send(&client, row) {
            Ok(()) => cells.send(count),
            Err(_) => cells.drop(DatagramDrop::Unsent, count),
        }
        if let Some(flow) = over {
            self.end(flow, Cause::Done, now);
        }
    }

    /// Another descriptor of the socket that clients send to.
    ///
    /// # Errors
    /// What the system reports.
    pub fn copy_of_front(&self) -> io::Result<OwnedFd> {
        self.front.copy()
    }

    /// Reads what clients have sent, and passes on what belongs to a flow. Ready: there may be more.
    pub fn poll_requests(
        &mut self,
        cx: &mut Context<'_>,
        here: &Here,
        space: &mut DatagramSpace,
        now: Tick,
    ) -> Poll<io::Result<()>> {
        for _ in 0..ROUNDS {
            let count = std::task::ready!(self.front.poll_read(cx, space))?;
            for number in 0..count {
                let row = space.row(number);
                let client = self.front.client(&row);
                self.ctx.cells.datagrams.of(here.id).receive(row.count() as u64);
                match self.flows.find(&client) {
                    Some(flow) => self.request(flow, &row, here, now),
                    None => self.note_stranger(client, &row, here, now),
                }
            }
            if count < BATCH {
                return Poll::Ready(Ok(()));
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Passes on what the client of a flow has sent.
    fn request(&mut self, flow: usize, row: &DatagramRow<'_>, here: &Here, now: Tick) {
        self.flows.note_sent(flow, row.bytes.len(), now);
        let Some(leg) = self.flows.get(flow).map(|row| row.leg) else { return };
        let is_held = |leg: &Leg| leg.lease().is_some_and(|lease| lease.backend().holds());
        if !self.legs.get(leg).is_some_and(is_held) {
            self.move_away(flow, here, now);
        }
        self.pass(flow, row, here, now, true);
    }

    /// Sends it; where the backend can't be reached, to another one (`again`).
    fn pass(&mut self, flow: usize, row: &DatagramRow<'_>, here: &Here, now: Tick, again: bool) {
        let cells = self.ctx.cells.datagrams.of(here.id);
        let count = row.count() as u64;
        let Some(flow_row) = self.flows.get_mut(flow) else {
            return cells.drop(DatagramDrop::NoBackend, count);
        };
        let Some(leg) = self.legs.get_mut(flow_row.leg) else {
            return cells.drop(DatagramDrop::NoBackend, count);
        };
        match leg.send(row, self.front.kernel()) {
            Ok(()) => {
                flow_row.record.bytes_in += row.bytes.len() as u64;
                if leg.is_alone_with(now, NOBODY_SAYS)
                    && let Some(lease) = leg.lease()
                {
                    lease.note_connected();
                }
                cells.pass(count);
            }
            Err(SendFailure::Unreachable(_)) => {
                let place = flow_row.leg;
                self.give_up(place, here, now);
                if again {
                    return self.pass(flow, row, here, now, false);
                }
                self.ctx.cells.datagrams.of(here.id).drop(DatagramDrop::NoBackend, count);
            }
            Err(SendFailure::TooLong) => cells.drop(DatagramDrop::TooLong, count),
            Err(SendFailure::Unsent) => cells.drop(DatagramDrop::Unsent, count),
        }
    }

    fn note_stranger(&mut self, client: FlowClient, row: &DatagramRow<'_>, here: &Here, now: Tick) {
        let returns = self.returning.knows(&client);
        let queue = if returns { &mut self.returners } else { &mut self.strangers };
        let whole = [row.bytes];
        let (pieces, length) = if row.count() > 1 { (&[][..], row.length) } else { (&whole[..], 1) };
        let cut = if row.count() > 1 { row.bytes } else { &[] };
        for bytes in pieces.iter().copied().chain(cut.chunks(length)) {
            if !queue.push(StrangerDatagram { client, bytes: bytes.to_vec(), came: now }) {
                self.ctx.cells.datagrams.of(here.id).drop(DatagramDrop::Crowded, 1);
            }
        }
    }

    /// The next one who has no flow; if he has one by now, it was passed on.
    pub fn next_stranger(&mut self, here: &Here, now: Tick) -> Option<StrangerDatagram> {
        loop {
            let stranger = self.returners.pop().or_else(|| self.strangers.pop())?;
            match self.pass_if_known(stranger, here, now) {
                None => {}
                stranger => return stranger,
            }
        }
    }

    /// Passes on what somebody has sent if he has a flow; gives him back if he has none.
    pub fn pass_if_known(
        &mut self,
        stranger: StrangerDatagram,
        here: &Here,
        now: Tick,
    ) -> Option<StrangerDatagram> {
        let Some(flow) = self.flows.find(&stranger.client) else { return Some(stranger) };
        self.request(flow, &stranger.row(), here, now);
        None
    }

    /// Whether somebody waits who has no flow.
    #[must_use]
    pub fn has_strangers(&self) -> bool {
        !self.strangers.all.is_empty() || !self.returners.all.is_empty()
    }
}

impl Drop for DatagramRelay {
    /// Each flow that is left leaves its record.
    fn drop(&mut self) {
        let now = crate::net::now();
        while let Some(place) = self.flows.any() {
            self.end(place, Cause::Shutdown, now);
        }
    }
}

fn note_attempt(record: &mut Record, lease: &Lease, now: Tick) {
    let attempt = record.attempt(lease.backend().id, lease.picked());
    attempt.pick = PickNote::new(lease.backend().taken(), lease.is_trial());
    (attempt.connected, attempt.sent) = (now, now);
}
