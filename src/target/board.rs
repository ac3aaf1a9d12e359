//! What leases of one target change together: which backends are ready, how busy they are, whose ejection ends next, and
//! who waits for one with room.
//!
//! One board per target, alive across reloads. Every backend holds the board of its target and its seat in the
//! live set, so that a lease can report without knowing the target. The mutex is taken when an ejection or a breaker's
//! state begins or ends, which is rare; where `max_in_flight` is set, when a backend becomes full and when it is no
//! longer; and for every pick and release where the algorithm needs an exact order of loads (`least_connections`,
//! `least_busy`): then it is held for a walk over a tree of a few levels. Lock order: the members of `TargetState`,
//! then what is known of the limit, then the board.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::ArcSwap;

use super::balance::rank::Rank;
use super::breaker::{self, Circuit};
use super::ejection::{Kind, Spans};
use super::queue::Queue;
use super::ready::Ready;
use super::waiting::Waiter;
use super::{Backend, Padded};
use crate::config::model::Resilience;
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
    max_ejected: u32,
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
            breaker: config
                .breaker
                .as_ref()
                .map(|breaker| breaker::Rules { failures: breaker.failures, open: breaker.open }),
            ejection: outlier.map(|outlier| Spans { first: outlier.ejection, most: outlier.ejection_max }),
            errors: outlier.map_or(0, |outlier| outlier.failures),
            max_ejected: outlier.map_or(0, |outlier| outlier.max_ejected.into()),
            panic: config.panic_threshold.into(),
            queue: config.queue as usize,
        }
    }
}

/// Which backends of a tier are ready. The live set reads it, the board writes it.
#[derive(Debug)]
pub(super) struct Watch {
    pub(super) ready: Ready,
    /// The earliest end of an ejection or of an open breaker; `u64::MAX`: there is none.
    due: AtomicU64,
    /// How many have as many leases as they may have.
    full: AtomicU32,
}

impl Watch {
    /// A tier of `len` backends, all ready.
    pub(super) fn new(len: usize) -> Watch {
        Watch { ready: Ready::new(len), due: AtomicU64::new(u64::MAX), full: AtomicU32::new(0) }
    }

    /// Whether somebody's ejection has ended by `now`.
    #[inline]
    pub(super) fn is_due(&self, now: Tick) -> bool {
        now.0 >= self.due.load(Ordering::Relaxed)
    }

    /// Whether somebody is out of the choice only for having as many leases as it may have.
    pub(super) fn has_full(&self) -> bool {
        self.full.load(Ordering::Relaxed) > 0
    }
}

/// What keeps a backend out of the choice.
#[derive(Clone, Copy, Debug, Default)]
struct Mark {
    /// Until then by its words; zero: nothing does.
    until: Tick,
    outlier: bool,
    full: bool,
    out: bool,
}

/// One tier of the live set.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) watch: Arc<Watch>,
    /// By load, where the algorithm wants that.
    pub(super) rank: Option<Rank>,
    /// Ends of ejections, the next first. An entry may be out of date: the backend's own word counts.
    pub(super) ends: BinaryHeap<Reverse<(Tick, u32)>>,
    marks: Vec<Mark>,
}

