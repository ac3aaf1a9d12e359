//! What status readers see of a backend.

use std::sync::Arc;

use crate::targets::Backend;
use crate::targets::resilience::breaker::Circuit;
use crate::targets::resilience::ejection::EjectionWord;
use crate::targets::state::decide::{EjectionState, Fuse, Health, Inputs, Probe, Resolution, Source, decide};
use crate::targets::state::health::last_probe::LastProbe;
use crate::tick::Tick;

impl Backend {
    /// Its state by all inputs, and since when it holds; never before the backend was there.
    #[must_use]
    pub fn state_since(&self) -> (Health, Tick) {
        let decision = decide(&facts(self).inputs);
        (decision.health, decision.since.max(self.detail().added))
    }
}

/// In which condition a backend is: one word out of a closed list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BackendCondition {
    /// Nothing is known of it yet.
    Unknown,
    /// It gets requests.
    Up,
    /// It finishes what it has.
    Draining,
    /// It gets none.
    Down,
    /// It would, and is left out.
    Ejected,
    /// It would, and its breaker is not closed.
    BreakerOpen,
}

impl BackendCondition {
    /// All of them, in the order of their numbers, each with its name.
    pub const ALL: [(&'static str, BackendCondition); 6] = [
        ("unknown", BackendCondition::Unknown),
        ("up", BackendCondition::Up),
        ("draining", BackendCondition::Draining),
        ("down", BackendCondition::Down),
        ("ejected", BackendCondition::Ejected),
        ("breaker_open", BackendCondition::BreakerOpen),
    ];
}

impl Backend {
    /// Its condition, by its words alone: cheap, so that thousands can be asked.
    #[must_use]
    pub fn condition(&self) -> BackendCondition {
        match self.health() {
            Health::Unknown => BackendCondition::Unknown,
            Health::Draining => BackendCondition::Draining,
            Health::Down => BackendCondition::Down,
            Health::Up if self.breaker().word().circuit() != Circuit::Closed => BackendCondition::BreakerOpen,
            Health::Up => match self.ejection().word().kind() {
                Some(kind) if !(kind.is_outlier() && self.board().panics()) => BackendCondition::Ejected,
                Some(_) | None => BackendCondition::Up,
            },
        }
    }
}

/// What one input of the state function says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputStatus {
    /// Which input.
    pub source: Source,
    /// What it says, in its own word: `up`, `drain`, `good`, `open`, `75%`.
    pub says: Arc<str>,
    /// Why, as a short text for people; may be empty.
    pub reason: Arc<str>,
    /// Since when it has been saying so; never before the backend was there.
    pub since: Tick,
}

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
    /// Since when the state holds; never before the backend was there.
    pub since: Tick,
    /// Since when it is in the config.
    pub added: Tick,
    /// Every input of the state function, in the order in which they are heard.
    pub inputs: Vec<InputStatus>,
    /// How its latest probe went; `None`: there was none.
    pub last_probe: Option<LastProbe>,
    /// Percent of its configured weight that its agent grants it; 100 without one.
    pub share: u32,
    /// Attempts that hold a lease on it.
    pub in_flight: u32,
    /// The end of its ejection; in the past while no pick came by; `None`: not ejected.
    pub ejected_until: Option<Tick>,
    /// Its circuit breaker.
    pub circuit: Circuit,
}

/// A target as a whole at one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct TargetStatus {
    /// `unknown`, `up`, `backups` (no others are left) or `down`, as it was told.
    pub level: &'static str,
    /// Since when; zero: nothing was told yet.
    pub since: Tick,
    /// How many backends get requests of new clients, or would if they were needed.
    pub left: usize,
    /// How many there are with a weight.
    pub of: usize,
    /// So few are left that outliers get requests again.
    pub panics: bool,
    /// How many backends of the config before stand in.
    pub stand_ins: usize,
    /// What part of the new requests each backend gets by its weight, 0 to 1, in config order.
    pub parts: Vec<f64>,
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
        let (added, last_probe) = {
            let detail = backend.detail();
            (detail.added, detail.last_probe.clone())
        };
        BackendStatus {
            name: Arc::clone(&backend.name),
            health: decision.health,
            source: decision.source,
            reason: decision.reason,
            since: decision.since.max(added),
            added,
            inputs: heard(&inputs, added),
            last_probe,
            share,
            in_flight: backend.in_flight(),
            ejected_until: ejection.until(),
            circuit,
        }
    }
}

