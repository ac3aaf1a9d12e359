//! When a slow attempt gets a competitor: after as long as most of a target's answers take.
//!
//! First-byte times are counted in buckets that all workers share. Now and then somebody looks through them; what is old
//! counts less and less.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use crate::tick::{Tick, nanos};

/// Parts of an octave: a time is known to a sixteenth.
const PARTS: usize = 16;
/// From about a microsecond to about a minute; what is longer counts as that.
const BUCKETS: usize = 384;
/// Times without which nothing is known.
const ENOUGH: u64 = 100;
/// From so many times on, half of them are forgotten at each look.
const MANY: u64 = 1_000;
/// How long a look is good for.
const LOOK: Duration = Duration::from_secs(1);

/// The bucket of a time.
fn bucket(time: Duration) -> usize {
    let micros = nanos(time) >> 10;
    if micros < PARTS as u64 {
        return micros as usize;
    }
    let octave = micros.ilog2() as usize - 4;
    let part = (micros >> octave) as usize - PARTS;
    ((octave + 1) * PARTS + part).min(BUCKETS - 1)
}

/// The end of a bucket: no time in it is longer, but for those in the last one.
fn end(bucket: usize) -> Duration {
    let next = bucket as u64 + 1;
    let (octave, part) = (next / PARTS as u64, next % PARTS as u64);
    let micros = if octave == 0 { part } else { (PARTS as u64 + part) << (octave - 1) };
    Duration::from_nanos(micros << 10)
}

/// The time within which `percent` of those in the buckets are; `None`: there are too few.
fn percentile(counts: &[u32], percent: u8) -> Option<Duration> {
    let total: u64 = counts.iter().map(|&count| u64::from(count)).sum();
    if total < ENOUGH {
        return None;
    }
    let mut left = (total * u64::from(percent)).div_ceil(100);
    let found = counts.iter().position(|&count| {
        left = left.saturating_sub(u64::from(count));
        left == 0
    });
    found.map(end)
}

/// A target's first-byte times. It holds nothing until something is noted.
#[derive(Debug, Default)]
pub struct HedgePace(OnceLock<Box<Times>>);

#[derive(Debug)]
struct Times {
    counts: [AtomicU32; BUCKETS],
    /// What the last look has found, in nanoseconds; [`u64::MAX`]: too little.
    found: AtomicU64,
    /// When somebody looks again.
    due: AtomicU64,
}

impl Default for Times {
    fn default() -> Self {
        let counts = [const { AtomicU32::new(0) }; BUCKETS];
        Times { counts, found: AtomicU64::new(u64::MAX), due: AtomicU64::new(0) }
    }
}

impl HedgePace {
    /// Notes that a first byte took `time`, or at least that long.
    pub fn note(&self, time: Duration) {
        let times = self.0.get_or_init(Box::default);
        times.counts[bucket(time)].fetch_add(1, Ordering::Relaxed);
    }

    /// The time within which `percent` of a target's answers begin; `None`: too few of them are known.
    #[must_use]
    pub fn percentile(&self, percent: u8, now: Tick) -> Option<Duration> {
        let times = self.0.get()?;
        let due = times.due.load(Ordering::Relaxed);
        if now.0 >= due {
            let next = now.after(LOOK).0;
            // One of those who find it due does it.
            if times.due.compare_exchange(due, next, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
                times.look(percent);
            }
        }
        Some(times.found.load(Ordering::Relaxed)).filter(|&found| found != u64::MAX).map(Duration::from_nanos)
    }
}

