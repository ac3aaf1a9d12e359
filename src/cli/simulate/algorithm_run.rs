//! What is measured and then shown.

use crate::simulate::SimulationReport;

/// One workload under one algorithm.
pub(super) struct AlgorithmRun {
    pub(super) algorithm: &'static str,
    pub(super) report: SimulationReport,
}
