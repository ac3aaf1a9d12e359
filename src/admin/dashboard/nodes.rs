//! What each node of a cluster has to do, for whoever looks at the dashboard of one of them.
//!
//! While a node is looked at it says so to the others (`page/looked/NODE`), and all say once a second what they have to do (`page/load/NODE`); while nobody
//! looks, nothing is written. Both rows go with the lease of their node.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::time::{MissedTickBehavior, interval};

use super::keeper::STEP;
use crate::admin::api::Api;
use crate::admin::history::{ALL, RowTally, Shot, TimesLately};
use crate::cluster::membership::Standing;
use crate::cluster::node::ClusterNode;
use crate::cluster::rows::{node, write};
use crate::cluster::view::ClusterView;
use crate::net::now;
use crate::store::shared::{LeaseNumber, RowChange, Transaction};
use crate::tick::nanos;

/// What the names of rows begin with that say that a node is looked at.
const LOOKED: &str = "page/looked/";
/// What the names of rows begin with that say what a node has to do.
pub(super) const LOADS: &str = "page/load/";
/// How long after the last look somebody may come back for another one.
const INTEREST: Duration = Duration::from_secs(10);

/// `page/load/NODE`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct NodeLoad {
    /// For how long the process runs: what came between two of these came in the time between them.
    up_ms: u64,
    /// Since it began.
    pub(super) requests: u64,
    pub(super) errors: u64,
    pub(super) active: u64,
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
        let looked = self.frames.nodes_wanted().is_some_and(|wanted| now().since(wanted) < INTEREST);
        let is_wanted = looked && has_others(&view);
        let mut changes = Vec::new();
        changes.extend(presence(&view, &format!("{LOOKED}{}", view.node), lease, is_wanted));
        let own = format!("{LOADS}{}", view.node);
        if self.is_looked_at_elsewhere() {
            if let Some(load) = self.load() {
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
        let mut looked = view.rows.names(LOOKED).filter_map(|name| name.strip_prefix(LOOKED));
        let is_there = |name: &str| view.rows.get(&node(name)).is_some();
        view.standing == Standing::Member && looked.any(|name| name != &*view.node && is_there(name))
    }

    fn load(&self) -> Option<NodeLoad> {
        let shot = self.history.latest()?;
        let up = shot.at.since(self.rates.begun());
        Some(NodeLoad::of(&shot, self.history.earlier(shot.at).as_deref(), up))
    }
}

impl NodeLoad {
    /// What this node has to do, which runs for so long; `earlier`: what was counted some seconds before `now`.
    pub(super) fn of(now: &Shot, earlier: Option<&Shot>, up: Duration) -> NodeLoad {
        let nothing = RowTally::default();
        let all = now.rows.get(ALL).unwrap_or(&nothing);
        NodeLoad {
            up_ms: nanos(up) / 1_000_000,
            requests: all.requests,
            errors: all.errors,
            active: all.active,
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
