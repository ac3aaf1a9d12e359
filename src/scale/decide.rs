//! Whether a target has too few backends, or more than it needs: a decision on what is looked at each second.

use crate::config::model::{ScaleConfig, ScaleIn, ScaleOut};
use crate::targets::ScaleSignal;
use crate::tick::Tick;

/// What a target has at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ScaleLoad {
    /// Requests that wait.
    pub(super) queued: u64,
    /// Requests under way.
    pub(super) in_flight: u64,
    /// As many may be, with the backends that are up; 0: nobody has said, or none is up.
    pub(super) room: u64,
}

impl ScaleLoad {
    fn has_queued(&self, more_than: u32) -> bool {
        self.queued > u64::from(more_than)
    }

    /// Less than so many percent are under way, and nobody waits. What has no bound is never idle.
    fn is_idle(&self, percent: u64) -> bool {
        self.room > 0 && self.queued == 0 && self.in_flight * 100 < self.room * percent
    }
}

/// The percent from which on a target that was idle below `busy` is so no more.
fn way_back(busy: u64) -> u64 {
    (busy * 3 / 2).min(u64::midpoint(busy, 100)).max(busy)
}

/// What is known of a target from one look to the next.
///
/// A signal begins once its threshold was passed at each look for as long as is asked for, and is over as soon as the load is well on the
/// other side: half of `queued`, one and a half times `busy` (or half of what is left above it, where that is less). Between the two it neither ends nor begins anew, so what swings about a
/// threshold is told once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ScaleWatch {
    signal: ScaleSignal,
    crowded: Option<Tick>,
    idle: Option<Tick>,
}

impl ScaleWatch {
    /// What holds.
    pub(super) fn signal(&self) -> ScaleSignal {
        self.signal
    }

