//! What a process knows of the config that it shares with others.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use super::purges::PurgeBook;
use crate::cluster::node::ClusterNode;
use crate::cluster::revision::RevisionRow;
use crate::config::{Loaded, SharedPart, SharedText};
use crate::reload::begun::Loader;
use crate::reload::fault::Refusal;
use crate::reload::kept::shared::OverlayLine;
use crate::reload::plan::Plan;
use crate::store::shared::Revision;
use crate::targets::sharing::owners::Owners;

/// Reads a shared text for this node.
pub type SharedLoader = Arc<dyn Fn(&SharedText) -> anyhow::Result<Loaded> + Send + Sync>;
/// Reads what of this node's own file would be shared.
pub type OwnPart = Arc<dyn Fn() -> anyhow::Result<SharedPart> + Send + Sync>;
/// Takes a text apart as if it were this node's own file.
pub type PartOf = Arc<dyn Fn(&str) -> anyhow::Result<SharedPart> + Send + Sync>;

/// How a process reads configs of its cluster.
#[derive(Clone)]
pub struct SharedReading {
    /// A text of the cluster.
    pub shared: SharedLoader,
    /// The node's own file.
    pub own: OwnPart,
    /// Another text in its place.
    pub part: PartOf,
    /// Where the latest revision is kept, for a start without a store; `None`: nowhere.
    pub cache: Option<PathBuf>,
}

/// This process as one of a cluster that shares its config.
pub struct Together {
    /// The node.
    pub node: Arc<ClusterNode>,
    pub(super) reading: SharedReading,
    state: Mutex<TogetherState>,
    /// What has become of the latest revision that this node was told of.
    pub(super) taken: watch::Sender<TakenRevision>,
    proposed: AtomicU64,
    /// What changes by hand need to know of it.
    pub(super) line: Arc<OverlayLine>,
    /// Up to which change of the store all has been put into force.
    pub(super) seen: watch::Sender<Revision>,
    /// The change by hand that lies on the disk.
    pub(super) cached: AtomicU64,
    /// How often the store had gone back when it was looked at last.
    pub(super) rewinds: AtomicU32,
    /// What of all purges is done here.
    pub(super) purges: PurgeBook,
    /// Who prefers what, by target with `owner: soft`.
    owners: watch::Sender<HashMap<Arc<str>, Owners>>,
    /// Backends that this node has moved from one node to another.
    moves: AtomicU64,
}

#[derive(Debug, Default)]
pub(super) struct TogetherState {
    /// What is in force; `None`: the node's own file.
    pub(super) in_force: Option<Arc<RevisionRow>>,
    /// The latest revision could not be taken here.
    pub(super) is_refused: bool,
    /// The revision that was looked at last, and the change by which the store names it.
    pub(super) seen: Option<(u64, Revision)>,
    /// What of the own file would be shared, as it was seen last.
    pub(super) own: Option<Arc<str>>,
    /// What was told last, so that it is told once.
    told: Option<String>,
}

/// What has become of a revision on this node.
#[derive(Clone)]
pub(super) struct TakenRevision {
    pub(super) number: u64,
    /// When it was proposed: after the store has lost its rows another one may have its number.
    pub(super) at_ms: u64,
    pub(super) outcome: Result<Arc<Plan>, Refusal>,
}

/// What a revision is called in messages.
pub(in crate::reload) fn name_of(number: u64) -> Arc<str> {
    format!("revision {number}").into()
}

impl Together {
    /// Of a process that begins with this revision; `None`: with its own file.
    #[must_use]
    pub fn new(
        node: Arc<ClusterNode>,
        reading: SharedReading,
        begun: Option<RevisionRow>,
        line: Arc<OverlayLine>,
    ) -> Together {
        let own = (reading.own)().ok().map(|part| part.text);
        let (number, at_ms) = begun.as_ref().map_or((0, 0), |row| (row.number, row.at_ms));
        let state =
            TogetherState { in_force: begun.map(Arc::new), own, is_refused: false, seen: None, told: None };
        let taken = watch::Sender::new(TakenRevision { number, at_ms, outcome: Ok(Arc::default()) });
        let (state, seen) = (Mutex::new(state), watch::Sender::new(0));
        let (proposed, cached) = (AtomicU64::new(0), AtomicU64::new(0));
        Together {
            node,
            reading,
            state,
            taken,
            proposed,
            line,
            seen,
            cached,
            rewinds: AtomicU32::new(0),
            purges: PurgeBook::default(),
            owners: watch::Sender::default(),
            moves: AtomicU64::new(0),
        }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, TogetherState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The revision in force; `None`: the node's own file is.
    #[must_use]
    pub fn in_force(&self) -> Option<Arc<RevisionRow>> {
        self.state().in_force.clone()
    }

    pub(super) fn loader_of(&self, row: &RevisionRow) -> Loader {
        let shared = SharedText { name: name_of(row.number), text: row.text.as_str().into() };
        let load = Arc::clone(&self.reading.shared);
        Arc::new(move || load(&shared))
    }

    /// Reads what is in force again, with what this node's own file says of it; `None`: that file is in force itself.
    pub(in crate::reload) fn again(&self) -> Option<Loader> {
        self.in_force().map(|row| self.loader_of(&row))
    }

    /// Reads what this node's own file would be as a revision.
    pub(in crate::reload) fn own_as_shared(&self) -> Loader {
        let (own, load) = (Arc::clone(&self.reading.own), Arc::clone(&self.reading.shared));
        Arc::new(move || {
            let part = own()?;
            load(&SharedText { name: "this node's file".into(), text: part.text })
        })
    }

    /// An id for a proposal of this process.
    pub(super) fn next_id(&self) -> String {
        format!(
            "{}-{}-{}",
            self.node.boot(),
            std::process::id(),
            self.proposed.fetch_add(1, Ordering::Relaxed)
        )
    }

    /// Who prefers which backends, by target with `owner: soft`.
    #[must_use]
    pub fn owners(&self) -> HashMap<Arc<str>, Owners> {
        self.owners.borrow().clone()
    }

    pub(super) fn show_owners(&self, owners: &HashMap<Arc<str>, Owners>) {
        self.owners.send_if_modified(|before| {
            let differs = before != owners;
            if differs {
                before.clone_from(owners);
            }
            differs
        });
    }

    /// Backends that this node has moved from one node to another since it started.
    #[must_use]
    pub fn moves(&self) -> u64 {
        self.moves.load(Ordering::Relaxed)
    }

    pub(super) fn count_moves(&self, count: u64) {
        self.moves.fetch_add(count, Ordering::Relaxed);
    }

    /// Whether this is told for the first time in a row.
    pub(super) fn is_new(&self, what: String) -> bool {
        let mut state = self.state();
        let is_new = state.told.as_ref() != Some(&what);
        state.told = Some(what);
        is_new
    }
}

/// Why a part can't be shared as it is: it has secrets in it, and nothing seals them.
pub(super) fn unsealed(together: &Together, part: &SharedPart) -> Option<String> {
    let first = part.secrets.first().filter(|_| !together.node.seals())?;
    let more = part.secrets.len() - 1;
    let more = if more > 0 { format!(" (and {more} more)") } else { String::new() };
    Some(format!(
        "line {}: `{}` is a secret that stands in the config{more}: write it as `${{NAME}}`, which each node takes from its environment, or set \
         `cluster.secrets_key_file`",
        first.line, first.key
    ))
}

/// Of what has no place in a config.
pub(super) fn refusal(why: String) -> Refusal {
    Refusal::now(why)
}
