//! How often an object failed before a change, and what is to be expected of it at worst.

use std::time::Duration;

use super::past::Stretch;

/// So many good requests are added to what was seen before. So what is new, or had few requests, is held to fail in about 3 % at
/// worst, and one bad request of ten hours ago explains nothing.
const GIVEN: f64 = 300.0;
/// How many standard deviations above what was seen the true rate may have been: one in a thousand is beyond.
const SURE: f64 = 3.0;
/// Whoever never failed may fail this often without being worse: with 300 requests a second somebody always does.
const ALWAYS: f64 = 0.01;
/// Failures that come in swarms say less than as many that come one by one, but so much less at most.
const SWARM: f64 = 20.0;
/// Stretches with fewer requests say nothing about how failures come.
const FEW: f64 = 20.0;

/// Lengths of time of which the worst stretch is known, in seconds. Of any other it is that of the next shorter one.
const LENGTHS: [u64; 5] = [1, 2, 5, 15, 30];

/// What is known of an object from before a change.
#[derive(Clone, Debug, Default)]
pub(super) struct Baseline {
    /// The share that is no rise yet, by length of time.
    worst: [f64; LENGTHS.len()],
    /// `None`: there were no requests.
    pub(super) share: Option<f64>,
    /// Requests that ended in a second.
    pub(super) rate: f64,
    /// For how long it was looked at.
    pub(super) seconds: f64,
    /// The most that was under way.
    pub(super) most_under_way: u32,
    /// The longest time without an end.
    pub(super) longest_silence: Duration,
    /// How many times as much the counts of failures vary as they would if each came by itself.
    pub(super) swarm: f64,
}

impl Baseline {
    pub(super) fn new(stretches: &[(Duration, Stretch)]) -> Baseline {
        let sum =
            |count: fn(&Stretch) -> u32| stretches.iter().map(|(_, one)| f64::from(count(one))).sum::<f64>();
        let (ended, bad) = (sum(|one| one.ended), sum(|one| one.bad));
        let seconds = stretches.iter().map(|(span, _)| span.as_secs_f64()).sum();
        let swarm = [1, 5].into_iter().map(|group| swarm(stretches, group)).fold(1.0, f64::max).min(SWARM);
        let share = (ended > 0.0).then(|| bad / ended);
        let usual = upper_bound(bad, ended + GIVEN, SURE * swarm.sqrt());
        let usual = usual.max(share.unwrap_or(0.0)).max(ALWAYS);
        Baseline {
            worst: LENGTHS.map(|seconds| highest(stretches, Duration::from_secs(seconds)).max(usual)),
            share,
            rate: if seconds > 0.0 { ended / seconds } else { 0.0 },
            seconds,
            most_under_way: stretches.iter().map(|(_, one)| one.under_way).max().unwrap_or(0),
            longest_silence: longest_silence(stretches),
            swarm,
        }
    }

    /// The share that is no rise yet: what was usual with all that chance adds, and what has been in the worst stretch of this length.
    pub(super) fn worst(&self, window: Duration) -> f64 {
        let place = LENGTHS.iter().rposition(|seconds| Duration::from_secs(*seconds) <= window);
        self.worst[place.unwrap_or(0)]
    }
}

/// The highest share in a row of stretches as long as `window`. Where there are few requests it is a matter of chance, so some
/// good ones are added.
fn highest(stretches: &[(Duration, Stretch)], window: Duration) -> f64 {
    // A second may be a bit shorter.
    let (window, mut highest) = (window.as_secs_f64() * 0.9, 0.0);
    for first in 0..stretches.len() {
        let (mut span, mut ended, mut bad) = (Duration::ZERO, 0.0, 0.0);
        for (length, one) in &stretches[first..] {
            span += *length;
            ended += f64::from(one.ended);
            bad += f64::from(one.bad);
            if span.as_secs_f64() >= window {
                break;
            }
        }
        highest = f64::max(highest, bad / (ended + FEW));
    }
    highest
}

fn longest_silence(stretches: &[(Duration, Stretch)]) -> Duration {
    let (mut silence, mut longest) = (Duration::ZERO, Duration::ZERO);
    for (span, one) in stretches {
        silence = if one.ended == 0 { silence + *span } else { Duration::ZERO };
        longest = longest.max(silence);
    }
    longest
}

