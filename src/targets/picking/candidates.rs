//! Who may be picked, in the order of the config: what an algorithm sees of a tier.

use std::sync::Arc;

use crate::config::model::{BackendState, Policy, Portion};
use crate::targets::picking::hash::scaled;
use crate::targets::picking::warmup::Warmup;
use crate::targets::queueing::watch::Watch;
use crate::targets::state::decide::Health;
use crate::targets::{Ask, Backend};
use crate::tick::Tick;

/// A backend with what the config gives it.
#[derive(Clone, Debug)]
pub(in crate::targets) struct Member {
    pub(in crate::targets) backend: Arc<Backend>,
    pub(in crate::targets) portion: Portion,
    /// What its probe asks for.
    pub(in crate::targets) probe_path: Option<Arc<str>>,
    /// What the operator wants of it.
    pub(in crate::targets) state: BackendState,
    /// Who has set that by hand.
    pub(in crate::targets) state_by: Option<Arc<str>>,
}

impl Member {
    /// Whether it is meant to serve everybody. One that is out on purpose is not lost, so that others have to do without care, and
    /// nobody waits for its verdict.
    pub(in crate::targets) fn is_in_service(&self) -> bool {
        self.portion.weight > 0 && self.state == BackendState::Up
    }

    /// Up, and there for everybody.
    pub(in crate::targets) fn is_eligible(&self) -> bool {
        self.backend.health() == Health::Up && self.portion.weight > 0
    }

    /// Its weight, as far as its agent grants it.
    pub(in crate::targets) fn weight(&self) -> u16 {
        self.backend.detail().inputs.agent.scaled(self.portion.weight)
    }
}

/// What an algorithm computes its plan from. Everything is in config order.
#[derive(Debug)]
pub(in crate::targets) struct Lineup<'a> {
    /// Who may be picked.
    pub(in crate::targets) backends: &'a [Arc<Backend>],
    /// Their weights, each at least 1.
    pub(in crate::targets) weights: &'a [u16],
    /// Who would be there if all were up, with their weights.
    pub(in crate::targets) configured: &'a [(Arc<str>, u16)],
    pub(in crate::targets) policy: &'a Policy,
}

impl Lineup<'_> {
    /// Who may be picked, by identity, with the weights.
    pub(in crate::targets) fn live(&self) -> Vec<(&str, u16)> {
        self.backends.iter().map(|backend| &*backend.identity).zip(self.weights.iter().copied()).collect()
    }
}

/// The backends of a tier.
#[derive(Debug)]
pub(in crate::targets) struct Candidates {
    /// In config order.
    pub(in crate::targets) backends: Arc<[Arc<Backend>]>,
    /// Their weights.
    pub(in crate::targets) weights: Vec<u16>,
    /// Which of them are not ejected.
    pub(in crate::targets) watch: Arc<Watch>,
    /// Which of them are not at their full share yet.
    pub(in crate::targets) warmup: Option<Warmup>,
}

impl Candidates {
    /// Whether the backend at `place` may be picked for a request.
    #[inline]
    pub(in crate::targets) fn may(&self, place: usize, ask: &Ask<'_>) -> bool {
        self.is_usable(place, ask) && self.warmup.as_ref().is_none_or(|warmup| warmup.admits(place, ask))
    }

    /// What part of its share the backend at `place` gets.
    #[inline]
    pub(in crate::targets) fn share(&self, place: usize, now: Tick) -> f64 {
        self.warmup.as_ref().map_or(1.0, |warmup| warmup.share(place, now))
    }

    /// How many leases there are on the backend at `place`, for each unit of its weight.
    #[inline]
    pub(in crate::targets) fn load(&self, place: usize) -> f64 {
        let (backend, weight) = (self.backends.get(place), self.weights.get(place));
        match (backend, weight) {
            (Some(backend), Some(&weight)) => f64::from(backend.taken()) / f64::from(weight),
            _ => f64::INFINITY,
        }
    }

    /// Whether the backend at `place` may be picked, however cold it is.
    #[inline]
    pub(in crate::targets) fn is_usable(&self, place: usize, ask: &Ask<'_>) -> bool {
        let ready = &self.watch.ready;
        self.backends.get(place).is_some_and(|backend| {
            (ready.is_full() || ready.contains(place)) && !ask.tried.contains(backend.id)
        })
    }

    /// Any place that may be used, each as likely as the others, but for those next to one that was tried.
    #[cold]
    pub(in crate::targets) fn any(&self, ask: &Ask<'_>) -> Option<usize> {
        let ready = &self.watch.ready;
        let nth = scaled(ask.key.unwrap_or_else(|| ask.chance.bits()), ready.count());
        let mut place = ready.select(nth)?;
        // Only so many can have been tried.
        for _ in 0..=ask.tried.len() {
            if self.is_usable(place, ask) {
                return Some(place);
            }
            place = ready.next(place + 1)?;
        }
        None
    }
}
