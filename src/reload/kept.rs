//! The entries of the overlay, and what the store has of them.
//!
//! Invariants:
//!
//! 1. A record of the store is a step from one whole overlay to the next: what is put, what is dropped, and which id comes next. So a
//!    crash leaves one of the two, also where a change has several parts.
//! 2. `stored` is what the store would load now. What is in force and not stored yet, because the disk was full when a file edit ended
//!    an entry, is a part of the next record.
//! 3. Ids are never given twice, also not to those who come after a crash.
//! 4. What is `paused` is stored and not in force: entries that only the text on trial has ended. A crash is a rollback, and they
//!    are there again. No entry in force is of the same object and field as one of them.
//! 5. What is `blocked` has nothing to do with any file: it is changed outside of the turns of configs, in one go under the lock of this
//!    object. So its numbers are its own, and no turn that goes on meanwhile takes back what it finds there.

#[cfg(test)]
mod model;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashSet};
use std::io;

use serde::{Deserialize, Serialize};

use crate::config::Loaded;
use crate::overlay::{BlockedEntry, OverlayEntry, Reconciled, reconcile};
use crate::store::{Store, StoreRecord};

/// A journal of fewer bytes is not worth to be rewritten, but for tests.
const WORTH: u64 = if cfg!(test) { 512 } else { 64 * 1024 };
/// How many times as long as it would be anew a journal becomes.
const SLACK: u64 = 4;

/// One record.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Step {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    put: Vec<OverlayEntry>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    drop: Vec<u64>,
    next: u64,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    block: Vec<BlockedEntry>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    unblock: Vec<u64>,
    /// As `next`, of those that are blocked; 0 where nothing ever was.
    #[serde(default, skip_serializing_if = "is_zero")]
    next_block: u64,
}

/// Why a change is not kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unkept {
    /// In words.
    pub reason: String,
    /// The disk has no room, or this user may have no more of it.
    pub is_full: bool,
}

/// What was found in a store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Bytes at its end that were no whole record.
    pub torn: usize,
    /// Records that are not what was written.
    pub damaged: usize,
}

/// The entries in force, and the store.
#[derive(Debug)]
pub struct KeptOverlay {
    entries: Vec<OverlayEntry>,
    paused: Vec<OverlayEntry>,
    stored: Vec<OverlayEntry>,
    next_id: u64,
    blocked: Vec<BlockedEntry>,
    stored_blocked: Vec<BlockedEntry>,
    next_block: u64,
    /// `Err`: nothing can be kept, and why.
    store: Result<Box<dyn Store>, String>,
}

impl KeptOverlay {
    /// One that has nothing and keeps nothing, for this reason.
    #[must_use]
    pub fn unkept(reason: impl Into<String>) -> KeptOverlay {
        KeptOverlay::of(Replayed::default(), Err(reason.into()))
    }

    /// What `store` has.
    #[must_use]
    pub fn load(mut store: Box<dyn Store>) -> (KeptOverlay, Found) {
        let read = store
            .load()
            .map_err(|error| error.to_string())
            .and_then(|kept| Ok((replay(&kept.records)?, Found { torn: kept.torn, damaged: kept.damaged })));
        match read {
            Ok((replayed, found)) => (KeptOverlay::of(replayed, Ok(store)), found),
            Err(reason) => (KeptOverlay::unkept(reason), Found::default()),
        }
    }

    fn of(replayed: Replayed, store: Result<Box<dyn Store>, String>) -> KeptOverlay {
        let Replayed { entries, next_id, blocked, next_block } = replayed;
        let (stored, stored_blocked) = (entries.clone(), blocked.clone());
        let paused = Vec::new();
        KeptOverlay { entries, paused, stored, next_id, blocked, stored_blocked, next_block, store }
    }

    /// What is blocked, by id.
    #[must_use]
    pub fn blocked(&self) -> &[BlockedEntry] {
        &self.blocked
    }

    /// The id that the next one gets that is blocked.
    #[must_use]
    pub fn next_block(&self) -> u64 {
        self.next_block
    }

    /// Keeps `blocked` in the place of what is blocked. When this returns it is kept.
    ///
    /// # Errors
    /// Nothing has changed.
    pub fn keep_blocked(&mut self, blocked: Vec<BlockedEntry>, next_block: u64) -> Result<(), Unkept> {
        let before = std::mem::replace(&mut self.blocked, blocked);
        let next_before = std::mem::replace(&mut self.next_block, next_block);
        // With the entries as they are in the store: what of theirs is not there yet has its own time.
        let (stored, next_id) = (self.stored.clone(), self.next_id);
        self.store(&stored, next_id).inspect_err(|_| {
            (self.blocked, self.next_block) = (before, next_before);
        })
    }

    /// Keeps what is blocked, if it is not kept yet.
    ///
    /// # Errors
    /// It is still not kept.
    pub fn catch_up_blocked(&mut self) -> Result<(), Unkept> {
        let (stored, next_id) = (self.stored.clone(), self.next_id);
        self.store(&stored, next_id)
    }

    /// These are blocked, kept or not.
    pub fn hold_blocked(&mut self, blocked: Vec<BlockedEntry>) {
        self.blocked = blocked;
    }

    /// The entries in force, by id.
    #[must_use]
    pub fn entries(&self) -> &[OverlayEntry] {
        &self.entries
    }

    /// Those that only a text on trial has ended, by id.
    #[must_use]
    pub fn paused(&self) -> &[OverlayEntry] {
        &self.paused
    }

