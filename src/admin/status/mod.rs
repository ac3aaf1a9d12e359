//! The state of things: what is known of every listener, target, backend, rate limit and access list, as JSON.

pub mod access;
pub mod assembly;
pub mod rates;
pub mod report;
pub mod wall;
