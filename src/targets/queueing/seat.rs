//! A backend's place in the live set.

use std::sync::atomic::{AtomicU64, Ordering};

/// Where a backend is in the live set: the number of its tier and its place there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::targets) struct Seat {
    pub(in crate::targets) tier: u32,
    pub(in crate::targets) place: u32,
}

/// A backend's seat, written under the board's mutex only.
#[derive(Debug)]
pub(in crate::targets) struct SeatWord(AtomicU64);

impl Default for SeatWord {
    fn default() -> Self {
        SeatWord(AtomicU64::new(SeatWord::NONE))
    }
}

impl SeatWord {
    const NONE: u64 = u64::MAX;

    pub(in crate::targets) fn read(&self) -> Option<Seat> {
        let word = self.0.load(Ordering::Relaxed);
        let half = |word: u64| u32::try_from(word & u64::from(u32::MAX)).expect("32 bits");
        (word != Self::NONE).then(|| Seat { tier: half(word >> 32), place: half(word) })
    }

    pub(in crate::targets) fn write(&self, seat: Option<Seat>) {
        let word = seat.map_or(Self::NONE, |seat| u64::from(seat.tier) << 32 | u64::from(seat.place));
        self.0.store(word, Ordering::Relaxed);
    }
}
