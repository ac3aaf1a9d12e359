//! How many requests one backend of a target may have at once: what is configured, or was found out so far.

use std::sync::PoisonError;

use crate::config::model::Resilience;
use crate::targets::TargetState;

impl TargetState {
    /// The limit that `config` sets, or that was found out so far; 0: there is none.
    pub(super) fn limit_for(&self, config: &Resilience) -> u32 {
        let mut adaptive = self.adaptive.lock().unwrap_or_else(PoisonError::into_inner);
        if config.adaptive {
            return adaptive.get_or_insert_default().gradient.limit();
        }
        *adaptive = None;
        config.max_in_flight.unwrap_or(0)
    }

    /// Steps the limit. Gives it when it is met for the first time.
    pub(in crate::targets) fn adapt(&self) -> Option<u32> {
        let mut adaptive = self.adaptive.lock().unwrap_or_else(PoisonError::into_inner);
        let adaptive = adaptive.as_mut()?;
        if let Some(sample) = adaptive.sample(self.live.load().backends()) {
            adaptive.gradient.step(sample);
        }
        let limit = adaptive.gradient.limit();
        let mut locked = self.board.lock();
        self.board.set_limit(&mut locked, limit);
        let mut is_met = self.board.has_waiting();
        // Also when the limit is the same: a lease that ended while the last one was put in force may have gone by the
        // one before, and told nobody that its backend has room.
        for backend in self.live.load().backends() {
            locked.refresh(backend);
            is_met |= backend.taken() >= limit;
        }
        let is_first = is_met && !adaptive.is_met;
        adaptive.is_met |= is_met;
        is_first.then_some(limit)
    }
}
