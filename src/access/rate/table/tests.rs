use std::collections::HashMap;

use proptest::prelude::*;

use super::*;

const SECOND: u64 = 1_000_000_000;

fn at(millis: u64) -> Tick {
    Tick(5_000 * SECOND + millis * 1_000_000)
}

/// Keys as a hash gives them.
fn spread(number: u64) -> RateKey {
    let mut word = number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    RateKey::new(word ^ (word >> 31))
}

#[test]
fn a_million_new_keys_reset_no_offender_and_take_no_memory() {
    let table = BucketTable::new(ENTRIES);
    assert_eq!(table.size(), ENTRIES * 16 + ENTRIES / WAYS, "a little over 1 MiB");
    let pace = Pace { interval: 6 * SECOND, burst: 20 };
    let offenders: Vec<RateKey> = (0..100).map(|number| spread(u64::MAX - number)).collect();
    for key in &offenders {
        for _ in 0..20 {
            assert_eq!(table.take(*key, pace, at(0)), Ok(()));
        }
        assert!(table.take(*key, pace, at(0)).is_err());
    }
    // In a minute.
    for number in 0..1_000_000 {
        assert_eq!(table.take(spread(number), pace, at(number * 60 / 1_000)), Ok(()), "who is new may come");
    }
    for key in &offenders {
        let passed = (0..50).filter(|_| table.take(*key, pace, at(60_000)).is_ok()).count();
        assert_eq!(passed, 10, "what came back in a minute, and not the burst");
        assert_eq!(table.entries_of(*key), 1);
    }
    assert_eq!(table.size(), ENTRIES * 16 + ENTRIES / WAYS);
}

#[test]
fn what_is_full_is_forgotten_first_then_what_is_fullest_and_offenders_never() {
    let table = BucketTable::new(WAYS);
    let pace = Pace { interval: SECOND, burst: 3 };
    let key = |number: u64| RateKey::new(number + 1);
    let take = |number, millis| table.take(key(number), pace, at(millis)).is_ok();
    // Seven offenders, and one that has taken two.
    for number in 0..7 {
        assert!((0..3).all(|_| take(number, 0)) && !take(number, 0), "{number}");
    }
    assert!(take(7, 0) && take(7, 0));
    // A new one gets the place of the eighth, which begins anew when it comes again.
    assert!(take(8, 1) && table.entries_of(key(7)) == 0);
    assert!(take(8, 2) && take(8, 2) && !take(8, 2), "it is an offender now");
    assert!((0..9).filter(|&number| number != 7).all(|number| table.entries_of(key(number)) == 1));
    assert_eq!(table.crowded(), 0);
    // All are offenders: the new ones share a bucket of three.
    let passed = (20..40).filter(|&number| take(number, 1_000)).count();
    assert_eq!((passed, table.crowded()), (3, 20));
    assert!((0..7).all(|number| take(number, 1_000) && !take(number, 1_000)), "what came back in a second");
    assert_eq!(table.full_at(key(50), at(1_000)), at(4_000), "a new one would see the common bucket");
    // Once an offender's bucket is full its place is free.
    assert!(take(50, 60_000) && table.entries_of(key(50)) == 1);
    assert!((0..2).all(|_| take(50, 60_000)) && !take(50, 60_000));
}

#[test]
fn what_is_given_back_can_be_taken_again() {
    let table = BucketTable::new(64);
    let (key, pace) = (spread(3), Pace { interval: SECOND, burst: 2 });
    table.give_back(key, pace);
    for _ in 0..2 {
        assert_eq!(table.take(key, pace, at(0)), Ok(()));
    }
    assert_eq!(table.pass(key, pace, at(0)), Err(SECOND));
    table.give_back(key, pace);
    assert_eq!(table.pass(key, pace, at(0)), Ok(()));
    assert_eq!((table.take(key, pace, at(0)), table.take(key, pace, at(0))), (Ok(()), Err(SECOND)));
}

