//! The latest probe, for status readers: the verdict in force may be older.

use std::sync::Arc;
use std::time::Duration;

use crate::tick::Tick;

/// How the latest probe of a backend went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastProbe {
    /// When it ended.
    pub at: Tick,
    /// How long it took, connecting included.
    pub took: Duration,
    /// What was wrong, as a short text for people; `None`: it passed.
    pub fault: Option<Arc<str>>,
}
