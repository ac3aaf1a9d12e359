//! Connections that were told whose they are (`send_proxy`): each serves one client's connection, and ends with it.
//!
//! Invariants. An owner is in `live` from when it is given its number until it is released, and nothing is kept for one that is not: whoever comes
//! later with a connection for it has it closed. `count` is how many are kept, of all owners together; who keeps one more has made room for
//! it in the limits of the [`Pool`](super::Pool).

use std::collections::HashMap;
use std::num::NonZeroU64;
use std::sync::Arc;

use super::idle::{Idle, IdleTo, Need, RESTS, Used, surely_open};
use crate::net::Stream;
use crate::targets::Backend;
use crate::telemetry::cells::Cells;
use crate::tick::Tick;

/// A client's connection of which backends are told, by a number: of one worker, and never given twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PassedOwner(NonZeroU64);

/// Most that wait for the next request of one owner: with HTTP/2 many serve it at once.
const PER_OWNER: usize = 5;

/// Those of one worker.
#[derive(Default)]
pub(super) struct PassedPool {
    /// The last number that was given.
    last: u64,
    /// Of each owner, in the order in which they were put back.
    live: HashMap<PassedOwner, Vec<IdleTo>>,
    count: usize,
}

impl PassedPool {
    /// How many are kept.
    pub(super) fn len(&self) -> usize {
        self.count
    }

    /// A number for a client's connection that has none yet.
    pub(super) fn new_owner(&mut self) -> PassedOwner {
        self.last += 1;
        let owner = PassedOwner(NonZeroU64::new(self.last).unwrap_or(NonZeroU64::MIN));
        self.live.insert(owner, Vec::new());
        owner
    }

    /// Whether its client's connection still stands.
    pub(super) fn is_live(&self, owner: PassedOwner) -> bool {
        self.live.contains_key(&owner)
    }

    /// Keeps a connection for its owner; the one that has rested the longest makes room where that has many.
    pub(super) fn put(
        &mut self,
        cells: &Cells,
        owner: PassedOwner,
        backend: &Arc<Backend>,
        used: Used,
        now: Tick,
    ) {
        let idle = Idle::new(backend, used, now);
        let (Some(all), Some(idle)) = (self.live.get_mut(&owner), idle) else {
            return cells.pool.closed_idle.increment();
        };
        if all.len() >= PER_OWNER {
            all.remove(0);
            cells.pool.closed_idle.increment();
            self.count -= 1;
        }
        all.push(IdleTo { backend: Arc::clone(backend), idle });
        self.count += 1;
    }

    /// The latest that leads to `backend` and is fit for use; unfit ones are closed on the way. What can't be repeated goes on one
    /// that is surely open, as on those that all share.
    pub(super) fn take(
        &mut self,
        cells: &Cells,
        (owner, backend): (PassedOwner, &Backend),
        need: Need,
        now: Tick,
    ) -> Option<Stream> {
        let all = self.live.get_mut(&owner)?;
        while let Some(place) = all.iter().rposition(|private| private.backend.id == backend.id) {
            let rest = now.since(all[place].idle.since);
            if need == Need::Once && rest > surely_open(backend) {
                return None;
            }
            let private = all.remove(place);
            self.count -= 1;
            let need = if rest >= RESTS { Need::Once } else { need };
            if private.idle.is_fit(cells, backend, need, now) {
                cells.pool.reused.increment();
                return Some(private.idle.stream);
            }
        }
        None
    }

    /// Closes what is kept for `owner`, which has ended.
    pub(super) fn release(&mut self, cells: &Cells, owner: PassedOwner) {
        let all = self.live.remove(&owner).unwrap_or_default();
        self.count -= all.len();
        cells.pool.closed_idle.add(all.len() as u64);
    }

    /// Closes what is too old or broken.
    pub(super) fn sweep(&mut self, cells: &Cells, now: Tick) {
        self.live.values_mut().for_each(|all| all.retain(|private| private.may_stay(cells, now)));
        self.recount();
    }

    /// Closes up to `count` that rest. How many those were.
    pub(super) fn close_resting(&mut self, count: u32, now: Tick) -> u32 {
        let mut closed = 0;
        for all in self.live.values_mut() {
            let resting = all.partition_point(|private| now.since(private.idle.since) >= RESTS);
            let some = resting.min((count - closed) as usize);
            all.drain(..some);
            closed += u32::try_from(some).unwrap_or(u32::MAX);
        }
        self.recount();
        closed
    }

    /// Closes all. Their owners live on.
    pub(super) fn clear(&mut self, cells: &Cells) {
        cells.pool.closed_idle.add(self.count as u64);
        self.live.values_mut().for_each(Vec::clear);
        self.count = 0;
    }

    fn recount(&mut self) {
        self.count = self.live.values().map(Vec::len).sum();
    }
}
