//! Tells what has become of a target's backends. Control calls this; what there is to tell is decided in [`super::transitions`].

use std::collections::HashMap;
use std::sync::{Arc, PoisonError};

use crate::events::{self, BackendChange, TargetChange};
use crate::message::BackendId;
use crate::targets::picking::candidates::Member;
use crate::targets::resilience::trial::is_free_for_trial;
use crate::targets::state::decide::{EjectionState, Fuse, Health, Source, decide};
use crate::targets::state::members::{STAND_IN, Succession};
use crate::targets::state::status::{BackendFacts, TargetStatus, facts};
use crate::targets::state::transitions::{News, Sight};
use crate::targets::{Backend, Circuit, Target};
use crate::tick::Tick;

impl Target {
    /// Tells what has changed since the last time.
    pub fn announce(&self, now: Tick) {
        self.tell_succession();
        // First, since it decides on who is left.
        let panic = self.state.settle(now);
        // Held while lines are written, so that they come in the order of what happened; writing only queues them.
        let mut transitions = self.state.transitions.lock().unwrap_or_else(PoisonError::into_inner);
        let (sights, has_stand_ins) = self.sights(now);
        transitions.has_stand_ins = has_stand_ins;
        for (news, left, of) in transitions.step(&sights, now) {
            match news {
                News::Backend { name, from, to, source, reason, after } => {
                    events::backend_changed(&BackendChange {
                        target: &self.name,
                        backend: &name,
                        from: from.as_str(),
                        to: to.as_str(),
                        source: source.as_str(),
                        reason: &reason,
                        after,
                        left,
                        of,
                    })
                }
                News::Target { from, to, after } => events::target_changed(&TargetChange {
                    target: &self.name,
                    from: from.as_str(),
                    state: to.as_str(),
                    after,
                    left,
                    of,
                }),
            }
        }
        if let Some(panic) = panic {
            self.tell_panic(&panic);
        }
    }

    /// Whether there is something to tell that a trial may make untrue in a moment; announcing it again is due in a second.
    pub(in crate::targets) fn is_in_doubt(&self) -> bool {
        self.state.transitions.lock().unwrap_or_else(PoisonError::into_inner).is_in_doubt()
    }

    /// Tells how those have ended to stand in who were there before the members.
    fn tell_succession(&self) {
        match self.state.take_succession() {
            Some(Succession { before, succeeded: true }) => events::successors_up(&self.name, before),
            Some(Succession { before, succeeded: false }) => {
                events::successors_late(&self.name, before, STAND_IN);
            }
            None => {}
        }
    }

    /// What the target is as a whole, at `now`.
    #[must_use]
    pub fn overview(&self, now: Tick) -> TargetStatus {
        let (level, since) = self.state.transitions.lock().unwrap_or_else(PoisonError::into_inner).level();
        let (sights, _) = self.sights(now);
        let live = self.state.live.load();
        let weights = live.first_choice().flat_map(|tier| tier.backends.iter().zip(&tier.weights));
        let weights: HashMap<BackendId, u16> =
            weights.map(|(backend, weight)| (backend.id, *weight)).collect();
        let all: f64 = weights.values().map(|weight| f64::from(*weight)).sum();
        let part = |backend: &Arc<Backend>| weights.get(&backend.id).map_or(0.0, |own| f64::from(*own) / all);
        TargetStatus {
            level: level.as_str(),
            since,
            left: sights.iter().filter(|sight| sight.is_left()).count(),
            of: sights.iter().filter(|sight| sight.counts).count(),
            panics: self.state.board.panics(),
            stand_ins: self.state.stand_ins(),
            parts: self.backends.iter().map(part).collect(),
        }
    }

    /// Waits until there may be something to tell: the state of a backend, its breaker or its ejection has turned.
    pub async fn turned(&self) {
        self.state.board.turned.notified().await;
    }

    /// The members, and whether others stand in for them.
    fn sights(&self, now: Tick) -> (Vec<Sight>, bool) {
        self.state.with_members(|members, has_stand_ins| {
            let first = members.iter().filter(|member| member.portion.weight > 0);
            let first = first.map(|member| member.portion.priority).min().unwrap_or_default();
            let sights = members.iter().map(|member| sight(member, member.portion.priority > first, now));
            (sights.collect(), has_stand_ins)
        })
    }
}

/// What there is to be told of a member. `is_backup`: it stands behind others.
fn sight(member: &Member, is_backup: bool, now: Tick) -> Sight {
    let Member { backend, portion, .. } = member;
    let BackendFacts { mut inputs, ejection, circuit } = facts(backend);
    let is_set_aside = inputs.standing.word == EjectionState::SetAside;
    inputs.standing.word = if ejection.is_news() { EjectionState::Ejected } else { EjectionState::Fine };
    let decision = decide(&inputs);
    let is_served_all_the_same = is_set_aside && decision.source == Source::Outlier;
    let is_up = decision.standing == Health::Up;
    let serves = decision.health == Health::Up || (is_served_all_the_same && is_up);
    // By its words alone: what it waits for is one request.
    let is_out = is_up && decision.health == Health::Down;
    let until = match circuit {
        Circuit::Closed => ejection.until().unwrap_or(Tick::ZERO),
        Circuit::Open(until) => until.max(ejection.until().unwrap_or(Tick::ZERO)),
        Circuit::HalfOpen => Tick::NEVER,
    };
    let counts = portion.weight > 0;
    Sight {
        backend: (backend.id.0, Arc::clone(&backend.name)),
        serves: counts && serves,
        is_free: counts && is_out && is_free_for_trial(until, now),
        is_tried: is_out
            && match inputs.fuse.word {
                Fuse::HalfOpen => true,
                Fuse::Open => false,
                // Nobody says of an ejected one that this is its trial.
                Fuse::Closed => backend.in_flight() > 0,
            },
        decision,
        inputs,
        counts,
        is_backup,
    }
}

#[cfg(test)]
mod tests;
