//! What other nodes say they have, put in force on a target of this one.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use super::owners::Owners;
use crate::targets::{Backend, Target};
use crate::tick::Tick;

/// Requests of others on a backend.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HeardCount {
    /// As they have said last.
    pub last: u32,
    /// How many of these were there a turn before, too, as far as they know.
    pub still: u32,
}

/// So many requests beyond the limit are counted of others: more of them change nothing.
const BEYOND: u32 = 8;

/// How often one of so many nodes says what it has: four times a second, and all together no more than a hundred times.
#[must_use]
pub fn turn(nodes: usize) -> Duration {
    const TURN: Duration = Duration::from_millis(250);
    const TURN_OF_EACH: Duration = Duration::from_millis(10);
    TURN.max(TURN_OF_EACH.saturating_mul(u32::try_from(nodes).unwrap_or(u32::MAX)))
}

/// Whether requests that stay so long, as far as that is known, are mostly over before these nodes hear of them: they stay shorter than half of the time from one of
/// their words to the next.
#[must_use]
pub fn are_short(owners: &Owners, stays: Option<Duration>) -> bool {
    owners.are_shared() && stays.is_some_and(|stays| stays < turn(owners.nodes().len()) / 2)
}

impl Target {
    /// Requests that wait here for any of the backends, if each is full that this node prefers: the others leave those alone then. One that waits for the backend of its
    /// cookie takes nothing of what others could use.
    #[must_use]
    pub fn waiting_in_need(&self) -> u32 {
        let limit = self.limit().unwrap_or(0);
        let has_room = |backend: &Arc<Backend>| backend.is_own() && backend.taken() < limit;
        if self.backends.iter().any(has_room) { 0 } else { self.state.board.waiting() }
    }

    /// Which backends get requests now, by place; none while so many are ejected that this is set aside.
    #[must_use]
    pub fn chosen(&self) -> Vec<bool> {
        let live = self.state.live.load();
        let chosen: HashSet<_> =
            live.first_choice().flat_map(|tier| tier.backends.iter()).map(|backend| backend.id).collect();
        let panics = self.state.board.panics();
        self.backends.iter().map(|backend| !panics && chosen.contains(&backend.id)).collect()
    }

    /// From now on node `own` prefers its own of them.
    pub fn prefer_own(&self, own: &str, owners: &Owners, now: Tick) {
        let places = self.backends.iter().enumerate();
        let others: HashSet<_> =
            places.filter(|(place, _)| !owners.prefers(own, *place)).map(|(_, backend)| backend.id).collect();
        self.state.prefer(|backend: &Backend| !others.contains(&backend.id), now);
    }

    /// The others have so many requests on the backend at each place, `busy`, and requests wait on these nodes. `stays`: how long they are there on average, as
    /// far as that is known. One at a time may call this.
    ///
    /// Where requests are short ([`are_short`]), what others have is mostly over before they say so. On a backend that this node
    /// prefers, which others take for want of their own alone, only what is still there counts then: else it would stand idle for a turn after each of them.
    /// Who waits has those that it prefers to itself: else a node that always has somebody waiting would never let go of them.
    pub fn hear_others(
        &self,
        owners: &Owners,
        busy: impl Fn(usize) -> HeardCount,
        waiting: &[&str],
        stays: Option<Duration>,
    ) {
        let limit = self.limit().unwrap_or(0);
        let are_short = are_short(owners, stays);
        for (place, backend) in self.backends.iter().enumerate() {
            let HeardCount { last, still } = busy(place);
            let mut count = if are_short && backend.is_own() { still } else { last };
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::model::{Balance, OwnerMode, Policy, Resilience, TargetConfig};
    use crate::targets::fixtures::{target, unprobed};
    use crate::targets::sharing::owners::MovedBackends;

    const NOW: Tick = Tick(1_000_000_000);

    #[test]
    fn of_short_requests_on_own_backends_only_those_count_that_are_still_there() {
        let balance = Policy { owner: OwnerMode::Soft, ..Balance::LeastConnections.into() };
        let resilience = Resilience { max_in_flight: Some(1), queue: 10, ..Resilience::default() };
        let target = target(&TargetConfig { balance, resilience, ..unprobed(8) });
        let nodes = ["a", "b"].map(str::to_owned);
        let identities = || target.backends.iter().map(|backend| &*backend.identity);
        let of = |nodes: &[String]| Owners::of(nodes, identities(), &MovedBackends::new());
        let (owners, alone) = (of(&nodes), of(&nodes[..1]));
        target.prefer_own("a", &owners, NOW);
        let own = target.backends.iter().filter(|backend| backend.is_own()).count() as u32;
        assert!((1..8).contains(&own));
        // One on each, of which those on the first four were there before.
        let busy = |place: usize| HeardCount { last: 1, still: u32::from(place < 4) };
        let hear = |stays: Option<u64>| {
            target.hear_others(&owners, busy, &[], stays.map(Duration::from_millis));
            target.backends.iter().map(|backend| backend.elsewhere()).collect::<Vec<_>>()
        };
        for long in [None, Some(125), Some(3_000)] {
            assert_eq!(hear(long), [1; 8], "{long:?}");
        }
        let is_own = target.backends.iter().map(|backend| backend.is_own());
        let wanted: Vec<u32> =
            is_own.enumerate().map(|(place, is_own)| u32::from(!is_own || place < 4)).collect();
        assert_eq!(hear(Some(20)), wanted);
        // Where all prefer all, others take them as a matter of course.
        assert!(!alone.are_shared());
        target.hear_others(&alone, busy, &[], Some(Duration::from_millis(20)));
        assert!(target.backends.iter().all(|backend| backend.elsewhere() == 1));
    }
}
