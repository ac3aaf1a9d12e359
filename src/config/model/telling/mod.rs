//! What a process tells of what it does, and to whom.

pub mod log;
pub mod metrics;
pub mod recorder;
pub mod scale;
pub mod statsd;
pub mod tracing;
pub mod webhook;
