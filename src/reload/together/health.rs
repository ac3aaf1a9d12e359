//! Whether backends work, as one fact of all nodes: who probes which, and what becomes of what is found. Decisions only.
//!
//! For each backend the nodes stand in an order of their own ([rendezvous](https://en.wikipedia.org/wiki/Rendezvous_hashing)), so a node that comes or goes
//! changes who probes for its share of the backends and for no others. The first probes, and says what its probes amount to, in one row, when that changes.
//!
//! Invariants:
//!
//! 1. A backend that worked is down for all once two nodes have found so: the first one `suspects` it, and the second, which probes for itself from then on until
//!    it works for both, confirms it. Where there is no second one, or where nobody knows yet, the word of the first is enough. That it works each of the two
//!    may say: one of them whose own way is broken keeps nothing down for the others.
//! 2. What a node has found out by itself holds on that node, whatever the row says.
//! 3. A row is written under the condition that it is what it was, by the first or the second as of the rows it was written on: of two who take themselves for the first one
//!    comes before the other.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use crate::cluster::rows;
use crate::cluster::view::KnownRows;
use crate::overlay::LaterFields;
use crate::probe::desk::{ProbeDuty, ProbeOrder, ProbeOrders};
use crate::store::shared::{RowChange, RowCondition, Transaction};
use crate::targets::ProbeWord;

const ROWS: &str = "health/";
/// Rows that are written at once; each has a condition of its own.
const AT_ONCE: usize = 60;

/// `health/TARGET/BACKEND`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct HealthRow {
    /// It passes, as all take it.
    good: bool,
    /// Why, for people.
    reason: String,
    /// Who has found it out.
    by: String,
    /// It fails, as the first node finds: why. The second has not said so yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    suspected: Option<String>,
    /// Since when, in milliseconds since 1970.
    at_ms: u64,
    #[serde(flatten)]
    more: LaterFields,
}

/// What a node is to a backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// It probes; and somebody confirms what it finds.
    First { is_seconded: bool },
    /// It confirms.
    Second,
    /// Neither.
    Other,
}

/// The nodes that share what they find, and which of them this one is.
pub(super) struct Probers<'a> {
    /// All, by name.
    pub(super) nodes: Vec<&'a str>,
    /// This one.
    pub(super) own: &'a str,
}

impl Probers<'_> {
    fn role(&self, identity: &str) -> Role {
        let place = |node: &str| Reverse(xxh3_64(format!("{node}\0{identity}").as_bytes()));
        let own = place(self.own);
        let before = self.nodes.iter().filter(|node| **node != self.own && place(node) < own).count();
        match before {
            0 => Role::First { is_seconded: self.nodes.len() > 1 },
            1 => Role::Second,
            _ => Role::Other,
        }
    }
}

fn row_of(known: &KnownRows, identity: &str) -> Option<HealthRow> {
    rows::read(&known.get(&format!("{ROWS}{identity}"))?.value)
}

/// What this node is to do about each of these backends, and to think of it.
pub(super) fn orders(known: &KnownRows, probers: &Probers<'_>, identities: &[Arc<str>]) -> ProbeOrders {
    let order = |identity: &Arc<str>| {
        let row = row_of(known, identity);
        // Also while it is down: the way of the first may be broken for good.
        let is_suspected = row.as_ref().is_some_and(|row| row.suspected.is_some() || !row.good);
        let duty = match probers.role(identity) {
            Role::First { .. } => ProbeDuty::Own,
            Role::Second if is_suspected => ProbeDuty::Confirm,
            Role::Second | Role::Other => ProbeDuty::Rest,
        };
        let word = row.map(|row| {
            let reason = match row.good {
                true => format!("node {} finds it working", row.by),
                false => format!("node {}: {}", row.by, row.reason),
            };
            ProbeWord { is_good: row.good, reason: reason.into() }
        });
        (Arc::clone(identity), ProbeOrder { duty, word })
    };
    ProbeOrders(identities.iter().map(order).collect())
}

