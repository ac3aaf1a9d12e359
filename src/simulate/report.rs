//! What came of a run.

use core::time::Duration;

/// The figures of one run.
#[derive(Clone, Debug, PartialEq)]
pub struct SimulationReport {
    /// Requests that clients sent; attempts beyond the first are not counted.
    pub requests: u64,
    /// Those that got an answer of a failing backend (5xx), or none because no backend could be connected to.
    pub errors: u64,
    /// How often a backend was left out because it did worse than its siblings over a while. Errors in a row and refused
    /// connections are not counted.
    pub ejected: u64,
    /// From sending a request to the end of its answer, on average, of those that were no errors; so are the next three.
    pub mean: Duration,
    /// The time that half of them did not exceed; to 0.4 %, as the next.
    pub p50: Duration,
    /// The time that 99 % of them did not exceed.
    pub p99: Duration,
    /// The longest.
    pub max: Duration,
    /// How much busier than the average the busiest backend was: work per slot, greatest ÷ mean over all slots. 1: all did
    /// what they can do alike. 0: nobody worked.
    pub imbalance: f64,
    /// Attempts that each backend accepted, in order.
    pub shares: Vec<u64>,
    /// How much time went by in the simulation.
    pub span: Duration,
}

impl SimulationReport {
    /// Errors of all requests, 0 to 1.
    #[must_use]
    pub fn error_share(&self) -> f64 {
        self.errors as f64 / self.requests.max(1) as f64
    }
}
