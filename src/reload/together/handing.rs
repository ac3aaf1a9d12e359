//! Who prefers which backends, for people; and what they move by hand.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;
use tokio::time::timeout;

use super::moving::{ROWS, moved_by_hand, row_of, writing};
use super::owning::is_owned;
use super::sharing::Together;
use crate::cluster::membership::Standing;
use crate::events;
use crate::reload::running::RunningConfig;
use crate::store::shared::{Committed, StoreFault};
use crate::targets::Target;

/// How long it waits to learn of what came before it.
const PATIENCE: Duration = Duration::from_secs(1);
/// How often a change is tried again that others come before.
const TRIES: usize = 5;

/// Who prefers the backends of a target with `owner: soft`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetOwners {
    /// The target's name.
    pub target: Arc<str>,
    /// All nodes, with how many they prefer.
    pub nodes: Vec<(String, usize)>,
    /// The backends, in config order.
    pub backends: Vec<OwnedBackend>,
}

/// A backend that nodes share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnedBackend {
    /// Its name in the target.
    pub name: String,
    /// Who prefers it; `None`: all do.
    pub node: Option<String>,
    /// Somebody has moved it there by hand.
    pub is_held: bool,
    /// Requests of this node on it.
    pub in_flight: u32,
    /// Requests of others, as far as this one was told.
    pub elsewhere: u32,
}

/// Why a backend is not moved.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum OwnerFault {
    /// This process shares no config.
    #[error(
        "this process shares no backends with others: its config has no `cluster`, or it has no config file"
    )]
    Alone,
    /// There is no such thing.
    #[error("there is no {0}")]
    Unknown(String),
    /// The target is not shared.
    #[error(
        "target `{0}` has no `owner: soft` with a number for `max_in_flight`: no node prefers any of its backends"
    )]
    NotShared(String),
    /// Others change the same again and again.
    #[error("others change the same again and again; nothing has changed")]
    Crowded,
    /// The cluster can't be told.
    #[error("it is not known to be done, because the cluster can't be told: {0}")]
    Untold(StoreFault),
}

impl RunningConfig {
    /// Who prefers which backends, by target with `owner: soft`.
    ///
    /// # Errors
    /// [`OwnerFault::Alone`].
    pub fn owners(&self) -> Result<Vec<TargetOwners>, OwnerFault> {
        let together = self.together.as_ref().ok_or(OwnerFault::Alone)?;
        let snapshot = self.reloader.snapshots.current();
        let targets = snapshot.as_ref().map(|snapshot| snapshot.targets.as_slice()).unwrap_or_default();
        Ok(targets.iter().filter(|target| is_owned(target)).map(|target| shown(together, target)).collect())
    }

    /// How many backends each node prefers, of all targets that are shared so; `None`: there are none.
    #[must_use]
    pub fn owned_by_node(&self) -> Option<BTreeMap<String, usize>> {
        let together = self.together.as_ref()?;
        let snapshot = self.reloader.snapshots.current()?;
        let (owners, mut owned) = (together.owners(), BTreeMap::new());
        let shared = snapshot.targets.iter().filter(|target| is_owned(target));
        for owners in shared.filter_map(|target| owners.get(&target.name)) {
            for (node, count) in owners.nodes().iter().zip(owners.counts()) {
                *owned.entry(node.clone()).or_default() += count;
            }
        }
        Some(owned).filter(|owned| !owned.is_empty())
    }

    /// Backends that this node has moved to where requests come, since it started; `None`: it shares none.
    #[must_use]
    pub fn owner_moves(&self) -> Option<u64> {
        self.together.as_ref().map(Together::moves)
    }

