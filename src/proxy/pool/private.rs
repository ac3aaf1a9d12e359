//! Connections that carry a client's identity: each is kept for one client's connection and given to nobody else.
//!
//! It goes with the connection of its client, so there are never more than clients have, which `max_connections` bounds
//! together with the one connection to a backend that each may need: the limits of what is shared do not count them. The
//! sweep closes what is too old or broken, and whoever needs descriptors more urgently closes them all.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::Arc;

use super::idle::{Idle, IdleTo, Need, Used};
use super::passed::PassedOwner;
use crate::net::Stream;
use crate::targets::Backend;
use crate::telemetry::cells::Cells;
use crate::tick::Tick;

/// A client's connection by a number: of one worker, and never given twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Owner(NonZeroU32);

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
    kept: HashMap<Owner, IdleTo>,
}

impl Privates {
    pub(super) fn len(&self) -> usize {
        self.kept.len()
    }

    pub(super) fn sweep(&mut self, cells: &Cells, now: Tick) {
        self.kept.retain(|_, private| private.may_stay(cells, now));
    }

    pub(super) fn clear(&mut self, cells: &Cells) {
        cells.pool.closed_idle.add(self.kept.len() as u64);
        self.kept.clear();
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
            Some(idle) => self.kept.insert(owner, IdleTo { backend: Arc::clone(backend), idle }).is_some(),
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
