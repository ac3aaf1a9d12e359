//! A table of even shares: Eisenbud et al., "Maglev: A Fast and Reliable Software Network Load Balancer", NSDI 2016,
//! §3.4.
//!
//! Each backend has an order of its own over all slots, made of its identity. In turns, each takes the next slot of its
//! order that is free. Shares differ by one turn at most, and when a backend leaves, most slots of the others stay. The table
//! follows from identities and weights alone, so two nodes that list the same backends in different orders
//! send a key to the same backend.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::algorithm::{Algorithm, Draw};
use super::hashed::{Weighed, ranked};
use crate::targets::picking::candidates::Lineup;
use crate::targets::picking::hash::{again, hash, scaled};

/// Slots of a table for few members, a prime: with 655 of them a share is 100 slots, and one more or less is 1 %.
const SMALL: usize = 65_537;
/// Slots of a table for more, a prime.
const LARGE: usize = 655_373;
/// How many members a small table serves.
const FEW: usize = 655;
/// How many slots a key tries.
const LOOKS: u32 = 16;
/// Turns are taken at times of `1/weight`; this many units are 1.
const UNIT: u64 = 1 << 40;

/// A table from keys to places.
#[derive(Debug, Default)]
pub(super) struct Maglev {
    slots: Box<[u16]>,
}

impl Maglev {
    /// The table of `members`, which are those of `configured` that are live: the size goes by `configured`, so that
    /// health does not change it. A place is an index of `members`.
    #[must_use]
    fn of(members: &[Weighed<'_>], configured: usize) -> Maglev {
        let size = if configured <= FEW { SMALL } else { LARGE };
        let ranked = ranked(members);
        if ranked.is_empty() {
            return Maglev::default();
        }
        let mut filling =
            Filling { slots: vec![0; size].into(), taken: vec![0; size.div_ceil(64)], left: size };
        let mut orders: Vec<Order> = ranked.iter().map(|&place| Order::new(members, place, size)).collect();
        // Members of one weight take their turns together; in a stable sort they stay in the order of their ranks.
        orders.sort_by_key(|order| Reverse(order.weight));
        let mut classes: Vec<&mut [Order]> = orders.chunk_by_mut(|a, b| a.weight == b.weight).collect();
        // The k-th turn of weight w is at (k + ½) / w, so that a share is right to half a slot wherever the table is full.
        let due = |class: &[Order], turn: u64| UNIT * (2 * turn + 1) / u64::from(class[0].weight);
        let mut turns: BinaryHeap<_> =
            classes.iter().enumerate().map(|(at, class)| Reverse((due(class, 0), at, 0))).collect();
        while let Some(Reverse((_, at, turn))) = turns.pop() {
            let class = &mut *classes[at];
            if !class.iter_mut().all(|order| filling.take(order)) {
                break;
            }
            turns.push(Reverse((due(class, turn + 1), at, turn + 1)));
        }
        Maglev { slots: filling.slots }
    }

    /// The place for `key`; 0 when there are no members. For the next choice ask with [`again`].
    #[inline]
    #[must_use]
    fn place(&self, key: u64) -> usize {
        self.slots.get(scaled(key, self.slots.len())).map_or(0, |&place| usize::from(place))
    }
}

impl Algorithm for Maglev {
    const DRAWS: usize = 1;

    fn new(lineup: &Lineup<'_>) -> Self {
        Maglev::of(&lineup.live(), lineup.configured.len())
    }

