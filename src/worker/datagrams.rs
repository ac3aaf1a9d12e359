//! The loop of one socket for datagrams: what backends have sent, what clients have sent, then strangers, a few in each turn.
//!
//! What control tells it (another config, who is blocked) it does between two turns, when it is asked: a turn is one poll of its task, and
//! nothing of its state is borrowed between two of them.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::io;
use std::net::UdpSocket;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use crate::access::Networks;
use crate::message::{Cause, Record};
use crate::net::{Deadline, now};
use crate::proxy::http::gate::at_the_door;
use crate::proxy::recording::Recording;
use crate::proxy::tolls::is_too_soon;
use crate::proxy::udp::front::DatagramSpace;
use crate::proxy::udp::relay::{DatagramRelay, FlowBegun, LeftFlow, StrangerDatagram};
use crate::proxy::{Here, WorkerCtx};
use crate::snapshot::{ConnectionLimits, CountedConnection};
use crate::targets::{Backend, Target};
use crate::telemetry::cells::DatagramDrop;
use crate::tick::Tick;

use super::listen::Orders;

/// Strangers that are looked at in one turn.
const STRANGERS: usize = 32;
/// Turns before others get theirs.
const TURNS: usize = 4;
/// Those who wait for a backend's first verdict, or for room at one.
const WAITING: usize = 256;
/// How soon they are tried again.
const AGAIN: Duration = Duration::from_millis(20);
/// How often it is looked whether backends leave.
const LOOK: Duration = Duration::from_secs(1);
/// How long a drain waits for an answer.
const LAST_ANSWERS: Duration = Duration::from_secs(2);
/// Refusals of one second that leave a record: strangers cost nothing to forge.
const TOLD: u32 = 20;

/// Datagrams of one client that wait with it.
const MORE: usize = 4;

/// Somebody for whom no backend could be given yet.
struct WaitingStranger {
    stranger: StrangerDatagram,
    /// What it has sent since.
    more: Vec<StrangerDatagram>,
    counted: CountedConnection,
    /// Where it was before.
    pin: Option<Arc<Backend>>,
    until: Tick,
}

/// What is done in a turn, and what the turns before have left.
struct Work {
    relay: DatagramRelay,
    space: DatagramSpace,
    waiting: Vec<WaitingStranger>,
    /// When silence ends the next flow.
    due: Tick,
    looked: Tick,
    /// When those who wait were last tried again.
    tried: Tick,
    /// In which second how many refusals were recorded.
    told: (u64, u32),
    /// The socket is of no use any more.
    is_broken: bool,
}

/// The loop of one socket.
pub(super) struct DatagramLoop {
    ctx: Rc<WorkerCtx>,
    limits: Arc<ConnectionLimits>,
    orders: Rc<Orders>,
    work: RefCell<Work>,
    deadline: Deadline,
    begun_to_end: Cell<Tick>,
}

impl DatagramLoop {
    /// One for a bound socket.
    ///
    /// # Errors
    /// What the system reports.
    pub(super) fn new(
        ctx: &Rc<WorkerCtx>,
        limits: &Arc<ConnectionLimits>,
        socket: UdpSocket,
        orders: Rc<Orders>,
    ) -> io::Result<Rc<DatagramLoop>> {
        let work = Work {
            relay: DatagramRelay::new(Rc::clone(ctx), socket)?,
            space: DatagramSpace::default(),
            waiting: Vec::new(),
            due: Tick::NEVER,
            looked: now(),
            tried: Tick::ZERO,
            told: (0, 0),
            is_broken: false,
        };
        Ok(Rc::new(DatagramLoop {
            ctx: Rc::clone(ctx),
            limits: Arc::clone(limits),
            orders,
            work: RefCell::new(work),
            deadline: ctx.ticker.deadline(),
            begun_to_end: Cell::new(Tick::ZERO),
        }))
    }

