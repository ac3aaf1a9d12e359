//! Backends of a few places each that several nodes share (`owner: soft`): each node prefers its own, and says how many requests it has on which, so that the others
//! know which of them are free.
//!
//! Invariants:
//!
//! 1. `busy/NODE` is what its node has on backends, as of its last change and half a second ago at most. What is older than a second says nothing any more: a node
//!    that has nothing to say, or can't say it, has nothing on anybody.
//! 2. Nobody else sets what others have on a backend; what is not owned softly any more has nothing of others.
//! 3. A detached node keeps what it prefers, and goes by its own requests alone.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::time::{Instant, sleep};

use super::sharing::Together;
use crate::cluster::membership::Standing;
use crate::cluster::rows;
use crate::cluster::view::ClusterView;
use crate::config::model::OwnerMode;
use crate::net::now;
use crate::reload::running::RunningConfig;
use crate::store::shared::{Committed, Revision, RowChange, RowCondition, Transaction};
use crate::targets::owners::{owner, prefers};
use crate::targets::{Backend, Target};

const ROWS: &str = "busy/";
/// How often a node looks what it has, and what others have.
const TICK: Duration = Duration::from_millis(250);
/// The same for each node: all together write no more than a hundred times a second.
const TICK_OF_EACH: Duration = Duration::from_millis(10);
/// After which time it says again what it has.
const AGAIN: Duration = Duration::from_millis(500);
/// After which time what a node has said says nothing any more; with very many nodes, three of their turns.
const OLD: Duration = Duration::from_secs(1);
/// So many requests beyond the limit are counted of others: more of them change nothing.
const BEYOND: u32 = 8;

/// `busy/NODE`. It goes with the lease of its node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct BusyRow {
    /// A number that grows, so that what is said again is a change.
    turn: u64,
    /// Requests on backends that have any, by identity.
    backends: BTreeMap<String, u32>,
    /// Targets where requests wait: nobody else takes what this node prefers there.
    #[serde(default)]
    waiting: BTreeSet<String>,
}

/// What is known of others.
#[derive(Default)]
struct Heard {
    /// By node: by which change of its row, and when that was seen.
    said: HashMap<String, (Revision, Instant)>,
}

impl Heard {
    /// What others have on backends by now, and by target who of them has requests that wait.
    fn elsewhere(
        &mut self,
        view: &ClusterView,
        at: Instant,
    ) -> (HashMap<String, u32>, HashMap<String, Vec<String>>) {
        let (mut sums, mut waiting) = (HashMap::new(), HashMap::<String, Vec<String>>::new());
        if view.standing != Standing::Member {
            self.said.clear();
            return (sums, waiting);
        }
        let old = OLD.max(tick(view) * 3);
        let mut said = HashMap::new();
        for node in view.nodes().into_iter().filter(|node| node.name != *view.node) {
            let name = format!("{ROWS}{}", node.name);
            let changed = view.rows.changed(&name);
            let before = self.said.get(&node.name).filter(|(of, _)| *of == changed);
            let (_, since) =
                *said.entry(node.name.clone()).or_insert(before.copied().unwrap_or((changed, at)));
            if at.duration_since(since) > old {
                continue;
            }
            let row = view.rows.get(&name).and_then(|row| rows::read::<BusyRow>(&row.value));
            let row = row.unwrap_or_default();
            for target in row.waiting {
                waiting.entry(target).or_default().push(node.name.clone());
            }
            for (identity, count) in row.backends {
                let sum: &mut u32 = sums.entry(identity).or_default();
                *sum = sum.saturating_add(count);
            }
        }
        self.said = said;
        (sums, waiting)
    }
}

/// What this node has said.
struct Said {
    row: BusyRow,
    at: Instant,
}

/// Also where somebody has lifted the limit by hand nobody would ever take another one than its own.
fn is_owned(target: &Target) -> bool {
    target.config.balance.owner == OwnerMode::Soft && target.limit().is_some()
}

fn tick(view: &ClusterView) -> Duration {
    TICK.max(TICK_OF_EACH.saturating_mul(u32::try_from(view.nodes().len()).unwrap_or(u32::MAX)))
}

impl RunningConfig {
    /// Has nodes share backends, until the process drains.
    pub async fn follow_owners(&self) {
        let Some(together) = &self.together else { return };
        let (mut heard, mut said, mut preferred) = (Heard::default(), None, None);
        loop {
            let view = together.node.view();
            self.share_backends(together, &view, &mut heard, &mut said, &mut preferred).await;
            sleep(tick(&view)).await;
        }
    }

