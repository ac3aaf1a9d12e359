//! Which backend a request gets: the tiers of the live set, an algorithm for each, and what a request brings along.

pub(in crate::targets) mod ask;
pub(in crate::targets) mod balance;
pub(in crate::targets) mod candidates;
pub(in crate::targets) mod chance;
pub(in crate::targets) mod hash;
pub(in crate::targets) mod peek;
pub(in crate::targets) mod pick;
pub(in crate::targets) mod sticky;
pub(in crate::targets) mod tier;
pub(in crate::targets) mod tried;
pub(in crate::targets) mod warmup;
