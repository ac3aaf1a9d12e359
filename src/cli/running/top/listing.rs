//! What is listed, in which order: targets, each with its backends below it.

use std::cmp::Ordering;

use super::frames::{Followed, Known, TargetKnown};
use super::look::Mood;
use super::rows::{BackendSeen, TimesSeen};
use super::track::{Track, to_float};

/// A line of the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ListPlace {
    Target(String),
    /// Target and backend.
    Backend(String, String),
}

impl ListPlace {
    /// Target, or target and backend.
    pub(super) fn name(&self) -> String {
        match self {
            ListPlace::Target(target) => target.clone(),
            ListPlace::Backend(target, backend) => format!("{target}/{backend}"),
        }
    }
}

/// By what it is sorted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum SortBy {
    #[default]
    Name,
    Rate,
    Errors,
    P99,
    Active,
    State,
}

impl SortBy {
    /// The next one.
    pub(super) fn next(self) -> SortBy {
        match self {
            SortBy::Name => SortBy::Rate,
            SortBy::Rate => SortBy::Errors,
            SortBy::Errors => SortBy::P99,
            SortBy::P99 => SortBy::Active,
            SortBy::Active => SortBy::State,
            SortBy::State => SortBy::Name,
        }
    }

    /// As it is told.
    pub(super) fn name(self) -> &'static str {
        match self {
            SortBy::Name => "name",
            SortBy::Rate => "req/s",
            SortBy::Errors => "errors",
            SortBy::P99 => "p99",
            SortBy::Active => "in flight",
            SortBy::State => "state",
        }
    }
}

/// What is wanted of the list.
#[derive(Clone, Debug, Default)]
pub(super) struct ListWanted {
    pub(super) by: SortBy,
    pub(super) is_reversed: bool,
    /// A text that is somewhere in what is listed; empty: everything is listed.
    pub(super) filter: String,
}

/// The state of a target: one that is up and lacks some of its backends is not well.
pub(super) fn mood_of(target: &TargetKnown) -> Mood {
    let row = &target.own.row;
    if row.state == "up" && row.left < row.of { Mood::Hurt } else { Mood::of(&row.state) }
}

/// The lines, in their order.
pub(super) fn listed(known: &Known, wanted: &ListWanted) -> Vec<ListPlace> {
    let filter = wanted.filter.to_lowercase();
    let has = |text: &str| text.to_lowercase().contains(&filter);
    let mut targets: Vec<(&String, &TargetKnown, Vec<&String>)> = Vec::new();
    for (name, target) in &known.targets {
        let is_whole = has(name);
        let is_wanted = |name: &str, backend: &Followed<BackendSeen>| {
            let row = &backend.row;
            is_whole || has(name) || has(&row.state) || (row.state != "up" && has(&row.reason))
        };
        let mut backends: Vec<(&String, &Followed<BackendSeen>)> =
            target.backends.iter().filter(|(name, backend)| is_wanted(name, backend)).collect();
        backends.sort_by(|one, other| wanted.order(one.0, &of_backend(one.1), other.0, &of_backend(other.1)));
        if is_whole || !backends.is_empty() || has(&target.own.row.state) || has(&target.own.row.reason) {
            targets.push((name, target, backends.into_iter().map(|(name, _)| name).collect()));
        }
    }
    targets.sort_by(|one, other| wanted.order(one.0, &of_target(one.1), other.0, &of_target(other.1)));
    let mut places = Vec::new();
    for (name, _, backends) in targets {
        places.push(ListPlace::Target(name.clone()));
        places.extend(backends.into_iter().map(|backend| ListPlace::Backend(name.clone(), backend.clone())));
    }
    places
}

/// What a line can be sorted by.
struct Measures<'k> {
    track: &'k Track,
    times: Option<TimesSeen>,
    active: u64,
    mood: Mood,
}

fn of_target(target: &TargetKnown) -> Measures<'_> {
    let row = &target.own.row;
    Measures { track: &target.own.track, times: row.times, active: row.active, mood: mood_of(target) }
}

fn of_backend(backend: &Followed<BackendSeen>) -> Measures<'_> {
    let row = &backend.row;
    Measures { track: &backend.track, times: row.times, active: row.active, mood: Mood::of(&row.state) }
}

impl ListWanted {
    /// Names go up, figures down, and the worst state comes first; among equals the name decides, also the other way round.
    fn order(&self, name: &str, of: &Measures<'_>, other: &str, of_other: &Measures<'_>) -> Ordering {
        let by_name = name.cmp(other);
        let figure = |of: &Measures<'_>| match self.by {
            SortBy::Name | SortBy::State => 0.0,
            SortBy::Rate => of.track.rate().unwrap_or(-1.0),
            SortBy::Errors => of.track.share().unwrap_or(-1.0),
            SortBy::P99 => of.times.map_or(-1.0, |times| times.p99_ms),
            SortBy::Active => to_float(of.active),
        };
        let order = match self.by {
            SortBy::Name => by_name,
            SortBy::State => of.mood.cmp(&of_other.mood),
            _ => figure(of_other).total_cmp(&figure(of)),
        };
        let order = if self.is_reversed { order.reverse() } else { order };
        order.then(by_name)
    }
}
