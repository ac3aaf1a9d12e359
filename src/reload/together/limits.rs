//! Which part of a limit for all a node may give out, by what is asked of each node. Decisions only.

use std::collections::BTreeMap;

/// Of a node without demand, in parts of what it would be by head count: who gets the first request of a rush has something to begin with.
const FLOOR: f64 = 0.1;

/// The part of `own` where so much is asked of each node (requests per second), 0 to 1. All nodes that know the same come to parts that are one together.
/// `own` is one of them.
#[must_use]
pub(super) fn part(own: &str, demands: &BTreeMap<&str, f64>) -> f64 {
    let count = demands.len().max(1) as f64;
    let total: f64 = demands.values().sum();
    if total <= 0.0 {
        return 1.0 / count;
    }
    // Those that would be below the floor get it; what is left goes to the others by what is asked of them.
    let floor = FLOOR / count;
    let (mut left, mut rest) = (1.0, total);
    let mut ascending: Vec<(&str, f64)> = demands.iter().map(|(node, demand)| (*node, *demand)).collect();
    ascending.sort_by(|one, other| one.1.total_cmp(&other.1));
    for (node, demand) in ascending {
        let by_demand = if rest > 0.0 { left * demand / rest } else { 0.0 };
        let part = by_demand.max(floor);
        if node == own {
            return part;
        }
        if part > by_demand {
            (left, rest) = (left - part, rest - demand);
        } else {
            // All that follow are above it too.
            return left * demands.get(own).copied().unwrap_or(0.0) / rest;
        }
    }
    floor
}

/// How much is asked of this node, smoothed over about a second; a rush counts at once.
///
/// A single request in a short look is no jump: what was asked is looked at over four looks.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Demand {
    /// How much had been asked in all at the latest looks, the oldest first; `None` before the first.
    asked: Option<[u64; Demand::LOOKS]>,
    rate: f64,
}

impl Demand {
    /// Looks over which it is smooth.
    const LOOKS: usize = 4;

    /// So much had been asked in all, `secs` after the look before; gives requests per second.
    pub(super) fn look(&mut self, asked: u64, secs: f64) -> f64 {
        let before = self.asked.get_or_insert([asked; Demand::LOOKS]);
        let per = |since: u64, looks: f64| asked.saturating_sub(since) as f64 / (secs.max(0.001) * looks);
        let (all, latest) = (per(before[0], Demand::LOOKS as f64), per(before[Demand::LOOKS - 1], 1.0));
        before.rotate_left(1);
        before[Demand::LOOKS - 1] = asked;
        // Much more than before, in one look: by then there are enough of them to tell.
        let is_rush = latest > all * 2.0 && latest * secs > 10.0;
        self.rate = if is_rush { latest } else { all };
        // So that one who rests is at rest.
        if self.rate < 0.05 {
            self.rate = 0.0;
        }
        self.rate
    }
}

/// Whether what others were told of a demand is too far from it.
#[must_use]
pub(super) fn is_news(told: f64, now: f64) -> bool {
    (now - told).abs() > told.max(now) * 0.1 && (now - told).abs() > 0.5
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parts(demands: &[f64]) -> Vec<f64> {
        let names: Vec<String> = (0..demands.len()).map(|number| format!("n{number}")).collect();
        let all: BTreeMap<&str, f64> =
            names.iter().map(String::as_str).zip(demands.iter().copied()).collect();
        names.iter().map(|own| part(own, &all)).collect()
    }

    fn about(parts: &[f64], wanted: &[f64]) -> bool {
        parts.iter().zip(wanted).all(|(part, wanted)| (part - wanted).abs() < 1e-9)
    }

    #[test]
    fn a_node_gets_what_is_asked_of_it_and_never_nothing() {
        assert!(about(&parts(&[800.0, 100.0, 100.0]), &[0.8, 0.1, 0.1]));
        assert!(about(&parts(&[0.0, 0.0, 0.0]), &[1.0 / 3.0; 3]));
        let floor = 0.1 / 3.0;
        assert!(about(&parts(&[10.0, 0.0, 0.0]), &[1.0 - 2.0 * floor, floor, floor]));
        assert!(about(&parts(&[5.0]), &[1.0]));
        assert!(about(&parts(&[0.0]), &[1.0]));
    }

    proptest! {
        #[test]
        fn parts_are_one_together_and_go_by_demand(demands in prop::collection::vec(0.0_f64..1e6, 1..12)) {
            let parts = parts(&demands);
            prop_assert!((parts.iter().sum::<f64>() - 1.0).abs() < 1e-6, "{parts:?}");
            let floor = 0.1 / demands.len() as f64;
            for (one, part) in demands.iter().zip(&parts) {
                prop_assert!(*part >= floor - 1e-9);
                for (other, of_other) in demands.iter().zip(&parts) {
                    prop_assert!(one < other || part >= of_other);
                }
            }
        }
    }

    #[test]
    fn demand_is_smooth_but_for_rushes() {
        let (mut demand, is) = (Demand::default(), |one: f64, other: f64| (one - other).abs() < 1e-9);
        // What was asked before anybody looked is no demand.
        assert!(is(demand.look(5_000, 0.25), 0.0));
        // One request is one in a second, and gone after that.
        for rate in [1.0, 1.0, 1.0, 1.0, 0.0] {
            assert!(is(demand.look(5_001, 0.25), rate), "{demand:?}");
        }
        // A rush is seen at once; its end within a second.
        assert!(is(demand.look(5_251, 0.25), 1000.0));
        let mut asked = 5_251;
        for _ in 0..8 {
            asked += 250;
            demand.look(asked, 0.25);
        }
        assert!(is(demand.look(asked + 250, 0.25), 1000.0));
        for rate in [750.0, 500.0, 250.0, 0.0] {
            assert!(is(demand.look(asked + 250, 0.25), rate), "{demand:?}");
        }
        assert!(is_news(100.0, 120.0) && !is_news(100.0, 105.0) && !is_news(0.1, 0.3));
    }
}
