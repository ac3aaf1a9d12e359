//! What leases of one target change together: which backends are ready, how busy they are, whose ejection ends next, and
//! who waits for one with room.
//!
//! One board per target, alive across reloads. Every backend holds the board of its target and its seat in the
//! live set, so that a lease can report without knowing the target. The mutex is taken when an ejection or a breaker's
//! state begins or ends, which is rare; where `max_in_flight` is set, when a backend becomes full and when it is no
//! longer; and for every pick and release where the algorithm needs an exact order of loads (`least_connections`,
//! `least_busy`): then it is held for a walk over a tree of a few levels. Lock order: the members of `TargetState`,
//! then what is known of the limit, then the board.
//!
//! # Invariants
//!
//! They hold whenever nobody holds the desk, and `target::explorer` looks for interleavings that break them. A *bit* is
//! that of a backend in its row's `ready`; *in* is who is up (or drains, for those whose cookie names it), not ejected, and
//! whose breaker is closed, or who is ejected as an outlier while such ejections are set aside.
//!
//! 1. **No more than the limit.** A backend's count of leases grows by compare-and-swap below the limit only. It is above
//!    the limit only after that was lowered, and then no place there is handed on.
//! 2. **A bit that is off has a reason**: its backend is not in, or full. So no room is ever forgotten. Bits are written under
//!    the mutex only. Where counts change without it, one of the two sides sees the other: a lease that ends on a full
//!    backend takes the mutex ([`super::waiting::hand_on`]), and one that has ended by an older limit looks at the limit
//!    again behind it ([`super::Lease`]), while who sets the limit looks at the counts behind that.
//! 3. **A bit that is on promises nothing.** Whoever finds its backend full says so (`Desk::refresh`) and looks elsewhere, a
//!    bounded number of times without the mutex and then under it, where bits only go off.
//! 4. **Who waits for any backend proves that no bit is on** that it could use, and that somebody is full; who waits for
//!    the backend of its cookie proves that this one is in and full. Nothing follows for anybody else. What could make it
//!    untrue goes through the desk, and [`super::desk::Held`] serves who can be served before it lets go. Who waits for
//!    a backend that is in no more waits for any from then on.
//! 5. **Nobody overtakes.** A place of a full backend goes from lease to lease without coming free in between, to the
//!    first in the queue that takes it. Newcomers see [`Board::has_waiting`] and come to the desk.
//! 6. **A ticket and its waiter**: as long as a waiter is in the queue its ticket is alive; a ticket that is dropped takes its
//!    waiter out, or gives back what that was granted, which is then handed on like any lease.
//! 7. **Time is nobody's report.** When an ejection or an open breaker ends by time, who waits is not served by it: it
//!    sleeps until [`super::Target::due`], which changes with a word on [`Board::changed`], and then the first who can use that
//!    backend finds out. Who comes after that word looks for itself whether there is anybody left to wait for.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;
use tokio::sync::Notify;

use super::Padded;
use super::breaker;
use super::desk::{Desk, Held};
use super::ejection::Spans;
use crate::config::model::Resilience;

/// What the algorithm in force wants to hear of leases.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Wants {
    /// Nothing: it looks at the backends themselves.
    #[default]
    Nothing,
    /// How many there are, in order.
    Order,
    /// How many there are over all backends.
    Total,
    /// How soon answers came.
    Latency,
}

/// Where a backend is in the live set: the number of its tier and its place there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Seat {
    pub(super) tier: u32,
    pub(super) place: u32,
}

/// A backend's seat, written under the board's mutex only.
#[derive(Debug)]
pub(super) struct SeatWord(AtomicU64);

impl Default for SeatWord {
    fn default() -> Self {
        SeatWord(AtomicU64::new(SeatWord::NONE))
    }
}

impl SeatWord {
    const NONE: u64 = u64::MAX;

    pub(super) fn read(&self) -> Option<Seat> {
        let word = self.0.load(Ordering::Relaxed);
        let half = |word: u64| u32::try_from(word & u64::from(u32::MAX)).expect("32 bits");
        (word != Self::NONE).then(|| Seat { tier: half(word >> 32), place: half(word) })
    }

    pub(super) fn write(&self, seat: Option<Seat>) {
        let word = seat.map_or(Self::NONE, |seat| u64::from(seat.tier) << 32 | u64::from(seat.place));
        self.0.store(word, Ordering::Relaxed);
    }
}

/// What the words of backends are judged by.
#[derive(Debug)]
pub(super) struct Rules {
    /// `None`: there is no breaker.
    pub(super) breaker: Option<breaker::Rules>,
    /// `None`: nobody is ejected.
    pub(super) ejection: Option<Spans>,
    /// Errors one after the other for which a backend is ejected; 0: they don't count.
    pub(super) errors: u8,
    /// Percent of the members that are ejected as outliers at once, at most.
    pub(super) max_ejected: u32,
    /// Percent of the members; while fewer are left, ejections of outliers are set aside.
    pub(super) panic: u32,
    /// How many may wait.
    pub(super) queue: usize,
}

