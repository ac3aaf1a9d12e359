//! What differs between two accepted configs, as `plan` and the line of a reload say it.
//!
//! A pure function of the rows that `check` prints: whatever has a key has a row, so nothing that can differ is missed.

use std::collections::{HashMap, HashSet};
use std::fmt;

use crate::config::{Effective, Origin};

/// One key that differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Differing {
    /// Its path, for example `targets.web.timeouts.connect`.
    pub path: String,
    /// What it was; `None`: it was not there.
    pub before: Option<String>,
    /// What it is; `None`: it is not there any more. The same as `before`: it names a file, and what is in that differs.
    pub after: Option<String>,
    /// Who says so; of what is gone, who said it.
    pub origin: Origin,
}

impl fmt::Display for Differing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Differing { path, before, after, origin } = self;
        match (before, after) {
            (Some(file), Some(same)) if file == same => write!(f, "{path}: {file} has changed ({origin})"),
            (Some(before), Some(after)) => write!(f, "{path}: {before} -> {after} ({origin})"),
            (None, Some(after)) => write!(f, "{path}: {after} is new ({origin})"),
            (Some(before), None) => write!(f, "{path}: {before} is gone ({origin})"),
            (None, None) => write!(f, "{path}"),
        }
    }
}

/// The keys that differ: in the order of `after`, then those that are gone. Backends are told apart by their names,
/// `targets.web.backends[b1].weight`: one that stands at another place is the same.
#[must_use]
pub fn difference(before: &[Effective], after: &[Effective]) -> Vec<Differing> {
    let (before, after) = (by_name(before), by_name(after));
    let old: HashMap<&str, &Effective> = before.iter().map(|(path, row)| (&**path, *row)).collect();
    let new: HashSet<&str> = after.iter().map(|(path, _)| &**path).collect();
    let is_same = |row: &Effective, old: &Effective| (&row.value, row.content) == (&old.value, old.content);
    let changed = after.iter().filter(|(path, row)| !old.get(&**path).is_some_and(|old| is_same(row, old)));
    let changed = changed.map(|(path, row)| Differing {
        path: path.clone(),
        before: old.get(&**path).map(|old| old.value.clone()),
        after: Some(row.value.clone()),
        origin: row.origin.clone(),
    });
    let gone = before.iter().filter(|(path, _)| !new.contains(&**path)).map(|(path, row)| Differing {
        path: path.clone(),
        before: Some(row.value.clone()),
        after: None,
        origin: row.origin.clone(),
    });
    changed.chain(gone).collect()
}

/// Rows with paths that have the names of backends in the place of their numbers.
fn by_name(rows: &[Effective]) -> Vec<(String, &Effective)> {
    const BACKENDS: &str = ".backends[";
    /// The path up to the bracket, the number, and what follows behind the other one.
    fn parts(path: &str) -> Option<(&str, &str, &str)> {
        let (head, rest) = path.split_at(path.rfind(BACKENDS)? + BACKENDS.len());
        let (number, rest) = rest.split_once(']')?;
        number.bytes().all(|byte| byte.is_ascii_digit()).then_some((head, number, rest))
    }
    let named = rows.iter().filter_map(|row| {
        let (head, number, rest) = parts(&row.path)?;
        (rest == ".name").then_some(((head, number), row.value.as_str()))
    });
    let names: HashMap<(&str, &str), &str> = named.collect();
    let path = |row: &Effective| {
        let (head, number, rest) = parts(&row.path)?;
        Some(format!("{head}{}]{rest}", names.get(&(head, number))?))
    };
    rows.iter().map(|row| (path(row).unwrap_or_else(|| row.path.clone()), row)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(rows: &[(&str, &str)]) -> Vec<Effective> {
        let row = |&(path, value): &(&str, &str)| Effective {
            path: path.into(),
            value: value.into(),
            origin: Origin::Default,
            content: None,
        };
        rows.iter().map(row).collect()
    }

    #[test]
    fn a_backend_that_stands_at_another_place_is_the_same() {
        let of = |names: &[(&str, &str)]| {
            let all = names.iter().enumerate().flat_map(|(place, (name, weight))| {
                let path = |key| format!("targets.web.backends[{place}].{key}");
                let row = |key, value: &str| Effective {
                    path: path(key),
                    value: value.into(),
                    origin: Origin::Default,
                    content: None,
                };
                [row("name", name), row("weight", weight)]
            });
            all.collect::<Vec<_>>()
        };
        let before = of(&[("a", "1"), ("b", "2"), ("c", "3")]);
        let found = difference(&before, &of(&[("c", "3"), ("b", "5"), ("a", "1")]));
        let paths = |found: &[Differing]| found.iter().map(|one| one.path.clone()).collect::<Vec<_>>();
        assert_eq!(paths(&found), ["targets.web.backends[b].weight"]);
        let found = difference(&before, &before[2..]);
        assert_eq!(paths(&found), ["targets.web.backends[a].name", "targets.web.backends[a].weight"]);
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

    #[test]
    fn a_file_of_the_same_name_with_another_content_is_told() {
        let of = |content| {
            let mut rows = rows(&[("targets.a.tls.cert_file", "a.pem"), ("targets.a.tls.cert_key", "a.key")]);
            rows[0].content = Some(content);
            rows
        };
        let said: Vec<String> = difference(&of(1), &of(2)).iter().map(ToString::to_string).collect();
        assert_eq!(said, ["targets.a.tls.cert_file: a.pem has changed (default)"]);
        assert!(difference(&of(1), &of(1)).is_empty());
    }
}
