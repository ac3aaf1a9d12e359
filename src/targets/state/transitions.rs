//! What is told of a target's backends, and of the target: one line for each transition, whoever has caused it.
//!
//! A backend that dies under load is seen by its breaker, by outlier detection and by its probe, one after the other. It goes
//! once and it returns once: what counts is whether it gets requests, and the first who says that it does not is the reason.
//! Whoever changes something says so on `Board::turned`, and control announces: ten thousand first verdicts
//! are a few calls.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use crate::config::model::BackendState;
use crate::targets::state::decide::{Decision, Health, Inputs, Probe, Resolution, Source};
use crate::tick::Tick;

/// For how long a level is not told that a trial under way may make untrue: a backup that was out takes over with one.
const DOUBT: Duration = Duration::from_millis(900);

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
    /// It was left out for a time that is over, and nobody has needed it since: the next one who does finds out.
    pub(in crate::targets) is_free: bool,
    /// Somebody may be finding out now.
    pub(in crate::targets) is_tried: bool,
    /// It has a share of the traffic at all.
    pub(in crate::targets) counts: bool,
    /// It stands behind others.
    pub(in crate::targets) is_backup: bool,
}

impl Sight {
    /// It is one of those that are left.
    pub(super) fn is_left(&self) -> bool {
        self.counts && (self.serves || self.is_free)
    }

    /// Nobody knows whether it serves.
    fn is_open(&self) -> bool {
        self.decision.health == Health::Unknown || self.is_free
    }

    /// It is up since it was made, and nobody probes it: that is nothing to tell.
    fn is_up_from_the_start(&self) -> bool {
        let Inputs { operator, name, probe, .. } = &self.inputs;
        let is_unchanged = (name.since, probe.since) == (Tick::ZERO, Tick::ZERO);
        is_unchanged
            && operator.wish.word == BackendState::Up
            && name.word == Resolution::Resolved
            && probe.word == Probe::Off
    }
}

/// What was told of a backend.
#[derive(Debug)]
struct Last {
    health: Health,
    /// Who holds it there at the moment; may have changed since it was told.
    source: Source,
    /// `None`: nobody knows.
    since: Option<Tick>,
    is_left: bool,
}

/// What was told of a target.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::targets) enum Level {
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

impl Level {
    /// The name in events: `unknown`, `up`, `backups` or `down`.
    pub(in crate::targets) const fn as_str(self) -> &'static str {
        match self {
            Level::Unknown => "unknown",
            Level::Served => "up",
            Level::OnBackups => "backups",
            Level::Down => "down",
        }
    }
}

/// What was told so far.
#[derive(Debug, Default)]
pub(in crate::targets) struct Transitions {
    last: BTreeMap<u32, Last>,
    level: Level,
    /// Since when it is on that level.
    since: Tick,
    /// Since when there is another one to tell that a trial may make untrue.
    doubted: Option<Tick>,
    /// Others stand in for the members, so the target is not lost.
    pub(in crate::targets) has_stand_ins: bool,
}

/// A line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::targets) enum News {
    /// Of a backend.
    Backend {
        name: Arc<str>,
        from: Health,
        to: Health,
        source: Source,
        reason: Arc<str>,
        /// How long it was in the state that it left; `None`: nobody knows.
        after: Option<Duration>,
    },
    /// Of the target as a whole. `after`: how long it was on the level that it left.
    Target { from: Level, to: Level, after: Option<Duration> },
}

/// A line with how many backends are left of how many.
pub(in crate::targets) type Counted = (News, usize, usize);

