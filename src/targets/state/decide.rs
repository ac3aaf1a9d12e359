//! The one function from inputs to a backend's state.
//!
//! Each input keeps what it says, why and since when; [`decide`] ranks them: an operator's `down`, name, agent, probe, an
//! operator's `drain`, breaker, outlier. `TargetState` asks it what belongs into the live set, status readers ask it what
//! to show.

use std::sync::Arc;

use crate::config::model::BackendState;
use crate::targets::state::health::agent::Agent;
use crate::targets::state::input::Input;
use crate::targets::state::operator::Operator;
use crate::tick::Tick;

/// What a backend is to the picker and to whoever reads the status.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Health {
    /// No verdict yet; requests that find nothing else wait for it.
    #[default]
    Unknown,
    /// It may be picked.
    Up,
    /// It may not be picked.
    Down,
    /// It may be picked only for clients whose sticky cookie names it, like one of weight 0.
    Draining,
}

impl Health {
    /// The name in logs and status: `unknown`, `up`, `down` or `draining`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Health::Unknown => "unknown",
            Health::Up => "up",
            Health::Down => "down",
            Health::Draining => "draining",
        }
    }
}

/// Which input decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Source {
    /// The operator, by the config or by hand.
    Operator,
    /// The resolution of its name.
    Name,
    /// The active probe, or its being switched off.
    Probe,
    /// Its agent.
    Agent,
    /// Its circuit breaker.
    Breaker,
    /// Outlier detection.
    Outlier,
}

impl Source {
    /// The name in events: `operator`, `name`, `probe`, `agent`, `breaker` or `outlier`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Source::Operator => "operator",
            Source::Name => "name",
            Source::Probe => "probe",
            Source::Agent => "agent",
            Source::Breaker => "breaker",
            Source::Outlier => "outlier",
        }
    }
}

/// What its circuit breaker says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::targets) enum Fuse {
    /// It is closed, or there is none.
    #[default]
    Closed,
    /// It is open.
    Open,
    /// One request is finding out.
    HalfOpen,
}

/// What outlier detection says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::targets) enum EjectionState {
    /// It does as its siblings do.
    #[default]
    Fine,
    /// It is left out.
    Ejected,
    /// It would be left out, but too few would be left.
    SetAside,
}

/// What is known about a backend's addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::targets) enum Resolution {
    /// The first lookup has not ended.
    Pending,
    /// It has addresses; a later failed lookup keeps them.
    Resolved,
    /// It never had an address.
    Failed,
}

/// What the active probe says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::targets) enum Probe {
    /// Probing is switched off: it counts as healthy.
    Off,
    /// The first probe has not ended.
    Pending,
    /// Healthy.
    Good,
    /// Unhealthy.
    Bad,
}

/// Everything that has a say in a backend's state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::targets) struct Inputs {
    /// What the operator wants.
    pub(in crate::targets) operator: Operator,
    /// Its name's resolution; `Resolved` for literal addresses and unix sockets.
    pub(in crate::targets) name: Input<Resolution>,
    /// Its probe.
    pub(in crate::targets) probe: Input<Probe>,
    /// Its agent; one that there isn't has said nothing.
    pub(in crate::targets) agent: Agent,
    /// Its circuit breaker, read off its word when somebody asks.
    pub(in crate::targets) fuse: Input<Fuse>,
    /// Outlier detection, likewise.
    pub(in crate::targets) standing: Input<EjectionState>,
    /// It has been down and may be cold when it comes back. A first verdict is no return: at the start of a process
    /// all backends get one.
    pub(in crate::targets) was_away: bool,
}

/// A backend's state and what it rests on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::targets) struct Decision {
    /// The state.
    pub(in crate::targets) health: Health,
    /// The state as far as control knows it: by name and probe. It decides on the place in the live set; the words of breaker
    /// and outlier are read at each pick.
    pub(in crate::targets) standing: Health,
    /// The input that decided.
    pub(in crate::targets) source: Source,
    /// That input's reason.
    pub(in crate::targets) reason: Arc<str>,
    /// Since when the state holds.
    pub(in crate::targets) since: Tick,
    /// Since when it is back, if it was away: it gets its share little by little where `slow_start` says so.
    pub(in crate::targets) back_since: Option<Tick>,
}