/// What is to be written of what this node has found out: several, each done as a whole.
pub(super) fn writing(
    known: &KnownRows,
    probers: &Probers<'_>,
    found: &HashMap<Arc<str>, ProbeWord>,
    at_ms: u64,
) -> Vec<Transaction> {
    let mut changed: Vec<(String, HealthRow)> = found
        .iter()
        .filter_map(|(identity, word)| {
            let row = next(row_of(known, identity), probers.role(identity), word, (probers.own, at_ms))?;
            Some((format!("{ROWS}{identity}"), row))
        })
        .collect();
    changed.sort_by(|one, other| one.0.cmp(&other.0));
    let transaction = |some: &[(String, HealthRow)]| Transaction {
        conditions: some
            .iter()
            .map(|(name, _)| RowCondition { name: name.clone(), changed: known.changed(name) })
            .collect(),
        changes: some.iter().map(|(name, row)| RowChange::put(name, rows::write(row))).collect(),
    };
    changed.chunks(AT_ONCE).map(transaction).collect()
}

/// What drops the rows of backends that are not among these any more, of which this node would be the first: all of a config that every node has.
pub(super) fn clearing(
    known: &KnownRows,
    probers: &Probers<'_>,
    identities: &[Arc<str>],
) -> Option<Transaction> {
    let there: HashSet<&str> = identities.iter().map(|identity| &**identity).collect();
    let is_over = |name: &&str| {
        let identity = name.strip_prefix(ROWS).unwrap_or_default();
        !there.contains(identity) && matches!(probers.role(identity), Role::First { .. })
    };
    let over: Vec<&str> = known.names(ROWS).filter(is_over).take(AT_ONCE).collect();
    let condition = |name: &&str| RowCondition { name: (*name).to_owned(), changed: known.changed(name) };
    let transaction = || Transaction {
        conditions: over.iter().map(condition).collect(),
        changes: over.iter().map(|name| RowChange::drop(*name)).collect(),
    };
    (!over.is_empty()).then(transaction)
}

