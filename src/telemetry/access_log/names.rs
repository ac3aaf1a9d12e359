//! The configured names behind the numbers of a Record.
//!
//! Built on control with every snapshot, shared as an `Arc`, read by whoever writes for people.

use std::sync::Arc;

use crate::message::{BackendId, ListenerId, TargetId};

/// Names by number. A number without a name is printed as `#` and the number.
///
/// Backend numbers are never reused, so a successor is a clone with what is new; a clone copies
/// pointers, not text.
#[derive(Clone, Debug, Default)]
pub struct Names {
    listeners: Vec<Option<Arc<str>>>,
    targets: Vec<Option<Arc<str>>>,
    backends: Vec<Option<Arc<str>>>,
}

impl Names {
    /// Names a listener; the last word counts.
    pub fn name_listener(&mut self, id: ListenerId, name: &str) {
        put(&mut self.listeners, usize::from(id.0), name);
    }

    /// Names a target; the last word counts.
    pub fn name_target(&mut self, id: TargetId, name: &str) {
        put(&mut self.targets, usize::from(id.0), name);
    }

    /// Names a backend (its name inside the target); the last word counts. Takes memory in proportion to
    /// the highest number named.
    pub fn name_backend(&mut self, id: BackendId, name: &str) {
        // A u32 fits a usize wherever this runs; the registry counts up, so the table stays dense.
        put(&mut self.backends, id.0 as usize, name);
    }

    /// A listener's name, if it has one.
    #[must_use]
    pub fn listener(&self, id: ListenerId) -> Option<&str> {
        self.listeners.get(usize::from(id.0))?.as_deref()
    }

    /// A target's name, if it has one.
    #[must_use]
    pub fn target(&self, id: TargetId) -> Option<&str> {
        self.targets.get(usize::from(id.0))?.as_deref()
    }

    /// A backend's name, if it has one.
    #[must_use]
    pub fn backend(&self, id: BackendId) -> Option<&str> {
        self.backends.get(id.0 as usize)?.as_deref()
    }
}

fn put(names: &mut Vec<Option<Arc<str>>>, place: usize, name: &str) {
    if names.len() <= place {
        names.resize(place + 1, None);
    }
    names[place] = Some(Arc::from(name));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_successor_leaves_its_predecessor_alone() {
        let mut first = Names::default();
        first.name_backend(BackendId(3), "b3");
        first.name_listener(ListenerId(0), "web");
        let mut second = first.clone();
        second.name_backend(BackendId(9), "b9");
        second.name_target(TargetId(1), "api");
        assert_eq!((first.backend(BackendId(3)), first.backend(BackendId(9))), (Some("b3"), None));
        assert_eq!((second.backend(BackendId(3)), second.backend(BackendId(9))), (Some("b3"), Some("b9")));
        assert_eq!(second.backend(BackendId(4)), None);
        assert_eq!((second.target(TargetId(0)), second.target(TargetId(1))), (None, Some("api")));
        assert_eq!((second.listener(ListenerId(0)), second.listener(ListenerId(7))), (Some("web"), None));
    }
}
