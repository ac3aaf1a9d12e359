//! Whether a target has too few backends, or more than it needs: what was last found, for those who ask.

use std::sync::atomic::{AtomicU8, Ordering};

/// What is found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ScaleSignal {
    /// Neither, or nobody looks.
    #[default]
    None,
    /// It needs more.
    Out,
    /// It would do with fewer.
    In,
}

impl ScaleSignal {
    /// As the API says it; `None`: nothing is said.
    #[must_use]
    pub fn word(self) -> Option<&'static str> {
        match self {
            ScaleSignal::None => None,
            ScaleSignal::Out => Some("out"),
            ScaleSignal::In => Some("in"),
        }
    }
}

/// What was last found. One task writes it.
#[derive(Debug, Default)]
pub(in crate::targets) struct ScaleWord(AtomicU8);

impl ScaleWord {
    pub(in crate::targets) fn set(&self, signal: ScaleSignal) {
        self.0.store(signal as u8, Ordering::Relaxed);
    }

    pub(in crate::targets) fn get(&self) -> ScaleSignal {
        match self.0.load(Ordering::Relaxed) {
            1 => ScaleSignal::Out,
            2 => ScaleSignal::In,
            _ => ScaleSignal::None,
        }
    }
}
