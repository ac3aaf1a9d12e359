//! What stands behind the mutex of a board: the rows of the live set, and who waits for a backend with room.
//!
//! Whoever holds the lock changes what it wants and lets go; letting go ([`BoardGuard`]) serves those who can be served by it,
//! so that no caller has to think of them. The invariants stand in [`crate::targets::queueing::board`].

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard};

use crate::message::BackendId;
use crate::targets::picking::balance::rank::Rank;
use crate::targets::queueing::board_rules::BoardRules;
use crate::targets::queueing::queue::{Queue, QueueLine};
use crate::targets::queueing::seat::Seat;
use crate::targets::queueing::wants::Wants;
use crate::targets::queueing::watch::Watch;
use crate::targets::resilience::breaker::Circuit;
use crate::targets::resilience::ejection::EjectionKind;
use crate::targets::resilience::reports::on_trial;
use crate::targets::resilience::trial::{Trial, is_free_for_trial};
use crate::targets::state::objects::{Board, BoardState, Exclusion, Row, Waiter};
use crate::targets::{Backend, Lease, Tried};
use crate::tick::Tick;

impl Watch {
    /// Whether one of these `backends` of its tier is out of the choice only for having as many leases as it may have, and is
    /// not among the `tried`.
    pub(in crate::targets) fn has_full(&self, backends: &[Arc<Backend>], tried: &Tried) -> bool {
        let is_waited_for = |backend: &Arc<Backend>| !tried.contains(backend.id) && backend.is_only_full();
        self.full.load(Ordering::Relaxed) > 0 && (tried.is_empty() || backends.iter().any(is_waited_for))
    }
}

impl Exclusion {
    /// Whether it is out, free for a trial, and not needed.
    fn is_free_for_trial(self, now: Tick) -> bool {
        self.out && is_free_for_trial(self.until, now)
    }
}

impl Row {
    /// A tier of which all are ready and nobody has a seat yet.
    pub(in crate::targets) fn new(
        watch: Arc<Watch>,
        rank: Option<Rank>,
        backends: Arc<[Arc<Backend>]>,
    ) -> Row {
        let marks = vec![Exclusion::default(); backends.len()];
        Row { watch, rank, ends: BinaryHeap::new(), backends, marks }
    }

    /// Publishes when to look for ended ejections again.
    pub(in crate::targets) fn note_due(&self) {
        let due = self.ends.peek().map_or(Tick::NEVER, |Reverse((until, _))| *until);
        self.watch.due.store(due.0, Ordering::Relaxed);
    }
}

impl BoardState {
    /// Takes over how busy `backend` is.
    #[inline]
    pub(in crate::targets) fn weigh(&mut self, backend: &Backend) {
        let Some(seat) = backend.seat().read() else { return };
        let Some(row) = self.rows.get_mut(seat.tier as usize) else { return };
        let place = seat.place as usize;
        if let Some(rank) = &mut row.rank {
            rank.set(place, row.watch.ready.contains(place).then(|| backend.taken()));
        }
    }

    /// Takes over whether `backend` may be picked, and how busy it is.
    pub(in crate::targets) fn refresh(&mut self, backend: &Backend) {
        self.mark(backend);
        if !self.queue.is_empty() && self.offer(backend) {
            self.mark(backend);
        }
    }

    /// Takes over what the words of `backend` say.
    fn mark(&mut self, backend: &Backend) {
        let Some(seat) = backend.seat().read() else { return };
        let ejected = backend.ejection().word().kind();
        let circuit = backend.breaker().word().circuit();
        let out = circuit != Circuit::Closed || ejected.is_some();
        let is_set_aside =
            self.panics && circuit == Circuit::Closed && ejected.is_some_and(EjectionKind::is_outlier);
        let full = self.limit > 0 && backend.taken() >= self.limit;
        let is_in = !out || is_set_aside;
        let mark = Exclusion {
            until: backend.out_until().unwrap_or(Tick::ZERO),
            outlier: ejected.is_some_and(EjectionKind::is_outlier),
            slow: ejected == Some(EjectionKind::Slow),
            full,
            out,
            only_full: is_in && full,
        };
        let place = seat.place as usize;
        let Some(row) = self.rows.get_mut(seat.tier as usize) else { return };
        let Some(known) = row.marks.get_mut(place) else { return };
        let before = std::mem::replace(known, mark);
        let count = |count: &mut usize, before: bool, after: bool| {
            *count = *count + usize::from(after) - usize::from(before);
        };
        count(&mut self.outliers, before.outlier, mark.outlier);
        count(&mut self.out, before.out, mark.out);
        match (before.only_full, mark.only_full) {
            (false, true) => drop(row.watch.full.fetch_add(1, Ordering::Relaxed)),
            (true, false) => drop(row.watch.full.fetch_sub(1, Ordering::Relaxed)),
            (false, false) | (true, true) => {}
        }
        self.stirred |= before != mark;
        self.news |= before.until != mark.until || before.out != mark.out;
        row.watch.ready.set(place, is_in && !full);
        // A half-open breaker has no end: its trial reports.
        if mark.until != before.until && mark.until != Tick::ZERO && mark.until != Tick::NEVER {
            row.ends.push(Reverse((mark.until, seat.place)));
        }
        row.note_due();
        self.weigh(backend);
    }

