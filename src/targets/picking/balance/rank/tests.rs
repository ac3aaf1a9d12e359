use std::cmp::Ordering;

use proptest::prelude::*;

use super::*;

/// The same rules, read off one by one: strides as fractions of one common multiple, a scan for each pick.
struct Model {
    weights: Vec<u64>,
    loads: Vec<Option<u64>>,
    tags: Vec<u64>,
    strides: Vec<u64>,
    clock: u64,
}

impl Model {
    /// A model whose turns begin like those of `rank`.
    fn of(rank: &Rank, weights: &[u16]) -> Model {
        Model {
            weights: weights.iter().map(|&weight| weight.into()).collect(),
            loads: weights.iter().map(|&weight| (weight > 0).then_some(0)).collect(),
            tags: (0..weights.len()).map(|place| key(rank, place) & TAG_MASK).collect(),
            strides: (0..weights.len()).map(|place| rank.share(place).stride.into()).collect(),
            clock: rank.clock.into(),
        }
    }

    /// By exact ratio, then tag, then place.
    fn first(&self, refused: &[usize]) -> Option<usize> {
        let inside = (0..self.loads.len()).filter(|place| !refused.contains(place));
        inside.filter_map(|place| Some((place, self.loads[place]?))).map(|(place, _)| place).min_by(
            |&a, &b| {
                let ratio = |one: usize, other: usize| {
                    self.loads[one].expect("inside").min(LOAD_MAX) * self.weights[other]
                };
                ratio(a, b).cmp(&ratio(b, a)).then(self.tags[a].cmp(&self.tags[b])).then(a.cmp(&b))
            },
        )
    }

    fn give(&mut self, place: usize) -> u32 {
        self.clock = self.clock.max(self.tags[place]);
        self.tags[place] = self.clock + self.strides[place];
        let load = self.loads[place].as_mut().expect("inside");
        *load += 1;
        u32::try_from(*load).expect("small")
    }
}

fn key(rank: &Rank, place: usize) -> u64 {
    rank.lines[place / FAN_OUT].0[place % FAN_OUT]
}

/// Lets time pass until tags are `left` before the end of their range.
fn pass(rank: &mut Rank, left: u32) {
    let leaves = rank.starts.first().copied().unwrap_or(rank.lines.len());
    let places = rank.lines[..leaves].iter_mut();
    let keys: Vec<&mut u64> = places.flat_map(|line| &mut line.0).filter(|key| **key != NOWHERE).collect();
    // No tag is further ahead of the clock than where it was put.
    let furthest = keys.iter().map(|key| **key & TAG_MASK).max().unwrap_or(0).max(rank.clock.into());
    let furthest = if rank.clock > 0 { furthest } else { 0 };
    let passed = TAG_MASK - u64::from(2 * STRIDE_MAX) - u64::from(left) - furthest;
    keys.into_iter().for_each(|key| *key += passed);
    rank.clock += u32::try_from(passed).expect("27 bits");
    rank.rebuild();
}

/// Every inner node is the minimum of what is below it.
fn is_sound(rank: &Rank) -> bool {
    let mut again = rank.clone();
    again.rebuild();
    again.lines.iter().map(|line| line.0).eq(rank.lines.iter().map(|line| line.0))
}

/// Picks and releases at once: every load stays 0.
fn idle_pick(rank: &mut Rank) -> usize {
    let place = rank.pick(|_| Some(1)).expect("all are in");
    rank.set(place, Some(0));
    place
}

#[test]
fn idle_places_take_turns_exactly() {
    for count in [1, 2, 3, 7, 8, 9, 64, 65, 512, 513, 1000] {
        let mut rank = Rank::new(&vec![1; count]);
        for turn in 0..3 {
            for expected in 0..count {
                assert_eq!(idle_pick(&mut rank), expected, "{count} places, turn {turn}");
            }
        }
        let mut held = Rank::new(&vec![7; count]);
        for turn in 1..=3 {
            for expected in 0..count {
                assert_eq!(held.pick(|_| Some(turn)), Some(expected), "{count} places, turn {turn}");
            }
        }
    }
    let mut rank = Rank::new(&[1; 3]);
    let mut counts = [0; 3];
    (0..999).for_each(|_| counts[idle_pick(&mut rank)] += 1);
    assert_eq!(counts, [333; 3]);
    assert_eq!(Rank::new(&[]).pick(|_| Some(1)), None);
}

