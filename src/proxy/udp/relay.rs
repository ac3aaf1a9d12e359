//! One socket of clients, its flows, and their sockets to backends: datagrams go in both directions, each whole.
//!
//! Flows that are there go before flows that are new: what is read is passed on at once where there is a flow, and waits in a bounded queue where
//! there is none. So a storm of strangers costs those who are there no more than the reading of it.

use std::collections::VecDeque;
use std::io;
use std::net::UdpSocket;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use crate::access::{NetworkVerdict, Networks};
use crate::config::model::Protocol;
use crate::message::{Blame, Cause, ClientAddress, Peer, PickNote, Record, RecordKind};
use crate::proxy::recording::Recording;
use crate::proxy::{Here, WorkerCtx};
use crate::snapshot::CountedConnection;
use crate::targets::{Ask, Backend, Heard, Lease, Outcome, Pick, Target, Tried, hash_address};
use crate::telemetry::cells::DatagramDrop;
use crate::tick::Tick;

use super::flows::{FlowClient, Flows};
use super::front::{BATCH, DatagramRow, DatagramSpace, Front};
use super::leg::{self, LastWord, Leg, LegDuty, LegToken, Legs, SendFailure};
use super::returning::ReturningClients;

/// Strangers whose datagrams wait, in bytes and in number.
const WAITING: (usize, usize) = (256 << 10, 1024);
/// How long a leg without a flow passes on what still comes back.
const LINGER: Duration = Duration::from_secs(2);
/// Rows that are read of one leg at once.
const LEG_BATCH: usize = 8;
/// Rounds of reading from clients in one turn.
const ROUNDS: usize = 4;

/// A datagram of a client that has no flow.
#[derive(Debug)]
pub struct Stranger {
    /// Who.
    pub client: FlowClient,
    /// What it has sent.
    pub bytes: Vec<u8>,
    /// When it came.
    pub came: Tick,
}

/// What stands in the table for a flow.
struct FlowRow {
    leg: usize,
    record: Record,
    _counted: CountedConnection,
}

/// What becomes of somebody's first datagram.
pub enum Begun {
    /// There is a flow now.
    Flow,
    /// There is none, for this reason. It was recorded if it can be told of somebody's backend.
    Refused(Cause),
    /// It may be tried again: no backend has a verdict yet, or each has as many as it may have.
    Later(Stranger, CountedConnection),
}

