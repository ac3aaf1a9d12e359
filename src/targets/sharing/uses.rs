//! How many requests this node has begun on each backend of a target lately: the others take turns by it, too.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use crate::message::BackendId;
use crate::targets::Target;
use crate::targets::resilience::attempt_counts::Reading;
use crate::tick::Tick;

/// Lately: a request counts for 1/e of itself after this time. About as long as people look at: what is uneven for longer than a second is to be evened in it.
pub const LATELY: Duration = Duration::from_millis(1_400);

/// What is known of one target.
#[derive(Debug, Default)]
pub struct Uses {
    seen: HashMap<BackendId, Used>,
    begun: Option<Tick>,
    looked: Option<Tick>,
}

/// What is known of one backend.
#[derive(Debug)]
struct Used {
    /// Which it is: its number may be another one's by now.
    identity: Arc<str>,
    /// What it had done, and was doing, when it was looked at.
    reading: Reading,
    in_flight: u32,
    fresh: u32,
    lately: f64,
}

impl Uses {
    /// Looks again. What has begun since the last look came evenly in between: else who looks seldom would find more than who looks often.
    pub fn look(&mut self, target: &Target, now: Tick) {
        self.begun.get_or_insert(now);
        let passed = self.looked.replace(now).map_or(Duration::ZERO, |before| now.since(before));
        let passed = passed.as_secs_f64() / LATELY.as_secs_f64();
        let stays = (-passed).exp();
        let of_new = if passed > 0.0 { (1.0 - stays) / passed } else { 1.0 };
        let mut before = std::mem::replace(&mut self.seen, HashMap::with_capacity(target.backends.len()));
        for backend in &target.backends {
            let (reading, in_flight) = (backend.attempt_counts().read(), backend.in_flight());
            let old = before.remove(&backend.id).filter(|old| Arc::ptr_eq(&old.identity, &backend.identity));
            let first = || Used {
                identity: Arc::clone(&backend.identity),
                reading,
                in_flight,
                fresh: 0,
                lately: 0.0,
            };
            let old = old.unwrap_or_else(first);
            // What has ended and what is there now, less what was there before. One whose answer has begun and not ended is in both until it ends: in a difference that is made
            // good later.
            let ended = reading.since(old.reading).attempts;
            let begun = f64::from(ended) + f64::from(in_flight) - f64::from(old.in_flight);
            // Where only one is there at a time, it is another one if any was answered; of several nobody knows which.
            let gone = if target.limit() == Some(1) { ended } else { 0 };
            let fresh = in_flight.saturating_sub(old.in_flight.saturating_sub(gone));
            let lately = (old.lately * stays + begun * of_new).max(0.0);
            self.seen.insert(backend.id, Used { reading, in_flight, fresh, lately, ..old });
        }
    }

    /// Whether it has been looked at for so long that what was before makes no difference any more.
    #[must_use]
    pub fn is_known(&self) -> bool {
        self.begun.zip(self.looked).is_some_and(|(begun, looked)| looked.since(begun) >= LATELY * 2)
    }

    /// How many of those that were on this backend at the last look were not there at the one before, as far as that is known. Whose answer has begun in between and goes on counts as one
    /// of them until the next look.
    #[must_use]
    pub fn fresh(&self, backend: BackendId) -> u32 {
        self.seen.get(&backend).map_or(0, |used| used.fresh)
    }

    /// How many began on this backend lately.
    #[must_use]
    pub fn of(&self, backend: BackendId) -> f64 {
        self.seen.get(&backend).map_or(0.0, |used| used.lately)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::model::{Balance, TargetConfig};
    use crate::targets::fixtures::{target, unprobed};
    use crate::targets::{Ask, Chance, Heard, Lease, Outcome, Pick, Tried};

    const NOW: Tick = Tick(1_000_000_000);

    fn leased(target: &Target) -> Lease {
        match target.pick(&Ask::new(&Tried::new(), &Chance::seeded(1), NOW)) {
            Pick::Lease(lease) => lease,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_request_counts_once_from_when_it_begins_and_less_and_less() {
        let fixture = |count| TargetConfig { balance: Balance::LeastConnections.into(), ..unprobed(count) };
        let (target, other) = (target(&fixture(2)), target(&fixture(1)));
        let (mut uses, id) = (Uses::default(), target.backends[0].id);
        uses.look(&target, NOW);
        assert_eq!((uses.of(id), uses.of(target.backends[1].id), uses.is_known()), (0.0, 0.0, false));
        let leases: Vec<Lease> = (0..6).map(|_| leased(&target)).collect();
        let mut look = |millis: u64| {
            uses.look(&target, NOW.after(Duration::from_millis(millis)));
            uses.of(id)
        };
        assert_eq!(look(0), 3.0, "while they are under way");
        leases.iter().for_each(|lease| lease.note_answer(Heard::GOOD, NOW));
        look(0);
        leases.into_iter().for_each(|lease| lease.finish(Outcome::Success, NOW));
        assert!((look(0) - 3.0).abs() < 1e-9, "and no more when they have ended");
        let after = look(1_400);
        assert!((after - 3.0 / std::f64::consts::E).abs() < 1e-9, "{after}");
        // What is gone is forgotten, and another one that has its number by now is another one.
        let second = target.backends[1].id;
        assert!(uses.of(second) > 0.0);
        uses.look(&other, NOW.after(LATELY * 2));
        assert_eq!((uses.of(id), uses.of(second), uses.is_known()), (0.0, 0.0, true));
    }
}