impl Transitions {
    /// What is to be told of `all`, in order: who comes before who goes, so that no line tells of fewer than there ever were.
    pub(in crate::targets) fn step(&mut self, all: &[Sight], now: Tick) -> Vec<Counted> {
        let ids: HashSet<u32> = all.iter().map(|sight| sight.backend.0).collect();
        self.last.retain(|id, _| ids.contains(id));
        let of = all.iter().filter(|sight| sight.counts).count();
        // Those with a line to come count as they did until that.
        let (mut left, mut lines) = (0, Vec::new());
        for sight in all {
            let (was_left, news) = self.look(sight, now);
            left += usize::from(if news.is_some() { was_left } else { sight.is_left() });
            lines.extend(news.map(|news| (news, was_left, sight)));
        }
        lines.sort_by_key(|(_, _, sight)| sight.decision.health != Health::Up);
        let mut told = Vec::new();
        for (news, was_left, sight) in lines {
            left = left + usize::from(sight.is_left()) - usize::from(was_left);
            // Of one that is gone it would be odd to say that it is left, whatever it may be good for.
            let is_counted = sight.decision.health != Health::Up && sight.is_left();
            told.push((news, left - usize::from(is_counted), of));
        }
        told.extend(self.weigh(all, now).map(|news| (news, left, of)));
        told
    }

    /// On what level the target is, as was told, and since when.
    pub(in crate::targets) fn level(&self) -> (Level, Tick) {
        (self.level, self.since)
    }

    /// Whether there is something to tell that a trial may make untrue: it is to be looked at again.
    pub(in crate::targets) fn is_in_doubt(&self) -> bool {
        self.doubted.is_some()
    }

    /// Whether it was one of those that are left, and what there is to tell of it.
    fn look(&mut self, sight: &Sight, now: Tick) -> (bool, Option<News>) {
        let Sight { backend: (id, name), decision, inputs, .. } = sight;
        let Decision { health, source, reason, .. } = decision;
        let is_left = sight.is_left();
        let fresh = || {
            let is_up = sight.is_up_from_the_start();
            let health = if is_up { Health::Up } else { Health::Unknown };
            let since = if is_up && decision.health == Health::Up { Some(now) } else { None };
            Last { health, source: *source, since, is_left: is_up && sight.counts }
        };
        let last = self.last.entry(*id).or_insert_with(fresh);
        let was_left = std::mem::replace(&mut last.is_left, is_left);
        let before = std::mem::replace(&mut last.source, *source);
        if last.health == *health {
            return (was_left, None);
        }
        let from = std::mem::replace(&mut last.health, *health);
        let since = last.since.replace(now);
        let is_return = from != Health::Unknown && *health == Health::Up;
        let news = News::Backend {
            name: Arc::clone(name),
            from,
            to: *health,
            // Who let it go says why it is back, and not who has nothing against it either.
            source: if is_return { before } else { *source },
            reason: if is_return { inputs.release(before) } else { Arc::clone(reason) },
            after: since.map(|since| now.since(since)),
        };
        (was_left, Some(news))
    }

    /// What is to be told of the target as a whole.
    fn weigh(&mut self, all: &[Sight], now: Tick) -> Option<News> {
        let of = |backups: bool| all.iter().filter(move |sight| sight.counts && sight.is_backup == backups);
        let is_open = |backups: bool| of(backups).any(Sight::is_open);
        let serves = |backups: bool| of(backups).any(|sight| sight.serves);
        let from = self.level;
        let to = match from {
            _ if serves(false) => Level::Served,
            level if self.has_stand_ins => level,
            // Who has no verdict yet may be there in a moment.
            level if is_open(false) || (!serves(true) && is_open(true)) => level,
            _ if serves(true) => Level::OnBackups,
            // Its backends are addresses of names, of which none is known.
            _ if all.is_empty() => Level::Down,
            // Nobody has it as a backend with a share: there is nothing to be lost.
            level if !all.iter().any(|sight| sight.counts) => level,
            _ => Level::Down,
        };
        if from == to {
            self.doubted = None;
            return None;
        }
        let is_trial = |sight: &Sight| sight.counts && sight.is_tried;
        let is_loss = to != Level::Served && from != Level::Down;
        if is_loss && from != Level::Unknown && all.iter().any(is_trial) {
            let doubted = *self.doubted.get_or_insert(now);
            if now.since(doubted) < DOUBT {
                return None;
            }
        }
        self.doubted = None;
        self.level = to;
        let since = std::mem::replace(&mut self.since, now);
        let after = (from != Level::Unknown).then(|| now.since(since));
        match (from, to) {
            (Level::Unknown, Level::Served) => None,
            _ => Some(News::Target { from, to, after }),
        }
    }
}

#[cfg(test)]
mod tests;