/// What is done with datagrams of one address on one worker.
pub struct DatagramRelay {
    ctx: Rc<WorkerCtx>,
    front: Front,
    flows: Flows<FlowRow>,
    legs: Legs,
    lingering: VecDeque<LastWord>,
    strangers: VecDeque<Stranger>,
    stranger_bytes: usize,
    returning: ReturningClients,
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
            legs: Legs::new()?,
            lingering: VecDeque::new(),
            strangers: VecDeque::new(),
            stranger_bytes: 0,
            returning: ReturningClients::default(),
            told: Vec::new(),
        })
    }

    /// Whether anything is under way.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.flows.is_empty() && self.legs.is_empty() && self.strangers.is_empty()
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
        let Some(leg) = self.legs.told(token) else { return };
        match space.read(self.front.kernel(), leg.socket(), LEG_BATCH) {
            Ok(count) => {
                for number in 0..count {
                    self.reply(token.place, &space.row(number), here, now);
                }
                if count == LEG_BATCH {
                    self.legs.leave_rest();
                }
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(_) => is_error = true,
        }
        let is_refused = |leg: &mut Leg| leg.is_refused(self.front.kernel());
        if is_error && self.legs.told(token).is_some_and(is_refused) {
            self.give_up(token.place, here, now);
        }
    }

    /// Passes on what has come back on a leg.
    fn reply(&mut self, place: usize, row: &DatagramRow<'_>, here: &Here, now: Tick) {
        let Some(leg) = self.legs.get_mut(place) else { return };
        let cells = self.ctx.cells.datagrams.of(here.id);
        let count = row.count() as u64;
        let client = match &leg.duty {
            LegDuty::Lingers { client } => *client,
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
                let factor = here.config.limits.reply_factor;
                if !self.flows.may_receive(flow, row.bytes.len(), factor, now) {
                    return cells.drop(DatagramDrop::ReplyFactor, count);
                }
                let Some(client) = self.flows.client(flow) else { return };
                if let Some(row_of) = self.flows.get_mut(flow) {
                    row_of.record.bytes_out += row.bytes.len() as u64;
                }
                client
            }
        };
        match self.front.send(&client, row) {
            Ok(()) => cells.send(count),
            Err(_) => cells.drop(DatagramDrop::Unsent, count),
        }
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
        flow_row.record.bytes_in += row.bytes.len() as u64;
        match leg.send(row, self.front.kernel()) {
            Ok(()) => {
                if leg.sent == 2
                    && let Some(lease) = leg.lease()
                {
                    // Nobody has said so far that there is nobody.
                    lease.note_connected();
                }
                cells.pass(count);
            }
            Err(SendFailure::Unreachable(_)) => {
                let place = flow_row.leg;
                flow_row.record.bytes_in -= row.bytes.len() as u64;
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
        let pieces = if row.length == 0 { std::slice::from_ref(&row.bytes).iter() } else { [].iter() };
        let each = pieces.copied().chain(row.bytes.chunks(row.length.max(1)));
        for bytes in each.take(row.count()) {
            if self.stranger_bytes + bytes.len() > WAITING.0 || self.strangers.len() >= WAITING.1 {
                self.ctx.cells.datagrams.of(here.id).drop(DatagramDrop::Crowded, 1);
                continue;
            }
            self.stranger_bytes += bytes.len();
            self.strangers.push_back(Stranger { client, bytes: bytes.to_vec(), came: now });
        }
    }

    /// The next one who has no flow; if he has one by now, it was passed on.
    pub fn next_stranger(&mut self, here: &Here, now: Tick) -> Option<Stranger> {
        loop {
            let stranger = self.strangers.pop_front()?;
            self.stranger_bytes -= stranger.bytes.len();
            match self.flows.find(&stranger.client) {
                Some(flow) => self.request(flow, &row_of(&stranger), here, now),
                None => return Some(stranger),
            }
        }
    }

    /// Whether somebody waits who has no flow.
    #[must_use]
    pub fn has_strangers(&self) -> bool {
        !self.strangers.is_empty()
    }

    /// Ends a flow so that another one may begin. False: none makes way.
    pub fn make_way(&mut self, returns: bool, here: &Here, now: Tick) -> bool {
        let place = self.flows.makes_way(returns, now);
        place.is_some_and(|place| self.give_way(place, here, now))
    }

    /// The same among the flows of a client that has as many as it may have.
    pub fn make_way_of(&mut self, stranger: &Stranger, returns: bool, here: &Here, now: Tick) -> bool {
        let ip = stranger.client.address.ip();
        let place = self.flows.makes_way_of(|client| client.address.ip() == ip, returns, now);
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
            self.forget(place, now);
        }
        true
    }

    /// Where a client was whose flow has made way.
    pub fn returning(&mut self, client: &FlowClient, target: &Target) -> Option<Arc<Backend>> {
        let backend = self.returning.take(client)?;
        target.backends.iter().find(|one| one.id == backend).map(Arc::clone)
    }

    /// Begins a flow. `pin`: where its client was before.
    pub fn begin(
        &mut self,
        stranger: Stranger,
        counted: CountedConnection,
        pin: Option<&Arc<Backend>>,
        here: &Here,
        now: Tick,
    ) -> Begun {
        let Some(way) = here.bytes_route().and_then(|route| route.destinations.first()) else {
            return Begun::Refused(Cause::NoBackend);
        };
        let target = Arc::clone(&way.target);
        let address = stranger.client.address;
        let peer = Peer {
            client: Some(ClientAddress::new(address.ip(), address.port())),
            listener: here.id,
            accepted: stranger.came,
            ..Peer::default()
        };
        let mut record = Record {
            kind: RecordKind::Udp,
            id: self.ctx.request_id(),
            route: Some(way.id),
            target: Some(target.id),
            routed: now,
            ..peer.record()
        };
        let mut tried = Tried::new();
        let opened = loop {
            let lease = match self.pick(&target, &stranger.client, &tried, pin, now) {
                Pick::Lease(lease) => lease,
                Pick::Unknown | Pick::Full if tried.is_empty() => return Begun::Later(stranger, counted),
                Pick::Unknown | Pick::Full => break Err(Cause::NoBackend),
                Pick::None(cause) => break Err(cause),
            };
            note_attempt(&mut record, &lease, now);
            match self.open(&lease, pin.is_some(), here, now) {
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
        let kept = opened.and_then(|(lease, socket)| {
            let place = self.legs.keep(socket, LegDuty::Serves { flow: usize::MAX, lease })?;
            let row = FlowRow { leg: place, record, _counted: counted };
            let flow = self.flows.begin(stranger.client, stranger.bytes.len(), pin.is_some(), now, row);
            if let Some(Leg { duty: LegDuty::Serves { flow: of, .. }, .. }) = self.legs.get_mut(place) {
                *of = flow;
            }
            Ok(flow)
        });
        match kept {
            Ok(flow) => {
                self.ctx.cells.connections.accepted.increment();
                self.ctx.cells.connections.open.raise();
                self.pass(flow, &row_of(&stranger), here, now, true);
                Begun::Flow
            }
            Err(cause) => {
                self.ctx.cells.datagrams.of(here.id).drop(DatagramDrop::NoBackend, 1);
                self.ctx.cells.refusals.refuse(target.id, cause);
                record.done = now;
                record.bytes_in = stranger.bytes.len() as u64;
                Recording::new(&self.ctx, None, &mut record).settle(cause);
                Begun::Refused(cause)
            }
        }
    }

    fn pick(
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

    /// Opens a socket to a backend. Where something of ours is short, a flow makes way for it.
    fn open(&mut self, lease: &Lease, returns: bool, here: &Here, now: Tick) -> Result<UdpSocket, Cause> {
        match leg::open(lease.backend()) {
            Err(cause @ (Cause::LocalShortage | Cause::NoLocalPort)) => {
                if cause == Cause::LocalShortage {
                    self.ctx.spare_descriptors();
                }
                if self.make_way(returns, here, now) { leg::open(lease.backend()) } else { Err(cause) }
            }
            opened => opened,
        }
    }

    /// The backend of a leg can't be reached: that counts against it, and the leg's flow goes elsewhere at once, if there is anybody else.
    fn give_up(&mut self, place: usize, here: &Here, now: Tick) {
        let Some(leg) = self.legs.remove(place) else { return };
        let LegDuty::Serves { flow, lease } = leg.duty else { return };
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
    fn move_away(&mut self, flow: usize, here: &Here, now: Tick) {
        let Some(place) = self.flows.get(flow).map(|row| row.leg) else { return };
        let mut tried = Tried::new();
        if let Some(lease) = self.legs.get(place).and_then(Leg::lease) {
            tried.insert(lease.backend().id);
        }
        if self.go_to_another(flow, &tried, here, now) {
            self.let_linger(place, flow, now);
        }
    }

    /// Gives a flow another leg; the one that it had is nobody's then.
    fn go_to_another(&mut self, flow: usize, tried: &Tried, here: &Here, now: Tick) -> bool {
        let way = here.bytes_route().and_then(|route| route.destinations.first());
        let (Some(way), Some(client)) = (way, self.flows.client(flow)) else { return false };
        let target = Arc::clone(&way.target);
        let Pick::Lease(lease) = self.pick(&target, &client, tried, None, now) else { return false };
        // Where nobody else is left, an algorithm may come back to who was tried.
        if tried.contains(lease.backend().id) {
            return false;
        }
        let Ok(socket) = leg::open(lease.backend()) else { return false };
        let Some(row) = self.flows.get_mut(flow) else { return false };
        note_attempt(&mut row.record, &lease, now);
        match self.legs.keep(socket, LegDuty::Serves { flow, lease }) {
            Ok(place) => {
                row.leg = place;
                true
            }
            Err(_) => false,
        }
    }

    /// Lets go of a leg that a flow has left, but for what still comes back.
    fn let_linger(&mut self, place: usize, flow: usize, now: Tick) {
        let (Some(token), Some(client)) = (self.legs.token(place), self.flows.client(flow)) else { return };
        let Some(leg) = self.legs.get_mut(place) else { return };
        let outcome = if leg.is_answered { Outcome::Success } else { Outcome::Neutral };
        if let LegDuty::Serves { lease, .. } = std::mem::replace(&mut leg.duty, LegDuty::Lingers { client }) {
            lease.finish(outcome, now);
        }
        self.lingering.push_back(LastWord { due: now.after(LINGER), leg: token });
    }

    /// Ends a flow and records it.
    fn end(&mut self, place: usize, cause: Cause, now: Tick) {
        let Some(mut row) = self.take(place, now) else { return };
        if let Some(attempt) = row.record.last_attempt() {
            attempt.end = now;
        }
        row.record.done = now;
        Recording::new(&self.ctx, None, &mut row.record).settle(cause);
    }

    /// Ends a flow without a record.
    fn forget(&mut self, place: usize, now: Tick) {
        drop(self.take(place, now));
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
        let timeout = flow_timeout(here);
        while let Some(place) = self.flows.expired(timeout, now) {
            self.end(place, Cause::Done, now);
        }
        while let Some(word) = self.lingering.front().copied().filter(|word| word.due <= now) {
            self.lingering.pop_front();
            if self.legs.told(word.leg).is_some_and(|leg| matches!(leg.duty, LegDuty::Lingers { .. })) {
                self.legs.remove(word.leg.place);
            }
        }
        let word = self.lingering.front().map_or(Tick::NEVER, |word| word.due);
        self.flows.next_expiry(timeout).unwrap_or(Tick::NEVER).min(word)
    }

    /// Ends flows whose backends are no place to stay, and which have been silent for a moment. The others go at their next datagram.
    pub fn leave(&mut self, now: Tick) {
        let leaves = |row: &FlowRow| {
            let lease = self.legs.get(row.leg).and_then(Leg::lease);
            lease.is_some_and(|lease| lease.backend().is_leaving())
        };
        let those: Vec<usize> =
            self.flows.iter().filter(|(_, _, row)| leaves(row)).map(|(at, ..)| at).collect();
        for place in those {
            if self.flows.silence(place, now) >= LINGER {
                self.end(place, Cause::Drained, now);
            }
        }
    }

    /// Ends the flows of clients in `networks`; says how many.
    pub fn cut(&mut self, networks: &Networks, now: Tick) -> usize {
        let is_in = |client: &FlowClient| networks.verdict(client.address.ip()) == Some(NetworkVerdict::Deny);
        let those: Vec<usize> =
            self.flows.iter().filter(|(_, client, _)| is_in(client)).map(|(at, ..)| at).collect();
        those.iter().for_each(|place| self.end(*place, Cause::Blocked, now));
        those.len()
    }

    /// Ends flows that wait for nothing: `patience` after the last that was sent without an answer.
    pub fn finish(&mut self, cause: Cause, patience: Duration, now: Tick) {
        let waits = |place: usize| self.flows.waits(place) && self.flows.silence(place, now) < patience;
        let those: Vec<usize> = self.flows.iter().map(|(at, ..)| at).filter(|at| !waits(*at)).collect();
        for place in those {
            self.end(place, cause, now);
        }
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

fn row_of(stranger: &Stranger) -> DatagramRow<'_> {
    let length = stranger.bytes.len();
    DatagramRow { from: stranger.client.address, to: stranger.client.to, bytes: &stranger.bytes, length }
}

fn note_attempt(record: &mut Record, lease: &Lease, now: Tick) {
    let attempt = record.attempt(lease.backend().id, lease.picked());
    attempt.pick = PickNote::new(lease.backend().in_flight(), lease.is_trial());
    (attempt.connected, attempt.sent) = (now, now);
}

/// How long a flow may be silent.
fn flow_timeout(here: &Here) -> Duration {
    debug_assert_eq!(here.config.protocol, Protocol::Udp);
    let way = here.bytes_route().and_then(|route| route.destinations.first());
    way.map_or(crate::config::model::Timeouts::default().flow, |way| way.target.config.timeouts.flow)
}
