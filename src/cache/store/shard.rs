//! A shard of the store: a table of what is stored, and the memory that this takes, with all that is not in the table.
//!
//! `quick_cache` bounds what is in the table. Bodies that are coming are not there yet, and those that were taken out are still held by
//! those who read them. So memory is counted where it is [held](super::held), and the table is made so much smaller as the rest needs.
//! Invariants:
//!
//! 1. Bytes are held from before they are there until they are gone.
//! 2. What is held is at most what may be. It grows only under the turn, and whoever lets it grow settles: lets go what is stored, until it
//!    fits again, or takes back what it has let grow. (Of the entry of a URL the heads alone are held for it: bodies have held their own since
//!    they began to come.)
//! 3. Nobody can have everything let go: when three quarters are held by others than the table, nothing more is let in. What is let go while
//!    it is read makes no room, and counts to these.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use quick_cache::sync::{Cache, DefaultLifecycle};
use quick_cache::{OptionsBuilder, Weighter};

use super::admission::{WantedBefore, admits};
use super::hashed::Hashed;
use super::held::{Held, Holdings};
use super::object::Object;
use super::room::Lender;
use super::weight::{block, bytes};

/// Times that objects are let go for one: what somebody reads just then makes no room.
const ROUNDS: usize = 4;
/// The part of the table for what is wanted often. On traces of mixed sizes more of it, or less, has fewer hits.
const HOT: f64 = 0.9;
/// A place where no URL is: whatever is put there goes at once. (No more likely to be the hash of a URL than any other one.)
const NOWHERE: u128 = 0;
/// What an entry takes in the table, with what the table has in store.
const ENTRY: u64 = 192;

/// What is stored, by the hash of its URL.
type Table = Cache<u128, Arc<OfUrl>, Weights, Hashed>;

/// A shard of the store.
#[derive(Debug)]
pub(super) struct Shard {
    table: Table,
    holdings: Arc<Holdings>,
    wanted: WantedBefore,
    turn: Mutex<()>,
}

/// What is stored under one URL, the newest last.
#[derive(Debug)]
pub(super) struct OfUrl {
    pub(super) url: Box<[u8]>,
    pub(super) objects: Box<[Arc<Object>]>,
    weight: u64,
    /// For all but the bodies.
    _held: Held,
}

#[derive(Clone, Debug)]
struct Weights;

impl Weighter<u128, Arc<OfUrl>> for Weights {
    fn weight(&self, _: &u128, of: &Arc<OfUrl>) -> u64 {
        of.weight
    }
}

impl OfUrl {
    fn new(url: Box<[u8]>, objects: Vec<Arc<Object>>, holdings: &Arc<Holdings>) -> OfUrl {
        let list = block(size_of_val(&*objects) as u64);
        let own = ENTRY + block(16 + size_of::<OfUrl>() as u64) + bytes(url.len()) + list;
        let held = own + objects.iter().map(|object| object.weight()).sum::<u64>();
        let bodies: u64 = objects.iter().map(|object| object.body_weight()).sum();
        OfUrl { url, objects: objects.into(), weight: held + bodies, _held: Held::new(holdings, held) }
    }

    /// Bytes of memory behind it.
    pub(super) fn weight(&self) -> u64 {
        self.weight
    }

    /// What takes so much room.
    fn nothing(weight: u64, holdings: &Arc<Holdings>) -> OfUrl {
        OfUrl { url: Box::default(), objects: Box::default(), weight, _held: Held::new(holdings, 0) }
    }
}

impl Shard {
    /// One that holds so many bytes.
    pub(super) fn new(memory: u64) -> Shard {
        let items = usize::try_from(memory / 16_384).unwrap_or(1 << 20).clamp(1_024, 1 << 20);
        let options = OptionsBuilder::new()
            .estimated_items_capacity(items)
            .weight_capacity(memory)
            .hot_allocation(HOT)
            .shards(1)
            .build()
            .unwrap_or_else(|_| unreachable!("all that must be said is said"));
        let table = Cache::with_options(options, Weights, Hashed::default(), DefaultLifecycle::default());
        let shard = Shard {
            table,
            holdings: Arc::default(),
            wanted: WantedBefore::default(),
            turn: Mutex::default(),
        };
        shard.holdings.resize(memory);
        shard
    }

    fn turn(&self) -> MutexGuard<'_, ()> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says how many bytes it holds.
    pub(super) fn resize(&self, memory: u64) {
        let _turn = self.turn();
        // It forgets what it knows of what is gone.
        if self.table.capacity() != memory {
            self.table.set_capacity(memory);
            self.holdings.resize(memory);
        }
        self.settle();
    }

    /// Bytes that it may hold.
    pub(super) fn memory(&self) -> u64 {
        self.table.capacity()
    }

    /// Bytes that are held.
    pub(super) fn bytes(&self) -> u64 {
        self.holdings.bytes()
    }

    /// What is stored where URLs have this hash.
    pub(super) fn get(&self, place: u128) -> Option<Arc<OfUrl>> {
        self.table.get(&place)
    }

    /// Where something is stored, in no order.
    pub(super) fn places(&self) -> Vec<u128> {
        self.table.iter().map(|(place, _)| place).collect()
    }

    /// What is stored there, for who does not want it.
    pub(super) fn peek(&self, place: u128) -> Option<Arc<OfUrl>> {
        self.table.peek(&place)
    }

    /// Takes it out.
    pub(super) fn remove(&self, place: u128) -> Option<Arc<OfUrl>> {
        self.table.remove(&place).map(|(_, of)| of)
    }

    /// Takes all out.
    pub(super) fn clear(&self) {
        self.table.clear();
        self.holdings.clear();
    }

    /// Stores these under a URL, in the place of what was there; or nothing, if there is no room.
    pub(super) fn put(&self, place: u128, url: Box<[u8]>, objects: Vec<Arc<Object>>) {
        let _turn = self.turn();
        self.table.insert(place, Arc::new(OfUrl::new(url, objects, &self.holdings)));
        if !self.settle() {
            self.table.remove(&place);
        }
    }

    /// Lets go what is stored until what is held fits. False: it does not. Under the turn.
    fn settle(&self) -> bool {
        let memory = self.table.capacity();
        for _ in 0..ROUNDS {
            // In this order: what is taken out between the two is seen as less that is held, not as more beside the table.
            let stored = self.table.weight();
            let held = self.holdings.bytes();
            if held <= memory {
                return true;
            }
            let beside = held.saturating_sub(stored);
            if beside > memory - memory / 4 {
                return false;
            }
            self.make_room(beside);
        }
        self.holdings.bytes() <= memory
    }

    /// Lets go what is stored until so much of the table is free: by putting something of that weight into it.
    fn make_room(&self, weight: u64) {
        self.table.insert(NOWHERE, Arc::new(OfUrl::nothing(weight, &self.holdings)));
        self.table.remove(&NOWHERE);
    }
}

impl Lender for Shard {
    fn holdings(&self) -> &Arc<Holdings> {
        &self.holdings
    }

    fn hold(&self, bytes: u64) -> Option<Held> {
        let _turn = self.turn();
        let held = Held::new(&self.holdings, bytes);
        self.settle().then_some(held)
    }

    fn lets_in(&self, weight: u64, others: u64, key: u64, is_wanted: bool) -> bool {
        admits(weight, others, self.memory(), || is_wanted || self.wanted.note(key))
    }
}
