//! The entries of the overlay, and what is stored of them.
//!
//! Two locks. The one of the **journal** is held by whoever changes what is stored, from looking at what there is until it is known to be stored; that may
//! take as long as a disk or other machines take, so only threads wait for it that may. The one of the **state** is held for moments only, by anybody; whoever has
//! the one of the state never waits for the other.
//!
//! Invariants:
//!
//! 1. A record of the journal is a step from one whole overlay to the next: what is put, what is dropped, and which id comes next. So a
//!    crash leaves one of the two, also where a change has several parts.
//! 2. `stored` is what would be loaded now, as far as this process knows. What is in force and not stored yet, because the disk was full when a file edit
//!    ended an entry, is a part of the next record.
//! 3. Ids are never given twice, also not to those who come after a crash.
//! 4. What is `paused` is stored and not in force: entries that only the text on trial has ended. A crash is a rollback, and they
//!    are there again. No entry in force is of the same object and field as one of them.
//! 5. What is `blocked` has nothing to do with any file: it is changed outside of the turns of configs. So its numbers are its own, and no turn that goes
//!    on meanwhile takes back what it finds there.
//! 6. `generation` grows with each change of `stored`: by one of our own, or to one that others have made ([`OverlayState::adopt`]). A step is stored only on top
//!    of the generation that it was made of, so nothing that others have stored is lost; and one that was adopted before its own writer came back
//!    is not done again.
//! 7. What a node changes for itself, while nobody can be told, lies over what all have ([`StoreReach::Own`]). Nothing is stored for all meanwhile, and all of it is
//!    taken back by [`KeptOverlay::end_own`] before the node goes by what all have again.

#[cfg(test)]
mod model;
pub mod shared;
pub mod step;
#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::config::Loaded;
use crate::overlay::{BlockedEntry, OverlayEntry, Reconciled, reconcile};
use crate::store::Store;
use crate::store::shared::Revision;
use shared::SharedOverlay;
use step::{OverlayStep, StepJournal, StoredOverlay, replay};

pub use step::Unkept;

/// A journal of fewer bytes is not worth to be rewritten, but for tests.
const WORTH: u64 = if cfg!(test) { 512 } else { 64 * 1024 };
/// How many times as long as it would be anew a journal becomes.
const SLACK: u64 = 4;

/// What was found in a store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Bytes at its end that were no whole record.
    pub torn: usize,
    /// Records that are not what was written.
    pub damaged: usize,
}

/// The entries in force, and where they are stored.
#[derive(Debug)]
pub struct KeptOverlay {
    state: Mutex<OverlayState>,
    journal: Mutex<Journal>,
}

/// What is in force, and what is stored of it.
#[derive(Debug)]
pub struct OverlayState {
    entries: Vec<OverlayEntry>,
    paused: Vec<OverlayEntry>,
    blocked: Vec<BlockedEntry>,
    next_id: u64,
    next_block: u64,
    stored: StoredOverlay,
    generation: Revision,
    /// Others change what is stored too.
    is_shared: bool,
    /// What is stored is not known.
    is_forgotten: bool,
    /// What others have stored too, beside what this node has changed for itself since; `None`: nothing.
    common: Option<StoredOverlay>,
    /// Why nothing can be kept.
    fault: Option<String>,
}

/// For whom something is changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StoreReach {
    /// For all who share it.
    #[default]
    All,
    /// For this node alone, as long as it can't tell the others; where there are no others, that is the same.
    Own,
}

/// Where steps are kept.
#[derive(Debug)]
enum Journal {
    /// On this machine.
    Local(Box<dyn Store>),
    /// Where all nodes of a cluster see them.
    Shared(Box<dyn StepJournal>),
    /// Nowhere.
    Closed,
}

impl Journal {
    /// Keeps a step on top of this generation; says which one it makes.
    fn append(&mut self, step: &OverlayStep, known: Revision) -> Result<Revision, Unkept> {
        match self {
            Journal::Local(store) => store.append(&step.record()).map(|()| known + 1).map_err(Unkept::from),
            Journal::Shared(shared) => shared.append(step, known),
            Journal::Closed => Err(Unkept::because("nothing is kept any more")),
        }
    }

