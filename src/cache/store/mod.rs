//! Where answers are stored, for all workers together: bounded in bytes, and found by key.
//!
//! Objects are grouped by URL, in tables of `quick_cache`, which decides what goes when there is no room; how much there is, and who is let
//! in, is said in `shard` and `admission`. A hit looks into a table and takes no other lock. What is under way to a backend is listed by
//! URL as well, in shards of their own; a shard's lock is held for a few steps and never while anybody waits.
//!
//! Invariants:
//!
//! 1. An object is only ever replaced as a part of the whole entry of its URL, under the lock of the shard of that URL: of two who replace
//!    at once none loses what the other has stored.
//! 2. What is kept was listed when it was kept (see `flight`). A purge of a URL takes its flights off the list and its entry out of the
//!    table under the same lock.
//! 3. The weight of an entry never changes: where its objects get heavier, another entry takes its place.
//! 4. An entry is found by a hash and used only if its URL, and the key of the object, are those that are asked for, byte by byte.

mod admission;
mod body;
mod coded;
mod filling;
mod flight;
mod hashed;
mod held;
mod left;
mod object;
mod purges;
mod recalled;
mod room;
mod shard;
#[cfg(test)]
mod tests;
mod watched;
mod weight;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use quick_cache::sync::Cache;

use crate::config::model::cache::Coding;
use crate::message::{Cause, WhyNot};
use crate::tick::Tick;

use super::key::CacheKey;

pub use body::StoredBody;
pub use coded::CodedForm;
pub use filling::{Filling, FillingReader, Part};
pub use flight::{Flight, FlightFollower, Landed};
use flight::{Flights, Stage, unlist};
pub use object::{Object, ObjectBody};
use purges::Purges;
pub use purges::{PurgeKind, PurgeOf};
pub use recalled::Recalled;
pub use room::BodyRoom;
use shard::{OfUrl, Shard};
pub use watched::ToldPurge;
use watched::{PurgeOfAny, WatchedPurges};

/// Objects of one URL; the oldest go first.
const MOST_OF_URL: usize = 64;
/// Most shards of what is stored: each has room for eight of the largest objects.
const MOST_SHARDS: u64 = 16;
/// How long it is remembered that answers to a key are not stored, so that nobody waits for another's.
const REMEMBERED: Duration = Duration::from_secs(60);
/// Keys of which that is remembered.
const MOST_REMEMBERED: usize = 8_192;

/// All that is stored, and what is under way.
#[derive(Debug)]
pub struct CacheStore {
    secret: u64,
    /// Made when it is first known how much it keeps.
    shards: OnceLock<Box<[Arc<Shard>]>>,
    under_way: Arc<Flights>,
    /// Until when answers to these keys are taken for such as are not stored.
    alone: Cache<u128, Tick>,
    purges: Purges,
    watched: WatchedPurges,
    /// Bytes of the largest body that is kept.
    most: AtomicU64,
}

/// What is found for a key.
#[derive(Debug)]
pub enum Lookup {
    /// This.
    Object(Arc<Object>),
    /// Something, but for other requests.
    OtherVariant,
    /// Nothing.
    Nothing,
}

/// What somebody does who has found nothing.
#[derive(Debug)]
pub enum Entrance {
    /// It asks the backend, for all who want the same.
    Lead(FlightLead),
    /// It waits for another's answer.
    Follow(FlightFollower),
    /// It reads along with another's answer.
    Join(Arc<Object>),
    /// It asks for itself alone.
    Alone,
}

/// Who asks the backend. Dropped without an answer it has failed.
#[derive(Debug)]
pub struct FlightLead {
    store: Arc<CacheStore>,
    flight: Arc<Flight>,
    place: u128,
    is_open: bool,
    is_over: bool,
}

impl CacheStore {
    /// One that keeps nothing until it is [told](CacheStore::resize) how much. `secret`: nobody outside of the process knows it.
    #[must_use]
    pub fn new(secret: u64) -> CacheStore {
        CacheStore {
            secret,
            shards: OnceLock::new(),
            under_way: Arc::default(),
            alone: Cache::new(MOST_REMEMBERED),
            purges: Purges::default(),
            watched: WatchedPurges::default(),
            most: AtomicU64::new(0),
        }
    }

    /// Says how much it keeps: see [`CacheStoreConfig`](crate::config::model::cache::CacheStoreConfig).
    pub fn resize(&self, memory: u64, most: u64) {
        let shards = self.shards.get_or_init(|| {
            let count = (memory / most.saturating_mul(8).max(1)).clamp(1, MOST_SHARDS);
            (0..count).map(|_| Arc::new(Shard::new(memory / count))).collect()
        });
        let each = memory / shards.len() as u64;
        shards.iter().for_each(|shard| shard.resize(each));
        // What does not fit is not kept, and nobody says that it is.
        self.most.store(most.min(self.most_of_entry()), Ordering::Relaxed);
    }

