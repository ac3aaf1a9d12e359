//! What the probes of one process amount to, for others, and what those of others do.

use std::sync::Arc;

use crate::targets::state::decide::Probe;
use crate::targets::state::input::Input;
use crate::targets::{Backend, TargetState, Transition};
use crate::tick::Tick;

/// What the probes of a backend amount to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbeWord {
    /// It passes.
    pub is_good: bool,
    /// Why: a short text for people.
    pub reason: Arc<str>,
}

impl TargetState {
    /// What the probes of `backend` amount to; `None`: there was none yet, or it is not probed.
    #[must_use]
    pub fn probed(&self, backend: &Backend) -> Option<ProbeWord> {
        let probe = backend.detail().inputs.probe.clone();
        let is_good = match probe.word {
            Probe::Good => true,
            Probe::Bad => false,
            Probe::Off | Probe::Pending => return None,
        };
        Some(ProbeWord { is_good, reason: probe.reason })
    }

    /// Takes over what the probes of others amount to, at once. Gives the transition when the backend's state changed. It counts for nothing if another
    /// [check](Backend::check) is in force.
    pub fn settle_from(
        &self,
        check: u32,
        backend: &Backend,
        word: &ProbeWord,
        now: Tick,
    ) -> Option<Transition> {
        let mut members = self.members();
        if backend.check() != check {
            return None;
        }
        self.update(&mut members, backend, now, |detail| {
            detail.threshold.settle(word.is_good);
            let (probe, settled) =
                (&mut detail.inputs.probe, if word.is_good { Probe::Good } else { Probe::Bad });
            if probe.word != settled {
                *probe = Input::new(settled, Arc::clone(&word.reason), now);
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::targets::fixtures::*;
    use crate::targets::{Health, Verdict};

    #[test]
    fn what_others_have_settled_holds_at_once_and_own_probes_go_on_from_there() {
        let target = target(&probed(1));
        let (backend, state) = (&target.backends[0], &target.state);
        let word = |is_good| ProbeWord { is_good, reason: "b says so".into() };
        assert_eq!(state.probed(backend), None);
        let health = |transition: Option<Transition>| transition.map(|transition| transition.to);
        let settle =
            |is_good, now| health(state.settle_from(backend.check(), backend, &word(is_good), Tick(now)));
        assert_eq!(settle(true, 1), Some(Health::Up));
        assert_eq!((settle(true, 2), state.probed(backend)), (None, Some(word(true))));
        // As after a good probe of its own: the first bad one does not count yet.
        assert_eq!(state.report(backend, Verdict::Bad("no".into()), Tick(3)), None);
        assert_eq!(settle(false, 4), Some(Health::Down));
        assert_eq!(state.report(backend, Verdict::Good, Tick(5)), None);
        assert_eq!(state.settle_from(backend.check() + 1, backend, &word(true), Tick(6)), None);
        assert_eq!(settle(true, 7), Some(Health::Up));
    }
}