#[test]
fn turns_stay_exact_after_a_place_was_out() {
    let mut rank = Rank::new(&[1; 3]);
    (0..10).for_each(|_| _ = idle_pick(&mut rank));
    rank.set(1, None);
    (0..1000).for_each(|_| assert_ne!(idle_pick(&mut rank), 1));
    rank.set(1, Some(0));
    let mut counts = [0; 3];
    for _ in 0..999 {
        counts[idle_pick(&mut rank)] += 1;
        assert!(counts.iter().max() <= counts.iter().min().map(|min| min + 1).as_ref(), "{counts:?}");
    }
    assert_eq!(counts, [333; 3]);
}

#[test]
fn idle_ties_are_shared_by_weight_and_smoothly() {
    let mut rank = Rank::new(&[5, 1, 1]);
    let order: Vec<usize> = (0..14).map(|_| idle_pick(&mut rank)).collect();
    assert_eq!(order[..7], order[7..]);
    assert_eq!([0, 1, 2].map(|place| order[..7].iter().filter(|&&other| other == place).count()), [5, 1, 1]);
    let twice = order.windows(2).filter(|pair| pair[0] != 0 && pair[1] != 0).count();
    assert_eq!(twice, 0, "the light ones do not follow each other: {order:?}");
}

proptest! {
    #[test]
    fn idle_shares_stay_within_two_picks_of_the_weights(weights in prop::collection::vec(1_u16..=20, 1..12)) {
        let mut rank = Rank::new(&weights);
        let sum: f64 = weights.iter().map(|&weight| f64::from(weight)).sum();
        let mut counts = vec![0.0; weights.len()];
        for picks in 1..500 {
            counts[idle_pick(&mut rank)] += 1.0;
            for (place, &weight) in weights.iter().enumerate() {
                let due = f64::from(picks) * f64::from(weight) / sum;
                // A place is at most one pick off by its own stride, and one by those of the others.
                prop_assert!((counts[place] - due).abs() <= 2.0, "{counts:?} of {weights:?}");
            }
        }
    }

    #[test]
    fn every_two_ratios_compare_as_fractions(
        a in 0..=LOAD_MAX as u32, b in 0..=LOAD_MAX as u32, near in -300_i64..300,
        v in 1_u16..=256, w in 1_u16..=256,
    ) {
        let rank = Rank::new(&[v, w]);
        // Also such pairs as are as near to each other as they can be.
        let close = i64::from(a) * i64::from(w) / i64::from(v) + near;
        let close = u32::try_from(close.clamp(0, LOAD_MAX as i64)).expect("clamped");
        for b in [b, close] {
            let (one, other) = (rank.key(0, Some(a), 0), rank.key(1, Some(b), 0));
            let exact = (u64::from(a) * u64::from(w)).cmp(&(u64::from(b) * u64::from(v)));
            prop_assert_eq!(one.cmp(&other), exact, "{} ÷ {}, {} ÷ {}", a, v, b, w);
        }
    }

    #[test]
    fn every_pick_is_the_first_of_a_scan(
        weights in prop_oneof![
            prop::collection::vec(0_u16..=256, 1..100),
            prop::collection::vec(1_u16..=3, 1..600),
            (1_usize..600).prop_map(|count| vec![1; count]),
        ],
        seed in prop::collection::vec(prop::option::weighted(0.9, 0_u32..6), 1..40),
        steps in prop::collection::vec((0_u8..10, any::<prop::sample::Index>()), 0..300),
        left in prop::option::of(prop_oneof![0_u32..200, 0_u32..1 << 20]),
        has_parts: bool,
        had in prop::option::of(prop::collection::vec(prop_oneof![0.0..40.0, Just(f64::MAX), Just(f64::NAN)], 1..20)),
    ) {
        let mut rank = if has_parts { Rank::with_parts(&weights) } else { Rank::new(&weights) };
        if let Some(had) = had {
            rank.order_by(|place| had[place % had.len()]);
            prop_assert!(is_sound(&rank));
        }
        // Tags are renumbered under way; the model's never are.
        if let Some(left) = left {
            pass(&mut rank, left);
        }
        let mut model = Model::of(&rank, &weights);
        for place in 0..weights.len() {
            let load = seed[place % seed.len()];
            rank.set(place, load);
            model.loads[place] = load.map(u64::from).filter(|_| weights[place] > 0);
        }
        for (what, index) in steps {
            let place = index.index(weights.len());
            match (what, model.loads[place]) {
                (0, _) => {
                    rank.set(place, None);
                    model.loads[place] = None;
                }
                (1, None) if weights[place] > 0 => {
                    rank.set(place, Some(2));
                    model.loads[place] = Some(2);
                }
                (2..5, Some(load)) if load > 0 => {
                    rank.set(place, Some(u32::try_from(load - 1).expect("small")));
                    model.loads[place] = Some(load - 1);
                }
                _ => {
                    // Refuses none, some, or more than a pick puts up with.
                    let mut refusals = if what == 9 { index.index(14) } else { 0 };
                    let mut refused = Vec::new();
                    let clock = model.clock;
                    let picked = rank.pick(|place| {
                        assert_eq!(Some(place), model.first(&refused));
                        if refusals > 0 {
                            refusals -= 1;
                            refused.push(place);
                            return None;
                        }
                        Some(model.give(place))
                    });
                    refused.iter().for_each(|&place| model.tags[place] = clock + model.strides[place]);
                    let expected = refused.len() < REFUSALS && refusals == 0
                        && model.loads.iter().flatten().count() > refused.len();
                    prop_assert_eq!(picked.is_some(), expected);
                    prop_assert!(refused.len() <= REFUSALS);
                }
            }
            prop_assert!(is_sound(&rank));
        }
    }
}

