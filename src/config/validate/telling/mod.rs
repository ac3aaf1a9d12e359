//! What a process tells of what it does, and to whom.

pub(super) mod recorder;
pub(super) mod scale;
pub(super) mod statsd;
pub(super) mod tracing;
pub(super) mod webhooks;