impl Times {
    fn look(&self, percent: u8) {
        let counts = self.counts.each_ref().map(|count| count.load(Ordering::Relaxed));
        self.found.store(percentile(&counts, percent).map_or(u64::MAX, nanos), Ordering::Relaxed);
        if counts.iter().map(|&count| u64::from(count)).sum::<u64>() >= MANY {
            for (shared, count) in self.counts.iter().zip(counts) {
                // What was added meanwhile stays.
                shared.fetch_sub(count.div_ceil(2), Ordering::Relaxed);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::targets::{Budget, BudgetShare, Chance};

    fn millis(count: u64) -> Duration {
        Duration::from_millis(count)
    }

    fn at(span: Duration) -> Tick {
        Tick(3_600_000_000_000).after(span)
    }

    #[test]
    fn little_is_known_from_few_times() {
        let pace = HedgePace::default();
        assert_eq!(pace.percentile(95, at(millis(0))), None);
        (0..99).for_each(|_| pace.note(millis(20)));
        assert_eq!(pace.percentile(95, at(millis(0))), None);
        pace.note(millis(20));
        assert_eq!(pace.percentile(95, at(millis(999))), None, "nobody looks yet");
        let found = pace.percentile(95, at(millis(1001))).expect("enough");
        assert!(found >= millis(20) && found < millis(22), "{found:?}");
    }

    #[test]
    fn old_times_are_forgotten_where_there_are_new_ones() {
        let pace = HedgePace::default();
        (0..10_000).for_each(|_| pace.note(millis(200)));
        let mut second = 0;
        let mut look = |pace: &HedgePace| {
            second += 1;
            pace.percentile(95, at(Duration::from_secs(second))).expect("enough")
        };
        assert!(look(&pace) > millis(200));
        // Of all that were ever noted they are not 95 % for three minutes.
        let looks = (1..100).find(|_| {
            (0..1_000).for_each(|_| pace.note(millis(20)));
            look(&pace) < millis(22)
        });
        assert!(looks.is_some_and(|looks| looks < 10), "{looks:?}");
        let found: Vec<_> = (0..100).map(|_| look(&pace)).collect();
        assert_eq!(found[99], found[0], "a quiet target keeps what it knows");
    }

    proptest! {
        #[test]
        fn a_bucket_ends_little_behind_its_times(nanos in 0_u64..60_000_000_000) {
            let time = Duration::from_nanos(nanos);
            let end = end(bucket(time));
            prop_assert!(end > time || end == time && nanos == 0);
            prop_assert!(end <= time + time / 8 + Duration::from_nanos(2048), "{time:?} {end:?}");
        }

        #[test]
        fn a_percentile_is_what_sorting_finds(
            times in prop::collection::vec(1_u64..10_000_000_000, 100..400),
            percent in 1_u8..100,
        ) {
            let mut counts = [0; BUCKETS];
            for &time in &times {
                counts[bucket(Duration::from_nanos(time))] += 1;
            }
            let mut sorted = times;
            sorted.sort_unstable();
            let place = (sorted.len() * usize::from(percent)).div_ceil(100) - 1;
            let exact = Duration::from_nanos(sorted[place]);
            prop_assert_eq!(percentile(&counts, percent), Some(end(bucket(exact))));
        }
    }

    /// What came of requests to five backends that answer in 20 ms ± 5 %, of which one stalls for a second on some.
    struct Outcome {
        /// First-byte times, sorted.
        times: Vec<Duration>,
        hedges: usize,
    }

    fn simulate(stalls: f64, hedging: bool) -> Outcome {
        const REQUESTS: u64 = 20_000;
        let (pace, budget, saving, chance) =
            (HedgePace::default(), Budget::default(), BudgetShare::default(), Chance::seeded(1));
        let take = |backend: u64| {
            if backend == 0 && chance.happens(stalls) {
                Duration::from_secs(1)
            } else {
                Duration::from_micros(19_000 + chance.below(2_000) as u64)
            }
        };
        let mut hedges = 0;
        let mut times: Vec<Duration> = (0..REQUESTS)
            .map(|number| {
                let start = at(millis(4 * number));
                saving.add(5, &budget);
                let first = take(number % 5);
                let limit = pace.percentile(95, start).filter(|limit| hedging && *limit < first);
                let Some(limit) = limit.filter(|limit| budget.take(start.after(*limit))) else {
                    pace.note(first);
                    return first;
                };
                hedges += 1;
                // A timer fires up to a millisecond late.
                let late = limit + millis(1);
                let second = late + take((number + 1) % 5);
                // Of the slower one it is only known that it took at least that long.
                pace.note(first.min(second));
                first.min(second)
            })
            .collect();
        times.sort_unstable();
        Outcome { times, hedges }
    }

    #[test]
    fn one_backend_of_five_that_stalls_now_and_then_is_not_seen_by_clients() {
        let at_995 = |outcome: &Outcome| outcome.times[outcome.times.len() * 995 / 1000];
        let (without, with) = (simulate(0.05, false), simulate(0.05, true));
        assert_eq!(at_995(&without), Duration::from_secs(1));
        assert!(at_995(&with) < millis(60), "{:?}", at_995(&with));
        assert!((200..=1_000).contains(&with.hedges), "{} of 20,000", with.hedges);
        // More of them are slow than may get a competitor.
        let worse = simulate(0.2, true);
        assert!((700..=1_000).contains(&worse.hedges), "{} of 20,000", worse.hedges);
    }
}
