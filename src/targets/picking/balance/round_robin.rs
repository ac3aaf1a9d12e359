//! Each backend in turn, exactly, over all workers; with weights in the smooth order.
//!
//! One ticket counter for a target in the whole process: whichever threads draw them, any `n` tickets in a row are
//! one turn of an order of `n`. It costs a contended add per request, which is far below the system calls
//! around it; a counter per worker would be exact for each worker only.

use super::algorithm::{Algorithm, Draw};
use super::smooth::Order;
use crate::targets::picking::candidates::Lineup;

/// The turns of one live set.
#[derive(Debug)]
pub(super) struct RoundRobin(Order);

impl Algorithm for RoundRobin {
    fn new(lineup: &Lineup<'_>) -> Self {
        RoundRobin(Order::new(lineup.weights))
    }

    #[inline]
    fn draw(&self, draw: &Draw<'_>) -> Option<usize> {
        let place = draw.cursor.place(&self.0);
        draw.may(place).then_some(place)
    }
}
