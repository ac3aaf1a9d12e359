//! Any backend, as often as its weight says. Needs no shared word at all, and is as uneven as chance.

use super::algorithm::{Algorithm, Draw};
use super::smooth::Order;
use crate::targets::picking::candidates::Lineup;

/// The places, each as often as its weight says.
#[derive(Debug)]
pub(super) struct Random(Order);

impl Algorithm for Random {
    fn new(lineup: &Lineup<'_>) -> Self {
        Random(Order::new(lineup.weights))
    }

    fn draw(&self, draw: &Draw<'_>) -> Option<usize> {
        let place = self.0.place(draw.ask.chance.below(self.0.len()));
        draw.may(place).then_some(place)
    }
}
