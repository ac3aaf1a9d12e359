//! When a target is told to have too few backends, or more than it needs.

use std::time::Duration;

/// `scale`: thresholds, each for every target by itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScaleConfig {
    /// When more backends are wanted; `None`: that is not told.
    pub out: Option<ScaleOut>,
    /// When fewer would do; `None`: that is not told.
    pub into: Option<ScaleIn>,
}

/// More backends are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScaleOut {
    /// While more requests than this wait in the target's queue. Default 100.
    pub queued: u32,
    /// For so long without a break. Default 30 s.
    pub hold: Duration,
}

/// Fewer backends would do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScaleIn {
    /// While requests under way are less than so many percent of what `max_in_flight` lets those have who are up. Default 20.
    pub busy: u8,
    /// For so long without a break. Default 10 min.
    pub hold: Duration,
}

impl Default for ScaleOut {
    fn default() -> ScaleOut {
        ScaleOut { queued: 100, hold: Duration::from_secs(30) }
    }
}

impl Default for ScaleIn {
    fn default() -> ScaleIn {
        ScaleIn { busy: 20, hold: Duration::from_secs(600) }
    }
}
