//! Which node orders, and which of two certificates counts. Decisions only.

use std::cmp::Reverse;

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use crate::cluster::membership::Standing;
use crate::cluster::view::{ClusterView, KnownNode};
use crate::config::model::tls::Identity;

/// Who orders of an authority.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::acme) enum OrderDuty {
    /// This node.
    Own,
    /// Another one.
    Of(String),
    /// Nobody, as far as this node knows: it is none of the cluster now.
    Nobody,
}

/// Who orders of this authority. `has_key`: what is issued can be shared; if not, each node is on its own.
pub(in crate::acme) fn duty(view: &ClusterView, has_key: bool, authority: &str) -> OrderDuty {
    if view.standing != Standing::Member {
        return OrderDuty::Nobody;
    }
    if !has_key {
        return OrderDuty::Own;
    }
    match first(&view.nodes(), authority) {
        Some(name) if name == *view.node => OrderDuty::Own,
        Some(name) => OrderDuty::Of(name),
        // Its own row is still on its way to it.
        None => OrderDuty::Nobody,
    }
}

/// The first of these nodes: who is to be drained comes after all others.
fn first(nodes: &[KnownNode], authority: &str) -> Option<String> {
    let place = |node: &KnownNode| {
        let hash = xxh3_64(format!("{}\0acme\0{authority}", node.name).as_bytes());
        (node.drain.is_some(), Reverse(hash), node.name.clone())
    };
    nodes.iter().filter(|node| node.row.shares).min_by_key(|node| place(node)).map(|node| node.name.clone())
}

/// Which of two certificates for the same names counts: the greater one, which was issued later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(in crate::acme) struct CertificateRank {
    /// From when on it is in force, in seconds since 1970.
    pub(in crate::acme) begins: i64,
    /// Until when.
    pub(in crate::acme) expires: i64,
    /// A print of it: of two that were issued in the same second all nodes choose the same.
    leaf: u64,
}

impl CertificateRank {
    pub(in crate::acme) fn of(identity: &Identity) -> CertificateRank {
        let leaf = identity.certified.cert.first().map_or(0, |leaf| xxh3_64(leaf));
        CertificateRank { begins: identity.begins, expires: identity.expires, leaf }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::rows::{DrainRow, NodeRow};
    use crate::tls::fixtures::identity;

    fn nodes(names: &[&str]) -> Vec<KnownNode> {
        let row = |name: &str| NodeRow {
            boot: format!("boot-{name}"),
            machine: name.to_owned(),
            version: "1".to_owned(),
            schema: [1, 1],
            shares: true,
            zone: None,
            since_ms: 0,
        };
        names.iter().map(|name| KnownNode { name: (*name).to_owned(), row: row(name), drain: None }).collect()
    }

    #[test]
    fn one_node_orders_and_another_one_does_when_it_is_gone_or_to_be_drained() {
        let mut all = nodes(&["a", "b", "c"]);
        let one = first(&all, "ca.example-1").unwrap();
        assert_eq!(first(&all, "ca.example-1").as_ref(), Some(&one), "it depends on nothing else");
        let others: Vec<KnownNode> = all.iter().filter(|node| node.name != one).cloned().collect();
        let next = first(&others, "ca.example-1").unwrap();
        assert_ne!(next, one);
        let drained = all.iter_mut().find(|node| node.name == one).unwrap();
        drained.drain = Some(DrainRow { author: "ops".to_owned(), at_ms: 1 });
        assert_eq!(first(&all, "ca.example-1").as_ref(), Some(&next));
        // Where all are to be drained somebody does all the same.
        all.iter_mut().for_each(|node| node.drain = Some(DrainRow { author: "ops".to_owned(), at_ms: 1 }));
        assert_eq!(first(&all, "ca.example-1"), Some(one));
        all.iter_mut().for_each(|node| node.row.shares = false);
        assert_eq!(first(&all, "ca.example-1"), None);
        let spread: std::collections::HashSet<_> =
            (0..50).filter_map(|number| first(&nodes(&["a", "b", "c"]), &format!("ca-{number}"))).collect();
        assert_eq!(spread.len(), 3, "authorities are spread");
    }

    #[test]
    fn of_two_certificates_all_nodes_choose_the_same() {
        let at = |begins, expires| {
            let identity = Identity { begins, expires, ..identity(&["a.example"]) };
            CertificateRank::of(&identity)
        };
        let (old, new, twin) = (at(1, 10), at(2, 5), at(2, 5));
        assert!(new > old && Some(old) > None);
        assert_ne!(new.cmp(&twin), std::cmp::Ordering::Equal, "they were issued in the same second");
    }
}
