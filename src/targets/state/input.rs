//! One thing that a backend's state rests on.

use std::sync::Arc;

use crate::tick::Tick;

/// What one input says, why and since when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::targets) struct Input<T> {
    /// What it says.
    pub(in crate::targets) word: T,
    /// Why, as a short text for people.
    pub(in crate::targets) reason: Arc<str>,
    /// Since when it has been saying so.
    pub(in crate::targets) since: Tick,
}

impl<T> Input<T> {
    /// An input that says `word` because of `reason` from `since` on.
    #[must_use]
    pub(in crate::targets) fn new(word: T, reason: impl Into<Arc<str>>, since: Tick) -> Input<T> {
        Input { word, reason: reason.into(), since }
    }
}
