//! What the next request would find at a target, for people who ask: nothing is counted and nobody's turn is over by it.

use std::sync::Arc;

use crate::targets::picking::balance::algorithm::Draw;
use crate::targets::queueing::wants::Wants;
use crate::targets::{Ask, Backend, Target, TargetState};

/// A backend, as the next request would find it.
#[derive(Clone, Debug, PartialEq)]
pub struct Prospect {
    /// The backend.
    pub name: Arc<str>,
    /// Its state.
    pub state: &'static str,
    /// Among those that are asked first (0), next (1) and so on; `None`: it gets no request of a new client.
    pub tier: Option<usize>,
    /// It may be picked at this moment: it is not left out, and not full.
    pub is_ready: bool,
    /// Its weight, as far as its agent grants it.
    pub weight: u16,
    /// Requests that it has.
    pub in_flight: u32,
    /// How busy it would be with one more, for each unit of its weight: what algorithms that go by load compare.
    pub score: Option<f64>,
}

impl Target {
    /// Its backends as `ask` would find them, in config order, and the one that would be picked; `None`: it is somebody's turn, or chance.
    #[must_use]
    pub fn peek(&self, ask: &Ask<'_>) -> (Vec<Prospect>, Option<Arc<str>>) {
        let prospects = self.backends.iter().map(|backend| self.state.prospect(backend, ask)).collect();
        (prospects, self.state.foreseen(self.config.balance.algorithm.is_hash(), ask))
    }
}

impl TargetState {
    fn prospect(&self, backend: &Arc<Backend>, ask: &Ask<'_>) -> Prospect {
        let live = self.live.load();
        let place = live.tiers.iter().enumerate().find_map(|(number, tier)| {
            Some((number, tier, tier.backends.iter().position(|one| Arc::ptr_eq(one, backend))?))
        });
        let weight = place.and_then(|(_, tier, place)| tier.weights.get(place).copied());
        let in_flight = backend.taken();
        Prospect {
            name: Arc::clone(&backend.name),
            state: backend.health().as_str(),
            tier: place.map(|(number, ..)| number),
            is_ready: place.is_some_and(|(_, tier, place)| tier.is_usable(place, ask)),
            weight: weight.unwrap_or_default(),
            in_flight,
            score: weight.map(|weight| (f64::from(in_flight) + 1.0) / f64::from(weight)),
        }
    }

    /// The backend that would be picked, where that is settled.
    fn foreseen(&self, is_hash: bool, ask: &Ask<'_>) -> Option<Arc<str>> {
        let live = self.live.load();
        if let Some(pin) = ask.waits_for(self.board.panics()) {
            return Some(Arc::clone(&pin.name));
        }
        let ready = |place: &usize, tier: &super::tier::Tier| tier.is_usable(*place, ask);
        let tier =
            live.tiers.iter().find(|tier| (0..tier.backends.len()).any(|place| ready(&place, tier)))?;
        let all: Vec<usize> = (0..tier.backends.len()).filter(|place| ready(place, tier)).collect();
        let draw = Draw { tier, board: &self.board, cursor: &self.cursor, ask };
        let place = match all[..] {
            [only] => Some(only),
            // These look and leave nothing behind.
            _ if is_hash && ask.key.is_some() => tier.plan.draw(&draw),
            _ if self.board.is_for(Wants::Order) => {
                let least = all.iter().map(|&place| draw.load(place)).min_by(f64::total_cmp)?;
                let mut first = all.iter().copied().filter(|&place| draw.load(place) <= least);
                // Among equals it is chance.
                first.next().filter(|_| first.next().is_none())
            }
            _ => None,
        };
        tier.backends.get(place?).map(|backend| Arc::clone(&backend.name))
    }
}
