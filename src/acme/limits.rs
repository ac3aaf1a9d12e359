//! How often an authority may be asked, as a decision without I/O.
//!
//! The numbers are those that Let's Encrypt publishes, which other authorities do not undercut. They hold for each account, so they are
//! counted by what was ever asked, over restarts too: what was begun and of which nobody knows the end counts as if it had gone the
//! worst way.

use std::collections::BTreeMap;

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

/// Longer ago than this nothing counts.
pub(super) const MEMORY: i64 = 7 * DAY;
/// Orders of one account in three hours, at most.
const ORDERS: RateBound = RateBound { most: 300, span: 3 * HOUR };
/// Accounts from one address in three hours.
const ACCOUNTS: RateBound = RateBound { most: 10, span: 3 * HOUR };
/// Orders in an hour that may fail for one name.
const FAILURES: RateBound = RateBound { most: 5, span: HOUR };
/// Certificates with the very same names in seven days.
const DUPLICATES: RateBound = RateBound { most: 5, span: MEMORY };
/// Certificates in seven days with a name below the same registered domain.
const PER_DOMAIN: RateBound = RateBound { most: 50, span: MEMORY };

/// So many in so many seconds, at most.
#[derive(Clone, Copy, Debug)]
pub(super) struct RateBound {
    pub(super) most: usize,
    pub(super) span: i64,
}

impl RateBound {
    /// From when on there is room for one more: `times` are those of what counts, in any order.
    fn free(self, times: impl Iterator<Item = i64>, now: i64) -> i64 {
        let mut counting: Vec<i64> = times.filter(|at| *at > now - self.span).collect();
        if counting.len() < self.most {
            return now;
        }
        counting.sort_unstable();
        // When that one does not count any more there are fewer than `most`.
        counting[counting.len() - self.most] + self.span
    }
}

/// How an order has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OrderEnd {
    /// Nobody knows, or it has not yet; it did not come to be signed.
    Open,
    /// The same, and the authority was asked to sign: it may have.
    Signing,
    /// There is a certificate.
    Issued,
    /// There is none.
    Failed,
    /// The authority was never asked: nobody was there.
    Unreached,
}

/// What an authority was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum LedgerEntry {
    /// An account.
    Account { at: i64 },
    /// A certificate for these names, in the order of the alphabet.
    Order {
        at: i64,
        names: Vec<String>,
        end: OrderEnd,
        /// Until when the authority does not want to be asked again.
        rest: Option<i64>,
    },
}

impl LedgerEntry {
    /// Whether it is the same question, however it has ended.
    pub(super) fn is_same(&self, other: &LedgerEntry) -> bool {
        match (self, other) {
            (LedgerEntry::Account { at }, LedgerEntry::Account { at: of_other }) => at == of_other,
            (
                LedgerEntry::Order { at, names, .. },
                LedgerEntry::Order { at: of_other, names: others, .. },
            ) => at == of_other && names == others,
            _ => false,
        }
    }
}

/// Attempts in a row that have failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Failures {
    /// How many.
    pub(super) count: u32,
    /// When the latest was begun.
    pub(super) latest: i64,
    /// Nobody was there in the latest.
    pub(super) is_unreached: bool,
    /// Until when the authority does not want to be asked again.
    pub(super) rest: Option<i64>,
}

/// The longest time for which an authority is believed that wants to be left alone.
pub(super) const LONGEST_REST: i64 = MEMORY;

/// What one authority was asked for lately, by number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Ledger {
    asked: BTreeMap<u64, LedgerEntry>,
    next: u64,
}

/// What of a name an authority takes for the registered domain: its last two labels. Where a country has domains at the third level
/// that is too few, which makes us ask less often.
fn domain(name: &str) -> &str {
    let end = name.rmatch_indices('.').nth(1).map_or(0, |(dot, _)| dot + 1);
    &name[end..]
}