    /// Makes it as short as it can be, where it is much longer.
    fn shorten(&mut self, stored: &StoredOverlay) {
        let Journal::Local(store) = self else { return };
        if store.size() > WORTH {
            let whole = OverlayStep::whole(stored).record();
            if store.size() / SLACK > whole.len() as u64 {
                // The old one is as good, if longer.
                let _ = store.compact(&[whole]);
            }
        }
    }
}

impl KeptOverlay {
    /// One that has nothing and keeps nothing, for this reason.
    #[must_use]
    pub fn unkept(reason: impl Into<String>) -> KeptOverlay {
        let kept = KeptOverlay::of(StoredOverlay::default(), Journal::Closed);
        kept.state().fault = Some(reason.into());
        kept
    }

    /// What `store` has.
    #[must_use]
    pub fn load(mut store: Box<dyn Store>) -> (KeptOverlay, Found) {
        let read = store
            .load()
            .map_err(|error| error.to_string())
            .and_then(|kept| Ok((replay(&kept.records)?, Found { torn: kept.torn, damaged: kept.damaged })));
        match read {
            Ok((stored, found)) => (KeptOverlay::of(stored, Journal::Local(store)), found),
            Err(reason) => (KeptOverlay::unkept(reason), Found::default()),
        }
    }

    /// What all nodes share, as this one knows it.
    #[must_use]
    pub fn shared(journal: Box<dyn StepJournal>, begun: SharedOverlay) -> KeptOverlay {
        let kept = KeptOverlay::of(begun.stored, Journal::Shared(journal));
        {
            let mut state = kept.state();
            (state.generation, state.is_shared) = (begun.generation, true);
        }
        kept
    }

    fn of(stored: StoredOverlay, journal: Journal) -> KeptOverlay {
        let StoredOverlay { entries, next_id, blocked, next_block } = stored.clone();
        let state = OverlayState {
            entries,
            paused: Vec::new(),
            blocked,
            next_id,
            next_block,
            stored,
            generation: 0,
            is_shared: false,
            is_forgotten: false,
            common: None,
            fault: None,
        };
        KeptOverlay { state: Mutex::new(state), journal: Mutex::new(journal) }
    }

    /// What is in force and what is stored. To be let go of at once.
    pub fn state(&self) -> MutexGuard<'_, OverlayState> {
        // Each step is done or not done.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps `entries` in the place of those there are, and these paused ones. When this returns they are kept. May wait.
    ///
    /// # Errors
    /// Nothing has changed.
    pub fn keep(
        &self,
        entries: &[OverlayEntry],
        paused: &[OverlayEntry],
        next_id: u64,
        reach: StoreReach,
    ) -> Result<(), Unkept> {
        let wanted = |state: &OverlayState| {
            let (blocked, next_block) = (state.blocked.clone(), state.next_block);
            let entries = state.as_stored(merged(entries, paused));
            Ok((StoredOverlay { entries, next_id, blocked, next_block }, ()))
        };
        self.store(reach, wanted, |state, (), is_adopted| {
            if !is_adopted {
                state.pause(paused);
                state.hold(entries, next_id);
            }
        })
    }

    /// Keeps what `plan` makes of what is blocked: all that is blocked then, and the id that comes next. When it is kept and in force, `done` is called,
    /// before anything else changes. May wait.
    ///
    /// # Errors
    /// Nothing has changed.
    pub fn change_blocked<W, T, E: From<Unkept>>(
        &self,
        reach: StoreReach,
        plan: impl FnOnce(&OverlayState) -> Result<(Vec<BlockedEntry>, u64, W), E>,
        done: impl FnOnce(&OverlayState, W) -> T,
    ) -> Result<T, E> {
        let wanted = |state: &OverlayState| {
            let (blocked, next_block, with) = plan(state)?;
            // With the entries as they are stored: what of theirs is not there yet has its own time.
            let (entries, next_id) = (state.stored.entries.clone(), state.next_id);
            let stored = StoredOverlay { entries, next_id, blocked: blocked.clone(), next_block };
            Ok((stored, (state.blocked.clone(), blocked, next_block, with)))
        };
        self.store(reach, wanted, |state, (before, mut blocked, next_block, with), is_adopted| {
            if !is_adopted {
                // Whose time was over meanwhile is in already.
                blocked.retain(|entry| !before.contains(entry) || state.blocked.contains(entry));
                state.blocked = blocked;
            }
            state.next_block = state.next_block.max(next_block);
            done(state, with)
        })
    }

