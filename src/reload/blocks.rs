//! Who is kept out at run time: changed without a config being put into force, and without a turn, because a turn may take a second.
//!
//! Invariants:
//!
//! 1. All that belongs to a change is done in one go, under the lock of what is kept: it is kept, the table of all that is blocked is
//!    made, shown, and sent to every worker. So the tables come in the order of the changes, and the last one is that of the journal.
//! 2. It is kept before a worker is told: whoever was told that it is done finds it done after a crash. Who is let in again by time is let
//!    in first: a crash in between finds it over.
//! 3. Whoever no longer waits does not keep it from being done: it is done by a thread that nobody can stop.
//! 4. It is answered when every worker has taken the table and told to end what is to be cut.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ipnet::IpNet;
use tokio::sync::{oneshot, watch};

use super::begun::now_ms;
use super::kept::{KeptOverlay, Unkept};
use crate::access::Networks;
use crate::events;
use crate::overlay::blocked::{blocked_until_now, networks};
use crate::overlay::{Author, BlockDeclined, BlockWish, BlockedEntry, BlockedReport, block, unblock};
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
}

/// What is blocked, and those who keep it out.
pub(super) struct Blocks {
    kept: Arc<Mutex<KeptOverlay>>,
    workers: Vec<ChangeSender>,
    /// For who looks at it.
    pub(super) shown: watch::Sender<Arc<[BlockedEntry]>>,
}

/// What each worker has cut, once it has.
pub(super) type CutCounts = Vec<oneshot::Receiver<usize>>;

impl Blocks {
    pub(super) fn new(kept: Arc<Mutex<KeptOverlay>>, workers: Vec<ChangeSender>) -> Blocks {
        let blocked = kept.lock().unwrap_or_else(PoisonError::into_inner).blocked().into();
        Blocks { kept, workers, shown: watch::Sender::new(blocked) }
    }

    fn kept(&self) -> MutexGuard<'_, KeptOverlay> {
        // Each step is done or not done.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has all workers keep out what is blocked now, and cut what those in `cut` have under way.
    fn put(&self, kept: &KeptOverlay, cut: Networks) -> CutCounts {
        let (table, cut) = (Arc::new(networks(kept.blocked())), Arc::new(cut));
        self.shown.send_replace(kept.blocked().into());
        let tell = |worker: &ChangeSender| {
            let (done, answer) = oneshot::channel();
            let order = BlockOrder { table: Arc::clone(&table), cut: Arc::clone(&cut), done };
            // A worker that has ended ends the process.
            worker.send(WorkerNews::Blocked(order)).ok().map(|()| answer)
        };
        self.workers.iter().filter_map(tell).collect()
    }

    pub(super) fn block(&self, ask: BlockAsk) -> Result<(BlockedEntry, CutCounts), BlockFault> {
        let BlockAsk { network, keep, author, lasts } = ask;
        let mut kept = self.kept();
        let at_ms = now_ms();
        let lasts = lasts.map(|span| u64::try_from(span.as_millis()).unwrap_or(u64::MAX));
        let expires_ms = lasts.map(|span| at_ms.saturating_add(span));
        let wish = BlockWish { network, keep, author, at_ms, expires_ms };
        let id = kept.next_block();
        let (blocked, entry) = block(kept.blocked(), &wish, id).map_err(BlockFault::Declined)?;
        kept.keep_blocked(blocked, id + 1).map_err(BlockFault::Unkept)?;
        let cut = if keep { Networks::default() } else { networks(std::slice::from_ref(&entry)) };
        Ok((entry, self.put(&kept, cut)))
    }

    pub(super) fn unblock(&self, network: IpNet) -> Result<(BlockedEntry, CutCounts), BlockFault> {
        let mut kept = self.kept();
        let (blocked, entry) = unblock(kept.blocked(), network).map_err(BlockFault::Declined)?;
        let next = kept.next_block();
        kept.keep_blocked(blocked, next).map_err(BlockFault::Unkept)?;
        Ok((entry, self.put(&kept, Networks::default())))
    }

    /// Lets those in whose time is over at `now_ms`.
    pub(super) fn let_in(&self, now_ms: u64) -> Vec<BlockedEntry> {
        let mut kept = self.kept();
        let (left, over) = blocked_until_now(kept.blocked(), now_ms);
        if over.is_empty() {
            return over;
        }
        kept.hold_blocked(left);
        drop(self.put(&kept, Networks::default()));
        if kept.fault().is_none()
            && let Err(unkept) = kept.catch_up_blocked()
        {
            events::overlay_behind(&unkept.reason);
        }
        over
    }
}
