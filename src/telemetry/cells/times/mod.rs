//! How long things take, counted in buckets: fine ones for what is told of targets, few for what is exported, coarse ones for each
//! backend.

pub(super) mod coarse;
pub(super) mod durations;
pub(super) mod histogram;
pub(super) mod spans;
