//! Backends of a few places each that several nodes share (`owner: soft`): each node prefers its own, and says how many requests it has on which, so that the others
//! know which of them are free; and one node moves them to where requests come.
//!
//! Invariants:
//!
//! 1. `busy/NODE` is what its node has on backends, as of its last change and half a second ago at most. What is older than a second says nothing any more: a node
//!    that has nothing to say, or can't say it, has nothing on anybody.
//! 2. Nobody else sets what others have on a backend; what is not owned softly any more has nothing of others.
//! 3. A detached node keeps what it prefers, and goes by its own requests alone.
//! 4. Nothing moves while a node is in the dark about another one.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep, sleep_until};

use super::busy::{self, BusyOthers, BusyRow, HeardNodes};
use super::moving;
use super::sharing::Together;
use crate::cluster::membership::Standing;
use crate::cluster::revision::current;
use crate::cluster::rows;
use crate::cluster::view::ClusterView;
use crate::config::model::OwnerMode;
use crate::net::now;
use crate::reload::running::RunningConfig;
use crate::store::shared::{Committed, Revision, RowChange, RowCondition, Transaction};
use crate::targets::Target;
use crate::targets::sharing::evening::{EVENING, Evening, EveningScene};
use crate::targets::sharing::owners::Owners;

/// How often a node looks what it has, and what others have.
const TICK: Duration = Duration::from_millis(250);
/// The same for each node: all together write no more than a hundred times a second.
const TICK_OF_EACH: Duration = Duration::from_millis(10);
/// What others say within this time is heard together.
const TOGETHER: Duration = Duration::from_millis(10);
/// After which time it says again what it has.
const AGAIN: Duration = Duration::from_millis(500);
/// Which node evens: the first for this.
const EVENS: &str = "owners";

/// What this node has said.
struct Said {
    row: BusyRow,
    at: Instant,
}

/// Who prefers what, as this node has put it in force.
#[derive(Default)]
struct InForce {
    /// Of which nodes, which config and which rows that is.
    of: Option<(Vec<String>, u64, (Revision, Revision))>,
    /// By target.
    owners: HashMap<Arc<str>, Owners>,
}

/// What is remembered from one turn to the next.
#[derive(Default)]
struct Turns {
    heard: HeardNodes,
    said: Option<Said>,
    force: InForce,
    evenings: HashMap<Arc<str>, Evening>,
    evened: Option<Instant>,
}

/// Also where somebody has lifted the limit by hand nobody would ever take another one than its own.
pub(super) fn is_owned(target: &Target) -> bool {
    target.config.balance.owner == OwnerMode::Soft && target.limit().is_some()
}

fn tick(view: &ClusterView) -> Duration {
    TICK.max(TICK_OF_EACH.saturating_mul(u32::try_from(view.nodes().len()).unwrap_or(u32::MAX)))
}

impl RunningConfig {
    /// Has nodes share backends, until the process drains. What others say is heard as soon as it is known; what this node has is said in its turn.
    pub async fn follow_owners(&self) {
        let Some(together) = &self.together else { return };
        let (mut views, mut turns) = (together.node.views(), Turns::default());
        let (mut due, mut heard) = (Instant::now(), None);
        loop {
            let view = Arc::clone(&views.borrow_and_update());
            let now = ["busy", "own", "node"].map(|area| view.rows.touched(area));
            let is_due = Instant::now() >= due;
            if is_due || heard != Some(now) {
                self.share_backends(together, &view, &mut turns, is_due).await;
                heard = Some(now);
            }
            if is_due {
                due = Instant::now() + tick(&view);
            }
            tokio::select! {
                () = sleep_until(due) => {}
                changed = views.changed() => match changed {
                    Ok(()) => sleep(TOGETHER).await,
                    Err(_) => return,
                },
            }
        }
    }

    async fn share_backends(&self, together: &Together, view: &ClusterView, turns: &mut Turns, is_due: bool) {
        let Some(snapshot) = self.reloader.snapshots.current() else { return };
        let all = &snapshot.targets;
        if view.standing == Standing::Member {
            turns.force.renew(view, all, snapshot.number);
            together.show_owners(&turns.force.owners);
        }
        let others = turns.heard.listen(view, tick(view), Instant::now());
        let sums = others.sums();
        for target in all {
            if is_owned(target) {
                let busy = |place: usize| {
                    let backend = target.backends.get(place);
                    backend.and_then(|backend| sums.get(&*backend.identity)).copied().unwrap_or(0)
                };
                let owners = turns.force.owners.get(&target.name);
                let waiting = others.waiting(&target.name);
                target.hear_others(owners.unwrap_or(&Owners::default()), busy, &waiting);
            } else {
                target.hear_others(&Owners::default(), |_| 0, &[]);
            }
        }
        if !is_due {
            return;
        }
        let own = own_row(all);
        say(together, view, own.clone(), &mut turns.said).await;
        if turns.evened.is_none_or(|at| at.elapsed() >= EVENING) {
            turns.evened = Some(Instant::now());
            let is_current = together.in_force().map(|row| row.number) == current(&view.rows);
            let evens = view.standing == Standing::Member
                && is_current
                && view.first_for(EVENS).as_deref() == Some(&*view.node);
            match evens {
                true => even(together, view, all, &own, &others, turns).await,
                false => turns.evenings.clear(),
            }
        }
    }
}

