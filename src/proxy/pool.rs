//! One worker's idle connections to backends.
//!
//! The limits hold for the process: 1,000 in all, 300 per backend, 90 s. They bound what rests, and the sweep sees
//! to them every second. A connection that is used again within a second does not rest: to close those of a busy
//! crowd would only make it open them again. Of both kinds there are 10,000 at most.
//!
//! No shared write is made per request: a worker holds *credit*, taken from the shared counters in small lots when
//! it puts a connection in, and given back by the sweep when it is not needed. The sum of all credit never exceeds a
//! limit, so neither do the connections.
//!
//! A connection that carries a client's identity is never shared: see [`Keep`].

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crate::message::BackendId;
use crate::net::Stream;
use crate::targets::Backend;
use crate::telemetry::cells::Cells;
use crate::tick::Tick;

mod idle;
mod passed;
mod private;

pub use idle::{IDLE, Need, Used};
use idle::{Idle, RESTS, surely_open};
pub use passed::PassedOwner;
use passed::PassedPool;
use private::Privates;
pub use private::{Keep, Owner};

/// Resting connections of the process.
pub const TOTAL: u32 = 1000;
/// Resting connections to one backend.
pub const PER_BACKEND: u32 = 300;
/// Idle connections of the process, resting or not.
pub const MOST: u32 = 10_000;
/// How much credit is taken at once.
const LOT: u32 = 8;

#[derive(Default)]
struct Credit {
    held: u32,
}

impl Credit {
    /// Makes room for one more than `used`. False: the limit is reached.
    fn grow(&mut self, used: usize, shared: &AtomicU32, limit: u32) -> bool {
        if used < self.held as usize {
            return true;
        }
        let taken = shared.fetch_update(Ordering::AcqRel, Ordering::Acquire, |sum| {
            let room = limit.saturating_sub(sum).min(LOT);
            (room > 0).then_some(sum + room)
        });
        let Ok(before) = taken else { return false };
        self.held += limit.saturating_sub(before).min(LOT);
        true
    }

    /// How many more than `limit` there are over all workers, as far as a worker can tell that uses `used` of its
    /// credit: it knows only of itself how much is left.
    fn over(&self, used: usize, shared: &AtomicU32, limit: u32) -> u32 {
        let spare = self.held.saturating_sub(u32::try_from(used).unwrap_or(u32::MAX));
        shared.load(Ordering::Acquire).saturating_sub(spare).saturating_sub(limit)
    }

    /// Gives back what is more than a lot above `used`.
    fn shrink(&mut self, used: usize, shared: &AtomicU32) {
        let used = u32::try_from(used).unwrap_or(u32::MAX);
        let wanted = used.div_ceil(LOT) * LOT;
        if self.held > wanted {
            shared.fetch_sub(self.held - wanted, Ordering::AcqRel);
            self.held = wanted;
        }
    }
}

struct IdleList {
    backend: Arc<Backend>,
    /// The most recently used is last.
    idle: Vec<Idle>,
    credit: Credit,
}

impl IdleList {
    /// Closes up to `count` connections that rest, the longest resting first. How many those were.
    fn close_resting(&mut self, count: u32, now: Tick) -> u32 {
        let resting = self.idle.partition_point(|idle| now.since(idle.since) >= RESTS);
        let closed = resting.min(usize::try_from(count).unwrap_or(usize::MAX));
        self.idle.drain(..closed);
        self.credit.shrink(self.idle.len(), &self.backend.idle_connections);
        u32::try_from(closed).unwrap_or(u32::MAX)
    }
}

/// The idle lists of all backends that a worker has had connections to, by their numbers. Those are given in sequence, so
/// this is as long as the process has had backends, and no search is needed.
#[derive(Default)]
struct IdleLists(Vec<Option<Box<IdleList>>>);

impl IdleLists {
    fn of(&mut self, backend: BackendId) -> Option<&mut IdleList> {
        self.0.get_mut(backend.0 as usize)?.as_deref_mut()
    }

    /// The same, made if there is none.
    fn for_more(&mut self, backend: &Arc<Backend>) -> &mut IdleList {
        let place = backend.id.0 as usize;
        if self.0.len() <= place {
            self.0.resize_with(place + 1, || None);
        }
        self.0[place].get_or_insert_with(|| {
            let backend = Arc::clone(backend);
            Box::new(IdleList { backend, idle: Vec::new(), credit: Credit::default() })
        })
    }

