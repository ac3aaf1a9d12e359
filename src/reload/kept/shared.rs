//! Changes by hand and blocks as rows that all nodes of a cluster share.
//!
//! Invariants:
//!
//! 1. Every change of any of these rows is also one of `META`, under the condition that META is what it was when this node learned of the rows. So two nodes never
//!    change them at once: one is first, and the other learns of that before it tries again.
//! 2. A change of entries is also under the condition that the config of all is the one that this node has in force: an entry is judged by what the config says, and
//!    a node that is behind would end what is not over.
//! 3. What this version can't read stays as it is: steps name what they change.

use std::fmt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Serialize};
use tokio::runtime::Handle;

use super::step::{OverlayStep, StepJournal, StoredOverlay, Unkept, replay};
use crate::cluster::node::ClusterNode;
use crate::cluster::view::KnownRows;
use crate::cluster::{revision, rows};
use crate::overlay::{BlockedEntry, OverlayEntry};
use crate::store::shared::{Committed, Revision, RowChange, RowCondition, StoreFault, Transaction};

/// The row that is changed with each of the others.
const META: &str = "overlay/meta";
const ENTRIES: &str = "overlay/entry/";
const BLOCKS: &str = "overlay/block/";

/// `overlay/meta`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct OverlayMetaRow {
    next: u64,
    next_block: u64,
}

/// What all nodes share of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SharedOverlay {
    /// What it is.
    pub stored: StoredOverlay,
    /// The revision of its latest change; 0: there was none.
    pub generation: Revision,
}

impl SharedOverlay {
    /// What these rows say.
    #[must_use]
    pub fn of(known: &KnownRows) -> SharedOverlay {
        let mut entries: Vec<OverlayEntry> = known.all(ENTRIES).map(|(_, entry)| entry).collect();
        let mut blocked: Vec<BlockedEntry> = known.all(BLOCKS).map(|(_, entry)| entry).collect();
        entries.sort_by_key(|entry| entry.id);
        blocked.sort_by_key(|entry| entry.id);
        let meta = known.get(META).and_then(|row| rows::read::<OverlayMetaRow>(&row.value));
        let OverlayMetaRow { next: next_id, next_block } =
            meta.unwrap_or(OverlayMetaRow { next: 1, next_block: 1 });
        let stored = StoredOverlay { entries, next_id, blocked, next_block };
        SharedOverlay { stored, generation: known.changed(META) }
    }

    /// The revision of the latest change, as these rows say.
    #[must_use]
    pub fn generation(known: &KnownRows) -> Revision {
        known.changed(META)
    }

    /// What this node has kept at this place for a start without a store.
    #[must_use]
    pub fn read(place: &Path) -> Option<SharedOverlay> {
        let stored = replay(&[std::fs::read(place).ok()?]).ok()?;
        Some(SharedOverlay { stored, generation: 0 })
    }

    /// As it is kept there.
    #[must_use]
    pub fn text(&self) -> Vec<u8> {
        OverlayStep::whole(&self.stored).record()
    }
}

/// What the journal needs of the process, once it runs.
#[derive(Default)]
pub struct OverlayLine {
    control: OnceLock<Handle>,
    config: AtomicU64,
}

impl fmt::Debug for OverlayLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OverlayLine(config of {})", self.config.load(Ordering::Relaxed))
    }
}

impl OverlayLine {
    /// Changes are sent from this runtime.
    pub fn connect(&self, control: &Handle) {
        let _ = self.control.set(control.clone());
    }

    /// The config in force is that of this change of `config/current`; 0: of none.
    pub fn has_config_of(&self, changed: Revision) {
        self.config.store(changed, Ordering::Release);
    }
}

/// Keeps steps where all nodes see them.
#[derive(Debug)]
pub struct SharedJournal {
    /// This node.
    pub node: Arc<ClusterNode>,
    /// What it needs of the process.
    pub line: Arc<OverlayLine>,
}

impl StepJournal for SharedJournal {
    // Not called from a runtime.
    fn append(&mut self, step: &OverlayStep, known: Revision) -> Result<Revision, Unkept> {
        let control =
            self.line.control.get().ok_or_else(|| Unkept::because("this node has not joined yet"))?;
        let meta = OverlayMetaRow { next: step.next, next_block: step.next_block.max(1) };
        let entry = |id: u64| format!("{ENTRIES}{id:010}");
        let block = |id: u64| format!("{BLOCKS}{id:010}");
        let mut changes: Vec<RowChange> = Vec::new();
        changes.extend(step.put.iter().map(|one| RowChange::put(entry(one.id), rows::write(one))));
        changes.extend(step.drop.iter().map(|id| RowChange::drop(entry(*id))));
        let mut conditions = Vec::new();
        if !changes.is_empty() {
            let changed = self.line.config.load(Ordering::Acquire);
            conditions.push(RowCondition { name: revision::CURRENT.to_owned(), changed });
        }
        changes.extend(step.block.iter().map(|one| RowChange::put(block(one.id), rows::write(one))));
        changes.extend(step.unblock.iter().map(|id| RowChange::drop(block(*id))));
        // What ends may end in parts, and what is stored anew; what somebody wants is done as a whole or not at all.
        if step.put.len() + step.block.len() >= Transaction::MOST && known > 0 {
            let most = Transaction::MOST - 1;
            return Err(Unkept::because(format!("a cluster takes at most {most} changes at once")));
        }
        let mut at = known;
        loop {
            let rest = changes.split_off(changes.len().min(Transaction::MOST - 1));
            changes.push(RowChange::put(META, rows::write_over(&meta, self.node.view().rows.value(META))));
            let mut conditions = conditions.clone();
            conditions.push(RowCondition { name: META.to_owned(), changed: at });
            at = match control.block_on(self.node.commit(Transaction { conditions, changes })) {
                Ok(Committed::Done(revision)) => revision,
                Ok(Committed::Conflict) => {
                    let why = "another node has changed something at the same moment, or this one has not taken the config of all; ask again";
                    return Err(Unkept { is_conflict: true, ..Unkept::because(why) });
                }
                Err(StoreFault::Full(why)) => return Err(Unkept { is_full: true, ..Unkept::because(why) }),
                Err(fault) => {
                    return Err(Unkept::because(format!(
                        "the cluster can't be told: {fault}; with `local` (`--local`) it is done on this node alone, until it is one of the cluster again"
                    )));
                }
            };
            if rest.is_empty() {
                return Ok(at);
            }
            changes = rest;
        }
    }
}