    fn draw(&self, draw: &Draw<'_>) -> Option<usize> {
        let key = draw.key();
        (0..LOOKS).map(|nth| self.place(again(key, nth))).find(|&place| draw.may(place))
    }
}

/// A member's order over the slots: from `next` on in steps of `skip`, which meets each once since their number is a prime.
struct Order {
    next: u32,
    skip: u32,
    place: u16,
    weight: u16,
}

impl Order {
    fn new(members: &[Weighed<'_>], place: u16, size: usize) -> Order {
        let (identity, weight) = members[usize::from(place)];
        let seed = hash(identity.as_bytes());
        // Both are below the size, which fits.
        let next = scaled(again(seed, 1), size) as u32;
        let skip = 1 + scaled(again(seed, 2), size - 1) as u32;
        Order { next, skip, place, weight: weight.max(1) }
    }
}

/// A table that is being filled.
struct Filling {
    slots: Box<[u16]>,
    /// A bit for each slot: most looks find one that is taken, and this much stays in the cache.
    taken: Vec<u64>,
    left: usize,
}

impl Filling {
    /// Gives `order` its next free slot; `false`: there is none.
    #[inline]
    fn take(&mut self, order: &mut Order) -> bool {
        if self.left == 0 {
            return false;
        }
        self.left -= 1;
        let size = self.slots.len() as u32;
        loop {
            let slot = order.next as usize;
            let stepped = order.next + order.skip;
            order.next = if stepped >= size { stepped - size } else { stepped };
            let (word, bit) = (&mut self.taken[slot / 64], 1 << (slot % 64));
            if *word & bit == 0 {
                *word |= bit;
                self.slots[slot] = order.place;
                return true;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::hashed::fixtures::{identities, members, shuffled};
    use super::*;

    /// How many slots each place has.
    fn shares(table: &Maglev, members: usize) -> Vec<usize> {
        let mut shares = vec![0; members];
        table.slots.iter().for_each(|&place| shares[usize::from(place)] += 1);
        shares
    }

    /// The share of slots whose identity is another one in `after`.
    fn moved(before: (&Maglev, &[Weighed<'_>]), after: (&Maglev, &[Weighed<'_>])) -> f64 {
        let name = |members: &[Weighed<'_>], place: u16| members[usize::from(place)].0.to_owned();
        let names: Vec<String> = (0..before.1.len()).map(|place| name(before.1, place as u16)).collect();
        let later: Vec<String> = (0..after.1.len()).map(|place| name(after.1, place as u16)).collect();
        let both = before.0.slots.iter().zip(&after.0.slots);
        let differ = both.filter(|(a, b)| names[usize::from(**a)] != later[usize::from(**b)]).count();
        assert_eq!(before.0.slots.len(), after.0.slots.len(), "one size");
        differ as f64 / before.0.slots.len() as f64
    }

    #[test]
    fn the_size_goes_by_the_configured_members() {
        let names = identities("web", 3);
        let of = |configured| Maglev::of(&members(&names), configured).slots.len();
        assert_eq!([3, 655, 656, 10_000].map(of), [65_537, 65_537, 655_373, 655_373]);
        assert_eq!(Maglev::of(&[], 3).place(7), 0);
        assert_eq!(Maglev::of(&members(&names[..1]), 3).place(u64::MAX), 0);
    }

    #[test]
    fn shares_of_equal_weights_differ_by_one_slot() {
        for count in [1, 2, 3, 7, 100, 499, 500, 655] {
            let names = identities("web", count);
            let shares = shares(&Maglev::of(&members(&names), count), count);
            let (least, most) = (shares.iter().min().unwrap(), shares.iter().max().unwrap());
            assert!(most - least <= 1, "{count}: {least} to {most}");
            assert!(*most as f64 / *least as f64 <= 1.02, "{count}: {least} to {most}");
        }
    }

    /// A node that was written down in another order, and one that has seen other failures, agree.
    #[test]
    fn two_nodes_with_other_orders_assign_alike() {
        let names = identities("web", 40);
        let weights: Vec<u16> = (0..40).map(|at| 1 + at % 7 * 3).collect();
        let listed: Vec<Weighed<'_>> = names.iter().map(String::as_str).zip(weights).collect();
        let other = shuffled(&listed, 11);
        assert_ne!(listed, other);
        let (a, b) = (Maglev::of(&listed, 40), Maglev::of(&other, 40));
        assert_eq!(moved((&a, &listed), (&b, &other)), 0.0);
    }

    /// A change of these numbers would move the keys of everybody who upgrades.
    #[test]
    fn a_table_stays_what_it_is_from_release_to_release() {
        let names = identities("web", 5);
        let table = Maglev::of(&members(&names), 5);
        let text: Vec<u8> = table.slots.iter().flat_map(|place| place.to_le_bytes()).collect();
        assert_eq!(hash(&text), 13_735_962_540_292_267_811);
    }

    #[test]
    fn few_keys_move_when_one_leaves() {
        for count in [2, 3, 4, 5, 8, 13, 30, 75, 200, 350, 500] {
            let names = identities("moving", count);
            let all = members(&names);
            let full = Maglev::of(&all, count);
            for gone in [0, count / 2, count - 1] {
                let mut rest = all.clone();
                rest.remove(gone);
                let share = moved((&full, &all), (&Maglev::of(&rest, count), &rest));
                let bound = 1.0 / count as f64 + 0.04;
                assert!(share <= bound, "{gone} of {count}: {share:.4} moved, {bound:.4} may");
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

        #[test]
        fn shares_are_in_proportion_to_weights(weights in prop::collection::vec(1u16..=256, 1..60)) {
            let names = identities("weighted", weights.len());
            let listed: Vec<Weighed<'_>> = names.iter().map(String::as_str).zip(weights.iter().copied()).collect();
            let sum: f64 = weights.iter().map(|&weight| f64::from(weight)).sum();
            let shares = shares(&Maglev::of(&listed, listed.len()), listed.len());
            prop_assert_eq!(shares.iter().sum::<usize>(), SMALL);
            for (share, weight) in shares.into_iter().zip(weights) {
                let due = SMALL as f64 * f64::from(weight) / sum;
                // Where a turn of several members is cut short by the end, each is off by one turn at most.
                prop_assert!((share as f64 - due).abs() <= 2.0, "{share} for {due}");
            }
        }

        #[test]
        fn a_leaver_of_any_weight_moves_few_keys(
            weights in prop::collection::vec(1u16..=256, 2..40), gone: prop::sample::Index
        ) {
            let names = identities("weighted", weights.len());
            let all: Vec<Weighed<'_>> = names.iter().map(String::as_str).zip(weights.iter().copied()).collect();
            let mut rest = all.clone();
            let gone = gone.index(all.len());
            let own = f64::from(rest.remove(gone).1) / weights.iter().map(|&weight| f64::from(weight)).sum::<f64>();
            let share = moved(
                (&Maglev::of(&all, all.len()), &all),
                (&Maglev::of(&rest, all.len()), &rest),
            );
            prop_assert!(share <= own + 0.04, "{share:.4} moved, {own:.4} was its share");
        }
    }
}
