//! Which node prefers which of the backends that all of them share. Decisions only: nodes are names, and nobody is asked.
//!
//! For each backend the nodes stand in an order of their own ([rendezvous](https://en.wikipedia.org/wiki/Rendezvous_hashing)); the first of those that are there
//! prefers it. So all nodes that know of the same nodes come to the same, nobody has to be asked, and a node that comes or goes changes who prefers its own share
//! of the backends and no others: what a dead one preferred, its successors do as soon as they know.

use std::cmp::Reverse;

use xxhash_rust::xxh3::xxh3_64;

/// So many backends there have to be for each node, or none is preferred: a node with one or two of its own would go to the others most of the time anyway.
const LEAST: usize = 2;

/// Whether the node `own` prefers the backend of this identity, where these nodes share `backends` of a target. Where there are too few for that, each node prefers
/// all.
#[must_use]
pub fn prefers(own: &str, nodes: &[&str], backends: usize, identity: &str) -> bool {
    if nodes.len() < 2 || backends < nodes.len() * LEAST {
        return true;
    }
    owner(nodes, identity).is_none_or(|first| first == own)
}

/// Who prefers it; `None`: there is nobody.
#[must_use]
pub fn owner<'a>(nodes: &[&'a str], identity: &str) -> Option<&'a str> {
    let place = |node: &str| Reverse(xxh3_64(format!("{node}\0own\0{identity}").as_bytes()));
    nodes.iter().copied().min_by_key(|node| (place(node), *node))
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    #[test]
    fn each_backend_has_one_owner_and_a_node_that_goes_changes_its_own_share_only() {
        let nodes = ["a", "b", "c", "d", "e"];
        let left: Vec<&str> = nodes.iter().copied().filter(|node| *node != "c").collect();
        let mut counts = HashMap::new();
        for number in 0..1_000 {
            let identity = format!("web/b{number}");
            let owners: Vec<&&str> =
                nodes.iter().filter(|node| prefers(node, &nodes, 1_000, &identity)).collect();
            assert_eq!(owners.len(), 1);
            let after = owner(&left, &identity);
            assert!(*owners[0] == "c" || after == Some(*owners[0]));
            *counts.entry(owners[0]).or_insert(0) += 1;
        }
        assert!(counts.values().all(|count| (150..250).contains(count)), "{counts:?}");
    }

    #[test]
    fn where_there_are_few_backends_or_nobody_else_all_are_preferred() {
        let nodes = ["a", "b", "c"];
        let all = |own: &str, nodes: &[&str], count: usize| {
            (0..count).all(|number| prefers(own, nodes, count, &format!("web/b{number}")))
        };
        assert!(all("a", &nodes, 5) && !all("a", &nodes, 6));
        assert!(all("a", &["a"], 100) && all("a", &[], 100));
        // One that does not count itself among them prefers none that somebody else does.
        assert!(!prefers("x", &nodes, 100, "web/b1"));
    }
}
