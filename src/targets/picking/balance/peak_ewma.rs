//! The one of two backends drawn at random whose answer is expected sooner: what it took lately × the requests that it
//! has ÷ its weight. Finagle's and Linkerd's balancer, with faults in the price; `targets::answers` has the rules.
//!
//! What `evenkeel simulate` makes of it, beside `power_of_two`: of `failing_fast` 0.2 % errors instead of 60 %, of `one_slow`
//! a p99 of 101 ms instead of 303 ms, and on workloads in which all backends are alike 1 to 2 % more (`even`: 116 ms, 114 ms).
//! A backend that has recovered from failing is trusted again after 2 to 5 s, sooner when the others are busy.

use super::algorithm::{Algorithm, Draw};
use super::power_of_two::Pairs;
use crate::targets::picking::candidates::Lineup;
use crate::targets::queueing::wants::Wants;

/// How many pairs are drawn while all that come up rest.
const PAIRS: usize = 4;
/// How many backends are looked at after that.
const LOOKS: usize = 128;

/// The places to draw from, each as often as its weight says.
#[derive(Debug)]
pub(super) struct PeakEwma(Pairs);

impl Algorithm for PeakEwma {
    const WANTS: Wants = Wants::Latency;

    fn new(lineup: &Lineup<'_>) -> Self {
        PeakEwma(Pairs::new(lineup))
    }

    fn draw(&self, draw: &Draw<'_>) -> Option<usize> {
        let mut place = self.sooner(draw)?;
        if rests(draw, place) {
            place = self.awake(draw).unwrap_or(place);
        }
        if let Some(backend) = draw.tier.backends.get(place) {
            backend.answers().note_pick(draw.ask.now);
        }
        Some(place)
    }
}

impl PeakEwma {
    fn sooner(&self, draw: &Draw<'_>) -> Option<usize> {
        let outlook = |place: usize| {
            let (backend, weight) = (draw.tier.backends.get(place)?, draw.tier.weights.get(place)?);
            Some(backend.answers().outlook(backend.taken(), *weight, draw.ask.now))
        };
        self.0.better(draw, |one, other| match (outlook(one), outlook(other)) {
            (Some(one), Some(other)) => one.beats(&other),
            (one, _) => one.is_some(),
        })
    }

    /// A place that does not rest, if there is one nearby.
    #[cold]
    fn awake(&self, draw: &Draw<'_>) -> Option<usize> {
        let drawn = (0..PAIRS).filter_map(|_| self.sooner(draw)).find(|&place| !rests(draw, place));
        drawn.or_else(|| {
            let len = draw.tier.backends.len();
            let start = draw.ask.chance.below(len);
            let mut places = (start..len).chain(0..start).take(LOOKS);
            places.find(|&place| draw.may(place) && !rests(draw, place))
        })
    }
}

/// Whether the backend at `place` asked to be left alone.
fn rests(draw: &Draw<'_>, place: usize) -> bool {
    draw.tier.backends.get(place).is_some_and(|backend| backend.answers().rests(draw.ask.now))
}

#[cfg(test)]
mod tests;
