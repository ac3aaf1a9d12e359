//! Addresses of names as one fact of all nodes: who asks for which name, and what becomes of what is found. Decisions only.
//!
//! Whoever has an answer first says so in a row, and asks from then on; the others are told, and ask nobody while that process does well.
//!
//! Invariants:
//!
//! 1. A row is written by a node that knows addresses of its name, under the condition that the row is what it was: it never says that there are none.
//! 2. A node is told by a row of a process that is there and gets good answers. Where there is none, each asks for itself; the first with a good answer is the next
//!    one to ask for all. What a row says that nobody stands for any more counts only where nothing else is known: it may be of any age.
//! 3. Who was cut off and has good answers of its own goes on with those for the time of a lease: the row may be as old as the cut, and its process not back yet.
//! 4. A row is dropped by the node that has written it, once its own config has no such name; or by the first node where that one is gone.

use std::collections::{HashMap, HashSet};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::cluster::rows;
use crate::cluster::view::KnownRows;
use crate::config::model::discovery::DnsQuestion;
use crate::discover::HeardAddress;
use crate::discover::shared::{NameAsked, NameFinding, NameOrder, ToldAddresses};
use crate::overlay::LaterFields;
use crate::store::shared::{RowChange, RowCondition, Transaction};

const ROWS: &str = "name/";
/// Rows that are written at once; each has a condition of its own.
const AT_ONCE: usize = 60;
/// Bytes that are written at once, and of one row at most: all have to fit into one message.
const BYTES_AT_ONCE: usize = 1 << 20;

/// `name/KIND/FAMILY/NAME`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct NameRow {
    addresses: Vec<RowAddress>,
    /// Of the latest good answer that changed them.
    ttl_ms: u64,
    /// Who asks.
    by: String,
    /// The start of it that has written this.
    boot: String,
    /// Why it gets no good answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    trouble: Option<String>,
    /// Since when, in milliseconds since 1970.
    at_ms: u64,
    #[serde(flatten)]
    more: LaterFields,
}

/// One of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct RowAddress {
    address: SocketAddr,
    /// The host that has it, if that is not the name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    host: Option<String>,
    #[serde(default, skip_serializing_if = "is_zero")]
    priority: u16,
    #[serde(default, skip_serializing_if = "is_zero")]
    weight: u16,
    /// For how long good answers had lacked it, in milliseconds, as of when this was written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    absent_ms: Option<u64>,
}

impl RowAddress {
    /// Whether it is the same for those who pick.
    fn same(&self, other: &RowAddress) -> bool {
        (self.address, &self.host, self.priority, self.weight)
            == (other.address, &other.host, other.priority, other.weight)
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
fn is_zero(number: &u16) -> bool {
    *number == 0
}

/// The nodes that share what they find, and which of them this one is.
pub(super) struct Askers<'a> {
    /// All that are there, with their boots.
    pub(super) nodes: HashMap<&'a str, &'a str>,
    /// This one.
    pub(super) own: &'a str,
    /// Its own.
    pub(super) boot: &'a str,
    /// It was cut off a moment ago.
    pub(super) is_back: bool,
}

impl Askers<'_> {
    /// Whether the process is there that has written it.
    fn has(&self, row: &NameRow) -> bool {
        self.nodes.get(&*row.by).is_some_and(|boot| *boot == row.boot)
    }

    fn is_own(&self, row: &NameRow) -> bool {
        row.by == self.own && row.boot == self.boot
    }

    /// The node that tells this one, if one does.
    fn telling<'a>(&self, row: &'a NameRow, asked: &NameAsked) -> Option<&'a str> {
        let knows_better = self.is_back && *asked == NameAsked::Good;
        let tells = !self.is_own(row) && row.trouble.is_none() && self.has(row) && !knows_better;
        tells.then_some(&*row.by)
    }
}

fn row_name(question: &DnsQuestion) -> String {
    let DnsQuestion { name, kind, family } = question;
    format!("{ROWS}{}/{}/{name}", kind.as_str(), family.as_str())
}

fn row_of(known: &KnownRows, name: &str) -> Option<NameRow> {
    rows::read(&known.get(name)?.value)
}

/// What this node is to do about each of these names.
pub(super) fn orders(
    known: &KnownRows,
    askers: &Askers<'_>,
    findings: &[NameFinding],
) -> HashMap<DnsQuestion, NameOrder> {
    let order = |finding: &NameFinding| {
        let question = &finding.question;
        let row = row_of(known, &row_name(question));
        let by = row.as_ref().and_then(|row| askers.telling(row, &finding.asked)).map(Arc::from);
        let told = row.map(|row| told(question, row));
        (question.clone(), NameOrder { by, told })
    };
    findings.iter().map(order).collect()
}

