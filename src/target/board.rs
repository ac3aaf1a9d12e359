//! What leases of one target change together: which backends are ready, how busy they are, whose ejection ends next.
//!
//! One board per target, alive across reloads. Every backend holds the board of its target and its seat in the
//! live set, so that a lease can report without knowing the target. The mutex is taken when an ejection begins or
//! ends, which is rare, and for every pick and release where the algorithm needs an exact order of loads
//! (`least_connections`, `least_busy`): then it is held for a walk over a tree of a few levels. Lock order: the
//! members of `TargetState`, then the board.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::balance::rank::Rank;
use super::ready::Ready;
use super::{Backend, Padded};
use crate::tick::Tick;

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

    fn write(&self, seat: Option<Seat>) {
        let word = seat.map_or(Self::NONE, |seat| u64::from(seat.tier) << 32 | u64::from(seat.place));
        self.0.store(word, Ordering::Relaxed);
    }
}

/// Which backends of a tier are ready. The live set reads it, the board writes it.
#[derive(Debug)]
pub(super) struct Watch {
    pub(super) ready: Ready,
    /// The earliest end of an ejection; `u64::MAX`: nobody is ejected.
    due: AtomicU64,
}

impl Watch {
    /// A tier of `len` backends, all ready.
    pub(super) fn new(len: usize) -> Watch {
        Watch { ready: Ready::new(len), due: AtomicU64::new(u64::MAX) }
    }

    /// Whether somebody's ejection has ended by `now`.
    #[inline]
    pub(super) fn is_due(&self, now: Tick) -> bool {
        now.0 >= self.due.load(Ordering::Relaxed)
    }
}

/// One tier of the live set.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) watch: Arc<Watch>,
    /// By load, where the algorithm wants that.
    pub(super) rank: Option<Rank>,
    /// Ends of ejections, the next first. An entry may be out of date: the backend's own word counts.
    pub(super) ends: BinaryHeap<Reverse<(Tick, u32)>>,
}

impl Row {
    /// A tier of which all are ready and nobody has a seat yet.
    pub(super) fn new(watch: Arc<Watch>, rank: Option<Rank>) -> Row {
        Row { watch, rank, ends: BinaryHeap::new() }
    }

    /// Publishes when to look for ended ejections again.
    pub(super) fn note_due(&self) {
        let due = self.ends.peek().map_or(u64::MAX, |Reverse((until, _))| until.0);
        self.watch.due.store(due, Ordering::Relaxed);
    }
}

/// What stands behind the mutex.
#[derive(Debug, Default)]
pub(super) struct Desk {
    /// The live set that the seats belong to.
    pub(super) generation: u64,
    pub(super) rows: Vec<Row>,
}

impl Desk {
    fn row(&mut self, seat: Seat) -> Option<&mut Row> {
        self.rows.get_mut(seat.tier as usize)
    }

    /// Takes over how busy `backend` is.
    #[inline]
    pub(super) fn weigh(&mut self, backend: &Backend) {
        let Some(seat) = backend.seat().read() else { return };
        let Some(row) = self.row(seat) else { return };
        let place = seat.place as usize;
        if let Some(rank) = &mut row.rank {
            rank.set(place, row.watch.ready.contains(place).then(|| backend.in_flight()));
        }
    }

    /// Takes over whether `backend` is ejected, and how busy it is.
    pub(super) fn refresh(&mut self, backend: &Backend) {
        let Some(seat) = backend.seat().read() else { return };
        let until = backend.ejection().word().until();
        if let Some(row) = self.row(seat) {
            row.watch.ready.set(seat.place as usize, until.is_none());
            row.ends.extend(until.map(|until| Reverse((until, seat.place))));
            row.note_due();
        }
        self.weigh(backend);
    }

    /// Gives `backend` its seat in the live set to come.
    pub(super) fn seat(&mut self, backend: &Backend, seat: Option<Seat>) {
        backend.seat().write(seat);
        self.refresh(backend);
    }
}

/// What leases of one target change together.
#[derive(Debug, Default)]
pub(super) struct Board {
    wants: AtomicU8,
    /// Leases that were counted, see [`Wants::Total`].
    total: Padded<AtomicU64>,
    desk: Mutex<Desk>,
}

impl Board {
    /// What the algorithm in force wants to hear.
    #[inline]
    pub(super) fn wants(&self) -> Wants {
        // SeqCst with the counters: either a lease that ends sees that the order is wanted, or whoever begins the
        // order sees that the lease has ended.
        match self.wants.load(Ordering::SeqCst) {
            0 => Wants::Nothing,
            1 => Wants::Order,
            2 => Wants::Total,
            _ => Wants::Latency,
        }
    }

    /// Whether the algorithm in force wants to hear that.
    #[inline]
    pub(super) fn is_for(&self, wants: Wants) -> bool {
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

    /// What stands behind the mutex.
    pub(super) fn desk(&self) -> MutexGuard<'_, Desk> {
        // A panic in between leaves plain values behind, which the next report of a backend sets right.
        self.desk.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
