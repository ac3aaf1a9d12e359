//! Where answers are stored, for all workers together: bounded in bytes, and found by key.
//!
//! Objects are grouped by URL, in a table of `quick_cache`, which decides what goes when there is no room. A hit looks there and takes no
//! other lock. What is under way to a backend is listed by URL as well, in shards of their own; a shard's lock is held for a few steps and
//! never while anybody waits.
//!
//! Invariants:
//!
//! 1. An object is only ever replaced as a part of the whole entry of its URL, under the lock of the shard of that URL: of two who replace
//!    at once none loses what the other has stored.
//! 2. What is kept was listed when it was kept (see `flight`). A purge of a URL takes its flights off the list and its entry out of the
//!    table under the same lock.
//! 3. An entry is found by a hash and used only if its URL, and the key of the object, are those that are asked for, byte by byte.

mod body;
mod filling;
mod flight;
mod hashed;
mod object;
mod purges;
#[cfg(test)]
mod tests;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use quick_cache::sync::{Cache, DefaultLifecycle};
use quick_cache::{OptionsBuilder, Weighter};

use crate::message::Cause;
use crate::tick::Tick;

use super::key::CacheKey;

pub use body::StoredBody;
pub use filling::{Filling, FillingReader, Part};
pub use flight::{Flight, FlightFollower, Landed};
use flight::{Flights, Stage, unlist};
use hashed::Hashed;
pub use object::{Object, ObjectBody};
use purges::Purges;
pub use purges::{PurgeKind, PurgeOf};

/// Objects of one URL; the oldest go first.
const MOST_OF_URL: usize = 64;
/// Most shards of the table: each has room for eight of the largest objects.
const TABLE_SHARDS: u64 = 16;
/// How long it is remembered that answers to a key are not stored, so that nobody waits for another's.
const REMEMBERED: Duration = Duration::from_secs(60);
/// Keys of which that is remembered.
const MOST_REMEMBERED: usize = 8_192;

/// What is stored, by the hash of its URL.
type Table = Cache<u128, Arc<OfUrl>, Weights, Hashed>;

/// All that is stored, and what is under way.
#[derive(Debug)]
pub struct CacheStore {
    secret: u64,
    /// Made when it is first known how much it keeps.
    table: OnceLock<Table>,
    /// Shards that it has.
    shards: AtomicU64,
    under_way: Arc<Flights>,
    /// Until when answers to these keys are taken for such as are not stored.
    alone: Cache<u128, Tick>,
    purges: Purges,
    /// Bytes of the largest body that is kept.
    most: AtomicU64,
}

/// What is stored under one URL, the newest last.
#[derive(Debug)]
struct OfUrl {
    url: Box<[u8]>,
    objects: Vec<Arc<Object>>,
}

#[derive(Clone, Debug)]
struct Weights;

impl Weighter<u128, Arc<OfUrl>> for Weights {
    fn weight(&self, _: &u128, of: &Arc<OfUrl>) -> u64 {
        of.objects.iter().map(|object| object.weight()).sum::<u64>() + 2 * of.url.len() as u64
    }
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

/// A table for so many bytes.
fn table(memory: u64, shards: u64) -> Table {
    let options = OptionsBuilder::new()
        .estimated_items_capacity(usize::try_from(memory / 16_384).unwrap_or(1 << 20).clamp(1_024, 1 << 20))
        .weight_capacity(memory)
        .shards(usize::try_from(shards).unwrap_or(1))
        .build()
        .unwrap_or_else(|_| unreachable!("all that must be said is said"));
    Cache::with_options(options, Weights, Hashed::default(), DefaultLifecycle::default())
}

impl CacheStore {
    /// One that keeps nothing until it is [told](CacheStore::resize) how much. `secret`: nobody outside of the process knows it.
    #[must_use]
    pub fn new(secret: u64) -> CacheStore {
        CacheStore {
            secret,
            table: OnceLock::new(),
            shards: AtomicU64::new(1),
            under_way: Arc::default(),
            alone: Cache::new(MOST_REMEMBERED),
            purges: Purges::default(),
            most: AtomicU64::new(0),
        }
    }

