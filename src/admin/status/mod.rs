//! The state of things: what is known of every listener, target and backend, as JSON.

pub mod assembly;
pub mod rates;
pub mod report;
