//! Which side of a split a request goes to.
//!
//! By chance a side gets as many as its weight says. By a key each side has a number of its own for each value of the key, and the side
//! with the best one has it (weighted rendezvous hashing: Schindelhauer and Schomaker 2005): when a weight grows, some come to that
//! side from all others, and nobody moves between those.

use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::config::model::route::SplitSide;

/// The side of a request that nothing ties to one; `bits`: uniform chance.
#[must_use]
pub fn by_chance(sides: &[SplitSide], bits: u64) -> usize {
    let total: u64 = sides.iter().map(|side| u64::from(side.weight)).sum();
    // The upper half of the product is uniform below `total`.
    let mut left = ((u128::from(bits) * u128::from(total)) >> 64) as u64;
    for (place, side) in sides.iter().enumerate() {
        match left.checked_sub(u64::from(side.weight)) {
            Some(less) => left = less,
            None => return place,
        }
    }
    0
}

/// The side of all requests whose key has this hash.
#[must_use]
pub fn by_hash(sides: &[SplitSide], key: u64) -> usize {
    let score = |side: &SplitSide| {
        let mixed = xxh3_64_with_seed(side.target.as_bytes(), key);
        // In (0, 1): the 53 bits that a float has, and a half.
        let drawn = ((mixed >> 11) as f64 + 0.5) / (1_u64 << 53) as f64;
        -f64::from(side.weight) / drawn.ln()
    };
    let scores = sides.iter().enumerate().filter(|(_, side)| side.weight > 0);
    scores.max_by(|a, b| score(a.1).total_cmp(&score(b.1))).map_or(0, |(place, _)| place)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sides(weights: &[(&str, u32)]) -> Vec<SplitSide> {
        weights.iter().map(|&(target, weight)| SplitSide { target: target.into(), weight }).collect()
    }

    #[test]
    fn chance_goes_by_weight() {
        let sides = sides(&[("a", 95), ("none", 0), ("b", 5)]);
        let count = 100_000_u64;
        let mut got = [0_u64; 3];
        for number in 0..count {
            let step = u64::MAX / count;
            got[by_chance(&sides, step * number + step / 2)] += 1;
        }
        assert_eq!(got, [95_000, 0, 5_000]);
        assert_eq!((by_chance(&sides, 0), by_chance(&sides, u64::MAX)), (0, 2));
    }

    #[test]
    fn who_moves_when_weights_move_goes_to_the_side_that_grew() {
        let (before, after) = (sides(&[("a", 95), ("b", 5)]), sides(&[("a", 90), ("b", 10)]));
        let (mut old, mut new, mut strayed) = (0, 0, 0);
        for key in 0..100_000_u64 {
            let key = xxh3_64_with_seed(b"client", key);
            let (was, is) = (by_hash(&before, key), by_hash(&after, key));
            old += was;
            new += is;
            strayed += usize::from(was == 1 && is == 0);
        }
        assert!((4_700..=5_300).contains(&old) && (9_600..=10_400).contains(&new), "{old} {new}");
        assert_eq!(strayed, 0);
    }

    #[test]
    fn a_third_side_takes_from_both_and_moves_nobody_between_them() {
        let (before, after) = (sides(&[("a", 50), ("b", 50)]), sides(&[("a", 50), ("b", 50), ("c", 20)]));
        for key in 0..10_000_u64 {
            let key = xxh3_64_with_seed(b"client", key);
            let (was, is) = (by_hash(&before, key), by_hash(&after, key));
            assert!(is == was || is == 2);
        }
    }
}