fn told(question: &DnsQuestion, row: NameRow) -> ToldAddresses {
    let heard = |RowAddress { address, host, priority, weight, absent_ms }: RowAddress| {
        let host = host.map_or_else(|| Arc::clone(&question.name), Arc::from);
        (HeardAddress { address, host, priority, weight }, absent_ms.map(Duration::from_millis))
    };
    let ttl = Duration::from_millis(row.ttl_ms);
    ToldAddresses { heard: row.addresses.into_iter().map(heard).collect(), ttl }
}

/// What is to be written of what this node has found: several, each done as a whole. What is too much for one row is not shared: each node asks for it.
pub(super) fn writing(
    known: &KnownRows,
    askers: &Askers<'_>,
    findings: &[NameFinding],
    at_ms: u64,
) -> Vec<Transaction> {
    let (mut all, mut open, mut room) = (Vec::new(), Transaction::default(), BYTES_AT_ONCE);
    for finding in findings {
        let name = row_name(&finding.question);
        let Some(row) = next(row_of(known, &name), askers, finding, at_ms) else { continue };
        let value = rows::write(&row);
        if value.len() > BYTES_AT_ONCE {
            continue;
        }
        if open.changes.len() >= AT_ONCE || room < value.len() {
            all.push(std::mem::take(&mut open));
            room = BYTES_AT_ONCE;
        }
        room -= value.len();
        open.conditions.push(RowCondition { name: name.clone(), changed: known.changed(&name) });
        open.changes.push(RowChange::put(&name, value));
    }
    all.push(open);
    all.retain(|transaction| !transaction.changes.is_empty());
    all
}

/// What the row is to say by what this node has found; `None`: what it says.
fn next(row: Option<NameRow>, askers: &Askers<'_>, finding: &NameFinding, at_ms: u64) -> Option<NameRow> {
    let NameFinding { question, known, asked } = finding;
    if known.heard.is_empty() {
        return None;
    }
    let addresses: Vec<RowAddress> =
        known.heard.iter().map(|(one, absent)| said(question, one, *absent)).collect();
    let own = row.as_ref().filter(|row| askers.is_own(row));
    let trouble = match asked {
        NameAsked::Failing(why) => Some(why.clone()),
        NameAsked::Good => None,
        NameAsked::NotYet => own.and_then(|row| row.trouble.clone()),
    };
    let is_due = match (&row, own) {
        // In other words, the same trouble is none that others would not know of.
        (_, Some(own)) => {
            let same = own.addresses.len() == addresses.len()
                && own.addresses.iter().zip(&addresses).all(|(one, other)| one.same(other));
            !same || own.trouble.is_some() != trouble.is_some()
        }
        (Some(row), None) if askers.has(row) && row.trouble.is_none() => false,
        // Nobody asks, or gets no good answers: who has got one goes on.
        _ => *asked == NameAsked::Good,
    };
    let more = row.map(|row| row.more).unwrap_or_default();
    let ttl_ms = millis(known.ttl);
    let (by, boot) = (askers.own.to_owned(), askers.boot.to_owned());
    is_due.then_some(NameRow { addresses, ttl_ms, by, boot, trouble, at_ms, more })
}

fn said(question: &DnsQuestion, one: &HeardAddress, absent: Option<Duration>) -> RowAddress {
    let HeardAddress { address, host, priority, weight } = one;
    let host = (*host != question.name).then(|| host.to_string());
    let (priority, weight) = (*priority, *weight);
    RowAddress { address: *address, host, priority, weight, absent_ms: absent.map(millis) }
}

fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

