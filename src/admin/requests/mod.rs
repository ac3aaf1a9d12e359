//! What is asked about requests that are over: what the workers' flight recorders have kept of them.
//!
//! A story is put together from what was kept, from where the config says what decided, and from what was told of the same
//! backends around that time.

mod places;
pub mod report;
pub(super) mod routes;
mod steps;
mod story;
mod verdict;