    /// Begins a live set: nobody has a seat, so nothing is known to be out.
    pub(in crate::targets) fn begin(&mut self, rows: Vec<Row>, generation: u64) -> Vec<Row> {
        (self.outliers, self.out, self.generation) = (0, 0, generation);
        (self.stirred, self.news) = (true, true);
        std::mem::replace(&mut self.rows, rows)
    }

    /// Gives `backend` its seat in the live set to come; `None`: it has none any more.
    pub(in crate::targets) fn seat(&mut self, backend: &Backend, seat: Option<Seat>) {
        backend.seat().write(seat);
        if seat.is_some() {
            self.mark(backend);
        }
    }

    /// Sets how many leases one backend may have (0: any). Who is concerned is to be refreshed.
    pub(in crate::targets) fn set_limit(&mut self, limit: u32) {
        self.limit = limit;
        self.stirred = true;
    }

    /// Sets ejections of outliers aside from `now` on, or no longer. Who is concerned is to be refreshed.
    pub(in crate::targets) fn set_panics(&mut self, panics: bool, now: Tick) {
        (self.panics, self.panicked) = (panics, now);
        self.stirred = true;
    }

    /// Whether one more backend may be left out as an outlier, at `now`.
    pub(in crate::targets) fn may_eject(&self, rules: &BoardRules, now: Tick) -> bool {
        let outliers = self.marks().filter(|mark| mark.outlier && !mark.is_free_for_trial(now)).count();
        (outliers + 1) * 100 <= rules.max_ejected as usize * self.members
    }

    /// One that is left out only for being slow.
    pub(in crate::targets) fn slow(&self) -> Option<Arc<Backend>> {
        self.rows.iter().find_map(|row| {
            let place = row.marks.iter().position(|mark| mark.slow)?;
            row.backends.get(place).cloned()
        })
    }

    /// Whether so few are left at `now` that ejections of outliers are to be set aside, and how many are.
    pub(in crate::targets) fn should_panic(
        &self,
        rules: &BoardRules,
        live: usize,
        now: Tick,
    ) -> (bool, usize) {
        // A backup that was out a while ago and is not needed gets no request that would show that it is back. It is no reason
        // to send requests to one that fails.
        let free =
            if self.out == 0 { 0 } else { self.marks().filter(|mark| mark.is_free_for_trial(now)).count() };
        let left = (live + free).saturating_sub(self.out);
        (self.outliers > 0 && left * 100 < rules.panic as usize * self.members, left)
    }

    fn marks(&self) -> impl Iterator<Item = &Exclusion> {
        self.rows.iter().flat_map(|row| &row.marks)
    }

    /// Who gets the place at `backend` of a lease that ends there; `None`: nobody, it comes free.
    pub(in crate::targets) fn heir(&mut self, backend: &Backend) -> Option<Waiter> {
        // The limit was lowered: it has too many as it is.
        if self.limit > 0 && backend.taken() > self.limit {
            return None;
        }
        let (for_pins, for_all) = self.serves(backend);
        if for_pins {
            self.queue.first_for(backend.id, for_all, |waiter| waiter.takes(backend.id))
        } else {
            None
        }
    }

    /// Gives `waiter` this lease when the lock is let go.
    pub(in crate::targets) fn grant(&mut self, waiter: Waiter, lease: Lease) {
        self.grants.push((waiter, lease));
    }

    /// Whether `backend` may be used by those whose cookie names it, and by everybody, as far as its words go.
    fn serves(&self, backend: &Backend) -> (bool, bool) {
        let for_pins = backend.serves_pins(self.panics);
        (for_pins, for_pins && backend.seat().read().is_some())
    }