#[test]
fn weights_that_are_all_zero_give_nothing() {
    let mut rank = Rank::new(&[0, 0]);
    assert_eq!(rank.pick(|_| Some(1)), None);
}

#[test]
fn loads_beyond_what_is_told_apart_count_alike() {
    let mut rank = Rank::new(&[1, 1]);
    rank.set(0, Some(u32::MAX));
    rank.set(1, Some(LOAD_MAX as u32));
    let picks: Vec<_> = (0..4).map(|_| rank.pick(|_| Some(u32::MAX))).collect();
    assert_eq!(picks, [Some(0), Some(1), Some(0), Some(1)]);
    assert!(rank.key(0, Some(u32::MAX), TAG_MASK) < OUT);
}

#[test]
fn what_was_refused_comes_behind_its_equals() {
    let mut rank = Rank::new(&[1; 20]);
    let mut asked = Vec::new();
    assert_eq!(
        rank.pick(|place| {
            asked.push(place);
            None
        }),
        None
    );
    assert_eq!(asked, (0..12).collect::<Vec<_>>());
    assert_eq!(rank.pick(|place| (place == 14).then_some(1)), Some(14));
    let rest: Vec<_> = (0..7).map(|_| idle_pick(&mut rank)).collect();
    assert_eq!(rest, [15, 16, 17, 18, 19, 0, 1]);
    // Of three places two are out and one is refused: there is nothing.
    let mut rank = Rank::new(&[1; 3]);
    rank.set(0, None);
    rank.set(1, None);
    assert_eq!(rank.pick(|_| None), None);
    assert_eq!(rank.pick(|_| Some(1)), Some(2));
}

