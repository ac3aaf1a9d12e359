//! What status readers see of a backend.

use std::sync::Arc;

use crate::targets::Backend;
use crate::targets::resilience::breaker::Circuit;
use crate::targets::resilience::ejection::EjectionKind;
use crate::targets::state::decide::{EjectionState, Fuse, Health, Inputs, Source, decide};
use crate::tick::Tick;

/// One backend at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackendStatus {
    /// Its name inside the target.
    pub name: Arc<str>,
    /// Its state.
    pub health: Health,
    /// The input that decided it.
    pub source: Source,
    /// That input's reason.
    pub reason: Arc<str>,
    /// Since when the state holds; zero: since the process started or the backend was added.
    pub since: Tick,
    /// Percent of its configured weight that its agent grants it; 100 without one.
    pub share: u32,
    /// Attempts that hold a lease on it.
    pub in_flight: u32,
    /// The end of its ejection; in the past while no pick came by; `None`: not ejected.
    pub ejected_until: Option<Tick>,
    /// Its circuit breaker.
    pub circuit: Circuit,
}

impl BackendStatus {
    pub(in crate::targets) fn of(backend: &Backend) -> BackendStatus {
        let inputs = inputs(backend);
        let (decision, share) = (decide(&inputs), inputs.agent.share.word);
        BackendStatus {
            name: Arc::clone(&backend.name),
            health: decision.health,
            source: decision.source,
            reason: decision.reason,
            since: decision.since,
            share,
            in_flight: backend.in_flight(),
            ejected_until: backend.ejection().word().until(),
            circuit: backend.breaker().word().circuit(),
        }
    }
}

/// What a backend's state rests on at this moment: what control keeps, and its words.
pub(in crate::targets) fn inputs(backend: &Backend) -> Inputs {
    let mut inputs = backend.detail().inputs.clone();
    let fuse = &mut inputs.fuse;
    (fuse.word, fuse.reason) = match backend.breaker().word().circuit() {
        Circuit::Closed => (Fuse::Closed, Arc::clone(&fuse.reason)),
        Circuit::Open(_) => (Fuse::Open, Arc::clone(&fuse.reason)),
        Circuit::HalfOpen => (Fuse::HalfOpen, "one request finds out whether it is well again".into()),
    };
    let standing = &mut inputs.standing;
    (standing.word, standing.reason) = match backend.ejection().word().kind() {
        None => (EjectionState::Fine, Arc::clone(&standing.reason)),
        Some(EjectionKind::Failing | EjectionKind::Slow) if backend.board().panics() => {
            let reason = format!("{}; set aside, since too few backends are left", standing.reason);
            (EjectionState::SetAside, reason.into())
        }
        Some(_) => (EjectionState::Ejected, Arc::clone(&standing.reason)),
    };
    inputs
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::targets::fixtures::{probed, target};
    use crate::targets::{Ask, Chance, Outcome, Pick, Tried, Verdict};

    #[test]
    fn a_status_tells_the_state_the_reason_and_the_load() {
        let target = target(&probed(2));
        target.state.report(&target.backends[0], Verdict::Bad("timeout after 1s".into()), Tick(7));
        target.state.report(&target.backends[0], Verdict::Bad("connection refused".into()), Tick(8));
        target.state.report(&target.backends[1], Verdict::Good, Tick(9));
        let Pick::Lease(first) = target.pick(&Ask::new(&Tried::new(), &Chance::seeded(1), Tick(10))) else {
            panic!("b1 is up")
        };
        let Pick::Lease(_held) = target.pick(&Ask::new(&Tried::new(), &Chance::seeded(1), Tick(10))) else {
            panic!("b1 is up")
        };
        first.finish(Outcome::ConnectFailed, Tick(8));

        let status = target.status();
        assert_eq!((&*status[0].name, status[0].health, status[0].since), ("b0", Health::Down, Tick(7)));
        assert_eq!(&*status[0].reason, "connection refused", "the latest reason");
        assert_eq!((status[1].health, status[1].source), (Health::Down, Source::Outlier));
        assert_eq!((&*status[1].reason, status[1].in_flight), ("it could not be connected to", 1));
        assert_eq!(status[1].ejected_until, Some(Tick(1_000_000_000)));
    }
}