/// The variance of the failures in groups of stretches by what it would be if each came by itself.
fn swarm(stretches: &[(Duration, Stretch)], group: usize) -> f64 {
    let sum = |group: &[(Duration, Stretch)], count: fn(&Stretch) -> u32| {
        group.iter().map(|(_, one)| f64::from(count(one))).sum::<f64>()
    };
    let groups =
        stretches.chunks_exact(group).map(|group| (sum(group, |one| one.ended), sum(group, |one| one.bad)));
    let groups: Vec<(f64, f64)> = groups.filter(|(ended, _)| *ended >= FEW).collect();
    let (ended, bad) = groups.iter().fold((0.0, 0.0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    if groups.len() < 2 || bad == 0.0 || bad >= ended {
        return 1.0;
    }
    let share = bad / ended;
    let squares =
        groups.iter().map(|(ended, bad)| (bad - ended * share).powi(2) / (ended * share * (1.0 - share)));
    #[expect(clippy::cast_precision_loss, reason = "at most thirty")]
    let others = (groups.len() - 1) as f64;
    squares.sum::<f64>() / others
}

/// The highest share of which `bad` of `ended` are still likely: Wilson's bound, so many standard deviations out.
pub(super) fn upper_bound(bad: f64, ended: f64, deviations: f64) -> f64 {
    if ended <= 0.0 {
        return 1.0;
    }
    let (share, square) = (bad / ended, deviations * deviations);
    let middle = share + square / (2.0 * ended);
    let spread = deviations * (share * (1.0 - share) / ended + square / (4.0 * ended * ended)).sqrt();
    ((middle + spread) / (1.0 + square / ended)).min(1.0)
}

/// How sure it is that more than `expected` fail where `bad` of `ended` did: e to the power of minus this is more than the chance
/// that it only looks so (Chernoff's bound). 0 if no more did.
pub(super) fn evidence(bad: f64, ended: f64, expected: f64) -> f64 {
    if ended <= 0.0 || bad / ended <= expected {
        return 0.0;
    }
    let share = bad / ended;
    let part = |is: f64, was: f64| if is > 0.0 { is * (is / was).ln() } else { 0.0 };
    if expected >= 1.0 {
        return 0.0;
    }
    ended * (part(share, expected) + part(1.0 - share, 1.0 - expected))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(counts: &[(u32, u32)]) -> Vec<(Duration, Stretch)> {
        let step =
            |&(ended, bad): &(u32, u32)| (Duration::from_secs(1), Stretch { ended, bad, under_way: 0 });
        counts.iter().map(step).collect()
    }

    fn is_near(one: f64, other: f64) -> bool {
        (one - other).abs() < 0.001
    }

    #[test]
    fn who_is_new_is_held_to_fail_rarely_and_who_always_failed_is_no_worse() {
        let second = Duration::from_secs(1);
        let new = Baseline::new(&[]);
        assert!(is_near(new.worst(second), 9.0 / 309.0));
        assert_eq!(new.share, None);
        let well = Baseline::new(&steps(&[(300, 0); 30]));
        assert!(is_near(well.worst(second), ALWAYS));
        let broken = Baseline::new(&steps(&[(2, 2); 3]));
        assert!(is_near(broken.worst(second), 1.0));
        assert_eq!((broken.rate, broken.seconds), (2.0, 3.0));
    }

    #[test]
    fn the_worst_stretch_of_the_same_length_counts() {
        let mut counts = [(300, 3); 30];
        counts[10] = (300, 30);
        let bursty = Baseline::new(&steps(&counts));
        assert!(bursty.worst(Duration::from_secs(1)) > 0.09);
        assert!(bursty.worst(Duration::from_secs(5)) < 0.04);
        assert!(bursty.swarm > 5.0, "{}", bursty.swarm);
        assert!(is_near(Baseline::new(&steps(&[(300, 3); 30])).swarm, 1.0));
    }

    #[test]
    fn bounds_and_evidence_grow_with_what_was_seen() {
        assert!(is_near(upper_bound(0.0, 0.0, 3.0), 1.0));
        assert!(is_near(upper_bound(0.0, 100.0, 3.0), 9.0 / 109.0));
        assert!(upper_bound(10.0, 100.0, 2.0) < upper_bound(10.0, 100.0, 3.0));
        assert!(is_near(evidence(1.0, 100.0, 0.01), 0.0));
        assert!(is_near(evidence(10.0, 10.0, 0.1), 10.0 * 10f64.ln()));
        assert!(evidence(20.0, 100.0, 0.1) < evidence(40.0, 200.0, 0.1));
        assert!(is_near(evidence(5.0, 5.0, 1.0), 0.0));
    }
}
