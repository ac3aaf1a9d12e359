//! Buckets by key, in a table of fixed size that all threads share.
//!
//! The table is made of sets of eight entries; a key belongs to one set, and is looked for in its entries only. An entry is two
//! words: whose it is, and its bucket, which is when it is full again and whether somebody was refused since it was full. Whoever is
//! known takes from its bucket with one compare-and-swap. Who is not gets an entry under the latch of its set:
//!
//! 1. An entry whose bucket is full again says nothing about its key: it is given away first.
//! 2. Where there is none, the one that would be full soonest of those whose key was not refused since its bucket was full: that key
//!    begins anew when it comes again.
//! 3. An *offender*, who was refused since its bucket was full, keeps its entry until it is full. Where all eight are offenders,
//!    new keys have the one bucket together that the table has for this.
//!
//! Invariants:
//!
//! 1. A key has at most one entry: entries change their key only under the latch of their set, by somebody who has looked at all of
//!    them under it.
//! 2. What is taken is taken from the key's own bucket: while an entry changes its key its bucket says [`MOVING`], and a word that was
//!    read before that is not there any more; the key is read again behind the word. (Where another key's bucket has just the same
//!    word, to the nanosecond, one request counts there.)
//! 3. Nobody takes from an empty bucket, and no word but a given-back one moves a bucket back.
//! 4. An offender's word has its mark until its bucket is full; an entry with the mark and a bucket that is not full changes no key.
//! 5. Nobody waits: who finds a latch held looks again a few times, and then counts in the common bucket.
//! 6. Memory is that of [`ENTRIES`] entries, from the first moment on.

mod told;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::key::RateKey;
use super::pace::Pace;
use crate::tick::Tick;

pub use told::ToldBuckets;

/// Entries of a table.
pub const ENTRIES: usize = 65_536;
/// Entries of a set: their keys are one cache line, and their buckets another.
const WAYS: usize = 8;
/// How often a latch that is held is looked at before the common bucket is taken. Whoever holds it does a few dozen steps.
const LOOKS: usize = 200;
/// How often an entry may be taken from while it is to be given away.
const TRIES: usize = 8;

/// The bucket of an entry that is just getting another key.
const MOVING: u64 = u64::MAX;

/// A bucket: when it is full again, and whether somebody was refused since it was full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Word(u64);

impl Word {
    fn new(full_at: Tick, refused: bool) -> Word {
        // 63 bits of nanoseconds are 292 years; one less than all of them, so that no word is `MOVING`.
        Word(full_at.0.min((u64::MAX >> 1) - 1) << 1 | u64::from(refused))
    }

    fn full_at(self) -> Tick {
        Tick(self.0 >> 1)
    }

    fn refused(self) -> bool {
        self.0 & 1 == 1
    }

    fn is_full(self, now: Tick) -> bool {
        self.full_at() <= now
    }
}

#[derive(Debug, Default)]
#[repr(align(64))]
struct Line([AtomicU64; WAYS]);

#[derive(Debug, Default)]
struct Set {
    /// 0: nobody's.
    keys: Line,
    buckets: Line,
}

/// Who may change the keys of a set; given back on drop.
struct Latch<'a>(&'a AtomicBool);

impl<'a> Latch<'a> {
    /// `None`: somebody else has it, and keeps it.
    fn take(held: &'a AtomicBool, looks: usize) -> Option<Latch<'a>> {
        for _ in 0..looks {
            if !held.swap(true, Ordering::Acquire) {
                return Some(Latch(held));
            }
            #[cfg(test)]
            crate::steps::point();
            std::hint::spin_loop();
        }
        None
    }
}

impl Drop for Latch<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

/// Buckets by key. See the head of this file.
#[derive(Debug)]
pub(super) struct BucketTable {
    sets: Box<[Set]>,
    latches: Box<[AtomicBool]>,
    /// That of the new keys for which there is no entry.
    common: AtomicU64,
    /// How often somebody had to take from it.
    crowded: AtomicU64,
}

/// Whose bucket a key has.
enum Place<'a> {
    /// One that was just made, and the first request is taken from it.
    New,
    Own {
        key: &'a AtomicU64,
        bucket: &'a AtomicU64,
    },
    Common(&'a AtomicU64),
}

impl BucketTable {
    /// One with so many entries, rounded up to sets.
    pub(super) fn new(entries: usize) -> BucketTable {
        let sets = entries.div_ceil(WAYS).max(1);
        BucketTable {
            sets: (0..sets).map(|_| Set::default()).collect(),
            latches: (0..sets).map(|_| AtomicBool::new(false)).collect(),
            common: AtomicU64::new(0),
            crowded: AtomicU64::new(0),
        }
    }

