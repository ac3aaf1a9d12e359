//! Who is kept out, as those ask it who have the config that runs. What is done stands in [`blocks`](super::blocks).

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use ipnet::IpNet;
use tokio::time::Instant;
use xxhash_rust::xxh3::xxh3_128;

use super::begun::now_ms;
use super::blocks::{BlockAsk, BlockFault, BlockOutcome, Blocks, CutCounts};
use super::by_hand::{GLANCE, TRYING};
use super::kept::{StoreReach, Unkept};
use super::running::RunningConfig;
use crate::events;
use crate::overlay::blocked::next_let_in;
use crate::overlay::{Author, BlockedEntry, BlockedReport};

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
        self.may_reach(ask.reach).map_err(|()| BlockFault::Shared)?;
        let author = ask.author.to_string();
        let (entry, answers) = self.do_at_once(move |blocks| blocks.block(ask.clone())).await?;
        let report = BlockedReport::of(&entry, now_ms());
        let cut = all(answers).await;
        events::blocked(&author, &entry.network.to_string(), &report.words(), cut);
        Ok(BlockOutcome { report, cut })
    }

    /// Lets somebody in again, and logs it. Called inside of the control runtime.
    ///
    /// # Errors
    /// Nothing has changed.
    pub async fn unblock(
        &self,
        network: IpNet,
        author: &Author,
        reach: StoreReach,
    ) -> Result<BlockedReport, BlockFault> {
        self.may_reach(reach).map_err(|()| BlockFault::Shared)?;
        let (entry, answers) = self.do_at_once(move |blocks| blocks.unblock(network, reach)).await?;
        all(answers).await;
        events::unblocked(&author.to_string(), &entry.network.to_string(), &entry.to_string());
        Ok(BlockedReport::of(&entry, now_ms()))
    }

    async fn do_at_once<T: Send + 'static>(
        &self,
        work: impl Fn(&Blocks) -> Result<T, BlockFault> + Send + Sync + 'static,
    ) -> Result<T, BlockFault> {
        let (work, _together) = (Arc::new(work), self.blocking.read().await);
        let begun = Instant::now();
        loop {
            let seen = self.overlay_seen();
            match self.do_once(&work).await {
                Err(BlockFault::Unkept(unkept)) if unkept.is_conflict && begun.elapsed() < TRYING => {
                    // What others have changed meanwhile is in force first.
                    if !self.learn_overlay(seen).await {
                        return Err(BlockFault::Unkept(unkept));
                    }
                }
                done => return done,
            }
        }
    }

    async fn do_once<T: Send + 'static>(
        &self,
        work: &Arc<impl Fn(&Blocks) -> Result<T, BlockFault> + Send + Sync + 'static>,
    ) -> Result<T, BlockFault> {
        let (blocks, work) = (Arc::clone(&self.blocks), Arc::clone(work));
        // At its own priority, and not in the background: somebody is to be out.
        let done = tokio::task::spawn_blocking(move || work(&blocks)).await;
        done.unwrap_or_else(|error| Err(Unkept::because(error.to_string()).into()))
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
async fn all(answers: CutCounts) -> usize {
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
