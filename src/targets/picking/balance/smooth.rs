//! The order in which weighted backends take turns: the smooth one, in which nobody gets its share in one go.
//!
//! The rule is nginx's: each backend's credit grows by its weight, the one with the most gets the turn and pays the
//! sum of all weights; of equals the first. 5:1:1 gives `a a b a c a a`. The order is computed once for a live
//! set and then only read.

/// Most turns of one order: weights whose sum is greater, divided by their greatest common divisor, are coarsened.
const TURNS: u64 = 1 << 20;

/// In which order places take turns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// So many places, one after the other.
    Even(usize),
    /// These places, again and again.
    Smooth(Box<[u32]>),
}

impl Order {
    /// The order for places of these weights, each at least 1.
    #[must_use]
    pub(super) fn new(weights: &[u16]) -> Order {
        let divisor = weights.iter().fold(0, |divisor, &weight| common(divisor, weight.max(1)));
        let mut shares: Vec<u64> =
            weights.iter().map(|&weight| u64::from(weight.max(1) / divisor.max(1))).collect();
        let sum: u64 = shares.iter().sum();
        if sum > TURNS {
            let coarse = sum.div_ceil(TURNS);
            shares.iter_mut().for_each(|share| *share = (*share / coarse).max(1));
        }
        match shares.iter().max() {
            None | Some(1) => Order::Even(shares.len()),
            Some(_) => Order::Smooth(smooth(&shares)),
        }
    }

    /// How many turns it has before it begins again.
    #[must_use]
    #[inline]
    pub(super) fn len(&self) -> usize {
        match self {
            Order::Even(len) => *len,
            Order::Smooth(places) => places.len(),
        }
    }

    /// Whose turn the `nth` is, below [`Order::len`]; place 0 of an empty one.
    #[must_use]
    #[inline]
    pub(super) fn place(&self, nth: usize) -> usize {
        match self {
            Order::Even(_) => nth,
            Order::Smooth(places) => places.get(nth).map_or(0, |place| *place as usize),
        }
    }
}

/// The greatest common divisor.
fn common(mut a: u16, mut b: u16) -> u16 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// Places of one weight. Among them the turn goes round, so that only the next one needs to be compared with the
/// other weights: a step costs as much as there are different weights, not backends.
struct Class {
    share: u64,
    places: Vec<u32>,
    next: usize,
    rounds: u64,
}

fn smooth(shares: &[u64]) -> Box<[u32]> {
    let mut classes: Vec<Class> = Vec::new();
    for (place, &share) in (0..).zip(shares) {
        match classes.iter_mut().find(|class| class.share == share) {
            Some(class) => class.places.push(place),
            None => classes.push(Class { share, places: vec![place], next: 0, rounds: 0 }),
        }
    }
    let sum: u64 = shares.iter().sum();
    let turn = |turn: u64| {
        // After `turn` turns a place has had `share × turn` of credit and has paid `sum` for each of its own.
        let credit = |class: &Class| i128::from(class.share * turn) - i128::from(sum * class.rounds);
        let best = classes.iter_mut().reduce(|best, other| {
            let key = |class: &Class| (credit(class), std::cmp::Reverse(class.places[class.next]));
            if key(other) > key(best) { other } else { best }
        });
        let class = best.expect("there is a place");
        let place = class.places[class.next];
        class.next += 1;
        if class.next == class.places.len() {
            (class.next, class.rounds) = (0, class.rounds + 1);
        }
        place
    };
    (1..=sum).map(turn).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn letters(weights: &[u16]) -> String {
        let order = Order::new(weights);
        (0..order.len()).map(|nth| ('a'..).nth(order.place(nth)).expect("a letter")).collect()
    }

    #[test]
    fn weights_give_the_smooth_order() {
        assert_eq!(letters(&[5, 1, 1]), "aabacaa");
        assert_eq!(letters(&[50, 10, 10]), "aabacaa", "weights are divided by their greatest common divisor");
        assert_eq!(letters(&[1, 1, 1]), "abc");
        assert_eq!(letters(&[7, 7]), "ab");
        assert_eq!(letters(&[3, 1]), "aaba");
        assert_eq!(letters(&[2, 3]), "babab");
        assert_eq!(Order::new(&[]).len(), 0);
        assert_eq!(Order::new(&[]).place(0), 0);
    }

    #[test]
    fn a_huge_sum_is_coarsened_and_nobody_is_left_out() {
        let weights: Vec<u16> = (0..10_000).map(|n| if n % 2 == 0 { 255 } else { 256 }).collect();
        let order = Order::new(&weights);
        assert!(order.len() as u64 <= TURNS);
        let mut seen = vec![false; weights.len()];
        (0..order.len()).for_each(|nth| seen[order.place(nth)] = true);
        assert!(seen.into_iter().all(|seen| seen));
    }

    /// nginx's rule as it is written down.
    fn plain(weights: &[u16]) -> Vec<usize> {
        let sum: i64 = weights.iter().map(|&weight| i64::from(weight)).sum();
        let mut credit = vec![0_i64; weights.len()];
        let step = |_| {
            credit.iter_mut().zip(weights).for_each(|(credit, &weight)| *credit += i64::from(weight));
            let most = *credit.iter().max().expect("one");
            let place = credit.iter().position(|&credit| credit == most).expect("it is there");
            credit[place] -= sum;
            place
        };
        (0..sum).map(step).collect()
    }

    proptest! {
        #[test]
        fn it_is_the_plain_rule(weights in proptest::collection::vec(1_u16..12, 1..12)) {
            let order = Order::new(&weights);
            let ours: Vec<usize> = (0..order.len()).map(|nth| order.place(nth)).collect();
            let theirs = plain(&weights);
            prop_assert_eq!(&ours[..], &theirs[..ours.len()]);
            for (place, &weight) in weights.iter().enumerate() {
                let turns = ours.iter().filter(|&&other| other == place).count();
                let all: usize = weights.iter().map(|&weight| usize::from(weight)).sum();
                prop_assert_eq!(turns * all, usize::from(weight) * ours.len());
            }
        }
    }
}