    /// Takes one request out of the bucket of `key`.
    ///
    /// # Errors
    /// It is empty; the nanoseconds until it is not.
    #[inline]
    pub(super) fn take(&self, key: RateKey, pace: Pace, now: Tick) -> Result<(), u64> {
        let (set, latch) = self.of(key);
        if let Some((owner, bucket)) = set.find(key)
            && let Some(drawn) = draw(bucket, pace, now, || owner.load(Ordering::Acquire) == key.bits())
        {
            return drawn;
        }
        self.take_anew(set, latch, key, pace, now)
    }

    /// The same for a key that has no entry, or whose entry is just given away.
    #[cold]
    #[inline(never)]
    fn take_anew(
        &self,
        set: &Set,
        latch: &AtomicBool,
        key: RateKey,
        pace: Pace,
        now: Tick,
    ) -> Result<(), u64> {
        loop {
            match self.settle(set, latch, key, pace, now) {
                Place::New => return Ok(()),
                Place::Common(bucket) => {
                    self.crowded.fetch_add(1, Ordering::Relaxed);
                    return draw(bucket, pace, now, || true).unwrap_or(Ok(()));
                }
                Place::Own { key: owner, bucket } => {
                    let is_own = || owner.load(Ordering::Acquire) == key.bits();
                    // Else it has been given away since, so somebody else came on.
                    if let Some(drawn) = draw(bucket, pace, now, is_own) {
                        return drawn;
                    }
                }
            }
        }
    }

    /// How often a key had to take from the common bucket, refused or not.
    pub(super) fn crowded(&self) -> u64 {
        self.crowded.load(Ordering::Relaxed)
    }

    /// Whether there is a request in the bucket of `key`, without taking it. Whoever is refused is known from then on.
    ///
    /// # Errors
    /// There is none; the nanoseconds until there is.
    pub(super) fn pass(&self, key: RateKey, pace: Pace, now: Tick) -> Result<(), u64> {
        let (set, _) = self.of(key);
        // Who is new has a full bucket, unless it has to share one, of which it hears when it takes.
        let Some((owner, bucket)) = set.find(key) else { return Ok(()) };
        loop {
            let word = Word(bucket.load(Ordering::Acquire));
            point();
            if word.0 == MOVING || owner.load(Ordering::Acquire) != key.bits() {
                return Ok(());
            }
            let Err(wait) = pace.take(word.full_at(), now) else { return Ok(()) };
            if word.refused() || exchange(bucket, word, Word::new(word.full_at(), true)) {
                return Err(wait);
            }
        }
    }

    /// Puts back what was taken for `key`, because the request was refused elsewhere.
    pub(super) fn give_back(&self, key: RateKey, pace: Pace) {
        let (set, _) = self.of(key);
        let Some((owner, bucket)) = set.find(key) else { return };
        loop {
            let word = Word(bucket.load(Ordering::Acquire));
            point();
            if word.0 == MOVING || owner.load(Ordering::Acquire) != key.bits() {
                // Its bucket was full: nothing is missing.
                return;
            }
            if exchange(bucket, word, Word::new(pace.give_back(word.full_at()), word.refused())) {
                return;
            }
        }
    }

    /// When the bucket of `key` is full; a point in the past: it is. Of a key that is not known, and would get no entry, the common one.
    pub(super) fn full_at(&self, key: RateKey, now: Tick) -> Tick {
        let (set, _) = self.of(key);
        let word = match set.find(key) {
            Some((_, bucket)) => Word(bucket.load(Ordering::Acquire)),
            None if set.victim(now).is_none() => Word(self.common.load(Ordering::Acquire)),
            None => return Tick::ZERO,
        };
        if word.0 == MOVING { Tick::ZERO } else { word.full_at() }
    }

    /// Carries every bucket over from one pace to another: what is missing stays missing.
    pub(super) fn carry(&self, from: Pace, to: Pace, now: Tick) {
        let own = self.sets.iter().flat_map(|set| &set.buckets.0);
        for bucket in own.chain([&self.common]) {
            loop {
                let word = Word(bucket.load(Ordering::Acquire));
                if word.0 == MOVING || word.is_full(now) {
                    break;
                }
                let full_at = from.carry(word.full_at(), now, to);
                if exchange(bucket, word, Word::new(full_at, word.refused())) {
                    break;
                }
            }
        }
    }

