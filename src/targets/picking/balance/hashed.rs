//! What the hash algorithms have in common: members in an order that does not depend on who lists them.

use crate::targets::picking::hash::hash;

/// A backend as a hash algorithm sees it: its identity (`target/name`) and its weight, at least 1.
pub(in crate::targets) type Weighed<'a> = (&'a str, u16);

/// Members that one table or ring can tell apart; those behind them get no keys.
pub(in crate::targets) const MOST: usize = 1 << 16;

/// The places of `members`, sorted by the hash of their identities: wherever two are alike for an algorithm, this order
/// decides, and not the order in a config file.
pub(super) fn ranked(members: &[Weighed<'_>]) -> Vec<u16> {
    let mut ranked: Vec<u16> = (0..=u16::MAX).take(members.len().min(MOST)).collect();
    ranked.sort_by_cached_key(|&place| {
        let identity = members[usize::from(place)].0;
        (hash(identity.as_bytes()), identity)
    });
    ranked
}

#[cfg(test)]
pub(super) mod fixtures {
    use super::Weighed;
    use crate::targets::picking::hash::again;

    /// So many identities of a target.
    pub(in crate::targets::picking::balance) fn identities(target: &str, count: usize) -> Vec<String> {
        (0..count).map(|number| format!("{target}/b{number}")).collect()
    }

    /// Members of weight 1.
    pub(in crate::targets::picking::balance) fn members(identities: &[String]) -> Vec<Weighed<'_>> {
        identities.iter().map(|identity| (identity.as_str(), 1)).collect()
    }

    /// The same in another order.
    pub(in crate::targets::picking::balance) fn shuffled<T: Clone>(list: &[T], seed: u64) -> Vec<T> {
        let mut keyed: Vec<(u64, T)> =
            (1..).zip(list).map(|(nth, item)| (again(seed, nth), item.clone())).collect();
        keyed.sort_by_key(|(key, _)| *key);
        keyed.into_iter().map(|(_, item)| item).collect()
    }
}
