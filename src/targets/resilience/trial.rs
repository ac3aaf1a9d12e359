//! What one attempt finds out, and what the head of its answer has told so far.

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
