//! What comes of a count that only grows: its rate now, and those of the last minute.

use std::collections::VecDeque;

/// Rates that are kept, one for each frame.
pub(super) const RATES: usize = 60;

/// Requests since the process began, and how many of them were errors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct RowCounts {
    pub(super) requests: u64,
    pub(super) errors: u64,
}

/// What came between frames. All of it is unknown until two of them are there.
#[derive(Clone, Debug, Default)]
pub(super) struct Track {
    last: Option<RowCounts>,
    rate: Option<f64>,
    errors: f64,
    rates: VecDeque<f64>,
}

impl Track {
    /// Goes on with the counts of a frame, `seconds` after the one before; 0: there is none that can be compared.
    pub(super) fn follow(&mut self, now: RowCounts, seconds: f64) {
        let last = self.last.replace(now);
        let Some(last) = last.filter(|_| seconds > 0.0) else { return };
        let came = |now: u64, last: u64| to_float(now.saturating_sub(last)) / seconds;
        let rate = came(now.requests, last.requests);
        self.rate = Some(rate);
        self.errors = came(now.errors, last.errors);
        if self.rates.len() == RATES {
            self.rates.pop_front();
        }
        self.rates.push_back(rate);
    }

    /// Requests per second.
    pub(super) fn rate(&self) -> Option<f64> {
        self.rate
    }

    /// Errors per second.
    pub(super) fn errors(&self) -> f64 {
        self.errors
    }

    /// The part of the requests that are errors, from 0 to 1; `None`: there were no requests.
    pub(super) fn share(&self) -> Option<f64> {
        self.rate.filter(|rate| *rate > 0.0).map(|rate| (self.errors / rate).min(1.0))
    }

    /// The latest rates, the oldest first.
    pub(super) fn rates(&self) -> impl ExactSizeIterator<Item = f64> + '_ {
        self.rates.iter().copied()
    }
}

#[expect(clippy::cast_precision_loss, reason = "figures for people")]
pub(super) fn to_float(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_what_came_between_two_frames() {
        let counts = |requests, errors| RowCounts { requests, errors };
        let mut track = Track::default();
        track.follow(counts(1_000, 10), 1.0);
        assert_eq!((track.rate(), track.share()), (None, None), "one frame says nothing");
        track.follow(counts(1_040, 20), 2.0);
        assert_eq!((track.rate(), track.errors(), track.share()), (Some(20.0), 5.0, Some(0.25)));
        track.follow(counts(1_040, 20), 1.0);
        assert_eq!((track.rate(), track.share()), (Some(0.0), None));
        track.follow(counts(3, 0), 1.0);
        assert_eq!(track.rate(), Some(0.0), "counts that fall are those of something else");
        for more in 0..100 {
            track.follow(counts(3 + more, 0), 1.0);
        }
        assert_eq!((track.rates().len(), track.rates().last()), (RATES, Some(1.0)));
    }
}
