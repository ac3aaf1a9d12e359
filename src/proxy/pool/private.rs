//! Connections that carry a client's identity: each is kept for one client's connection and given to nobody else.
//!
//! It goes with the connection of its client, so there are never more than clients have, which `max_connections` bounds
//! together with the one connection to a backend that each may need: the limits of what is shared do not count them. The
//! sweep closes what is too old or broken, and whoever needs descriptors more urgently closes them all.

use std::collections::HashMap;
use std::num::{NonZeroU32, NonZeroU64};
use std::sync::Arc;

use super::idle::{Idle, Need, Used};
use crate::net::Stream;
use crate::targets::Backend;
use crate::telemetry::cells::Cells;
use crate::tick::Tick;

/// A client's connection by a number: of one worker, and never given twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Owner(NonZeroU32);

/// A client's connection of which backends are told, by a number: of one worker, and never given twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PassedOwner(NonZeroU64);

/// Most connections that wait for the next request of one client's connection: with HTTP/2 many serve it at once.
const PER_OWNER: usize = 16;

/// For whom a connection to a backend is kept when its request is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// For whoever comes next.
    Shared,
    /// For this client's connection alone.
    Private(Owner),
    /// For the client's connection that it was told of when it began. Any of that client's requests may have it.
    PassedOn(PassedOwner),
    /// For nobody: it carries an identity, and there is no connection of a client that could own it.
    Closed,
}

/// One worker's connections that have an owner.
#[derive(Default)]
pub(super) struct Privates {
    /// The last number that was given.
    last: u32,
    kept: HashMap<Owner, Private>,
    /// The last number that was given for those that were told whose they are.
    last_passed: u64,
    passed: HashMap<PassedOwner, Vec<Private>>,
}

struct Private {
    backend: Arc<Backend>,
    idle: Idle,
}

impl Privates {
    pub(super) fn len(&self) -> usize {
        self.kept.len() + self.passed.values().map(Vec::len).sum::<usize>()
    }

    pub(super) fn sweep(&mut self, cells: &Cells, now: Tick) {
        let is_kept = |private: &Private| {
            let fit = private.idle.is_fit(cells, &private.backend, Need::Repeatable, now);
            if fit {
                private.backend.note_idle_open(now.since(private.idle.since));
            }
            fit
        };
        self.kept.retain(|_, private| is_kept(private));
        self.passed.retain(|_, all| {
            all.retain(is_kept);
            !all.is_empty()
        });
    }

    pub(super) fn clear(&mut self, cells: &Cells) {
        cells.pool.closed_idle.add(self.len() as u64);
        self.kept.clear();
        self.passed.clear();
    }

    /// A number for a client's connection of which backends are told.
    pub(super) fn new_passed_owner(&mut self) -> PassedOwner {
        self.last_passed += 1;
        PassedOwner(NonZeroU64::new(self.last_passed).unwrap_or(NonZeroU64::MIN))
    }

    /// Keeps a connection that was told of `owner`.
    pub(super) fn put_passed(
        &mut self,
        cells: &Cells,
        owner: PassedOwner,
        backend: &Arc<Backend>,
        used: Used,
        now: Tick,
    ) {
        let all = self.passed.entry(owner).or_default();
        match Idle::new(backend, used, now) {
            Some(idle) if all.len() < PER_OWNER => all.push(Private { backend: Arc::clone(backend), idle }),
            _ => cells.pool.closed_idle.increment(),
        }
    }

    /// The latest connection to `backend` that was told of `owner` and is fit for use; unfit ones are closed on the way.
    pub(super) fn take_passed(
        &mut self,
        cells: &Cells,
        owner: PassedOwner,
        backend: &Backend,
        now: Tick,
    ) -> Option<Stream> {
        let all = self.passed.get_mut(&owner)?;
        while let Some(place) = all.iter().rposition(|private| private.backend.id == backend.id) {
            let private = all.swap_remove(place);
            // Whatever the request is: the kernel is asked whether it is still open.
            if private.idle.is_fit(cells, backend, Need::Once, now) {
                cells.pool.reused.increment();
                return Some(private.idle.stream);
            }
        }
        None
    }

    /// Closes what was told of `owner`.
    pub(super) fn release_passed(&mut self, cells: &Cells, owner: PassedOwner) {
        let all = self.passed.remove(&owner).unwrap_or_default();
        cells.pool.closed_idle.add(all.len() as u64);
    }

    /// A number for a client's connection that has none yet. `None`: all were given.
    pub(super) fn new_owner(&mut self) -> Option<Owner> {
        self.last = self.last.checked_add(1)?;
        NonZeroU32::new(self.last).map(Owner)
    }

    /// The backend to which a connection is kept for `owner`.
    pub(super) fn kept_for(&self, owner: Owner) -> Option<Arc<Backend>> {
        self.kept.get(&owner).map(|private| Arc::clone(&private.backend))
    }

    /// Keeps a connection for its owner, in place of the one before.
    pub(super) fn put(&mut self, cells: &Cells, owner: Owner, backend: &Arc<Backend>, used: Used, now: Tick) {
        let before = match Idle::new(backend, used, now) {
            Some(idle) => self.kept.insert(owner, Private { backend: Arc::clone(backend), idle }).is_some(),
            None => true,
        };
        if before {
            cells.pool.closed_idle.increment();
        }
    }

    /// See `Pool::take_private`.
    pub(super) fn take(
        &mut self,
        cells: &Cells,
        owner: Owner,
        backend: &Backend,
        now: Tick,
    ) -> Option<Stream> {
        let private = self.kept.remove(&owner)?;
        if private.backend.id != backend.id {
            cells.pool.closed_idle.increment();
            return None;
        }
        private.idle.is_fit(cells, backend, Need::Once, now).then(|| {
            cells.pool.reused.increment();
            private.idle.stream
        })
    }

    /// Closes what is kept for `owner`.
    pub(super) fn release(&mut self, cells: &Cells, owner: Owner) {
        if self.kept.remove(&owner).is_some() {
            cells.pool.closed_idle.increment();
        }
    }
}
