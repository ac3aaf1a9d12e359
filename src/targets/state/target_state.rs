//! The live state of a target: its members, the set that may be picked, and the word that it changed.
//!
//! `probe` reports here, one mutex serialises it, and the live set is rebuilt and swapped whole, in config
//! order, only when eligibility changed. Requests read the set without a lock.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use tokio::sync::futures::Notified;

use crate::config::model::{self, BackendState};
use crate::message::BackendId;
use crate::slots::HeldSlot;
use crate::targets::picking::balance::cursor::Cursor;
use crate::targets::picking::balance::plan::wants;
use crate::targets::picking::candidates::Member;
use crate::targets::picking::tier::{Tier, tiers};
use crate::targets::queueing::seat::Seat;
use crate::targets::resilience::adaptive::Adaptive;
use crate::targets::resilience::window::Window;
use crate::targets::state::backend::probe_input;
use crate::targets::state::decide::{EjectionState, Health, Inputs, Probe, Resolution, decide};
use crate::targets::state::health::agent::{Agent, AgentReport};
use crate::targets::state::health::threshold::Threshold;
use crate::targets::state::input::Input;
use crate::targets::state::members::{Members, Succession};
use crate::targets::state::objects::{Board, Detail};
use crate::targets::state::scale_signal::ScaleWord;
use crate::targets::state::tally::TargetTally;
use crate::targets::state::transitions::Transitions;
use crate::targets::{Backend, Budget, Departure, HedgePace, Padded, Tried};
use crate::tick::Tick;

/// What one probe says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The backend passed.
    Good,
    /// It did not, for this reason: a short text for people.
    Bad(Arc<str>),
}

/// A backend went from one state to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transition {
    /// The state it left.
    pub from: Health,
    /// The state it is in.
    pub to: Health,
    /// Why.
    pub reason: Arc<str>,
}

/// What requests pick from. Never changed, only replaced.
#[derive(Debug, Default)]
pub(in crate::targets) struct Live {
    /// Which live set of its target it is, counted from 0.
    pub(in crate::targets) generation: u64,
    /// Eligible backends, first choice first.
    pub(in crate::targets) tiers: Vec<Tier>,
    /// How many members have no verdict yet.
    pub(in crate::targets) unknown: usize,
    /// It is made of stand-ins, by identity; `None`: it is made of members.
    pub(in crate::targets) stand_ins: Option<HashMap<Arc<str>, Arc<Backend>>>,
}

impl Live {
    pub(in crate::targets) fn backends(&self) -> impl Iterator<Item = &Arc<Backend>> {
        self.tiers.iter().flat_map(|tier| tier.backends.iter())
    }

    /// The tiers of the first choice: several where nodes share backends, those that this one prefers and the others.
    pub(in crate::targets) fn first_choice(&self) -> impl Iterator<Item = &Tier> {
        let group = self.tiers.first().map(|tier| tier.group);
        self.tiers.iter().filter(move |tier| Some(tier.group) == group)
    }
}

/// The live state of a target; it survives reloads.
#[derive(Debug, Default)]
pub struct TargetState {
    pub(in crate::targets) cursor: Cursor,
    pub(in crate::targets) board: Arc<Board>,
    pub(in crate::targets) live: ArcSwap<Live>,
    members: Mutex<Members>,
    /// What was told of it.
    pub(super) transitions: Mutex<Transitions>,
    /// What the sweep knows.
    pub(in crate::targets) window: Mutex<Window>,
    /// What is known of the limit; `None`: it is not to be found out.
    pub(in crate::targets) adaptive: Mutex<Option<Adaptive>>,
    /// What its retries are taken from.
    pub retries: Padded<Budget>,
    /// What competitors of slow attempts are taken from.
    pub hedges: Padded<Budget>,
    /// How soon its answers begin; noted only where attempts get competitors.
    pub pace: HedgePace,
    /// Whether it has too few backends, or more than it needs.
    pub(in crate::targets) scale: ScaleWord,
    /// The target's number, which it has under every config.
    pub(in crate::targets) slot: HeldSlot,
}

impl TargetState {
    /// The state of a target that was never seen before.
    pub(in crate::targets) fn numbered(slot: HeldSlot) -> TargetState {
        let mut state = TargetState::default();
        state.slot = slot;
        state
    }

    /// How often what was found out about its backends.
    #[must_use]
    pub fn tally(&self) -> &TargetTally {
        &self.board.tally
    }

