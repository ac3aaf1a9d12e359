//! Who does worse than its siblings.
//!
//! A backend is compared with what is usual among the others: the median, so that one bad backend (or a few of many)
//! does not decide what is usual, and so that where everybody fails nobody stands out. A verdict must not be chance:
//! the difference has to exceed the configured limit by [`SURE`] times what chance moves it, so a gross case is plain
//! after few attempts and a mild one after many.
//!
//! Errors are looked for in the whole window and in its newer parts, or what a backend did well ten seconds ago would
//! hide what it does now. Slowness takes longer: a backend that has had too much for some seconds has a queue, and all
//! that it answers comes late, as from one that is slow; its siblings will have theirs. To leave it out would only make
//! their queues longer. So who is slow must have been slower in each third of the window than the siblings in any.
//!
//! False verdicts are worse than missed ones: they take capacity away. So latencies are compared by their logarithms,
//! against the slower half of the siblings, and differences that nobody notices are none.

use core::fmt;
use core::ops::Range;
use core::time::Duration;

use crate::config::model::resilience::Outlier;
use crate::message::BackendId;
use crate::targets::resilience::attempt_counts::{Counts, latency};
use crate::targets::resilience::ejection::EjectionKind;

/// Slices of a window.
pub(in crate::targets) const SLICES: usize = 10;
/// In how many of the newest together errors are looked for.
const SPANS: [usize; 3] = [2, 5, SLICES];
/// The thirds of a window, the newest slice being 0.
const THIRDS: [Range<usize>; 3] = [0..3, 3..6, 6..SLICES];
/// How many standard deviations beyond the limit are no chance. Each backend is judged every second.
const SURE: f64 = 4.0;
/// The same for latencies, of which the best third is compared with the worst.
const SURE_OF_THIRDS: f64 = 2.0;
/// How widely latencies of one backend are spread, in doublings: the standard deviation of their logarithm. Exponential
/// ones have 1.85, a route of which 90 % take 2 ms and 10 % 100 ms has 2.5.
const SPREAD: f64 = 2.5;
/// Who is slower by less is not slow, however fast its siblings are.
const NOTICEABLE: Duration = Duration::from_millis(20);

/// What a backend's attempts came to, slice by slice.
#[derive(Clone, Debug, Default)]
pub(in crate::targets) struct History {
    slices: [Counts; SLICES],
    newest: usize,
}

impl History {
    /// Begins so many slices anew; the oldest are forgotten.
    pub(in crate::targets) fn turn(&mut self, times: usize) {
        for _ in 0..times.min(SLICES) {
            self.newest = (self.newest + 1) % SLICES;
            self.slices[self.newest] = Counts::default();
        }
    }

    /// Adds to the newest slice.
    pub(in crate::targets) fn add(&mut self, counts: Counts) {
        let newest = &mut self.slices[self.newest];
        *newest = newest.and(counts);
    }

    /// Some slices together, the newest being 0.
    fn sum(&self, slices: Range<usize>) -> Counts {
        let places = slices.map(|back| (self.newest + SLICES - back % SLICES) % SLICES);
        places.fold(Counts::default(), |sum, place| sum.and(self.slices[place]))
    }
}

/// A backend among siblings.
#[derive(Clone, Debug)]
pub(in crate::targets) struct Subject<'a> {
    pub(in crate::targets) id: BackendId,
    pub(in crate::targets) history: &'a History,
    /// Whether its latency may be held against it.
    pub(in crate::targets) timed: Timed,
}

/// Whether a backend's latency may be held against it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::targets) enum Timed {
    /// No: there are reasons for it that are not its own.
    Never,
    /// If it is slow for a whole window.
    Lastingly,
    /// If it is slow in the newest third: it has been left out for that not long ago.
    Again,
}

/// What is wrong with a backend.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::targets) enum OutlierFault {
    /// Shares of attempts, 0 to 1.
    Errors { own: f64, usual: f64 },
    /// Geometric means.
    Latency { own: Duration, usual: Duration },
}

impl OutlierFault {
    /// What it is ejected for.
    pub(in crate::targets) fn kind(self) -> EjectionKind {
        match self {
            OutlierFault::Errors { .. } => EjectionKind::Failing,
            OutlierFault::Latency { .. } => EjectionKind::Slow,
        }
    }
}