    /// The same, but what is left stays left: also in a bucket that is full, as long as it is somebody's.
    pub(super) fn carry_left(&self, from: Pace, to: Pace, now: Tick) {
        let own = self.sets.iter().flat_map(|set| set.keys.0.iter().zip(&set.buckets.0));
        let own = own.filter(|(key, _)| key.load(Ordering::Acquire) != 0).map(|(_, bucket)| bucket);
        for bucket in own.chain([&self.common]) {
            loop {
                let word = Word(bucket.load(Ordering::Acquire));
                if word.0 == MOVING {
                    break;
                }
                let full_at = from.carry_left(word.full_at(), now, to);
                if exchange(bucket, word, Word::new(full_at, word.refused())) {
                    break;
                }
            }
        }
    }

    /// The set of a key, and its latch.
    #[inline]
    fn of(&self, key: RateKey) -> (&Set, &AtomicBool) {
        // The high half of the product is below the number of sets.
        let place = (u128::from(key.bits()) * self.sets.len() as u128) >> 64;
        let place = usize::try_from(place).unwrap_or(0);
        (&self.sets[place], &self.latches[place])
    }

    /// Where the bucket of `key` is. If it has none it gets an entry.
    fn settle<'a>(
        &'a self,
        set: &'a Set,
        latch: &AtomicBool,
        key: RateKey,
        pace: Pace,
        now: Tick,
    ) -> Place<'a> {
        let Some(_latch) = Latch::take(latch, LOOKS) else { return Place::Common(&self.common) };
        if let Some((key, bucket)) = set.find(key) {
            return Place::Own { key, bucket };
        }
        for _ in 0..TRIES {
            let Some((place, word)) = set.victim(now) else { break };
            let bucket = &set.buckets.0[place];
            if !exchange(bucket, word, Word(MOVING)) {
                // It has been taken from meanwhile.
                continue;
            }
            point();
            set.keys.0[place].store(key.bits(), Ordering::Release);
            point();
            // A full bucket has at least one request.
            let full_at = pace.take(Tick::ZERO, now).unwrap_or(now);
            bucket.store(Word::new(full_at, false).0, Ordering::Release);
            return Place::New;
        }
        Place::Common(&self.common)
    }

    #[cfg(test)]
    pub(super) fn entries_of(&self, key: RateKey) -> usize {
        let (set, _) = self.of(key);
        set.keys.0.iter().filter(|own| own.load(Ordering::Acquire) == key.bits()).count()
    }

    #[cfg(test)]
    pub(super) fn size(&self) -> usize {
        size_of_val(&*self.sets) + size_of_val(&*self.latches)
    }
}

impl Set {
    /// The entry of `key`: the word that says whose it is, and its bucket.
    #[inline]
    fn find(&self, key: RateKey) -> Option<(&AtomicU64, &AtomicU64)> {
        let place = self.keys.0.iter().position(|own| own.load(Ordering::Acquire) == key.bits())?;
        point();
        Some((&self.keys.0[place], &self.buckets.0[place]))
    }

    /// The entry that is given away next, and its bucket as it was; `None`: all are offenders.
    fn victim(&self, now: Tick) -> Option<(usize, Word)> {
        let mut soonest: Option<(usize, Word)> = None;
        for (place, bucket) in self.buckets.0.iter().enumerate() {
            let word = Word(bucket.load(Ordering::Acquire));
            if word.0 == MOVING {
                continue;
            }
            if word.is_full(now) {
                return Some((place, word));
            }
            if !word.refused() && soonest.is_none_or(|(_, other)| word.0 < other.0) {
                soonest = Some((place, word));
            }
        }
        soonest
    }
}

/// Takes one request out of a bucket. `None`: it is not that of this key any more.
#[inline]
fn draw(bucket: &AtomicU64, pace: Pace, now: Tick, is_own: impl Fn() -> bool) -> Option<Result<(), u64>> {
    loop {
        let word = Word(bucket.load(Ordering::Acquire));
        point();
        // In this order: whose it was when the word was there.
        if word.0 == MOVING || !is_own() {
            return None;
        }
        match pace.take(word.full_at(), now) {
            Ok(full_at) => {
                if exchange(bucket, word, Word::new(full_at, word.refused() && !word.is_full(now))) {
                    return Some(Ok(()));
                }
            }
            // An offender costs no write.
            Err(wait) if word.refused() => return Some(Err(wait)),
            Err(wait) => {
                if exchange(bucket, word, Word::new(word.full_at(), true)) {
                    return Some(Err(wait));
                }
            }
        }
    }
}

#[inline]
fn exchange(bucket: &AtomicU64, from: Word, to: Word) -> bool {
    point();
    bucket.compare_exchange(from.0, to.0, Ordering::AcqRel, Ordering::Relaxed).is_ok()
}

/// Between two steps on what is shared.
#[inline(always)]
fn point() {
    #[cfg(test)]
    crate::steps::point();
}

#[cfg(test)]
mod tests;
