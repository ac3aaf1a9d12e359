//! Backends that are gone from the config while somebody still uses them.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use crate::message::{BackendId, TargetId};
use crate::targets::{Backend, Target};

/// Those that some config had and the next one has not, each with its target.
#[derive(Debug, Default)]
pub(super) struct LeavingBackends(Mutex<Vec<(TargetId, Weak<Backend>)>>);

impl LeavingBackends {
    /// Notes who was there under the config before and is not under the next one.
    pub(super) fn see_off(&self, before: &[Arc<Target>], next: &[Arc<Target>]) {
        let stay: HashSet<BackendId> =
            next.iter().flat_map(|target| &target.backends).map(|backend| backend.id).collect();
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|(_, backend)| backend.strong_count() > 0);
        for target in before {
            let gone = target.backends.iter().filter(|backend| !stay.contains(&backend.id));
            all.extend(gone.map(|backend| (target.id, Arc::downgrade(backend))));
        }
    }

    /// Those that somebody still uses.
    pub(super) fn all(&self) -> Vec<(TargetId, Arc<Backend>)> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|(_, backend)| backend.strong_count() > 0);
        all.iter().filter_map(|(target, backend)| Some((*target, backend.upgrade()?))).collect()
    }
}