impl Inputs {
    /// The inputs of a backend that nothing but its name and its probe speak of.
    pub(in crate::targets) fn new(name: Input<Resolution>, probe: Input<Probe>) -> Inputs {
        Inputs {
            operator: Operator::default(),
            name,
            probe,
            agent: Agent::default(),
            fuse: Input::new(Fuse::Closed, "no failures", Tick::ZERO),
            standing: Input::new(EjectionState::Fine, "no errors", Tick::ZERO),
            was_away: false,
        }
    }

    /// Why a backend is up that was not because of `source`.
    pub(super) fn release(&self, source: Source) -> Arc<str> {
        match source {
            Source::Operator => Arc::clone(&self.operator.wish.reason),
            Source::Name => Arc::clone(&self.name.reason),
            Source::Probe => Arc::clone(&self.probe.reason),
            Source::Agent => "its agent lets it".into(),
            Source::Breaker => Arc::clone(&self.fuse.reason),
            Source::Outlier => Arc::clone(&self.standing.reason),
        }
    }
}

/// The state that follows from `inputs`: who takes it down on purpose says so whatever else is wrong; then the name, since without
/// an address nothing else counts, then whoever says that it gets no requests at all, then whoever keeps new clients from it.
#[must_use]
pub(in crate::targets) fn decide(inputs: &Inputs) -> Decision {
    let by_control = decide_by_control(inputs);
    let Inputs { fuse, standing, .. } = inputs;
    if !matches!(by_control.health, Health::Up | Health::Draining) {
        return by_control;
    }
    match (fuse.word, standing.word) {
        (Fuse::Closed, EjectionState::Fine) => by_control,
        (Fuse::Open | Fuse::HalfOpen, _) => Decision {
            health: Health::Down,
            source: Source::Breaker,
            reason: Arc::clone(&fuse.reason),
            since: fuse.since,
            ..by_control
        },
        (Fuse::Closed, word) => Decision {
            health: if word == EjectionState::Ejected { Health::Down } else { by_control.health },
            source: Source::Outlier,
            reason: Arc::clone(&standing.reason),
            since: standing.since,
            ..by_control
        },
    }
}

