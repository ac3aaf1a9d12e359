//! Memory that looking into the store takes.

use std::cell::RefCell;

use crate::cache::CacheKey;

/// Memory of one request's look that serves the next one's.
#[derive(Debug, Default)]
pub struct CacheScratch {
    /// For keys.
    pub key: RefCell<CacheKey>,
    /// For what variants are compared by.
    pub values: RefCell<Vec<u8>>,
}
