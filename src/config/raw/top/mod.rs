//! Groups of keys at the top level.

pub(super) mod access_log;
pub(super) mod admin;
pub(super) mod cache_store;
pub(super) mod instance;
pub(super) mod routing_tests;
pub(super) mod webhooks;