/// The same without the words of breaker and outlier.
fn decide_by_control(inputs: &Inputs) -> Decision {
    let Inputs { operator: Operator { wish, back }, name, probe, agent, was_away, .. } = inputs;
    let decision = |health, source, reason: &Arc<str>, since| Decision {
        health,
        standing: health,
        source,
        reason: Arc::clone(reason),
        since,
        back_since: None,
    };
    if wish.word == BackendState::Down {
        return decision(Health::Down, Source::Operator, &wish.reason, wish.since);
    }
    match name.word {
        Resolution::Failed => return decision(Health::Down, Source::Name, &name.reason, name.since),
        Resolution::Pending => return decision(Health::Unknown, Source::Name, &name.reason, name.since),
        Resolution::Resolved => {}
    }
    if let Some((reason, since)) = agent.objection() {
        return decision(Health::Down, Source::Agent, reason, since.max(name.since));
    }
    // With probing off the state began when the name got its addresses.
    let back = probe.since.max(name.since).max(agent.back).max(*back);
    if wish.word == BackendState::Drain && matches!(probe.word, Probe::Off | Probe::Good) {
        return decision(Health::Draining, Source::Operator, &wish.reason, wish.since.max(back));
    }
    match (probe.word, agent.reserve()) {
        (Probe::Bad, _) => decision(Health::Down, Source::Probe, &probe.reason, probe.since.max(name.since)),
        (Probe::Pending, _) => {
            decision(Health::Unknown, Source::Probe, &probe.reason, probe.since.max(name.since))
        }
        (Probe::Off | Probe::Good, Some((reason, since))) => {
            decision(Health::Draining, Source::Agent, reason, since.max(back))
        }
        (Probe::Off | Probe::Good, None) => Decision {
            back_since: was_away.then_some(back),
            ..decision(Health::Up, Source::Probe, &probe.reason, back.max(agent.since()).max(wish.since))
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::targets::state::health::agent::AgentReport;

    fn wishing(state: BackendState, inputs: Inputs) -> Inputs {
        let mut operator = Operator::default();
        operator.hear(state, None, Tick(9));
        Inputs { operator, ..inputs }
    }

    #[test]
    fn the_operator_takes_away_what_others_grant_and_grants_nothing() {
        let names = [Resolution::Pending, Resolution::Resolved, Resolution::Failed];
        let probes = [Probe::Off, Probe::Pending, Probe::Good, Probe::Bad];
        let lines = ["up ready 100%", "drain", "0%", "maint", "down"];
        let fuses = [Fuse::Closed, Fuse::Open, Fuse::HalfOpen];
        let standings = [EjectionState::Fine, EjectionState::Ejected, EjectionState::SetAside];
        let mut seen = 0;
        for (name, probe) in names.iter().flat_map(|name| probes.map(|probe| (*name, probe))) {
            for (line, fuse) in lines.iter().flat_map(|line| fuses.map(|fuse| (line, fuse))) {
                for standing in standings {
                    let mut agent = Agent::default();
                    agent.hear(&AgentReport::read(line.as_bytes()), Tick(4));
                    let inputs = Inputs {
                        agent,
                        fuse: Input::new(fuse, "by breaker", Tick(7)),
                        standing: Input::new(standing, "by outlier", Tick(8)),
                        was_away: true,
                        ..Inputs::new(
                            Input::new(name, "by name", Tick(2)),
                            Input::new(probe, "by probe", Tick(3)),
                        )
                    };
                    let without = decide(&inputs);
                    let what = format!("{name:?} {probe:?} {line} {fuse:?} {standing:?}");
                    assert_eq!(decide(&wishing(BackendState::Up, inputs.clone())), without, "{what}");
                    let down = decide(&wishing(BackendState::Down, inputs.clone()));
                    assert_eq!((down.health, down.standing), (Health::Down, Health::Down), "{what}");
                    assert_eq!((down.source, &*down.reason), (Source::Operator, "taken down by the config"));
                    assert_eq!((down.since, down.back_since), (Tick(9), None), "{what}");
                    let drain = decide(&wishing(BackendState::Drain, inputs));
                    match without.standing {
                        // Who has no verdict, or does not work, is not made better by a drain.
                        Health::Unknown | Health::Down => assert_eq!(drain, without, "{what}"),
                        Health::Up | Health::Draining => {
                            assert_eq!(drain.standing, Health::Draining, "{what}");
                            assert_eq!(drain.back_since, None, "{what}");
                            let is_down = without.health == Health::Down;
                            let health = if is_down { Health::Down } else { Health::Draining };
                            assert_eq!(drain.health, health, "{what}");
                            let words = fuse != Fuse::Closed || standing != EjectionState::Fine;
                            let source = if words { without.source } else { Source::Operator };
                            assert_eq!(drain.source, source, "{what}");
                        }
                    }
                    seen += 1;
                }
            }
        }
        assert_eq!(seen, 3 * 4 * 5 * 3 * 3);
    }

    #[test]
    fn a_backend_is_back_when_the_operator_ends_a_down_and_a_drain_is_no_absence() {
        let mut inputs = Inputs {
            was_away: true,
            ..Inputs::new(
                Input::new(Resolution::Resolved, "by name", Tick(1)),
                Input::new(Probe::Good, "by probe", Tick(2)),
            )
        };
        for (state, now, since, back) in [
            (BackendState::Drain, 3, 3, None),
            (BackendState::Up, 4, 4, Some(2)),
            (BackendState::Down, 5, 5, None),
            (BackendState::Drain, 6, 6, None),
            (BackendState::Up, 7, 7, Some(6)),
        ] {
            inputs.operator.hear(state, None, Tick(now));
            let decision = decide(&inputs);
            assert_eq!((decision.since, decision.back_since), (Tick(since), back.map(Tick)), "{state:?}");
        }
    }

    #[test]
    fn every_combination_of_inputs() {
        for (name, probe, health, source) in [
            (Resolution::Pending, Probe::Off, Health::Unknown, Source::Name),
            (Resolution::Pending, Probe::Pending, Health::Unknown, Source::Name),
            (Resolution::Pending, Probe::Good, Health::Unknown, Source::Name),
            (Resolution::Pending, Probe::Bad, Health::Unknown, Source::Name),
            (Resolution::Failed, Probe::Off, Health::Down, Source::Name),
            (Resolution::Failed, Probe::Pending, Health::Down, Source::Name),
            (Resolution::Failed, Probe::Good, Health::Down, Source::Name),
            (Resolution::Failed, Probe::Bad, Health::Down, Source::Name),
            (Resolution::Resolved, Probe::Off, Health::Up, Source::Probe),
            (Resolution::Resolved, Probe::Pending, Health::Unknown, Source::Probe),
            (Resolution::Resolved, Probe::Good, Health::Up, Source::Probe),
            (Resolution::Resolved, Probe::Bad, Health::Down, Source::Probe),
        ] {
            let inputs =
                Inputs::new(Input::new(name, "by name", Tick(5)), Input::new(probe, "by probe", Tick(3)));
            let decision = decide(&inputs);
            assert_eq!(decision.back_since, None);
            let back = decide(&Inputs { was_away: true, ..inputs.clone() });
            assert_eq!(back.back_since, (health == Health::Up).then_some(Tick(5)), "{name:?} {probe:?}");
            assert_eq!((decision.health, decision.source), (health, source), "{name:?} {probe:?}");
            let reason = if source == Source::Name { "by name" } else { "by probe" };
            assert_eq!((&*decision.reason, decision.since), (reason, Tick(5)));
            for (fuse, standing, by_words, source) in [
                (Fuse::Open, EjectionState::Fine, Health::Down, Source::Breaker),
                (Fuse::HalfOpen, EjectionState::Ejected, Health::Down, Source::Breaker),
                (Fuse::Open, EjectionState::SetAside, Health::Down, Source::Breaker),
                (Fuse::Closed, EjectionState::Ejected, Health::Down, Source::Outlier),
                (Fuse::Closed, EjectionState::SetAside, Health::Up, Source::Outlier),
            ] {
                let worded = decide(&Inputs {
                    fuse: Input::new(fuse, "by breaker", Tick(7)),
                    standing: Input::new(standing, "by outlier", Tick(8)),
                    ..inputs.clone()
                });
                assert_eq!(worded.standing, health, "the live set is as it was");
                if health == Health::Up {
                    assert_eq!((worded.health, worded.source), (by_words, source), "{fuse:?} {standing:?}");
                    assert_eq!(worded.since, Tick(if source == Source::Breaker { 7 } else { 8 }));
                } else {
                    assert_eq!(worded, decision, "what is down stays down, whatever its words say");
                }
            }
        }
    }

    #[test]
    fn the_agent_takes_away_what_the_probe_grants_and_grants_nothing() {
        for (said, probe, health, source, since) in [
            ("maint", Probe::Good, Health::Down, Source::Agent, 7),
            ("maint", Probe::Bad, Health::Down, Source::Agent, 7),
            ("maint", Probe::Pending, Health::Down, Source::Agent, 7),
            ("down", Probe::Good, Health::Down, Source::Agent, 7),
            ("drain", Probe::Good, Health::Draining, Source::Agent, 7),
            ("0%", Probe::Off, Health::Draining, Source::Agent, 7),
            // Nobody is to be sent to a backend that does not work, sticky or not.
            ("drain", Probe::Bad, Health::Down, Source::Probe, 3),
            ("drain", Probe::Pending, Health::Unknown, Source::Probe, 3),
            ("up ready 50%", Probe::Good, Health::Up, Source::Probe, 3),
            ("up ready 50%", Probe::Bad, Health::Down, Source::Probe, 3),
        ] {
            let mut agent = Agent::default();
            agent.hear(&AgentReport::read(said.as_bytes()), Tick(7));
            let inputs = Inputs {
                agent,
                was_away: true,
                ..Inputs::new(
                    Input::new(Resolution::Resolved, "by name", Tick(2)),
                    Input::new(probe, "by probe", Tick(3)),
                )
            };
            let decision = decide(&inputs);
            assert_eq!((decision.health, decision.source), (health, source), "{said} {probe:?}");
            assert_eq!(decision.since, Tick(since), "{said} {probe:?}");
            assert_eq!(decision.back_since, (health == Health::Up).then_some(Tick(3)), "{said} {probe:?}");
        }
    }

    #[test]
    fn a_backend_is_back_when_the_agent_lets_it_and_a_drain_is_no_absence() {
        let mut inputs = Inputs {
            agent: Agent::default(),
            was_away: true,
            ..Inputs::new(
                Input::new(Resolution::Resolved, "by name", Tick(1)),
                Input::new(Probe::Good, "by probe", Tick(2)),
            )
        };
        for (said, now) in [("drain", 3), ("ready", 4)] {
            inputs.agent.hear(&AgentReport::read(said.as_bytes()), Tick(now));
        }
        let decision = decide(&inputs);
        assert_eq!((decision.since, decision.back_since), (Tick(4), Some(Tick(2))));
        for (said, now) in [("down", 5), ("up", 6)] {
            inputs.agent.hear(&AgentReport::read(said.as_bytes()), Tick(now));
        }
        let decision = decide(&inputs);
        assert_eq!((decision.since, decision.back_since), (Tick(6), Some(Tick(6))));
    }
}
