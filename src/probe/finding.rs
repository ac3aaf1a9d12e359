//! What is learned of a backend.

use std::sync::Arc;

use crate::targets::Verdict;

/// What one attempt to learn something about a backend came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Finding {
    /// The backend passed or failed.
    Verdict(Verdict),
    /// This machine could not even ask, for want of the named resource: no word about the backend.
    Starved(Arc<str>),
}

impl Finding {
    pub(super) fn bad(reason: impl Into<Arc<str>>) -> Finding {
        Finding::Verdict(Verdict::Bad(reason.into()))
    }
}