    /// A future that resolves at the next change of the live set, or, while somebody waits in the queue, of who is left out.
    ///
    /// It counts from this call on, polled or not: take it, *then* pick again, then await it, and no
    /// change is missed.
    pub fn changed(&self) -> Notified<'_> {
        self.board.changed.notified()
    }

    /// Whether a backend is up that was not tried; a pick may find otherwise.
    #[must_use]
    pub fn has_another(&self, tried: &Tried) -> bool {
        self.live.load().backends().any(|backend| !tried.contains(backend.id))
    }

    /// Takes in one probe of `backend`. Gives the transition when the backend's state changed.
    pub fn report(&self, backend: &Backend, verdict: Verdict, now: Tick) -> Option<Transition> {
        self.report_from(backend.check(), backend, verdict, now)
    }

    /// The same of a probe of this [check](Backend::check), which counts for nothing if another one is in force.
    pub fn report_from(
        &self,
        check: u32,
        backend: &Backend,
        verdict: Verdict,
        now: Tick,
    ) -> Option<Transition> {
        let mut members = self.members();
        if backend.check() != check {
            return None;
        }
        let (rise, fall) = members.health.as_ref().map_or((1, 1), |health| (health.rise, health.fall));
        self.update(&mut members, backend, now, |detail| {
            let good = verdict == Verdict::Good;
            let first = detail.threshold.standing().is_none();
            let turned = detail.threshold.judge(good, rise, fall).is_some();
            let probe = &mut detail.inputs.probe;
            match verdict {
                // The first one of another check that says the same as the one before.
                Verdict::Good if probe.word == Probe::Good => {}
                Verdict::Good if turned => {
                    let reason = if first { "the first probe passed".into() } else { passed(rise) };
                    *probe = Input::new(Probe::Good, reason, now);
                }
                Verdict::Bad(reason) if turned && probe.word != Probe::Bad => {
                    *probe = Input::new(Probe::Bad, reason, now)
                }
                // Status readers see why it fails now, not only why it first failed.
                Verdict::Bad(reason) if probe.word == Probe::Bad => probe.reason = reason,
                Verdict::Good | Verdict::Bad(_) => {}
            }
        })
    }

    /// Takes in what the agent of `backend` says. Gives the transition when the backend's state changed; a weight may
    /// have changed without one.
    pub fn hear(&self, backend: &Backend, report: &AgentReport, now: Tick) -> Option<Transition> {
        self.hear_from(backend.check(), backend, report, now)
    }

    /// The same of an agent that was asked while this [check](Backend::check) was in force.
    pub fn hear_from(
        &self,
        check: u32,
        backend: &Backend,
        report: &AgentReport,
        now: Tick,
    ) -> Option<Transition> {
        let mut members = self.members();
        if backend.check() != check {
            return None;
        }
        self.update(&mut members, backend, now, |detail| detail.inputs.agent.hear(report, now))
    }

    /// Takes in one lookup of `backend`'s name: its addresses, or why there are none.
    ///
    /// After a failed lookup, or one without addresses, the last good ones stay; a backend that never had
    /// any is down. Gives the transition when the backend's state changed.
    pub fn resolve(
        &self,
        backend: &Backend,
        found: Result<&[IpAddr], Arc<str>>,
        now: Tick,
    ) -> Option<Transition> {
        let mut members = self.members();
        let known = !backend.endpoints().is_empty();
        let (word, reason) = match found {
            Ok([]) | Err(_) if known => return None,
            Ok([]) => (Resolution::Failed, "name does not resolve: no addresses".into()),
            Err(reason) => (Resolution::Failed, reason),
            Ok(addresses) => {
                if backend.readdress(addresses) && known {
                    backend.retire_connections();
                }
                (Resolution::Resolved, "the name resolves".into())
            }
        };
        self.update(&mut members, backend, now, |detail| {
            let name = &mut detail.inputs.name;
            let since = if name.word == word { name.since } else { now };
            *name = Input { word, reason, since };
        })
    }

    /// Makes `all` the members, in this order, chosen and judged as `config` says from now on. Says which of the members so
    /// far are dismissed: those that are not among them and do not stand in.
    pub(in crate::targets) fn replace(
        &self,
        all: Vec<Member>,
        config: &model::TargetConfig,
        now: Tick,
    ) -> Vec<Arc<Backend>> {
        let (policy, health, resilience) = (&config.balance, config.health.as_ref(), &config.resilience);
        let mut members = self.members();
        let limit = self.limit_for(resilience);
        self.board.govern(resilience, limit);
        let (asks_otherwise, has_other_agent) = members.recheck(config);
        members.policy = policy.clone();
        let paths: HashMap<BackendId, &Option<Arc<str>>> =
            members.all.iter().map(|member| (member.backend.id, &member.probe_path)).collect();
        let mut turned = Vec::new();
        for Member { backend, probe_path, state, state_by, .. } in &all {
            // Nobody would end what nobody looks after any more.
            if resilience.breaker.is_none() {
                backend.breaker().clear();
            }
            let mut detail = backend.detail();
            if resilience.outlier.is_none() {
                backend.ejection().clear();
            }
            let was_on = detail.inputs.probe.word != Probe::Off;
            let path_before = paths.get(&backend.id);
            let is_asked_otherwise = path_before.is_some_and(|path| asks_otherwise || *path != probe_path);
            if is_asked_otherwise || was_on != health.is_some() {
                detail.recheck(health.is_some());
            } else if has_other_agent && path_before.is_some() {
                detail.check = detail.check.wrapping_add(1);
            }
            if health.is_none_or(|health| health.agent.is_none()) {
                detail.inputs.agent = Agent::default();
            }
            let before = detail.inputs.operator.hear(*state, state_by.as_deref(), now);
            detail.inputs.was_away |= before == Some(BackendState::Down);
            detail.decision = decide(&detail.inputs);
            backend.publish(detail.decision.standing);
            if detail.added == Tick::ZERO {
                detail.added = now;
            }
            drop(detail);
            match (before, state) {
                (Some(_), BackendState::Down) => {
                    backend.take_down(Departure { since: now, window: config.drain_timeout })
                }
                (Some(BackendState::Down), _) => backend.take_back(),
                (Some(_) | None, _) => continue,
            }
            turned.push(Arc::clone(backend));
        }
        let dismissed = members.replace(all, config.drain_timeout);
        members.note_departures(turned);
        self.rebuild(&mut members, now);
        self.forget(&dismissed);
        // Control looks at what there is to tell, and sees to it that stand-ins end.
        self.board.turned.notify_one();
        dismissed
    }

    /// Forgets backends for good.
    fn forget(&self, gone: &[Arc<Backend>]) {
        // Their numbers may be given to others.
        self.window.lock().unwrap_or_else(PoisonError::into_inner).drop_entries(gone);
    }

    /// Lets those go who have stood in; workers are told of those that leave by whoever [asks](TargetState::take_departed).
    fn dismiss(&self, members: &mut Members, gone: Vec<Arc<Backend>>, now: Tick) {
        self.forget(&gone);
        members.depart(gone, now);
    }

    /// Those who leave without being gone from the config, or stay after all, and of whom workers do not know yet: who have stood
    /// in, and who are taken down or back.
    pub fn take_departed(&self) -> Vec<Arc<Backend>> {
        self.members().take_departed()
    }

    /// Everybody, when the target is gone; requests that hold it still have its live set. They are to leave.
    pub(in crate::targets) fn dismiss_all(&self) -> Vec<Arc<Backend>> {
        let mut members = self.members();
        let mut all = members.end(false);
        all.extend(members.all.iter().map(|member| Arc::clone(&member.backend)));
        self.forget(&all);
        all
    }

    /// How long those before may still stand in for the members, none of whom may be picked; `None`: they don't. Ends them when
    /// their time is up. Control calls it at each config and at that time.
    pub fn stand_in(&self, now: Tick) -> Option<Duration> {
        let mut members = self.members();
        let left = members.time_left(now)?;
        if !left.is_zero() {
            return Some(left);
        }
        let dismissed = members.end(false);
        self.rebuild(&mut members, now);
        self.dismiss(&mut members, dismissed, now);
        self.board.turned.notify_one();
        None
    }

    /// A stand-in that `is_it`, which is back under another config.
    pub(super) fn find_stand_in(&self, is_it: impl Fn(&Backend) -> bool) -> Option<Arc<Backend>> {
        let members = self.members();
        let found = members.stand_ins().iter().find(|member| is_it(&member.backend))?;
        Some(Arc::clone(&found.backend))
    }

    /// How many stand in for the members.
    pub(super) fn stand_ins(&self) -> usize {
        self.members().stand_ins().len()
    }

    /// How those before have ended to stand in, if that is still to be told.
    pub(super) fn take_succession(&self) -> Option<Succession> {
        self.members().take_succession()
    }

    /// Shows the members in config order, and whether others stand in for them.
    pub(super) fn with_members<T>(&self, look: impl FnOnce(&[Member], bool) -> T) -> T {
        let members = self.members();
        look(&members.all, members.has_stand_ins())
    }

    /// The members in config order.
    #[cfg(test)]
    pub(in crate::targets) fn backends(&self) -> Vec<Arc<Backend>> {
        self.members().all.iter().map(|member| Arc::clone(&member.backend)).collect()
    }

    pub(super) fn members(&self) -> MutexGuard<'_, Members> {
        // A panic in between leaves a live set that the next report rebuilds.
        self.members.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes what `backend`'s state rests on, and everything that follows from it.
    pub(super) fn update(
        &self,
        members: &mut Members,
        backend: &Backend,
        now: Tick,
        change: impl FnOnce(&mut Detail),
    ) -> Option<Transition> {
        let mut detail = backend.detail();
        let (from, share) = (detail.decision.standing, detail.inputs.agent.share.word);
        change(&mut detail);
        detail.decision = decide(&detail.inputs);
        let returns = matches!(detail.decision.standing, Health::Up | Health::Draining);
        if from == Health::Down && returns && !detail.inputs.was_away {
            detail.inputs.was_away = true;
            detail.decision = decide(&detail.inputs);
        }
        let (to, reason) = (detail.decision.standing, Arc::clone(&detail.decision.reason));
        let reweighed = detail.inputs.agent.share.word != share;
        if returns && !matches!(from, Health::Up | Health::Draining) {
            // A probe has just connected to it; a pick need not find out again.
            backend.ejection().clear();
            let Inputs { standing, probe, .. } = &mut detail.inputs;
            let why = if to == Health::Up { &reason } else { &probe.reason };
            *standing = Input::new(EjectionState::Fine, Arc::clone(why), standing.since);
        }
        drop(detail);
        if from == to {
            if reweighed && to == Health::Up {
                self.rebuild(members, now);
            }
            return None;
        }
        backend.publish(to);
        match to {
            Health::Down => backend.retire_connections(),
            Health::Unknown | Health::Up | Health::Draining => {}
        }
        self.rebuild(members, now);
        self.board.turned.notify_one();
        Some(Transition { from, to, reason })
    }

    /// Swaps in the live set that follows from the members' states, then wakes whoever waits for it.
    pub(super) fn rebuild(&self, members: &mut Members, now: Tick) {
        let is_awaited =
            |member: &&Member| member.state == BackendState::Up && member.backend.health() == Health::Unknown;
        let unknown = members.all.iter().filter(is_awaited).count();
        let old = self.live.load();
        let policy = members.policy.clone();
        let (lineup, dismissed) = members.lineup();
        let counts = lineup.iter().filter(|member| member.is_in_service()).count();
        let (tiers, rows): (Vec<_>, Vec<_>) = tiers(lineup, &policy, &old.tiers).into_iter().unzip();
        let mut live = Live { generation: old.generation + 1, tiers, unknown, stand_ins: None };
        if members.has_stand_ins() {
            let by_identity = |backend: &Arc<Backend>| (Arc::clone(&backend.identity), Arc::clone(backend));
            live.stand_ins = Some(live.backends().map(by_identity).collect());
        }
        let live = Arc::new(live);
        self.board.want(wants(policy.algorithm));
        // Seats and live set change together, so that whoever holds the lock finds the one in the other.
        let mut locked = self.board.lock();
        locked.members = counts;
        let left = locked.begin(rows, live.generation);
        old.backends().for_each(|backend| locked.seat(backend, None));
        for (tier, backends) in (0..).zip(live.tiers.iter().map(|tier| &tier.backends)) {
            for (place, backend) in (0..).zip(&**backends) {
                locked.seat(backend, Some(Seat { tier, place }));
            }
        }
        self.live.store(live);
        drop(locked);
        drop(left);
        self.board.changed.notify_waiters();
        // Not before: a pick may still have found them in the live set before.
        self.dismiss(members, dismissed, now);
    }
}

