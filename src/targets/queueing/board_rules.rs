//! The rules by which a target's backends are left out, and how many may wait.

use crate::config::model::Resilience;
use crate::targets::resilience::breaker;
use crate::targets::resilience::ejection::Spans;

/// What the words of backends are judged by.
#[derive(Debug)]
pub(in crate::targets) struct BoardRules {
    /// `None`: there is no breaker.
    pub(in crate::targets) breaker: Option<breaker::BreakerRules>,
    /// `None`: nobody is ejected.
    pub(in crate::targets) ejection: Option<Spans>,
    /// Errors one after the other for which a backend is ejected; 0: they don't count.
    pub(in crate::targets) errors: u8,
    /// Percent of the members that are ejected as outliers at once, at most.
    pub(in crate::targets) max_ejected: u32,
    /// Percent of the members; while fewer are left, ejections of outliers are set aside.
    pub(in crate::targets) panic: u32,
    /// How many may wait.
    pub(in crate::targets) queue: usize,
}

impl Default for BoardRules {
    fn default() -> Self {
        BoardRules::new(&Resilience::default())
    }
}

impl BoardRules {
    /// The rules that follow from what is configured.
    pub(in crate::targets) fn new(config: &Resilience) -> BoardRules {
        let outlier = config.outlier.as_ref();
        BoardRules {
            breaker: config.breaker.as_ref().map(breaker::BreakerRules::new),
            ejection: outlier.map(|outlier| Spans { first: outlier.ejection, most: outlier.ejection_max }),
            errors: outlier.map_or(0, |outlier| outlier.failures),
            max_ejected: outlier.map_or(0, |outlier| outlier.max_ejected.into()),
            panic: config.panic_threshold.into(),
            queue: config.queue as usize,
        }
    }
}
