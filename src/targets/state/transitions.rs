//! What is told of a target's backends, and of the target: one line for each transition, whoever has caused it.
//!
//! A backend that dies under load is seen by its breaker, by outlier detection and by its probe, one after the other. It goes
//! once and it returns once: what counts is whether it gets requests, and the first who says that it does not is the reason.
//! Whoever changes something says so on `Board::turned`, and control announces: ten thousand first verdicts
//! are a few calls.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::targets::state::decide::{Decision, Health, Inputs, Probe, Source};
use crate::tick::Tick;

/// A backend as control sees it at one moment.
#[derive(Clone, Debug)]
pub(in crate::targets) struct Sight {
    /// Its number and its name.
    pub(in crate::targets) backend: (u32, Arc<str>),
    /// Its state. One that is left out as an outlier is down, also while that is set aside.
    pub(in crate::targets) decision: Decision,
    /// What that rests on.
    pub(in crate::targets) inputs: Inputs,
    /// New clients may get it.
    pub(in crate::targets) serves: bool,
    /// It has a share of the traffic at all.
    pub(in crate::targets) counts: bool,
    /// It stands behind others.
    pub(in crate::targets) is_backup: bool,
}

/// What was told of a backend.
#[derive(Debug)]
struct Last {
    health: Health,
    /// Who holds it there at the moment; may have changed since it was told.
    source: Source,
    since: Tick,
    serves: bool,
    counts: bool,
}

/// What was told of a target.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Level {
    /// Nothing: no backend has had its first verdict.
    #[default]
    Unknown,
    /// It has backends.
    Served,
    /// Only backups are left.
    OnBackups,
    /// None are left.
    Down,
}

/// What was told so far.
#[derive(Debug, Default)]
pub(in crate::targets) struct Transitions {
    last: BTreeMap<u32, Last>,
    level: Level,
    /// When it was last served by others than backups.
    served: Tick,
}

/// A line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::targets) enum News {
    Backend {
        name: Arc<str>,
        from: Health,
        to: Health,
        source: Source,
        reason: Arc<str>,
        after: Option<Duration>,
    },
    Lost,
    OnBackups,
    Back(Duration),
}

/// A line with how many backends are left of how many.
pub(in crate::targets) type Counted = (News, usize, usize);

impl Transitions {
    /// What is to be told of `all`, in order.
    pub(in crate::targets) fn step(&mut self, all: &[Sight], now: Tick) -> Vec<Counted> {
        self.last.retain(|id, _| all.iter().any(|sight| sight.backend.0 == *id));
        let of = all.iter().filter(|sight| sight.counts).count();
        let mut told = Vec::new();
        for sight in all {
            let news = self.look(sight, now);
            let left = self.last.values().filter(|last| last.serves && last.counts).count();
            told.extend(news.map(|news| (news, left, of)));
        }
        let left = all.iter().filter(|sight| sight.serves && sight.counts).count();
        told.extend(self.weigh(all, now).map(|news| (news, left, of)));
        told
    }

    fn look(&mut self, sight: &Sight, now: Tick) -> Option<News> {
        let Sight { backend: (id, name), decision, inputs, serves, counts, .. } = sight;
        let Decision { health, source, reason, since, .. } = decision;
        let is_new = !self.last.contains_key(id);
        let fresh =
            || Last { health: Health::Unknown, source: *source, since: now, serves: false, counts: *counts };
        let last = self.last.entry(*id).or_insert_with(fresh);
        (last.serves, last.counts) = (*serves, *counts);
        let before = std::mem::replace(&mut last.source, *source);
        if last.health == *health {
            return None;
        }
        let from = std::mem::replace(&mut last.health, *health);
        let left = std::mem::replace(&mut last.since, now);
        // As it was when it was made, and nobody probes it.
        if is_new && *since == Tick::ZERO && inputs.probe.word == Probe::Off {
            return None;
        }
        let is_return = from != Health::Unknown && *health == Health::Up;
        Some(News::Backend {
            name: Arc::clone(name),
            from,
            to: *health,
            // Who let it go says why it is back, and not who has nothing against it either.
            source: if is_return { before } else { *source },
            reason: if is_return { inputs.release(before) } else { Arc::clone(reason) },
            after: (from != Health::Unknown).then(|| now.since(left)),
        })
    }

    /// What is to be told of the target as a whole.
    fn weigh(&mut self, all: &[Sight], now: Tick) -> Option<News> {
        let of = |backups: bool| all.iter().filter(move |sight| sight.counts && sight.is_backup == backups);
        let is_open = |backups: bool| of(backups).any(|sight| sight.decision.health == Health::Unknown);
        let serves = |backups: bool| of(backups).any(|sight| sight.serves);
        let level = match self.level {
            _ if serves(false) => Level::Served,
            // Who has no verdict yet may be there in a moment.
            level if is_open(false) || (!serves(true) && is_open(true)) => level,
            _ if serves(true) => Level::OnBackups,
            // Nobody has it as a backend with a share: there is nothing to be lost.
            level if !all.iter().any(|sight| sight.counts) => level,
            _ => Level::Down,
        };
        let before = std::mem::replace(&mut self.level, level);
        let away = now.since(self.served);
        if level == Level::Served || before == Level::Served || before == Level::Unknown {
            self.served = now;
        }
        match (before, level) {
            _ if before == level => None,
            (Level::Unknown, Level::Served) | (_, Level::Unknown) => None,
            (_, Level::Served) => Some(News::Back(away)),
            (_, Level::OnBackups) => Some(News::OnBackups),
            (_, Level::Down) => Some(News::Lost),
        }
    }
}

#[cfg(test)]
mod tests;
