use proptest::prelude::*;

use super::super::hashed::fixtures::{identities, members, shuffled};
use super::*;

/// The first choice for a key.
fn first(ring: &Ring, key: u64) -> Option<usize> {
    ring.walk(key).next()
}

/// The exact share of all keys that each place has.
fn shares(ring: &Ring, members: usize) -> Vec<f64> {
    let mut shares = vec![0; members];
    let positions = positions(ring);
    let whole = 1i64 << (ring.bits + 16);
    let mut previous = positions.last().map_or(0, |&(position, _)| position as i64 - whole);
    for (position, place) in positions {
        shares[place] += position as i64 - previous;
        previous = position as i64;
    }
    shares.into_iter().map(|share| share as f64 / whole as f64).collect()
}

/// All points with their positions, to `bits + 16` bits.
fn positions(ring: &Ring) -> Vec<(u64, usize)> {
    let mut positions = Vec::new();
    for (bucket, range) in (0u64..).zip(ring.starts.windows(2)) {
        for point in &ring.points[range[0] as usize..range[1] as usize] {
            positions.push((bucket << 16 | u64::from(fraction_of(*point)), place_of(*point)));
        }
    }
    positions
}

/// Keys enough to see one in a thousand.
fn keys() -> impl Iterator<Item = u64> {
    (1..20_000).map(|nth| again(99, nth))
}

#[test]
fn an_empty_ring_has_no_place_and_a_single_member_gets_everything() {
    assert_eq!(Ring::of(&[]).walk(7).next(), None);
    assert_eq!(Ring::default().walk(7).next(), None);
    let one = Ring::of(&[("web/a", 1)]);
    for key in [0, 1, u64::MAX / 2, u64::MAX] {
        assert_eq!(one.walk(key).collect::<Vec<_>>(), [0, 0], "{key}");
    }
    assert_eq!(one.only(|_| None).walk(7).next(), None);
}

#[test]
fn a_key_belongs_to_the_first_point_at_or_after_it() {
    let names = identities("web", 5);
    let ring = Ring::sized(&members(&names), 40);
    let positions = positions(&ring);
    assert!(positions.is_sorted_by_key(|&(position, _)| position));
    for key in keys().chain([0, u64::MAX]) {
        let own = key >> (48 - ring.bits);
        let plainly = positions.iter().find(|&&(position, _)| position >= own).unwrap_or(&positions[0]);
        assert_eq!(first(&ring, key), Some(plainly.1), "{key:x}");
    }
}

#[test]
fn points_are_constant_for_few_members_and_bounded_for_many() {
    assert_eq!([0, 1, 2, 100, 128].map(each), [EACH; 5]);
    assert!((129..=MOST).all(|count| each(count) * count <= EACH * FULL && each(count) >= 64));
    for count in [1, 3] {
        assert_eq!(Ring::of(&members(&identities("web", count))).points.len(), count * EACH);
    }
    assert_eq!(size_of::<Point>(), 4);
}

/// A share is what moves when its owner leaves: nothing else does, see the next test.
#[test]
fn no_share_is_more_than_a_hundredth_above_its_due() {
    // Of many, each with fewer points than they have: more points make it better.
    let sets = [(2, EACH), (3, EACH), (4, EACH), (5, EACH), (10, 4_096), (50, 512), (101, 256), (500, 64)];
    for (set, (count, each)) in (0..2).flat_map(|set| sets.map(|sizes| (set, sizes))) {
        let names = identities(&format!("set{set}"), count);
        let most = shares(&Ring::sized(&members(&names), each), count).into_iter().fold(0.0, f64::max);
        let due = 1.0 / count as f64 + 0.01;
        assert!(most <= due, "set {set} of {count}: {most:.4}, {due:.4} may");
    }
}

#[test]
fn when_members_are_out_only_their_keys_move_and_come_back() {
    let names = identities("web", 7);
    let ring = Ring::of(&members(&names));
    let live = [0, 2, 3, 6];
    let rest = ring.only(|place| live.iter().position(|&one| one == place));
    let mut moved = 0;
    for key in keys() {
        let (before, after) = (first(&ring, key).unwrap(), live[first(&rest, key).unwrap()]);
        if live.contains(&before) {
            assert_eq!(before, after);
        } else {
            moved += 1;
            // Where a walk that passes them over would get to.
            assert_eq!(ring.walk(key).find(|place| live.contains(place)), Some(after));
        }
    }
    assert!(moved > 0);
    let same = ring.only(Some);
    assert_eq!((&ring.points, &ring.starts), (&same.points, &same.starts));
}

/// A backend that is taken out of the config is no different from one that fails.
#[test]
fn a_configured_member_that_leaves_moves_its_own_keys() {
    for (count, other) in [(2, 0.0), (10, 0.0), (129, 0.009), (300, 0.009)] {
        let names = identities("web", count);
        // In the proportions of the real numbers.
        let ring = |names: &[String]| Ring::sized(&members(names), each(names.len()) / 64);
        let (all, rest) = (ring(&names), ring(&names[1..]));
        let moved = keys().filter(|&key| {
            let before = first(&all, key).unwrap();
            before != 0 && before != first(&rest, key).unwrap() + 1
        });
        let share = moved.count() as f64 / keys().count() as f64;
        assert!(share <= other, "{count}: {share} moved between those that stay");
    }
}

