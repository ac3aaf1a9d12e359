//! Backends that several nodes share: which of them this node prefers, and how busy the others make them.
//!
//! Invariants:
//!
//! 1. The word of a backend that is counted up and down with leases ([`Backend::taken`]) is what this node has on it and what the others have, as far as this node
//!    was told. So a limit, an order of loads and the queue go by both, and nothing on the way of a request has to know of others.
//! 2. What others have is changed by one at a time, who takes the place of as many leases as it is: more of it may be more than the limit, since nobody can refuse
//!    what has happened elsewhere; less of it ends like leases, each of which may give its place to whoever waits.
//! 3. Who is preferred decides on the place in the live set alone: a tier of its own before the others of the same priority and zone. Requests that are to go to those
//!    ([`Board::spills`](crate::targets::state::objects::Board)) find one of the own ones where none of them is free: whoever could be served before is.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::message::BackendId;
use crate::targets::picking::tier::Tier;
use crate::targets::queueing::board_state::hand_on;
use crate::targets::sharing::levelling::{Had, LevelSums, standing};
use crate::targets::{Backend, TargetState};
use crate::tick::Tick;

/// The most that is believed of what others have on a backend.
const ELSEWHERE_MAX: u32 = 1 << 20;

impl Backend {
    /// Attempts on it, over all workers and, as far as this node was told, over all nodes that share it.
    #[must_use]
    #[inline]
    pub fn taken(&self) -> u32 {
        // SeqCst with the limit: see the invariants of the board.
        self.in_flight.load(Ordering::SeqCst)
    }

    /// Attempts of this node that hold a lease on it, over all workers.
    #[must_use]
    pub fn in_flight(&self) -> u32 {
        loop {
            // Of one moment, or fewer: what others have is said before it is counted, and counted out before it is said.
            let elsewhere = self.elsewhere();
            let taken = self.taken();
            if self.elsewhere() == elsewhere {
                return taken.saturating_sub(elsewhere);
            }
        }
    }

    /// Attempts of other nodes, as far as this one was told.
    #[must_use]
    pub fn elsewhere(&self) -> u32 {
        self.elsewhere.load(Ordering::SeqCst)
    }

    /// Whether this node prefers it among those that several nodes share.
    #[must_use]
    pub fn is_own(&self) -> bool {
        self.own.load(Ordering::Relaxed)
    }
}

impl TargetState {
    /// So many attempts of other nodes are on `backend`. One at a time may call this.
    pub fn set_elsewhere(&self, backend: &Arc<Backend>, count: u32) {
        let count = count.min(ELSEWHERE_MAX);
        let before = backend.elsewhere();
        if count > before {
            backend.elsewhere.store(count, Ordering::SeqCst);
            backend.in_flight.fetch_add(count - before, Ordering::SeqCst);
            self.board.lock().refresh(backend);
            return;
        }
        for left in (count..before).rev() {
            let limit = self.board.limit();
            if limit == 0 {
                backend.leave();
            } else if !backend.leave_below(limit) {
                hand_on(backend);
            }
            backend.elsewhere.store(left, Ordering::SeqCst);
        }
        if before > count {
            // Also where another limit was put in force meanwhile.
            self.board.lock().refresh(backend);
        }
    }

    /// Has equally busy backends stand in the order of how many requests each has `had` lately of all nodes. Gives what own ones of the first choice have had, and the others of
    /// it; `None`: there are none of one kind, or some are to have more than others.
    pub(in crate::targets) fn order_by(&self, had: &HashMap<BackendId, Had>) -> Option<LevelSums> {
        let live = self.live.load();
        let mut weights = live.first_choice().flat_map(|tier| &tier.weights);
        let first = weights.next();
        if weights.any(|weight| Some(weight) != first) {
            return None;
        }
        // Found out before the lock, under which everybody waits who picks.
        let of_tier = |tier: &Tier| -> (Vec<f64>, Vec<(f64, bool)>) {
            let of = |backend: &Arc<Backend>| had.get(&backend.id).copied().unwrap_or_default();
            let had: Vec<Had> = tier.backends.iter().map(of).collect();
            let is_own = tier.backends.first().is_some_and(|first| first.is_own());
            let stand = standing(&had);
            let apart = |had: &Had| if is_own { 0.0 } else { had.apart };
            (had.iter().zip(&stand).map(|(had, stands)| stands.0 + apart(had)).collect(), stand)
        };
        let tiers: Vec<_> = live.tiers.iter().map(of_tier).collect();
        let mut locked = self.board.lock();
        if locked.generation != live.generation {
            return None;
        }
        for (row, (places, _)) in locked.rows.iter_mut().zip(&tiers) {
            if let Some(rank) = &mut row.rank {
                rank.order_by(|place| places[place]);
            }
        }
        let [own, others, ..] = &live.tiers[..] else { return None };
        if own.group != others.group {
            return None;
        }
        // Who is left out has no part.
        let sums = |number: usize| {
            let row = &locked.rows[number];
            let gets_some = |place: &usize| row.watch.ready.contains(*place) || row.marks[*place].only_full;
            let there = tiers[number].1.iter().enumerate();
            let there = there.filter(|(place, (_, is_new))| !is_new && gets_some(place));
            there.fold((0.0, 0), |(sum, count), (_, (requests, _))| (sum + requests, count + 1))
        };
        Some(LevelSums { own: sums(0), others: sums(1) }).filter(|sums| sums.own.1 > 0 && sums.others.1 > 0)
    }

