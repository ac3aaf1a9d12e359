//! Rates over the latest seconds: what was counted now and then, and what differs.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::report::RateReport;
use crate::telemetry::cells::{Tally, Totals};
use crate::tick::Tick;

/// How often is counted.
pub const STEP: Duration = Duration::from_secs(5);
/// How many counts are kept: a rate is over ten to fifteen seconds.
const KEPT: usize = 3;
/// What is counted over less says nothing.
const LEAST: Duration = Duration::from_secs(1);

/// What was counted of late.
#[derive(Debug)]
pub struct RateBook {
    begun: Tick,
    samples: Mutex<VecDeque<(Tick, Totals)>>,
}

impl RateBook {
    /// Of a process that begins to serve at `now`.
    #[must_use]
    pub fn new(now: Tick) -> RateBook {
        RateBook { begun: now, samples: Mutex::default() }
    }

    /// When it began.
    #[must_use]
    pub fn begun(&self) -> Tick {
        self.begun
    }

    /// Notes what was counted at `now`. To be called each [`STEP`].
    pub fn note(&self, totals: Totals, now: Tick) {
        let mut samples = self.samples.lock().unwrap_or_else(PoisonError::into_inner);
        samples.push_back((now, totals));
        if samples.len() > KEPT {
            samples.pop_front();
        }
    }

    /// Rates at `now`, when so much is counted.
    #[must_use]
    pub fn rates(&self, totals: Totals, now: Tick) -> Rates {
        let samples = self.samples.lock().unwrap_or_else(PoisonError::into_inner);
        let before = samples.front().filter(|(at, _)| now.since(*at) >= LEAST);
        let before = before.map(|(at, totals)| (now.since(*at), totals.clone()));
        Rates { now: totals, before }
    }
}

/// What is counted now, and what was a while ago.
#[derive(Clone, Debug, Default)]
pub struct Rates {
    /// At this moment.
    pub now: Totals,
    /// How long ago, and what was counted then; `None`: it is too early.
    before: Option<(Duration, Totals)>,
}

impl Rates {
    /// The rate of what `tally` finds; `None`: it is too early, as it is for what was `added` less than a second ago.
    #[must_use]
    pub fn of(&self, age: Duration, tally: impl Fn(&Totals) -> Tally) -> Option<RateReport> {
        let (span, before) = self.before.as_ref()?;
        // What is there since then has counted nothing before.
        let span = (*span).min(age);
        if span < LEAST {
            return None;
        }
        let Tally { requests, errors } = tally(&self.now).since(tally(before));
        Some(RateReport {
            requests: per_second(requests, span),
            errors: per_second(errors, span),
            over_ms: u64::try_from(span.as_millis()).unwrap_or(u64::MAX),
        })
    }
}

/// With two digits behind the point.
#[expect(clippy::cast_precision_loss, reason = "a rate for people")]
fn per_second(count: u64, span: Duration) -> f64 {
    (count as f64 / span.as_secs_f64() * 100.0).round() / 100.0
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::message::{Record, TargetId};
    use crate::telemetry::cells::Cells;

    fn at(seconds: u64) -> Tick {
        Tick(1).after(Duration::from_secs(seconds))
    }

    #[test]
    fn a_rate_is_over_the_latest_seconds_and_never_over_more_than_there_were() {
        let cells = [Arc::new(Cells::default())];
        let serve = |count: u32, status| {
            let record = Record { status, target: Some(TargetId(0)), ..Record::default() };
            (0..count).for_each(|_| cells[0].record(&record));
            Totals::sum(&cells)
        };
        let book = RateBook::new(at(0));
        let long = Duration::from_secs(3600);
        let rate = |now, age| {
            let rates = book.rates(Totals::sum(&cells), at(now));
            let rate = rates.of(age, |totals| totals.target(TargetId(0)));
            rate.map(|rate| (rate.requests, rate.errors, rate.over_ms))
        };
        assert_eq!(rate(0, long), None);
        book.note(serve(0, 200), at(0));
        assert_eq!(rate(0, long), None, "too early");
        serve(30, 200);
        assert_eq!(rate(2, long), Some((15.0, 0.0, 2_000)));
        for now in [5, 10, 15, 20] {
            book.note(serve(10, 503), at(now));
        }
        // The counts of 10, 15 and 20 are kept.
        assert_eq!(rate(22, long), Some((1.67, 1.67, 12_000)));
        assert_eq!(rate(22, Duration::from_secs(4)), Some((5.0, 5.0, 4_000)));
        assert_eq!(rate(22, Duration::from_millis(10)), None);
    }
}
