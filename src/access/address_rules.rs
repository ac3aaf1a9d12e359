//! Access lists, ready to be asked.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::networks::{NetworkVerdict, Networks};
use crate::config::model::AccessList;

/// One access list, ready to be asked.
#[derive(Debug)]
pub struct AddressRule {
    /// What it says.
    pub list: Arc<AccessList>,
    networks: Networks,
    /// Under every config in which a list has its name it is the same.
    refused: Arc<AtomicU64>,
}

impl AddressRule {
    fn new(list: &Arc<AccessList>, refused: Arc<AtomicU64>) -> AddressRule {
        AddressRule { networks: Networks::new(&list.allow, &list.deny), list: Arc::clone(list), refused }
    }

    /// Counts a request, or a connection, that it did not let in. Whoever sends somebody away calls this, once, on any thread.
    pub fn count_refusal(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }

    /// How many it did not let in.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    /// Whether it lets somebody in. Who has no address, on a unix socket, is in no network.
    fn lets_in(&self, client: Option<IpAddr>) -> bool {
        match client.and_then(|client| self.networks.verdict(client)) {
            Some(NetworkVerdict::Allow) => true,
            Some(NetworkVerdict::Deny) => false,
            None => !self.list.is_closed,
        }
    }

    /// Whether it names somebody whom it does not let in.
    fn denies(&self, peer: Option<IpAddr>) -> bool {
        peer.and_then(|peer| self.networks.verdict(peer)) == Some(NetworkVerdict::Deny)
    }
}

/// All access lists of one place, in their order: each must let in.
#[derive(Clone, Debug, Default)]
pub struct AddressRules(Box<[Arc<AddressRule>]>);

impl AddressRules {
    /// Those of these lists. What was made for the same list before is taken again.
    #[must_use]
    pub fn new(lists: &[Arc<AccessList>], made: &mut RuleStock) -> AddressRules {
        AddressRules(lists.iter().map(|list| made.rule(list)).collect())
    }

    /// Whether there are none.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All of them, in their order.
    pub fn iter(&self) -> impl Iterator<Item = &AddressRule> {
        self.0.iter().map(|rule| &**rule)
    }

    /// The first that does not let `client` in.
    #[must_use]
    pub fn refusal(&self, client: Option<IpAddr>) -> Option<&AddressRule> {
        self.0.iter().map(|rule| &**rule).find(|rule| !rule.lets_in(client))
    }

    /// The first that says of `peer`, who speaks for others, that it may not come in. Being in no list is no matter here: whom it
    /// speaks for is asked of that.
    #[must_use]
    pub fn denial(&self, peer: Option<IpAddr>) -> Option<&AddressRule> {
        self.0.iter().map(|rule| &**rule).find(|rule| rule.denies(peer))
    }
}

/// The rules that have been made, by their lists: a long one is made once for all who name it, and again only when it differs.
#[derive(Debug, Default)]
pub struct RuleStock {
    before: HashMap<Arc<AccessList>, Arc<AddressRule>>,
    now: HashMap<Arc<AccessList>, Arc<AddressRule>>,
}

impl RuleStock {
    /// One that takes again what was made for the config before.
    #[must_use]
    pub fn after(before: Option<&RuleStock>) -> RuleStock {
        RuleStock { before: before.map(|stock| stock.now.clone()).unwrap_or_default(), now: HashMap::new() }
    }

    fn rule(&mut self, list: &Arc<AccessList>) -> Arc<AddressRule> {
        if let Some(rule) = self.now.get(list) {
            return Arc::clone(rule);
        }
        let made = self.before.get(list).map(Arc::clone);
        let rule = made.unwrap_or_else(|| Arc::new(AddressRule::new(list, self.count(list))));
        self.now.insert(Arc::clone(&rule.list), Arc::clone(&rule));
        rule
    }

    /// What was counted of a list of this name, which says something else from now on.
    fn count(&self, list: &AccessList) -> Arc<AtomicU64> {
        let of_name = |rule: &&Arc<AddressRule>| list.name.is_some() && rule.list.name == list.name;
        self.before.values().find(of_name).map(|rule| Arc::clone(&rule.refused)).unwrap_or_default()
    }

