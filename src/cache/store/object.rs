//! What is stored under a key.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::cache::freshness::Freshness;
use crate::cache::key::CacheKey;
use crate::cache::storing::Storable;
use crate::tick::Tick;

use super::body::StoredBody;
use super::filling::Filling;

/// Bytes that an object takes beside its head, its body and its key: itself, its place in the table, and what the allocator keeps.
const OVERHEAD: u64 = 512;

/// A stored answer, whole or still coming.
#[derive(Debug)]
pub struct Object {
    key: CacheKey,
    /// Its head, and for how long and for whom it is.
    pub answer: Arc<Storable>,
    /// Its body.
    pub body: ObjectBody,
    /// How many purges there had been when it was asked for.
    pub(super) purges: u64,
    spoilt: AtomicBool,
    /// When a client last had it asked for again though it was fresh.
    reloaded: AtomicU64,
}

/// The body of an object.
#[derive(Clone, Debug)]
pub enum ObjectBody {
    /// All of it is here.
    Whole(StoredBody),
    /// It is coming.
    Filling(Arc<Filling>),
}

impl Object {
    /// One. `purges`: how many there had been when it was asked for.
    #[must_use]
    pub fn new(key: CacheKey, answer: Arc<Storable>, body: ObjectBody, purges: u64) -> Object {
        let (spoilt, reloaded) = (AtomicBool::new(false), AtomicU64::new(0));
        Object { key, answer, body, purges, spoilt, reloaded }
    }

    /// Its key.
    #[must_use]
    #[inline]
    pub fn key(&self) -> &CacheKey {
        &self.key
    }

    /// How many purges there had been when it was asked for.
    #[must_use]
    pub fn purges(&self) -> u64 {
        self.purges
    }

    /// How long it may be used.
    #[must_use]
    #[inline]
    pub fn freshness(&self) -> Freshness {
        let freshness = self.answer.freshness;
        if self.spoilt.load(Ordering::Acquire) { freshness.spoilt() } else { freshness }
    }

    /// Declares it stale.
    pub fn spoil(&self) {
        self.spoilt.store(true, Ordering::Release);
    }

    /// Whether a client may have it asked for again now though it is fresh: `most` times a second.
    #[must_use]
    pub fn may_be_reloaded(&self, most: u32, now: Tick) -> bool {
        let Some(interval) = 1_000_000_000_u64.checked_div(most.into()) else { return false };
        let before = self.reloaded.load(Ordering::Relaxed);
        let is_due = before == 0 || now.0.saturating_sub(before) >= interval;
        is_due && self.reloaded.compare_exchange(before, now.0, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    /// Bytes of memory that it takes.
    #[must_use]
    pub fn weight(&self) -> u64 {
        let Storable { head, variant, tags, .. } = &*self.answer;
        let tags: usize = tags.iter().map(|tag| tag.len() + 16).sum();
        let body = match &self.body {
            ObjectBody::Whole(body) => body.weight(),
            ObjectBody::Filling(_) => 0,
        };
        let rest = head.capacity() + variant.weight() + tags + self.key.bytes().len();
        OVERHEAD + rest as u64 + body
    }
}
