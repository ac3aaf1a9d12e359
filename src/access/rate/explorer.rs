//! Looks for interleavings that break the invariants of [`super::table`]: threads that take, look, put back and come anew run one at a
//! time, and at each step on what they share chance decides who goes on.

use std::collections::HashMap;

use super::buckets::RateBuckets;
use super::key::RateKey;
use super::pace::Pace;
use super::several::take_all;
use crate::steps::play;
use crate::tick::Tick;

const SECOND: u64 = 1_000_000_000;
const NOW: Tick = Tick(1_000 * SECOND);
/// So slow that nothing comes back.
const PACE: Pace = Pace { interval: SECOND, burst: 3 };

/// Numbers by SplitMix64.
struct Draws(u64);

impl Draws {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let word = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (word ^ (word >> 27)) % end
    }
}

/// How often each key passed, and how often it was refused.
type Tally = HashMap<u64, (u32, u32)>;

fn sum(tallies: Vec<Tally>) -> Tally {
    let mut all = Tally::new();
    for (key, (passed, refused)) in tallies.into_iter().flatten() {
        let entry = all.entry(key).or_default();
        *entry = (entry.0 + passed, entry.1 + refused);
    }
    all
}

/// One that asks for some of `keys` keys.
fn client(buckets: &RateBuckets, seed: u64, keys: u64) -> Tally {
    let (mut draws, mut tally) = (Draws(seed), Tally::new());
    for _ in 0..8 {
        let key = draws.below(keys);
        let entry = tally.entry(key).or_default();
        match buckets.take(RateKey::new(key + 1), NOW) {
            Ok(()) => entry.0 += 1,
            Err(_) => entry.1 += 1,
        }
    }
    tally
}

/// As many keys as there are entries, all new at once: each passes exactly as often as its burst, and has one entry.
#[test]
fn a_new_key_has_one_bucket_whoever_brings_it() {
    for seed in 0..1_500 {
        let buckets = RateBuckets::new(PACE, 8);
        let actors: Vec<Box<dyn FnOnce() -> Tally + Send + '_>> = (0..4)
            .map(|number| {
                let buckets = &buckets;
                Box::new(move || client(buckets, seed * 7 + number, 3)) as Box<dyn FnOnce() -> Tally + Send>
            })
            .collect();
        for (key, (passed, refused)) in sum(play(seed, actors)) {
            let asked = passed + refused;
            // Who met a latch for too long counts in the common bucket: never here, where its holder goes on.
            assert_eq!(passed, asked.min(3), "key {key} with seed {seed}");
            assert_eq!(buckets.table().entries_of(RateKey::new(key + 1)), 1, "key {key} with seed {seed}");
        }
    }
}

/// Many new keys, eight entries, and an offender that asks all the time.
#[test]
fn a_flood_of_new_keys_resets_no_offender() {
    for seed in 0..1_500 {
        let buckets = RateBuckets::new(PACE, 8);
        let offender = RateKey::new(1_000);
        for _ in 0..4 {
            let _ = buckets.take(offender, NOW);
        }
        let buckets = &buckets;
        let mut actors: Vec<Box<dyn FnOnce() -> Tally + Send + '_>> = vec![Box::new(move || {
            for _ in 0..20 {
                assert!(buckets.take(offender, NOW).is_err() && buckets.pass(offender, NOW).is_err());
            }
            Tally::new()
        })];
        for number in 0..3 {
            actors.push(Box::new(move || client(buckets, seed * 5 + number, 40)));
        }
        for (key, _) in sum(play(seed, actors)) {
            assert!(buckets.table().entries_of(RateKey::new(key + 1)) <= 1, "key {key} with seed {seed}");
        }
        assert!(buckets.take(offender, NOW).is_err(), "seed {seed}");
    }
}

/// Buckets that are full again are given away while their owners come back.
#[test]
fn who_comes_back_while_its_place_is_given_away_counts_once() {
    for seed in 0..1_500 {
        let buckets = RateBuckets::new(PACE, 8);
        for key in 0..8 {
            buckets.take(RateKey::new(key + 1), NOW).expect("new");
        }
        let later = Tick(NOW.0 + 100 * SECOND);
        let buckets = &buckets;
        let take = move |key: u64, times: u32| {
            let passed = (0..times).filter(|_| buckets.take(RateKey::new(key + 1), later).is_ok()).count();
            Tally::from([(key, (u32::try_from(passed).expect("few"), 0))])
        };
        let actors: Vec<Box<dyn FnOnce() -> Tally + Send + '_>> =
            vec![Box::new(move || take(0, 3)), Box::new(move || take(0, 3)), Box::new(move || take(20, 5))];
        let tally = sum(play(seed, actors));
        assert_eq!((tally[&0].0, tally[&20].0), (3, 3), "seed {seed}");
    }
}

/// Several at once: nobody takes from one without the other.
#[test]
fn who_is_refused_by_one_has_taken_from_none() {
    for seed in 0..1_500 {
        let wide = RateBuckets::new(Pace { burst: 100, ..PACE }, 8);
        let narrow = RateBuckets::new(PACE, 8);
        let key = [RateKey::new(3), RateKey::new(4)];
        let (wide, narrow) = (&wide, &narrow);
        let actors: Vec<Box<dyn FnOnce() -> Tally + Send + '_>> = (0..3)
            .map(|_| {
                let ask = move || take_all(|place| [wide, narrow][place], &key, NOW).is_ok();
                Box::new(move || Tally::from([(0, ((0..3).map(|_| u32::from(ask())).sum(), 0))]))
                    as Box<dyn FnOnce() -> Tally + Send>
            })
            .collect();
        assert_eq!(sum(play(seed, actors))[&0].0, 3, "seed {seed}");
        assert_eq!(wide.look(key[0], NOW).left, 97, "seed {seed}");
        assert_eq!(narrow.look(key[1], NOW).left, 0, "seed {seed}");
    }
}

/// The pace changes while somebody asks: nothing is lost, and nobody gets more than the larger of both.
#[test]
fn a_pace_that_changes_meanwhile_keeps_what_is_missing() {
    for seed in 0..1_500 {
        let buckets = RateBuckets::new(PACE, 8);
        let key = RateKey::new(3);
        let buckets = &buckets;
        let actors: Vec<Box<dyn FnOnce() -> Tally + Send + '_>> = vec![
            Box::new(move || {
                Tally::from([(0, ((0..6).map(|_| u32::from(buckets.take(key, NOW).is_ok())).sum(), 0))])
            }),
            Box::new(move || {
                buckets.set_pace(Pace { interval: 2 * SECOND, burst: 4 }, NOW);
                Tally::new()
            }),
        ];
        let passed = sum(play(seed, actors))[&0].0;
        assert!((3..=5).contains(&passed), "{passed} with seed {seed}");
        let left = buckets.look(key, NOW).left;
        assert!(left <= 1, "{left} with seed {seed}");
    }
}
