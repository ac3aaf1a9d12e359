//! Who belongs to a target under the config in force, and who stands in for them while none of them may be picked yet.
//!
//! Where a reload takes away everybody who could be picked, the backends before serve on, as *stand-ins*, until one of the
//! present ones may be picked, for 5 s at most. Invariants, which hold whenever nobody holds the members:
//!
//! 1. There are stand-ins only while no member is eligible. A member that becomes so ends them in the same step in which the
//!    live set is made, so a live set is made of members or of stand-ins, never of both, and it is made of stand-ins only
//!    when somebody of them was up at the reload.
//! 2. Stand-ins are the whole list that served before, in its order, so that tables and rings made of identities stay as they
//!    are. Who of them is a member too has the portion of the member.
//! 3. Each backend that is neither is dismissed once: when a reload takes it away, or with the stand-ins. Those that go with the
//!    stand-ins leave within the time that their target had when they were members, and workers are told of them afterwards.
//! 4. A reload while there are stand-ins keeps them if it leaves nobody eligible either. Their time begins anew only with a
//!    member that was not there before: somebody may still have to find out about that one.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use crate::config::model::{self, HealthCheck, HostHeader, Policy};
use crate::message::BackendId;
use crate::targets::Backend;
use crate::targets::picking::candidates::Member;
use crate::targets::state::departure::Departure;
use crate::tick::Tick;

/// For how long those before may stand in.
pub(in crate::targets) const STAND_IN: Duration = Duration::from_secs(5);

/// Who belongs to the target, how one of them is chosen, and how they are probed.
#[derive(Debug, Default)]
pub(super) struct Members {
    pub(super) all: Vec<Member>,
    pub(super) policy: Policy,
    /// The check in force; `None`: there is none.
    pub(super) health: Option<HealthCheck>,
    /// What requests have for a Host, and probes with them.
    host: HostHeader,
    stand_ins: Option<StandIns>,
    /// How long tunnels may take to end, of those who leave.
    drain: Duration,
    /// The same of stand-ins.
    stand_in_drain: Duration,
    /// How stand-ins have ended, until that is told.
    succession: Option<Succession>,
    /// Those who leave and of whom workers do not know yet.
    departed: Vec<Arc<Backend>>,
}

/// Those before.
#[derive(Debug)]
struct StandIns {
    all: Vec<Member>,
    /// When control has first seen them; `None`: it has not.
    since: Option<Tick>,
}

/// How stand-ins have ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Succession {
    /// How many they were.
    pub(super) before: usize,
    /// A member may be picked; otherwise their time was up.
    pub(super) succeeded: bool,
}

impl Members {
    /// Takes over the check of `config`. Says whether it asks otherwise than the one before, and whether agents are others.
    pub(super) fn recheck(&mut self, config: &model::TargetConfig) -> (bool, bool) {
        let before = std::mem::replace(&mut self.health, config.health.clone());
        let had_host = std::mem::replace(&mut self.host, config.host.clone());
        match (before, &config.health) {
            (Some(before), Some(after)) => {
                let is_same = before.asks_like(after) && had_host == config.host;
                (!is_same, before.agent != after.agent)
            }
            (None, None) => (false, false),
            (Some(_), None) | (None, Some(_)) => (true, true),
        }
    }

    /// Makes `all` the members, whose states are those under the config to come; tunnels of those who leave then may take `drain`.
    /// Gives those who are dismissed, each once.
    pub(super) fn replace(&mut self, all: Vec<Member>, drain: Duration) -> Vec<Arc<Backend>> {
        let drain_before = std::mem::replace(&mut self.drain, drain);
        if self.stand_ins.is_none() {
            self.stand_in_drain = drain_before;
        }
        let before = std::mem::replace(&mut self.all, all);
        let known: HashSet<BackendId> = before.iter().map(|member| member.backend.id).collect();
        let present: HashMap<BackendId, &Member> =
            self.all.iter().map(|member| (member.backend.id, member)).collect();
        let has_newcomers = present.keys().any(|id| !known.contains(id));
        let (mut served, since) = match self.stand_ins.take() {
            Some(StandIns { all, since }) => (all, since.filter(|_| !has_newcomers)),
            None => (before.clone(), None),
        };
        let is_gone = |member: &&Member| !present.contains_key(&member.backend.id);
        let is_needed = !self.has_eligible() && served.iter().filter(is_gone).any(Member::is_eligible);
        let mut kept: HashSet<BackendId> = HashSet::new();
        if is_needed {
            kept.extend(served.iter().map(|member| member.backend.id));
        }
        let mut dismissed = Vec::new();
        for Member { backend, .. } in before.iter().chain(&served).filter(is_gone) {
            if kept.insert(backend.id) {
                dismissed.push(Arc::clone(backend));
            }
        }
        if is_needed {
            for member in &mut served {
                if let Some(now) = present.get(&member.backend.id) {
                    *member = (*now).clone();
                }
            }
            self.stand_ins = Some(StandIns { all: served, since });
        }
        dismissed
    }

    fn has_eligible(&self) -> bool {
        self.all.iter().any(Member::is_eligible)
    }

    /// Those that the live set is made of, after stand-ins have ended for whom there is no need any more; and who is dismissed
    /// with them.
    pub(super) fn lineup(&mut self) -> (&[Member], Vec<Arc<Backend>>) {
        let dismissed =
            if self.stand_ins.is_some() && self.has_eligible() { self.end(true) } else { Vec::new() };
        (self.stand_ins.as_ref().map_or(&self.all, |stand_ins| &stand_ins.all), dismissed)
    }

    /// Whether there are stand-ins.
    pub(super) fn has_stand_ins(&self) -> bool {
        self.stand_ins.is_some()
    }

    /// The stand-ins.
    pub(super) fn stand_ins(&self) -> &[Member] {
        self.stand_ins.as_ref().map_or(&[], |stand_ins| &stand_ins.all)
    }

    /// How long stand-ins may still be there; `None`: there are none.
    pub(super) fn time_left(&mut self, now: Tick) -> Option<Duration> {
        let stand_ins = self.stand_ins.as_mut()?;
        let since = *stand_ins.since.get_or_insert(now);
        Some(STAND_IN.saturating_sub(now.since(since)))
    }

    /// Ends the stand-ins. Gives those who are dismissed.
    pub(super) fn end(&mut self, succeeded: bool) -> Vec<Arc<Backend>> {
        let Some(StandIns { all, .. }) = self.stand_ins.take() else { return Vec::new() };
        self.succession = Some(Succession { before: all.len(), succeeded });
        let present: HashSet<BackendId> = self.all.iter().map(|member| member.backend.id).collect();
        let gone = all.into_iter().map(|member| member.backend);
        gone.filter(|backend| !present.contains(&backend.id)).collect()
    }

    /// Has stand-ins leave that have ended.
    pub(super) fn depart(&mut self, gone: Vec<Arc<Backend>>, now: Tick) {
        let departure = Departure { since: now, window: self.stand_in_drain };
        gone.iter().for_each(|backend| backend.remove(departure));
        self.departed.extend(gone);
    }

    /// Workers are to look at these.
    pub(super) fn note_departures(&mut self, turned: Vec<Arc<Backend>>) {
        self.departed.extend(turned);
    }

    /// Those who leave, or stay after all, and of whom workers do not know yet.
    pub(super) fn take_departed(&mut self) -> Vec<Arc<Backend>> {
        std::mem::take(&mut self.departed)
    }

    /// How stand-ins have ended, if that is still to be told.
    pub(super) fn take_succession(&mut self) -> Option<Succession> {
        self.succession.take()
    }
}

#[cfg(test)]
mod tests;