    /// Has `node` prefer a backend, until somebody says otherwise or it is gone; `None`: whichever node has need of it.
    ///
    /// # Errors
    /// See [`OwnerFault`]; nothing has changed then, but for [`OwnerFault::Untold`].
    pub async fn move_owner(
        &self,
        target: &str,
        backend: &str,
        node: Option<&str>,
        who: &str,
    ) -> Result<OwnedBackend, OwnerFault> {
        let together = self.together.as_ref().ok_or(OwnerFault::Alone)?;
        for _ in 0..TRIES {
            let view = together.node.view();
            if view.standing != Standing::Member {
                let why = view.standing.reason().unwrap_or("it has not joined yet");
                let why = format!("{}: {why}", view.standing.as_str());
                return Err(OwnerFault::Untold(StoreFault::Apart(why)));
            }
            let (target, place) = self.shared_backend(target, backend)?;
            if let Some(node) = node {
                let nodes = view.nodes();
                let names: Vec<&str> =
                    nodes.iter().filter(|node| node.row.shares).map(|node| node.name.as_str()).collect();
                if !names.contains(&node) {
                    let names = names.join(", ");
                    return Err(OwnerFault::Unknown(format!("node `{node}`; there are: {names}")));
                }
            }
            let identity = &target.backends[place].identity;
            let owners = together.owners().remove(&target.name).unwrap_or_default();
            let home = owners.home(place).and_then(|home| owners.nodes().get(home)).map(String::as_str);
            let row = moved_by_hand(row_of(&view.rows, &target.name), identity, node, home);
            match together.node.commit(writing(&view.rows, &target.name, &row)).await {
                Ok(Committed::Done(revision)) => {
                    events::owner_by_hand(identity, node, who);
                    together.node.learned(revision).await;
                    let mut now = shown(together, &target).backends.swap_remove(place);
                    // It is in force in some milliseconds.
                    now.is_held = node.is_some();
                    if let Some(node) = node {
                        now.node = Some(node.to_owned());
                    }
                    return Ok(now);
                }
                Ok(Committed::Conflict) => {
                    let name = format!("{ROWS}{}", target.name);
                    let before = view.rows.changed(&name);
                    let mut views = together.node.views();
                    let other = views.wait_for(|view| view.rows.changed(&name) != before);
                    // If not, it is tried all the same.
                    let _ = timeout(PATIENCE, other).await;
                }
                Err(fault) => return Err(OwnerFault::Untold(fault)),
            }
        }
        Err(OwnerFault::Crowded)
    }

    fn shared_backend(&self, name: &str, backend: &str) -> Result<(Arc<Target>, usize), OwnerFault> {
        let snapshot = self.reloader.snapshots.current();
        let targets = snapshot.as_ref().map(|snapshot| snapshot.targets.as_slice()).unwrap_or_default();
        let target = targets.iter().find(|target| &*target.name == name);
        let target = target.ok_or_else(|| OwnerFault::Unknown(format!("target `{name}`")))?;
        if !is_owned(target) {
            return Err(OwnerFault::NotShared(name.to_owned()));
        }
        let place = target.backends.iter().position(|one| *one.name == *backend);
        let place = place.ok_or_else(|| OwnerFault::Unknown(format!("backend `{name}/{backend}`")))?;
        Ok((Arc::clone(target), place))
    }
}

fn shown(together: &Together, target: &Target) -> TargetOwners {
    let owners = together.owners().remove(&target.name).unwrap_or_default();
    let row = row_of(&together.node.view().rows, &target.name);
    let counts = owners.counts();
    let of = |(node, count): (&String, usize)| (node.clone(), count);
    let backend = |(place, backend): (usize, &Arc<crate::targets::Backend>)| OwnedBackend {
        name: backend.name.to_string(),
        node: owners.owner(place).map(str::to_owned),
        is_held: row.by_hand.contains(&*backend.identity),
        in_flight: backend.in_flight(),
        elsewhere: backend.elsewhere(),
    };
    TargetOwners {
        target: Arc::clone(&target.name),
        nodes: owners.nodes().iter().zip(counts).map(of).collect(),
        backends: target.backends.iter().enumerate().map(backend).collect(),
    }
}
