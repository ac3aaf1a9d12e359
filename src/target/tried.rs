//! Which backends a request has already been to.

use crate::message::BackendId;

/// How many backends a [`Tried`] remembers; a request makes at most three attempts.
const PLACES: usize = 4;

/// A small set of backends, kept on the stack by whoever makes the attempts.
///
/// A fifth entry replaces the oldest.
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
        // Stays within 4..8 once full, so that it still says which entry is the oldest.
        self.count = if self.count == 7 { 4 } else { self.count + 1 };
    }

    /// Whether `id` was added and not replaced since.
    #[must_use]
    pub fn contains(&self, id: BackendId) -> bool {
        self.ids[..self.len()].contains(&id)
    }

    /// How many backends are in it, 0 to 4.
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
    fn a_fifth_entry_replaces_the_oldest() {
        let mut tried = Tried::new();
        for id in [3, 3, 5, 6, 7] {
            tried.insert(BackendId(id));
        }
        assert_eq!(tried.len(), 4);
        for id in 8..30 {
            tried.insert(BackendId(id));
            assert_eq!(tried.len(), 4);
            assert!(tried.contains(BackendId(id)) && !tried.contains(BackendId(id - 5)), "at {id}");
            assert!(tried.contains(BackendId(id - 1)), "at {id}");
        }
    }
}