impl Ledger {
    /// From when on a certificate for `names`, in the order of the alphabet, may be ordered of an authority that everybody may ask.
    pub(super) fn free(&self, names: &[String], now: i64) -> i64 {
        let orders = || {
            self.asked.values().filter_map(|asked| match asked {
                LedgerEntry::Order { end: OrderEnd::Unreached, .. } | LedgerEntry::Account { .. } => None,
                LedgerEntry::Order { at, names, end, .. } => Some((*at, names, *end)),
            })
        };
        let mut free = ORDERS.free(orders().map(|(at, ..)| at), now);
        let issued = || orders().filter(|(.., end)| matches!(end, OrderEnd::Issued | OrderEnd::Signing));
        free = free.max(DUPLICATES.free(issued().filter(|(_, of, _)| **of == names).map(|(at, ..)| at), now));
        for name in names {
            let failed = orders().filter(|(_, of, end)| *end != OrderEnd::Issued && of.contains(name));
            free = free.max(FAILURES.free(failed.map(|(at, ..)| at), now));
            let near = issued().filter(|(_, of, _)| of.iter().any(|other| domain(other) == domain(name)));
            free = free.max(PER_DOMAIN.free(near.map(|(at, ..)| at), now));
        }
        free
    }

    /// From when on an account may be made.
    pub(super) fn free_for_account(&self, now: i64) -> i64 {
        let accounts = self.asked.values().filter_map(|asked| match asked {
            LedgerEntry::Account { at } => Some(*at),
            LedgerEntry::Order { .. } => None,
        });
        ACCOUNTS.free(accounts, now)
    }

    /// Attempts in a row for these names that have failed; `None`: the latest has not.
    pub(super) fn failures(&self, names: &[String]) -> Option<Failures> {
        let mut failures: Option<Failures> = None;
        for asked in self.asked.values().rev() {
            match asked {
                LedgerEntry::Order { names: of, end: OrderEnd::Issued, .. } if *of == names => break,
                LedgerEntry::Order { names: of, at, end, rest } if *of == names => {
                    let is_unreached = *end == OrderEnd::Unreached;
                    let last = Failures { count: 0, latest: *at, is_unreached, rest: *rest };
                    failures.get_or_insert(last).count += 1;
                }
                LedgerEntry::Order { .. } | LedgerEntry::Account { .. } => {}
            }
        }
        failures
    }

    /// Notes what the authority is about to be asked for. Gives its number.
    pub(super) fn begin(&mut self, asked: LedgerEntry) -> u64 {
        let number = self.next;
        self.next += 1;
        self.asked.insert(number, asked);
        number
    }

    /// Notes what was noted before, under its number.
    pub(super) fn put(&mut self, number: u64, asked: LedgerEntry) {
        self.next = self.next.max(number + 1);
        self.asked.insert(number, asked);
    }

    /// When the last certificate but one was issued for these names: two may follow one another at once, a third has to wait.
    pub(super) fn last_but_one(&self, names: &[String]) -> Option<i64> {
        self.issued(names).nth(1)
    }

    /// When the last certificate was asked for that was issued for these names.
    pub(super) fn last_issued(&self, names: &[String]) -> Option<i64> {
        self.issued(names).next()
    }

    /// When each was asked for that was issued, the last one first.
    fn issued(&self, names: &[String]) -> impl Iterator<Item = i64> {
        self.asked.values().rev().filter_map(move |entry| match entry {
            LedgerEntry::Order { at, names: of, end: OrderEnd::Issued, .. } if *of == names => Some(*at),
            LedgerEntry::Order { .. } | LedgerEntry::Account { .. } => None,
        })
    }

    /// Notes how an order has ended, and until when the authority does not want to be asked again.
    pub(super) fn end(&mut self, number: u64, ended: OrderEnd, until: Option<i64>) {
        if let Some(LedgerEntry::Order { end, rest, .. }) = self.asked.get_mut(&number) {
            (*end, *rest) = (ended, until);
        }
    }

    /// Takes back what was noted: the authority was not asked.
    pub(super) fn withdraw(&mut self, number: u64) {
        self.asked.remove(&number);
    }

