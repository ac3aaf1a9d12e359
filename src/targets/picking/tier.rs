//! Backends that are picked from together: one priority, or the part of it that is near.
//!
//! The live set is a list of tiers; a pick takes the first in which there is somebody. What tiers there are, and who
//! is in them, is computed here from the members' states, on control.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::config::model::{Policy, Portion};
use crate::targets::picking::balance::BalancePlan;
use crate::targets::picking::hash::scaled;
use crate::targets::picking::warmup::Warmup;
use crate::targets::queueing::board_state::{Row, Watch};
use crate::targets::state::decide::Health;
use crate::targets::{Ask, Backend};
use crate::tick::Tick;

/// A backend with what the config gives it.
#[derive(Clone, Debug)]
pub(in crate::targets) struct Member {
    pub(in crate::targets) backend: Arc<Backend>,
    pub(in crate::targets) portion: Portion,
}

impl Member {
    /// Up, and there for everybody.
    fn is_eligible(&self) -> bool {
        self.backend.health() == Health::Up && self.portion.weight > 0
    }

    /// Its weight, as far as its agent grants it.
    fn weight(&self) -> u16 {
        self.backend.detail().inputs.agent.scaled(self.portion.weight)
    }
}

/// What an algorithm computes its plan from. Everything is in config order.
#[derive(Debug)]
pub(in crate::targets) struct Lineup<'a> {
    /// Who may be picked.
    pub(in crate::targets) backends: &'a [Arc<Backend>],
    /// Their weights, each at least 1.
    pub(in crate::targets) weights: &'a [u16],
    /// Who would be there if all were up, with their weights.
    pub(in crate::targets) configured: &'a [(Arc<str>, u16)],
    pub(in crate::targets) policy: &'a Policy,
}

impl Lineup<'_> {
    /// Who may be picked, by identity, with the weights.
    pub(in crate::targets) fn live(&self) -> Vec<(&str, u16)> {
        self.backends.iter().map(|backend| &*backend.identity).zip(self.weights.iter().copied()).collect()
    }
}

/// Backends that are picked from together.
#[derive(Debug)]
pub(in crate::targets) struct Tier {
    /// In config order.
    pub(in crate::targets) backends: Arc<[Arc<Backend>]>,
    /// Their weights.
    pub(in crate::targets) weights: Vec<u16>,
    /// Which of them are not ejected.
    pub(in crate::targets) watch: Arc<Watch>,
    /// Which of them are not at their full share yet.
    warmup: Option<Warmup>,
    /// What the algorithm has computed for them.
    pub(in crate::targets) plan: BalancePlan,
    /// Who would be in it if all were up, by identity, with the weights.
    configured: Vec<(Arc<str>, u16)>,
}

impl Tier {
    /// Whether the backend at `place` may be picked for a request.
    #[inline]
    pub(in crate::targets) fn may(&self, place: usize, ask: &Ask<'_>) -> bool {
        self.is_usable(place, ask) && self.warmup.as_ref().is_none_or(|warmup| warmup.admits(place, ask))
    }

    /// What part of its share the backend at `place` gets.
    #[inline]
    pub(in crate::targets) fn share(&self, place: usize, now: Tick) -> f64 {
        self.warmup.as_ref().map_or(1.0, |warmup| warmup.share(place, now))
    }

    /// How many leases there are on the backend at `place`, for each unit of its weight.
    #[inline]
    pub(in crate::targets) fn load(&self, place: usize) -> f64 {
        let (backend, weight) = (self.backends.get(place), self.weights.get(place));
        match (backend, weight) {
            (Some(backend), Some(&weight)) => f64::from(backend.in_flight()) / f64::from(weight),
            _ => f64::INFINITY,
        }
    }

    /// Whether the backend at `place` may be picked, however cold it is.
    #[inline]
    pub(in crate::targets) fn is_usable(&self, place: usize, ask: &Ask<'_>) -> bool {
        let ready = &self.watch.ready;
        self.backends.get(place).is_some_and(|backend| {
            (ready.is_full() || ready.contains(place)) && !ask.tried.contains(backend.id)
        })
    }

    /// Any place that may be used, each as likely as the others, but for those next to one that was tried.
    #[cold]
    pub(in crate::targets) fn any(&self, ask: &Ask<'_>) -> Option<usize> {
        let ready = &self.watch.ready;
        let nth = scaled(ask.key.unwrap_or_else(|| ask.chance.bits()), ready.count());
        let mut place = ready.select(nth)?;
        // Only so many can have been tried.
        for _ in 0..=ask.tried.len() {
            if self.is_usable(place, ask) {
                return Some(place);
            }
            place = ready.next(place + 1)?;
        }
        None
    }

    fn new(members: &[&Member], policy: &Policy, before: &[Tier]) -> (Tier, Row) {
        let identity = |member: &&Member| (Arc::clone(&member.backend.identity), member.weight());
        let configured: Vec<_> = members.iter().map(identity).collect();
        let live = || members.iter().zip(&configured).filter(|(member, _)| member.is_eligible());
        let backends: Arc<[Arc<Backend>]> = live().map(|(member, _)| Arc::clone(&member.backend)).collect();
        let weights: Vec<u16> = live().map(|(_, (_, weight))| *weight).collect();
        let since = if policy.slow_start.is_zero() {
            Vec::new()
        } else {
            backends.iter().map(|backend| backend.detail().decision.back_since).collect()
        };
        let lineup = Lineup { backends: &backends, weights: &weights, configured: &configured, policy };
        let before = before.iter().find(|tier| tier.configured == configured).map(|tier| &tier.plan);
        let plan = BalancePlan::new(policy.algorithm, &lineup, before);
        let rank = plan.rank(&lineup);
        let watch = Arc::new(Watch::new(backends.len()));
        let row = Row::new(Arc::clone(&watch), rank, Arc::clone(&backends));
        let warmup = Warmup::new(policy.slow_start, since);
        (Tier { watch, warmup, plan, configured, weights, backends }, row)
    }
}

/// The tiers that follow from the members' states, first choice first, each with what the board keeps of it. `before`:
/// those in force.
pub(in crate::targets) fn tiers(members: &[Member], policy: &Policy, before: &[Tier]) -> Vec<(Tier, Row)> {
    let counts = |member: &&Member| member.portion.weight > 0;
    let priorities: BTreeSet<u8> =
        members.iter().filter(counts).map(|member| member.portion.priority).collect();
    let mut tiers = Vec::new();
    for priority in priorities {
        let group: Vec<&Member> =
            members.iter().filter(counts).filter(|member| member.portion.priority == priority).collect();
        for part in by_zone(group, policy.zone.as_deref()) {
            if part.iter().any(|member| member.is_eligible()) {
                tiers.push(Tier::new(&part, policy, before));
            }
        }
    }
    tiers
}

/// Those that are near and then the others, or all together: where nobody is near, or where less than half of what is
/// near, by weight, is up. What is left of it would otherwise get the load of all.
fn by_zone<'a>(group: Vec<&'a Member>, zone: Option<&str>) -> Vec<Vec<&'a Member>> {
    let Some(zone) = zone else { return vec![group] };
    let (near, far): (Vec<&Member>, Vec<&Member>) =
        group.iter().partition(|member| member.portion.zone.as_deref() == Some(zone));
    let weight = |members: &mut dyn Iterator<Item = &&Member>| -> u32 {
        members.map(|member| u32::from(member.portion.weight)).sum()
    };
    let up = weight(&mut near.iter().filter(|member| member.is_eligible()));
    if up > 0 && up * 2 >= weight(&mut near.iter()) { vec![near, far] } else { vec![group] }
}