    fn all(&mut self) -> impl Iterator<Item = &mut IdleList> {
        self.0.iter_mut().filter_map(Option::as_deref_mut)
    }
}

/// One worker's idle connections.
pub struct Pool {
    idle_lists: RefCell<IdleLists>,
    total: Arc<AtomicU32>,
    credit: RefCell<Credit>,
    count: std::cell::Cell<usize>,
    private: RefCell<Privates>,
    passed: RefCell<PassedPool>,
}

impl Pool {
    /// An empty pool; `total` is the process's counter.
    #[must_use]
    pub fn new(total: Arc<AtomicU32>) -> Pool {
        Pool {
            idle_lists: RefCell::default(),
            total,
            credit: RefCell::default(),
            count: std::cell::Cell::new(0),
            private: RefCell::default(),
            passed: RefCell::default(),
        }
    }

    /// Idle connections in this worker.
    #[must_use]
    pub fn len(&self) -> usize {
        self.count.get() + self.passed.borrow().len() + self.private.borrow().len()
    }

    /// True when it holds none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The most recently used connection to `backend` that is fit for use; unfit ones are closed on the way.
    #[must_use]
    pub fn take(&self, cells: &Cells, backend: &Backend, need: Need, now: Tick) -> Option<Stream> {
        let mut idle_lists = self.idle_lists.borrow_mut();
        let idle_list = idle_lists.of(backend.id)?;
        while let Some(idle) = idle_list.idle.last() {
            if need == Need::Once && now.since(idle.since) > surely_open(backend) {
                // Older ones are fit for requests that can be repeated.
                return None;
            }
            let idle = idle_list.idle.pop()?;
            self.count.set(self.count.get() - 1);
            // One that has rested may have met its end, of which the event loop need not know yet: worth a question.
            let rested = now.since(idle.since) >= RESTS;
            let need = if rested { Need::Once } else { need };
            if idle.is_fit(cells, backend, need, now) {
                cells.pool.reused.increment();
                return Some(idle.stream);
            }
        }
        None
    }

    /// A number for a client's connection that has none yet. `None`: all were given.
    #[must_use]
    pub fn new_owner(&self) -> Option<Owner> {
        self.private.borrow_mut().new_owner()
    }

    /// The backend to which a connection is kept for `owner`.
    #[must_use]
    pub fn kept_for(&self, owner: Owner) -> Option<Arc<Backend>> {
        self.private.borrow().kept_for(owner)
    }

    /// Keeps a connection for its owner, in place of the one before.
    pub fn put_private(&self, cells: &Cells, owner: Owner, backend: &Arc<Backend>, used: Used, now: Tick) {
        self.private.borrow_mut().put(cells, owner, backend, used, now);
    }

    /// The connection that is kept for `owner`, if it leads to `backend` and is fit for use; else it is closed.
    ///
    /// Whatever the request is, it gets it however long it has rested, as no other has the identity that it relies on: the
    /// kernel is asked whether it is still open.
    #[must_use]
    pub fn take_private(&self, cells: &Cells, owner: Owner, backend: &Backend, now: Tick) -> Option<Stream> {
        self.private.borrow_mut().take(cells, owner, backend, now)
    }

    /// A number for a client's connection of which backends are told.
    #[must_use]
    pub fn new_passed_owner(&self) -> PassedOwner {
        self.passed.borrow_mut().new_owner()
    }

    /// Whether the client's connection that has this number still stands.
    #[must_use]
    pub fn is_live(&self, owner: PassedOwner) -> bool {
        self.passed.borrow().is_live(owner)
    }

    /// Keeps a connection that was told of `owner` for the next request of that client's connection, within the same limits as others.
    pub fn put_passed(
        &self,
        cells: &Cells,
        owner: PassedOwner,
        backend: &Arc<Backend>,
        used: Used,
        now: Tick,
    ) {
        let mut passed = self.passed.borrow_mut();
        if !self.credit.borrow_mut().grow(self.count.get() + passed.len(), &self.total, MOST) {
            return cells.pool.closed_idle.increment();
        }
        passed.put(cells, owner, backend, used, now);
    }

    /// A connection to `backend` that was told of `owner`, if one is kept that is fit for use.
    #[must_use]
    pub fn take_passed(
        &self,
        cells: &Cells,
        whose: (PassedOwner, &Backend),
        need: Need,
        now: Tick,
    ) -> Option<Stream> {
        self.passed.borrow_mut().take(cells, whose, need, now)
    }

