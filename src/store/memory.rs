//! A disk in memory for tests, which can be full, and which a crash can cut at any byte.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use super::journal::{self, JournalText};
use super::{Kept, Store, StoreRecord};

/// What outlives the process.
#[derive(Clone, Debug, Default)]
pub(crate) struct MemoryDisk(Arc<Mutex<DiskState>>);

#[derive(Debug, Default)]
struct DiskState {
    bytes: Vec<u8>,
    is_full: bool,
    /// Of what is written from now on so many bytes are there, and nobody lives to hear of it.
    crash: Option<usize>,
    has_crashed: bool,
}

impl MemoryDisk {
    fn with<T>(&self, look: impl FnOnce(&mut DiskState) -> T) -> T {
        look(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Takes nothing more, or does again.
    pub(crate) fn fill(&self, is_full: bool) {
        self.with(|disk| disk.is_full = is_full);
    }

    /// Behind so many bytes all writing ends, in a crash.
    pub(crate) fn crash_behind(&self, bytes: usize) {
        self.with(|disk| disk.crash = Some(bytes));
    }

    /// Whether that has come.
    pub(crate) fn has_crashed(&self) -> bool {
        self.with(|disk| disk.has_crashed)
    }

    /// Whether that has come; the next process finds the disk as it is.
    pub(crate) fn restart(&self) -> bool {
        self.with(|disk| {
            disk.crash = None;
            std::mem::take(&mut disk.has_crashed)
        })
    }
}

/// Keeps records there, in the form of [`journal`].
#[derive(Debug)]
pub(crate) struct MemoryStore(pub(crate) MemoryDisk);

impl Store for MemoryStore {
    fn load(&mut self) -> io::Result<Kept> {
        self.0.with(|disk| match journal::read(&disk.bytes) {
            JournalText::Known { kept, whole } => {
                disk.bytes.truncate(whole);
                if whole == 0 {
                    disk.bytes = journal::write(&[]);
                }
                Ok(kept)
            }
            JournalText::Foreign => Err(io::Error::other("a later version")),
            JournalText::Doubled(line) => Err(io::Error::other(format!("another journal in line {line}"))),
        })
    }

    fn append(&mut self, record: &[u8]) -> io::Result<()> {
        let line = journal::line(record);
        self.0.with(|disk| {
            if disk.has_crashed {
                return Err(dead());
            }
            if disk.is_full {
                return Err(io::ErrorKind::StorageFull.into());
            }
            let left = disk.crash.unwrap_or(usize::MAX);
            disk.bytes.extend_from_slice(&line[..left.min(line.len())]);
            if left <= line.len() {
                disk.has_crashed = true;
                return Err(dead());
            }
            disk.crash = disk.crash.map(|bytes| bytes - line.len());
            Ok(())
        })
    }

    fn compact(&mut self, records: &[StoreRecord]) -> io::Result<()> {
        self.0.with(|disk| {
            if disk.has_crashed {
                return Err(dead());
            }
            if disk.is_full {
                return Err(io::ErrorKind::StorageFull.into());
            }
            disk.bytes = journal::write(records);
            Ok(())
        })
    }

    fn size(&self) -> u64 {
        self.0.with(|disk| disk.bytes.len() as u64)
    }
}

/// Who has crashed does nothing more.
fn dead() -> io::Error {
    io::Error::other("the process is dead")
}