impl Row {
    /// A tier of `len` backends of which all are ready and nobody has a seat yet.
    pub(super) fn new(watch: Arc<Watch>, rank: Option<Rank>, len: usize) -> Row {
        Row { watch, rank, ends: BinaryHeap::new(), marks: vec![Mark::default(); len] }
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
    /// Who waits for a backend with room.
    pub(super) queue: Queue<Waiter>,
    /// Leases that one backend may have; 0: any.
    pub(super) limit: u32,
    /// Members that are there for everybody, whatever their state.
    pub(super) members: usize,
    /// Ejections of outliers are set aside.
    pub(super) panics: bool,
    outliers: usize,
    out: usize,
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

    /// Takes over whether `backend` may be picked, and how busy it is.
    pub(super) fn refresh(&mut self, backend: &Backend) {
        let Some(seat) = backend.seat().read() else { return };
        let ejected = backend.ejection().word().kind();
        let circuit = backend.breaker().word().circuit();
        let mark = Mark {
            until: backend.out_until().unwrap_or(Tick::ZERO),
            outlier: ejected == Some(Kind::Outlier),
            full: self.limit > 0 && backend.in_flight() >= self.limit,
            out: circuit != Circuit::Closed || ejected.is_some(),
        };
        let is_set_aside = self.panics && mark.outlier && circuit == Circuit::Closed;
        let place = seat.place as usize;
        let Some(row) = self.rows.get_mut(seat.tier as usize) else { return };
        let Some(known) = row.marks.get_mut(place) else { return };
        let before = std::mem::replace(known, mark);
        let count = |count: &mut usize, before: bool, after: bool| {
            *count = *count + usize::from(after) - usize::from(before);
        };
        count(&mut self.outliers, before.outlier, mark.outlier);
        count(&mut self.out, before.out, mark.out);
        match (before.full, mark.full) {
            (false, true) => drop(row.watch.full.fetch_add(1, Ordering::Relaxed)),
            (true, false) => drop(row.watch.full.fetch_sub(1, Ordering::Relaxed)),
            (false, false) | (true, true) => {}
        }
        row.watch.ready.set(place, !mark.full && (!mark.out || is_set_aside));
        // A half-open breaker has no end: its trial reports.
        if mark.until != before.until && mark.until != Tick::ZERO && mark.until != Tick::NEVER {
            row.ends.push(Reverse((mark.until, seat.place)));
        }
        row.note_due();
        self.weigh(backend);
    }

    /// Begins a live set: nobody has a seat, so nothing is known to be out.
    pub(super) fn begin(&mut self, rows: Vec<Row>, generation: u64) -> Vec<Row> {
        (self.outliers, self.out, self.generation) = (0, 0, generation);
        std::mem::replace(&mut self.rows, rows)
    }

    /// Gives `backend` its seat in the live set to come.
    pub(super) fn seat(&mut self, backend: &Backend, seat: Option<Seat>) {
        backend.seat().write(seat);
        self.refresh(backend);
    }

    /// Whether one more backend may be left out as an outlier.
    pub(super) fn may_eject(&self, rules: &Rules) -> bool {
        (self.outliers + 1) * 100 <= rules.max_ejected as usize * self.members
    }

    /// Whether so few are left that ejections of outliers are to be set aside.
    pub(super) fn should_panic(&self, rules: &Rules, live: usize) -> bool {
        let left = live.saturating_sub(self.out);
        self.outliers > 0 && left * 100 < rules.panic as usize * self.members
    }

    /// Takes out of the queue who gets the place that comes free at `backend`, if it may be used.
    pub(super) fn next_for(&mut self, backend: &Backend) -> Option<Waiter> {
        let seat = backend.seat().read()?;
        let mark = self.rows.get(seat.tier as usize)?.marks.get(seat.place as usize)?;
        if mark.out && !(self.panics && mark.outlier) || backend.in_flight() > self.limit {
            return None;
        }
        self.queue.first(|waiter| waiter.takes(backend.id))
    }

    /// Whether there is somebody to be picked.
    pub(super) fn has_ready(&self) -> bool {
        self.rows.iter().any(|row| row.watch.ready.count() > 0)
    }
}

/// What leases of one target change together.
#[derive(Debug, Default)]
pub(super) struct Board {
    wants: AtomicU8,
    panics: AtomicBool,
    /// The desk's, for those who don't hold it.
    limit: AtomicU32,
    /// How many are in the queue.
    waiting: AtomicU32,
    /// Leases that were counted, see [`Wants::Total`].
    total: Padded<AtomicU64>,
    rules: ArcSwap<Rules>,
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

    /// Leases that one backend may have; 0: any.
    #[inline]
    pub(super) fn limit(&self) -> u32 {
        self.limit.load(Ordering::Relaxed)
    }

    /// Whether somebody waits in the queue.
    #[inline]
    pub(super) fn has_waiting(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > 0
    }

    /// Publishes how many wait.
    pub(super) fn note_waiting(&self, desk: &Desk) {
        self.waiting.store(u32::try_from(desk.queue.len()).unwrap_or(u32::MAX), Ordering::Relaxed);
    }

    /// Whether ejections of outliers are set aside.
    pub(super) fn panics(&self) -> bool {
        self.panics.load(Ordering::Relaxed)
    }

    /// Sets ejections of outliers aside, or no longer. Who is concerned is to be refreshed.
    pub(super) fn set_panics(&self, desk: &mut Desk, panics: bool) {
        desk.panics = panics;
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
        desk.limit = limit;
        self.limit.store(limit, Ordering::Relaxed);
    }

    /// What stands behind the mutex.
    pub(super) fn desk(&self) -> MutexGuard<'_, Desk> {
        // A panic in between leaves plain values behind, which the next report of a backend sets right.
        self.desk.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
