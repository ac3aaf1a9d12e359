//! What authorities were asked for, kept over restarts: whoever is started again and again asks no more often than others.

use std::collections::{HashMap, HashSet};

use serde::{Deserialize, Serialize};

use super::limits::{Ledger, LedgerEntry, OrderEnd};
use crate::store::Store;

/// From so many bytes on the journal is written anew.
const LARGE: u64 = 1024 * 1024;

/// The ledgers of all authorities.
pub(super) struct Book {
    store: Box<dyn Store>,
    ledgers: HashMap<String, Ledger>,
    /// Orders of an authority whose certificates nobody else has yet.
    held: HashSet<(String, u64)>,
    /// Orders that were decided, and that nobody was told of yet: they may be taken back. They are in no [`lines`](Book::lines) of others.
    untold: HashSet<(String, u64)>,
}

/// One line. The later of two with the same number counts.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct AskedLine {
    authority: String,
    number: u64,
    /// In seconds since 1970.
    at: i64,
    /// `None`: it was an account.
    names: Option<Vec<String>>,
    /// `signing`, `issued`, `failed`, `unreached` or `withdrawn`; `None`: nobody knows.
    end: Option<String>,
    /// Until when the authority does not want to be asked again.
    #[serde(default)]
    rest: Option<i64>,
}

const ENDS: [(&str, OrderEnd); 4] = [
    ("signing", OrderEnd::Signing),
    ("issued", OrderEnd::Issued),
    ("failed", OrderEnd::Failed),
    ("unreached", OrderEnd::Unreached),
];
/// The authority was not asked after all.
const WITHDRAWN: &str = "withdrawn";

impl AskedLine {
    fn of(authority: &str, number: u64, asked: &LedgerEntry) -> AskedLine {
        let (at, names, end, rest) = match asked {
            LedgerEntry::Account { at } => (*at, None, OrderEnd::Open, None),
            LedgerEntry::Order { at, names, end, rest } => (*at, Some(names.clone()), *end, *rest),
        };
        let end = ENDS.iter().find(|(_, known)| *known == end).map(|(name, _)| (*name).to_owned());
        AskedLine { authority: authority.to_owned(), number, at, names, end, rest }
    }

    fn asked(&self) -> LedgerEntry {
        let end = ENDS.iter().find(|(name, _)| self.end.as_deref() == Some(*name));
        match &self.names {
            None => LedgerEntry::Account { at: self.at },
            Some(names) => LedgerEntry::Order {
                at: self.at,
                names: names.clone(),
                end: end.map_or(OrderEnd::Open, |(_, end)| *end),
                rest: self.rest,
            },
        }
    }

    fn bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("plain fields are always JSON")
    }
}

impl Book {
    /// Reads what is kept in `store`.
    ///
    /// # Errors
    /// It can't be read.
    pub(super) fn load(mut store: Box<dyn Store>, now: i64) -> Result<Book, String> {
        let kept = store.load().map_err(|error| error.to_string())?;
        let mut ledgers: HashMap<String, Ledger> = HashMap::new();
        for record in &kept.records {
            // A line of a later version is nobody's loss.
            let Ok(line) = serde_json::from_slice::<AskedLine>(record) else { continue };
            let ledger = ledgers.entry(line.authority.clone()).or_default();
            ledger.put(line.number, line.asked());
            if line.end.as_deref() == Some(WITHDRAWN) {
                ledger.withdraw(line.number);
            }
        }
        for ledger in ledgers.values_mut() {
            ledger.settle(now);
            ledger.forget(now);
        }
        let mut book = Book { store, ledgers, held: HashSet::new(), untold: HashSet::new() };
        if book.store.size() > LARGE {
            book.compact()?;
        }
        Ok(book)
    }

    /// What this authority was asked for until now.
    pub(super) fn ledger(&mut self, authority: &str, now: i64) -> &Ledger {
        let ledger = self.ledgers.entry(authority.to_owned()).or_default();
        ledger.settle(now);
        ledger
    }

