//! Which numbers a config has given.

use crate::message::{BackendId, ListenerId, RouteId, TargetId};
use crate::telemetry::cells::NewNumbers;

/// Numbers that mean somebody new.
#[derive(Debug, Default)]
pub struct Given {
    /// Of listeners.
    pub listeners: Vec<ListenerId>,
    /// Of routes.
    pub routes: Vec<RouteId>,
    /// Of targets.
    pub targets: Vec<TargetId>,
    /// Of backends.
    pub backends: Vec<BackendId>,
    /// Of rate limits.
    pub rate_limits: Vec<u32>,
}

impl Given {
    /// Those that workers count under.
    #[must_use]
    pub fn counted(&self) -> NewNumbers<'_> {
        let Given { listeners, routes, targets, backends, rate_limits: _ } = self;
        NewNumbers { listeners, routes, targets, backends }
    }
}
