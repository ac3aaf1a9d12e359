//! `cache_store`: how much is kept of answers, for all routes together.

use crate::config::origin::Written;
use crate::config::raw::bounds::{OBJECT, STORE};
use crate::config::raw::reader::Reader;
use crate::config::raw::shape;
use crate::config::yaml::Entry;

/// `cache_store`.
#[derive(Debug, Default)]
pub(in crate::config) struct RawCacheStore {
    pub(in crate::config) memory: Option<Written<u64>>,
    pub(in crate::config) object: Option<Written<u64>>,
    /// There is a fault in `memory`, which has been reported.
    pub(in crate::config) is_faulty: bool,
}

/// Walks `cache_store`.
pub(in crate::config::raw) fn walk(entry: &Entry, reader: &mut Reader<'_>) -> RawCacheStore {
    let Some(section) = reader.section("`cache_store`", &entry.node, &shape::CACHE_STORE) else {
        return RawCacheStore { is_faulty: true, ..RawCacheStore::default() };
    };
    let written = section.find("memory");
    let memory = written.and_then(|entry| reader.size(entry, STORE.0..=STORE.1, false));
    let object = section.find("object");
    RawCacheStore {
        is_faulty: written.is_some() && memory.is_none() || section.is_misspelt("memory"),
        object: object.and_then(|entry| reader.size(entry, OBJECT.0..=OBJECT.1, false)),
        memory,
    }
}