/// What the row is to say by what this node has found; `None`: what it says.
fn next(
    row: Option<HealthRow>,
    role: Role,
    word: &ProbeWord,
    (own, at_ms): (&str, u64),
) -> Option<HealthRow> {
    let more = row.as_ref().map(|row| row.more.clone()).unwrap_or_default();
    let settled = || HealthRow {
        good: word.is_good,
        reason: word.reason.to_string(),
        by: own.to_owned(),
        suspected: None,
        at_ms,
        more: more.clone(),
    };
    match (role, row) {
        (Role::Other, _) | (Role::Second, None) => None,
        (Role::First { .. }, None) => Some(settled()),
        (Role::First { .. }, Some(row)) if word.is_good => {
            (!row.good || row.suspected.is_some()).then(settled)
        }
        (Role::First { is_seconded: false }, Some(row)) => row.good.then(settled),
        (Role::First { is_seconded: true }, Some(row)) => (row.good && row.suspected.is_none())
            .then(|| HealthRow { suspected: Some(word.reason.to_string()), ..row }),
        (Role::Second, Some(row)) if word.is_good => (!row.good).then(settled),
        (Role::Second, Some(row)) => (row.good && row.suspected.is_some()).then(settled),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::shared::StoreRow;

    fn word(is_good: bool) -> ProbeWord {
        ProbeWord { is_good, reason: if is_good { "passed".into() } else { "refused".into() } }
    }

    /// What nodes find, each by itself, until nobody has anything to say any more.
    fn settle(known: &mut KnownRows, nodes: &[&str], views: &dyn Fn(&str) -> Option<bool>) -> usize {
        let (identity, mut writes): (Arc<str>, usize) = ("web/b".into(), 0);
        loop {
            let mut is_over = true;
            for own in nodes {
                let probers = Probers { nodes: nodes.to_vec(), own };
                let order = &orders(known, &probers, &[Arc::clone(&identity)]).0[&identity];
                let Some(view) = views(own).filter(|_| order.duty != ProbeDuty::Rest) else { continue };
                let found = HashMap::from([(Arc::clone(&identity), word(view))]);
                for transaction in writing(known, &probers, &found, 7) {
                    for change in transaction.changes {
                        let RowChange::Put { name, value, lease } = change else {
                            panic!("nothing is dropped")
                        };
                        writes += 1;
                        known.put(StoreRow { name, value, changed: writes as u64, lease });
                        is_over = false;
                    }
                }
            }
            if is_over {
                return writes;
            }
        }
    }

    fn told(known: &KnownRows) -> Option<bool> {
        let probers = Probers { nodes: vec!["nobody"], own: "nobody" };
        let identity: Arc<str> = "web/b".into();
        orders(known, &probers, &[Arc::clone(&identity)]).0[&identity].word.as_ref().map(|word| word.is_good)
    }

    fn roles(nodes: &[&str], identity: &str) -> Vec<Role> {
        nodes.iter().map(|own| Probers { nodes: nodes.to_vec(), own }.role(identity)).collect()
    }

    #[test]
    fn one_probes_one_confirms_and_a_node_that_goes_changes_its_own_share_only() {
        let nodes = ["a", "b", "c", "d", "e"];
        let mut firsts = HashMap::new();
        for number in 0..1000 {
            let identity = format!("web/b{number}");
            let roles = roles(&nodes, &identity);
            let count = |wanted: &dyn Fn(&Role) -> bool| roles.iter().filter(|role| wanted(role)).count();
            let is_first = |role: &Role| matches!(role, Role::First { .. });
            assert_eq!((count(&is_first), count(&|role| *role == Role::Second)), (1, 1));
            let first = nodes[roles.iter().position(is_first).unwrap()];
            *firsts.entry(first).or_insert(0) += 1;
            let left: Vec<&str> = nodes.iter().copied().filter(|node| *node != "c").collect();
            let after = left[self::roles(&left, &identity).iter().position(is_first).unwrap()];
            assert!(first == "c" || after == first);
        }
        assert!(firsts.values().all(|count| (150..250).contains(count)), "{firsts:?}");
    }

    #[test]
    fn down_takes_two_and_up_takes_one() {
        let nodes = ["a", "b", "c"];
        let first =
            nodes[roles(&nodes, "web/b").iter().position(|role| matches!(role, Role::First { .. })).unwrap()];
        let mut known = KnownRows::default();
        // The first word of all is enough, whatever it is.
        let mut other = known.clone();
        assert_eq!((settle(&mut other, &nodes, &|_| Some(false)), told(&other)), (1, Some(false)));
        // And where it was wrong, the second one says so: the first suspects it, no more.
        assert_eq!((settle(&mut other, &nodes, &|own| Some(own != first)), told(&other)), (2, Some(true)));
        assert_eq!((settle(&mut known, &nodes, &|_| Some(true)), told(&known)), (1, Some(true)));
        // One alone finds it failing: its own way is broken.
        assert_eq!((settle(&mut known, &nodes, &|own| Some(own != first)), told(&known)), (1, Some(true)));
        assert_eq!((settle(&mut known, &nodes, &|_| Some(true)), told(&known)), (1, Some(true)));
        // Both do.
        assert_eq!((settle(&mut known, &nodes, &|_| Some(false)), told(&known)), (2, Some(false)));
        assert_eq!((settle(&mut known, &nodes, &|_| Some(false)), told(&known)), (0, Some(false)));
        assert_eq!((settle(&mut known, &nodes, &|_| Some(true)), told(&known)), (1, Some(true)));
        // Alone, it is the one who knows.
        assert_eq!((settle(&mut known, &["a"], &|_| Some(false)), told(&known)), (1, Some(false)));
    }

    #[test]
    fn rows_of_backends_that_are_gone_are_dropped_by_one_node() {
        let nodes = ["a", "b", "c"];
        let mut known = KnownRows::default();
        assert_eq!(settle(&mut known, &nodes, &|_| Some(true)), 1);
        let (gone, there): ([Arc<str>; 0], [Arc<str>; 1]) = ([], ["web/b".into()]);
        let clears = |own: &str, identities: &[Arc<str>]| {
            clearing(&known, &Probers { nodes: nodes.to_vec(), own }, identities)
        };
        assert_eq!(nodes.iter().filter_map(|own| clears(own, &there)).count(), 0);
        let all: Vec<Transaction> = nodes.iter().filter_map(|own| clears(own, &gone)).collect();
        assert_eq!((all.len(), &all[0].changes), (1, &vec![RowChange::drop("health/web/b")]));
    }

    #[test]
    fn what_a_later_version_says_is_left() {
        let later = br#"{"good":true,"reason":"r","by":"a","at_ms":1,"latency_us":5}"#;
        let row: HealthRow = rows::read(later).unwrap();
        let next = next(Some(row), Role::First { is_seconded: false }, &word(false), ("a", 9)).unwrap();
        assert!(String::from_utf8(rows::write(&next)).unwrap().contains(r#""latency_us":5"#));
    }
}