    /// Those in force and those that are paused, by id.
    #[must_use]
    pub fn all(&self) -> Vec<OverlayEntry> {
        together(&self.entries, &self.paused)
    }

    /// The id that the next entry gets.
    #[must_use]
    pub fn next_id(&self) -> u64 {
        self.next_id
    }

    /// Why nothing can be kept.
    #[must_use]
    pub fn fault(&self) -> Option<&str> {
        self.store.as_ref().err().map(String::as_str)
    }

    /// Keeps `entries` in the place of those there are, and these paused ones. When this returns they are kept.
    ///
    /// # Errors
    /// Nothing has changed.
    pub fn keep(
        &mut self,
        entries: &[OverlayEntry],
        paused: &[OverlayEntry],
        next_id: u64,
    ) -> Result<(), Unkept> {
        self.store(&together(entries, paused), next_id)?;
        self.pause(paused);
        self.hold(entries, next_id);
        Ok(())
    }

    /// What comes of the entries when `file` is read, and which are paused then. A text on trial is not the file: what only that ends is
    /// there again in its own time.
    #[must_use]
    pub fn read(&self, file: &Loaded, now_ms: u64, is_on_trial: bool) -> (Reconciled, Vec<OverlayEntry>) {
        if !is_on_trial {
            return (reconcile(&self.all(), file, now_ms), Vec::new());
        }
        let reconciled = reconcile(&self.entries, file, now_ms);
        let paused = [self.paused.clone(), reconciled.ended_by_file()].concat();
        (reconciled, paused)
    }

    /// The paused entries are these.
    pub fn pause(&mut self, paused: &[OverlayEntry]) {
        self.paused = paused.to_vec();
    }

    /// The entries in force are these, kept or not.
    pub fn hold(&mut self, entries: &[OverlayEntry], next_id: u64) {
        self.entries = entries.to_vec();
        self.next_id = self.next_id.max(next_id);
    }

    /// Keeps what is in force, if it is not kept yet.
    ///
    /// # Errors
    /// It is still not kept.
    pub fn catch_up(&mut self) -> Result<(), Unkept> {
        let all = self.all();
        self.store(&all, self.next_id)
    }

    /// Lets go of the store, for this reason.
    pub fn close(&mut self, reason: &str) {
        self.store = Err(reason.to_owned());
    }

    fn store(&mut self, entries: &[OverlayEntry], next_id: u64) -> Result<(), Unkept> {
        let unkept = |error: &io::Error| Unkept { reason: error.to_string(), is_full: is_full(error) };
        let store =
            self.store.as_mut().map_err(|reason| Unkept { reason: reason.clone(), is_full: false })?;
        if self.stored == entries && self.stored_blocked == self.blocked {
            return Ok(());
        }
        let (put, drop) = step(&self.stored, entries, |entry| entry.id);
        let (block, unblock) = step(&self.stored_blocked, &self.blocked, |entry| entry.id);
        let next_block = self.next_block;
        let step = Step { put, drop, next: next_id, block, unblock, next_block };
        store.append(&json(&step)).map_err(|error| unkept(&error))?;
        self.stored = entries.to_vec();
        self.stored_blocked.clone_from(&self.blocked);
        if store.size() > WORTH {
            let (put, block) = (entries.to_vec(), self.blocked.clone());
            let whole = json(&Step { put, block, next: next_id, next_block, ..Step::default() });
            if store.size() / SLACK > whole.len() as u64 {
                // The old one is as good, if longer.
                let _ = store.compact(&[whole]);
            }
        }
        Ok(())
    }
}

fn together(entries: &[OverlayEntry], paused: &[OverlayEntry]) -> Vec<OverlayEntry> {
    let mut all = [entries, paused].concat();
    all.sort_by_key(|entry| entry.id);
    all
}

/// Whether there is no room for it.
pub(super) fn is_full(error: &io::Error) -> bool {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded | FileTooLarge)
}

/// The step from `before` to `after`: what is put, and what is dropped.
fn step<T: Clone + PartialEq>(before: &[T], after: &[T], id: impl Fn(&T) -> u64) -> (Vec<T>, Vec<u64>) {
    let old: BTreeMap<u64, &T> = before.iter().map(|entry| (id(entry), entry)).collect();
    let ids: HashSet<u64> = after.iter().map(&id).collect();
    let put = after.iter().filter(|entry| old.get(&id(entry)) != Some(entry)).cloned().collect();
    (put, old.into_keys().filter(|id| !ids.contains(id)).collect())
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde has it so")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

fn json(step: &Step) -> StoreRecord {
    // It has texts for keys, so it can't fail.
    serde_json::to_vec(step).unwrap_or_default()
}

/// What comes of all records, one after the other.
struct Replayed {
    entries: Vec<OverlayEntry>,
    next_id: u64,
    blocked: Vec<BlockedEntry>,
    next_block: u64,
}

impl Default for Replayed {
    fn default() -> Replayed {
        Replayed { entries: Vec::new(), next_id: 1, blocked: Vec::new(), next_block: 1 }
    }
}

fn replay(records: &[StoreRecord]) -> Result<Replayed, String> {
    let (mut entries, mut blocked) = (BTreeMap::new(), BTreeMap::new());
    let (mut next_id, mut next_block) = (1, 1);
    for record in records {
        let step: Step = serde_json::from_slice(record)
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
    Ok(Replayed { entries, next_id, blocked, next_block })
}
