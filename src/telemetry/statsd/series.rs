//! One series, and what it is called.

use crate::telemetry::exposition::Labels;

/// What of a family's samples a series is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum SeriesPart {
    /// All there is.
    Whole,
    /// How many times there were.
    Count,
    /// What they add up to, in whole microseconds: receivers take whole numbers everywhere.
    Microseconds,
}

/// One series.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SeriesKey {
    /// As Prometheus is told.
    pub(super) family: &'static str,
    pub(super) part: SeriesPart,
    pub(super) labels: Labels,
}

impl SeriesKey {
    /// Its name without labels: `evenkeel.requests` for `evenkeel_requests_total`.
    pub(super) fn name(&self) -> String {
        let base = self.family.strip_suffix("_total").unwrap_or(self.family);
        let (base, part) = match self.part {
            SeriesPart::Whole => (base, ""),
            SeriesPart::Count => (base.strip_suffix("_seconds").unwrap_or(base), ".count"),
            SeriesPart::Microseconds => (base.strip_suffix("_seconds").unwrap_or(base), ".microseconds"),
        };
        base.replacen('_', ".", 1) + part
    }

    /// The same with another value of this label; `None`: it has no such label.
    pub(super) fn with(&self, label: &str, value: &str) -> Option<SeriesKey> {
        let (mut labels, mut is_there) = (Labels::none(), false);
        for (name, before) in self.labels.pairs() {
            is_there |= name == label;
            labels.add((name, if name == label { value } else { &before }));
        }
        is_there.then_some(SeriesKey { labels, ..*self })
    }

    /// Whether it is one of those with this label.
    pub(super) fn has(&self, label: &str, value: &str) -> bool {
        self.labels.pairs().any(|(name, own)| name == label && own == value)
    }
}