    /// The same, without what no list of this config needs.
    #[must_use]
    pub fn settled(self) -> RuleStock {
        RuleStock { before: HashMap::new(), now: self.now }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(allow: &[&str], deny: &[&str], status: Option<u16>) -> Arc<AccessList> {
        let networks = |list: &[&str]| list.iter().map(|text| text.parse().expect("a network")).collect();
        let is_closed = !allow.is_empty();
        Arc::new(AccessList { name: None, allow: networks(allow), deny: networks(deny), is_closed, status })
    }

    fn rules(lists: &[Arc<AccessList>]) -> AddressRules {
        AddressRules::new(lists, &mut RuleStock::default())
    }

    #[test]
    fn the_longest_prefix_decides_and_deny_at_a_tie() {
        for (allow, deny, client, may) in [
            (&[][..], &["10.0.0.0/8"][..], "10.1.2.3", false),
            (&[], &["10.0.0.0/8"], "11.1.2.3", true),
            (&["10.0.0.0/8"], &[], "10.1.2.3", true),
            (&["10.0.0.0/8"], &[], "11.1.2.3", false),
            (&["10.0.0.0/8"], &["10.1.0.0/16"], "10.1.2.3", false),
            (&["10.1.2.0/24"], &["10.1.0.0/16"], "10.1.2.3", true),
            (&["10.0.0.0/8"], &["10.0.0.0/8"], "10.1.2.3", false),
            (&["10.0.0.0/8"], &[], "::ffff:10.1.2.3", true),
            (&["2001:db8::/32"], &[], "2001:db8::1", true),
            (&["2001:db8::/32"], &[], "10.1.2.3", false),
        ] {
            let rules = rules(&[list(allow, deny, Some(403))]);
            assert_eq!(rules.refusal(client.parse().ok()).is_none(), may, "{allow:?} {deny:?} {client}");
        }
        let (none, all) = (list(&[], &["0.0.0.0/0"], None), list(&["0.0.0.0/0"], &[], None));
        assert!(rules(&[none]).refusal(None).is_none() && rules(&[all]).refusal(None).is_some());
    }

    #[test]
    fn each_list_must_let_in_and_the_first_that_does_not_says_how() {
        let offices = list(&["10.0.0.0/8"], &[], Some(404));
        let bad = list(&[], &["10.1.0.0/16"], Some(401));
        let both = rules(&[offices, bad]);
        let status =
            |client: &str| both.refusal(client.parse().ok()).map(|rule| rule.list.status.unwrap_or_default());
        assert_eq!(["10.2.0.1", "10.1.0.1", "192.0.2.1"].map(status), [None, Some(401), Some(404)]);
        assert!(rules(&[]).refusal(None).is_none() && rules(&[]).is_empty());
    }

    #[test]
    fn who_speaks_for_others_is_asked_of_denials_alone() {
        let rules = rules(&[list(&["10.0.0.0/8"], &["10.1.0.0/16"], Some(403))]);
        let is_denied = |peer: &str| rules.denial(peer.parse().ok()).is_some();
        assert_eq!(["10.2.0.1", "10.1.0.1", "192.0.2.1"].map(is_denied), [false, true, false]);
        assert!(rules.denial(None).is_none());
    }

    #[test]
    fn a_list_that_stays_is_not_made_again() {
        let (one, other) = (list(&[], &["10.0.0.0/8"], None), list(&[], &["11.0.0.0/8"], None));
        let mut first = RuleStock::default();
        let before = AddressRules::new(&[Arc::clone(&one), Arc::clone(&one), other], &mut first);
        assert!(Arc::ptr_eq(&before.0[0], &before.0[1]));
        let first = first.settled();
        // Read again, it is another object with the same in it.
        let again = Arc::new((*one).clone());
        let mut second = RuleStock::after(Some(&first));
        let after = AddressRules::new(&[again], &mut second);
        assert!(Arc::ptr_eq(&before.0[0], &after.0[0]));
        assert_eq!(second.settled().now.len(), 1, "what nobody needs is let go of");
    }

    #[test]
    fn what_a_list_has_refused_hangs_on_its_name() {
        let list = |name: Option<&str>, deny: &str| {
            Arc::new(AccessList { name: name.map(str::to_owned), ..(*list(&[], &[deny], None)).clone() })
        };
        let all = |deny: &str| [list(Some("a"), deny), list(Some("b"), deny), list(None, deny)];
        let mut stock = RuleStock::default();
        let rules = AddressRules::new(&all("10.0.0.0/8"), &mut stock);
        for rule in rules.iter() {
            rule.count_refusal();
        }
        rules.0[1].count_refusal();
        let mut stock = RuleStock::after(Some(&stock.settled()));
        let after = AddressRules::new(&all("11.0.0.0/8"), &mut stock);
        rules.0[0].count_refusal();
        assert_eq!(after.iter().map(AddressRule::refused).collect::<Vec<_>>(), [2, 2, 0]);
    }
}