    /// Where others change what is stored too: ends what of it is over at `now_ms`, and what comes of it where all have `file` in force. May wait.
    ///
    /// # Errors
    /// It is not kept; another node may have done it.
    pub fn end_stored(&self, file: Option<&Loaded>, now_ms: u64) -> Result<(), Unkept> {
        let wanted = |state: &OverlayState| {
            let stored = &state.stored;
            let left: HashSet<u64> = match file {
                Some(file) => {
                    reconcile(&stored.entries, file, now_ms).entries.iter().map(|one| one.id).collect()
                }
                None => stored.entries.iter().map(|one| one.id).collect(),
            };
            let stays =
                |one: &&OverlayEntry| left.contains(&one.id) && one.expires_ms.is_none_or(|end| end > now_ms);
            // As it is stored: since when something is gone is each node's own view.
            let entries = stored.entries.iter().filter(stays).cloned().collect();
            Ok::<_, Unkept>((StoredOverlay { entries, ..stored.clone() }, ()))
        };
        self.store(StoreReach::All, wanted, |_, (), _| ())
    }

    /// Keeps what is in force, if it is not kept yet. May wait.
    ///
    /// # Errors
    /// It is still not kept.
    pub fn catch_up(&self) -> Result<(), Unkept> {
        let wanted = |state: &OverlayState| Ok((state.as_in_force(state.as_stored(state.all())), ()));
        self.store(StoreReach::All, wanted, |_, (), _| ())
    }

    /// Keeps what is blocked, if it is not kept yet. May wait.
    ///
    /// # Errors
    /// It is still not kept.
    pub fn catch_up_blocked(&self) -> Result<(), Unkept> {
        let wanted = |state: &OverlayState| Ok((state.as_in_force(state.stored.entries.clone()), ()));
        self.store(StoreReach::All, wanted, |_, (), _| ())
    }

    /// Takes back what this node has changed for itself: it goes by what all have. False: it has changed nothing.
    pub fn end_own(&self) -> bool {
        let mut state = self.state();
        let Some(common) = state.common.take() else { return false };
        state.blocked.clone_from(&common.blocked);
        state.stored = common;
        true
    }

    /// Lets go of the journal, for this reason. May wait for whoever is about to write.
    pub fn close(&self, reason: &str) {
        self.state().fault = Some(reason.to_owned());
        *self.journal.lock().unwrap_or_else(PoisonError::into_inner) = Journal::Closed;
    }

    /// Stores what `wanted` says, and tells `done` of it in the same moment in which it counts as stored; and whether that has been adopted already, with
    /// whatever others have made of it since.
    fn store<W, T, E: From<Unkept>>(
        &self,
        reach: StoreReach,
        wanted: impl FnOnce(&OverlayState) -> Result<(StoredOverlay, W), E>,
        done: impl FnOnce(&mut OverlayState, W, bool) -> T,
    ) -> Result<T, E> {
        let mut journal = self.journal.lock().unwrap_or_else(PoisonError::into_inner);
        let (stored, with, step, known) = {
            let state = self.state();
            if let Some(reason) = &state.fault {
                return Err(Unkept::because(reason.as_str()).into());
            }
            let (stored, with) = wanted(&state)?;
            if reach == StoreReach::Own && state.is_forgotten {
                // Nobody would know what to go back to.
                return Err(Unkept::because("what the cluster has of it is not known").into());
            }
            if reach == StoreReach::Own && state.is_shared {
                let mut state = state;
                let before = std::mem::replace(&mut state.stored, stored);
                state.common.get_or_insert(before);
                return Ok(done(&mut state, with, false));
            }
            if state.common.is_some() {
                let why = "this node has changes of its own (`--local`) until it is one of the cluster again";
                return Err(Unkept { is_conflict: true, ..Unkept::because(why) }.into());
            }
            let step = OverlayStep::between(&state.stored, &stored);
            if step.is_none() && state.is_forgotten {
                // It looks as if nothing changed, since nothing is known to be stored.
                let why = "what the cluster has of it is not known yet; ask again";
                return Err(Unkept { is_conflict: true, ..Unkept::because(why) }.into());
            }
            (stored, with, step, state.generation)
        };
        let at = step.map_or(Ok(known), |step| journal.append(&step, known))?;
        journal.shorten(&stored);
        let mut state = self.state();
        let is_adopted = state.generation != known;
        if !is_adopted {
            (state.stored, state.generation, state.is_forgotten) = (stored, at, false);
        }
        Ok(done(&mut state, with, is_adopted))
    }
}

