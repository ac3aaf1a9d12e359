//! What differs between two accepted configs, as `plan` and the line of a reload say it.
//!
//! A pure function of the rows that `check` prints: whatever has a key has a row, so nothing that can differ is missed.

use std::collections::HashMap;
use std::fmt;

use crate::config::{Effective, Origin};

/// One key that differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Differing {
    /// Its path, for example `targets.web.timeouts.connect`.
    pub path: String,
    /// What it was; `None`: it was not there.
    pub before: Option<String>,
    /// What it is; `None`: it is not there any more.
    pub after: Option<String>,
    /// Who says so; of what is gone, who said it.
    pub origin: Origin,
}

impl fmt::Display for Differing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Differing { path, before, after, origin } = self;
        match (before, after) {
            (Some(before), Some(after)) => write!(f, "{path}: {before} -> {after} ({origin})"),
            (None, Some(after)) => write!(f, "{path}: {after} is new ({origin})"),
            (Some(before), None) => write!(f, "{path}: {before} is gone ({origin})"),
            (None, None) => write!(f, "{path}"),
        }
    }
}

/// The keys that differ: in the order of `after`, then those that are gone.
#[must_use]
pub fn difference(before: &[Effective], after: &[Effective]) -> Vec<Differing> {
    let by_path = |rows: &[Effective]| -> HashMap<String, String> {
        rows.iter().map(|row| (row.path.clone(), row.value.clone())).collect()
    };
    let (old, new) = (by_path(before), by_path(after));
    let changed = after.iter().filter(|row| old.get(&row.path) != Some(&row.value)).map(|row| Differing {
        path: row.path.clone(),
        before: old.get(&row.path).cloned(),
        after: Some(row.value.clone()),
        origin: row.origin.clone(),
    });
    let gone = before.iter().filter(|row| !new.contains_key(&row.path)).map(|row| Differing {
        path: row.path.clone(),
        before: Some(row.value.clone()),
        after: None,
        origin: row.origin.clone(),
    });
    changed.chain(gone).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(rows: &[(&str, &str)]) -> Vec<Effective> {
        let row = |&(path, value): &(&str, &str)| Effective {
            path: path.into(),
            value: value.into(),
            origin: Origin::Default,
        };
        rows.iter().map(row).collect()
    }

    #[test]
    fn what_is_new_other_or_gone_is_told_and_nothing_else() {
        let before =
            rows(&[("workers", "2"), ("targets.a.balance", "round_robin"), ("targets.b.balance", "hash")]);
        let after = rows(&[("targets.c.balance", "random"), ("workers", "2"), ("targets.a.balance", "hash")]);
        let said: Vec<String> = difference(&before, &after).iter().map(ToString::to_string).collect();
        let origin = Origin::Default;
        assert_eq!(
            said,
            [
                format!("targets.c.balance: random is new ({origin})"),
                format!("targets.a.balance: round_robin -> hash ({origin})"),
                format!("targets.b.balance: hash is gone ({origin})"),
            ]
        );
        assert!(difference(&before, &before).is_empty());
    }
}
