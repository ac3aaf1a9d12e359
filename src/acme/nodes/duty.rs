//! Which node orders, and which of two certificates counts. Decisions only.

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use crate::cluster::membership::Standing;
use crate::cluster::view::ClusterView;
use crate::config::model::tls::Identity;
use crate::store::shared::Revision;

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

/// How far this node knows what an authority was asked for.
///
/// Of two nodes that take themselves for the first one, one has to look again before it asks. For that:
///
/// 1. Whoever decides by what is known holds on to [`heard`](AskedKnown::heard) as it was at that moment, and writes upon that alone: what others have said
///    meanwhile may be known by then, and was not when it was decided.
/// 2. What this node writes itself is none of the others' words: of several orders that it decides at once all may be written. So nobody reads while one is
///    being written, up to where this node sees what it has written.
/// 3. What is decided and not written yet is nobody's word: it stands in no row (`Book::lines`), and another's of the same second is not taken for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::acme) struct AskedKnown {
    /// The change of the row up to which it is known, and how often the store had gone back by then.
    at: RowState,
    /// How often others' words were taken in.
    heard: u64,
}

/// How often the store has gone back, and the latest change of a row; 0: it is not there.
pub(in crate::acme) type RowState = (u32, Revision);

impl AskedKnown {
    /// The row is like this now: whether it says something that is not known.
    pub(in crate::acme) fn hears(&mut self, row: RowState) -> bool {
        let is_news = row != self.at;
        self.at = row;
        self.heard += u64::from(is_news);
        is_news
    }

    /// What whoever decides now writes upon.
    pub(in crate::acme) fn heard(&self) -> u64 {
        self.heard
    }

    /// Whether the row, which is like this now, says nothing that was not known to who has decided upon `heard`.
    pub(in crate::acme) fn may_write(&self, row: RowState, heard: u64) -> bool {
        row == self.at && heard == self.heard
    }

    /// This node has written it.
    pub(in crate::acme) fn has_written(&mut self, row: RowState) {
        self.at = row;
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

    /// It was: who had decided, and heard of the other's order before he came to write down his own, wrote it all the same.
    #[test]
    fn of_two_who_take_themselves_for_the_first_one_looks_again() {
        for is_heard in [true, false] {
            let (mut one, mut two) = (AskedKnown::default(), AskedKnown::default());
            let decided = [one.heard(), two.heard()];
            // The first one writes, and the second one hears of it, or does not, before it comes to that.
            assert!(one.may_write((0, 0), decided[0]));
            one.has_written((0, 7));
            assert!(!one.hears((0, 7)), "its own words");
            assert!(one.may_write((0, 7), decided[0]), "another order that it has decided at the same time");
            if is_heard {
                assert!(two.hears((0, 7)));
            }
            assert!(!two.may_write((0, 7), decided[1]), "{is_heard}");
            // It decides anew.
            assert!(is_heard || two.hears((0, 7)));
            assert!(two.may_write((0, 7), two.heard()));
            // A store that has gone back may say something else with the same number.
            assert!(!two.may_write((1, 7), two.heard()) && two.hears((1, 7)));
        }
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
