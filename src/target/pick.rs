//! Choosing a backend for one attempt.
//!
//! A pick reads one immutable live set, draws tickets and looks at each backend's ejection word: no lock,
//! no wake-up, and no scan unless eight tickets in a row were useless.

use std::sync::Arc;
use std::time::Duration;

use super::ejection::Admission;
use super::{Ask, Backend, BackendStatus, Health, Lease, Pins, TargetState, Tried};
use crate::config::model;
use crate::message::TargetId;
use crate::tick::Tick;

/// How many tickets a pick draws before it scans. Drawing again keeps the load even among the others: a
/// scan would give an ejected backend's whole share to its neighbour.
const TICKETS: usize = 8;

/// How long a request waits for a first verdict where no probe sets the time (names still resolve).
const NAME_PATIENCE: Duration = Duration::from_secs(1);

/// What a pick found.
#[derive(Debug)]
pub enum Pick {
    /// This backend.
    Lease(Lease),
    /// Nothing to give, but some backends, or the one that the client's cookie names, have no verdict yet: wait for
    /// [`TargetState::changed`].
    Unknown,
    /// Nothing to give.
    None,
}

/// A named pool of backends under one config; the live state is shared with the configs before and after.
#[derive(Debug)]
pub struct Target {
    /// Its place in the snapshot.
    pub id: TargetId,
    /// Its name.
    pub name: Arc<str>,
    /// Its policies.
    pub config: model::Target,
    /// What outlives this config.
    pub state: Arc<TargetState>,
    /// Its backends in config order.
    pub backends: Vec<Arc<Backend>>,
    /// The values of its sticky cookie; `None`: it has none.
    pub pins: Option<Pins>,
}

impl Target {
    /// Chooses a backend that is up and not in `ask.tried`.
    ///
    /// An ejected backend gets one pick when its ejection ends; before that it is chosen only when there
    /// is no other.
    #[must_use]
    pub fn pick(&self, ask: &Ask<'_>) -> Pick {
        let &Ask { tried, now, .. } = ask;
        if let Some(pin) = ask.pin
            && let Some(pick) = pick_pinned(pin, ask)
        {
            return pick;
        }
        let live = self.state.live.load();
        let place = || self.state.balancer.place(self.config.balance.algorithm, live.eligible.len());
        match choose(&live.eligible, place, tried, now) {
            Some((backend, trial)) => Pick::Lease(Lease::new(backend, trial, now)),
            None if live.unknown > 0 => Pick::Unknown,
            None => Pick::None,
        }
    }

    /// The longest time that a request may wait after [`Pick::Unknown`]: the probe's timeout, or 1 s where
    /// probing is off.
    #[must_use]
    pub fn patience(&self) -> Duration {
        self.config.health.as_ref().map_or(NAME_PATIENCE, |health| health.timeout)
    }

    /// What each backend is at this moment, in config order.
    #[must_use]
    pub fn status(&self) -> Vec<BackendStatus> {
        self.backends.iter().map(|backend| BackendStatus::of(backend)).collect()
    }
}

/// What becomes of a request whose cookie names `pin`; `None`: as if it had none.
#[inline(never)]
fn pick_pinned(pin: &Arc<Backend>, ask: &Ask<'_>) -> Option<Pick> {
    match pin.health() {
        // Right after a start the first backend that is found up would else get everybody's sessions.
        Health::Unknown => ask.tried.is_empty().then_some(Pick::Unknown),
        Health::Up => admit(pin, ask.tried, ask.now)
            .map(|(backend, trial)| Pick::Lease(Lease::new(backend, trial, ask.now))),
        Health::Down => None,
    }
}

/// The backend to use out of `live`, and whether it is on trial. `place` draws a ticket; nearly always the first is
/// good.
#[inline]
fn choose<'a>(
    live: &'a [Arc<Backend>],
    mut place: impl FnMut() -> usize,
    tried: &Tried,
    now: Tick,
) -> Option<(&'a Arc<Backend>, bool)> {
    let first = place();
    let found = live.get(first).and_then(|backend| admit(backend, tried, now));
    found.or_else(|| choose_again(live, first, place, tried, now))
}

/// The same after a ticket for the place `start` was useless.
#[cold]
fn choose_again<'a>(
    live: &'a [Arc<Backend>],
    mut start: usize,
    mut place: impl FnMut() -> usize,
    tried: &Tried,
    now: Tick,
) -> Option<(&'a Arc<Backend>, bool)> {
    for _ in 1..live.len().min(TICKETS) {
        start = place();
        if let Some(found) = live.get(start).and_then(|backend| admit(backend, tried, now)) {
            return Some(found);
        }
    }
    let (before, after) = live.split_at_checked(start)?;
    let mut in_turn = after.iter().chain(before);
    in_turn.clone().find_map(|backend| admit(backend, tried, now)).or_else(|| {
        // Ejection never empties a target.
        in_turn.find(|backend| !tried.contains(backend.id)).map(|backend| (backend, false))
    })
}

/// The backend with whether it is on trial, if it may be used.
#[inline]
fn admit<'a>(backend: &'a Arc<Backend>, tried: &Tried, now: Tick) -> Option<(&'a Arc<Backend>, bool)> {
    if tried.contains(backend.id) {
        return None;
    }
    match backend.ejection().admit(now) {
        Admission::Open => Some((backend, false)),
        Admission::Trial => Some((backend, true)),
        Admission::Ejected => None,
    }
}

#[cfg(test)]
mod tests;
