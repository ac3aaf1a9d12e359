//! What status readers see of a backend.

use std::sync::Arc;

use crate::targets::Backend;
use crate::targets::resilience::breaker::Circuit;
use crate::targets::resilience::ejection::EjectionWord;
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
        let BackendFacts { mut inputs, ejection, circuit } = facts(backend);
        if circuit == Circuit::HalfOpen {
            inputs.fuse.reason = "one request finds out whether it is well again".into();
        }
        if inputs.standing.word == EjectionState::SetAside {
            let reason = format!("{}; set aside, since too few backends are left", inputs.standing.reason);
            inputs.standing.reason = reason.into();
        }
        let (decision, share) = (decide(&inputs), inputs.agent.share.word);
        BackendStatus {
            name: Arc::clone(&backend.name),
            health: decision.health,
            source: decision.source,
            reason: decision.reason,
            since: decision.since,
            share,
            in_flight: backend.in_flight(),
            ejected_until: ejection.until(),
            circuit,
        }
    }
}

/// What a backend's state rests on at one moment, and its words themselves.
pub(in crate::targets) struct BackendFacts {
    pub(in crate::targets) inputs: Inputs,
    pub(in crate::targets) ejection: EjectionWord,
    pub(in crate::targets) circuit: Circuit,
}

/// What control keeps of a backend, and its words with the reasons that belong to them.
pub(in crate::targets) fn facts(backend: &Backend) -> BackendFacts {
    let detail = backend.detail();
    let (ejection, circuit) = (backend.ejection().word(), backend.breaker().word().circuit());
    let mut inputs = detail.inputs.clone();
    drop(detail);
    inputs.fuse.word = match circuit {
        Circuit::Closed => Fuse::Closed,
        Circuit::Open(_) => Fuse::Open,
        Circuit::HalfOpen => Fuse::HalfOpen,
    };
    inputs.standing.word = match ejection.kind() {
        None => EjectionState::Fine,
        Some(kind) if kind.is_outlier() && backend.board().panics() => EjectionState::SetAside,
        Some(_) => EjectionState::Ejected,
    };
    BackendFacts { inputs, ejection, circuit }
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