    /// Takes a look in; true: what holds has just begun, which is to be told.
    pub(super) fn look(&mut self, rules: &ScaleConfig, load: &ScaleLoad, now: Tick) -> bool {
        let goes_on = match self.signal {
            ScaleSignal::None => true,
            ScaleSignal::Out => rules.out.is_some_and(|out| load.has_queued(out.queued / 2)),
            ScaleSignal::In => rules.into.is_some_and(|into| load.is_idle(way_back(into.busy.into()))),
        };
        if !goes_on {
            self.signal = ScaleSignal::None;
        }
        let crowded = rules.out.filter(|out| load.has_queued(out.queued));
        let idle = rules.into.filter(|into| load.is_idle(into.busy.into()));
        self.crowded = crowded.and(self.crowded.or(Some(now)));
        self.idle = idle.and(self.idle.or(Some(now)));
        let has_held = |since: Option<Tick>, hold| since.is_some_and(|since| now.since(since) >= hold);
        let begins = if crowded.is_some_and(|ScaleOut { hold, .. }| has_held(self.crowded, hold)) {
            ScaleSignal::Out
        } else if idle.is_some_and(|ScaleIn { hold, .. }| has_held(self.idle, hold)) {
            ScaleSignal::In
        } else {
            return false;
        };
        let is_new = self.signal != begins;
        self.signal = begins;
        is_new
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::tick::nanos;

    const RULES: ScaleConfig = ScaleConfig {
        out: Some(ScaleOut { queued: 100, hold: Duration::from_secs(3) }),
        into: Some(ScaleIn { busy: 20, hold: Duration::from_secs(5) }),
    };

    /// The moments, in seconds, at which something was told, and what held in the end.
    fn told(rules: &ScaleConfig, loads: &[(u64, u64)]) -> (Vec<(u64, ScaleSignal)>, ScaleSignal) {
        let (mut watch, mut told) = (ScaleWatch::default(), Vec::new());
        for (second, &(queued, in_flight)) in (0..).zip(loads) {
            let load = ScaleLoad { queued, in_flight, room: 1_000 };
            let now = Tick(1 + nanos(Duration::from_secs(second)));
            if watch.look(rules, &load, now) {
                told.push((second, watch.signal()));
            }
        }
        (told, watch.signal())
    }

    #[test]
    fn what_has_held_for_long_enough_is_told_once() {
        let crowd = [(101, 1_000); 60];
        assert_eq!(told(&RULES, &crowd), (vec![(3, ScaleSignal::Out)], ScaleSignal::Out));
        let idle = [(0, 199); 60];
        assert_eq!(told(&RULES, &idle), (vec![(5, ScaleSignal::In)], ScaleSignal::In));
        for fine in [(100, 1_000), (0, 200), (1, 0)] {
            assert_eq!(told(&RULES, &[fine; 60]), (vec![], ScaleSignal::None), "{fine:?}");
        }
    }

    #[test]
    fn a_break_begins_the_time_anew() {
        let mut loads = [(101, 1_000); 9];
        (loads[2], loads[5]) = ((100, 1_000), (0, 1_000));
        assert_eq!(told(&RULES, &loads[..8]), (vec![], ScaleSignal::None));
        let mut longer = loads.to_vec();
        longer.push((101, 1_000));
        assert_eq!(told(&RULES, &longer).0, [(9, ScaleSignal::Out)]);
    }

    #[test]
    fn what_swings_about_a_threshold_is_told_once_and_what_goes_and_comes_back_again() {
        let swing: Vec<(u64, u64)> =
            (0..60).map(|second| (if second < 5 || second % 2 == 0 { 120 } else { 51 }, 1_000)).collect();
        assert_eq!(told(&RULES, &swing), (vec![(3, ScaleSignal::Out)], ScaleSignal::Out));
        let back: Vec<(u64, u64)> =
            [(120, 1_000); 5].into_iter().chain([(50, 1_000); 1]).chain([(120, 1_000); 5]).collect();
        assert_eq!(told(&RULES, &back).0, [(3, ScaleSignal::Out), (9, ScaleSignal::Out)]);
        let busy: Vec<(u64, u64)> =
            (0..60).map(|second| (0, if second < 7 || second % 2 == 0 { 100 } else { 299 })).collect();
        assert_eq!(told(&RULES, &busy), (vec![(5, ScaleSignal::In)], ScaleSignal::In));
        assert_eq!(told(&RULES, &[busy, vec![(0, 300)]].concat()).1, ScaleSignal::None);
    }

    #[test]
    fn one_goes_over_into_the_other_and_rules_that_are_gone_end_both() {
        let loads: Vec<(u64, u64)> =
            [(0, 10); 8].into_iter().chain([(500, 1_000); 8]).chain([(0, 10); 8]).collect();
        let expected = [(5, ScaleSignal::In), (11, ScaleSignal::Out), (21, ScaleSignal::In)];
        assert_eq!(told(&RULES, &loads).0, expected);
        let mut watch = ScaleWatch { signal: ScaleSignal::Out, ..ScaleWatch::default() };
        let load = ScaleLoad { queued: 900, in_flight: 1_000, room: 1_000 };
        assert!(!watch.look(&ScaleConfig::default(), &load, Tick(1)));
        assert_eq!(watch, ScaleWatch::default());
    }

    #[test]
    fn a_target_that_is_all_busy_was_still_said_to_be_idle() {
        for busy in 1..100 {
            let into = Some(ScaleIn { busy, hold: Duration::ZERO });
            let rules = ScaleConfig { into, ..ScaleConfig::default() };
            let all = [(0, 0), (0, 1_000)];
            assert_eq!(told(&rules, &all), (vec![(0, ScaleSignal::In)], ScaleSignal::None), "{busy}");
        }
    }

    #[test]
    fn what_has_no_bound_is_never_idle() {
        let mut watch = ScaleWatch::default();
        for second in 0..60 {
            assert!(!watch.look(&RULES, &ScaleLoad::default(), Tick(1 + nanos(Duration::from_secs(second)))));
        }
    }
}
