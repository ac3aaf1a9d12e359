//! Every backend and every target's live state, by identity, alive across reloads.
//!
//! Whoever loads configs owns it. A config is [prepared](Registry::prepare), which changes nothing that anybody sees, and
//! then [committed](Prepared), one config at a time. Nothing on the request path comes here: a snapshot holds the objects
//! themselves.

use std::collections::HashSet;
use std::sync::Arc;

use dashmap::DashMap;

use crate::config::model;
use crate::message::TargetId;
use crate::slots::Slots;
use crate::targets::picking::candidates::Member;
use crate::targets::state::departure::Departure;
use crate::targets::{Backend, Pins, Target, TargetState};
use crate::tick::Tick;
use crate::tls::{Roots, Upstream};

/// Every backend and every target's live state.
#[derive(Debug, Default)]
pub struct Registry {
    /// By `target/name`.
    backends: DashMap<Arc<str>, Arc<Backend>>,
    /// Those in force, by name.
    targets: DashMap<Arc<str>, Arc<Target>>,
    backend_numbers: Slots,
    target_numbers: Slots,
}

/// The targets of a config that is not in force yet. Dropping it changes nothing.
#[derive(Debug)]
pub struct Prepared {
    /// In the order of the config. One that does not differ in anything from what is in force is the same object.
    pub targets: Vec<Arc<Target>>,
}

/// What a commit has taken out of service.
#[derive(Debug, Default)]
pub struct Gone {
    /// Backends without a target, or of one that is gone. Their pooled connections are retired, and they leave.
    pub backends: Vec<Arc<Backend>>,
    /// How many more are gone from the config and stand in for those that nobody may pick yet.
    pub stand_ins: usize,
    /// Backends that the config has, and that had begun to leave since it was prepared: stand-ins whose time was up just then.
    /// They stay after all.
    pub returned: Vec<Arc<Backend>>,
}

impl Registry {
    /// An empty registry.
    #[must_use]
    pub fn new() -> Registry {
        Registry::default()
    }

    /// [`prepare`](Registry::prepare) and [`commit`](Registry::commit) in one, for who has nothing to do in between and no clock.
    pub fn apply(&self, targets: &[model::TargetConfig]) -> Vec<Arc<Target>> {
        let prepared = self.prepare(targets);
        self.commit(&prepared, Tick::ZERO);
        prepared.targets
    }

    /// What `targets` would be. Nobody sees anything of it before it is committed.
    ///
    /// A backend with the same identity, address and TLS stays the same object; so does the state of a target with the same
    /// name.
    #[must_use]
    pub fn prepare(&self, targets: &[model::TargetConfig]) -> Prepared {
        let roots = Roots::default();
        Prepared { targets: targets.iter().map(|config| self.target(config, &roots)).collect() }
    }

    /// Makes what was prepared the targets in force, at `now`. Backends that are gone retire their pooled connections and
    /// leave within the `drain_timeout` that their target had.
    pub fn commit(&self, prepared: &Prepared, now: Tick) -> Gone {
        let mut gone = Gone::default();
        let mut leave = |config: &model::TargetConfig, backends: Vec<Arc<Backend>>| {
            let departure = Departure { since: now, window: config.drain_timeout };
            backends.iter().for_each(|backend| backend.remove(departure));
            gone.backends.extend(backends);
        };
        let mut kept = HashSet::new();
        for target in &prepared.targets {
            kept.extend(target.backends.iter().map(|backend| backend.id));
            let before = self.targets.insert(Arc::clone(&target.name), Arc::clone(target));
            if before.as_ref().is_some_and(|before| Arc::ptr_eq(before, target)) {
                continue;
            }
            for backend in &target.backends {
                self.backends.insert(Arc::clone(&backend.identity), Arc::clone(backend));
            }
            leave(&before.as_ref().unwrap_or(target).config, target.enter(now));
            gone.stand_ins += target.state.stand_ins();
            // Nobody dismisses them from now on: they are members.
            for backend in target.backends.iter().filter(|backend| backend.is_gone()) {
                backend.stay();
                gone.returned.push(Arc::clone(backend));
            }
        }
        // Whole targets that are gone: their states keep their live sets for requests that still hold them.
        let stays: HashSet<&str> = prepared.targets.iter().map(|target| &*target.name).collect();
        self.targets.retain(|name, target| {
            let stays = stays.contains(&**name);
            if !stays {
                leave(&target.config, target.state.dismiss_all());
            }
            stays
        });
        self.backends.retain(|_, backend| kept.contains(&backend.id));
        gone
    }

