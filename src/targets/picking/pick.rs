//! Choosing a backend for one attempt.
//!
//! A pick reads one immutable live set and the words of the board: nothing is locked, but by the algorithms that need
//! an exact order of loads. Nobody who is out turns it into a scan: down backends are not in the live set; those that are
//! ejected, broken or full are looked past through a bitmap.

use std::sync::Arc;
use std::time::Duration;

use crate::config::model;
use crate::message::{Cause, TargetId};
use crate::targets::picking::balance::algorithm::Draw;
use crate::targets::picking::tier::Tier;
use crate::targets::queueing::wants::Wants;
use crate::targets::resilience::breaker::Circuit;
use crate::targets::resilience::reports::{on_trial, on_trial_alone};
use crate::targets::resilience::trial::Trial;
use crate::targets::state::decide::Health;
use crate::targets::state::target_state::Live;
use crate::targets::{Ask, Backend, BackendStatus, Lease, Pins, ScaleSignal, TargetState};

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
    /// Every backend that could be given has as many requests as it may have: wait in the target's queue.
    Full,
    /// Nothing to give, for this reason.
    None(Cause),
}

/// A named pool of backends under one config; the live state is shared with the configs before and after.
#[derive(Debug)]
pub struct Target {
    /// Its place in the snapshot.
    pub id: TargetId,
    /// Its name.
    pub name: Arc<str>,
    /// Its policies.
    pub config: model::TargetConfig,
    /// What outlives this config.
    pub state: Arc<TargetState>,
    /// Its backends in config order.
    pub backends: Vec<Arc<Backend>>,
    /// The values of its sticky cookie; `None`: it has none.
    pub pins: Option<Pins>,
}

impl Target {
    /// Requests, tunnels and TCP connections that are on its backends, or wait for one that has room.
    #[must_use]
    pub fn under_way(&self) -> u64 {
        let on_backends: u64 = self.backends.iter().map(|backend| u64::from(backend.in_flight())).sum();
        on_backends + u64::from(self.state.board.waiting())
    }

    /// Chooses a backend that is up and not in `ask.tried`: the one that the client's cookie names, else one of the first
    /// tier in which there is somebody, by the target's algorithm.
    ///
    /// A backend that was left out gets one pick when its time is up. One whose ejection goes on is chosen only when there is
    /// no other; one whose breaker is open, never. Where somebody waits for room, who comes now waits as well.
    #[must_use]
    #[inline]
    pub fn pick(&self, ask: &Ask<'_>) -> Pick {
        if let Some(pick) = ask.pin.and_then(|pin| self.state.pinned(pin, ask)) {
            return pick;
        }
        if self.state.board.has_waiting() && ask.tried.is_empty() {
            return Pick::Full;
        }
        self.state.pick(ask)
    }

    /// The longest time that a request may wait after [`Pick::Unknown`]: the probe's timeout, or 1 s where
    /// probing is off.
    #[must_use]
    pub fn patience(&self) -> Duration {
        self.config.health.as_ref().map_or(NAME_PATIENCE, |health| health.timeout)
    }

    /// Requests that one backend may have at once at this moment, be the number configured or found out; `None`: any.
    #[must_use]
    pub fn limit(&self) -> Option<u32> {
        Some(self.state.board.limit()).filter(|limit| *limit > 0)
    }

    /// How many backends get requests now: those that are up, of the first choice that has any.
    #[must_use]
    pub fn serving(&self) -> usize {
        self.state.live.load().first_choice().map(|tier| tier.backends.len()).sum()
    }

    /// Whether it has too few backends, or more than it needs, as it was last found.
    #[must_use]
    pub fn scale_signal(&self) -> ScaleSignal {
        self.state.scale.get()
    }

    /// Says so.
    pub fn set_scale_signal(&self, signal: ScaleSignal) {
        self.state.scale.set(signal);
    }

    /// What each backend is at this moment, in config order.
    #[must_use]
    pub fn status(&self) -> Vec<BackendStatus> {
        self.backends.iter().map(|backend| BackendStatus::of(backend)).collect()
    }
}

impl TargetState {
    /// Chooses by the target's algorithm, whoever waits.
    pub(in crate::targets) fn pick(&self, ask: &Ask<'_>) -> Pick {
        let live = self.live.load();
        if let Some(lease) = self.spilt(&live, ask) {
            return Pick::Lease(lease);
        }
        for (number, tier) in live.tiers.iter().enumerate() {
            if let Some(lease) = self.choose(&live, number, tier, ask) {
                return Pick::Lease(lease);
            }
        }
        self.pick_last(&live, ask)
    }

    /// One of those that another node prefers, if this request is to go there and one of them is free.
    #[inline]
    fn spilt(&self, live: &Live, ask: &Ask<'_>) -> Option<Lease> {
        let [own, others, ..] = &live.tiers[..] else { return None };
        // The others of another choice stand in for own ones, and are not meant.
        if !self.board.spills() || own.group != others.group {
            return None;
        }
        // Nor is anybody to be tried out who was left out, while one of the own is well.
        let is_free = others.watch.ready.count() > 0 && others.watch.due() > ask.now;
        (is_free && self.board.take_spill()).then(|| self.choose(live, 1, others, ask)).flatten()
    }