    /// Takes back what was noted: it was not asked.
    pub(super) fn withdraw(&mut self, authority: &str, number: u64) {
        self.ledgers.entry(authority.to_owned()).or_default().withdraw(number);
        self.untold.remove(&(authority.to_owned(), number));
        let (authority, end) = (authority.to_owned(), Some(WITHDRAWN.to_owned()));
        let line = AskedLine { authority, number, at: 0, names: None, end, rest: None };
        let _ = self.store.append(&line.bytes());
    }

    /// Notes what it is about to be asked for. Gives the number of that.
    ///
    /// # Errors
    /// It can't be kept, so it must not be asked: nobody would know of it after a restart.
    pub(super) fn begin(&mut self, authority: &str, asked: LedgerEntry, now: i64) -> Result<u64, String> {
        if self.store.size() > LARGE {
            self.ledgers.values_mut().for_each(|ledger| ledger.forget(now));
            self.compact()?;
        }
        let ledger = self.ledgers.entry(authority.to_owned()).or_default();
        let number = ledger.begin(asked.clone());
        match self.store.append(&AskedLine::of(authority, number, &asked).bytes()) {
            Ok(()) => Ok(number),
            Err(error) => {
                ledger.end(number, OrderEnd::Unreached, None);
                Err(error.to_string())
            }
        }
    }

    /// The same of what others have to be told of first: until it [is told](Book::is_told) it is nobody's word.
    ///
    /// # Errors
    /// See [`Book::begin`].
    pub(super) fn decide(&mut self, authority: &str, asked: LedgerEntry, now: i64) -> Result<u64, String> {
        let number = self.begin(authority, asked, now)?;
        self.untold.insert((authority.to_owned(), number));
        Ok(number)
    }

    /// All who have to know of it do, or there is nobody.
    pub(super) fn is_told(&mut self, authority: &str, number: u64) {
        self.untold.remove(&(authority.to_owned(), number));
    }

    /// Notes how an order has ended, and until when the authority does not want to be asked again. If that can't be kept it counts as if nobody knew, after a restart.
    pub(super) fn end(&mut self, authority: &str, number: u64, end: OrderEnd, rest: Option<i64>) {
        let ledger = self.ledgers.entry(authority.to_owned()).or_default();
        ledger.end(number, end, rest);
        let asked = ledger.all().find(|(of, _)| *of == number).map(|(_, asked)| asked.clone());
        if let Some(asked) = asked {
            let _ = self.store.append(&AskedLine::of(authority, number, &asked).bytes());
        }
    }

    /// Nobody else has the certificate of this order yet: to others nothing is said of its end.
    pub(super) fn hold(&mut self, authority: &str, number: u64) {
        self.held.insert((authority.to_owned(), number));
    }

    /// All have what this authority has issued.
    pub(super) fn release(&mut self, authority: &str) {
        self.held.retain(|(of, _)| of != authority);
    }

    /// All lines of this authority, for others; of what they have not been told of yet that of this `number` alone.
    pub(super) fn lines(&self, authority: &str, number: Option<u64>) -> Vec<AskedLine> {
        let ledger = self.ledgers.get(authority);
        let is_word = |of: &u64| Some(*of) == number || !self.is_untold(authority, *of);
        let all = ledger.into_iter().flat_map(Ledger::all).filter(|(of, _)| is_word(of));
        all.map(|(number, asked)| match asked {
            LedgerEntry::Order { at, names, .. } if self.held.contains(&(authority.to_owned(), number)) => {
                let asked =
                    LedgerEntry::Order { at: *at, names: names.clone(), end: OrderEnd::Signing, rest: None };
                AskedLine::of(authority, number, &asked)
            }
            asked => AskedLine::of(authority, number, asked),
        })
        .collect()
    }