impl InForce {
    /// Puts in force who prefers what by now.
    fn renew(&mut self, view: &ClusterView, targets: &[Arc<Target>], number: u64) {
        let nodes: Vec<String> =
            view.nodes().into_iter().filter(|node| node.row.shares).map(|node| node.name).collect();
        let of = Some((nodes, number, view.rows.touched("own")));
        if self.of == of {
            return;
        }
        let nodes = of.as_ref().map(|(nodes, ..)| nodes.as_slice()).unwrap_or_default();
        let mut before = std::mem::take(&mut self.owners);
        for target in targets {
            let owners = if is_owned(target) {
                let identities = target.backends.iter().map(|backend| &*backend.identity);
                Owners::of(nodes, identities, &moving::row_of(&view.rows, &target.name).moved)
            } else {
                Owners::default()
            };
            if before.remove(&target.name).is_none_or(|before| before != owners)
                || self.is_other_config(number)
            {
                target.prefer_own(&view.node, &owners, now());
            }
            if is_owned(target) {
                self.owners.insert(Arc::clone(&target.name), owners);
            }
        }
        self.of = of;
    }

    fn is_other_config(&self, number: u64) -> bool {
        self.of.as_ref().is_none_or(|(_, before, _)| *before != number)
    }
}

/// Moves backends to where requests come.
async fn even(
    together: &Together,
    view: &ClusterView,
    targets: &[Arc<Target>],
    own: &BusyRow,
    others: &BusyOthers,
    turns: &mut Turns,
) {
    let owned: Vec<&Arc<Target>> = targets.iter().filter(|target| is_owned(target)).collect();
    turns.evenings.retain(|name, _| owned.iter().any(|target| target.name == *name));
    if others.is_in_the_dark {
        return;
    }
    let nodes = view.nodes();
    let leaves = |name: &String| nodes.iter().any(|node| node.name == *name && node.drain.is_some());
    for target in &owned {
        let Some(owners) = turns.force.owners.get(&target.name) else { continue };
        let evening = turns.evenings.entry(Arc::clone(&target.name)).or_default();
        let row = moving::row_of(&view.rows, &target.name);
        let identities: Vec<&str> = target.backends.iter().map(|backend| &*backend.identity).collect();
        let of = |node: &String| match *node == *view.node {
            true => own.demand(&target.name),
            false => others.rows.get(node).map_or(0, |row| row.demand(&target.name)),
        };
        let moves = {
            let scene = EveningScene {
                owners,
                identities: &identities,
                demand: &owners.nodes().iter().map(of).collect::<Vec<_>>(),
                is_leaving: &owners.nodes().iter().map(leaves).collect::<Vec<_>>(),
                is_busy: &|place| target.backends[place].taken() > 0,
                is_held: &|place| row.by_hand.contains(identities[place]),
                calm: together.node.lease(),
            };
            evening.tick(&scene, now())
        };
        if moves.is_empty() {
            continue;
        }
        let row = moving::moved(row, owners, &identities, &moves);
        // Where somebody else was first it is looked at again.
        let done = together.node.commit(moving::writing(&view.rows, &target.name, &row)).await;
        if let Ok(Committed::Done(_)) = done {
            together.count_moves(moves.len() as u64);
        }
    }
    let there: BTreeMap<&str, ()> = owned.iter().map(|target| (&*target.name, ())).collect();
    if let Some(transaction) = moving::clearing(&view.rows, &there) {
        // What is not dropped now is dropped in a second.
        let _ = together.node.commit(transaction).await;
    }
}

/// What this node has.
fn own_row(targets: &[Arc<Target>]) -> BusyRow {
    let owned = targets.iter().filter(|target| is_owned(target));
    let backends = owned.clone().flat_map(|target| &target.backends);
    let busy = backends.map(|backend| (backend.identity.to_string(), backend.in_flight()));
    let waiting =
        owned.map(|target| (target.name.to_string(), u32::try_from(target.waiting()).unwrap_or(u32::MAX)));
    let has_some = |(_, count): &(String, u32)| *count > 0;
    BusyRow {
        turn: 0,
        backends: busy.filter(has_some).collect(),
        waiting: waiting.filter(has_some).collect(),
    }
}

/// Says what this node has, if it is one of the cluster, and that is not known.
async fn say(together: &Together, view: &ClusterView, own: BusyRow, said: &mut Option<Said>) {
    let name = format!("{}{}", busy::ROWS, view.node);
    let known = view.rows.get(&name).and_then(|row| rows::read::<BusyRow>(&row.value));
    let is_known = known
        .as_ref()
        .map_or(own.is_empty(), |row| row.backends == own.backends && row.waiting == own.waiting);
    let is_fresh = own.is_empty() || said.as_ref().is_some_and(|said| said.at.elapsed() < AGAIN);
    if is_known && is_fresh {
        return;
    }
    let Some(lease) = together.node.lent().filter(|_| view.standing == Standing::Member) else { return };
    let before = said.as_ref().map_or(0, |said| said.row.turn).max(known.map_or(0, |row| row.turn));
    // Whoever else has written there may have written anything.
    let row = BusyRow { turn: before.wrapping_add(1), ..own };
    let conditions = vec![RowCondition { name: name.clone(), changed: view.rows.changed(&name) }];
    let changes = vec![RowChange::Put { name, value: rows::write(&row), lease: Some(lease) }];
    // What they did not get they get with the next turn.
    if let Ok(Committed::Done(_)) = together.node.commit(Transaction { conditions, changes }).await {
        *said = Some(Said { row, at: Instant::now() });
    }
}