    /// Says how much it keeps: see [`CacheStoreConfig`](crate::config::model::cache::CacheStoreConfig).
    pub fn resize(&self, memory: u64, most: u64) {
        let made = self.table.get_or_init(|| {
            let shards = (memory / most.saturating_mul(8).max(1)).clamp(1, TABLE_SHARDS);
            self.shards.store(shards, Ordering::Relaxed);
            table(memory, shards)
        });
        if made.capacity() != memory {
            made.set_capacity(memory);
        }
        // It has as many shards as it had at first: what does not fit into one is not kept, and nobody says that it is.
        let fits = memory / self.shards.load(Ordering::Relaxed).max(1) / 2;
        self.most.store(most.min(fits), Ordering::Relaxed);
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
        self.table.get().map_or(0, Table::capacity)
    }

    /// Bytes that are kept.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.table.get().map_or(0, Table::weight)
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
        self.table.get()?.get(&place)
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

    /// For somebody who has found nothing, or nothing that may be used as it is. `fits`: whether an answer is for this request.
    pub fn enter(
        self: &Arc<CacheStore>,
        key: &CacheKey,
        mut fits: impl FnMut(&Object) -> bool,
        now: Tick,
    ) -> Entrance {
        if self.alone.get(&key.hash(self.secret)).is_some_and(|until| now < until) {
            return Entrance::Alone;
        }
        let place = key.url_hash(self.secret);
        let purges = self.purges();
        let mut shard = self.under_way.shard(place);
        let listed = shard.entry(place).or_default();
        for flight in listed.iter().filter(|flight| *flight.key == *key.bytes() && flight.purges == purges) {
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
        let flight = Arc::new(Flight::new(key.bytes(), purges));
        listed.push(Arc::clone(&flight));
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

    /// Under the lock of the shard.
    fn put(&self, place: u128, object: Arc<Object>) {
        let Some(table) = self.table.get() else { return };
        let url: Box<[u8]> = object.key().url().into();
        let before = table.get(&place).filter(|of| of.url == url);
        let is_other = |other: &&Arc<Object>| {
            let is_same =
                other.key() == object.key() && other.answer.variant.replaces(&object.answer.variant);
            if is_same {
                object.inherit(other);
            }
            !is_same
        };
        let mut objects: Vec<_> =
            before.iter().flat_map(|of| &of.objects).filter(is_other).map(Arc::clone).collect();
        objects.push(object);
        let oldest = objects.len().saturating_sub(MOST_OF_URL);
        objects.drain(..oldest);
        table.insert(place, Arc::new(OfUrl { url, objects }));
    }

    /// Takes one object out.
    pub fn remove(&self, object: &Arc<Object>) {
        let place = object.key().url_hash(self.secret);
        let shard = self.under_way.shard(place);
        if let Some(table) = self.table.get()
            && let Some(of) = table.get(&place)
        {
            let left: Vec<_> =
                of.objects.iter().filter(|other| !Arc::ptr_eq(other, object)).map(Arc::clone).collect();
            if left.is_empty() {
                table.remove(&place);
            } else {
                table.insert(place, Arc::new(OfUrl { url: of.url.clone(), objects: left }));
            }
        }
        drop(shard);
    }

    /// Takes out all that is stored under a URL, or declares it stale; and all that is under way for it: what is asked for from now on is
    /// asked for anew. `url`: what [`url_key`](super::url_key) makes of it. Tells how many objects there were.
    pub fn purge_url(&self, url: &[u8], kind: PurgeKind) -> usize {
        let place = CacheKey::hash_of_url(url, self.secret);
        let mut shard = self.under_way.shard(place);
        shard.remove(&place);
        let of = match kind {
            PurgeKind::Hard => self.table.get().and_then(|table| table.remove(&place)).map(|(_, of)| of),
            PurgeKind::Soft => self.stored(place),
        };
        let Some(of) = of else { return 0 };
        if kind == PurgeKind::Soft {
            of.objects.iter().for_each(|object| object.spoil());
        }
        of.objects.len()
    }

    /// Takes out what has this tag, or whose URL begins so, or everything; or declares it stale. It costs the same however much that is.
    /// Nobody who asks from now on gets it, nor what is under way.
    pub fn purge(&self, of: PurgeOf, kind: PurgeKind) {
        let is_all = of == PurgeOf::All && kind == PurgeKind::Hard;
        self.purges.note(of, kind);
        if is_all {
            // Its memory is wanted back.
            self.table.get().into_iter().for_each(Table::clear);
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
