//! What is written of a change: the step from one whole overlay to the next.

use std::collections::{BTreeMap, HashSet};
use std::{fmt, io};

use serde::{Deserialize, Serialize};

use crate::overlay::{BlockedEntry, OverlayEntry};
use crate::store::StoreRecord;
use crate::store::shared::Revision;

/// A step.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OverlayStep {
    /// Entries that are new, or something else than before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub put: Vec<OverlayEntry>,
    /// The ids of those that are no more.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub drop: Vec<u64>,
    /// The id that comes next.
    pub next: u64,
    /// As `put`, of those that are blocked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub block: Vec<BlockedEntry>,
    /// As `drop`, of those.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unblock: Vec<u64>,
    /// As `next`, of those; 0 where nothing ever was.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub next_block: u64,
}

/// A whole overlay as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredOverlay {
    /// The entries, by id.
    pub entries: Vec<OverlayEntry>,
    /// The id that the next one gets.
    pub next_id: u64,
    /// Who is blocked, by id.
    pub blocked: Vec<BlockedEntry>,
    /// The id that the next of them gets.
    pub next_block: u64,
}

impl Default for StoredOverlay {
    fn default() -> StoredOverlay {
        StoredOverlay { entries: Vec::new(), next_id: 1, blocked: Vec::new(), next_block: 1 }
    }
}

/// Why a change is not kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unkept {
    /// In words.
    pub reason: String,
    /// The disk has no room, or this user may have no more of it.
    pub is_full: bool,
    /// Another node was first, with something of which this one does not know yet.
    pub is_conflict: bool,
}

impl Unkept {
    /// For a reason for which nothing can be done here.
    #[must_use]
    pub fn because(reason: impl Into<String>) -> Unkept {
        Unkept { reason: reason.into(), is_full: false, is_conflict: false }
    }
}

impl From<io::Error> for Unkept {
    fn from(error: io::Error) -> Unkept {
        use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
        let is_full = matches!(error.kind(), StorageFull | QuotaExceeded | FileTooLarge);
        Unkept { is_full, ..Unkept::because(error.to_string()) }
    }
}

/// Keeps steps where others change what is stored too.
pub trait StepJournal: Send + fmt::Debug {
    /// Keeps a step on top of this generation, and gives the one that it makes. May wait for as long as others take to answer.
    ///
    /// # Errors
    /// It is not kept, as far as can be told; a conflict where there is another generation than `known`.
    fn append(&mut self, step: &OverlayStep, known: Revision) -> Result<Revision, Unkept>;
}

impl OverlayStep {
    /// From one overlay to another; `None`: nothing changes.
    #[must_use]
    pub fn between(before: &StoredOverlay, after: &StoredOverlay) -> Option<OverlayStep> {
        if before.entries == after.entries && before.blocked == after.blocked {
            return None;
        }
        let (put, drop) = differing(&before.entries, &after.entries, |entry| entry.id);
        let (block, unblock) = differing(&before.blocked, &after.blocked, |entry| entry.id);
        Some(OverlayStep { put, drop, next: after.next_id, block, unblock, next_block: after.next_block })
    }

    /// From nothing to all of it.
    #[must_use]
    pub fn whole(all: &StoredOverlay) -> OverlayStep {
        OverlayStep {
            put: all.entries.clone(),
            next: all.next_id,
            block: all.blocked.clone(),
            next_block: all.next_block,
            ..OverlayStep::default()
        }
    }

    /// As a journal has it.
    #[must_use]
    pub fn record(&self) -> StoreRecord {
        // It has texts for keys, so it can't fail.
        serde_json::to_vec(self).unwrap_or_default()
    }
}

/// What comes of all records, one after the other.
///
/// # Errors
/// One of them is not of this version.
pub fn replay(records: &[StoreRecord]) -> Result<StoredOverlay, String> {
    let (mut entries, mut blocked) = (BTreeMap::new(), BTreeMap::new());
    let (mut next_id, mut next_block) = (1, 1);
    for record in records {
        let step: OverlayStep = serde_json::from_slice(record)
            .map_err(|error| format!("the journal has what this version does not know: {error}"))?;
        for id in step.drop {
            entries.remove(&id);
        }
        for id in step.unblock {
            blocked.remove(&id);
        }
        entries.extend(step.put.into_iter().map(|entry| (entry.id, entry)));
        blocked.extend(step.block.into_iter().map(|entry| (entry.id, entry)));
        (next_id, next_block) = (next_id.max(step.next), next_block.max(step.next_block));
    }
    let (entries, blocked): (Vec<OverlayEntry>, Vec<BlockedEntry>) =
        (entries.into_values().collect(), blocked.into_values().collect());
    let next_id = entries.last().map_or(next_id, |last| next_id.max(last.id + 1));
    let next_block = blocked.last().map_or(next_block, |last| next_block.max(last.id + 1));
    Ok(StoredOverlay { entries, next_id, blocked, next_block })
}

/// What of `after` is new or something else, and what of `before` is no more.
fn differing<T: Clone + PartialEq>(before: &[T], after: &[T], id: impl Fn(&T) -> u64) -> (Vec<T>, Vec<u64>) {
    let old: BTreeMap<u64, &T> = before.iter().map(|entry| (id(entry), entry)).collect();
    let ids: HashSet<u64> = after.iter().map(&id).collect();
    let put = after.iter().filter(|entry| old.get(&id(entry)) != Some(entry)).cloned().collect();
    (put, old.into_keys().filter(|id| !ids.contains(id)).collect())
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde has it so")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}
