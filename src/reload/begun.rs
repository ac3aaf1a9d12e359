//! What a process begins with, and what is seen of changes by hand while it serves.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::SystemTime;

use super::kept::{Found, KeptOverlay};
use crate::access::Networks;
use crate::config::Loaded;
use crate::events;
use crate::overlay::blocked::{blocked_until_now, networks};
use crate::overlay::{Aside, Laid, OverlayEntry, lay, reconcile};
use crate::store::Store;

/// Reads the config again from where the first one came.
pub type Loader = Arc<dyn Fn() -> anyhow::Result<Loaded> + Send + Sync>;

/// Milliseconds since 1970.
#[must_use]
pub fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// What a process begins with: its file, the overlay, and both laid one over the other.
#[derive(Debug)]
pub struct Begun {
    /// What the file says.
    pub file: Arc<Loaded>,
    /// What is to be put into force.
    pub laid: Laid,
    pub(super) kept: KeptOverlay,
}

impl Begun {
    /// With what `store` has kept; `Err`: nothing can be kept, and why. Tells what was found.
    #[must_use]
    pub fn load(file: Loaded, store: Result<Box<dyn Store>, String>) -> Begun {
        let begun = Begun::read(file, store);
        begun.catch_up();
        begun
    }

    /// The same without a word to the store, which another process may still have: [`Begun::catch_up`] comes later.
    #[must_use]
    pub fn read(file: Loaded, store: Result<Box<dyn Store>, String>) -> Begun {
        let (kept, Found { torn, damaged }) = match store {
            Ok(store) => KeptOverlay::load(store),
            Err(reason) => (KeptOverlay::unkept(reason), Found::default()),
        };
        if let Some(reason) = kept.state().fault() {
            events::overlay_unkept(reason);
        }
        if torn > 0 || damaged > 0 {
            events::overlay_cut(torn, damaged);
        }
        Begun::with(file, kept)
    }

    /// Keeps what has come of what was kept. Where all nodes share it they decide of it together.
    pub fn catch_up(&self) {
        let (can_keep, is_shared) = {
            let state = self.kept.state();
            (state.fault().is_none(), state.is_shared())
        };
        if is_shared {
            return;
        }
        if let (Err(unkept), true) = (self.kept.catch_up(), can_keep) {
            events::overlay_behind(&unkept.reason);
        }
    }

    /// With what is kept, of which nothing is written yet. Tells what has come of it.
    #[must_use]
    pub fn with(file: Loaded, kept: KeptOverlay) -> Begun {
        let file = Arc::new(file);
        let reconciled = reconcile(kept.state().entries(), &file, now_ms());
        for ended in &reconciled.ended {
            let (entry, why) = ended;
            events::overlay_over(&entry.to_string(), &why.to_string());
        }
        let laid = lay(&file, &reconciled.entries);
        let effective = reconciled.entries.len() - laid.aside.len();
        if !reconciled.entries.is_empty() {
            events::overlay_laid(effective, laid.aside.len());
        }
        for entry in &reconciled.entries {
            if let Some(why) = laid.aside.get(&entry.id).filter(|why| **why != Aside::Gone) {
                events::overlay_aside(&entry.to_string(), &why.to_string());
            }
        }
        let mut state = kept.state();
        let (blocked, let_in) = blocked_until_now(state.blocked(), now_ms());
        let_in.iter().for_each(|entry| events::let_in(&entry.to_string()));
        if !blocked.is_empty() {
            events::blocked_from_the_start(blocked.len());
        }
        state.hold_blocked(blocked);
        let next_id = state.next_id();
        state.hold(&reconciled.entries, next_id);
        drop(state);
        Begun { file, laid, kept }
    }

    /// Whom it keeps out from its first connection on.
    #[must_use]
    pub fn blocked(&self) -> Arc<Networks> {
        Arc::new(networks(self.kept.state().blocked()))
    }

    /// Without an overlay, and with no place to keep one.
    #[must_use]
    pub fn bare(file: Loaded) -> Begun {
        let file = Arc::new(file);
        let laid = lay(&file, &[]);
        Begun { file, laid, kept: KeptOverlay::unkept("this process keeps no changes by hand") }
    }
}

/// What is changed by hand.
#[derive(Clone, Debug)]
pub struct ByHand {
    /// What the file says.
    pub file: Arc<Loaded>,
    /// All entries, by id.
    pub entries: Arc<[OverlayEntry]>,
    /// Those of them that have no effect, and why.
    pub aside: BTreeMap<u64, Aside>,
    /// Why nothing can be changed by hand; `None`: it can.
    pub fault: Option<String>,
}
