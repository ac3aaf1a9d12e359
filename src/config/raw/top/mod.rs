//! Groups of keys at the top level.

pub(super) mod access_log;
pub(super) mod acme;
pub(super) mod admin;
pub(super) mod cache_store;
pub(super) mod cluster;
pub(super) mod instance;
pub(super) mod metrics;
pub(super) mod recorder;
pub(super) mod resolver;
pub(super) mod routing_tests;
pub(super) mod scale;
pub(super) mod statsd;
pub(super) mod tracing;
pub(super) mod webhooks;
