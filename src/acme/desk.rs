//! What outlives configs and orders: where things are kept, and what was asked for.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use super::book::Book;
use crate::store::Store;

/// Where certificates are ordered from.
pub struct OrderDesk {
    state: PathBuf,
    book: Mutex<Book>,
}

impl OrderDesk {
    /// The one that keeps things in the folder `state`, and what it has asked for in `store`.
    ///
    /// # Errors
    /// What was kept can't be read, in words.
    pub fn open(state: &Path, store: Box<dyn Store>) -> Result<OrderDesk, String> {
        let book = Mutex::new(Book::load(store, seconds(SystemTime::now()))?);
        Ok(OrderDesk { state: state.to_owned(), book })
    }

    pub(super) fn state(&self) -> &Path {
        &self.state
    }

    pub(super) fn book(&self) -> MutexGuard<'_, Book> {
        // Whatever was half done is counted as if nobody knew.
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Since 1970.
pub(super) fn seconds(at: SystemTime) -> i64 {
    let since = at.duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}