#[test]
fn renumbering_keeps_turns_and_shares() {
    for weights in [vec![1; 3], vec![5, 1, 1], vec![251, 241, 256], vec![239, 7, 1, 251, 256]] {
        let mut rank = Rank::new(&weights);
        pass(&mut rank, 10);
        let sum: u32 = weights.iter().map(|&weight| u32::from(weight)).sum();
        let mut counts = vec![0_u32; weights.len()];
        // Long enough to renumber, where strides are long, several times.
        let turns = 3000_u32.div_ceil(sum);
        (0..turns * sum).for_each(|_| counts[idle_pick(&mut rank)] += 1);
        for (count, &weight) in counts.iter().zip(&weights) {
            let due = turns * u32::from(weight);
            assert!(count.abs_diff(due) <= 2 + due / 500, "{counts:?} of {weights:?}");
        }
    }
    let mut rank = Rank::new(&[1; 3]);
    pass(&mut rank, 1);
    let order: Vec<usize> = (0..9).map(|_| idle_pick(&mut rank)).collect();
    assert_eq!(order, [0, 1, 2, 0, 1, 2, 0, 1, 2]);
    assert!(rank.clock < CLOCK_REST + 10, "it was renumbered: {}", rank.clock);
}

#[test]
fn a_busy_place_comes_last_and_has_nothing_to_catch_up() {
    let mut rank = Rank::new(&[1; 4]);
    rank.set(2, Some(1));
    (0..100).for_each(|_| assert_ne!(idle_pick(&mut rank), 2));
    rank.set(2, Some(0));
    let order: Vec<usize> = (0..8).map(|_| idle_pick(&mut rank)).collect();
    let picks = order.iter().filter(|&&place| place == 2).count();
    assert_eq!((picks, order[0]), (2, 2), "{order:?}");
}

#[test]
fn a_place_that_is_not_there_changes_nothing() {
    let mut rank = Rank::new(&[1; 3]);
    rank.set(3, None);
    rank.set(usize::MAX, Some(0));
    assert!(is_sound(&rank));
    // Behind the last place of a line nothing is ever picked.
    rank.set(5, Some(0));
    assert!((0..9).all(|_| idle_pick(&mut rank) < 3));
}

#[test]
fn order_among_ratios_is_that_of_loads() {
    let rank = Rank::new(&[3, 1]);
    assert_eq!(rank.key(0, Some(3), 7).cmp(&rank.key(1, Some(1), 7)), Ordering::Equal);
}

#[test]
fn who_has_had_less_is_next_by_parts_of_a_turn_and_by_weight() {
    let mut rank = Rank::with_parts(&[1; 4]);
    let had = [2.0, 0.5, 0.25, 1.3];
    rank.order_by(|place| had[place]);
    // Each pick is a turn more: 0.25, 0.5, 1.25, 1.3, 1.5, 2.0 (the one that had so much), 2.25.
    let order: Vec<usize> = (0..7).map(|_| idle_pick(&mut rank)).collect();
    assert_eq!(order, [2, 1, 2, 3, 1, 0, 2]);
    // What is busier comes later all the same.
    rank.order_by(|place| had[place]);
    rank.set(2, Some(1));
    assert_eq!(idle_pick(&mut rank), 1);
    // Who has twice the weight may have had twice as much.
    let mut rank = Rank::with_parts(&[2, 1]);
    rank.order_by(|place| [2.9, 1.5][place]);
    assert_eq!(idle_pick(&mut rank), 0);
    rank.order_by(|place| [3.1, 1.5][place]);
    assert_eq!(idle_pick(&mut rank), 1);
}

#[test]
fn turns_with_parts_are_shared_like_others() {
    for weights in [vec![1; 9], vec![7; 3], vec![5, 1, 1], vec![251, 241, 256], vec![0, 3], vec![]] {
        let (mut one, mut other) = (Rank::new(&weights), Rank::with_parts(&weights));
        for _ in 0..2_000 {
            assert_eq!(one.pick(|_| Some(0)), other.pick(|_| Some(0)), "{weights:?}");
        }
    }
}
