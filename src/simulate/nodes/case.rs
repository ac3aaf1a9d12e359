//! What is simulated of several nodes, and what comes of it.

use core::time::Duration;

use crate::simulate::workload::Spread;

/// What is simulated.
#[derive(Clone, Debug, PartialEq)]
pub struct NodesWorkload {
    /// Nodes, at least 1. A single one knows everything: what comes of it is the bound.
    pub nodes: usize,
    /// Backends.
    pub backends: usize,
    /// Requests that a backend serves at once; those beyond wait there.
    pub slots: u32,
    /// Which part of all slots is busy on average, 0 to 1.
    pub load: f64,
    /// How much of all requests one node gets, 0 to 1; the others share the rest. Another one each time that [`Self::flips`] is over.
    pub heavy: f64,
    /// See there; zero: never.
    pub flips: Duration,
    /// How long requests take, in seconds.
    pub service: Spread,
    /// The shortest and the longest.
    pub bounds: [Duration; 2],
    /// How long it goes on; the first fifth counts for nothing.
    pub span: Duration,
    /// What nodes do about each other.
    pub sharing: NodeSharing,
}

/// What nodes do about each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeSharing {
    /// Nothing: each goes by its own requests, with no limit.
    Nothing,
    /// They share backends (`owner: soft`) with `max_in_flight` and a queue. `evens`: backends follow demand.
    Soft {
        /// See there.
        evens: bool,
    },
}

/// What came of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NodesReport {
    /// Requests that count.
    pub requests: u64,
    /// Those that were not served.
    pub errors: u64,
    /// How long they took from when they came, in milliseconds.
    pub mean: f64,
    /// The same of the slowest of a hundred.
    pub p99: f64,
    /// Requests that waited at a backend, since more were sent to it than it has slots.
    pub collided: u64,
    /// Backends that moved from one node to another in all.
    pub moves: u64,
    /// The longest time from a flip to the last move that came of it.
    pub settled: Duration,
    /// Moves later than 15 s after a flip, and after the first fifth.
    pub restless: u64,
    /// By how many points the busiest and the idlest backend of a second differ, at the median of all seconds that are at least five after a flip.
    pub apart: f64,
}
