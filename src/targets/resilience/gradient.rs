//! How many requests a backend should have at once, found out from how long its answers take.
//!
//! A backend that works on `c` requests at a time answers `n` of them in the same time each as long as `n` is at most
//! `c`; from there on answers take `n / c` times as long, and nothing is gained. The limit is held a little above that
//! knee: enough that the backend never idles, not so much that requests wait inside it instead of in the queue.
//!
//! It is a gradient as in Netflix's `concurrency-limits` (`Gradient2`) and Envoy's adaptive concurrency filter: the
//! latency of a step is compared with the baseline, which is the latency of a backend that is not full. Two things
//! decide whether such a limit works, and both are about the baseline:
//!
//! * A baseline that is an average of what was seen creeps up under constant load, and the limit with it, without
//!   end. So it rises only when there is a reason: when the limit isn't used, or after a dip. Every [`DUE`] steps in use
//!   the limit is halved for a moment, and what answers take then is the baseline (Envoy measures its own likewise).
//! * A backend that has become slower by itself must not be strangled for it. When half as many requests take as long
//!   as before, the latency has nothing to do with their number: it becomes the baseline, and the limit goes back.
//!
//! Latencies are logarithms here: doublings of the shortest one that `crate::targets::resilience::attempt_counts` tells apart.

use crate::targets::resilience::attempt_counts;

/// The lowest limit. With fewer requests at once a backend would wait for the network between them.
pub(in crate::targets) const LEAST: u32 = 4;
/// The highest limit.
pub(in crate::targets) const MOST: u32 = 10_000;
/// The limit of a target of which nothing is known.
pub(in crate::targets) const START: u32 = 20;

/// How much longer than the baseline answers may take without a reason to lower the limit, in doublings: a quarter.
const TOLERANCE: f64 = 0.322;
/// What is left of the limit after one step, at least.
const STEEPEST: f64 = 0.5;
/// Steps in use until the baseline is measured again.
const DUE: u32 = 120;
/// What a baseline takes over of a longer latency in one step, while the limit isn't used.
const RISE: f64 = 1.0 / 16.0;
/// By how much less than the load a latency has to fall for being caused by something else.
const FLAT: f64 = 0.5;
/// A latency that has grown by that much has a new cause: a quarter of a doubling.
const GROWN: f64 = 0.25;
/// Steps after which a dip is given up: what is in flight doesn't end.
const PATIENCE: u32 = 40;
/// Seconds that are waited, at most, until all answers are to requests that came under a lower limit.
const SLOWEST: f64 = 10.0;

/// What one step goes by.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::targets) struct Sample {
    /// How long answers took on average, in doublings of the shortest latency.
    pub(in crate::targets) latency: f64,
    /// Requests that a backend has at once, on average over those that have any.
    pub(in crate::targets) busy: f64,
    /// So many of the answers are errors that the latency says little: errors are often quick.
    pub(in crate::targets) faulty: bool,
}

/// The limit of a target's backends, and what it rests on.
#[derive(Clone, Debug)]
pub(in crate::targets) struct Gradient {
    /// From [`LEAST`] to [`MOST`].
    limit: f64,
    /// The latency of a backend that is not full.
    baseline: Option<f64>,
    /// It never had to fall, so it may double.
    eager: bool,
    /// Steps in use since the baseline was measured.
    age: u32,
    /// What a lower load is compared with.
    mark: Option<Mark>,
    /// The limit is low in order to measure.
    dip: Option<Dip>,
}

/// How it was with a higher load.
#[derive(Clone, Copy, Debug)]
struct Mark {
    busy: f64,
    latency: f64,
    limit: f64,
    /// Steps for which the load has been low.
    calm: u32,
}

/// A measurement of the baseline.
#[derive(Clone, Copy, Debug)]
struct Dip {
    /// The limit before and after.
    top: f64,
    steps: u32,
}

impl Mark {
    fn new(sample: Sample, limit: f64) -> Mark {
        Mark { busy: sample.busy, latency: sample.latency, limit, calm: 0 }
    }

    /// Counts a step with a low load. Says whether all answers of it belong to requests that came since it is low.
    fn settles(&mut self, sample: Sample) -> bool {
        self.calm += 1;
        let seconds = attempt_counts::latency(sample.latency).as_secs_f64().ceil().min(SLOWEST);
        f64::from(self.calm) > seconds
    }

    /// Whether the latency has not fallen with the load.
    fn is_flat(&self, sample: Sample) -> bool {
        let lighter = (self.busy / sample.busy.max(1.0)).max(1.0).log2();
        self.latency - sample.latency < FLAT * lighter
    }
}

