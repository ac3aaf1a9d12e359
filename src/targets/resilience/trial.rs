//! What one attempt finds out, and what the head of its answer has told so far.

use core::time::Duration;

use crate::tick::Tick;

/// Who is needed gets a request within this time, even where there is hardly any traffic.
const UNASKED: Duration = Duration::from_secs(1);

/// Whether one that was left out until then has been free for a trial for so long that nobody seems to need it: a backup, most
/// often. Nothing is known against it any more, so it counts among those that are left.
pub(in crate::targets) fn is_free_for_trial(until: Tick, now: Tick) -> bool {
    until != Tick::NEVER && until.after(UNASKED) <= now
}

/// What an attempt finds out about its backend.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::targets) struct Trial {
    /// Whether its breaker may close.
    pub(in crate::targets) breaker: bool,
    /// Whether its ejection may end.
    pub(in crate::targets) ejection: bool,
}

impl Trial {
    /// Nothing: it is one of many.
    pub(in crate::targets) const NONE: Trial = Trial { breaker: false, ejection: false };

    /// Whether it finds out anything.
    pub(in crate::targets) fn is_any(self) -> bool {
        self.breaker || self.ejection
    }
}

/// What the head of an answer said, as far as the end of the attempt has to know.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::targets) struct Told {
    pub(in crate::targets) answered: bool,
    /// See [`Heard::error`].
    pub(in crate::targets) error: bool,
    /// See [`Heard::failure`].
    pub(in crate::targets) failure: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trial_that_somebody_may_be_about_to_make_does_not_count_yet() {
        let at = |millis: u64| Tick(millis * 1_000_000);
        assert!(!is_free_for_trial(at(5_000), at(5_999)) && is_free_for_trial(at(5_000), at(6_000)));
        assert!(!is_free_for_trial(Tick::NEVER, Tick::NEVER), "one is finding out");
    }
}
