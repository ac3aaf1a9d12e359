//! Who is kept out at run time: changed without a config being put into force, and without a turn, because a turn may take a second.
//!
//! Invariants:
//!
//! 1. What is in force, the table of it, what is shown, and what every worker is sent are changed in one go, under the lock of the state of what is kept.
//!    So the tables come in the order of the changes, and the last one is what is in force.
//! 2. It is kept before a worker is told: whoever was told that it is done finds it done after a crash. Who is let in again by time is let
//!    in first: a crash in between finds it over.
//! 3. Whoever no longer waits does not keep it from being done: it is done by a thread that nobody can stop.
//! 4. It is answered when every worker has taken the table and told to end what is to be cut.

use std::sync::Arc;
use std::time::Duration;

use ipnet::IpNet;
use tokio::sync::{oneshot, watch};

use super::begun::now_ms;
use super::kept::shared::SharedOverlay;
use super::kept::{KeptOverlay, OverlayState, StoreReach, Unkept};
use crate::access::Networks;
use crate::events;
use crate::overlay::blocked::{blocked_until_now, networks};
use crate::overlay::{Author, BlockDeclined, BlockWish, BlockedEntry, BlockedReport, block, unblock};
use crate::store::shared::Revision;
use crate::worker::{BlockOrder, ChangeSender, WorkerNews};

/// Somebody is to be kept out.
#[derive(Clone, Debug)]
pub struct BlockAsk {
    /// Whom.
    pub network: IpNet,
    /// What they have under way is left alone, to its end; the next request is not.
    pub keep: bool,
    /// By whom.
    pub author: Author,
    /// For how long; `None`: until somebody says otherwise.
    pub lasts: Option<Duration>,
    /// For whom.
    pub reach: StoreReach,
}

/// Who is kept out now.
#[derive(Clone, Debug)]
pub struct BlockOutcome {
    /// As it is kept.
    pub report: BlockedReport,
    /// Connections that were cut.
    pub cut: usize,
}

/// Why nothing has changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BlockFault {
    /// What was asked for can't be.
    Declined(BlockDeclined),
    /// It can't be kept.
    Unkept(Unkept),
    /// It can be done for all, so it is not done for this node alone.
    Shared,
}

impl From<Unkept> for BlockFault {
    fn from(unkept: Unkept) -> BlockFault {
        BlockFault::Unkept(unkept)
    }
}

/// What is blocked, and those who keep it out.
pub(super) struct Blocks {
    kept: Arc<KeptOverlay>,
    workers: Vec<ChangeSender>,
    /// For who looks at it.
    pub(super) shown: watch::Sender<Arc<[BlockedEntry]>>,
}

/// What each worker has cut, once it has.
pub(super) type CutCounts = Vec<oneshot::Receiver<usize>>;

impl Blocks {
    pub(super) fn new(kept: Arc<KeptOverlay>, workers: Vec<ChangeSender>) -> Blocks {
        let blocked = kept.state().blocked().into();
        Blocks { kept, workers, shown: watch::Sender::new(blocked) }
    }

    /// Has all workers keep out what is blocked now, and cut what those in `cut` have under way.
    fn put(&self, state: &OverlayState, cut: Networks) -> CutCounts {
        let (table, cut) = (Arc::new(networks(state.blocked())), Arc::new(cut));
        self.shown.send_replace(state.blocked().into());
        let tell = |worker: &ChangeSender| {
            let (done, answer) = oneshot::channel();
            let order = BlockOrder { table: Arc::clone(&table), cut: Arc::clone(&cut), done };
            // A worker that has ended ends the process.
            worker.send(WorkerNews::Blocked(order)).ok().map(|()| answer)
        };
        self.workers.iter().filter_map(tell).collect()
    }

    pub(super) fn block(&self, ask: BlockAsk) -> Result<(BlockedEntry, CutCounts), BlockFault> {
        let BlockAsk { network, keep, author, lasts, reach } = ask;
        let plan = |state: &OverlayState| {
            let at_ms = now_ms();
            let lasts = lasts.map(|span| u64::try_from(span.as_millis()).unwrap_or(u64::MAX));
            let expires_ms = lasts.map(|span| at_ms.saturating_add(span));
            let wish = BlockWish { network, keep, author, at_ms, expires_ms };
            let id = state.next_block();
            let (blocked, entry) = block(state.blocked(), &wish, id).map_err(BlockFault::Declined)?;
            Ok((blocked, id + 1, entry))
        };
        self.kept.change_blocked(reach, plan, |state, entry| {
            let cut = if keep { Networks::default() } else { networks(std::slice::from_ref(&entry)) };
            (entry, self.put(state, cut))
        })
    }

    pub(super) fn unblock(
        &self,
        network: IpNet,
        reach: StoreReach,
    ) -> Result<(BlockedEntry, CutCounts), BlockFault> {
        let plan = |state: &OverlayState| {
            let (blocked, entry) = unblock(state.blocked(), network).map_err(BlockFault::Declined)?;
            Ok((blocked, state.next_block(), entry))
        };
        self.kept.change_blocked(reach, plan, |state, entry| (entry, self.put(state, Networks::default())))
    }

    /// Which change of what is stored is known.
    pub(super) fn generation(&self) -> Revision {
        self.kept.state().generation()
    }

    /// Whether this node has changed something for itself.
    pub(super) fn has_own(&self) -> bool {
        self.kept.state().has_own()
    }

    /// Takes back what this node has changed for itself. Says whether it has.
    pub(super) fn end_own(&self) -> bool {
        if !self.kept.end_own() {
            return false;
        }
        let mut state = self.kept.state();
        let left = blocked_until_now(state.blocked(), now_ms()).0;
        state.hold_blocked(left);
        drop(self.put(&state, Networks::default()));
        true
    }

    /// Takes nothing for stored any more.
    pub(super) fn forget_stored(&self) {
        self.kept.state().forget_stored();
    }

    /// Goes over to what all nodes have stored, and cuts what is blocked since. Says whether it was news, and whether anybody is in or out since.
    pub(super) fn adopt(&self, shared: &SharedOverlay) -> (bool, bool) {
        let mut state = self.kept.state();
        let before = state.blocked().to_vec();
        let is_news = state.adopt(shared);
        if is_news {
            // Whose time is over is let in, whoever writes that.
            let left = blocked_until_now(state.blocked(), now_ms()).0;
            state.hold_blocked(left);
        }
        if state.blocked() == before {
            return (is_news, false);
        }
        let is_new = |entry: &&BlockedEntry| !entry.keep && !before.contains(entry);
        let new: Vec<BlockedEntry> = state.blocked().iter().filter(is_new).cloned().collect();
        drop(self.put(&state, networks(&new)));
        (is_news, true)
    }

    /// Lets those in whose time is over at `now_ms`.
    pub(super) fn let_in(&self, now_ms: u64) -> Vec<BlockedEntry> {
        let (over, can_keep) = {
            let mut state = self.kept.state();
            let (left, over) = blocked_until_now(state.blocked(), now_ms);
            if over.is_empty() {
                return over;
            }
            state.hold_blocked(left);
            drop(self.put(&state, Networks::default()));
            (over, state.fault().is_none())
        };
        if can_keep
            && let Err(unkept) = self.kept.catch_up_blocked()
            // Another node has been first with it.
            && !unkept.is_conflict
        {
            events::overlay_behind(&unkept.reason);
        }
        over
    }
}