    /// The same after all tiers of `live` had nobody. Who is ready and who is full is told to the live set in force only: what
    /// was found in another is no verdict.
    #[cold]
    fn pick_last(&self, live: &Live, ask: &Ask<'_>) -> Pick {
        let pick = last_resort(live, ask);
        let is_verdict = matches!(pick, Pick::Lease(_)) || self.live.load().generation == live.generation;
        if is_verdict { pick } else { self.pick(ask) }
    }

    /// A backend of `tier`, which is the one of this `number` in `live`.
    #[inline]
    fn choose(&self, live: &Live, number: usize, tier: &Tier, ask: &Ask<'_>) -> Option<Lease> {
        if tier.watch.due() <= ask.now
            && let Some(lease) = self.trial(number, ask)
        {
            return Some(lease);
        }
        if self.board.is_for(Wants::Order) {
            return self.least(live, number, ask);
        }
        let draw = Draw { tier, board: &self.board, cursor: &self.cursor, ask };
        let place = tier.plan.draw(&draw).or_else(|| draw_again(tier, &draw))?;
        let lease = Lease::take_and_tell(tier.backends.get(place)?, Trial::NONE, ask.now)
            .or_else(|| take_another(tier, &draw))?;
        Some(lease.counted_if_wanted())
    }

    /// The least busy backend of the tier of this `number`: found, counted and put in its new place in the order before
    /// another thread looks.
    fn least(&self, live: &Live, number: usize, ask: &Ask<'_>) -> Option<Lease> {
        // A lease that is dropped takes the lock, so it must outlive the guard on every way out.
        let mut lease = None;
        let mut locked = self.board.lock();
        let newer;
        let live = if locked.generation == live.generation {
            live
        } else {
            newer = self.live.load();
            &newer
        };
        let tier = live.tiers.get(number)?;
        let rank = locked.rows.get_mut(number)?.rank.as_mut()?;
        let mut take = |place: usize| {
            let backend = tier.backends.get(place)?;
            lease = Lease::take(backend, Trial::NONE, ask.now);
            lease.is_some().then(|| backend.taken())
        };
        let mut cold = Cold::default();
        let found = rank.pick(|place| {
            let usable = tier.is_usable(place, ask) && !cold.is_less_busy_than(tier, place);
            (usable && !cold.spares(tier, place, ask)).then(|| take(place))?
        });
        if found.is_none() {
            // Not counted as a turn, so the place is set by hand.
            let place = cold.place.or_else(|| tier.any(ask))?;
            rank.set(place, take(place));
        }
        if let Some(lease) = &lease
            && locked.limit > 0
            && lease.backend().taken() >= locked.limit
        {
            locked.refresh(lease.backend());
        }
        lease
    }

    /// The attempt that finds out whether a backend that was left out is back, once its time is up.
    #[cold]
    fn trial(&self, number: usize, ask: &Ask<'_>) -> Option<Lease> {
        let wanted = |_: &_, backend| !ask.tried.contains(backend);
        let lease = self.board.lock().trial(number, ask.now, wanted);
        lease.map(Lease::counted_if_wanted)
    }
}

impl TargetState {
    /// The backend of the client's cookie, or who stands in for it.
    #[cold]
    fn pinned(&self, pin: &Arc<Backend>, ask: &Ask<'_>) -> Option<Pick> {
        if pin.health() == Health::Unknown
            && let Some(stand_ins) = &self.live.load().stand_ins
        {
            // Nobody waits for a verdict while somebody serves. The cookie stays, and leads to the new one later.
            let lease = pinned(stand_ins.get(&pin.identity)?, ask);
            return lease.filter(|pick| matches!(pick, Pick::Lease(_)));
        }
        pinned(pin, ask)
    }
}

/// A backend at a part of its share (`slow_start`), under an algorithm that goes by load: at the half of its share each of
/// its requests counts as two.
#[derive(Default)]
struct Cold {
    place: Option<usize>,
    load: f64,
}

impl Cold {
    /// Whether the backend at `place` is passed over because it is cold; the least busy of these is remembered. One
    /// that has nothing to do is taken as often as its share says.
    fn spares(&mut self, tier: &Tier, place: usize, ask: &Ask<'_>) -> bool {
        let share = tier.share(place, ask.now);
        let load = tier.load(place) / share;
        if share >= 1.0 || load == 0.0 && ask.chance.happens(share) {
            return false;
        }
        if load > 0.0 && (self.place.is_none() || load < self.load) {
            *self = Cold { place: Some(place), load };
        }
        true
    }

    /// Whether the one that is remembered is to be taken before the one at `place`.
    fn is_less_busy_than(&self, tier: &Tier, place: usize) -> bool {
        self.place.is_some() && self.load < tier.load(place)
    }
}

