//! What the tasks of this folder are about: a backend, and whom they tell what they found out.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use super::agent;
use super::finding::Finding;
use crate::events;
use crate::targets::state::health::agent::AgentReport;
use crate::targets::state::health::last_probe::LastProbe;
use crate::targets::{Backend, ProbeWord, TargetState, Verdict};
use crate::tick::Tick;

/// The backend a task is about. It lives on over configs, so it holds nothing that is of one config.
#[derive(Clone)]
pub(super) struct ProbeSubject<C> {
    /// The name of its target.
    pub(super) target: Arc<str>,
    pub(super) state: Arc<TargetState>,
    pub(super) backend: Arc<Backend>,
    /// Which check it is asked by.
    pub(super) check: u32,
    pub(super) clock: C,
}

impl<C: Fn() -> Tick> ProbeSubject<C> {
    pub(super) fn now(&self) -> Tick {
        (self.clock)()
    }

    /// Takes in one lookup of the backend's name: its addresses, or why there are none.
    pub(super) fn resolve(&self, found: Result<&[IpAddr], Arc<str>>) {
        self.state.resolve(&self.backend, found, self.now());
    }

    /// Takes what others have found out.
    pub(super) fn settle(&self, word: &ProbeWord) {
        self.state.settle_from(self.check, &self.backend, word, self.now());
    }

    /// Takes in what the agent says. `odd` remembers whether there was something to complain of the last time.
    pub(super) fn hear(&self, heard: Result<AgentReport, String>, odd: &mut bool) {
        let complaint = match &heard {
            Ok(report) => report.strange.as_ref().map(|word| agent::unknown(word)),
            Err(reason) => Some(reason.clone()),
        };
        if let Ok(report) = heard {
            self.state.hear_from(self.check, &self.backend, &report, self.now());
        }
        let was_odd = std::mem::replace(odd, complaint.is_some());
        if let Some(reason) = complaint.filter(|_| !was_odd) {
            events::agent_unheard(&self.target, &self.backend.name, &reason);
        }
    }

    /// Takes in one probe that took this long. `starved` remembers whether the last one could not be made.
    pub(super) fn take(&self, finding: Finding, took: Duration, starved: &mut bool) {
        match finding {
            Finding::Verdict(verdict) => {
                *starved = false;
                let fault = match &verdict {
                    Verdict::Good => None,
                    Verdict::Bad(reason) => Some(Arc::clone(reason)),
                };
                self.state.tally().probe(fault.is_none());
                self.backend.note_probe(LastProbe { at: self.now(), took, fault });
                self.state.report_from(self.check, &self.backend, verdict, self.now());
            }
            Finding::Starved(reason) => {
                if !std::mem::replace(starved, true) {
                    events::probe_starved(&self.target, &self.backend.name, &reason);
                }
            }
        }
    }
}
