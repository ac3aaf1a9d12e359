//! Waiting for a backend with room, in the queue of the target.
//!
//! Whoever finds every backend at its `max_in_flight` takes a ticket. The lease that ends next hands its place on to the
//! first in the queue without giving it up in between, whichever worker that one waits on: so nobody overtakes, and the
//! bound holds exactly.

use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::sync::oneshot;

use super::board::{Board, Wants};
use super::toll::Trial;
use super::{Ask, Backend, Dice, Health, Lease, Pick, Target, TargetState, Tried};
use crate::events;
use crate::message::{BackendId, Cause};
use crate::tick::Tick;

/// Somebody in the queue.
#[derive(Debug)]
pub(super) struct Waiter {
    grant: oneshot::Sender<Lease>,
    /// Only this backend will do.
    pin: Option<BackendId>,
}

impl Waiter {
    /// Whether this backend will do.
    pub(super) fn takes(&self, backend: BackendId) -> bool {
        self.pin.is_none_or(|pin| pin == backend)
    }

    /// Gives it a lease. One that has just left gives it back, to be dropped where no mutex is held.
    pub(super) fn grant(self, lease: Lease) -> Option<Lease> {
        self.grant.send(lease).err()
    }
}

/// A place in the queue, left on drop.
#[derive(Debug)]
pub struct Ticket {
    board: Arc<Board>,
    number: u64,
    grant: oneshot::Receiver<Lease>,
}

impl Ticket {
    /// The lease, when it is this one's turn. Its pick was long ago: see [`Lease::begin`].
    pub fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Lease> {
        match std::pin::Pin::new(&mut self.grant).poll(cx) {
            Poll::Ready(Ok(lease)) => Poll::Ready(lease),
            // A waiter is taken out of the queue to be served; what else could become of it was done by its own ticket.
            Poll::Ready(Err(_)) | Poll::Pending => Poll::Pending,
        }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        // Outlives the guard: dropping a sender wakes nobody who is left, but nothing foreign runs under the mutex.
        let mut desk = self.board.desk();
        let waiter = desk.queue.leave(self.number);
        self.board.note_waiting(&desk);
        drop(desk);
        drop(waiter);
    }
}

/// What became of the wish to wait.
#[derive(Debug)]
pub enum Queued {
    /// It need not: there is room.
    Lease(Lease),
    /// It waits.
    Ticket(Ticket),
    /// It may not, for this reason.
    Refused(Cause),
}

/// How often whoever comes to the queue tries to get what has just come free; after that it waits like the others.
const TRIES: usize = 16;

impl Target {
    /// Takes a ticket after [`Pick::Full`].
    #[must_use]
    pub fn enqueue(&self, ask: &Ask<'_>) -> Queued {
        let board = &self.state.board;
        // One that is out is not waited for.
        let is_in = |backend: &&Arc<Backend>| backend.health() == Health::Up && backend.out_until().is_none();
        let pin = ask.pin.filter(is_in);
        for attempt in 0..=TRIES {
            let mut desk = board.desk();
            // Between the pick that found nothing and this a place may have come free, with nobody in the queue to give it
            // to. Places come free under the mutex only, so after a look under it none is missed.
            let has_room = match pin {
                Some(backend) => desk.limit == 0 || backend.in_flight() < desk.limit,
                None => desk.queue.len() == 0 && desk.has_ready(),
            };
            if attempt < TRIES && has_room {
                drop(desk);
                match self.pick(&Ask { pin, ..*ask }) {
                    Pick::Lease(lease) => return Queued::Lease(lease),
                    Pick::None(cause) => return Queued::Refused(cause),
                    Pick::Unknown => return Queued::Refused(Cause::NoBackend),
                    Pick::Full => continue,
                }
            }
            let (sender, grant) = oneshot::channel();
            let waiter = Waiter { grant: sender, pin: pin.map(|backend| backend.id) };
            let Some(number) = desk.queue.join(waiter, board.rules().queue) else { break };
            board.note_waiting(&desk);
            return Queued::Ticket(Ticket { board: Arc::clone(board), number, grant });
        }
        Queued::Refused(Cause::QueueFull)
    }
}

impl Target {
    /// Looks after what time changes and no lease reports, at `now`: whether so few backends are left that outliers get
    /// requests again, and whether somebody waits for a backend that has come back. Control calls it every second or so.
    pub fn settle(&self, now: Tick) {
        let panics = self.state.settle();
        if panics == Some(true) {
            events::panic_began(&self.name, self.state.board.rules().panic);
        } else if panics == Some(false) {
            events::panic_ended(&self.name);
        }
        self.serve(now);
    }

    /// How many requests wait in its queue.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.state.board.desk().queue.len()
    }

    /// Gives backends that have room to those who wait, the first first.
    pub fn serve(&self, now: Tick) {
        let (tried, dice) = (Tried::new(), Dice::seeded(now.0));
        let state = &self.state;
        while state.board.has_waiting() {
            let Pick::Lease(lease) = state.pick(&Ask::new(&tried, &dice, now)) else { return };
            let mut desk = state.board.desk();
            let waiter = desk.queue.first(|waiter| waiter.takes(lease.backend().id));
            state.board.note_waiting(&desk);
            drop(desk);
            let Some(waiter) = waiter else { return };
            drop(waiter.grant(lease));
        }
    }

    /// Why whoever waits need not wait any longer: there is nobody left to wait for.
    #[must_use]
    pub fn gives_up(&self, now: Tick) -> Option<Cause> {
        let (tried, dice) = (Tried::new(), Dice::seeded(now.0));
        match self.state.pick(&Ask::new(&tried, &dice, now)) {
            Pick::None(cause) => Some(cause),
            Pick::Lease(_) | Pick::Unknown | Pick::Full => None,
        }
    }
}

impl TargetState {
    /// Sets ejections of outliers aside when too few backends are left, and no longer when enough are. Says what has changed.
    fn settle(&self) -> Option<bool> {
        let rules = self.board.rules();
        let mut desk = self.board.desk();
        let live = self.live.load();
        let panics = desk.should_panic(&rules, live.backends().count());
        if panics == desk.panics {
            return None;
        }
        self.board.set_panics(&mut desk, panics);
        live.backends().for_each(|backend| desk.refresh(backend));
        Some(panics)
    }
}

/// Ends a lease on a backend that has as many as it may have: the first in the queue gets its place, or it comes free.
#[cold]
pub(super) fn hand_on(backend: &Arc<Backend>) {
    let board = backend.board();
    let mut desk = board.desk();
    let Some(waiter) = desk.next_for(backend) else {
        backend.leave();
        desk.refresh(backend);
        return;
    };
    board.note_waiting(&desk);
    drop(desk);
    // The place of the one that ends, which has not given it up.
    let lease = Lease::entered(backend, Trial::NONE, Tick::ZERO);
    // One that has left gives it back: dropped, it is handed on again.
    drop(waiter.grant(if board.is_for(Wants::Total) { lease.counted() } else { lease }));
}
