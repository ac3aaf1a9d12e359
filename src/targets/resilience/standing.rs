//! What live traffic has found out about backends, as one process tells another of it: breakers, ejections and latencies. Both run on one machine, so
//! points in time mean the same to both.

use std::collections::HashMap;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use super::breaker::{BreakerWord, Circuit};
use super::ejection::EjectionWord;
use crate::targets::state::decide::{EjectionState, Fuse, Resolution};
use crate::targets::state::endpoint::Endpoint;
use crate::targets::state::input::Input;
use crate::targets::{Backend, Target};
use crate::tick::Tick;

/// What traffic has found out about one backend, in the words that it is kept in: another layout of one of them is another name here.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
struct StandingWord {
    /// When its open breaker lets somebody find out, why it is open and since when.
    open: Option<(u64, String, u64)>,
    /// The word of its ejection, and if it is left out why and since when.
    ejection: (u64, String, u64),
    /// How soon it answers, and how much that is doubted.
    answers: [u64; 2],
    /// Of a backend that is written with a host's name: its addresses.
    addresses: Vec<IpAddr>,
}

/// The same of many backends, by identity.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StandingWords(HashMap<String, StandingWord>);

impl StandingWord {
    fn of(backend: &Backend, now: Tick) -> StandingWord {
        let detail = backend.detail();
        let (fuse, standing) = (&detail.inputs.fuse, &detail.inputs.standing);
        let until = match backend.breaker().word() {
            word if word.is_on_probation() => Some(now),
            word => match word.circuit() {
                Circuit::Closed => None,
                Circuit::Open(until) => Some(until),
                // Whoever finds out does so in the other process: somebody else does in this one.
                Circuit::HalfOpen => Some(now),
            },
        };
        StandingWord {
            open: until.map(|until| (until.0, fuse.reason.to_string(), fuse.since.0)),
            ejection: (backend.ejection().word().bits(), standing.reason.to_string(), standing.since.0),
            answers: backend.answers().words(),
            addresses: match detail.inputs.name.word {
                Resolution::Resolved => addresses(backend),
                Resolution::Pending | Resolution::Failed => Vec::new(),
            },
        }
    }

    /// Holds of a backend of which nothing is known here.
    fn hold_of(&self, target: &Target, backend: &Backend, now: Tick) {
        if !self.addresses.is_empty() && backend.endpoints().is_empty() {
            target.state.resolve(backend, Ok(&self.addresses), now);
        }
        let rules = backend.board().rules();
        let mut detail = backend.detail();
        if let (Some((until, reason, since)), Some(_)) = (&self.open, rules.breaker) {
            let open = BreakerWord::open(Tick(*until));
            let is_new =
                backend.breaker().update(|word| if word == BreakerWord::default() { open } else { word });
            if is_new.is_some() {
                detail.inputs.fuse = Input::new(Fuse::Open, reason.as_str(), Tick(*since));
            }
        }
        let (bits, reason, since) = &self.ejection;
        let ejected = EjectionWord::of_bits(*bits);
        let begin = |word| if word == EjectionWord::default() { ejected } else { word };
        if rules.ejection.is_some() && backend.ejection().update(begin) && ejected.kind().is_some() {
            detail.inputs.standing = Input::new(EjectionState::Ejected, reason.as_str(), Tick(*since));
        }
        drop(detail);
        backend.answers().begin_with(self.answers);
        backend.board().lock().refresh(backend);
        backend.board().turned.notify_one();
    }
}

fn addresses(backend: &Backend) -> Vec<IpAddr> {
    let address = |endpoint: &Endpoint| match endpoint {
        Endpoint::Tcp(address) => Some(address.ip()),
        Endpoint::Unix(_) => None,
    };
    backend.endpoints().iter().filter_map(address).collect()
}

impl Target {
    /// Adds what traffic has found out about its backends.
    pub fn tell_standings(&self, words: &mut StandingWords, now: Tick) {
        for backend in &self.backends {
            let word = StandingWord::of(backend, now);
            let is_known = word.open.is_some() || word.ejection.0 != 0 || word.answers != [0; 2];
            if is_known || !word.addresses.is_empty() {
                words.0.insert(backend.identity.to_string(), word);
            }
        }
    }