    /// Gives what room there is at `backend` to those who wait for it, the first first. One that can't be used is waited for
    /// by nobody any more. Says whether somebody got something.
    fn offer(&mut self, backend: &Backend) -> bool {
        let (for_pins, for_all) = self.serves(backend);
        if !for_pins {
            self.stirred |= self.queue.unpin(backend.id);
            return false;
        }
        let mut served = false;
        let takes = |waiter: &Waiter| waiter.takes(backend.id);
        while self.queue.has_for(backend.id, for_all, takes) && backend.enter_within(self.limit).is_some() {
            let waiter = self.queue.first_for(backend.id, for_all, takes);
            let shared = waiter.as_ref().and_then(|waiter| self.shared(backend, waiter));
            match (waiter, shared) {
                (Some(waiter), Some(shared)) => {
                    served = true;
                    self.grant(waiter, Lease::entered(&shared, Trial::NONE, Tick::ZERO));
                }
                _ => {
                    backend.leave();
                    break;
                }
            }
        }
        served
    }

    /// The shared form of `backend`, which has a seat or is the one that `waiter` waits for.
    fn shared(&self, backend: &Backend, waiter: &Waiter) -> Option<Arc<Backend>> {
        let seated = || {
            let seat = backend.seat().read()?;
            self.rows.get(seat.tier as usize)?.backends.get(seat.place as usize).cloned()
        };
        waiter.pin.clone().filter(|pin| pin.id == backend.id).or_else(seated)
    }

    /// Serves everybody who can be.
    fn serve(&mut self) {
        for backend in self.queue.firsts().filter_map(|waiter| waiter.pin.clone()).collect::<Vec<_>>() {
            if self.offer(&backend) {
                self.mark(&backend);
            }
        }
        let (mut from, mut lines) = (0, &[QueueLine::Any, QueueLine::Other][..]);
        while let Some((number, line, waiter)) = self.queue.next_of(lines, from) {
            let tried = waiter.tried;
            match self.enter_any(&tried) {
                Some(backend) => {
                    if let Some(waiter) = self.queue.leave(line, number) {
                        self.grant(waiter, Lease::entered(&backend, Trial::NONE, Tick::ZERO));
                    }
                }
                // Nobody is left for one who would take any. One who has been at those who are full may still be served by
                // one that is left out.
                None if line == QueueLine::Any => lines = &[QueueLine::Other],
                None => {}
            }
            from = number + 1;
        }
    }

    /// Takes a place at a ready backend that was not tried; at one that is left out only where nobody else is there to wait for:
    /// an ejection never empties a target, an open breaker does.
    pub(in crate::targets) fn enter_any(&mut self, tried: &Tried) -> Option<Arc<Backend>> {
        for tier in 0..self.rows.len() {
            if let Some(backend) = self.enter_tier(tier, tried) {
                return Some(backend);
            }
        }
        if self.rows.iter().any(|row| row.watch.has_full(&row.backends, tried)) {
            return None;
        }
        let seated = self.rows.iter().flat_map(|row| &*row.backends);
        let mut usable = seated.filter(|backend| {
            !tried.contains(backend.id) && backend.breaker().word().circuit() == Circuit::Closed
        });
        let backend = usable.find(|backend| backend.enter_within(self.limit).is_some()).cloned()?;
        self.mark(&backend);
        Some(backend)
    }

    /// The same at a ready backend of one tier.
    fn enter_tier(&mut self, tier: usize, tried: &Tried) -> Option<Arc<Backend>> {
        let places = self.rows.get(tier)?.backends.len();
        let mut from = self.turn % places.max(1);
        let mut passes = tried.len();
        // Each turn passes over one that was tried, or finds one that is full and is not marked yet.
        loop {
            let row = &self.rows[tier];
            let place = row.watch.ready.next(from)?;
            let backend = Arc::clone(row.backends.get(place)?);
            from = place + 1;
            if tried.contains(backend.id) {
                // More than were tried there can't be: it is the first of them again.
                passes = passes.checked_sub(1)?;
                continue;
            }
            let entered = backend.enter_within(self.limit).is_some();
            self.mark(&backend);
            if entered {
                self.turn = from;
                return Some(backend);
            }
        }
    }

    /// The attempt, for somebody in the queue, that finds out whether a backend that was left out is back, in the first tier in
    /// which it is time for one.
    pub(in crate::targets) fn find_trial(&mut self, now: Tick) -> Option<Lease> {
        let wanted = |queue: &Queue<Waiter>, backend: BackendId| {
            queue.has_for(backend, true, |waiter| waiter.takes(backend))
        };
        (0..self.rows.len()).find_map(|tier| self.trial(tier, now, wanted))
    }

