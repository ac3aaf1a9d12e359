//! What each node of a cluster has to do, for whoever looks at the dashboard of one of them.
//!
//! While a node is looked at it says so to the others (`page/looked/NODE`), and all say once a second what they have to do (`page/load/NODE`); while nobody
//! looks, nothing is written. Both rows go with the lease of their node.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::task::spawn_blocking;
use tokio::time::{MissedTickBehavior, interval};

use super::keeper::STEP;
use crate::admin::api::Api;
use crate::admin::history::{ALL, RowTally, Shot, TimesLately};
use crate::admin::status::report::StatusReport;
use crate::cluster::membership::Standing;
use crate::cluster::node::ClusterNode;
use crate::cluster::rows::write;
use crate::cluster::view::ClusterView;
use crate::net::now;
use crate::store::shared::{LeaseNumber, RowChange, Transaction};

/// What the names of rows begin with that say that a node is looked at.
const LOOKED: &str = "page/looked/";
/// What the names of rows begin with that say what a node has to do.
pub(super) const LOADS: &str = "page/load/";
/// How long after the last look somebody may come back for another one.
const INTEREST: Duration = Duration::from_secs(10);

/// `page/load/NODE`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct NodeLoad {
    /// Since the process began.
    pub(super) requests: u64,
    pub(super) errors: u64,
    pub(super) active: u64,
    pub(super) waiting: usize,
    /// Of the latest ten to twenty seconds.
    pub(super) times: TimesLately,
}

impl Api {
    /// Tells the other nodes what this one has to do, while somebody looks at one of them.
    pub async fn keep_telling_nodes(self: &Arc<Self>) {
        let Some(node) = &self.cluster else { return };
        let mut seconds = interval(STEP);
        seconds.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            seconds.tick().await;
            self.tell_nodes(node).await;
        }
    }

    async fn tell_nodes(self: &Arc<Self>, node: &ClusterNode) {
        let (view, Some(lease)) = (node.view(), node.lent()) else { return };
        if view.standing != Standing::Member {
            return;
        }
        let looked = self.frames.looked().is_some_and(|looked| now().since(looked) < INTEREST);
        let is_wanted = looked && has_others(&view);
        let mut changes = Vec::new();
        changes.extend(presence(&view, &format!("{LOOKED}{}", view.node), lease, is_wanted));
        let own = format!("{LOADS}{}", view.node);
        if self.is_looked_at_elsewhere() {
            let api = Arc::clone(self);
            if let Ok(Some(load)) = spawn_blocking(move || api.load()).await {
                changes.push(RowChange::Put { name: own, value: write(&load), lease: Some(lease) });
            }
        } else if view.rows.get(&own).is_some() {
            changes.push(RowChange::drop(own));
        }
        if !changes.is_empty() {
            // What is not known of it now is known in a second.
            let _ = node.commit(Transaction { conditions: Vec::new(), changes }).await;
        }
    }

    /// Whether another node is looked at, and what this one does there with it.
    pub(in crate::admin) fn is_looked_at_elsewhere(&self) -> bool {
        let Some(view) = self.cluster.as_ref().map(|node| node.view()) else { return false };
        let looked = view.rows.names(LOOKED).filter_map(|name| name.strip_prefix(LOOKED));
        view.standing == Standing::Member && looked.into_iter().any(|name| name != &*view.node)
    }

    fn load(&self) -> Option<NodeLoad> {
        let seen = self.survey()?;
        let shot = Shot::take(&seen.sources.snapshot, &self.running.reloader.cells, seen.sources.now);
        let earlier = self.history.earlier(seen.sources.now);
        Some(NodeLoad::of(&seen.report, &shot, earlier.as_deref()))
    }
}

impl NodeLoad {
    /// What this node has to do; `earlier`: what was counted some seconds before `now`.
    pub(super) fn of(report: &StatusReport, now: &Shot, earlier: Option<&Shot>) -> NodeLoad {
        let nothing = RowTally::default();
        let all = now.rows.get(ALL).unwrap_or(&nothing);
        NodeLoad {
            requests: all.requests,
            errors: all.errors,
            active: report.targets.iter().map(|target| target.active).sum(),
            waiting: report.targets.iter().map(|target| target.waiting).sum(),
            times: all.times(earlier.and_then(|earlier| earlier.rows.get(ALL))),
        }
    }
}

fn has_others(view: &ClusterView) -> bool {
    view.nodes().iter().any(|node| node.name != *view.node)
}

/// What is to be changed so that a row of ours is there, with our lease, or is not.
fn presence(view: &ClusterView, name: &str, lease: LeaseNumber, is_wanted: bool) -> Option<RowChange> {
    match view.rows.get(name) {
        Some(row) if is_wanted && row.lease == Some(lease) => None,
        None if !is_wanted => None,
        Some(_) if !is_wanted => Some(RowChange::drop(name)),
        _ => Some(RowChange::Put { name: name.to_owned(), value: b"{}".to_vec(), lease: Some(lease) }),
    }
}