impl fmt::Display for OutlierFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            OutlierFault::Errors { own, usual } => {
                write!(f, "{} errors, its siblings have {}", Share(own), Share(usual))
            }
            OutlierFault::Latency { own, usual } => {
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
pub(in crate::targets) struct Outlying {
    pub(in crate::targets) id: BackendId,
    pub(in crate::targets) fault: OutlierFault,
    /// How far beyond what is usual: added errors, or how many doublings slower.
    excess: f64,
}

impl Outlying {
    /// Errors before slowness, then the worst, then the oldest.
    pub(in crate::targets) fn order(&self, other: &Outlying) -> core::cmp::Ordering {
        let slow = |one: &Outlying| one.fault.kind() == EjectionKind::Slow;
        slow(self)
            .cmp(&slow(other))
            .then(other.excess.total_cmp(&self.excess))
            .then(self.id.0.cmp(&other.id.0))
    }
}

/// How many more of so many backends may be left out when so many are: the configured share at most, and never the last.
#[must_use]
pub(in crate::targets) fn room(backends: usize, out: usize, rules: &Outlier) -> usize {
    let share = backends * usize::from(rules.max_ejected.min(100)) / 100;
    share.min(backends.saturating_sub(1)).saturating_sub(out)
}

/// Which of these siblings are outliers, worst first.
#[must_use]
pub(in crate::targets) fn judge(siblings: &[Subject<'_>], rules: &Outlier) -> Vec<Outlying> {
    let mut found: Vec<Outlying> = Vec::new();
    if rules.error_rate > 0 {
        for span in SPANS {
            found.extend(failing(siblings, span, rules));
        }
    }
    if rules.latency > 1 {
        found.extend(slow(siblings, rules));
    }
    found.sort_by(Outlying::order);
    let mut known = std::collections::BTreeSet::new();
    found.retain(|outlying| known.insert(outlying.id.0));
    found
}

fn failing(siblings: &[Subject<'_>], span: usize, rules: &Outlier) -> Vec<Outlying> {
    let rate = |subject: &Subject<'_>| {
        let Counts { attempts, errors, .. } = subject.history.sum(0..span);
        let share = f64::from(errors) / f64::from(attempts.max(1));
        (attempts >= rules.requests.max(1)).then_some((subject.id, share, f64::from(attempts)))
    };
    let mut rated: Vec<(BackendId, f64, f64)> = siblings.iter().filter_map(rate).collect();
    rated.sort_by(|one, other| one.1.total_cmp(&other.1).then(one.2.total_cmp(&other.2)));
    let limit = f64::from(rules.error_rate) / 100.0;
    let judge = |(place, &(id, own, attempts)): (usize, &(BackendId, f64, f64))| {
        // Of two in the middle the better one: half of the siblings may fail as well.
        let &(_, usual, theirs) = rated.get(beside(place, rated.len(), false)?)?;
        let excess = own - usual;
        let chance = (variance(own, attempts) + variance(usual, theirs)).sqrt();
        let fault = OutlierFault::Errors { own, usual };
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

/// How soon a backend answers.
#[derive(Clone, Copy, Debug)]
struct Pace {
    /// In the best third that counts, in doublings; `None`: too little is known of one that does.
    best: Option<f64>,
    /// In the worst third of which enough is known.
    worst: f64,
    /// The fewest attempts that one of these is made of.
    of: f64,
}

impl Pace {
    fn new(subject: &Subject<'_>, rules: &Outlier) -> Option<Pace> {
        let few = (rules.requests / 3).max(1);
        let thirds = THIRDS.map(|third| subject.history.sum(third));
        let known = thirds.iter().filter(|counts| counts.timed >= few);
        let worst = known.clone().filter_map(|counts| counts.doublings()).reduce(f64::max)?;
        let counting = match subject.timed {
            Timed::Again => &thirds[..1],
            Timed::Lastingly | Timed::Never => &thirds[..],
        };
        let attempts: u32 = counting.iter().map(|counts| counts.timed).sum();
        let enough = attempts >= rules.requests && counting.iter().all(|counts| counts.timed >= few);
        let best = counting.iter().filter_map(|counts| counts.doublings()).reduce(f64::min);
        let of = known.map(|counts| counts.timed).min()?;
        Some(Pace { best: best.filter(|_| enough), worst, of: f64::from(of) })
    }
}

fn slow(siblings: &[Subject<'_>], rules: &Outlier) -> Vec<Outlying> {
    let pace = |subject| Some((subject, Pace::new(subject, rules)?));
    let mut paced: Vec<(&Subject<'_>, Pace)> = siblings.iter().filter_map(pace).collect();
    paced.sort_by(|(_, one), (_, other)| one.worst.total_cmp(&other.worst).then(one.of.total_cmp(&other.of)));
    let limit = f64::from(rules.latency).log2();
    let judge = |(place, (subject, pace)): (usize, &(&Subject<'_>, Pace))| {
        // Of two in the middle the slower one: backends may well differ.
        let (_, usual) = paced.get(beside(place, paced.len(), true)?)?;
        let own = pace.best.filter(|_| subject.timed != Timed::Never)?;
        let excess = own - usual.worst;
        let chance = SPREAD * (1.0 / pace.of + 1.0 / usual.of).sqrt();
        let (own, usual) = (latency(own), latency(usual.worst));
        let is_slow = excess - SURE_OF_THIRDS * chance > limit && own.saturating_sub(usual) >= NOTICEABLE;
        let fault = OutlierFault::Latency { own, usual };
        is_slow.then_some(Outlying { id: subject.id, fault, excess })
    };
    paced.iter().enumerate().filter_map(judge).collect()
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
