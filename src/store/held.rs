//! A journal that the process before may still write: read, and not written before that one has let go of it.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::{Kept, LocalStore, Store, StoreRecord};

/// Whether the process before has let go of its journals.
pub type JournalsFree = Arc<AtomicBool>;

/// Keeps records in a journal that this process comes to have.
#[derive(Debug)]
pub struct HeldStore {
    store: LocalStore,
    is_free: JournalsFree,
    is_open: bool,
}

impl HeldStore {
    /// Of a journal that is another one's until it `is_free`.
    #[must_use]
    pub fn new(store: LocalStore, is_free: JournalsFree) -> HeldStore {
        HeldStore { store, is_free, is_open: false }
    }

    /// Reads it again before anything is written: where its lines end is known from then on.
    fn open(&mut self) -> io::Result<()> {
        if self.is_open {
            return Ok(());
        }
        if !self.is_free.load(Ordering::Acquire) {
            return Err(io::Error::other("the process before has not let go of it yet"));
        }
        self.store.load()?;
        self.is_open = true;
        Ok(())
    }
}

impl Store for HeldStore {
    fn load(&mut self) -> io::Result<Kept> {
        self.store.look()
    }

    fn append(&mut self, record: &[u8]) -> io::Result<()> {
        self.open()?;
        self.store.append(record)
    }

    fn compact(&mut self, records: &[StoreRecord]) -> io::Result<()> {
        self.open()?;
        self.store.compact(records)
    }

    fn size(&self) -> u64 {
        self.store.size()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::local::LockedFolder;

    #[test]
    fn nothing_is_written_before_the_process_before_has_let_go_and_what_it_has_written_last_stays() {
        let folder = tempfile::tempdir().unwrap();
        let locked = Arc::new(LockedFolder::take(folder.path(), "before").unwrap());
        let mut before = LocalStore::new(&locked, LocalStore::OVERLAY);
        before.load().unwrap();
        before.append(b"one").unwrap();
        let is_free = JournalsFree::default();
        let store = LocalStore::new(&locked, LocalStore::OVERLAY);
        let mut held = HeldStore::new(store, Arc::clone(&is_free));
        let path = folder.path().join(LocalStore::OVERLAY);
        let bytes = std::fs::read(&path).unwrap();
        assert_eq!(held.load().unwrap().records, [b"one"]);
        assert!(held.append(b"early").is_err() && held.compact(&[]).is_err());
        assert_eq!(std::fs::read(&path).unwrap(), bytes);
        before.append(b"two").unwrap();
        drop(before);
        is_free.store(true, Ordering::Release);
        held.append(b"three").unwrap();
        let mut after = LocalStore::new(&locked, LocalStore::OVERLAY);
        assert_eq!(after.load().unwrap().records, [&b"one"[..], b"two", b"three"]);
        // And where there is none yet, there is none.
        let none = LocalStore::new(&locked, LocalStore::WEBHOOKS);
        assert_eq!(HeldStore::new(none, is_free).load().unwrap(), Kept::default());
        assert!(!folder.path().join(LocalStore::WEBHOOKS).exists());
    }
}
