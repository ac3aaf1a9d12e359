//! The less busy of two backends drawn at random (Mitzenmacher, "The power of two choices in randomized load
//! balancing", 1996): nearly as even as looking at all of them, at the price of looking at two, and without the herd
//! that several load balancers make when each sends everything to what it takes for the least busy one.

use super::algorithm::{Algorithm, Draw};
use super::smooth::Order;
use crate::targets::picking::candidates::Lineup;

/// The places to draw from, each as often as its weight says.
#[derive(Debug)]
pub(super) struct PowerOfTwo(Pairs);

impl Algorithm for PowerOfTwo {
    fn new(lineup: &Lineup<'_>) -> Self {
        PowerOfTwo(Pairs::new(lineup))
    }

    fn draw(&self, draw: &Draw<'_>) -> Option<usize> {
        self.0.better(draw, |one, other| draw.load(one) < draw.load(other))
    }
}

/// Two different places at a time.
#[derive(Debug)]
pub(super) struct Pairs(Order);

impl Pairs {
    /// For the places of a tier.
    pub(super) fn new(lineup: &Lineup<'_>) -> Pairs {
        Pairs(Order::new(lineup.weights))
    }

    /// Of two places drawn at random the one that may be picked. When both may, it is the second if that `beats` the
    /// first.
    pub(super) fn better(&self, draw: &Draw<'_>, beats: impl Fn(usize, usize) -> bool) -> Option<usize> {
        let (len, chance) = (self.0.len(), draw.ask.chance);
        let nth = chance.below(len);
        let first = self.0.place(nth);
        // The second is one of the other turns; with weights it may be another turn of the same backend.
        let second = self.0.place((nth + 1 + chance.below(len.saturating_sub(1))) % len.max(1));
        match (draw.may(first), first != second && draw.may(second)) {
            (true, true) if beats(second, first) => Some(second),
            (true, _) => Some(first),
            (false, true) => Some(second),
            (false, false) => None,
        }
    }
}