    /// `preferred`: of which nodes and which config it was last said who is preferred.
    async fn share_backends(
        &self,
        together: &Together,
        view: &ClusterView,
        heard: &mut Heard,
        said: &mut Option<Said>,
        preferred: &mut Option<(Vec<String>, u64)>,
    ) {
        let Some(snapshot) = self.reloader.snapshots.current() else { return };
        let all = &snapshot.targets;
        let nodes: Vec<String> =
            view.nodes().into_iter().filter(|node| node.row.shares).map(|node| node.name).collect();
        if view.standing == Standing::Member {
            let now_preferred = Some((nodes.clone(), snapshot.number));
            if *preferred != now_preferred {
                if let Some((nodes, _)) = &now_preferred {
                    all.iter().for_each(|target| prefer(target, &view.node, nodes));
                }
                *preferred = now_preferred;
            }
        }
        let (others, waiting) = heard.elsewhere(view, Instant::now());
        let nodes: Vec<&str> = nodes.iter().map(String::as_str).collect();
        for target in all {
            let (is_owned, limit) = (is_owned(target), target.limit().unwrap_or(0));
            let waiting =
                waiting.get(&*target.name).filter(|_| is_owned && target.backends.len() >= nodes.len() * 2);
            for backend in &target.backends {
                let mut count = others.get(&*backend.identity).copied().filter(|_| is_owned).unwrap_or(0);
                // Who waits has those that it prefers to itself: else a node that always has somebody waiting would never let go of them.
                let is_needed = |waiting: &Vec<String>| {
                    owner(&nodes, &backend.identity)
                        .is_some_and(|owner| waiting.iter().any(|one| one == owner))
                };
                if waiting.is_some_and(is_needed) {
                    count = count.saturating_add(limit);
                }
                let count = count.min(limit + BEYOND);
                if backend.elsewhere() != count {
                    target.state.set_elsewhere(backend, count);
                }
            }
        }
        say(together, view, all, said).await;
    }
}

/// This node prefers its own of a target, or all of them.
fn prefer(target: &Target, own: &str, nodes: &[String]) {
    let nodes: Vec<&str> = nodes.iter().map(String::as_str).collect();
    let (is_owned, count) = (is_owned(target), target.backends.len());
    let is_own = |backend: &Backend| !is_owned || prefers(own, &nodes, count, &backend.identity);
    target.state.prefer(is_own, now());
}

/// Says what this node has, if it is one of the cluster, and that is not known.
async fn say(together: &Together, view: &ClusterView, targets: &[Arc<Target>], said: &mut Option<Said>) {
    let owned = targets.iter().filter(|target| is_owned(target)).flat_map(|target| &target.backends);
    let busy = owned.map(|backend| (backend.identity.to_string(), backend.in_flight()));
    let backends: BTreeMap<String, u32> = busy.filter(|(_, count)| *count > 0).collect();
    let has_waiting = targets.iter().filter(|target| is_owned(target) && target.waiting() > 0);
    let waiting: BTreeSet<String> = has_waiting.map(|target| target.name.to_string()).collect();
    let name = format!("{ROWS}{}", view.node);
    let known = view.rows.get(&name).and_then(|row| rows::read::<BusyRow>(&row.value));
    let is_known = known.as_ref().map_or(backends.is_empty() && waiting.is_empty(), |row| {
        row.backends == backends && row.waiting == waiting
    });
    let is_fresh = backends.is_empty() && waiting.is_empty()
        || said.as_ref().is_some_and(|said| said.at.elapsed() < AGAIN);
    if is_known && is_fresh {
        return;
    }
    let Some(lease) = together.node.lent().filter(|_| view.standing == Standing::Member) else { return };
    let before = said.as_ref().map_or(0, |said| said.row.turn).max(known.map_or(0, |row| row.turn));
    // Whoever else has written there may have written anything.
    let turn = before.wrapping_add(1);
    let row = BusyRow { turn, backends, waiting };
    let conditions = vec![RowCondition { name: name.clone(), changed: view.rows.changed(&name) }];
    let changes = vec![RowChange::Put { name, value: rows::write(&row), lease: Some(lease) }];
    // What they did not get they get with the next turn.
    if let Ok(Committed::Done(_)) = together.node.commit(Transaction { conditions, changes }).await {
        *said = Some(Said { row, at: Instant::now() });
    }
}
