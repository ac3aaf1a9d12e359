//! Where changes by hand and messages to webhooks are kept: each a list of records that outlives the process.
//!
//! A record is a few bytes of the caller's. It is there as a whole or not at all, and once it is said to be there it is there
//! after a crash too. `local` keeps them in a folder of this machine.

pub mod held;
pub mod journal;
pub mod local;
#[cfg(test)]
pub(crate) mod memory;
pub mod shared;

use std::fmt;
use std::io;

pub use local::LocalStore;

/// One change, in the caller's words.
pub type StoreRecord = Vec<u8>;

/// What was kept, and what was found on the way.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    /// The records in the order in which they were appended.
    pub records: Vec<StoreRecord>,
    /// Bytes at the end that are no whole record, as a crash in the middle of writing leaves them. They are cut off.
    pub torn: usize,
    /// Whole lines that are not what was written. They are left out, and the file that has them is kept aside.
    pub damaged: usize,
}

/// Keeps records.
pub trait Store: Send + fmt::Debug {
    /// All that was kept. Called once, before anything else.
    ///
    /// # Errors
    /// It can't be read; nothing may be appended then.
    fn load(&mut self) -> io::Result<Kept>;

    /// Keeps one more. When this returns it is on the disk.
    ///
    /// # Errors
    /// It is not kept, and does not come back after a crash unless it says so when it is loaded.
    fn append(&mut self, record: &[u8]) -> io::Result<()>;

    /// Keeps these in the place of all. Either they are kept or what was kept before.
    ///
    /// # Errors
    /// What was kept before still is.
    fn compact(&mut self, records: &[StoreRecord]) -> io::Result<()>;

    /// How many bytes there are, to know when it is worth to compact.
    fn size(&self) -> u64;
}