    /// Another descriptor of its socket, and its flows, for another process. This one goes on until it is told that the other one serves.
    ///
    /// # Errors
    /// What the system reports.
    pub(super) fn share(&self) -> io::Result<(OwnedFd, Vec<LeftFlow>)> {
        let relay = &mut self.work.borrow_mut().relay;
        Ok((relay.copy_of_front()?, relay.leave_flows()))
    }

    /// Goes on with what another process has left, before anything else passes.
    pub(super) fn go_on(&self, mut flows: Vec<LeftFlow>) {
        let here = Rc::clone(&self.orders.here.borrow());
        let (mut work, now) = (self.work.borrow_mut(), now());
        flows.sort_by_key(LeftFlow::last);
        for flow in flows {
            // Whoever can't go on begins anew.
            if let Ok(counted) = self.limits.enter(&here.state, Some(flow.client().ip())) {
                let _ = work.relay.take_flow(flow, counted, &here, now);
            }
        }
    }

    /// Ends the flows of clients in `networks`; says how many.
    pub(super) fn cut(&self, networks: &Networks) -> usize {
        if networks.is_empty() { 0 } else { self.work.borrow_mut().relay.cut(networks, now()) }
    }

    fn ends(&self) -> bool {
        self.ctx.is_draining() || self.orders.ends.get()
    }

    /// Serves until it is told to end or the worker drains, and then until what was asked is answered. True: it was told to.
    pub(super) async fn run(self: Rc<DatagramLoop>) -> bool {
        if !poll_fn(|cx| self.poll(cx)).await {
            return false;
        }
        let cause = if self.orders.ends.get() { Cause::Drained } else { Cause::Shutdown };
        let (mut work, now) = (self.work.borrow_mut(), now());
        work.relay.finish_all(cause, now);
        let here = Rc::clone(&self.orders.here.borrow());
        for one in std::mem::take(&mut work.waiting) {
            self.refuse_waiting(&mut work, one, cause, &here, now);
        }
        self.orders.ends.get()
    }

    /// Ready when it is over; false: the socket is of no use any more.
    fn poll(&self, cx: &mut Context<'_>) -> Poll<bool> {
        let mut work = self.work.borrow_mut();
        let work = &mut *work;
        let here = Rc::clone(&self.orders.here.borrow());
        let mut is_busy = true;
        for _ in 0..TURNS {
            is_busy = self.turn(cx, work, &here);
            if !is_busy {
                break;
            }
        }
        if work.is_broken {
            return Poll::Ready(false);
        }
        if is_busy {
            cx.waker().wake_by_ref();
        }
        let now = now();
        if self.ends() {
            let cause = if self.orders.ends.get() { Cause::Drained } else { Cause::Done };
            if self.begun_to_end.get() == Tick::ZERO {
                self.begun_to_end.set(now);
                if self.orders.is_left.get() && !self.orders.is_lent {
                    work.relay.leave_shared(now);
                }
            }
            work.relay.finish(cause, now);
            let is_over = now.since(self.begun_to_end.get()) >= LAST_ANSWERS;
            if is_over || work.relay.is_idle() && work.waiting.is_empty() {
                return Poll::Ready(true);
            }
        }
        self.keep_time(cx, work, &here, now);
        Poll::Pending
    }

    /// Sweeps when it is time to, and sets the next time.
    fn keep_time(&self, cx: &mut Context<'_>, work: &mut Work, here: &Here, now: Tick) {
        let is_look = now.since(work.looked) >= LOOK;
        if is_look {
            work.looked = now;
            work.relay.leave(now);
        }
        if is_look || work.due <= now || work.due == Tick::NEVER {
            work.due = work.relay.sweep(here, now);
        }
        let look = if work.relay.is_empty() { Tick::NEVER } else { work.looked.after(LOOK) };
        let again = if work.waiting.is_empty() && !self.ends() { Tick::NEVER } else { now.after(AGAIN) };
        self.deadline.set_at(work.due.min(look).min(again));
        if self.deadline.poll(cx).is_ready() {
            cx.waker().wake_by_ref();
        }
    }

