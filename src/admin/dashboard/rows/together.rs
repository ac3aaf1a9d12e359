//! The nodes of a cluster: who is there, what each has to do, and how this one stands to them.

use std::collections::BTreeMap;

use serde::Serialize;

use super::sources::{RowSources, put};
use crate::admin::dashboard::frame::Rows;
use crate::admin::dashboard::nodes::{LOADS, NodeLoad};
use crate::admin::dashboard::verdict::{DashboardTrouble, of_standing, of_store};
use crate::cluster::membership::Standing;
use crate::cluster::view::{ClusterView, KnownNode};

#[derive(Serialize)]
struct ClusterRow<'c> {
    name: &'c str,
    node: &'c str,
    standing: &'c str,
    reason: Option<&'c str>,
    /// Why its store takes no changes.
    store_refuses: Option<String>,
    since_ms: u64,
}

#[derive(Serialize)]
struct NodeLine<'n> {
    /// `up`, `draining`, or, of others while this one is none of them, `unknown`.
    state: &'static str,
    reason: String,
    own: bool,
    version: &'n str,
    zone: Option<&'n str>,
    since_ms: u64,
    /// Backends of targets with `owner: soft` that it prefers; `None`: there are no such targets.
    owned: Option<usize>,
    /// What it has said last.
    #[serde(flatten)]
    load: Option<NodeLoad>,
}

pub(super) fn put_all(rows: &mut Rows, from: &RowSources<'_>) {
    let Some(node) = &from.api.cluster else { return };
    let view = node.view();
    let cluster = ClusterRow {
        name: &view.cluster,
        node: &view.node,
        standing: view.standing.as_str(),
        reason: view.standing.reason(),
        store_refuses: node.refusal_of_store(),
        since_ms: since_ms(from, &view),
    };
    put(rows, "cluster".to_owned(), &cluster);
    let owned = from.api.running.owned_by_node();
    let up = from.now.at.since(from.api.rates.begun());
    let loads: BTreeMap<&str, NodeLoad> = view.rows.all(LOADS).collect();
    for node in view.nodes() {
        let is_own = view.is_own(&node.name, &node.row.boot);
        let load = if is_own {
            Some(NodeLoad::of(from.now, from.earlier, up))
        } else {
            loads.get(node.name.as_str()).copied()
        };
        let (state, reason) = state(&view, &node, is_own);
        let line = NodeLine {
            state,
            reason,
            own: is_own,
            version: &node.row.version,
            zone: node.row.zone.as_deref(),
            since_ms: node.row.since_ms,
            owned: owned.as_ref().map(|owned| owned.get(&node.name).copied().unwrap_or(0)),
            load,
        };
        put(rows, format!("node/{}", node.name), &line);
    }
}

/// What the matter is with this node, if something is.
pub(super) fn trouble(from: &RowSources<'_>) -> Option<DashboardTrouble> {
    let node = from.api.cluster.as_ref()?;
    let view = node.view();
    let of_store = || node.refusal_of_store().map(|_| of_store(&view.cluster));
    of_standing(&view.standing, &view.cluster, since_ms(from, &view)).or_else(of_store)
}

fn since_ms(from: &RowSources<'_>, view: &ClusterView) -> u64 {
    from.seen.sources.wall.ms(view.since)
}

fn state(view: &ClusterView, node: &KnownNode, is_own: bool) -> (&'static str, String) {
    match &node.drain {
        Some(wish) if view.standing == Standing::Member || is_own => {
            ("draining", format!("drained by {}", wish.author))
        }
        // Whoever is none of them does not know how the others are.
        _ if view.standing != Standing::Member && !is_own => ("unknown", "as it was known last".to_owned()),
        _ => ("up", String::new()),
    }
}
