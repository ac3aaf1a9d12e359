//! How many attempts a target gets beyond one for each request: a bucket of tokens, filled by requests.
//!
//! A retry may make an overload worse: so there are never more of them than a share of the requests. The share is exact
//! over all workers and at any time, with two exceptions that are lent and paid back: a fresh bucket begins with a few
//! tokens, so that the very first request may be repeated; and one that has given nothing for a while gives one, so that a
//! target with little traffic gets a retry too.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::tick::Tick;

/// Tokens that a fresh bucket holds, and owes.
const LOAN: u16 = 3;
/// Tokens that are saved at most: what a quiet hour may add to a bad minute.
const SAVED: u16 = 100;
/// Tokens that are owed at most; what goes beyond is forgiven.
const OWED: u16 = 10;
/// Seconds without a token given after which an empty bucket lends one.
const LENT_AFTER: u32 = 10;

/// A bucket. Tokens given never exceed those that came in by more than what is owed: `saved - owed` is what came in less
/// what was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct BudgetWord {
    saved: u16,
    owed: u16,
    /// When the last token was given, in seconds.
    given: u32,
}

impl BudgetWord {
    const FRESH: BudgetWord = BudgetWord { saved: LOAN, owed: LOAN, given: 0 };

    const fn unpack(bits: u64) -> BudgetWord {
        BudgetWord { saved: bits as u16, owed: (bits >> 16) as u16, given: (bits >> 32) as u32 }
    }

    const fn pack(self) -> u64 {
        self.saved as u64 | (self.owed as u64) << 16 | (self.given as u64) << 32
    }

    /// One token more: it pays a debt before it is saved.
    const fn put(self) -> BudgetWord {
        if self.owed > 0 {
            BudgetWord { owed: self.owed - 1, ..self }
        } else if self.saved < SAVED {
            BudgetWord { saved: self.saved + 1, ..self }
        } else {
            self
        }
    }

    /// One token less; `None`: there is none, and none is lent.
    const fn take(self, second: u32) -> Option<BudgetWord> {
        if self.saved > 0 {
            Some(BudgetWord { saved: self.saved - 1, given: second, ..self })
        } else if second.wrapping_sub(self.given) > LENT_AFTER {
            let owed = if self.owed < OWED { self.owed + 1 } else { OWED };
            Some(BudgetWord { owed, given: second, ..self })
        } else {
            None
        }
    }
}

/// The tokens of one target, shared by all workers.
#[derive(Debug)]
pub struct Budget(AtomicU64);

impl Default for Budget {
    fn default() -> Self {
        Budget(AtomicU64::new(BudgetWord::FRESH.pack()))
    }
}

impl Budget {
    /// Puts a token in: one that requests have filled, or one that was taken and not used.
    pub fn put(&self) {
        let _ = self.change(|word| Some(word.put()));
    }

    /// Takes a token. False: there is none.
    #[must_use]
    pub fn take(&self, now: Tick) -> bool {
        let second = (now.0 / 1_000_000_000) as u32;
        self.change(|word| word.take(second))
    }

    fn change(&self, change: impl Fn(BudgetWord) -> Option<BudgetWord>) -> bool {
        let next = |bits| change(BudgetWord::unpack(bits)).map(BudgetWord::pack);
        self.0.fetch_update(Ordering::AcqRel, Ordering::Acquire, next).is_ok()
    }
}

/// A token of one worker that is being filled: requests add to it without a shared write.
#[derive(Debug, Default)]
pub struct BudgetShare(Cell<u32>);

