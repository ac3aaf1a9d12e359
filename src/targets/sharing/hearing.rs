//! What other nodes say they have, put in force on a target of this one.

use std::collections::HashSet;

use super::owners::Owners;
use crate::targets::{Backend, Target};
use crate::tick::Tick;

/// So many requests beyond the limit are counted of others: more of them change nothing.
const BEYOND: u32 = 8;

impl Target {
    /// From now on node `own` prefers its own of them.
    pub fn prefer_own(&self, own: &str, owners: &Owners, now: Tick) {
        let places = self.backends.iter().enumerate();
        let others: HashSet<_> =
            places.filter(|(place, _)| !owners.prefers(own, *place)).map(|(_, backend)| backend.id).collect();
        self.state.prefer(|backend: &Backend| !others.contains(&backend.id), now);
    }

    /// The others have so many requests on the backend at each place, `busy`, and requests wait on these nodes. One at a time may call this.
    ///
    /// Who waits has those that it prefers to itself: else a node that always has somebody waiting would never let go of them.
    pub fn hear_others(&self, owners: &Owners, busy: impl Fn(usize) -> u32, waiting: &[&str]) {
        let limit = self.limit().unwrap_or(0);
        for (place, backend) in self.backends.iter().enumerate() {
            let mut count = busy(place);
            if !waiting.is_empty() && owners.owner(place).is_some_and(|owner| waiting.contains(&owner)) {
                count = count.saturating_add(limit);
            }
            let count = count.min(limit.saturating_add(BEYOND));
            if backend.elsewhere() != count {
                self.state.set_elsewhere(backend, count);
            }
        }
    }
}