impl Default for Rules {
    fn default() -> Self {
        Rules::new(&Resilience::default())
    }
}

impl Rules {
    /// The rules that follow from what is configured.
    pub(super) fn new(config: &Resilience) -> Rules {
        let outlier = config.outlier.as_ref();
        Rules {
            breaker: config.breaker.as_ref().map(breaker::Rules::new),
            ejection: outlier.map(|outlier| Spans { first: outlier.ejection, most: outlier.ejection_max }),
            errors: outlier.map_or(0, |outlier| outlier.failures),
            max_ejected: outlier.map_or(0, |outlier| outlier.max_ejected.into()),
            panic: config.panic_threshold.into(),
            queue: config.queue as usize,
        }
    }
}

/// What leases of one target change together.
#[derive(Debug, Default)]
pub(super) struct Board {
    wants: AtomicU8,
    panics: AtomicBool,
    /// The desk's, for those who don't hold it.
    limit: AtomicU32,
    /// How many in the queue would take any backend.
    waiting: AtomicU32,
    /// The live set is another one, or somebody waits and it is another matter who is left out, and until when.
    pub(super) changed: Notify,
    /// Leases that were counted, see [`Wants::Total`].
    total: Padded<AtomicU64>,
    rules: ArcSwap<Rules>,
    desk: Mutex<Desk>,
    /// Somebody's state has turned: control has something to tell.
    pub(super) turned: Notify,
}

impl Board {
    /// Whether the algorithm in force wants to hear that.
    #[inline]
    pub(super) fn is_for(&self, wants: Wants) -> bool {
        // SeqCst with the counters: either a lease that ends sees that the order is wanted, or whoever begins the
        // order sees that the lease has ended.
        self.wants.load(Ordering::SeqCst) == wants as u8
    }

    /// Says what is wanted from now on.
    pub(super) fn want(&self, wants: Wants) {
        self.wants.store(wants as u8, Ordering::SeqCst);
    }

    /// Leases that were counted, over all backends.
    pub(super) fn total(&self) -> u64 {
        self.total.load(Ordering::Relaxed)
    }

    /// Counts one more lease.
    pub(super) fn count(&self) {
        self.total.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts one lease less.
    pub(super) fn discount(&self) {
        self.total.fetch_sub(1, Ordering::Relaxed);
    }

    /// Leases that one backend may have; 0: any.
    #[inline]
    pub(super) fn limit(&self) -> u32 {
        // SeqCst with the counts of leases: see the second invariant.
        self.limit.load(Ordering::SeqCst)
    }

    /// Whether somebody waits who would take any backend: then nobody is ready.
    #[inline]
    pub(super) fn has_waiting(&self) -> bool {
        self.waiting() > 0
    }

    /// How many in the queue would take any backend.
    #[inline]
    pub(super) fn waiting(&self) -> u32 {
        self.waiting.load(Ordering::Relaxed)
    }

    /// Publishes how many in the queue would take any backend.
    pub(super) fn note_waiting(&self, waiting: usize) {
        self.waiting.store(u32::try_from(waiting).unwrap_or(u32::MAX), Ordering::Relaxed);
    }

    /// Whether ejections of outliers are set aside.
    pub(super) fn panics(&self) -> bool {
        self.panics.load(Ordering::Relaxed)
    }

    /// Sets ejections of outliers aside, or no longer. Who is concerned is to be refreshed.
    pub(super) fn set_panics(&self, desk: &mut Desk, panics: bool) {
        desk.set_panics(panics);
        self.panics.store(panics, Ordering::Relaxed);
    }

    /// What the words of backends are judged by.
    pub(super) fn rules(&self) -> arc_swap::Guard<Arc<Rules>> {
        self.rules.load()
    }

    /// Sets the rules and the limit (0: none). Who is concerned is to be refreshed.
    pub(super) fn govern(&self, config: &Resilience, limit: u32, members: usize) {
        self.rules.store(Arc::new(Rules::new(config)));
        let mut desk = self.desk();
        desk.members = members;
        self.set_limit(&mut desk, limit);
    }

    /// Sets the limit (0: none). Who is concerned is to be refreshed.
    pub(super) fn set_limit(&self, desk: &mut Desk, limit: u32) {
        desk.set_limit(limit);
        self.limit.store(limit, Ordering::SeqCst);
    }

    /// What stands behind the mutex.
    #[inline]
    pub(super) fn desk(&self) -> Held<'_> {
        #[cfg(test)]
        super::explorer::point();
        // A panic in between leaves plain values behind, which the next report of a backend sets right.
        Held::new(self, self.desk.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
