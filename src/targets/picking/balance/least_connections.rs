//! The backend with the fewest requests in flight for its weight. Always a least one, found without a scan, see `rank`;
//! equals take turns by weight.

use super::algorithm::{Algorithm, Draw};
use super::rank::{Rank, ranked};
use crate::targets::picking::candidates::Lineup;
use crate::targets::queueing::wants::Wants;

/// The order itself is kept by the board: every lease changes it.
#[derive(Debug)]
pub(super) struct LeastConnections;

impl Algorithm for LeastConnections {
    const WANTS: Wants = Wants::Order;

    fn new(_: &Lineup<'_>) -> Self {
        LeastConnections
    }

    fn draw(&self, _: &Draw<'_>) -> Option<usize> {
        None
    }

    fn rank(&self, lineup: &Lineup<'_>) -> Option<Rank> {
        Some(ranked(lineup.policy.owner, lineup.weights))
    }
}