#[test]
fn a_latch_that_is_held_keeps_nobody_waiting() {
    let table = BucketTable::new(WAYS);
    let pace = Pace { interval: SECOND, burst: 2 };
    assert_eq!(table.take(spread(1), pace, at(0)), Ok(()));
    table.latches[0].store(true, Ordering::Release);
    assert_eq!(table.take(spread(1), pace, at(0)), Ok(()), "who is known needs no latch");
    let passed = (2..9).filter(|&number| table.take(spread(number), pace, at(0)).is_ok()).count();
    assert_eq!(passed, 2, "the others share a bucket");
}

#[test]
fn threads_take_exactly_what_is_there() {
    let table = BucketTable::new(256);
    let pace = Pace { interval: 1_000_000, burst: 500 };
    let passed = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for thread in 0..4_u64 {
            let (table, passed) = (&table, &passed);
            scope.spawn(move || {
                for turn in 0..20_000_u64 {
                    // Two seconds of time pass, and other keys come and go.
                    let now = Tick(at(0).0 + turn * 100_000);
                    passed.fetch_add(u64::from(table.take(spread(0), pace, now).is_ok()), Ordering::Relaxed);
                    let _ = table.take(spread(1 + turn % 700 * 4 + thread), pace, now);
                }
            });
        }
    });
    // The burst and two seconds; a thread that is behind sees an older time, in which a bucket is emptier.
    let passed = passed.into_inner();
    assert!((2_450..=2_500).contains(&passed), "{passed}");
}

/// A table that never forgets and counts what is in a bucket.
#[derive(Default)]
struct Naive(HashMap<u64, (u64, u64)>);

impl Naive {
    fn take(&mut self, key: u64, pace: Pace, now: u64) -> bool {
        let whole = pace.interval * u64::from(pace.burst);
        let (level, seen) = self.0.entry(key).or_insert((whole, now));
        *level = (*level + (now - *seen)).min(whole);
        *seen = now;
        let passes = *level >= pace.interval;
        *level -= if passes { pace.interval } else { 0 };
        passes
    }
}

proptest! {
    /// Where nothing has to be forgotten, it is a bucket for each key.
    #[test]
    fn it_is_a_bucket_for_each_key(
        steps in prop::collection::vec((0_u64..6, 0_u64..400), 1..300), interval in 1_u64..300, burst in 1_u32..5,
    ) {
        let (table, pace) = (BucketTable::new(WAYS), Pace { interval, burst });
        let (mut naive, mut now) = (Naive::default(), 1_000_000);
        for (key, gap) in steps {
            now += gap;
            let took = table.take(RateKey::new(key + 1), pace, Tick(now)).is_ok();
            prop_assert_eq!(took, naive.take(key, pace, now));
            prop_assert!(table.entries_of(RateKey::new(key + 1)) == 1);
        }
    }

    /// However many come: an offender keeps its entry and its bucket, and nobody has two.
    #[test]
    fn an_offender_stays_one(
        steps in prop::collection::vec((0_u64..40, 0_u64..30), 1..400), interval in 1_u64..300, burst in 1_u32..4,
    ) {
        let (table, pace) = (BucketTable::new(WAYS), Pace { interval, burst });
        let mut now = 1_000_000;
        // Who was refused, and when its bucket is full.
        let mut offenders: HashMap<u64, Tick> = HashMap::new();
        for (number, gap) in steps {
            now += gap;
            offenders.retain(|_, full_at| full_at.0 > now);
            let key = RateKey::new(number + 1);
            let full_at = table.full_at(key, Tick(now));
            let has_own = table.entries_of(key) == 1;
            if let Some(expected) = offenders.get(&number) {
                prop_assert!(has_own && full_at == *expected, "an offender was forgotten");
            }
            let took = table.take(key, pace, Tick(now));
            prop_assert!(table.entries_of(key) <= 1);
            let full_at = table.full_at(key, Tick(now));
            if table.entries_of(key) == 1 && (took.is_err() || offenders.contains_key(&number)) {
                offenders.insert(number, full_at);
            }
        }
    }
}
