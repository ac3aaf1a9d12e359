//! The one function from inputs to a backend's state.
//!
//! Each input keeps what it says, why and since when; [`decide`] ranks them. Operator, breaker, outlier
//! and slow start will be more inputs here, not more code elsewhere. Only `TargetState` calls it.

use std::sync::Arc;

use crate::tick::Tick;

/// What a backend is to the picker and to whoever reads the status.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Health {
    /// No verdict yet; requests that find nothing else wait for it.
    #[default]
    Unknown,
    /// It may be picked, as far as its inputs go. Passive ejection is not one of them: it is read at the pick and
    /// never empties a target.
    Up,
    /// It may not be picked.
    Down,
}

impl Health {
    /// The name in logs and status: `unknown`, `up` or `down`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Health::Unknown => "unknown",
            Health::Up => "up",
            Health::Down => "down",
        }
    }
}

/// Which input decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Source {
    /// The resolution of its name.
    Name,
    /// The active probe, or its being switched off.
    Probe,
}

/// What is known about a backend's addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Resolution {
    /// The first lookup has not ended.
    Pending,
    /// It has addresses; a later failed lookup keeps them.
    Resolved,
    /// It never had an address.
    Failed,
}

/// What the active probe says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Probe {
    /// Probing is switched off: it counts as healthy.
    Off,
    /// The first probe has not ended.
    Pending,
    /// Healthy.
    Good,
    /// Unhealthy.
    Bad,
}

/// What one input says, why and since when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Input<T> {
    /// What it says.
    pub(super) word: T,
    /// Why, as a short text for people.
    pub(super) reason: Arc<str>,
    /// Since when it has been saying so.
    pub(super) since: Tick,
}

impl<T> Input<T> {
    /// An input that says `word` because of `reason` from `since` on.
    #[must_use]
    pub(super) fn new(word: T, reason: impl Into<Arc<str>>, since: Tick) -> Input<T> {
        Input { word, reason: reason.into(), since }
    }
}

/// Everything that has a say in a backend's state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Inputs {
    /// Its name's resolution; `Resolved` for literal addresses and unix sockets.
    pub(super) name: Input<Resolution>,
    /// Its probe.
    pub(super) probe: Input<Probe>,
    /// It has been down and may be cold when it comes back. A first verdict is no return: at the start of a process
    /// all backends get one.
    pub(super) was_away: bool,
}

/// A backend's state and what it rests on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Decision {
    /// The state.
    pub(super) health: Health,
    /// The input that decided.
    pub(super) source: Source,
    /// That input's reason.
    pub(super) reason: Arc<str>,
    /// Since when the state holds.
    pub(super) since: Tick,
    /// Since when it is back, if it was away: it gets its share little by little where `slow_start` says so.
    pub(super) back_since: Option<Tick>,
}

/// The state that follows from `inputs`: the name first, since without an address nothing else counts.
#[must_use]
pub(super) fn decide(inputs: &Inputs) -> Decision {
    let Inputs { name, probe, was_away } = inputs;
    let by_name = |health| Decision {
        health,
        source: Source::Name,
        reason: Arc::clone(&name.reason),
        since: name.since,
        back_since: None,
    };
    match (name.word, probe.word) {
        (Resolution::Failed, _) => by_name(Health::Down),
        (Resolution::Pending, _) => by_name(Health::Unknown),
        (Resolution::Resolved, word) => {
            let health = match word {
                Probe::Off | Probe::Good => Health::Up,
                Probe::Pending => Health::Unknown,
                Probe::Bad => Health::Down,
            };
            // With probing off the state began when the name got its addresses.
            let since = probe.since.max(name.since);
            let back_since = (*was_away && health == Health::Up).then_some(since);
            Decision { health, source: Source::Probe, reason: Arc::clone(&probe.reason), since, back_since }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_combination_of_inputs() {
        for (name, probe, health, source) in [
            (Resolution::Pending, Probe::Off, Health::Unknown, Source::Name),
            (Resolution::Pending, Probe::Pending, Health::Unknown, Source::Name),
            (Resolution::Pending, Probe::Good, Health::Unknown, Source::Name),
            (Resolution::Pending, Probe::Bad, Health::Unknown, Source::Name),
            (Resolution::Failed, Probe::Off, Health::Down, Source::Name),
            (Resolution::Failed, Probe::Pending, Health::Down, Source::Name),
            (Resolution::Failed, Probe::Good, Health::Down, Source::Name),
            (Resolution::Failed, Probe::Bad, Health::Down, Source::Name),
            (Resolution::Resolved, Probe::Off, Health::Up, Source::Probe),
            (Resolution::Resolved, Probe::Pending, Health::Unknown, Source::Probe),
            (Resolution::Resolved, Probe::Good, Health::Up, Source::Probe),
            (Resolution::Resolved, Probe::Bad, Health::Down, Source::Probe),
        ] {
            let inputs = Inputs {
                name: Input::new(name, "by name", Tick(5)),
                probe: Input::new(probe, "by probe", Tick(3)),
                was_away: false,
            };
            let decision = decide(&inputs);
            assert_eq!(decision.back_since, None);
            let back = decide(&Inputs { was_away: true, ..inputs });
            assert_eq!(back.back_since, (health == Health::Up).then_some(Tick(5)), "{name:?} {probe:?}");
            assert_eq!((decision.health, decision.source), (health, source), "{name:?} {probe:?}");
            let reason = if source == Source::Name { "by name" } else { "by probe" };
            assert_eq!((&*decision.reason, decision.since), (reason, Tick(5)));
        }
    }
}
