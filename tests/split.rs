//! Shares of a split, with the random source that workers have.

use evenkeel::config::model::route::SplitSide;
use evenkeel::route::split::{by_chance, by_hash};
use evenkeel::targets::Chance;
use proptest::prelude::*;

fn sides(weights: &[u32]) -> Vec<SplitSide> {
    let sides = weights.iter().enumerate();
    sides.map(|(at, &weight)| SplitSide { target: format!("side-{at}").into(), weight }).collect()
}

#[test]
fn a_share_of_five_in_a_hundred_is_kept_within_three_tenths_over_all_workers() {
    let sides = sides(&[95, 5]);
    for seed in 0..20 {
        let workers: Vec<Chance> = (0..4).map(|worker| Chance::seeded(seed * 4 + worker)).collect();
        let canary =
            (0..100_000).filter(|request| by_chance(&sides, workers[request % 4].bits()) == 1).count();
        assert!((4_700..=5_300).contains(&canary), "seed {seed}: {canary} of 100,000");
    }
}

#[test]
fn when_a_weight_moves_from_five_to_ten_five_in_a_hundred_clients_change_sides_and_nobody_else() {
    let (before, after) = (sides(&[95, 5]), sides(&[90, 10]));
    let keys = Chance::seeded(7);
    let (mut gone, mut back) = (0, 0);
    for _ in 0..100_000 {
        let key = keys.bits();
        match (by_hash(&before, key), by_hash(&after, key)) {
            (0, 1) => gone += 1,
            (1, 0) => back += 1,
            _ => {}
        }
    }
    assert!((4_700..=5_300).contains(&gone), "{gone} of 100,000");
    assert_eq!(back, 0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn a_client_moves_only_to_a_side_that_grew_beside_its_own(
        weights in prop::collection::vec(0..100_u32, 2..6),
        grown in 0..6_usize,
        by in 1..1_000_u32,
        keys in prop::collection::vec(any::<u64>(), 200),
    ) {
        let grown = grown % weights.len();
        let mut more = weights.clone();
        more[grown] += by;
        prop_assume!(weights.iter().any(|&weight| weight > 0));
        let (before, after) = (sides(&weights), sides(&more));
        for key in keys {
            let (was, is) = (by_hash(&before, key), by_hash(&after, key));
            prop_assert!(is == was || is == grown, "{was} -> {is}, and {grown} grew");
            prop_assert!(weights[was] > 0 && more[is] > 0);
        }
    }
}
