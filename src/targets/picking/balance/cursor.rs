//! The ticket counter of one target: whichever threads draw, any `n` tickets in a row are one turn of an order of `n`.

use std::sync::atomic::{AtomicU64, Ordering};

use super::smooth::Order;
use crate::targets::Padded;

/// The ticket counter of one target; it outlives live sets.
#[derive(Debug, Default)]
pub(in crate::targets) struct Cursor(Padded<AtomicU64>);

impl Cursor {
    /// The next place in an order.
    #[inline]
    pub(super) fn place(&self, order: &Order) -> usize {
        let ticket = self.0.fetch_add(1, Ordering::Relaxed);
        let nth = ticket.checked_rem(order.len() as u64).unwrap_or(0);
        order.place(usize::try_from(nth).expect("a remainder of a usize fits a usize"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_stretch_of_n_tickets_is_one_turn() {
        let cursor = Cursor::default();
        for live in [3, 2, 5, 1] {
            for _ in 0..4 {
                let mut turn: Vec<usize> = (0..live).map(|_| cursor.place(&Order::Even(live))).collect();
                turn.sort_unstable();
                assert!(turn.into_iter().eq(0..live));
            }
        }
        assert_eq!(cursor.place(&Order::Even(0)), 0);
    }
}
