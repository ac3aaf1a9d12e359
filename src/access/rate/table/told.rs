//! Buckets as one process tells another of them, on the same machine: both read one clock.

use std::sync::atomic::{AtomicU64, Ordering};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::{Deserialize, Serialize};

use super::super::key::RateKey;
use super::super::pace::Pace;
use super::{BucketTable, MOVING, Place, Word, exchange, point};
use crate::tick::Tick;

/// Bytes of one bucket: its key, and when it is full with whether somebody was refused.
const ROW: usize = 16;

/// Buckets that are not full.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToldBuckets {
    interval: u64,
    burst: u32,
    /// Rows of sixteen bytes, in base64.
    rows: String,
}

impl ToldBuckets {
    fn rows(&self) -> Vec<(RateKey, Word)> {
        let bytes = BASE64.decode(&self.rows).unwrap_or_default();
        let number = |bytes: &[u8]| bytes.try_into().map_or(0, u64::from_le_bytes);
        let row = |row: &[u8]| {
            let (key, word) = row.split_at(ROW / 2);
            (RateKey::new(number(key)), Word(number(word)))
        };
        bytes.chunks_exact(ROW).map(row).filter(|(_, word)| word.0 != MOVING).collect()
    }
}

impl BucketTable {
    /// All buckets with a key of their own that are not full at `now`.
    pub(in super::super) fn tell(&self, pace: Pace, now: Tick) -> ToldBuckets {
        let mut rows = Vec::new();
        for (owner, bucket) in self.sets.iter().flat_map(|set| set.keys.0.iter().zip(&set.buckets.0)) {
            let key = owner.load(Ordering::Acquire);
            point();
            let word = Word(bucket.load(Ordering::Acquire));
            point();
            // The word was that of this key, unless the entry has changed hands in between: then its bucket was of no account.
            let is_own = owner.load(Ordering::Acquire) == key && word.0 != MOVING;
            if key != 0 && is_own && !word.is_full(now) {
                rows.extend(key.to_le_bytes());
                rows.extend(word.0.to_le_bytes());
            }
        }
        ToldBuckets { interval: pace.interval, burst: pace.burst, rows: BASE64.encode(rows) }
    }

    /// Takes out of the buckets what is missing in those that are `told`. A key for which there is no entry is forgotten.
    pub(in super::super) fn take_over(&self, told: &ToldBuckets, pace: Pace, now: Tick) {
        let before = Pace { interval: told.interval.max(1), burst: told.burst.max(1) };
        for (key, word) in told.rows() {
            let full_at =
                if before == pace { word.full_at() } else { before.carry(word.full_at(), now, pace) };
            let missing = full_at.0.saturating_sub(now.0);
            if missing > 0 {
                self.lack(key, Word::new(Tick(missing), word.refused()), pace, now);
            }
        }
    }

    /// Takes so much out of the bucket of `key` that it takes as long until it is full as `less` says, and longer if something is missing already.
    fn lack(&self, key: RateKey, less: Word, pace: Pace, now: Tick) {
        let (set, latch) = self.of(key);
        loop {
            match self.settle(set, latch, key, pace, now) {
                // It has its entry now; nobody has asked for the request that was taken with it.
                Place::New => self.give_back(key, pace),
                Place::Common(_) => return,
                Place::Own { key: owner, bucket } => {
                    if take(owner, bucket, key, less, pace, now) {
                        return;
                    }
                }
            }
        }
    }
}

/// False: the bucket is not that of this key any more.
fn take(owner: &AtomicU64, bucket: &AtomicU64, key: RateKey, less: Word, pace: Pace, now: Tick) -> bool {
    loop {
        let word = Word(bucket.load(Ordering::Acquire));
        point();
        if word.0 == MOVING || owner.load(Ordering::Acquire) != key.bits() {
            return false;
        }
        let missing = word.full_at().0.saturating_sub(now.0).saturating_add(less.full_at().0);
        let full_at = Tick(now.0.saturating_add(missing.min(pace.empty())));
        let refused = less.refused() || (word.refused() && !word.is_full(now));
        if exchange(bucket, word, Word::new(full_at, refused)) {
            return true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;
    const PACE: Pace = Pace { interval: SECOND, burst: 5 };

    fn taken(table: &BucketTable, key: RateKey, times: u32, now: Tick) {
        (0..times).for_each(|_| {
            let _ = table.take(key, PACE, now);
        });
    }

    #[test]
    fn what_is_missing_goes_on_missing_in_the_next_process_together_with_what_was_taken_there() {
        let (before, after, now) = (BucketTable::new(64), BucketTable::new(64), Tick(1_000 * SECOND));
        let (some, all, none) = (RateKey::new(1 << 60), RateKey::new(2 << 60), RateKey::new(3 << 60));
        taken(&before, some, 2, now);
        taken(&before, all, 7, now);
        taken(&before, none, 1, Tick(900 * SECOND));
        taken(&after, some, 1, now);
        let told = serde_json::to_string(&before.tell(PACE, now)).unwrap();
        let told: ToldBuckets = serde_json::from_str(&told).unwrap();
        assert_eq!(told.rows().len(), 2, "what is full says nothing");
        after.take_over(&told, PACE, now);
        assert_eq!(after.full_at(some, now), Tick(1_003 * SECOND), "two and one");
        assert_eq!(after.full_at(all, now), Tick(1_005 * SECOND));
        assert_eq!(after.full_at(none, now), Tick::ZERO);
        let rows = after.tell(PACE, now).rows();
        let refused: Vec<_> = rows.iter().map(|(key, word)| (*key, word.refused())).collect();
        assert!(refused.contains(&(all, true)) && refused.contains(&(some, false)), "{refused:?}");
    }

    #[test]
    fn another_pace_keeps_how_many_are_missing_and_no_bucket_is_emptier_than_empty() {
        let (before, after, now) = (BucketTable::new(64), BucketTable::new(64), Tick(1_000 * SECOND));
        let key = RateKey::new(7 << 58);
        taken(&before, key, 4, now);
        let slower = Pace { interval: 10 * SECOND, burst: 6 };
        after.take_over(&before.tell(PACE, now), slower, now);
        assert_eq!(after.full_at(key, now), Tick(1_040 * SECOND));
        after.take_over(&before.tell(PACE, now), slower, now);
        assert_eq!(after.full_at(key, now), Tick(1_060 * SECOND), "six at most");
        // What nobody understands is nothing.
        let wrong = ToldBuckets { rows: "!".to_owned(), ..ToldBuckets::default() };
        BucketTable::new(8).take_over(&wrong, PACE, now);
    }
}
