//! Which node prefers which of the backends that all of them share.
//!
//! For each backend the nodes stand in an order of their own ([rendezvous](https://en.wikipedia.org/wiki/Rendezvous_hashing)); the first of those that are there
//! prefers it, unless it was moved to another one that is there. So all nodes that know of the same nodes come to the same, nobody has to be asked, and a node
//! that comes or goes changes who prefers its own share of the backends and no others: what a dead one preferred, its successors do as soon as they know.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use xxhash_rust::xxh3::xxh3_64;

/// So many backends there have to be for each node, or none is preferred: a node with one or two of its own would go to the others most of the time anyway.
const LEAST: usize = 2;

/// Backends that are preferred by another node than the first in their order: by which, by identity.
pub type MovedBackends = BTreeMap<String, String>;

/// Who prefers each backend of a target. Backends are known by their places in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Owners {
    /// All that are there, by name.
    nodes: Vec<String>,
    /// Of each backend, the node that prefers it; empty: all prefer all.
    owners: Vec<usize>,
    /// Of each, the node that would if nothing were moved.
    homes: Vec<usize>,
}

impl Owners {
    /// Of the backends with these identities, where these nodes are there. Where they are too few for so many nodes, each node prefers all.
    #[must_use]
    pub fn of<'a>(
        nodes: &[String],
        identities: impl ExactSizeIterator<Item = &'a str>,
        moved: &MovedBackends,
    ) -> Owners {
        let nodes = BTreeSet::from_iter(nodes.iter().cloned()).into_iter().collect::<Vec<String>>();
        if nodes.len() < 2 || identities.len() < nodes.len() * LEAST {
            return Owners { nodes, owners: Vec::new(), homes: Vec::new() };
        }
        let identities: Vec<&str> = identities.collect();
        let home = |identity: &&str| {
            let hash = |node: &str| Reverse(xxh3_64(format!("{node}\0own\0{identity}").as_bytes()));
            let nodes = nodes.iter().enumerate();
            nodes.min_by_key(|(_, node)| hash(node)).map_or(0, |(number, _)| number)
        };
        let homes = identities.iter().map(home).collect();
        Owners { nodes, owners: Vec::new(), homes }.again(identities.into_iter(), moved)
    }

    /// The same backends and nodes, where others are moved.
    #[must_use]
    pub fn again<'a>(&self, identities: impl Iterator<Item = &'a str>, moved: &MovedBackends) -> Owners {
        let (nodes, homes) = (self.nodes.clone(), self.homes.clone());
        let owner = |(identity, home): (&str, &usize)| {
            let moved = moved.get(identity).and_then(|node| nodes.binary_search(node).ok());
            moved.unwrap_or(*home)
        };
        let owners = identities.zip(&homes).map(owner).collect();
        Owners { nodes, owners, homes }
    }

    /// The nodes, by name.
    #[must_use]
    pub fn nodes(&self) -> &[String] {
        &self.nodes
    }

    /// Whether each backend has one node that prefers it. If not, all prefer all.
    #[must_use]
    pub fn are_shared(&self) -> bool {
        !self.owners.is_empty()
    }

    /// Whether this node prefers the backend at this place. One that is none of them prefers none.
    #[must_use]
    pub fn prefers(&self, node: &str, place: usize) -> bool {
        self.owner(place).is_none_or(|owner| owner == node)
    }

    /// Who prefers it; `None`: all do.
    #[must_use]
    pub fn owner(&self, place: usize) -> Option<&str> {
        self.nodes.get(*self.owners.get(place)?).map(String::as_str)
    }

    /// The same as a number in [`Self::nodes`], of each backend in order; empty: all prefer all.
    #[must_use]
    pub fn numbers(&self) -> &[usize] {
        &self.owners
    }

    /// Who would prefer it if nothing were moved.
    #[must_use]
    pub fn home(&self, place: usize) -> Option<usize> {
        self.homes.get(place).copied()
    }

    /// How many each node prefers, by their order.
    #[must_use]
    pub fn counts(&self) -> Vec<usize> {
        let mut counts = vec![0; self.nodes.len()];
        self.owners.iter().for_each(|owner| counts[*owner] += 1);
        counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(nodes: &[&str], count: usize, moved: &MovedBackends) -> Owners {
        let identities: Vec<String> = (0..count).map(|number| format!("web/b{number}")).collect();
        let nodes: Vec<String> = nodes.iter().map(|node| (*node).to_owned()).collect();
        Owners::of(&nodes, identities.iter().map(String::as_str), moved)
    }

    #[test]
    fn each_backend_has_one_owner_and_a_node_that_goes_changes_its_own_share_only() {
        let (all, left) = (["a", "b", "c", "d", "e"], ["a", "b", "d", "e"]);
        let (before, after) = (of(&all, 1_000, &BTreeMap::new()), of(&left, 1_000, &BTreeMap::new()));
        for place in 0..1_000 {
            let owners = all.iter().filter(|node| before.prefers(node, place)).count();
            assert_eq!(owners, 1);
            assert!(before.owner(place) == Some("c") || after.owner(place) == before.owner(place));
        }
        assert!(before.counts().iter().all(|count| (150..250).contains(count)), "{:?}", before.counts());
    }

    #[test]
    fn where_there_are_few_backends_or_nobody_else_all_are_preferred() {
        let nodes = ["a", "b", "c"];
        let all = |own: &str, nodes: &[&str], count: usize| {
            let owners = of(nodes, count, &BTreeMap::new());
            (0..count).all(|place| owners.prefers(own, place))
        };
        assert!(all("a", &nodes, 5) && !all("a", &nodes, 6));
        assert!(all("a", &["a"], 100) && all("a", &[], 100));
        // One that does not count itself among them prefers none that somebody else does.
        assert!((0..100).all(|place| !of(&nodes, 100, &BTreeMap::new()).prefers("x", place)));
    }

    #[test]
    fn what_was_moved_stays_there_while_its_node_does() {
        let home = of(&["a", "b", "c"], 10, &BTreeMap::new()).owner(3).unwrap().to_owned();
        let other = ["a", "b", "c"].into_iter().find(|node| *node != home).unwrap();
        let moved = BTreeMap::from([("web/b3".to_owned(), other.to_owned())]);
        let all = of(&["c", "b", "a"], 10, &moved);
        assert_eq!((all.owner(3), &all.nodes()[all.home(3).unwrap()]), (Some(other), &home));
        // When it is gone the first in the order prefers it, who is the same for all.
        let left: Vec<&str> = ["a", "b", "c"].into_iter().filter(|node| *node != other).collect();
        assert_eq!(of(&left, 10, &moved).owner(3), Some(&*home));
    }
}