    /// One turn; whether there is more to do at once.
    fn turn(&self, cx: &mut Context<'_>, work: &mut Work, here: &Here) -> bool {
        let now = now();
        let replies = work.relay.poll_replies(cx, here, &mut work.space, now);
        let requests = if self.orders.is_left.get() {
            // What comes is read by another process.
            Poll::Pending
        } else {
            work.relay.poll_requests(cx, here, &mut work.space, now)
        };
        for polled in [&replies, &requests] {
            if let Poll::Ready(Err(error)) = polled
                && !is_passing(error)
            {
                work.is_broken = true;
                return false;
            }
        }
        if !work.waiting.is_empty() && now.since(work.tried) >= AGAIN {
            work.tried = now;
            for one in std::mem::take(&mut work.waiting) {
                self.try_again(work, one, here, now);
            }
        }
        // Whoever comes elsewhere in this process finds room where nobody may be.
        for _ in 0..self.limits.wanted() {
            if !work.relay.give_room(here, now) {
                break;
            }
        }
        for _ in 0..STRANGERS {
            let Some(stranger) = work.relay.next_stranger(here, now) else { break };
            self.let_in(work, stranger, here, now);
        }
        replies.is_ready() || requests.is_ready() || work.relay.has_strangers()
    }

    /// Asks whether somebody may come in who has no flow, and begins one.
    fn let_in(&self, work: &mut Work, stranger: StrangerDatagram, here: &Here, now: Tick) {
        let ip = stranger.client.address.ip();
        let denied = self
            .ctx
            .blocked
            .refusal(Some(ip))
            .or_else(|| at_the_door(here, Some(ip)).map(|_| Cause::AccessDenied));
        // A listener that goes on elsewhere serves whoever comes here until it ends.
        // What was read before another process had the socket to itself is passed on.
        let ends = self.ctx.is_draining() && !self.orders.is_left.get();
        let denied = denied.or_else(|| ends.then_some(Cause::Shutdown));
        let denied = denied
            .or_else(|| is_too_soon(&self.ctx, Some(ip), here.door_rates()).then_some(Cause::RateLimited));
        match denied {
            Some(cause) => self.refuse(work, stranger, cause, here, now),
            None => self.begin(work, stranger, here, now),
        }
    }

    fn begin(&self, work: &mut Work, stranger: StrangerDatagram, here: &Here, now: Tick) {
        // Whoever waits already has a place.
        if let Some(waiting) = work.waiting.iter_mut().find(|one| one.stranger.client == stranger.client) {
            if waiting.more.len() < MORE {
                waiting.more.push(stranger);
            } else {
                self.ctx.cells.datagrams.of(here.id).drop(DatagramDrop::Crowded, 1);
            }
            return;
        }
        let way = here.bytes_route().and_then(|route| route.destinations.first());
        let pin = way.and_then(|way| work.relay.returning(&stranger.client, &way.target));
        let until = now.after(way.map_or(Duration::ZERO, |way| patience(&way.target)));
        match self.count(work, &stranger, pin.is_some(), here, now) {
            Ok(counted) => {
                let one = WaitingStranger { stranger, more: Vec::new(), counted, pin, until };
                self.try_again(work, one, here, now);
            }
            Err(cause) => self.refuse(work, stranger, cause, here, now),
        }
    }