    /// Closes what was told of `owner`, which has ended.
    pub fn release_passed(&self, cells: &Cells, owner: PassedOwner) {
        self.passed.borrow_mut().release(cells, owner);
    }

    /// Closes what is kept for `owner`.
    pub fn release(&self, cells: &Cells, owner: Owner) {
        self.private.borrow_mut().release(cells, owner);
    }

    /// Keeps a connection for the next request, or closes it when a limit is reached or the backend has changed meanwhile.
    pub fn put(&self, cells: &Cells, backend: &Arc<Backend>, used: Used, now: Tick) {
        let Some(idle) = Idle::new(backend, used, now) else {
            cells.pool.closed_idle.increment();
            return;
        };
        let mut idle_lists = self.idle_lists.borrow_mut();
        let idle_list = idle_lists.for_more(backend);
        let room = self.credit.borrow_mut().grow(self.shared(), &self.total, MOST)
            && idle_list.credit.grow(idle_list.idle.len(), &backend.idle_connections, MOST);
        if !room {
            cells.pool.closed_idle.increment();
            return;
        }
        idle_list.idle.push(idle);
        self.count.set(self.count.get() + 1);
    }

    /// Closes what is too old, what the backend has closed, what belongs to a backend that failed or is gone, and
    /// what rests beyond the limits. Every second.
    pub fn sweep(&self, cells: &Cells, now: Tick) {
        self.private.borrow_mut().sweep(cells, now);
        self.passed.borrow_mut().sweep(cells, now);
        let mut idle_lists = self.idle_lists.borrow_mut();
        for idle_list in idle_lists.all() {
            let backend = &idle_list.backend;
            let generation = backend.generation();
            let mut proven = Duration::ZERO;
            idle_list.idle.retain(|idle| {
                let age = now.since(idle.since);
                if idle.is_broken(Need::Repeatable) {
                    backend.note_idle_close(age);
                    cells.pool.discarded_stale.increment();
                    false
                } else if idle.generation != generation || now > idle.until {
                    cells.pool.closed_idle.increment();
                    false
                } else {
                    proven = proven.max(age);
                    true
                }
            });
            backend.note_idle_open(proven);
            idle_list.credit.shrink(idle_list.idle.len(), &backend.idle_connections);
            let over =
                idle_list.credit.over(idle_list.idle.len(), &idle_list.backend.idle_connections, PER_BACKEND);
            cells.pool.closed_idle.add(u64::from(idle_list.close_resting(over, now)));
        }
        self.recount(&mut idle_lists);
        let mut over = self.credit.borrow().over(self.shared(), &self.total, TOTAL);
        for idle_list in idle_lists.all() {
            let closed = idle_list.close_resting(over, now);
            cells.pool.closed_idle.add(u64::from(closed));
            over -= closed;
        }
        if over > 0 {
            let closed = self.passed.borrow_mut().close_resting(over, now);
            cells.pool.closed_idle.add(u64::from(closed));
        }
        for place in &mut idle_lists.0 {
            // A backend that is gone is not held on to.
            place.take_if(|idle_list| idle_list.idle.is_empty());
        }
        self.recount(&mut idle_lists);
    }

    /// Counts what there is, and gives back the credit for what was closed.
    fn recount(&self, idle_lists: &mut IdleLists) {
        let count = idle_lists.all().map(|idle_list| idle_list.idle.len()).sum();
        self.count.set(count);
        self.credit.borrow_mut().shrink(self.shared(), &self.total);
    }

    /// How many count for the limits of the process.
    fn shared(&self) -> usize {
        self.count.get() + self.passed.borrow().len()
    }

    /// Closes everything: descriptors are needed elsewhere, or the worker ends.
    pub fn clear(&self, cells: &Cells) {
        self.private.borrow_mut().clear(cells);
        self.passed.borrow_mut().clear(cells);
        for idle_list in self.idle_lists.borrow_mut().all() {
            for _ in idle_list.idle.drain(..) {
                cells.pool.closed_idle.increment();
            }
            idle_list.credit.shrink(0, &idle_list.backend.idle_connections);
        }
        self.count.set(0);
        self.credit.borrow_mut().shrink(0, &self.total);
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        for idle_list in self.idle_lists.borrow_mut().all() {
            idle_list.credit.shrink(0, &idle_list.backend.idle_connections);
        }
        self.credit.borrow_mut().shrink(0, &self.total);
    }
}

#[cfg(test)]
mod tests;
