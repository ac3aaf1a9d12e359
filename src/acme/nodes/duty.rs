//! Which node orders, and which of two certificates counts. Decisions only.

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use crate::cluster::membership::Standing;
use crate::cluster::view::ClusterView;
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

/// `acme/able/AUTHORITY/NODE`: this node could order. It goes with its lease.
pub(in crate::acme) fn able_row(authority: &str, node: &str) -> String {
    format!("acme/able/{authority}/{node}")
}

/// Who orders of this authority: the first of those that can. `has_key`: what is issued can be shared; if not, each node is on its own.
pub(in crate::acme) fn duty(view: &ClusterView, has_key: bool, authority: &str) -> OrderDuty {
    if view.standing != Standing::Member {
        return OrderDuty::Nobody;
    }
    if !has_key {
        return OrderDuty::Own;
    }
    let is_able = |node: &str| view.rows.get(&able_row(authority, node)).is_some();
    match view.first_of(&format!("acme {authority}"), is_able) {
        Some(name) if name == *view.node => OrderDuty::Own,
        Some(name) => OrderDuty::Of(name),
        // None of them can, or its own row is still on its way to it.
        None => OrderDuty::Nobody,
    }
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
    use crate::tls::fixtures::identity;

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