    /// Nothing has been asked in the future, whatever clocks have said, and no rest is longer than the longest.
    pub(super) fn settle(&mut self, now: i64) {
        for entry in self.asked.values_mut() {
            match entry {
                LedgerEntry::Account { at } => *at = (*at).min(now),
                LedgerEntry::Order { at, rest, .. } => {
                    *at = (*at).min(now);
                    *rest = rest.map(|rest| rest.min(now.saturating_add(LONGEST_REST)));
                }
            }
        }
    }

    /// Forgets what does not count any more.
    pub(super) fn forget(&mut self, now: i64) {
        self.asked.retain(|_, asked| match asked {
            LedgerEntry::Account { at } | LedgerEntry::Order { at, .. } => *at > now - MEMORY,
        });
    }

    /// All of it.
    pub(super) fn all(&self) -> impl Iterator<Item = (u64, &LedgerEntry)> {
        self.asked.iter().map(|(number, asked)| (*number, asked))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(all: &[&str]) -> Vec<String> {
        all.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn a_bound_opens_when_the_oldest_that_counts_is_too_old() {
        let bound = RateBound { most: 2, span: 100 };
        assert_eq!(bound.free([].into_iter(), 50), 50);
        assert_eq!(bound.free([10].into_iter(), 50), 50);
        assert_eq!(bound.free([30, 10].into_iter(), 50), 110);
        assert_eq!(bound.free([30, 10, 40].into_iter(), 50), 130);
        assert_eq!(bound.free([30, 10].into_iter(), 110), 110, "the first is gone by now");
    }

    #[test]
    fn what_lies_below_one_domain_counts_together() {
        for (name, of) in [
            ("a.example.com", "example.com"),
            ("example.com", "example.com"),
            ("com", "com"),
            ("*.a.b.example.com", "example.com"),
        ] {
            assert_eq!(domain(name), of);
        }
    }

    #[test]
    fn what_was_begun_counts_in_every_way_until_its_end_is_known() {
        let mut ledger = Ledger::default();
        let of = names(&["a.example"]);
        let order =
            |at| LedgerEntry::Order { at, names: names(&["a.example"]), end: OrderEnd::Open, rest: None };
        let numbers: Vec<u64> = (0..5).map(|at| ledger.begin(order(at))).collect();
        assert_eq!(ledger.free(&of, 10), HOUR, "none was signed");
        for number in &numbers {
            ledger.end(*number, OrderEnd::Signing, None);
        }
        assert_eq!(ledger.free(&of, 10), MEMORY, "they may have been issued");
        for number in &numbers {
            ledger.end(*number, OrderEnd::Failed, None);
        }
        assert_eq!(ledger.free(&of, 10), HOUR, "none was");
        assert_eq!(
            ledger.failures(&of),
            Some(Failures { count: 5, latest: 4, is_unreached: false, rest: None })
        );
        ledger.end(numbers[4], OrderEnd::Unreached, None);
        assert_eq!(ledger.free(&of, 10), 10, "four have failed, and nobody was asked for a fifth");
        ledger.end(numbers[4], OrderEnd::Issued, None);
        assert_eq!((ledger.free(&of, 10), ledger.failures(&of)), (10, None));
        ledger.forget(MEMORY + 3);
        assert_eq!(ledger.all().count(), 1);
    }
    #[test]
    fn a_clock_that_was_ahead_holds_nobody_up() {
        let mut ledger = Ledger::default();
        let of = names(&["a.example"]);
        for rest in [None, Some(i64::MAX)] {
            let entry = LedgerEntry::Order { at: 1 << 40, names: of.clone(), end: OrderEnd::Failed, rest };
            ledger.begin(entry);
        }
        ledger.settle(1_000);
        let failures = ledger.failures(&of).expect("two");
        assert_eq!((failures.latest, failures.rest), (1_000, Some(1_000 + LONGEST_REST)));
        ledger.settle(2_000);
        assert_eq!(
            ledger.failures(&of).expect("two").rest,
            Some(1_000 + LONGEST_REST),
            "it does not move along"
        );
    }
}