#[test]
fn two_nodes_with_other_orders_assign_alike() {
    let names = identities("web", 30);
    let listed: Vec<Weighed<'_>> =
        (0u16..).zip(&names).map(|(at, name)| (name.as_str(), 1 + at % 4)).collect();
    let other = shuffled(&listed, 5);
    assert_ne!(listed, other);
    let (a, b) = (Ring::sized(&listed, 1_000), Ring::sized(&other, 1_000));
    let named = |positions: Vec<(u64, usize)>, members: &[Weighed<'_>]| -> Vec<(u64, String)> {
        positions.into_iter().map(|(position, place)| (position, members[place].0.to_owned())).collect()
    };
    assert!(named(positions(&a), &listed) == named(positions(&b), &other), "the rings differ");
    for key in keys().take(500) {
        let names = |ring: &Ring, members: &[Weighed<'_>]| -> Vec<String> {
            ring.walk(key).map(|place| members[place].0.to_owned()).collect()
        };
        assert_eq!(names(&a, &listed), names(&b, &other), "the whole walk");
    }
}

/// A change of these numbers would move the keys of everybody who upgrades.
#[test]
fn a_ring_stays_what_it_is_from_release_to_release() {
    let ring = Ring::of(&members(&identities("web", 5)));
    let text: Vec<u8> = keys().map(|key| first(&ring, key).unwrap() as u8).collect();
    assert_eq!(hash(&text), 8_705_373_366_875_258_593);
}

#[test]
fn shares_are_in_proportion_to_weights() {
    let names = identities("web", 4);
    let weights = [256, 128, 64, 1];
    let listed: Vec<Weighed<'_>> = names.iter().map(String::as_str).zip(weights).collect();
    let shares = shares(&Ring::of(&listed), 4);
    for (share, weight) in shares.into_iter().zip(weights) {
        let due = f64::from(weight) / 449.0;
        assert!((share - due).abs() <= 0.01, "{share} for {due}");
    }
}

#[test]
fn a_walk_meets_everybody_and_ends() {
    // The last has one point among many: only the end of a walk finds it.
    let names = identities("web", 9);
    let weight = |at: usize| if at == 8 { 1 } else { u16::MAX };
    let listed: Vec<Weighed<'_>> = names.iter().map(String::as_str).zip((0..).map(weight)).collect();
    let ring = Ring::of(&listed);
    for key in keys().take(300) {
        let walk: Vec<usize> = ring.walk(key).collect();
        assert!((0..9).all(|place| walk.contains(&place)), "{walk:?}");
        assert!(walk.len() <= STEPS + 9);
        let around = &walk[..walk.len() - 9];
        assert!(around.windows(2).all(|pair| pair[0] != pair[1]), "{walk:?}");
    }
}

proptest! {
    #[test]
    fn the_bound_is_what_it_says(
        in_flight in 0u32..200, total in 0u64..2_000, weight in 1u16..20, others in 0u64..200, percent in 100u32..400
    ) {
        let total_weight = u64::from(weight) + others;
        let most = (f64::from(percent) * (total + 1) as f64 * f64::from(weight) / (100.0 * total_weight as f64) - 1e-9).ceil();
        prop_assert_eq!(admits(in_flight, total, weight, total_weight, percent), f64::from(in_flight) + 1.0 <= most);
    }

    #[test]
    fn no_number_is_too_great(in_flight: u32, total: u64, weight: u16, total_weight: u64, percent: u32) {
        // It does not overflow, and an idle backend of any weight may always have one.
        let idle = admits(0, total, weight.max(1), total_weight, percent.max(100));
        prop_assert!(idle);
        let _ = admits(in_flight, total, weight, total_weight, percent);
    }
}

/// One of these happens at a time.
#[derive(Clone, Debug)]
enum Step {
    /// A request with this key.
    Pick(u64),
    /// The oldest request of this backend ends, if it has one.
    End(prop::sample::Index),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    // All keys alike, few keys, and any keys.
    let key = prop_oneof![Just(0u64), 0u64..4, any::<u64>()];
    let step = prop_oneof![
        3 => key.prop_map(Step::Pick),
        1 => any::<prop::sample::Index>().prop_map(Step::End),
    ];
    prop::collection::vec(step, 0..400)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// Whatever the keys are, a place is found, and no backend is above its bound at the moment of its pick.
    #[test]
    fn the_bounded_load_holds(
        weights in prop::collection::vec(1u16..6, 1..12), percent in 100u32..300, steps in steps()
    ) {
        let names = identities("web", weights.len());
        let listed: Vec<Weighed<'_>> = names.iter().map(String::as_str).zip(weights.iter().copied()).collect();
        let ring = Ring::sized(&listed, 64);
        let sum: u64 = weights.iter().map(|&weight| u64::from(weight)).sum();
        let mut in_flight = vec![0u32; weights.len()];
        for step in steps {
            let total = in_flight.iter().map(|&count| u64::from(count)).sum();
            match step {
                Step::End(which) => {
                    let one = which.get_mut(&mut in_flight);
                    *one = one.saturating_sub(1);
                }
                Step::Pick(key) => {
                    let may = |place: usize| admits(in_flight[place], total, weights[place], sum, percent);
                    let place = ring.walk(hash(&key.to_le_bytes())).find(|&place| may(place));
                    prop_assert!(place.is_some(), "nobody may: {in_flight:?} of {weights:?}");
                    let place = place.unwrap();
                    in_flight[place] += 1;
                    let most = f64::from(percent) / 100.0 * (total + 1) as f64 * f64::from(weights[place]) / sum as f64;
                    prop_assert!(f64::from(in_flight[place]) <= (most - 1e-9).ceil(), "{in_flight:?} of {weights:?}");
                }
            }
        }
    }
}