    /// The same in this tier, for one who asks at `now`. `wanted`: whether it can use a backend.
    pub(in crate::targets) fn trial(
        &mut self,
        tier: usize,
        now: Tick,
        wanted: impl Fn(&Queue<Waiter>, BackendId) -> bool,
    ) -> Option<Lease> {
        let row = self.rows.get_mut(tier)?;
        let (mut lease, mut later) = (None, Vec::new());
        while let Some(Reverse((until, place))) = row.ends.peek().copied() {
            if until > now {
                break;
            }
            row.ends.pop();
            let Some(backend) = row.backends.get(place as usize) else { continue };
            // Of another ejection, or of one that has ended: its own entry, if there is one, is in the heap.
            if backend.out_until() != Some(until) {
                continue;
            }
            // The place before the trial: one that has begun must not come to nothing for want of it.
            if !wanted(&self.queue, backend.id) || backend.enter_within(self.limit).is_none() {
                later.push(Reverse((until, place)));
                continue;
            }
            if let Some(trial) = on_trial(backend, now) {
                lease = Some(Lease::entered(backend, trial, now));
                break;
            }
            backend.leave();
        }
        row.ends.extend(later);
        row.note_due();
        if let Some(lease) = &lease {
            self.mark(lease.backend());
        }
        lease
    }

    /// Takes a place at `backend` for one whose cookie names it.
    pub(in crate::targets) fn enter(&mut self, backend: &Backend) -> bool {
        let entered = backend.enter_within(self.limit).is_some();
        self.mark(backend);
        entered
    }
}

/// The board's state, while its lock is held. Letting go of it serves who can be served by what was changed.
pub(in crate::targets) struct BoardGuard<'a> {
    board: &'a Board,
    locked: Option<MutexGuard<'a, BoardState>>,
}

impl<'a> BoardGuard<'a> {
    pub(in crate::targets) fn new(board: &'a Board, locked: MutexGuard<'a, BoardState>) -> BoardGuard<'a> {
        #[cfg(test)]
        crate::steps::enter();
        BoardGuard { board, locked: Some(locked) }
    }
}

impl Deref for BoardGuard<'_> {
    type Target = BoardState;

    fn deref(&self) -> &BoardState {
        self.locked.as_ref().expect("held until dropped")
    }
}

impl DerefMut for BoardGuard<'_> {
    fn deref_mut(&mut self) -> &mut BoardState {
        self.locked.as_mut().expect("held until dropped")
    }
}

impl Drop for BoardGuard<'_> {
    #[inline]
    fn drop(&mut self) {
        let Some(mut locked) = self.locked.take() else { return };
        if locked.queue.is_empty() && locked.grants.is_empty() && self.board.waiting() == 0 {
            (locked.stirred, locked.news) = (false, false);
            drop(locked);
            let_go();
        } else {
            settle(self.board, locked);
        }
    }
}

/// The mutex is free again.
#[inline]
fn let_go() {
    #[cfg(test)]
    {
        crate::steps::leave();
        crate::steps::point();
    }
}

#[cold]
fn settle(board: &Board, mut locked: MutexGuard<'_, BoardState>) {
    // Who is taken out of one line may be served from the other.
    while std::mem::take(&mut locked.stirred) && !locked.queue.is_empty() {
        let waiting = locked.queue.len();
        locked.serve();
        if locked.queue.len() == waiting {
            break;
        }
    }
    locked.stirred = false;
    let news = std::mem::take(&mut locked.news) && !locked.queue.is_empty();
    let grants = std::mem::take(&mut locked.grants);
    board.note_waiting(locked.queue.count(QueueLine::Any));
    drop(locked);
    let_go();
    // Without the mutex: who has left gives the lease back, which is dropped and handed on.
    for (waiter, lease) in grants {
        drop(waiter.serve(if board.is_for(Wants::Total) { lease.counted() } else { lease }));
    }
    if news {
        board.changed.notify_waiters();
    }
}

impl Waiter {
    /// Whether it has not been at this backend.
    pub(in crate::targets) fn takes(&self, backend: BackendId) -> bool {
        !self.tried.contains(backend)
    }

    /// Gives it a lease. One that has just left gives it back, to be dropped where no mutex is held.
    pub(in crate::targets) fn serve(self, lease: Lease) -> Option<Lease> {
        self.grant.send(lease).err()
    }
}

/// Ends a lease on a backend that has as many as it may have: the first in the queue gets its place, or it comes free.
#[cold]
pub(in crate::targets) fn hand_on(backend: &Arc<Backend>) {
    let mut locked = backend.board().lock();
    match locked.heir(backend) {
        // The place of the one that ends, which has not given it up.
        Some(waiter) => locked.grant(waiter, Lease::entered(backend, Trial::NONE, Tick::ZERO)),
        None => {
            backend.leave();
            locked.refresh(backend);
        }
    }
}