    fn target(&self, config: &model::TargetConfig, roots: &Roots) -> Arc<Target> {
        let mut config = config.clone();
        let before = self.targets.get(config.name.as_str()).map(|before| Arc::clone(&before));
        if let Some(before) = &before {
            keep_made_key(&mut config, &before.config);
        }
        if let Some(before) = before.as_ref().filter(|before| before.config == config) {
            return Arc::clone(before);
        }
        let (name, state) = match before {
            Some(before) => (Arc::clone(&before.name), Arc::clone(&before.state)),
            None => {
                (config.name.as_str().into(), Arc::new(TargetState::numbered(self.target_numbers.give())))
            }
        };
        let backend = |backend| self.backend(&config, backend, &state, roots);
        let backends: Vec<_> = config.backends.iter().map(backend).collect();
        let pins = config.sticky.as_ref().map(|sticky| Pins::new(sticky, &backends));
        // Past 65,535 targets at a time the last number is shared.
        let id = TargetId(u16::try_from(state.slot.number()).unwrap_or(u16::MAX));
        Arc::new(Target { id, name, config, state, backends, pins })
    }

    fn backend(
        &self,
        target: &model::TargetConfig,
        config: &model::BackendConfig,
        state: &TargetState,
        roots: &Roots,
    ) -> Arc<Backend> {
        let identity = format!("{}/{}", target.name, config.name);
        let is_it = |known: &Backend| {
            known.is_still(config) && known.tls.as_ref().is_none_or(|tls| tls.is_for(target.alpn()))
        };
        if let Some(known) = self.backends.get(identity.as_str())
            && is_it(&known)
        {
            return Arc::clone(&known);
        }
        // A config that is taken back within seconds.
        if let Some(known) = state.find_stand_in(is_it) {
            return known;
        }
        let tls = config.tls.as_ref().map(|tls| Upstream::new(tls, target.alpn(), roots));
        Arc::new(Backend::new(self.backend_numbers.give(), target, config, &state.board, tls))
    }
}

impl Target {
    /// Makes its members and rules those in force. Gives the members so far that are not among them.
    fn enter(&self, now: Tick) -> Vec<Arc<Backend>> {
        let members = self.backends.iter().zip(&self.config.backends);
        let members = members.map(|(backend, config)| Member {
            backend: Arc::clone(backend),
            portion: config.portion.clone(),
            probe_path: config.probe_path.as_deref().map(Arc::from),
            state: config.state,
            state_by: config.state_by.clone(),
        });
        self.state.replace(members.collect(), &self.config, now)
    }
}

