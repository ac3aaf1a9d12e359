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

use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ipnet::IpNet;
use tokio::sync::{oneshot, watch};
use xxhash_rust::xxh3::xxh3_128;

use super::begun::now_ms;
use super::by_hand::GLANCE;
use super::kept::{KeptOverlay, Unkept};
use super::running::RunningConfig;
use crate::access::Networks;
use crate::events;
use crate::overlay::blocked::{blocked_until_now, networks, next_let_in};
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
    shown: watch::Sender<Arc<[BlockedEntry]>>,
}

/// What each worker has cut, once it has.
type Answers = Vec<oneshot::Receiver<usize>>;

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
    fn put(&self, kept: &KeptOverlay, cut: Networks) -> Answers {
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

    fn block(&self, ask: BlockAsk) -> Result<(BlockedEntry, Answers), BlockFault> {
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

    fn unblock(&self, network: IpNet) -> Result<(BlockedEntry, Answers), BlockFault> {
        let mut kept = self.kept();
        let (blocked, entry) = unblock(kept.blocked(), network).map_err(BlockFault::Declined)?;
        let next = kept.next_block();
        kept.keep_blocked(blocked, next).map_err(BlockFault::Unkept)?;
        Ok((entry, self.put(&kept, Networks::default())))
    }

    /// Lets those in whose time is over at `now_ms`.
    fn let_in(&self, now_ms: u64) -> Vec<BlockedEntry> {
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

impl RunningConfig {
    /// Who is kept out, by id.
    #[must_use]
    pub fn blocked(&self) -> Arc<[BlockedEntry]> {
        Arc::clone(&self.blocks.shown.borrow())
    }

    /// The same, as it is shown now.
    #[must_use]
    pub fn blocked_reports(&self) -> Vec<BlockedReport> {
        let now = now_ms();
        self.blocked().iter().map(|entry| BlockedReport::of(entry, now)).collect()
    }

    /// Keeps somebody out, and logs it: when this returns he is out on all workers. Called inside of the control runtime.
    ///
    /// # Errors
    /// Nothing has changed.
    pub async fn block(&self, ask: BlockAsk) -> Result<BlockOutcome, BlockFault> {
        let author = ask.author.to_string();
        let (entry, answers) = self.do_at_once(move |blocks| blocks.block(ask)).await?;
        let report = BlockedReport::of(&entry, now_ms());
        let cut = all(answers).await;
        let line = report.to_string();
        let line = line.strip_prefix("! blocked ").unwrap_or(&line);
        events::blocked(&author, &entry.network.to_string(), line, cut);
        Ok(BlockOutcome { report, cut })
    }

    /// Lets somebody in again, and logs it. Called inside of the control runtime.
    ///
    /// # Errors
    /// Nothing has changed.
    pub async fn unblock(&self, network: IpNet, author: &Author) -> Result<BlockedReport, BlockFault> {
        let (entry, answers) = self.do_at_once(move |blocks| blocks.unblock(network)).await?;
        all(answers).await;
        events::unblocked(&author.to_string(), &entry.network.to_string(), &entry.to_string());
        Ok(BlockedReport::of(&entry, now_ms()))
    }

    async fn do_at_once<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Blocks) -> Result<T, BlockFault> + Send + 'static,
    ) -> Result<T, BlockFault> {
        let blocks = Arc::clone(&self.blocks);
        // At its own priority, and not in the background: somebody is to be out.
        let done = tokio::task::spawn_blocking(move || work(&blocks)).await;
        done.unwrap_or_else(|error| {
            Err(BlockFault::Unkept(Unkept { reason: error.to_string(), is_full: false }))
        })
    }

    /// Lets in whose time is over, whenever somebody's is; ends itself never.
    pub(super) async fn let_in_in_time(&self) {
        let mut changes = self.blocks.shown.subscribe();
        loop {
            let due = next_let_in(&changes.borrow_and_update());
            let wait = due.map_or(GLANCE, |due| Duration::from_millis(due.saturating_sub(now_ms())));
            tokio::select! {
                () = tokio::time::sleep(wait.min(GLANCE)) => {
                    let blocks = Arc::clone(&self.blocks);
                    let over = tokio::task::spawn_blocking(move || blocks.let_in(now_ms())).await;
                    over.iter().flatten().for_each(|entry| events::let_in(&entry.to_string()));
                }
                changed = changes.changed() => if changed.is_err() { return },
            }
        }
    }

    /// As [`Reloader::digest`](super::Reloader::digest), and who is kept out.
    #[must_use]
    pub fn digest(&self) -> String {
        let (state, blocked) = (self.reloader.digest(), self.blocked());
        if blocked.is_empty() {
            return state;
        }
        format!("{:032x}", xxh3_128(format!("{state} {blocked:?}").as_bytes()))
    }

    /// The trusted proxy of the config in force that has addresses in `network`.
    #[must_use]
    pub fn proxy_in(&self, network: IpNet) -> Option<IpNet> {
        let by_hand = self.by_hand();
        let mut proxies = by_hand.file.config.trusted_proxies.iter();
        proxies.find(|proxy| network.contains(*proxy) || proxy.contains(&network)).copied()
    }
}

/// Waits for all; says how many were cut.
async fn all(answers: Answers) -> usize {
    let mut cut = 0;
    for answer in answers {
        // Of a worker that has ended nothing is left.
        cut += answer.await.unwrap_or_default();
    }
    cut
}

/// Whether `address` is one of `network`'s, in either form.
#[must_use]
pub fn is_in(address: IpAddr, network: IpNet) -> bool {
    network.contains(&address.to_canonical())
}