/// What drops the rows of names that are not among these any more. `is_first`: this node does what one is enough for, of the row of that name.
pub(super) fn clearing(
    known: &KnownRows,
    askers: &Askers<'_>,
    findings: &[NameFinding],
    is_first: &dyn Fn(&str) -> bool,
) -> Option<Transaction> {
    let there: HashSet<String> = findings.iter().map(|finding| row_name(&finding.question)).collect();
    let is_over = |name: &&str| {
        let Some(row) = row_of(known, name).filter(|_| !there.contains(*name)) else { return false };
        askers.is_own(&row) || (!askers.has(&row) && is_first(name))
    };
    let over: Vec<&str> = known.names(ROWS).filter(is_over).take(AT_ONCE).collect();
    let condition = |name: &&str| RowCondition { name: (*name).to_owned(), changed: known.changed(name) };
    let transaction = || Transaction {
        conditions: over.iter().map(condition).collect(),
        changes: over.iter().map(|name| RowChange::drop(*name)).collect(),
    };
    (!over.is_empty()).then(transaction)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::shared::StoreRow;

    fn question() -> DnsQuestion {
        DnsQuestion { name: "app.internal".into(), ..DnsQuestion::default() }
    }

    fn finding(numbers: &[u8], asked: NameAsked) -> NameFinding {
        let heard = |number: &u8| HeardAddress {
            address: ([10, 0, 0, *number], 0).into(),
            host: "app.internal".into(),
            priority: 0,
            weight: 0,
        };
        let heard = numbers.iter().map(|number| (heard(number), None)).collect();
        let known = ToldAddresses { heard, ttl: Duration::from_secs(1) };
        NameFinding { question: question(), known, asked }
    }

    fn askers<'a>(nodes: &[&'a str], own: &'a str) -> Askers<'a> {
        let nodes = nodes.iter().map(|node| (*node, *node)).collect();
        Askers { nodes, own, boot: own, is_back: false }
    }

    /// Does what one of the nodes `a` and `b` has to write; says whether there was anything.
    fn write(known: &mut KnownRows, nodes: &[&str], own: &str, finding: NameFinding) -> bool {
        let mut wrote = false;
        for transaction in writing(known, &askers(nodes, own), &[finding], 7) {
            for change in transaction.changes {
                let RowChange::Put { name, value, lease } = change else { panic!("nothing is dropped") };
                let changed = known.changed(&name) + 1;
                known.put(StoreRow { name, value, changed, lease });
                wrote = true;
            }
        }
        wrote
    }

    fn order(known: &KnownRows, nodes: &[&str], own: &str) -> (Option<String>, usize) {
        let NameOrder { by, told } = orders(known, &askers(nodes, own), &[finding(&[], NameAsked::NotYet)])
            .remove(&question())
            .unwrap();
        (by.map(|by| by.to_string()), told.map_or(0, |told| told.heard.len()))
    }

    #[test]
    fn who_has_the_first_good_answer_asks_for_all_until_it_has_none_or_is_gone() {
        use NameAsked::{Failing, Good, NotYet};
        const BOTH: [&str; 2] = ["a", "b"];
        let failing = || Failing("SERVFAIL".into());
        let mut known = KnownRows::default();
        assert_eq!(order(&known, &BOTH, "a"), (None, 0));
        // Nobody says anything without an answer.
        assert!(!write(&mut known, &BOTH, "a", finding(&[], failing())));
        assert!(!write(&mut known, &BOTH, "a", finding(&[1], failing())));
        assert!(write(&mut known, &BOTH, "a", finding(&[1, 2], Good)));
        assert_eq!((order(&known, &BOTH, "a").0, order(&known, &BOTH, "b")), (None, (Some("a".into()), 2)));
        // The other one has nothing to say, whatever it knows; the same again is no news.
        assert!(!write(&mut known, &BOTH, "b", finding(&[1, 2, 3], Good)));
        assert!(!write(&mut known, &BOTH, "a", finding(&[1, 2], Good)));
        assert!(write(&mut known, &BOTH, "a", finding(&[2], Good)));
        assert_eq!(order(&known, &BOTH, "b"), (Some("a".into()), 1));
        // One that fails keeps what it knows, and the others ask; who gets an answer goes on, and who has not asked does not.
        assert!(write(&mut known, &BOTH, "a", finding(&[2], failing())));
        assert!(!write(&mut known, &BOTH, "a", finding(&[2], Failing("TIMEOUT".into()))));
        assert_eq!(order(&known, &BOTH, "b"), (None, 1));
        assert!(!write(&mut known, &BOTH, "b", finding(&[2], NotYet)));
        assert!(!write(&mut known, &BOTH, "b", finding(&[2], failing())));
        assert!(write(&mut known, &BOTH, "b", finding(&[2, 4], Good)));
        assert_eq!(order(&known, &BOTH, "a"), (Some("b".into()), 2));
        assert!(!write(&mut known, &BOTH, "a", finding(&[2], failing())));
        // One that is gone is followed by whoever has an answer; its set is there for who has just started.
        assert_eq!(order(&known, &["a"], "a"), (None, 2));
        assert!(write(&mut known, &["a"], "a", finding(&[2, 4], Good)));
        assert_eq!(order(&known, &BOTH, "b"), (Some("a".into()), 2));
        // One that has begun again is another process: it stands for nothing that the one before has said.
        let again = Askers { nodes: HashMap::from([("a", "again"), ("b", "b")]), ..askers(&BOTH, "b") };
        let all = [finding(&[2, 4, 5], Good)];
        assert_eq!(orders(&known, &again, &all)[&question()].by, None);
        assert_eq!(writing(&known, &again, &all, 8).len(), 1);
        // Nobody withdraws a trouble who has not asked.
        assert!(write(&mut known, &BOTH, "a", finding(&[2, 4], failing())));
        assert!(!write(&mut known, &BOTH, "a", finding(&[2, 4], NotYet)));
        assert!(write(&mut known, &BOTH, "a", finding(&[2], NotYet)));
        assert_eq!(order(&known, &BOTH, "b").0, None);
    }

    #[test]
    fn who_was_cut_off_goes_on_with_its_own_answers_for_a_while() {
        let mut known = KnownRows::default();
        write(&mut known, &["a", "b"], "a", finding(&[1], NameAsked::Good));
        let back = Askers { is_back: true, ..askers(&["a", "b"], "b") };
        let by = |asked| orders(&known, &back, &[finding(&[7], asked)])[&question()].by.clone();
        assert_eq!(by(NameAsked::Good), None);
        assert_eq!(by(NameAsked::NotYet).as_deref(), Some("a"));
        assert!(
            writing(&known, &back, &[finding(&[7], NameAsked::Good)], 9).is_empty(),
            "the other one is there"
        );
    }

    #[test]
    fn rows_of_names_that_are_gone_are_dropped_by_who_wrote_them_or_by_the_first_node() {
        let mut known = KnownRows::default();
        write(&mut known, &["a", "b"], "a", finding(&[1], NameAsked::Good));
        let clears = |nodes: &[&str], own: &str, findings: &[NameFinding], is_first: bool| {
            clearing(&known, &askers(nodes, own), findings, &|_| is_first).map(|all| all.changes.len())
        };
        let there = [finding(&[1], NameAsked::Good)];
        assert_eq!(clears(&["a", "b"], "a", &there, true), None);
        assert_eq!(clears(&["a", "b"], "a", &[], false), Some(1));
        // It may have a name of its own there.
        assert_eq!(clears(&["a", "b"], "b", &[], true), None);
        assert_eq!((clears(&["b"], "b", &[], true), clears(&["b"], "b", &[], false)), (Some(1), None));
        assert_eq!(clears(&["b"], "b", &there, true), None);
    }

    #[test]
    fn a_row_says_no_more_than_it_must_and_keeps_what_a_later_version_says() {
        let later =
            br#"{"addresses":[{"address":"10.0.0.1:0"}],"ttl_ms":1,"by":"a","boot":"a","at_ms":1,"since":5}"#;
        let row: NameRow = rows::read(later).unwrap();
        let next = next(Some(row), &askers(&["a"], "a"), &finding(&[2], NameAsked::Good), 9).unwrap();
        let text = String::from_utf8(rows::write(&next)).unwrap();
        assert_eq!(
            text,
            r#"{"addresses":[{"address":"10.0.0.2:0"}],"ttl_ms":1000,"by":"a","boot":"a","at_ms":9,"since":5}"#
        );
    }

    #[test]
    fn what_does_not_fit_into_one_message_is_written_in_several_and_what_fits_into_none_is_not() {
        let finding = |number: usize, addresses: usize| {
            let heard = |number: usize| HeardAddress {
                address: (std::net::IpAddr::from([10, 0, (number >> 8) as u8, number as u8]), 65_535).into(),
                host: "one-of-many.internal".into(),
                priority: 1,
                weight: 1,
            };
            let question =
                DnsQuestion { name: format!("n{number}.internal").into(), ..DnsQuestion::default() };
            let known = ToldAddresses {
                heard: (0..addresses).map(|number| (heard(number), None)).collect(),
                ttl: Duration::from_secs(1),
            };
            NameFinding { question, known, asked: NameAsked::Good }
        };
        let findings: Vec<NameFinding> = (0..5).map(|number| finding(number, 4_000)).collect();
        let all = writing(&KnownRows::default(), &askers(&["a"], "a"), &findings, 1);
        assert_eq!(all.iter().map(|one| one.changes.len()).collect::<Vec<_>>(), [3, 2]);
        assert!(writing(&KnownRows::default(), &askers(&["a"], "a"), &[finding(0, 40_000)], 1).is_empty());
    }
}