    /// Begins the flow of somebody who has a place among those that there may be, or has him wait for a backend.
    fn try_again(&self, work: &mut Work, one: WaitingStranger, here: &Here, now: Tick) {
        if let Some(cause) = self.ctx.blocked.refusal(Some(one.stranger.client.address.ip())) {
            return self.refuse_waiting(work, one, cause, here, now);
        }
        let WaitingStranger { stranger, more, counted, pin, until } = one;
        match work.relay.begin(stranger, counted, pin.as_ref(), here, now) {
            FlowBegun::Flow => {
                for stranger in more {
                    // One that could not stay has ended already.
                    if let Some(stranger) = work.relay.pass_if_known(stranger, here, now) {
                        self.refuse(work, stranger, Cause::NoBackend, here, now);
                    }
                }
            }
            FlowBegun::Refused(stranger, record, cause) => {
                self.ctx.cells.datagrams.of(here.id).drop(DatagramDrop::NoBackend, 1);
                if work.may_tell(now) {
                    self.record(&stranger, (record, cause), now);
                }
                more.into_iter().for_each(|one| self.refuse(work, one, cause, here, now));
            }
            FlowBegun::Later(stranger, counted, cause) => {
                let one = WaitingStranger { stranger, more, counted, pin, until };
                if now < until && work.waiting.len() < WAITING {
                    work.waiting.push(one);
                } else {
                    self.refuse_waiting(work, one, cause, here, now);
                }
            }
        }
    }

    fn refuse_waiting(&self, work: &mut Work, one: WaitingStranger, cause: Cause, here: &Here, now: Tick) {
        let all = std::iter::once(one.stranger).chain(one.more);
        all.for_each(|stranger| self.refuse(work, stranger, cause, here, now));
    }

    /// A place among the flows that there may be. Where there is none, another flow makes way.
    fn count(
        &self,
        work: &mut Work,
        stranger: &StrangerDatagram,
        returns: bool,
        here: &Here,
        now: Tick,
    ) -> Result<CountedConnection, Cause> {
        let ip = stranger.client.address.ip();
        if self.limits.is_tight() {
            // The rest of the room is for whoever is there: connections and other listeners need it as well.
            work.relay.give_room(here, now);
        }
        match self.limits.enter(&here.state, Some(ip)) {
            Err(Cause::TooManyConnections) if work.relay.make_way((ip, returns), here, now) => {
                self.limits.enter(&here.state, Some(ip))
            }
            Err(Cause::TooManyFromClient) if work.relay.make_way_of((ip, returns), here, now) => {
                self.limits.enter(&here.state, Some(ip))
            }
            counted => counted,
        }
    }

    /// Drops what somebody has sent who has no flow.
    fn refuse(&self, work: &mut Work, stranger: StrangerDatagram, cause: Cause, here: &Here, now: Tick) {
        self.ctx.cells.refusals.turn_away(here.id, cause);
        self.ctx.cells.datagrams.of(here.id).drop(DatagramDrop::Refused, 1);
        if work.may_tell(now) {
            let record = Box::new(work.relay.record_of(&stranger, here));
            self.record(&stranger, (record, cause), now);
        }
    }

    fn record(&self, stranger: &StrangerDatagram, (mut record, cause): (Box<Record>, Cause), now: Tick) {
        (record.bytes_in, record.done) = (stranger.bytes.len() as u64, now);
        Recording::new(&self.ctx, None, &mut record).settle(cause);
    }
}

impl Work {
    /// Whether one more refusal may leave a record in this second.
    fn may_tell(&mut self, now: Tick) -> bool {
        let second = now.0 / 1_000_000_000;
        if self.told.0 != second {
            self.told = (second, 0);
        }
        let may = self.told.1 < TOLD;
        self.told.1 += u32::from(may);
        may
    }
}

/// How long somebody waits for a backend's first verdict, or for room at one.
fn patience(target: &Target) -> Duration {
    target.patience().max(target.config.timeouts.queue)
}

/// Errors that say something of a datagram that was sent before, and nothing of the socket.
fn is_passing(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionRefused, HostUnreachable, Interrupted, NetworkUnreachable, WouldBlock};
    let kinds = [ConnectionRefused, HostUnreachable, Interrupted, NetworkUnreachable, WouldBlock];
    kinds.contains(&error.kind())
}
