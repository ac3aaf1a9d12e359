//! Memory that looking into the store takes.

use std::cell::RefCell;

use crate::cache::KeyWriter;

/// Memory of one request's look that serves the next one's.
#[derive(Debug, Default)]
pub struct CacheScratch {
    /// For keys.
    pub key: RefCell<KeyWriter>,
    /// For what variants are compared by.
    pub values: RefCell<Vec<u8>>,
}