/// A key that nobody gave is made anew with each config that is read; the one that cookies were made with lasts until the
/// process ends.
fn keep_made_key(config: &mut model::TargetConfig, before: &model::TargetConfig) {
    if let (Some(sticky), Some(before)) = (&mut config.sticky, &before.sticky)
        && sticky.is_fleeting
        && before.is_fleeting
    {
        sticky.key = Arc::clone(&before.key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::model::tls::UpstreamTls;
    use crate::message::BackendId;
    use crate::targets::fixtures::{host, probed, unprobed};
    use crate::targets::state::decide::Health;
    use crate::targets::state::health::agent::AgentReport;
    use crate::targets::{Ask, Chance, Pick, Tried, Verdict};

    fn names(target: &Target) -> Vec<&str> {
        target.backends.iter().map(|backend| &*backend.name).collect()
    }

    #[test]
    fn a_second_apply_keeps_objects_states_and_numbers() {
        let registry = Registry::new();
        let before = registry.apply(&[probed(3)]);
        before[0].state.report(&before[0].backends[1], Verdict::Good, Tick(1));
        let mut config = probed(4);
        config.backends.remove(0);
        config.backends.swap(0, 1);
        let after = registry.apply(&[config]);
        assert_eq!(names(&after[0]), ["b2", "b1", "b3"]);
        assert!(Arc::ptr_eq(&before[0].state, &after[0].state));
        assert!(Arc::ptr_eq(&before[0].backends[1], &after[0].backends[1]));
        assert_eq!(after[0].backends[1].health(), Health::Up);
        assert_eq!(after[0].backends[2].id, BackendId(3));
        assert_eq!(before[0].backends[0].generation(), 1, "a removed backend retires its connections");
        assert_eq!(before[0].backends[1].generation(), 0);
        assert_eq!(registry.backends.len(), 3);
    }

    #[test]
    fn another_address_under_the_same_name_is_another_backend() {
        let registry = Registry::new();
        let before = registry.apply(&[unprobed(2)]);
        let mut config = unprobed(2);
        config.backends[0].address = host("10.9.9.9", 80);
        let after = registry.apply(&[config]);
        assert_eq!(after[0].backends[0].id, BackendId(2));
        assert_eq!(before[0].backends[0].generation(), 1);
        let known: HashSet<u32> = registry.backends.iter().map(|backend| backend.id.0).collect();
        assert_eq!(known, HashSet::from([1, 2]));
    }

    #[test]
    fn a_target_that_is_gone_lets_go_of_its_backends_and_their_numbers() {
        let registry = Registry::new();
        let before = registry.apply(&[unprobed(2)]);
        let (first, state) = (Arc::downgrade(&before[0].backends[0]), Arc::clone(&before[0].state));
        let Pick::Lease(lease) = before[0].pick(&Ask::new(&Tried::new(), &Chance::seeded(1), Tick(1))) else {
            panic!("both are up")
        };
        drop(before);
        registry.apply(&[]);
        assert!(first.upgrade().is_some(), "somebody still holds the target");
        drop(state);
        // A request that was under way ends.
        drop(lease);
        assert!(first.upgrade().is_none());
        let after = registry.apply(&[unprobed(2)]);
        let ids: Vec<u32> = after[0].backends.iter().map(|backend| backend.id.0).collect();
        assert_eq!(ids, [0, 1]);
    }

    /// A pooled connection or a session that was made with other settings must never be used.
    #[test]
    fn another_tls_setting_is_another_backend() {
        let settings = |name: &'static str, insecure| {
            let name = rustls::pki_types::ServerName::try_from(name).expect("a name");
            Some(Arc::new(UpstreamTls { authorities: None, name, identity: None, insecure }))
        };
        let registry = Registry::new();
        let mut config = unprobed(1);
        let mut apply = |change: &dyn Fn(&mut model::TargetConfig)| {
            change(&mut config);
            Arc::clone(&registry.apply(std::slice::from_ref(&config))[0].backends[0])
        };
        let plain = apply(&|_| ());
        let a = apply(&|config| config.backends[0].tls = settings("a.example", true));
        let same = apply(&|config| config.backends[0].tls = settings("a.example", true));
        assert!(Arc::ptr_eq(&a, &same), "equal settings keep the object and its sessions");
        let b = apply(&|config| config.backends[0].tls = settings("b.example", true));
        let verified = apply(&|config| config.backends[0].tls = settings("b.example", false));
        let tcp = apply(&|config| config.protocol = model::Protocol::Tcp);
        let ids: Vec<u32> = [&plain, &a, &b, &verified, &tcp].map(|backend| backend.id.0).to_vec();
        assert_eq!(ids, [0, 1, 2, 3, 4]);
        for gone in [&plain, &a, &b, &verified] {
            assert_eq!(gone.generation(), 1, "its pooled connections are retired");
        }
        assert_eq!(tcp.generation(), 0);
        let offered =
            |backend: &Backend| backend.tls.as_ref().map_or(0, |tls| tls.config.alpn_protocols.len());
        assert_eq!((offered(&verified), offered(&tcp)), (1, 0), "no HTTP is offered to a tcp backend");
    }

    #[test]
    fn a_removed_target_retires_its_connections_and_still_serves_who_holds_it() {
        let registry = Registry::new();
        let before = registry.apply(&[unprobed(1)]);
        assert!(registry.apply(&[]).is_empty());
        assert_eq!(before[0].backends[0].generation(), 1);
        assert!(matches!(
            before[0].pick(&Ask::new(&Tried::new(), &Chance::seeded(1), Tick(1))),
            Pick::Lease(_)
        ));
        assert!(registry.backends.is_empty());
    }

    /// A cookie, or a connection that is kept for a client, would else lead there for as long as the client asks.
    #[test]
    fn whoever_is_kept_at_a_backend_that_is_gone_goes_elsewhere() {
        let registry = Registry::new();
        let before = registry.apply(&[unprobed(2)]).remove(0);
        let mut config = unprobed(2);
        config.drain_timeout = std::time::Duration::from_secs(7);
        config.backends.remove(0);
        registry.commit(&registry.prepare(&[config]), Tick(5));
        let [gone, stays] = &before.backends[..] else { panic!("two backends") };
        let departure = Departure { since: Tick(5), window: model::TargetConfig::DRAIN_TIMEOUT };
        assert_eq!(gone.departure(), Some(departure), "with the time that it had");
        assert!(gone.is_gone() && !stays.is_gone() && stays.departure().is_none());
        let (tried, chance) = (Tried::new(), Chance::seeded(1));
        let ask = Ask { pin: Some(gone), ..Ask::new(&tried, &chance, Tick(6)) };
        // Also for a request that was begun under the config before.
        let Pick::Lease(lease) = before.pick(&ask) else { panic!("there is one") };
        assert_eq!(lease.backend().id, stays.id);
    }

    /// It would serve on as one that is gone: no cookie would lead to it, and each of its tunnels would be cut at once.
    #[test]
    fn a_stand_in_whose_time_is_up_while_the_config_that_brings_it_back_is_prepared_stays() {
        let registry = Registry::new();
        let before = registry.apply(&[unprobed(1)]).remove(0);
        let mut other = probed(1);
        other.backends[0].name = "other".into();
        let after = registry.apply(&[other]).remove(0);
        assert_eq!(after.state.stand_in(Tick(1)), Some(crate::targets::state::members::STAND_IN));
        let prepared = registry.prepare(&[unprobed(1)]);
        let backend = &prepared.targets[0].backends[0];
        assert!(Arc::ptr_eq(backend, &before.backends[0]), "it still stands in");
        assert_eq!(after.state.stand_in(Tick(1).after(crate::targets::state::members::STAND_IN)), None);
        assert!(backend.is_gone() && backend.departure().is_some());
        let gone = registry.commit(&prepared, Tick(2));
        assert!(!backend.is_gone() && backend.departure().is_none());
        assert_eq!(gone.returned.iter().map(|one| one.id).collect::<Vec<_>>(), [backend.id]);
    }

    #[test]
    fn switching_probing_off_makes_a_down_backend_healthy_and_on_leaves_it_so_until_the_first_verdict() {
        let registry = Registry::new();
        let probing = registry.apply(&[probed(1)]);
        let backend = &probing[0].backends[0];
        probing[0].state.report(backend, Verdict::Bad("timeout after 1s".into()), Tick(1));
        let off = registry.apply(&[unprobed(1)]);
        assert_eq!(backend.health(), Health::Up);
        assert!(matches!(off[0].pick(&Ask::new(&Tried::new(), &Chance::seeded(1), Tick(2))), Pick::Lease(_)));
        let on = registry.apply(&[probed(1)]);
        assert!(matches!(on[0].pick(&Ask::new(&Tried::new(), &Chance::seeded(1), Tick(3))), Pick::Lease(_)));
        assert!(Arc::ptr_eq(backend, &on[0].backends[0]));
        on[0].state.report(backend, Verdict::Bad("timeout after 1s".into()), Tick(4));
        assert_eq!(backend.health(), Health::Down, "the first verdict decides alone");
    }

    #[test]
    fn another_check_is_the_same_backend_with_its_verdict_until_the_first_answer_of_the_new_one() {
        let registry = Registry::new();
        let mut config = probed(2);
        let target = registry.apply(std::slice::from_ref(&config)).remove(0);
        let [good, bad] = &target.backends[..] else { panic!("two") };
        target.state.report(good, Verdict::Good, Tick(1));
        target.state.report(bad, Verdict::Bad("no".into()), Tick(2));
        let since = || target.status().iter().map(|status| status.since).collect::<Vec<_>>();
        let asks: [fn(&mut model::TargetConfig); 4] = [
            |config| config.backends.iter_mut().for_each(|one| one.probe_path = Some("/ready".into())),
            |config| config.health.as_mut().expect("probed").port = Some(99),
            |config| config.health.as_mut().expect("probed").host = Some("a.example".into()),
            |config| config.backends.iter_mut().for_each(|one| one.probe_path = None),
        ];
        for (turn, change) in (3..).step_by(10).zip(asks) {
            let check = good.check();
            change(&mut config);
            let after = registry.apply(std::slice::from_ref(&config)).remove(0);
            assert!(target.backends.iter().zip(&after.backends).all(|(was, now)| Arc::ptr_eq(was, now)));
            assert_eq!((good.health(), bad.health()), (Health::Up, Health::Down));
            assert_eq!(good.generation(), 0, "its connections stay");
            // What the old one still finds out counts for nothing.
            let late = |backend, verdict| after.state.report_from(check, backend, verdict, Tick(turn));
            assert_eq!((late(good, Verdict::Bad("late".into())), late(bad, Verdict::Good)), (None, None));
            let before = since();
            after.state.report(good, Verdict::Good, Tick(turn));
            after.state.report(bad, Verdict::Bad("still".into()), Tick(turn));
            assert_eq!(since(), before, "the same verdict is no transition");
            after.state.report(good, Verdict::Bad("once".into()), Tick(turn + 1));
            assert_eq!(good.health(), Health::Up, "from then on rows count");
        }
        config.health.as_mut().expect("probed").port = None;
        registry.apply(&[config]);
        target.state.report(good, Verdict::Bad("not there".into()), Tick(90));
        target.state.report(bad, Verdict::Good, Tick(90));
        assert_eq!((good.health(), bad.health()), (Health::Down, Health::Up), "the first answer decides");
    }

    #[test]
    fn another_pace_goes_on_with_the_row_so_far() {
        let registry = Registry::new();
        let mut config = probed(1);
        let target = registry.apply(std::slice::from_ref(&config)).remove(0);
        let (backend, no) = (&target.backends[0], || Verdict::Bad("no".into()));
        target.state.report(backend, Verdict::Good, Tick(1));
        target.state.report(backend, no(), Tick(2));
        let health = config.health.as_mut().expect("probed");
        (health.fall, health.interval) = (2, std::time::Duration::from_secs(9));
        registry.apply(&[config]);
        assert_eq!((backend.check(), backend.in_doubt()), (0, true));
        target.state.report(backend, no(), Tick(3));
        assert_eq!(backend.health(), Health::Down);
    }

    #[test]
    fn a_late_verdict_or_word_of_a_check_that_was_switched_off_changes_nothing() {
        let registry = Registry::new();
        let mut config = probed(1);
        config.health.iter_mut().for_each(|health| health.agent = Some(9));
        let target = registry.apply(&[config]).remove(0);
        let (backend, check) = (&target.backends[0], target.backends[0].check());
        registry.apply(&[unprobed(1)]);
        target.state.report_from(check, backend, Verdict::Bad("late".into()), Tick(1));
        target.state.hear_from(check, backend, &AgentReport::read(b"down"), Tick(1));
        assert_eq!(backend.health(), Health::Up);
    }

    #[test]
    fn an_agent_that_is_configured_no_more_has_no_say() {
        let mut config = probed(1);
        config.health.iter_mut().for_each(|health| health.agent = Some(9));
        let registry = Registry::new();
        let target = registry.apply(std::slice::from_ref(&config)).remove(0);
        let backend = &target.backends[0];
        target.state.report(backend, Verdict::Good, Tick(1));
        target.state.hear(backend, &AgentReport::read(b"drain 10%"), Tick(2));
        registry.apply(std::slice::from_ref(&config));
        assert_eq!((backend.health(), target.status()[0].share), (Health::Draining, 10), "still there");
        registry.apply(&[probed(1)]);
        assert_eq!((backend.health(), target.status()[0].share), (Health::Up, 100));
    }
}