    /// Bytes of an entry that surely fits. There are as many shards as there were at first.
    fn most_of_entry(&self) -> u64 {
        self.all_shards().first().map_or(0, |shard| shard.memory() / 2)
    }

    /// Whether any config has let it keep something so far.
    #[must_use]
    #[inline]
    pub fn is_used(&self) -> bool {
        self.shards.get().is_some()
    }

    /// Bytes of the largest body that is kept.
    #[must_use]
    pub fn most(&self) -> u64 {
        self.most.load(Ordering::Relaxed)
    }

    /// How many purges of more than a URL there were: asked for before an answer is.
    #[must_use]
    pub fn purges(&self) -> u64 {
        self.purges.latest()
    }

    /// Bytes that are kept at most.
    #[must_use]
    pub fn memory(&self) -> u64 {
        self.all_shards().iter().map(|shard| shard.memory()).sum()
    }

    /// Bytes that are kept, or just coming, or still read though they are kept no more.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.all_shards().iter().map(|shard| shard.bytes()).sum()
    }

    fn all_shards(&self) -> &[Arc<Shard>] {
        self.shards.get().map(|shards| &**shards).unwrap_or_default()
    }

    /// The one of URLs with this hash; `None`: nothing is kept yet.
    fn shard(&self, place: u128) -> Option<&Arc<Shard>> {
        let shards = self.shards.get()?;
        // By other bits than those that choose among what is under way.
        shards.get((place >> 64) as usize % shards.len())
    }

    /// Room for a body that comes, of so many bytes if that is known. `is_wanted`: it is known that more than one want it.
    ///
    /// # Errors
    /// Why it is not kept.
    pub fn room(&self, key: &CacheKey, length: Option<u64>, is_wanted: bool) -> Result<BodyRoom, WhyNot> {
        if length.is_some_and(|length| length > self.most()) {
            return Err(WhyNot::TooLarge);
        }
        let shard = Arc::clone(self.shard(key.url_hash(self.secret)).ok_or(WhyNot::NoRoom)?);
        let mut room = BodyRoom::new(shard, key.hash(self.secret) as u64, is_wanted);
        room.reach(length.unwrap_or(0))?;
        Ok(room)
    }

    /// What is stored under a key and `fits`; of several the newest.
    pub fn find(&self, key: &CacheKey, mut fits: impl FnMut(&Object) -> bool) -> Lookup {
        let found = self.stored(key.url_hash(self.secret)).filter(|of| *of.url == *key.url());
        let Some(of) = found else { return Lookup::Nothing };
        let mut is_other = false;
        for object in of.objects.iter().rev().filter(|object| object.key() == key) {
            if !self.is_gone(object) && fits(object) {
                return Lookup::Object(Arc::clone(object));
            }
            is_other = true;
        }
        if is_other { Lookup::OtherVariant } else { Lookup::Nothing }
    }

    /// What is stored where URLs have this hash.
    fn stored(&self, place: u128) -> Option<Arc<OfUrl>> {
        self.shard(place)?.get(place)
    }

    /// Whether an object was purged. One that is only to be stale is so from now on.
    fn is_gone(&self, object: &Object) -> bool {
        let latest = self.purges.latest();
        if object.is_checked(latest) {
            return false;
        }
        let verdict = self.purges.verdict(object.purges, object.key().url(), &object.answer.tags);
        match verdict {
            Some(PurgeKind::Hard) => return true,
            Some(PurgeKind::Soft) => object.spoil(),
            None => {}
        }
        object.note_checked(latest);
        false
    }

    /// For somebody who has found nothing, or nothing that may be used as it is. `fits`: whether an answer is for this request; `is_news`:
    /// whether one that does was not there when it looked, and may be used as it is: another's may have landed meanwhile.
    pub fn enter(
        self: &Arc<CacheStore>,
        key: &CacheKey,
        mut fits: impl FnMut(&Object) -> bool,
        is_news: impl FnOnce(&Arc<Object>) -> bool,
        now: Tick,
    ) -> Entrance {
        if self.alone.get(&key.hash(self.secret)).is_some_and(|until| now < until) {
            return Entrance::Alone;
        }
        let place = key.url_hash(self.secret);
        let purges = self.purges();
        let mut shard = self.under_way.shard(place);
        let listed = shard.get(&place).into_iter().flatten();
        for flight in listed.filter(|flight| *flight.key == *key.bytes() && flight.purges == purges) {
            match flight.stage() {
                Stage::Asking => {
                    return Entrance::Follow(FlightFollower::new(&self.under_way, flight, place));
                }
                Stage::Open(object) if fits(&object) => return Entrance::Join(object),
                Stage::Vacant if flight.take_over() => {
                    return Entrance::Lead(self.lead(Arc::clone(flight), place));
                }
                Stage::Open(_) | Stage::Vacant | Stage::Alone | Stage::Failed(_) => {}
            }
        }
        // What lands is stored and goes off the list under this lock.
        if let Lookup::Object(object) = self.find(key, fits)
            && is_news(&object)
        {
            return Entrance::Join(object);
        }
        let flight = Arc::new(Flight::new(key.bytes(), purges));
        shard.entry(place).or_default().push(Arc::clone(&flight));
        drop(shard);
        Entrance::Lead(self.lead(flight, place))
    }

    /// For somebody who asks for itself alone, and may store what comes all the same.
    #[must_use]
    pub fn solo(self: &Arc<CacheStore>, key: &CacheKey) -> FlightLead {
        let place = key.url_hash(self.secret);
        let flight = Arc::new(Flight::new(key.bytes(), self.purges()));
        flight.set(Stage::Alone);
        self.under_way.shard(place).entry(place).or_default().push(Arc::clone(&flight));
        self.lead(flight, place)
    }

    /// Goes on in the place of a lead that has failed.
    #[must_use]
    pub fn lead_on(self: &Arc<CacheStore>, follower: &FlightFollower, key: &CacheKey) -> FlightLead {
        let (place, flight) = (key.url_hash(self.secret), Arc::clone(follower.flight()));
        let mut shard = self.under_way.shard(place);
        let listed = shard.entry(place).or_default();
        // A purge may have taken it off: what comes now was asked for after that.
        if !listed.iter().any(|other| Arc::ptr_eq(other, &flight)) {
            listed.push(Arc::clone(&flight));
        }
        drop(shard);
        self.lead(flight, place)
    }

    fn lead(self: &Arc<CacheStore>, flight: Arc<Flight>, place: u128) -> FlightLead {
        FlightLead { store: Arc::clone(self), flight, place, is_open: false, is_over: false }
    }

    /// Puts an object in the place of `before`, if that is still there.
    pub fn replace(&self, before: &Arc<Object>, object: Arc<Object>) {
        let place = object.key().url_hash(self.secret);
        let shard = self.under_way.shard(place);
        let of = self.stored(place);
        if of.is_some_and(|of| of.objects.iter().any(|other| Arc::ptr_eq(other, before))) {
            self.put(place, object);
        }
        drop(shard);
    }

    /// The whole body of an object in a coding, or the right to make it so and then to [keep](CacheStore::keep_form) it. `None`: it is still
    /// coming, or there is no room. What gets longer than the body is not kept.
    #[must_use]
    pub fn form(&self, object: &Object, coding: Coding) -> Option<CodedForm> {
        object.form(coding, || self.room(object.key(), None, true).ok())
    }

    /// Keeps what the body of an object was compressed to, with that object or with one that has taken its place under another head. One
    /// that was purged, or went for want of room, keeps nothing; nor does one that would become so heavy that it might not fit any more.
    pub fn keep_form(&self, object: &Object, coding: Coding, form: &StoredBody) {
        let place = object.key().url_hash(self.secret);
        let under_way = self.under_way.shard(place);
        let of = self.stored(place).filter(|of| *of.url == *object.key().url());
        let heirs: Vec<&Arc<Object>> =
            of.iter().flat_map(|of| &of.objects).filter(|other| other.shares_body(object)).collect();
        let weight = of.as_ref().map_or(0, |of| of.weight()) + form.weight();
        let is_kept = !heirs.is_empty() && weight <= self.most_of_entry();
        let settle = |object: &Object| object.forms.settle(coding, is_kept.then(|| form.clone()));
        settle(object);
        heirs.iter().for_each(|heir| settle(heir));
        if let (Some(of), Some(shard), true) = (of, self.shard(place), is_kept) {
            let (url, objects) = (of.url.clone(), of.objects.to_vec());
            drop(of);
            shard.put(place, url, objects);
        }
        drop(under_way);
    }

    /// Under the lock of the shard.
    fn put(&self, place: u128, object: Arc<Object>) {
        let Some(shard) = self.shard(place) else { return };
        let url: Box<[u8]> = object.key().url().into();
        let before = shard.get(place).filter(|of| of.url == url);
        let is_other = |other: &&Arc<Object>| {
            let is_same =
                other.key() == object.key() && other.answer.variant.replaces(&object.answer.variant);
            if is_same {
                object.inherit(other);
            }
            !is_same
        };
        let mut objects: Vec<_> =
            before.iter().flat_map(|of| &*of.objects).filter(is_other).map(Arc::clone).collect();
        objects.push(object);
        let oldest = objects.len().saturating_sub(MOST_OF_URL);
        objects.drain(..oldest);
        drop(before);
        shard.put(place, url, objects);
    }

    /// Takes one object out.
    pub fn remove(&self, object: &Arc<Object>) {
        let place = object.key().url_hash(self.secret);
        let under_way = self.under_way.shard(place);
        if let Some(shard) = self.shard(place)
            && let Some(of) = shard.get(place)
        {
            let left: Vec<_> =
                of.objects.iter().filter(|other| !Arc::ptr_eq(other, object)).map(Arc::clone).collect();
            if left.is_empty() {
                shard.remove(place);
            } else {
                shard.put(place, of.url.clone(), left);
            }
        }
        drop(under_way);
    }

    /// Takes out all that is stored under a URL, or declares it stale; and all that is under way for it: what is asked for from now on is
    /// asked for anew. `url`: what [`url_key`](super::url_key) makes of it. Tells how many objects there were, without those that another
    /// purge had taken out before.
    pub fn purge_url(&self, url: &[u8], kind: PurgeKind) -> usize {
        let place = CacheKey::hash_of_url(url, self.secret);
        let mut under_way = self.under_way.shard(place);
        under_way.remove(&place);
        let of = match kind {
            PurgeKind::Hard => self.shard(place).and_then(|shard| shard.remove(place)),
            PurgeKind::Soft => self.stored(place),
        };
        let there = of.iter().filter(|of| *of.url == *url).flat_map(|of| &of.objects);
        let count = there.filter(|object| !self.is_gone(object)).inspect(|object| object.spoil()).count();
        drop(under_way);
        self.watched.note(kind, || PurgeOfAny::Url(url.into()));
        count
    }

    /// Takes out what has this tag, or whose URL begins so, or everything; or declares it stale. It costs the same however much that is.
    /// Nobody who asks from now on gets it, nor what is under way.
    pub fn purge(&self, of: PurgeOf, kind: PurgeKind) {
        let is_all = of == PurgeOf::All && kind == PurgeKind::Hard;
        self.purges.note(of.clone(), kind);
        self.watched.note(kind, || PurgeOfAny::More(of));
        if is_all {
            // Its memory is wanted back.
            self.all_shards().iter().for_each(|shard| shard.clear());
        }
    }
}