impl OverlayState {
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
        merged(&self.entries, &self.paused)
    }

    /// The id that the next entry gets.
    #[must_use]
    pub fn next_id(&self) -> u64 {
        self.next_id
    }

    /// Which change of what is stored is known: where others change it too, the revision of theirs.
    #[must_use]
    pub fn generation(&self) -> Revision {
        self.generation
    }

    /// What is stored, as far as this process knows.
    #[must_use]
    pub fn stored(&self) -> &StoredOverlay {
        &self.stored
    }

    /// Whether others change what is stored too.
    #[must_use]
    pub fn is_shared(&self) -> bool {
        self.is_shared
    }

    /// Why nothing can be kept.
    #[must_use]
    pub fn fault(&self) -> Option<&str> {
        self.fault.as_deref()
    }

    /// What comes of the entries when `file` is read, and which are paused then. A text on trial is not the file: what only that ends is
    /// there again in its own time.
    #[must_use]
    pub fn read(&self, file: &Loaded, now_ms: u64, is_on_trial: bool) -> (Reconciled, Vec<OverlayEntry>) {
        if self.is_shared {
            return (reconcile(&self.basis(), file, now_ms), Vec::new());
        }
        if !is_on_trial {
            return (reconcile(&self.all(), file, now_ms), Vec::new());
        }
        let reconciled = reconcile(&self.entries, file, now_ms);
        let paused = [self.paused.clone(), reconciled.ended_by_file()].concat();
        (reconciled, paused)
    }

    /// Of which entries those in force come: where others change them too, of what is stored, since what this node alone has ended is not over; with
    /// since when something is gone, as this node knows it.
    #[must_use]
    pub fn basis(&self) -> Vec<OverlayEntry> {
        // Where nothing is known of what is stored, what is in force is all that there is.
        if !self.is_shared || self.is_forgotten {
            return self.entries.clone();
        }
        let gone = |id: u64| self.entries.iter().find(|one| one.id == id).and_then(|one| one.gone_since_ms);
        let mut all = self.stored.entries.clone();
        all.iter_mut().for_each(|one| one.gone_since_ms = one.gone_since_ms.or_else(|| gone(one.id)));
        all
    }

    /// The same without what is this node's own view where others have stored them: since when something is gone.
    fn as_stored(&self, mut entries: Vec<OverlayEntry>) -> Vec<OverlayEntry> {
        if self.is_shared {
            for entry in &mut entries {
                let stored = self.stored.entries.iter().find(|one| one.id == entry.id);
                entry.gone_since_ms = stored.and_then(|one| one.gone_since_ms);
            }
        }
        entries
    }

    /// Whether this node has changed something for itself.
    #[must_use]
    pub fn has_own(&self) -> bool {
        self.common.is_some()
    }

    /// Nothing is stored, and that is known.
    pub fn nothing_stored(&mut self) {
        self.is_forgotten = false;
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

    /// Others have stored this: what is blocked is in force, the entries are as soon as they are held. Says whether it was news.
    pub fn adopt(&mut self, shared: &SharedOverlay) -> bool {
        if shared.generation <= self.generation {
            return false;
        }
        self.common = None;
        self.stored.clone_from(&shared.stored);
        self.blocked.clone_from(&shared.stored.blocked);
        self.next_id = self.next_id.max(shared.stored.next_id);
        self.next_block = self.next_block.max(shared.stored.next_block);
        (self.generation, self.is_forgotten) = (shared.generation, false);
        true
    }

    /// Nothing is stored any more; what is in force stays, to be stored again.
    pub fn forget_stored(&mut self) {
        (self.stored, self.generation, self.is_forgotten) = (StoredOverlay::default(), 0, true);
    }

    /// What is stored when these entries are.
    fn as_in_force(&self, entries: Vec<OverlayEntry>) -> StoredOverlay {
        let (blocked, next_block) = (self.blocked.clone(), self.next_block);
        StoredOverlay { entries, next_id: self.next_id, blocked, next_block }
    }
}

fn merged(entries: &[OverlayEntry], paused: &[OverlayEntry]) -> Vec<OverlayEntry> {
    let mut all = [entries, paused].concat();
    all.sort_by_key(|entry| entry.id);
    all
}
