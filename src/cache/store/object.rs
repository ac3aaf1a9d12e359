//! What is stored under a key.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use crate::cache::freshness::Freshness;
use crate::cache::key::CacheKey;
use crate::cache::storing::Storable;
use crate::tick::Tick;

use super::body::StoredBody;
use super::filling::Filling;

/// Bytes that an object takes beside its head, its body and its key: itself, its place in the table, and what the allocator keeps.
const OVERHEAD: u64 = 512;

/// How long nobody asks again in the background for what a backend has failed to say.
const REST: Duration = Duration::from_secs(1);

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
    /// The number of the latest purge with which it was compared.
    checked: AtomicU64,
    /// When a client last had it asked for again though it was fresh.
    reloaded: AtomicU64,
    /// Until when it is not asked for again in the background, because that has just failed.
    rests: AtomicU64,
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
        let (spoilt, checked) = (AtomicBool::new(false), AtomicU64::new(purges));
        Object {
            key,
            answer,
            body,
            purges,
            spoilt,
            checked,
            reloaded: AtomicU64::new(0),
            rests: AtomicU64::new(0),
        }
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

    /// Whether it was compared with the purge of this number.
    #[inline]
    pub(super) fn is_checked(&self, latest: u64) -> bool {
        self.checked.load(Ordering::Acquire) >= latest
    }

    pub(super) fn note_checked(&self, latest: u64) {
        self.checked.fetch_max(latest, Ordering::AcqRel);
    }

    /// Whether a client may have it asked for again now though it is fresh: `most` times a second.
    #[must_use]
    pub fn may_be_reloaded(&self, most: u32, now: Tick) -> bool {
        let Some(interval) = 1_000_000_000_u64.checked_div(most.into()) else { return false };
        let before = self.reloaded.load(Ordering::Relaxed);
        let is_due = before == 0 || now.0.saturating_sub(before) >= interval;
        is_due && self.reloaded.compare_exchange(before, now.0, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    /// Whether it may be asked for again in the background.
    #[must_use]
    pub fn is_rested(&self, now: Tick) -> bool {
        now.0 >= self.rests.load(Ordering::Relaxed)
    }

    /// The backend has failed when it was asked for this: it has a second before it is asked again with nobody waiting for it.
    pub fn rest(&self, now: Tick) {
        self.rests.store(now.after(REST).0, Ordering::Relaxed);
    }

    /// Takes the place of `before`: when that was last asked for again counts on.
    pub(super) fn inherit(&self, before: &Object) {
        self.reloaded.fetch_max(before.reloaded.load(Ordering::Relaxed), Ordering::Relaxed);
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