    /// Comes to know what others have asked it for; their numbers mean nothing here. What they have begun, and nobody knows the end of, counts as if it
    /// had gone the worst way.
    pub(super) fn learn(&mut self, authority: &str, lines: &[AskedLine], now: i64) {
        let mut new: Vec<LedgerEntry> = lines.iter().map(AskedLine::asked).collect();
        new.sort_by_key(|entry| match entry {
            LedgerEntry::Account { at } | LedgerEntry::Order { at, .. } => *at,
        });
        for entry in new {
            let ledger = self.ledgers.entry(authority.to_owned()).or_default();
            // An order of the same second that this node has decided, and may have to take back, is another one.
            let is_known = |(number, known): &(u64, &LedgerEntry)| {
                known.is_same(&entry) && !self.untold.contains(&(authority.to_owned(), *number))
            };
            let known = ledger.all().find(is_known).map(|(number, _)| number);
            let worst = match entry {
                LedgerEntry::Order { at, names, end: OrderEnd::Open, rest } => {
                    LedgerEntry::Order { at, names, end: OrderEnd::Signing, rest }
                }
                entry => entry,
            };
            match (known, worst) {
                (Some(number), LedgerEntry::Order { end, rest, .. }) if end != OrderEnd::Signing => {
                    self.end(authority, number, end, rest);
                }
                (Some(_), _) => {}
                // It counts also if it can't be kept.
                (None, entry) => drop(self.begin(authority, entry, now)),
            }
        }
        self.ledgers.entry(authority.to_owned()).or_default().forget(now);
    }

    fn is_untold(&self, authority: &str, number: u64) -> bool {
        self.untold.contains(&(authority.to_owned(), number))
    }

    /// Notes that what was asked for then was issued, as its certificate shows: whoever asked may have been gone before it could say how that ended.
    pub(super) fn was_issued(&mut self, authority: &str, names: &[String], asked: i64) {
        let ledger = self.ledgers.entry(authority.to_owned()).or_default();
        let open = ledger.all().find_map(|(number, entry)| match entry {
            LedgerEntry::Order { at, names: of, end, .. } => {
                (*at == asked && of == names && *end != OrderEnd::Issued).then_some(number)
            }
            LedgerEntry::Account { .. } => None,
        });
        if let Some(number) = open {
            self.end(authority, number, OrderEnd::Issued, None);
        }
    }

