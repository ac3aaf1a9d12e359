//! Which backends are preferred by another node than the first in their order: moved by one node that evens them out, or by hand.
//!
//! Invariants:
//!
//! 1. `own/TARGET` is written under the condition that it is what it was: of two who take themselves for the one that evens, one comes before the other.
//! 2. It says nothing of backends that are preferred by whom their order says, unless somebody has moved them there by hand.
//! 3. Where a node is gone, its backends are preferred by whom their order says, without anybody writing anything.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::cluster::rows;
use crate::cluster::view::KnownRows;
use crate::overlay::LaterFields;
use crate::store::shared::{RowChange, RowCondition, Transaction};
use crate::targets::sharing::evening::OwnerMove;
use crate::targets::sharing::owners::{MovedBackends, Owners};

/// What the names of its rows begin with.
pub(super) const ROWS: &str = "own/";

/// `own/TARGET`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct OwnRow {
    /// The nodes of those that were moved, by identity.
    pub(super) moved: MovedBackends,
    /// Those of them that somebody has moved by hand: nobody else moves them.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub(super) by_hand: BTreeSet<String>,
    #[serde(flatten)]
    more: LaterFields,
}

pub(super) fn row_of(known: &KnownRows, target: &str) -> OwnRow {
    let row = known.get(&format!("{ROWS}{target}"));
    row.and_then(|row| rows::read(&row.value)).unwrap_or_default()
}

/// The row after these moves. What it says of backends that are not there any more ends, but for those that are held: they may come back.
pub(super) fn moved(row: OwnRow, owners: &Owners, identities: &[&str], moves: &[OwnerMove]) -> OwnRow {
    let mut row = row;
    let there: BTreeSet<&str> = identities.iter().copied().collect();
    let OwnRow { moved, by_hand, .. } = &mut row;
    moved.retain(|identity, _| there.contains(identity.as_str()) || by_hand.contains(identity));
    for one in moves {
        let (identity, node) = (identities[one.backend], &owners.nodes()[one.to]);
        if owners.home(one.backend) == Some(one.to) {
            row.moved.remove(identity);
        } else {
            row.moved.insert(identity.to_owned(), node.clone());
        }
    }
    row
}

/// The row after somebody has moved a backend to this node; `None`: it is moved as nodes have need of it from now on. `home`: who would prefer it.
pub(super) fn moved_by_hand(row: OwnRow, identity: &str, node: Option<&str>, home: Option<&str>) -> OwnRow {
    let mut row = row;
    match node {
        Some(node) => {
            row.moved.insert(identity.to_owned(), node.to_owned());
            row.by_hand.insert(identity.to_owned());
        }
        None => {
            row.by_hand.remove(identity);
            if row.moved.get(identity).map(String::as_str) == home {
                row.moved.remove(identity);
            }
        }
    }
    row
}

/// What writes it.
pub(super) fn writing(known: &KnownRows, target: &str, row: &OwnRow) -> Transaction {
    let name = format!("{ROWS}{target}");
    let changed = known.changed(&name);
    let change = match row {
        OwnRow { moved, by_hand, more } if moved.is_empty() && by_hand.is_empty() && more.is_empty() => {
            RowChange::drop(&name)
        }
        row => RowChange::put(&name, rows::write(row)),
    };
    Transaction { conditions: vec![RowCondition { name, changed }], changes: vec![change] }
}

/// What drops the rows of targets that are not there any more.
pub(super) fn clearing(known: &KnownRows, targets: &BTreeSet<&str>) -> Option<Transaction> {
    let is_over = |name: &&str| !targets.contains(name.strip_prefix(ROWS).unwrap_or_default());
    let name = known.names(ROWS).find(is_over)?;
    let condition = RowCondition { name: name.to_owned(), changed: known.changed(name) };
    Some(Transaction { conditions: vec![condition], changes: vec![RowChange::drop(name)] })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn a_row_says_who_was_moved_and_nothing_of_who_is_at_home_or_gone() {
        let identities: Vec<String> = (0..8).map(|number| format!("web/b{number}")).collect();
        let identities: Vec<&str> = identities.iter().map(String::as_str).collect();
        let nodes = ["a".to_owned(), "b".to_owned()];
        let owners = |row: &OwnRow| Owners::of(&nodes, identities.iter().copied(), &row.moved);
        let first = owners(&OwnRow::default());
        let (home, other) = (first.home(3).unwrap(), 1 - first.home(3).unwrap());
        let gone = OwnRow {
            moved: BTreeMap::from(["web/gone", "web/held"].map(|one| (one.to_owned(), "a".to_owned()))),
            by_hand: BTreeSet::from(["web/held".to_owned()]),
            ..OwnRow::default()
        };
        let row = moved(gone, &first, &identities, &[OwnerMove { backend: 3, to: other }]);
        let kept = [("web/b3".to_owned(), nodes[other].clone()), ("web/held".to_owned(), "a".to_owned())];
        assert_eq!(row.moved, BTreeMap::from(kept));
        assert_eq!(row.by_hand.len(), 1, "what is held may come back");
        assert_eq!(owners(&row).numbers()[3], other);
        let known = KnownRows::default();
        assert!(matches!(writing(&known, "web", &row).changes[..], [RowChange::Put { .. }]));
        let row = moved(row, &owners(&OwnRow::default()), &identities, &[OwnerMove { backend: 3, to: home }]);
        // One that is let go at home is not said to be anywhere.
        let home = &nodes[home];
        let held = moved_by_hand(row, "web/b3", Some(home), Some(home));
        assert!(held.by_hand.contains("web/b3"));
        let row = moved_by_hand(held, "web/b3", None, Some(home));
        let row = moved_by_hand(row, "web/held", None, Some("a"));
        assert!(matches!(writing(&known, "web", &row).changes[..], [RowChange::Drop { .. }]), "{row:?}");
        assert!(clearing(&known, &BTreeSet::new()).is_none());
    }
}
