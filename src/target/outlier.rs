//! Who does worse than its siblings.
//!
//! A backend is compared with what is usual among the others: the median, so that one bad backend (or a few of many)
//! does not decide what is usual, and so that where everybody fails nobody stands out. A verdict must not be chance:
//! the difference has to exceed the configured limit by [`SURE`] times what chance moves it, so a gross case is plain
//! after few attempts and a mild one after many. The window is looked at as a whole and in its newer parts, or what a
//! backend did well ten seconds ago would hide what it does now.
//!
//! False verdicts are worse than missed ones: they take capacity away. So latencies are compared by their logarithms,
//! against the slower half of the siblings, and differences that nobody notices are none.

use core::fmt;
use core::time::Duration;

use super::tally::{Counts, latency};
use crate::config::model::resilience::Outlier;
use crate::message::BackendId;

/// Slices of a window.
pub(super) const SLICES: usize = 10;
/// How many of them are looked at together, newest first.
const SPANS: [usize; 3] = [2, 5, SLICES];
/// How many standard deviations beyond the limit are no chance. Each backend is judged every second.
const SURE: f64 = 4.0;
/// How widely latencies of one backend are spread, in doublings: the standard deviation of their logarithm. Exponential
/// ones have 1.85, a route of which 90 % take 2 ms and 10 % 100 ms has 2.5.
const SPREAD: f64 = 2.5;
/// Who is slower by less is not slow, however fast its siblings are.
const NOTICEABLE: Duration = Duration::from_millis(20);

/// What a backend's attempts came to, slice by slice.
#[derive(Clone, Debug, Default)]
pub(super) struct History {
    slices: [Counts; SLICES],
    newest: usize,
}

impl History {
    /// Begins so many slices anew; the oldest are forgotten.
    pub(super) fn turn(&mut self, times: usize) {
        for _ in 0..times.min(SLICES) {
            self.newest = (self.newest + 1) % SLICES;
            self.slices[self.newest] = Counts::default();
        }
    }

    /// Adds to the newest slice.
    pub(super) fn add(&mut self, counts: Counts) {
        let newest = &mut self.slices[self.newest];
        *newest = newest.and(counts);
    }

    /// So many slices together, from the newest on.
    fn newest(&self, slices: usize) -> Counts {
        let places = (0..slices.min(SLICES)).map(|back| (self.newest + SLICES - back) % SLICES);
        places.fold(Counts::default(), |sum, place| sum.and(self.slices[place]))
    }
}

/// A backend among siblings.
#[derive(Clone, Debug)]
pub(super) struct Subject<'a> {
    pub(super) id: BackendId,
    pub(super) history: &'a History,
    /// Its latency may be held against it.
    pub(super) timed: bool,
}

/// What is wrong with a backend.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Fault {
    /// Shares of attempts, 0 to 1.
    Errors { own: f64, usual: f64 },
    /// Geometric means.
    Latency { own: Duration, usual: Duration },
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Fault::Errors { own, usual } => {
                write!(f, "{} errors, its siblings have {}", Share(own), Share(usual))
            }
            Fault::Latency { own, usual } => {
                write!(f, "answers in {}, its siblings in {}", Span(own), Span(usual))
            }
        }
    }
}

/// To a percent, without hiding a few errors.
struct Share(f64);

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 * 100.0 {
            few if few > 0.0 && few < 0.5 => f.write_str("under 1%"),
            share => write!(f, "{share:.0}%"),
        }
    }
}

/// To two digits or so.
struct Span(Duration);

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.as_secs_f64() * 1e3 {
            short if short < 9.95 => write!(f, "{short:.1}ms"),
            millis if millis < 999.5 => write!(f, "{millis:.0}ms"),
            millis => write!(f, "{:.1}s", millis / 1e3),
        }
    }
}

/// A backend that does worse than its siblings.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Outlying {
    pub(super) id: BackendId,
    pub(super) fault: Fault,
    /// How far beyond what is usual: added errors, or how many doublings slower.
    excess: f64,
}

impl Outlying {
    /// Errors before slowness, then the worst, then the oldest.
    pub(super) fn order(&self, other: &Outlying) -> core::cmp::Ordering {
        let slow = |one: &Outlying| matches!(one.fault, Fault::Latency { .. });
        slow(self)
            .cmp(&slow(other))
            .then(other.excess.total_cmp(&self.excess))
            .then(self.id.0.cmp(&other.id.0))
    }
}