impl FlightLead {
    /// How many purges there had been when it began.
    #[must_use]
    pub fn purges(&self) -> u64 {
        self.flight.purges
    }

    /// Whether another one has failed before it.
    #[must_use]
    pub fn has_taken_over(&self) -> bool {
        self.flight.has_failed()
    }

    /// Whether somebody waits for it.
    #[must_use]
    pub fn is_followed(&self) -> bool {
        self.flight.is_followed()
    }

    /// The head of the answer is there, and others may have it.
    pub fn open(&mut self, object: &Arc<Object>) {
        self.is_open = true;
        self.flight.open(Stage::Open(Arc::clone(object)));
    }

    /// The answer is stored, if nobody has purged it meanwhile.
    pub fn keep(mut self, object: Arc<Object>) {
        {
            let mut shard = self.store.under_way.shard(self.place);
            // Whether it was purged by more than its URL is seen when somebody wants it.
            if unlist(&mut shard, self.place, &self.flight) {
                self.store.put(self.place, Arc::clone(&object));
            }
        }
        self.is_over = true;
        self.flight.open(Stage::Open(object));
    }

    /// The answer is for nobody else. `now`, if all answers to this key are likely to be so, else `None`.
    pub fn alone(mut self, key: &CacheKey, now: Option<Tick>) {
        if let Some(now) = now {
            self.store.alone.insert(key.hash(self.store.secret), now.after(REMEMBERED));
        }
        self.end(Stage::Alone);
    }

    /// There is no answer, though the request went out so many times.
    pub fn fail(mut self, cause: Cause, sends: u8) {
        self.give_up(cause, sends);
    }

    fn give_up(&mut self, cause: Cause, sends: u8) {
        let mut shard = self.store.under_way.shard(self.place);
        self.is_over = true;
        if !self.flight.fail(cause, sends) {
            unlist(&mut shard, self.place, &self.flight);
        }
    }

    fn end(&mut self, stage: Stage) {
        self.store.under_way.unlist(self.place, &self.flight);
        self.is_over = true;
        self.flight.set(stage);
    }
}

impl Drop for FlightLead {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        if self.is_open {
            // Its body tells those who read it.
            self.end(Stage::Alone);
        } else {
            self.give_up(Cause::ClientGone, 1);
        }
    }
}