    fn compact(&mut self) -> Result<(), String> {
        let all = self.ledgers.iter().flat_map(|(authority, ledger)| {
            ledger.all().map(|(number, asked)| AskedLine::of(authority, number, asked).bytes())
        });
        let all: Vec<Vec<u8>> = all.collect();
        self.store.compact(&all).map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::memory::{MemoryDisk, MemoryStore};

    #[test]
    fn a_certificate_ends_the_order_that_it_came_of_and_no_other() {
        let mut book = Book::load(Box::new(MemoryStore(MemoryDisk::default())), 0).expect("a book");
        let names = vec!["a.example".to_owned()];
        let order = |at, names: &[String]| LedgerEntry::Order {
            at,
            names: names.to_vec(),
            end: OrderEnd::Open,
            rest: None,
        };
        for entry in [order(100, &names), order(200, &names), order(200, &["b.example".to_owned()])] {
            book.begin("one", entry, 200).expect("begun");
        }
        let told =
            |book: &Book| book.lines("one", None).into_iter().filter_map(|line| line.end).collect::<Vec<_>>();
        book.hold("one", 0);
        book.end("one", 0, OrderEnd::Issued, None);
        assert_eq!(book.ledger("one", 300).last_issued(&names), Some(100));
        assert_eq!(told(&book), ["signing"], "nobody has its certificate");
        book.release("one");
        assert_eq!(told(&book), ["issued"]);
        book.end("one", 0, OrderEnd::Open, None);
        book.was_issued("one", &names, 150);
        assert_eq!(book.ledger("one", 300).failures(&names).map(|failures| failures.count), Some(2));
        book.was_issued("one", &names, 200);
        let ledger = book.ledger("one", 300);
        assert_eq!((ledger.failures(&names), ledger.last_issued(&names)), (None, Some(200)));
        assert!(ledger.failures(&["b.example".to_owned()]).is_some(), "nobody knows of that one");
    }

    #[test]
    fn a_restart_knows_what_was_asked_for() {
        let disk = MemoryDisk::default();
        let names = vec!["a.example".to_owned()];
        let order = |at| LedgerEntry::Order { at, names: names.clone(), end: OrderEnd::Open, rest: None };
        let mut book = Book::load(Box::new(MemoryStore(disk.clone())), 0).expect("empty");
        book.begin("one", LedgerEntry::Account { at: 1 }, 1).expect("kept");
        let first = book.begin("one", order(2), 2).expect("kept");
        book.end("one", first, OrderEnd::Failed, Some(99));
        let account = book.begin("one", LedgerEntry::Account { at: 2 }, 2).expect("kept");
        book.withdraw("one", account);
        book.begin("one", order(3), 3).expect("kept");
        book.begin("two", order(4), 4).expect("kept");
        let before = book.ledger("one", 5).clone();
        let mut again = Book::load(Box::new(MemoryStore(disk.clone())), 5).expect("read");
        assert_eq!(*again.ledger("one", 5), before);
        assert_eq!(again.ledger("one", 5).failures(&names).map(|failures| failures.count), Some(2));
        assert_eq!(again.ledger("two", 5).all().count(), 1);
        assert_eq!(again.ledger("three", 5).all().count(), 0);
    }

    #[test]
    fn what_others_have_asked_for_counts_once_and_its_end_too() {
        let book = || Book::load(Box::new(MemoryStore(MemoryDisk::default())), 0).expect("empty");
        let names = vec!["a.example".to_owned()];
        let order = |at| LedgerEntry::Order { at, names: names.clone(), end: OrderEnd::Open, rest: None };
        let (mut one, mut other) = (book(), book());
        other.begin("ca", order(1), 1).expect("kept");
        one.begin("ca", LedgerEntry::Account { at: 2 }, 2).expect("kept");
        let number = one.begin("ca", order(3), 3).expect("kept");
        for _ in 0..2 {
            other.learn("ca", &one.lines("ca", None), 4);
            assert_eq!(other.ledger("ca", 4).all().count(), 3);
        }
        let ends = |book: &mut Book| -> Vec<OrderEnd> {
            let ends = book.ledger("ca", 9).all().filter_map(|(_, asked)| match asked {
                LedgerEntry::Order { end, .. } => Some(*end),
                LedgerEntry::Account { .. } => None,
            });
            ends.collect()
        };
        assert_eq!(
            ends(&mut other),
            [OrderEnd::Open, OrderEnd::Signing],
            "nobody knows whether it was signed"
        );
        one.end("ca", number, OrderEnd::Failed, Some(70));
        other.learn("ca", &one.lines("ca", None), 5);
        assert_eq!(ends(&mut other), [OrderEnd::Open, OrderEnd::Failed]);
        let failures = other.ledger("ca", 5).failures(&names).expect("two");
        assert_eq!((failures.count, failures.rest), (2, Some(70)));
        // And back: what it knew itself is its own.
        one.learn("ca", &other.lines("ca", None), 6);
        assert_eq!(one.ledger("ca", 6).all().count(), 3);
    }

    /// Two nodes took themselves for the first one in the same second: what one of them has asked for stays when the other one takes back its own.
    #[test]
    fn what_another_one_has_asked_in_the_same_second_outlives_what_is_taken_back() {
        let book = || Book::load(Box::new(MemoryStore(MemoryDisk::default())), 0).expect("empty");
        let names = vec!["a.example".to_owned()];
        let order = || LedgerEntry::Order { at: 3, names: names.clone(), end: OrderEnd::Open, rest: None };
        let (mut one, mut other) = (book(), book());
        one.begin("ca", order(), 3).expect("kept");
        let own = other.decide("ca", order(), 3).expect("kept");
        // Nobody else hears of it before it is written as such.
        assert_eq!([None, Some(own)].map(|number| other.lines("ca", number).len()), [0, 1]);
        other.learn("ca", &one.lines("ca", None), 3);
        assert_eq!(other.ledger("ca", 3).all().count(), 2);
        other.withdraw("ca", own);
        assert_eq!(other.ledger("ca", 3).failures(&names).map(|failures| failures.count), Some(1));
    }
}