/// How many more of so many backends may be left out when so many are: at most the configured share, but one where there
/// are siblings at all, and never the last.
#[must_use]
pub(super) fn room(backends: usize, out: usize, rules: &Outlier) -> usize {
    let share = backends * usize::from(rules.max_ejected.min(100)) / 100;
    let most = if rules.max_ejected == 0 { 0 } else { share.max(1) };
    most.min(backends.saturating_sub(1)).saturating_sub(out)
}

/// Which of these siblings are outliers, worst first.
#[must_use]
pub(super) fn judge(siblings: &[Subject<'_>], rules: &Outlier) -> Vec<Outlying> {
    let mut found: Vec<Outlying> = Vec::new();
    for span in SPANS {
        let counted: Vec<(&Subject<'_>, Counts)> =
            siblings.iter().map(|subject| (subject, subject.history.newest(span))).collect();
        if rules.error_rate > 0 {
            found.extend(failing(&counted, rules));
        }
        if rules.latency > 1 {
            found.extend(slow(&counted, rules));
        }
    }
    found.sort_by(Outlying::order);
    let mut known = std::collections::BTreeSet::new();
    found.retain(|outlying| known.insert(outlying.id.0));
    found
}

fn failing(counted: &[(&Subject<'_>, Counts)], rules: &Outlier) -> Vec<Outlying> {
    let enough = |counts: &Counts| counts.attempts >= rules.requests.max(1);
    let mut rated: Vec<(BackendId, f64, f64)> = counted
        .iter()
        .filter(|(_, counts)| enough(counts))
        .map(|(subject, counts)| {
            (subject.id, f64::from(counts.errors) / f64::from(counts.attempts), f64::from(counts.attempts))
        })
        .collect();
    rated.sort_by(|one, other| one.1.total_cmp(&other.1).then(one.2.total_cmp(&other.2)));
    let limit = f64::from(rules.error_rate) / 100.0;
    let judge = |(place, &(id, own, attempts)): (usize, &(BackendId, f64, f64))| {
        // Of two in the middle the better one: half of the siblings may fail as well.
        let &(_, usual, theirs) = rated.get(beside(place, rated.len(), false)?)?;
        let excess = own - usual;
        let chance = (variance(own, attempts) + variance(usual, theirs)).sqrt();
        let fault = Fault::Errors { own, usual };
        (excess - SURE * chance > limit).then_some(Outlying { id, fault, excess })
    };
    rated.iter().enumerate().filter_map(judge).collect()
}

/// Of a share of so many. As if one more had failed and one more had not, since a few attempts without an error do not
/// prove that there never is one.
fn variance(share: f64, of: f64) -> f64 {
    let share = (share * of + 1.0) / (of + 2.0);
    share * (1.0 - share) / of
}

fn slow(counted: &[(&Subject<'_>, Counts)], rules: &Outlier) -> Vec<Outlying> {
    let enough = |counts: &Counts| counts.timed >= rules.requests.max(1);
    let mut rated: Vec<(&Subject<'_>, f64, f64)> = counted
        .iter()
        .filter(|(_, counts)| enough(counts))
        .filter_map(|(subject, counts)| Some((*subject, counts.doublings()?, f64::from(counts.timed))))
        .collect();
    rated.sort_by(|one, other| one.1.total_cmp(&other.1).then(one.2.total_cmp(&other.2)));
    let limit = f64::from(rules.latency).log2();
    let judge = |(place, (subject, own, attempts)): (usize, &(&Subject<'_>, f64, f64))| {
        // Of two in the middle the slower one: backends may well differ.
        let (_, usual, theirs) = rated.get(beside(place, rated.len(), true)?)?;
        let excess = own - usual;
        let chance = SPREAD * (1.0 / attempts + 1.0 / theirs).sqrt();
        let (own, usual) = (latency(*own), latency(*usual));
        let is_slow = excess - SURE * chance > limit && own.saturating_sub(usual) >= NOTICEABLE;
        let fault = Fault::Latency { own, usual };
        (subject.timed && is_slow).then_some(Outlying { id: subject.id, fault, excess })
    };
    rated.iter().enumerate().filter_map(judge).collect()
}

/// The place of the median of all but the one at `place`, of so many in order; where two are in the middle the lower or
/// the `upper` one. `None`: there is nobody else.
fn beside(place: usize, len: usize, upper: bool) -> Option<usize> {
    let others = len.checked_sub(1).filter(|&others| others > 0)?;
    let middle = (others - usize::from(!upper)) / 2;
    Some(middle + usize::from(place <= middle))
}

#[cfg(test)]
mod tests;
