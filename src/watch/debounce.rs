//! When what has changed is loaded: several files that change one after the other are one change.

use std::time::Duration;

use crate::tick::Tick;

/// For how long nothing has changed before it is loaded.
pub(super) const QUIET: Duration = Duration::from_secs(1);
/// From the first change to the load at the latest.
pub(super) const LATEST: Duration = Duration::from_secs(5);

/// The changes since the last load.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Debounce {
    /// The first one and the last one.
    changes: Option<(Tick, Tick)>,
}

impl Debounce {
    /// Something has changed.
    pub(super) fn changed(&mut self, now: Tick) {
        let first = self.changes.map_or(now, |(first, _)| first);
        self.changes = Some((first, now));
    }

    /// When to load, if nothing else changes; `None`: nothing has changed.
    #[must_use]
    pub(super) fn due(&self) -> Option<Tick> {
        self.changes.map(|(first, last)| last.after(QUIET).min(first.after(LATEST)))
    }

    /// Whether it is time to load.
    #[must_use]
    pub(super) fn is_due(&self, now: Tick) -> bool {
        self.due().is_some_and(|due| due <= now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(millis: u64) -> Tick {
        Tick(1).after(Duration::from_millis(millis))
    }

    #[test]
    fn nothing_is_due_before_anything_has_changed() {
        assert_eq!(Debounce::default().due(), None);
        assert!(!Debounce::default().is_due(Tick::NEVER));
    }

    #[test]
    fn one_change_is_due_after_a_second_of_quiet() {
        let mut debounce = Debounce::default();
        debounce.changed(after(0));
        assert!(!debounce.is_due(after(999)));
        assert!(debounce.is_due(after(1_000)));
        debounce.changed(after(900));
        assert!(!debounce.is_due(after(1_899)));
        assert!(debounce.is_due(after(1_900)));
    }

    #[test]
    fn what_never_rests_is_due_five_seconds_after_its_first_change() {
        let mut debounce = Debounce::default();
        for millis in 0..5_000 {
            debounce.changed(after(millis));
            assert!(!debounce.is_due(after(millis)), "{millis}");
        }
        debounce.changed(after(5_000));
        assert!(debounce.is_due(after(5_000)));
    }
}
