//! What is stored under a key.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use crate::cache::freshness::Freshness;
use crate::cache::key::CacheKey;
use crate::cache::storing::Storable;
use crate::config::model::cache::Coding;
use crate::tick::Tick;

use super::body::StoredBody;
use super::coded::{CodedForm, CodedForms};
use super::filling::Filling;
use super::room::BodyRoom;
use super::weight::{block, bytes};

/// Bytes that an object takes beside what its head, its body and its key point to.
const SHELL: u64 = block(16 + size_of::<Object>() as u64) + block(16 + size_of::<Storable>() as u64);

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
    /// What the body was compressed to.
    pub(super) forms: CodedForms,
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
            forms: CodedForms::default(),
            purges,
            spoilt,
            checked,
            reloaded: AtomicU64::new(0),
            rests: AtomicU64::new(0),
        }
    }

    /// The same body under another head, asked for when there had been `purges`. Where that says no tags it leaves those that there are.
    #[must_use]
    pub fn renewed(&self, mut answer: Storable, purges: u64) -> Object {
        if answer.tags.is_empty() {
            answer.tags.clone_from(&self.answer.tags);
        }
        let forms = self.forms.clone();
        Object { forms, ..Object::new(self.key.clone(), Arc::new(answer), self.body.clone(), purges) }
    }

    /// All of its body; `None`: it is still coming.
    #[must_use]
    #[inline]
    pub fn whole(&self) -> Option<&StoredBody> {
        match &self.body {
            ObjectBody::Whole(body) => Some(body),
            ObjectBody::Filling(_) => None,
        }
    }

    /// Whether both have the very same body.
    pub(super) fn shares_body(&self, other: &Object) -> bool {
        self.whole().zip(other.whole()).is_some_and(|(one, other)| one.is(other))
    }

    /// Its body in a coding, if that is kept.
    #[must_use]
    pub fn kept_form(&self, coding: Coding) -> Option<StoredBody> {
        self.forms.kept(coding)
    }

    /// Its whole body in a coding, or the right to make it so in what `room` gives. `None`: it is still coming, or there is no room. What gets
    /// longer than the body is not kept.
    pub(super) fn form(&self, coding: Coding, room: impl FnOnce() -> Option<BodyRoom>) -> Option<CodedForm> {
        let filling = |most| Some(Filling::new(room()?, most, None));
        self.forms.claim(coding, self.whole()?.length(), filling)
    }

    /// Gives up the right to make its body so.
    pub fn give_up_form(&self, coding: Coding, filling: &Arc<Filling>) {
        self.forms.give_up(coding, filling);
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
        if self.is_spoilt() { freshness.spoilt() } else { freshness }
    }

    /// Whether it was declared stale.
    #[inline]
    pub(super) fn is_spoilt(&self) -> bool {
        self.spoilt.load(Ordering::Acquire)
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

    /// Bytes of memory that it takes beside its body.
    pub(super) fn weight(&self) -> u64 {
        let Storable { head, variant, tags, .. } = &*self.answer;
        let tags: u64 =
            tags.iter().map(|tag| bytes(tag.len())).sum::<u64>() + block(size_of_val(&**tags) as u64);
        let key = bytes(self.key.bytes().len());
        SHELL + bytes(head.capacity()) + bytes(variant.weight()) + tags + key
    }

    /// Bytes of memory that its body takes, in all its forms, if it is whole.
    pub(super) fn body_weight(&self) -> u64 {
        match &self.body {
            ObjectBody::Whole(body) => body.weight() + self.forms.weight(),
            ObjectBody::Filling(_) => 0,
        }
    }
}
