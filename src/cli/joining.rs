//! How a process becomes one of a cluster, and with which config it begins.

use std::sync::Arc;

use crate::cluster::heir::NodeLegacy;
use crate::cluster::node::{ClusterNode, NodeFacts};
use crate::cluster::revision::{self, RevisionRow};
use crate::cluster::view::KnownRows;
use crate::config::model::ClusterConfig;
use crate::config::{Loaded, SharedText};
use crate::events;
use crate::reload::begun::now_ms;
use crate::reload::kept::KeptOverlay;
use crate::reload::kept::shared::{OverlayLine, SharedJournal, SharedOverlay};
use crate::reload::together::{CachedRevision, SharedReading};
use crate::store::local::LockedFolder;
use crate::store::shared::chosen::ChosenStore;
use crate::store::shared::embedded::EmbeddedStore;
use crate::store::shared::etcd::EtcdStore;
use crate::store::{LocalStore, Store};

/// The file in the folder of state in which the latest revision is kept.
pub(super) fn cache(node: Option<&ClusterNode>) -> String {
    let cluster = node.map_or_else(String::new, |node| node.view().cluster.to_string());
    format!("cluster-{cluster}.config")
}

/// What a process begins with.
pub(super) struct Beginning {
    /// The config.
    pub(super) loaded: Loaded,
    /// The revision that it is of; `None`: it is this node's own file.
    pub(super) revision: Option<RevisionRow>,
    /// What is changed by hand, as all know it, or as this node knew it last; `None`: it never has.
    pub(super) overlay: Option<SharedOverlay>,
}

/// The config that a process begins with, of which `loaded` is its own file: the revision that the store names; where nobody answers soon the one that it
/// had when it ran last; else its own file, and nothing beside it.
pub(super) fn begin(
    node: &ClusterNode,
    reading: &SharedReading,
    loaded: Loaded,
    before: Option<&NodeLegacy>,
) -> Beginning {
    let rows = look(node);
    if let Some(before) = before.filter(|before| before.boot == node.boot()) {
        node.go_on(before, rows.clone());
    }
    let known = rows.as_ref().map(SharedOverlay::of).filter(|shared| shared.generation > 0);
    let cached_overlay = || CachedRevision::read_overlay(reading.cache.as_ref()?);
    // What this node had of its own is nothing to a cluster that has a config already.
    let is_begun = rows.as_ref().is_some_and(|rows| revision::current(rows).is_some());
    let overlay = known.or_else(cached_overlay).or_else(|| is_begun.then(SharedOverlay::default));
    let named = rows.as_ref().and_then(|rows| {
        let number = revision::current(rows)?;
        match node.revision(rows, number)? {
            Ok(row) => Some(row),
            Err(fault) => {
                events::revision_unread(number, &fault.to_string());
                None
            }
        }
    });
    let cached = || reading.cache.as_deref().and_then(CachedRevision::read);
    for row in named.into_iter().chain(cached()) {
        let name = format!("revision {}", row.number);
        let shared = SharedText { name: name.into(), text: row.text.as_str().into() };
        match (reading.shared)(&shared) {
            Ok(loaded) => return Beginning { loaded, revision: Some(row), overlay },
            Err(error) => {
                let why = format!("{error:#}");
                events::revision_unread(row.number, why.lines().next().unwrap_or_default());
            }
        }
    }
    Beginning { loaded, revision: None, overlay }
}

/// What is changed by hand of a node that begins with `known`; without it with what was changed by hand on this one alone.
pub(super) fn overlay(
    node: &Arc<ClusterNode>,
    known: Option<SharedOverlay>,
    own: impl FnOnce() -> Result<Box<dyn Store>, String>,
) -> (KeptOverlay, Arc<OverlayLine>) {
    let of_own = || {
        let (kept, _) = KeptOverlay::load(own().ok()?);
        let stored = kept.state().stored().clone();
        Some(SharedOverlay { stored, generation: 0 })
    };
    let line = Arc::<OverlayLine>::default();
    let journal = SharedJournal { node: Arc::clone(node), line: Arc::clone(&line) };
    (KeptOverlay::shared(Box::new(journal), known.or_else(of_own).unwrap_or_default()), line)
}

/// What the store has.
fn look(node: &ClusterNode) -> Option<KnownRows> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
    let rows = runtime.block_on(node.look());
    // What still waits for somebody who does not answer is not waited for.
    runtime.shutdown_background();
    rows
}

/// This process as a node of its cluster. `kept`: the folder of what outlives it; `before`: what the process before was.
pub(super) fn node(
    config: &ClusterConfig,
    kept: Option<&Arc<LockedFolder>>,
    shares: bool,
    before: Option<&NodeLegacy>,
) -> ClusterNode {
    let name = config.node.clone().unwrap_or_else(host_name);
    let before = before.filter(|before| before.cluster == config.name && before.node == name);
    let boot = before.map_or_else(|| format!("{:016x}", rand::random::<u64>()), |before| before.boot.clone());
    let machine = kept.and_then(|folder| folder.identity(rand::random()));
    let machine = before.map(|before| before.machine.clone()).or(machine);
    let facts = NodeFacts {
        name,
        machine: machine.unwrap_or_else(|| boot.clone()),
        boot,
        shares,
        zone: None,
        since_ms: now_ms(),
    };
    let store = match &config.etcd {
        Some(etcd) => ChosenStore::Etcd(EtcdStore::new(etcd)),
        None => ChosenStore::Embedded(embedded(kept)),
    };
    let node = ClusterNode::new(config, facts, store);
    if let Some(before) = before {
        node.go_on(before, None);
    }
    node
}

/// What a cluster of one shares with itself.
fn embedded(folder: Option<&Arc<LockedFolder>>) -> EmbeddedStore {
    let kept =
        folder.map(|folder| EmbeddedStore::kept_in(Box::new(LocalStore::new(folder, LocalStore::CLUSTER))));
    match kept {
        Some(Ok(store)) => store,
        Some(Err(reason)) => {
            events::cluster_unkept(&reason);
            EmbeddedStore::fleeting()
        }
        None => EmbeddedStore::fleeting(),
    }
}

/// What this machine is called, as far as it is a name for a node.
fn host_name() -> String {
    let read = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let name: String = read.trim().chars().filter(|c| fits(*c)).take(64).collect();
    if name.is_empty() { "node".to_owned() } else { name }
}
