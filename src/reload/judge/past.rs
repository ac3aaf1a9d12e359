//! How it went of late, so that whoever judges a change knows how it was before.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use super::sample::{JudgedObject, Roster, TrafficSample};

/// How often a sample is taken while nothing is on trial.
pub const PAST_STEP: Duration = Duration::from_secs(1);
/// How many stretches between two samples are kept: half a minute.
const KEPT: usize = 30;
/// A stretch that took longer is none: the process stood still.
const LONGEST: Duration = Duration::from_secs(5);

/// What there was of one object in a stretch of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stretch {
    /// What ended.
    pub ended: u32,
    /// What of it was bad.
    pub bad: u32,
    /// What was under way at its end.
    pub under_way: u32,
}

#[derive(Debug)]
struct Stretches {
    span: Duration,
    roster: Arc<Roster>,
    of: Vec<Stretch>,
}

/// The latest half minute, second by second.
#[derive(Debug, Default)]
pub struct TrafficPast {
    latest: Option<TrafficSample>,
    /// The next sample is not taken either.
    is_paused: bool,
    kept: VecDeque<Stretches>,
}

impl TrafficPast {
    /// Adds what has come since the latest sample. To be called each [`PAST_STEP`], but not while something is on trial.
    pub fn note(&mut self, sample: TrafficSample) {
        if std::mem::take(&mut self.is_paused) {
            return;
        }
        if let Some(before) = self.latest.replace(sample)
            && let Some(now) = &self.latest
        {
            let span = now.at.since(before.at);
            if span.is_zero() || span > LONGEST {
                return;
            }
            let of = (0..now.tallies.len()).map(|place| {
                let ends = now.ended_since(&before, place);
                Stretch {
                    ended: small(ends.ended),
                    bad: small(ends.bad),
                    under_way: small(now.tallies[place].under_way),
                }
            });
            self.kept.push_back(Stretches { span, roster: Arc::clone(&now.roster), of: of.collect() });
            if self.kept.len() > KEPT {
                self.kept.pop_front();
            }
        }
    }

    /// What comes from now on does not count, until the second sample: something is on trial, and when that has ended what it has begun
    /// comes to an end as well.
    pub fn pause(&mut self) {
        (self.latest, self.is_paused) = (None, true);
    }

    /// The stretches of an object that was there, oldest first, each with its length.
    pub(super) fn of(&self, object: &JudgedObject) -> Vec<(Duration, Stretch)> {
        let place = |kept: &Stretches| kept.roster.place(object);
        self.kept.iter().filter_map(|kept| Some((kept.span, *kept.of.get(place(kept)?)?))).collect()
    }

    /// The stretches of several objects together.
    pub(super) fn of_all(&self, objects: &[JudgedObject]) -> Vec<(Duration, Stretch)> {
        let all = self.kept.iter().map(|kept| {
            let mut sum = Stretch::default();
            for one in objects.iter().filter_map(|object| kept.of.get(kept.roster.place(object)?)) {
                sum.ended = sum.ended.saturating_add(one.ended);
                sum.bad = sum.bad.saturating_add(one.bad);
                sum.under_way = sum.under_way.saturating_add(one.under_way);
            }
            (kept.span, sum)
        });
        all.collect()
    }
}

fn small(count: u64) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}
