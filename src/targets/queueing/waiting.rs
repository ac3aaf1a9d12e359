//! Waiting for a backend with room, in the queue of the target.
//!
//! Whoever finds every backend at its `max_in_flight` takes a ticket. The lease that ends next hands its place on to the
//! first in the queue without giving it up in between, whichever worker that one waits on: so nobody overtakes, and the
//! bound holds exactly.

use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::sync::oneshot;

use crate::events;
use crate::message::Cause;
use crate::targets::queueing::queue::QueueLine;
use crate::targets::resilience::trial::Trial;
use crate::targets::state::objects::{Board, Waiter};
use crate::targets::{Ask, Circuit, Lease, Target, TargetState};
use crate::tick::Tick;

/// A place in the queue, left on drop.
#[derive(Debug)]
pub struct QueueTicket {
    board: Arc<Board>,
    line: QueueLine,
    number: u64,
    grant: oneshot::Receiver<Lease>,
}

impl QueueTicket {
    /// The lease, when it is this one's turn. Its pick was long ago: see [`Lease::begin`].
    pub fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Lease> {
        match std::pin::Pin::new(&mut self.grant).poll(cx) {
            Poll::Ready(Ok(lease)) => Poll::Ready(lease),
            // A waiter is taken out of the queue to be served; what else could become of it was done by its own ticket.
            Poll::Ready(Err(_)) | Poll::Pending => Poll::Pending,
        }
    }
}

impl Drop for QueueTicket {
    fn drop(&mut self) {
        let waiter = self.board.lock().queue.leave(self.line, self.number);
        drop(waiter);
    }
}

/// What became of the wish to wait.
#[derive(Debug)]
pub enum Queued {
    /// It need not: there is room.
    Lease(Lease),
    /// It waits.
    Ticket(QueueTicket),
    /// It may not, for this reason.
    Refused(Cause),
}

/// Ejections of outliers are set aside from now on, or no longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::targets) struct PanicTurn {
    panics: bool,
    /// How long it was the other way.
    after: Duration,
    /// Who is not left out.
    left: usize,
    of: usize,
}

impl Target {
    /// Takes a ticket after [`Pick::Full`](crate::targets::Pick::Full).
    #[must_use]
    pub fn enqueue(&self, ask: &Ask<'_>) -> Queued {
        let board = &self.state.board;
        let mut locked = board.lock();
        let pin = ask.waits_for(locked.panics);
        // Between the pick that found nothing and this a place may have come free, with nobody in the queue to give it to.
        // Places come free under the mutex only, so after a look under it none is missed.
        let entered = match pin {
            Some(backend) => locked.enter(backend).then(|| Arc::clone(backend)),
            None => locked.enter_any(ask.tried),
        };
        if let Some(backend) = entered {
            drop(locked);
            return Queued::Lease(Lease::entered(&backend, Trial::NONE, ask.now).counted_if_wanted());
        }
        let (sender, grant) = oneshot::channel();
        let line = match pin {
            Some(backend) => QueueLine::Pinned(backend.id.0),
            None if ask.tried.is_empty() => QueueLine::Any,
            None => QueueLine::Other,
        };
        let waiter = Waiter { grant: sender, pin: pin.cloned(), tried: *ask.tried };
        match locked.queue.join(waiter, line, board.rules().queue) {
            Some(number) => Queued::Ticket(QueueTicket { board: Arc::clone(board), line, number, grant }),
            None => Queued::Refused(Cause::QueueFull),
        }
    }

    /// Looks after what time changes and no lease reports, at `now`: whether so few backends are left that outliers get
    /// requests again, and whether somebody waits for a backend whose time is up. Control calls it every second or so.
    pub fn settle(&self, now: Tick) {
        if let Some(turn) = self.state.settle(now) {
            self.tell_panic(&turn);
            // Who is left has changed with it.
            self.state.board.turned.notify_one();
        }
        self.serve(now);
    }

    /// Tells that ejections of outliers are set aside, or no longer.
    pub(in crate::targets) fn tell_panic(&self, turn: &PanicTurn) {
        let PanicTurn { panics, after, left, of } = *turn;
        if panics {
            events::panic_began(&self.name, self.state.board.rules().panic, left, of);
        } else {
            events::panic_ended(&self.name, after, left, of);
        }
    }

    /// How many requests wait in its queue.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.state.board.lock().queue.len()
    }

    /// When the next ejection, or open breaker, of somebody who is up ends; [`Tick::NEVER`]: there is none. Who waits calls
    /// [`Target::serve`] then.
    #[must_use]
    pub fn due(&self) -> Tick {
        self.state.live.load().tiers.iter().map(|tier| tier.watch.due()).min().unwrap_or(Tick::NEVER)
    }

    /// Lets those who wait find out about backends whose ejection, or open breaker, has ended by `now`.
    pub fn serve(&self, now: Tick) {
        while self.due() <= now {
            let mut locked = self.state.board.lock();
            let Some(trial) = locked.find_trial(now) else { return };
            let backend = trial.backend().id;
            let Some(waiter) = locked.queue.first_for(backend, true, |waiter| waiter.takes(backend)) else {
                // Nobody wants it after all. A lease ends where no mutex is held.
                drop(locked);
                return;
            };
            locked.grant(waiter, trial);
        }
    }

    /// Why one who waits need not wait any longer: there is nobody left to wait for.
    #[must_use]
    pub fn gives_up(&self, ask: &Ask<'_>) -> Option<Cause> {
        if ask.waits_for(self.state.board.panics()).is_some() {
            return None;
        }
        let live = self.state.live.load();
        let others = || live.backends().filter(|backend| !ask.tried.contains(backend.id));
        if live.unknown > 0 || others().any(|backend| backend.breaker().word().circuit() == Circuit::Closed) {
            return None;
        }
        Some(if others().next().is_some() { Cause::BreakerOpen } else { Cause::NoBackend })
    }
}

impl TargetState {
    /// Sets ejections of outliers aside when too few backends are left, and no longer when enough are. Says what has changed.
    pub(in crate::targets) fn settle(&self, now: Tick) -> Option<PanicTurn> {
        let rules = self.board.rules();
        let mut locked = self.board.lock();
        let live = self.live.load();
        let (panics, left) = locked.should_panic(&rules, live.backends().count(), now);
        if panics == locked.panics {
            return None;
        }
        let turn = PanicTurn { panics, after: now.since(locked.panicked), left, of: locked.members };
        self.board.set_panics(&mut locked, panics, now);
        live.backends().for_each(|backend| locked.refresh(backend));
        Some(turn)
    }
}
