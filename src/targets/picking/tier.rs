//! Backends that are picked from together: one priority, or the part of it that is near.
//!
//! The live set is a list of tiers; a pick takes the first in which there is somebody. What tiers there are, and who
//! is in them, is computed here from the members' states, on control.

use std::collections::BTreeSet;
use std::ops::Deref;
use std::sync::Arc;

use crate::config::model::{OwnerMode, Policy};
use crate::targets::Backend;
use crate::targets::picking::balance::plan::BalancePlan;
use crate::targets::picking::candidates::{Candidates, Lineup, Member};
use crate::targets::picking::warmup::Warmup;
use crate::targets::queueing::watch::Watch;
use crate::targets::state::objects::Row;

/// Backends that are picked from together.
#[derive(Debug)]
pub(in crate::targets) struct Tier {
    candidates: Candidates,
    /// What the algorithm has computed for them.
    pub(in crate::targets) plan: BalancePlan,
    /// Which choice it is, counted from 0. Several tiers are one where nodes share backends.
    pub(in crate::targets) group: usize,
    /// Who would be in it if all were up, by identity, with the weights.
    configured: Vec<(Arc<str>, u16)>,
}

impl Deref for Tier {
    type Target = Candidates;

    #[inline]
    fn deref(&self) -> &Candidates {
        &self.candidates
    }
}

impl Tier {
    fn new(members: &[&Member], policy: &Policy, group: usize, before: &[Tier]) -> (Tier, Row) {
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
        (Tier { candidates: Candidates { backends, weights, watch, warmup }, plan, group, configured }, row)
    }
}

/// The tiers that follow from the members' states, first choice first, each with what the board keeps of it. `before`:
/// those in force.
pub(in crate::targets) fn tiers(members: &[Member], policy: &Policy, before: &[Tier]) -> Vec<(Tier, Row)> {
    let counts = |member: &&Member| member.portion.weight > 0;
    let priorities: BTreeSet<u8> =
        members.iter().filter(counts).map(|member| member.portion.priority).collect();
    let (mut tiers, mut choice) = (Vec::new(), 0);
    for priority in priorities {
        let group: Vec<&Member> =
            members.iter().filter(counts).filter(|member| member.portion.priority == priority).collect();
        for part in by_zone(group, policy.zone.as_deref()) {
            let is_there = |some: &[&Member]| some.iter().any(|member| member.is_eligible());
            for some in by_owner(part, policy.owner).into_iter().filter(|some| is_there(some)) {
                tiers.push(Tier::new(&some, policy, choice, before));
            }
            choice += 1;
        }
    }
    tiers
}

/// Those that this node prefers and then those that it takes when these are full, or all together.
fn by_owner(part: Vec<&Member>, owner: OwnerMode) -> Vec<Vec<&Member>> {
    match owner {
        OwnerMode::Shared => vec![part],
        OwnerMode::Soft => {
            let (own, others) = part.into_iter().partition(|member| member.backend.is_own());
            vec![own, others]
        }
    }
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