impl BudgetShare {
    /// Adds `percent` of a token; a full one goes into `budget`.
    #[inline]
    pub fn add(&self, percent: u8, budget: &Budget) {
        let sum = self.0.get() + u32::from(percent);
        if sum < 100 {
            self.0.set(sum);
        } else {
            self.0.set(sum - 100);
            budget.put();
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const fn second(number: u64) -> Tick {
        Tick(number * 1_000_000_000)
    }

    #[test]
    fn a_fresh_bucket_gives_its_loan_at_once_and_pays_it_back_first() {
        let budget = Budget::default();
        let taken = |now| (0..100).take_while(|_| budget.take(second(now))).count();
        assert_eq!(taken(100), 3);
        for _ in 0..3 {
            budget.put();
            assert_eq!(taken(101), 0, "the loan is paid back");
        }
        budget.put();
        assert_eq!(taken(102), 1);
    }

    #[test]
    fn a_loan_that_was_not_used_does_not_grow_what_may_be_given() {
        let budget = Budget::default();
        (0..3).for_each(|_| budget.put());
        let taken = (0..100).take_while(|_| budget.take(second(1))).count();
        assert_eq!(taken, 3, "as many as came in");
    }

    #[test]
    fn one_more_is_lent_when_none_was_given_for_ten_seconds() {
        let budget = Budget::default();
        (0..3).for_each(|_| assert!(budget.take(second(100))));
        assert!(!budget.take(second(110)));
        assert!(budget.take(second(111)));
        assert!(!budget.take(second(111)) && !budget.take(second(121)));
        assert!(budget.take(second(122)));
        // Five are owed.
        for _ in 0..5 {
            budget.put();
            assert!(!budget.take(second(123)));
        }
        budget.put();
        assert!(budget.take(second(123)));
    }

    #[test]
    fn what_is_saved_has_a_limit() {
        let budget = Budget::default();
        (0..1000).for_each(|_| budget.put());
        let taken = (0..1000).take_while(|_| budget.take(second(1))).count();
        assert_eq!(taken, usize::from(SAVED));
    }

    #[test]
    fn a_worker_puts_in_whole_tokens_only() {
        for percent in [1, 5, 20, 33, 99, 100] {
            let (budget, saving) = (Budget::default(), BudgetShare::default());
            (0..3).for_each(|_| assert!(budget.take(second(1))));
            let mut given = 0;
            for requests in 1..=1000_u32 {
                saving.add(percent, &budget);
                given += u32::from(budget.take(second(2)));
                let full = requests * u32::from(percent) / 100;
                assert_eq!(given, full.saturating_sub(3), "{percent} % after {requests}");
            }
        }
    }

    #[test]
    fn threads_never_get_more_than_came_in() {
        use std::sync::atomic::AtomicU32;
        let (budget, given) = (Budget::default(), AtomicU32::new(0));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let saving = BudgetShare::default();
                    for _ in 0..5000 {
                        saving.add(20, &budget);
                        given.fetch_add(u32::from(budget.take(second(1))), Ordering::Relaxed);
                    }
                });
            }
        });
        let given = given.into_inner();
        assert!((3_900..=4_000).contains(&given), "{given} of 20,000");
    }

    proptest! {
        /// Of requests, retries asked for and unused ones, in any order and at any time.
        #[test]
        fn retries_stay_within_the_share_of_requests(
            percent in 0_u8..=100,
            steps in prop::collection::vec((0_u8..4, 0_u64..4), 0..2000),
        ) {
            let (budget, saving) = (Budget::default(), BudgetShare::default());
            let (mut requests, mut retries, mut clock, mut last) = (0_u32, 0_u32, 1000, 0);
            let mut lent = 3;
            for (step, pause) in steps {
                clock += if pause == 3 { 4 } else { 0 };
                match step {
                    0 | 1 => {
                        requests += 1;
                        saving.add(percent, &budget);
                    }
                    2 => if budget.take(second(clock)) {
                        retries += 1;
                        lent += u32::from(retries > 1 && clock - last > 10);
                        last = clock;
                    },
                    _ => if retries > 0 && budget.take(second(clock)) {
                        // Nobody else was there: it was not used.
                        last = clock;
                        budget.put();
                    },
                }
                let earned = requests * u32::from(percent) / 100;
                prop_assert!(retries <= earned.max(3) + lent, "{retries} of {requests}, {lent} lent");
            }
        }

        #[test]
        fn no_word_is_lost_in_its_bits(saved in any::<u16>(), owed in any::<u16>(), given in any::<u32>()) {
            let word = BudgetWord { saved, owed, given };
            prop_assert_eq!(BudgetWord::unpack(word.pack()), word);
        }
    }
}
