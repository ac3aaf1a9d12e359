//! What the probes of one process amount to, for others, and what those of others do.

use std::collections::HashMap;
use std::sync::Arc;

use crate::targets::state::decide::Probe;
use crate::targets::state::input::Input;
use crate::targets::{Backend, Target, TargetState, Transition};
use crate::tick::Tick;
use serde::{Deserialize, Serialize};

/// What the probes of a backend amount to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbeWord {
    /// It passes.
    pub is_good: bool,
    /// Why: a short text for people.
    pub reason: Arc<str>,
}

/// The same of many backends as it is told, by identity: whether it passes, and why.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbeWords(pub HashMap<String, (bool, String)>);

impl Target {
    /// Adds what the probes of its backends amount to, as far as that is known.
    pub fn tell_probes(&self, words: &mut ProbeWords) {
        for backend in &self.backends {
            if let Some(ProbeWord { is_good, reason }) = self.state.probed(backend) {
                words.0.insert(backend.identity.to_string(), (is_good, reason.to_string()));
            }
        }
    }

    /// Takes over what the process before has found out of those of which nothing is known here.
    pub fn take_over(&self, words: &ProbeWords, now: Tick) {
        for backend in self.backends.iter().filter(|one| self.state.probed(one).is_none()) {
            if let Some((is_good, reason)) = words.0.get(&*backend.identity) {
                let word = ProbeWord { is_good: *is_good, reason: reason.as_str().into() };
                self.state.settle_from(backend.check(), backend, &word, now);
            }
        }
    }
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

    #[test]
    fn the_next_process_begins_with_what_the_one_before_has_found_out_and_finds_out_the_rest() {
        let (before, after) = (target(&probed(3)), target(&probed(3)));
        before.state.report(&before.backends[0], Verdict::Good, Tick(1));
        before.state.settle_from(
            before.backends[1].check(),
            &before.backends[1],
            &ProbeWord { is_good: false, reason: "refused".into() },
            Tick(2),
        );
        let mut words = ProbeWords::default();
        before.tell_probes(&mut words);
        let text = serde_json::to_string(&words).unwrap();
        after.state.report(&after.backends[0], Verdict::Bad("no".into()), Tick(3));
        after.take_over(&serde_json::from_str(&text).unwrap(), Tick(4));
        let health: Vec<Health> = after.backends.iter().map(|backend| backend.health()).collect();
        assert_eq!(health, [Health::Down, Health::Down, Health::Unknown], "what is found out here holds");
        assert_eq!(words.0.len(), 2);
    }
}
