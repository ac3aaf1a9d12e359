//! What is told of a cluster.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::cluster::node::ClusterNode;
use crate::cluster::revision::{RevisionRow, current};
use crate::cluster::view::{ClusterView, KnownNode};
use crate::tick::Tick;

/// `GET /api/v1/cluster`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterReport {
    /// What it is called.
    pub cluster: String,
    /// What this node is called.
    pub node: String,
    /// Who keeps what is shared: `etcd` or `embedded`.
    pub store: String,
    /// How this node stands to the others: `joining`, `member`, `detached` or `refused`.
    pub standing: String,
    /// Why it is no member.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Why the store takes no changes, though it answers; absent: it does, as far as is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub store_refuses: Option<String>,
    /// For how long it has stood so, in milliseconds.
    pub for_ms: u64,
    /// How long a node counts as there that says nothing, in milliseconds.
    pub lease_ms: u64,
    /// How old the latest word is that has kept its lease alive, in milliseconds; `None`: there was none.
    pub kept_ms: Option<u64>,
    /// Up to which change of what is shared it knows everything.
    pub revision: u64,
    /// The config that is shared, as it is in force on this node; absent: its own file is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config: Option<RevisionReport>,
    /// The nodes, as they were known last.
    pub nodes: Vec<NodeReport>,
}

/// A revision of the config.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RevisionReport {
    /// Its number, from 1.
    pub revision: u64,
    /// Who has proposed it.
    pub author: String,
    /// On which node.
    pub node: String,
    /// When, in milliseconds since 1970.
    pub at_ms: u64,
    /// The one that the store names.
    pub current: Option<u64>,
}

/// A node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeReport {
    /// What it is called.
    pub name: String,
    /// It is the one that tells this.
    pub own: bool,
    /// Of evenkeel.
    pub version: String,
    /// Versions of what is shared that it understands.
    pub schema: [u32; 2],
    /// Another one each time that it starts.
    pub boot: String,
    /// Since when it runs, in milliseconds since 1970, by its own clock.
    pub since_ms: u64,
    /// Where it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
    /// Who wants it drained; absent: nobody does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drained_by: Option<String>,
}

impl ClusterReport {
    /// Of what `node` knows.
    #[must_use]
    pub fn of(
        node: &ClusterNode,
        view: &ClusterView,
        in_force: Option<&RevisionRow>,
        now: Tick,
    ) -> ClusterReport {
        let config = in_force.map(|row| RevisionReport {
            revision: row.number,
            author: row.author.clone(),
            node: row.node.clone(),
            at_ms: row.at_ms,
            current: current(&view.rows),
        });
        ClusterReport {
            config,
            cluster: view.cluster.to_string(),
            node: view.node.to_string(),
            store: node.engine().to_owned(),
            standing: view.standing.as_str().to_owned(),
            reason: view.standing.reason().map(str::to_owned),
            store_refuses: node.refusal_of_store(),
            for_ms: millis(now.since(view.since)),
            lease_ms: millis(node.lease()),
            kept_ms: view.kept.map(|kept| millis(now.since(kept))),
            revision: view.rows.revision(),
            nodes: view.nodes().iter().map(|known| NodeReport::of(known, view)).collect(),
        }
    }
}

impl NodeReport {
    /// Of one that is not there, of which nothing is known but its name.
    #[must_use]
    pub fn away(name: &str) -> NodeReport {
        NodeReport {
            name: name.to_owned(),
            own: false,
            version: String::new(),
            schema: [0, 0],
            boot: String::new(),
            since_ms: 0,
            zone: None,
            drained_by: None,
        }
    }

    /// Of one of them.
    #[must_use]
    pub fn of(known: &KnownNode, view: &ClusterView) -> NodeReport {
        let KnownNode { name, row, drain } = known;
        NodeReport {
            name: name.clone(),
            own: view.is_own(name, &row.boot),
            version: row.version.clone(),
            schema: row.schema,
            boot: row.boot.clone(),
            since_ms: row.since_ms,
            zone: row.zone.clone(),
            drained_by: drain.as_ref().map(|wish| wish.author.clone()),
        }
    }
}

fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}
