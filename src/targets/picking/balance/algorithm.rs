//! What an algorithm is asked, and what it is asked with.

use std::sync::Arc;

use crate::targets::Ask;
use crate::targets::picking::candidates::{Candidates, Lineup};
use crate::targets::queueing::wants::Wants;
use crate::targets::state::objects::Board;

use super::cursor::Cursor;
use super::rank::Rank;

/// One pick: who is there, and for whom.
#[derive(Clone, Copy)]
pub(in crate::targets) struct Draw<'a> {
    /// The backends.
    pub(in crate::targets) tier: &'a Candidates,
    /// What outlives the live set.
    pub(in crate::targets) board: &'a Arc<Board>,
    /// Whose turn it is.
    pub(in crate::targets) cursor: &'a Cursor,
    /// The request.
    pub(in crate::targets) ask: &'a Ask<'a>,
}

impl Draw<'_> {
    /// Whether the backend at `place` may be picked for this request.
    #[inline]
    pub(in crate::targets) fn may(&self, place: usize) -> bool {
        self.tier.may(place, self.ask)
    }

    /// What is hashed; chance where the request has nothing.
    pub(in crate::targets) fn key(&self) -> u64 {
        self.ask.key.unwrap_or_else(|| self.ask.chance.bits())
    }

    /// How busy the backend at `place` would be with this request, for each unit of its weight.
    #[inline]
    pub(in crate::targets) fn load(&self, place: usize) -> f64 {
        let weight = self.tier.weights.get(place).map_or(1.0, |&weight| f64::from(weight));
        self.tier.load(place) + 1.0 / weight
    }
}

/// A way to choose.
pub(in crate::targets) trait Algorithm: Sized {
    /// What it wants to hear of leases.
    const WANTS: Wants = Wants::Nothing;
    /// How often it is asked before any backend will do. Another draw keeps its order among those that may be picked.
    const DRAWS: usize = 8;

    /// Computes what it needs for these backends. Called on control, whenever the live set changes.
    fn new(lineup: &Lineup<'_>) -> Self;

    /// The same, where this was computed for the same configured backends, perhaps with others up.
    fn anew(&self, lineup: &Lineup<'_>) -> Self {
        Self::new(lineup)
    }

    /// A place that may be picked, or `None`: what it drew may not, another draw may be luckier.
    fn draw(&self, draw: &Draw<'_>) -> Option<usize>;

    /// For [`Wants::Order`]: the order of loads that it picks the first of. Then `draw` is not called.
    fn rank(&self, lineup: &Lineup<'_>) -> Option<Rank> {
        let _ = lineup;
        None
    }
}