impl Detail {
    /// Another check is in force. What the one before has come to holds until the first answer of this one; where there is none
    /// any more, the backend counts as healthy.
    fn recheck(&mut self, is_probed: bool) {
        self.check = self.check.wrapping_add(1);
        self.threshold = Threshold::default();
        let probe = &mut self.inputs.probe;
        match (is_probed, probe.word) {
            (false, Probe::Off) | (true, Probe::Pending | Probe::Good | Probe::Bad) => {}
            (false, _) => *probe = probe_input(false),
            (true, Probe::Off) => {
                (probe.word, probe.reason) = (Probe::Good, "it was up before it was probed".into());
            }
        }
    }
}

impl Drop for TargetState {
    /// The board and the backends in its seats hold one another: with the target nobody is picked any more, and nobody sits.
    fn drop(&mut self) {
        let live = self.live.load();
        let mut locked = self.board.lock();
        let left = locked.begin(Vec::new(), live.generation + 1);
        live.backends().for_each(|backend| locked.seat(backend, None));
        drop(locked);
        drop(left);
    }
}

impl Backend {
    /// Whether it is, or was, one of this target's.
    #[must_use]
    pub fn is_of(&self, target: &TargetState) -> bool {
        std::ptr::eq(self.board(), &*target.board)
    }
}

fn passed(rise: u32) -> String {
    match rise {
        0 | 1 => "a probe passed".into(),
        more => format!("{more} probes passed"),
    }
}

#[cfg(test)]
mod tests;
