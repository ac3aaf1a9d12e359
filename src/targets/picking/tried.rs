//! Which backends a request has already been to.

use crate::message::BackendId;

/// How many backends a [`Tried`] remembers; a request makes at most ten attempts,
/// and one of them may get a competitor.
const PLACES: usize = 11;

/// A small set of backends, kept on the stack by whoever makes the attempts.
///
/// One too many replaces the oldest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tried {
    ids: [BackendId; PLACES],
    count: u8,
}

impl Tried {
    /// An empty set.
    #[must_use]
    pub const fn new() -> Tried {
        Tried { ids: [BackendId(0); PLACES], count: 0 }
    }

    /// Adds `id`; adding it twice changes nothing.
    pub fn insert(&mut self, id: BackendId) {
        if self.contains(id) {
            return;
        }
        self.ids[usize::from(self.count) % PLACES] = id;
        // Stays within one round once full, so that it still says which entry is the oldest.
        let round = PLACES as u8;
        self.count = if self.count == 2 * round - 1 { round } else { self.count + 1 };
    }

    /// Whether `id` was added and not replaced since.
    #[must_use]
    pub fn contains(&self, id: BackendId) -> bool {
        self.ids[..self.len()].contains(&id)
    }

    /// How many backends are in it, 0 to 11.
    #[must_use]
    pub fn len(&self) -> usize {
        usize::from(self.count).min(PLACES)
    }

    /// Whether no backend was added.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backend_zero_is_not_in_an_empty_set() {
        assert!(!Tried::new().contains(BackendId(0)));
        assert!(Tried::default().is_empty());
    }

    #[test]
    fn one_too_many_replaces_the_oldest() {
        let mut tried = Tried::new();
        for id in (0..PLACES as u32).chain([5, 7]) {
            tried.insert(BackendId(id));
        }
        assert_eq!(tried.len(), PLACES);
        for id in PLACES as u32..100 {
            tried.insert(BackendId(id));
            assert_eq!(tried.len(), PLACES);
            let oldest = id + 1 - PLACES as u32;
            assert!((oldest..=id).all(|id| tried.contains(BackendId(id))), "at {id}");
            assert!(!tried.contains(BackendId(oldest - 1)), "at {id}");
        }
    }
}
