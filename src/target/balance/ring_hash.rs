//! Placeholder.

use super::smooth::Order;
use super::{Algorithm, Draw};
use crate::target::tier::Lineup;

/// Placeholder.
#[derive(Debug)]
pub(super) struct RingHash(Order);

impl Algorithm for RingHash {
    fn new(lineup: &Lineup<'_>) -> Self {
        RingHash(Order::new(lineup.weights))
    }

    fn draw(&self, draw: &Draw<'_>) -> Option<usize> {
        let place = self.0.place(draw.ask.dice.below(self.0.len()));
        draw.may(place).then_some(place)
    }
}
