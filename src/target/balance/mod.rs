//! How a place in a live set is chosen: one file per algorithm, one line each in [`Balancer`].
//!
//! An algorithm knows how many backends are live and its own words, nothing else; whether the backend at
//! that place may be used (ejected, already tried) is decided by the caller, `Target::pick`.

mod hashed;
#[cfg_attr(not(test), expect(dead_code, reason = "the pick does not call it yet"))]
pub(in crate::target) mod maglev;
#[cfg_attr(not(test), expect(dead_code, reason = "the pick does not call it yet"))]
pub(in crate::target) mod ring_hash;
mod round_robin;

use crate::config::model::Balance;
use round_robin::RoundRobin;

/// The words of every algorithm; one per target, alive across reloads.
#[derive(Debug, Default)]
pub(super) struct Balancer {
    round_robin: RoundRobin,
}

impl Balancer {
    /// The next place in a live set of `live` backends by `balance`: below `live`, or 0 when it is 0.
    #[must_use]
    pub(super) fn place(&self, balance: Balance, live: usize) -> usize {
        match balance {
            _ => self.round_robin.place(live),
        }
    }
}
