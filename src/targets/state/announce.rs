//! Tells what has become of a target's backends. Control calls this; what there is to tell is decided in [`super::transitions`].

use std::sync::{Arc, PoisonError};

use crate::events::{self, BackendChange};
use crate::targets::Target;
use crate::targets::picking::candidates::Member;
use crate::targets::resilience::ejection::EjectionKind;
use crate::targets::state::decide::{EjectionState, Health, Source, decide};
use crate::targets::state::status::inputs;
use crate::targets::state::transitions::{News, Sight};
use crate::tick::Tick;

impl Target {
    /// Tells what has changed since the last time.
    pub fn announce(&self, now: Tick) {
        // Held while lines are written, so that they come in the order of what happened; writing only queues them.
        let mut transitions = self.state.transitions.lock().unwrap_or_else(PoisonError::into_inner);
        for (news, left, of) in transitions.step(&self.sights(), now) {
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
                News::Lost => events::target_lost(&self.name, of),
                News::OnBackups => events::target_on_backups(&self.name, left, of),
                News::Back(after) => events::target_back(&self.name, after, left, of),
            }
        }
    }

    /// Waits until a breaker or an ejection has turned.
    pub async fn turned(&self) {
        self.state.board.turned.notified().await;
    }

    fn sights(&self) -> Vec<Sight> {
        self.state.with_members(|members| {
            let first = members.iter().filter(|member| member.portion.weight > 0);
            let first = first.map(|member| member.portion.priority).min().unwrap_or_default();
            members.iter().map(|member| sight(member, member.portion.priority > first)).collect()
        })
    }
}

/// What there is to be told of a member. `is_backup`: it stands behind others.
fn sight(member: &Member, is_backup: bool) -> Sight {
    let Member { backend, portion } = member;
    let mut inputs = inputs(backend);
    let standing = &mut inputs.standing;
    let is_set_aside = standing.word == EjectionState::SetAside;
    standing.word = match backend.ejection().word().kind() {
        // To be told of one that is down it takes more than a refused connect.
        None | Some(EjectionKind::Refused) => EjectionState::Fine,
        Some(EjectionKind::Failing | EjectionKind::Slow) => EjectionState::Ejected,
    };
    let decision = decide(&inputs);
    let is_served_all_the_same = is_set_aside && decision.source == Source::Outlier;
    let may_serve =
        decision.health == Health::Up || (is_served_all_the_same && decision.standing == Health::Up);
    let counts = portion.weight > 0;
    let backend = (backend.id.0, Arc::clone(&backend.name));
    Sight { backend, serves: counts && may_serve, decision, inputs, counts, is_backup }
}