    /// Takes over what traffic has found out in the process before, of those of which nothing is known here.
    pub fn take_over_standings(&self, words: &StandingWords, now: Tick) {
        for backend in &self.backends {
            if let Some(word) = words.0.get(&*backend.identity) {
                word.hold_of(self, backend, now);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use super::*;
    use crate::targets::fixtures::*;
    use crate::targets::resilience::ejection::EjectionKind;
    use crate::targets::resilience::reports;

    fn told(before: &Target, after: &Target, now: Tick) {
        let mut words = StandingWords::default();
        before.tell_standings(&mut words, now);
        let text = serde_json::to_string(&words).unwrap();
        after.take_over_standings(&serde_json::from_str(&text).unwrap(), now);
    }

    #[test]
    fn breakers_ejections_and_latencies_hold_in_the_next_process() {
        let (before, after) = (target(&unprobed(4)), target(&unprobed(4)));
        let now = Tick(50_000_000_000);
        let [open, ejected, slow, fine] = &before.backends[..] else { panic!("four") };
        let until = now.after(Duration::from_secs(7));
        assert!(open.breaker().update(|_| BreakerWord::open(until)).is_some());
        assert!(reports::eject(ejected, EjectionKind::Failing, "5 errors in a row", true, now));
        slow.answers().note_good(Duration::from_millis(700), now);
        told(&before, &after, now);
        let circuit = |place: usize| after.backends[place].breaker().word().circuit();
        assert_eq!((circuit(0), circuit(1)), (BreakerWord::open(until).circuit(), Circuit::Closed));
        let word = |target: &Target, place: usize| target.backends[place].ejection().word();
        assert_eq!(word(&after, 1), word(&before, 1));
        assert!(word(&after, 1).kind().is_some() && word(&after, 2).kind().is_none());
        let detail = after.backends[1].detail();
        let standing = &detail.inputs.standing;
        assert_eq!((standing.word, &*standing.reason), (EjectionState::Ejected, "5 errors in a row"));
        drop(detail);
        assert_eq!(after.backends[2].answers().words(), slow.answers().words());
        assert_eq!(fine.answers().words(), [0; 2]);
        // They are picked from as before: two are left.
        assert!(!after.backends[0].holds() && after.backends[2].holds() && after.backends[3].holds());
    }

    #[test]
    fn whoever_was_finding_out_leaves_it_to_the_next_process_and_own_news_are_kept() {
        let (before, after) = (target(&unprobed(2)), target(&unprobed(2)));
        let now = Tick(50_000_000_000);
        let breaker = before.backends[0].breaker();
        breaker.update(|_| BreakerWord::open(Tick(4)));
        let _ = breaker.admit(now);
        assert_eq!(breaker.word().circuit(), Circuit::HalfOpen);
        after.backends[1].answers().note_good(Duration::from_millis(3), now);
        let own = after.backends[1].answers().words();
        before.backends[1].answers().note_good(Duration::from_secs(3), now);
        told(&before, &after, now);
        assert!(matches!(after.backends[0].breaker().word().circuit(), Circuit::Open(until) if until <= now));
        assert_eq!(after.backends[1].answers().words(), own);
    }

    #[test]
    fn a_host_has_its_addresses_before_it_is_looked_up() {
        let mut config = unprobed(1);
        config.backends = vec![named("a", host("a.test", 80))];
        let (before, after) = (target(&config), target(&config));
        let address: IpAddr = "192.0.2.7".parse().unwrap();
        before.state.resolve(&before.backends[0], Ok(&[address]), Tick(1));
        assert!(after.backends[0].endpoints().is_empty());
        told(&before, &after, Tick(2));
        assert_eq!(*after.backends[0].endpoints(), [Endpoint::Tcp((address, 80).into())]);
        // A lookup that fails changes nothing about it.
        assert!(after.state.resolve(&after.backends[0], Err("no".into()), Tick(3)).is_none());
        assert_eq!(after.backends[0].endpoints().len(), 1);
    }
}
