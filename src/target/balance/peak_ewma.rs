//! Placeholder.

use super::smooth::Order;
use super::{Algorithm, Draw};
use crate::target::tier::Lineup;

/// Placeholder.
#[derive(Debug)]
pub(super) struct PeakEwma(Order);

impl Algorithm for PeakEwma {
    fn new(lineup: &Lineup<'_>) -> Self {
        PeakEwma(Order::new(lineup.weights))
    }

    fn draw(&self, draw: &Draw<'_>) -> Option<usize> {
        let place = self.0.place(draw.ask.dice.below(self.0.len()));
        draw.may(place).then_some(place)
    }
}
