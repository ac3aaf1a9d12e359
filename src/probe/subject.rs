//! What the tasks of this folder are about: a backend, and whom they tell what they found out.

use std::sync::Arc;

use super::agent;
use super::finding::Finding;
use crate::events;
use crate::targets::state::health::agent::AgentReport;
use crate::targets::{Backend, Target};
use crate::tick::Tick;

/// The backend a task is about.
#[derive(Clone)]
pub(super) struct ProbeSubject<C> {
    pub(super) target: Arc<Target>,
    pub(super) backend: Arc<Backend>,
    pub(super) clock: C,
}

impl<C: Fn() -> Tick> ProbeSubject<C> {
    pub(super) fn now(&self) -> Tick {
        (self.clock)()
    }

    /// Takes in what the agent says. `odd` remembers whether there was something to complain of the last time.
    pub(super) fn hear(&self, heard: Result<AgentReport, String>, odd: &mut bool) {
        let complaint = match &heard {
            Ok(report) => report.strange.as_ref().map(|word| agent::unknown(word)),
            Err(reason) => Some(reason.clone()),
        };
        if let Ok(report) = heard {
            self.target.state.hear(&self.backend, &report, self.now());
        }
        let was_odd = std::mem::replace(odd, complaint.is_some());
        if let Some(reason) = complaint.filter(|_| !was_odd) {
            events::agent_unheard(&self.target.name, &self.backend.name, &reason);
        }
    }

    /// Takes in one probe. `starved` remembers whether the last one could not be made.
    pub(super) fn take(&self, finding: Finding, starved: &mut bool) {
        match finding {
            Finding::Verdict(verdict) => {
                *starved = false;
                self.target.state.report(&self.backend, verdict, self.now());
            }
            Finding::Starved(reason) => {
                if !std::mem::replace(starved, true) {
                    events::probe_starved(&self.target.name, &self.backend.name, &reason);
                }
            }
        }
    }
}
