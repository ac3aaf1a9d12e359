//! The backend with the fewest requests in flight or waiting for it, whatever its weight: for workers that take one request at a
//! time, in their thousands. The order is exact, see `rank`.

use super::algorithm::{Algorithm, Draw};
use super::rank::{Rank, ranked};
use crate::targets::picking::candidates::Lineup;
use crate::targets::queueing::wants::Wants;

/// The order itself is kept by the board: every lease changes it.
#[derive(Debug)]
pub(super) struct LeastBusy;

impl Algorithm for LeastBusy {
    const WANTS: Wants = Wants::Order;

    fn new(_: &Lineup<'_>) -> Self {
        LeastBusy
    }

    fn draw(&self, _: &Draw<'_>) -> Option<usize> {
        None
    }

    fn rank(&self, lineup: &Lineup<'_>) -> Option<Rank> {
        Some(ranked(lineup.policy.owner, &vec![1; lineup.weights.len()]))
    }
}