/// The same as [`Plan::draw`](crate::targets::picking::balance::BalancePlan::draw) after it drew somebody who may not be picked.
#[cold]
fn draw_again(tier: &Tier, draw: &Draw<'_>) -> Option<usize> {
    if tier.watch.ready.count() == 0 {
        return None;
    }
    let draws = if tier.backends.len() == 1 { 0 } else { tier.plan.draws() - 1 };
    (0..draws).find_map(|_| tier.plan.draw(draw)).or_else(|| tier.any(draw.ask))
}

/// How often a pick draws once more after another one has got the last lease of what it drew.
const REDRAWS: usize = 4;

/// The same after another pick has got the last lease of the one that was drawn.
#[cold]
fn take_another(tier: &Tier, draw: &Draw<'_>) -> Option<Lease> {
    // Mostly who is full is out of the bitmap by now; but the live set may have been replaced meanwhile, and nobody writes
    // into the old one. So there is an end to it, and then the board says where there is room.
    let redraw = || {
        let place = tier.plan.draw(draw).or_else(|| draw_again(tier, draw))?;
        Lease::take_and_tell(tier.backends.get(place)?, Trial::NONE, draw.ask.now)
    };
    (0..REDRAWS).find_map(|_| redraw()).or_else(|| {
        let backend = draw.board.lock().enter_any(draw.ask.tried)?;
        Some(Lease::entered(&backend, Trial::NONE, draw.ask.now))
    })
}

/// The backend of the client's cookie, or to which a connection is kept for it, in whatever tier it is, or in none: one of weight 0
/// has only these clients. `None`: as if there were no cookie.
#[cold]
fn pinned(backend: &Arc<Backend>, ask: &Ask<'_>) -> Option<Pick> {
    if backend.is_gone() {
        return None;
    }
    match backend.health() {
        // Right after a start the first backend that is found up would else get everybody's sessions.
        Health::Unknown => return ask.tried.is_empty().then_some(Pick::Unknown),
        Health::Up | Health::Draining if !ask.tried.contains(backend.id) => {}
        Health::Up | Health::Draining | Health::Down => return None,
    }
    // Whoever has been elsewhere does not wait.
    let full = || ask.tried.is_empty().then_some(Pick::Full);
    let board = backend.board();
    if backend.out_until().is_some_and(|until| until > ask.now) {
        let is_outlier = backend.breaker().word().circuit() == Circuit::Closed && board.panics();
        if !is_outlier || !backend.ejection().word().is_outlier() {
            return None;
        }
    }
    let Some(lease) = Lease::take_and_tell(backend, Trial::NONE, ask.now) else { return full() };
    let Some(trial) = on_trial(backend, ask.now) else {
        // Its breaker may have been half-open for a moment, which somebody else may have told the board.
        board.lock().refresh(backend);
        return None;
    };
    lease.set_trial(trial);
    if lease.is_trial() {
        board.lock().refresh(backend);
    } else if board.is_for(Wants::Order) {
        board.lock().weigh(backend);
    }
    Some(Pick::Lease(lease.counted_if_wanted()))
}

/// Any backend that was not tried, ejected or not: ejection never empties a target. An open breaker does.
#[cold]
fn last_resort(live: &Live, ask: &Ask<'_>) -> Pick {
    if live.tiers.iter().any(|tier| tier.watch.has_full(&tier.backends, ask.tried)) {
        return Pick::Full;
    }
    let (mut cause, mut is_full) = (Cause::NoBackend, false);
    for tier in &live.tiers {
        let (before, after) = tier.backends.split_at(ask.chance.below(tier.backends.len()));
        for backend in after.iter().chain(before).filter(|backend| !ask.tried.contains(backend.id)) {
            if backend.breaker().word().circuit() != Circuit::Closed {
                cause = Cause::BreakerOpen;
                continue;
            }
            let Some(lease) = Lease::take_and_tell(backend, Trial::NONE, ask.now) else {
                is_full = true;
                continue;
            };
            if backend.board().is_for(Wants::Order) {
                backend.board().lock().weigh(backend);
            }
            return Pick::Lease(lease.counted_if_wanted());
        }
    }
    match cause {
        _ if is_full => Pick::Full,
        _ if live.unknown > 0 => Pick::Unknown,
        Cause::BreakerOpen => find_out(live, ask).map_or(Pick::None(cause), Pick::Lease),
        cause => Pick::None(cause),
    }
}

/// The attempt that finds out whether one of those is back that are all broken.
fn find_out(live: &Live, ask: &Ask<'_>) -> Option<Lease> {
    let mut untried = live.backends().filter(|backend| !ask.tried.contains(backend.id));
    let lease = untried.find_map(|backend| {
        // The place before the trial: one that has begun must not come to nothing for want of it.
        let lease = Lease::take_and_tell(backend, Trial::NONE, ask.now)?;
        lease.set_trial(on_trial_alone(backend, ask.now)?);
        Some(lease)
    })?;
    lease.backend().board().lock().refresh(lease.backend());
    Some(lease.counted_if_wanted())
}

#[cfg(test)]
mod operator;
#[cfg(test)]
mod policies;
#[cfg(test)]
mod queueing;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod words;