impl Default for Gradient {
    fn default() -> Self {
        // The first thing to be known is the baseline.
        Gradient { limit: START.into(), baseline: None, eager: true, age: DUE, mark: None, dip: None }
    }
}

impl Gradient {
    /// The limit in force, from [`LEAST`] to [`MOST`].
    pub(in crate::targets) fn limit(&self) -> u32 {
        // Within bounds, so nothing is cut off but the fraction.
        self.limit as u32
    }

    /// Takes in what a step was like, and gives the limit for the next.
    pub(in crate::targets) fn step(&mut self, sample: Sample) -> u32 {
        let baseline = *self.baseline.get_or_insert(sample.latency);
        if sample.busy * 2.0 < f64::from(self.limit()) {
            self.rest(baseline, sample);
        } else if let Some(dip) = self.dip {
            self.dive(dip, sample);
        } else {
            self.climb(baseline, sample);
        }
        self.limit = self.limit.clamp(LEAST.into(), MOST.into());
        self.limit()
    }

    /// The limit isn't used: it stays, and what answers take is the baseline.
    fn rest(&mut self, baseline: f64, sample: Sample) {
        self.end_dip();
        self.mark = None;
        if !sample.faulty {
            let share = if sample.latency < baseline { 0.5 } else { RISE };
            self.baseline = Some(baseline + (sample.latency - baseline) * share);
        }
    }

    /// The limit is low in order to measure the baseline.
    fn dive(&mut self, dip: Dip, sample: Sample) {
        let steps = dip.steps + 1;
        self.dip = Some(Dip { steps, ..dip });
        let Some(mark) = &mut self.mark else { return self.end_dip() };
        if sample.faulty || steps > PATIENCE {
            self.end_dip();
        } else if sample.busy <= self.limit.floor() + 0.5 && mark.settles(sample) {
            if mark.is_flat(sample) || self.limit <= LEAST.into() {
                self.baseline = Some(sample.latency);
                self.end_dip();
            } else {
                // Less load made it faster, so less than this may do so again.
                self.mark = Some(Mark::new(sample, self.limit));
                self.limit = (sample.busy / 2.0).max(LEAST.into());
            }
        }
    }

    /// The limit is used: it goes where the latency says.
    fn climb(&mut self, baseline: f64, sample: Sample) {
        self.age = self.age.saturating_add(1);
        let is_lower = !sample.faulty && sample.latency < baseline;
        let baseline = if is_lower { f64::midpoint(baseline, sample.latency) } else { baseline };
        self.baseline = Some(baseline);
        let gradient = (baseline + TOLERANCE - sample.latency).exp2().clamp(STEEPEST, 1.0);
        if gradient < 1.0 {
            self.eager = false;
            if self.has_fallen_in_vain(sample) {
                return;
            }
        } else {
            self.mark = None;
        }
        if self.age >= DUE && !sample.faulty {
            return self.measure(sample);
        }
        let growth = match (sample.faulty, gradient < 1.0) {
            (true, _) => 0.0,
            (false, false) if self.eager => self.limit,
            (false, _) => self.limit.sqrt(),
        };
        let next = self.limit * gradient + growth;
        // A second's answers belong in part to the limit before: falling all the way would be too far.
        self.limit = if gradient < 1.0 { f64::midpoint(self.limit, next) } else { next };
    }

    /// Whether the latency is as high with half the load: then it is the backend's own, and the limit goes back.
    fn has_fallen_in_vain(&mut self, sample: Sample) -> bool {
        let fresh = Mark::new(sample, self.limit);
        let mark = self.mark.get_or_insert(fresh);
        if sample.busy >= mark.busy || sample.latency > mark.latency + GROWN {
            *mark = fresh;
        } else if sample.busy * 2.0 > mark.busy {
            mark.calm = 0;
        } else if mark.settles(sample) {
            if mark.is_flat(sample) && !sample.faulty {
                (self.baseline, self.limit) = (Some(sample.latency), mark.limit);
                self.mark = None;
                return true;
            }
            *mark = fresh;
        }
        false
    }

    /// Begins to measure the baseline.
    fn measure(&mut self, sample: Sample) {
        if self.limit <= LEAST.into() {
            // There is no less to compare with.
            (self.baseline, self.age) = (Some(sample.latency), 0);
            return;
        }
        self.mark = Some(Mark::new(sample, self.limit));
        self.dip = Some(Dip { top: self.limit, steps: 0 });
        self.limit = sample.busy.min(self.limit) / 2.0;
    }

    fn end_dip(&mut self) {
        if let Some(dip) = self.dip.take() {
            (self.limit, self.age, self.mark) = (dip.top, 0, None);
        }
    }
}

#[cfg(test)]
mod tests;
