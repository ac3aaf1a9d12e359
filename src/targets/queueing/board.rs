//! What leases of one target change together: which backends are ready, how busy they are, whose ejection ends next, and
//! who waits for one with room.
//!
//! One board per target, alive across reloads. Every backend holds the board of its target and its seat in the
//! live set, so that a lease can report without knowing the target. The mutex is taken when an ejection or a breaker's
//! state begins or ends, which is rare; where `max_in_flight` is set, when a backend becomes full and when it is no
//! longer; and for every pick and release where the algorithm needs an exact order of loads (`least_connections`,
//! `least_busy`): then it is held for a walk over a tree of a few levels. Where nodes share backends it is held for a walk over all of
//! them, several times a second, when what others say is taken in. Lock order: the members of `TargetState`,
//! then what is known of the limit, then the board, then what the health of a backend rests on.
//!
//! # Invariants
//!
//! They hold whenever nobody holds the lock, and `targets::explorer` looks for interleavings that break them. A *bit* is
//! that of a backend in its row's `ready`; *in* is who is up (or drains, for those whose cookie names it), not ejected, and
//! whose breaker is closed, or who is ejected as an outlier while such ejections are set aside.
//!
//! 1. **No more than the limit.** A backend's count of leases grows by compare-and-swap below the limit only. It is above
//!    the limit only after that was lowered, and then no place there is handed on.
//! 2. **A bit that is off has a reason**: its backend is not in, or full. So no room is ever forgotten. Bits are written under
//!    the mutex only. Where counts change without it, one of the two sides sees the other: a lease that ends on a full
//!    backend takes the mutex ([`crate::targets::queueing::waiting::hand_on`]), and one that has ended by an older limit looks at the limit
//!    again behind it ([`crate::targets::Lease`]), while who sets the limit looks at the counts behind that.
//! 3. **A bit that is on promises nothing.** Whoever finds its backend full says so (`BoardState::refresh`) and looks elsewhere, a
//!    bounded number of times without the mutex and then under it, where bits only go off.
//! 4. **Who waits for any backend proves that no bit is on** that it could use, and that somebody is full; who waits for
//!    the backend of its cookie proves that this one is in and full. Nothing follows for anybody else. What could make it
//!    untrue goes through the lock, and [`crate::targets::queueing::board_state::BoardGuard`] serves who can be served before it lets go. Who waits for
//!    a backend that is in no more waits for any from then on.
//! 5. **Nobody overtakes.** A place of a full backend goes from lease to lease without coming free in between, to the
//!    first in the queue that takes it. Newcomers see [`Board::has_waiting`] and come to the lock.
//! 6. **A ticket and its waiter**: as long as a waiter is in the queue its ticket is alive; a ticket that is dropped takes its
//!    waiter out, or gives back what that was granted, which is then handed on like any lease.
//! 7. **Time is nobody's report.** When an ejection or an open breaker ends by time, who waits is not served by it: it
//!    sleeps until [`crate::targets::Target::due`], which changes with a word on [`Board::changed`], and then the first who can use that
//!    backend finds out. Who comes after that word looks for itself whether there is anybody left to wait for.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use crate::config::model::Resilience;
use crate::targets::queueing::board_rules::BoardRules;
use crate::targets::queueing::board_state::BoardGuard;
use crate::targets::queueing::wants::Wants;
use crate::targets::state::objects::{Board, BoardState};
use crate::tick::Tick;

impl Board {
    /// Whether the algorithm in force wants to hear that.
    #[inline]
    pub(in crate::targets) fn is_for(&self, wants: Wants) -> bool {
        // SeqCst with the counters: either a lease that ends sees that the order is wanted, or whoever begins the
        // order sees that the lease has ended.
        self.wants.load(Ordering::SeqCst) == wants as u8
    }

    /// Says what is wanted from now on.
    pub(in crate::targets) fn want(&self, wants: Wants) {
        self.wants.store(wants as u8, Ordering::SeqCst);
    }

    /// Leases that were counted, over all backends.
    pub(in crate::targets) fn total(&self) -> u64 {
        self.total.load(Ordering::Relaxed)
    }

    /// Counts one more lease.
    pub(in crate::targets) fn count(&self) {
        self.total.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts one lease less.
    pub(in crate::targets) fn discount(&self) {
        self.total.fetch_sub(1, Ordering::Relaxed);
    }

    /// Leases that one backend may have; 0: any.
    #[inline]
    pub(in crate::targets) fn limit(&self) -> u32 {
        // SeqCst with the counts of leases: see the second invariant.
        self.limit.load(Ordering::SeqCst)
    }

    /// Whether somebody waits who would take any backend: then nobody is ready.
    #[inline]
    pub(in crate::targets) fn has_waiting(&self) -> bool {
        self.waiting() > 0
    }

    /// How many in the queue would take any backend.
    #[inline]
    pub(in crate::targets) fn waiting(&self) -> u32 {
        self.waiting.load(Ordering::Relaxed)
    }

    /// Whether picks go to a backend first that another node prefers: so many do as were said, one after the other.
    #[inline]
    pub(in crate::targets) fn spills(&self) -> bool {
        self.spills.load(Ordering::Relaxed) > 0
    }

    /// Whether this one is of those; it counts as one then.
    #[cold]
    pub(in crate::targets) fn take_spill(&self) -> bool {
        let less = |left: u32| left.checked_sub(1);
        self.spills.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_ok()
    }

    /// Publishes how many in the queue would take any backend.
    pub(in crate::targets) fn note_waiting(&self, waiting: usize) {
        self.waiting.store(u32::try_from(waiting).unwrap_or(u32::MAX), Ordering::Relaxed);
    }

    /// Whether ejections of outliers are set aside.
    pub(in crate::targets) fn panics(&self) -> bool {
        self.panics.load(Ordering::Relaxed)
    }

    /// Sets ejections of outliers aside from `now` on, or no longer. Who is concerned is to be refreshed.
    pub(in crate::targets) fn set_panics(&self, locked: &mut BoardState, panics: bool, now: Tick) {
        locked.set_panics(panics, now);
        self.panics.store(panics, Ordering::Relaxed);
    }

    /// What the words of backends are judged by.
    pub(in crate::targets) fn rules(&self) -> arc_swap::Guard<Arc<BoardRules>> {
        self.rules.load()
    }

    /// Sets the rules and the limit (0: none). Who is concerned is to be refreshed.
    pub(in crate::targets) fn govern(&self, config: &Resilience, limit: u32) {
        self.rules.store(Arc::new(BoardRules::new(config)));
        let mut locked = self.lock();
        self.set_limit(&mut locked, limit);
    }

    /// Sets the limit (0: none). Who is concerned is to be refreshed.
    pub(in crate::targets) fn set_limit(&self, locked: &mut BoardState, limit: u32) {
        locked.set_limit(limit);
        self.limit.store(limit, Ordering::SeqCst);
    }

    /// What stands behind the mutex.
    #[inline]
    pub(in crate::targets) fn lock(&self) -> BoardGuard<'_> {
        #[cfg(test)]
        crate::steps::point();
        // A panic in between leaves plain values behind, which the next report of a backend sets right.
        BoardGuard::new(self, self.locked.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