    /// So many of the next requests go first to backends that other nodes prefer; gives how many were to and have not come.
    pub(in crate::targets) fn spill(&self, requests: u32) -> u32 {
        self.board.spills.swap(requests, Ordering::Relaxed)
    }

    /// From now on this node prefers those for which `is_own` says so.
    pub fn prefer(&self, is_own: impl Fn(&Backend) -> bool, now: Tick) {
        let mut members = self.members();
        let mut differs = false;
        for member in &members.all {
            let own = is_own(&member.backend);
            differs |= member.backend.own.swap(own, Ordering::Relaxed) != own;
        }
        if differs {
            self.rebuild(&mut members, now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::model::{Balance, OwnerMode, Policy, Resilience, TargetConfig};
    use crate::targets::fixtures::{granted, target, unprobed};
    use crate::targets::{Ask, Chance, Lease, Pick, Queued, Target, Tried};

    const NOW: Tick = Tick(1_000_000_000);

    fn shared(algorithm: Balance, backends: u16, limit: u32) -> Arc<Target> {
        let balance = Policy { owner: OwnerMode::Soft, ..algorithm.into() };
        let resilience = Resilience { max_in_flight: Some(limit), queue: 10, ..Resilience::default() };
        target(&TargetConfig { balance, resilience, ..unprobed(backends) })
    }

    fn pick(target: &Target) -> Pick {
        target.pick(&Ask::new(&Tried::new(), &Chance::seeded(1), NOW))
    }

    fn leased(target: &Target) -> Lease {
        match pick(target) {
            Pick::Lease(lease) => lease,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn own_ones_come_first_and_then_those_that_nobody_else_has_taken() {
        for (name, algorithm) in Balance::ALL {
            let target = shared(*algorithm, 4, 1);
            let [one, two, three, four] = &target.backends[..] else { panic!("four") };
            target.state.prefer(|backend| backend.id == three.id, NOW);
            target.state.set_elsewhere(one, 1);
            target.state.set_elsewhere(four, 7);
            let (first, second) = (leased(&target), leased(&target));
            assert_eq!((first.backend().id, second.backend().id), (three.id, two.id), "{name}");
            assert!(matches!(pick(&target), Pick::Full), "{name}");
            assert_eq!((one.in_flight(), one.taken(), four.in_flight()), (0, 1, 0), "{name}");
            assert_eq!((target.serving(), target.under_way()), (4, 2), "{name}");
            // One that is preferred no more is taken last.
            target.state.set_elsewhere(four, 0);
            drop((first, second));
            target.state.prefer(|backend| backend.id == four.id, NOW);
            assert_eq!(leased(&target).backend().id, four.id, "{name}");
        }
    }

    #[test]
    fn who_waits_gets_the_place_that_another_node_gives_up() {
        let target = shared(Balance::LeastConnections, 1, 2);
        let backend = &target.backends[0];
        target.state.set_elsewhere(backend, 2);
        let (tried, chance) = (Tried::new(), Chance::seeded(1));
        let ask = Ask::new(&tried, &chance, NOW);
        let ticket = || match target.enqueue(&ask) {
            Queued::Ticket(ticket) => ticket,
            other => panic!("{other:?}"),
        };
        let (mut first, mut second) = (ticket(), ticket());
        assert!(granted(&mut first).is_none());
        target.state.set_elsewhere(backend, 1);
        let lease = granted(&mut first).expect("there is a place");
        assert!(granted(&mut second).is_none());
        assert_eq!((backend.in_flight(), backend.taken(), backend.elsewhere()), (1, 2, 1));
        target.state.set_elsewhere(backend, 0);
        assert!(granted(&mut second).is_some());
        drop(lease);
        assert_eq!((backend.in_flight(), backend.taken()), (0, 0));
    }

    #[test]
    fn what_others_have_beyond_the_limit_goes_before_anybody_gets_a_place() {
        let target = shared(Balance::RoundRobin, 1, 2);
        let backend = &target.backends[0];
        let lease = leased(&target);
        // Both have taken it at once.
        target.state.set_elsewhere(backend, 3);
        assert_eq!((backend.in_flight(), backend.taken()), (1, 4));
        for (left, is_full) in [(2, true), (1, true), (0, false)] {
            target.state.set_elsewhere(backend, left);
            assert_eq!(matches!(pick(&target), Pick::Full), is_full, "{left}");
        }
        drop(lease);
        assert_eq!(backend.taken(), 0);
    }
}