/// What each input says of a backend that is there since `added`.
fn heard(inputs: &Inputs, added: Tick) -> Vec<InputStatus> {
    let Inputs { operator, name, probe, agent, fuse, standing, was_away: _ } = inputs;
    let says = |source, says: &str, reason: &Arc<str>, since: Tick| InputStatus {
        source,
        says: says.into(),
        reason: Arc::clone(reason),
        since: since.max(added),
    };
    let name_word = match name.word {
        Resolution::Pending => "pending",
        Resolution::Resolved => "resolved",
        Resolution::Failed => "failed",
    };
    let probe_word = match probe.word {
        Probe::Off => "off",
        Probe::Pending => "pending",
        Probe::Good => "good",
        Probe::Bad => "bad",
    };
    let fuse_word = match fuse.word {
        Fuse::Closed => "closed",
        Fuse::Open => "open",
        Fuse::HalfOpen => "half_open",
    };
    let standing_word = match standing.word {
        EjectionState::Fine => "fine",
        EjectionState::Ejected => "ejected",
        EjectionState::SetAside => "set_aside",
    };
    let (agent_word, agent_reason, agent_since) = agent.told();
    vec![
        says(Source::Operator, operator.wish.word.as_str(), &operator.wish.reason, operator.wish.since),
        says(Source::Name, name_word, &name.reason, name.since),
        says(Source::Probe, probe_word, &probe.reason, probe.since),
        says(Source::Agent, &agent_word, &agent_reason, agent_since),
        says(Source::Breaker, fuse_word, &fuse.reason, fuse.since),
        says(Source::Outlier, standing_word, &standing.reason, standing.since),
    ]
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
    use std::time::Duration;

    use crate::config::model::BackendState;
    use crate::targets::fixtures::{probed, target};
    use crate::targets::state::health::agent::AgentReport;
    use crate::targets::{Ask, Chance, Outcome, Pick, Registry, Tried, Verdict};

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

    #[test]
    fn a_status_tells_what_each_input_says_and_never_from_before_the_backend_was_there() {
        let registry = Registry::new();
        let mut config = probed(1);
        config.backends[0].state = BackendState::Drain;
        let prepared = registry.prepare(&[config]);
        registry.commit(&prepared, Tick(5));
        let target = &prepared.targets[0];
        let backend = &target.backends[0];
        backend.note_probe(LastProbe { at: Tick(8), took: Duration::from_millis(2), fault: None });
        target.state.report(backend, Verdict::Good, Tick(9));
        target.state.hear(backend, &AgentReport::read(b"up 75%"), Tick(10));
        let status = target.status().remove(0);
        assert_eq!((status.health, status.since, status.added), (Health::Draining, Tick(9), Tick(5)));
        assert_eq!(status.last_probe.map(|probe| probe.at), Some(Tick(8)));
        let inputs: Vec<_> = status
            .inputs
            .iter()
            .map(|one| (one.source.as_str(), &*one.says, &*one.reason, one.since.0))
            .collect();
        assert_eq!(
            inputs,
            [
                ("operator", "drain", "drained by the config", 5),
                ("name", "resolved", "a literal address", 5),
                ("probe", "good", "the first probe passed", 9),
                ("agent", "75%", "the agent says 75%", 5),
                ("breaker", "closed", "no failures", 5),
                ("outlier", "fine", "the first probe passed", 5),
            ]
        );
    }
}
