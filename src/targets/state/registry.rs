//! Every backend and every target's live state, by identity, alive across reloads.
//!
//! `server` owns it and calls [`Registry::apply`] once per accepted config, one at a time. Nothing on the
//! request path comes here: a snapshot holds the objects themselves.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use dashmap::DashMap;

use crate::config::model;
use crate::message::{BackendId, TargetId};
use crate::targets::picking::candidates::Member;
use crate::targets::state::objects::Board;
use crate::targets::{Backend, Pins, Target, TargetState};
use crate::tls::{Roots, Upstream};

/// Every backend and every target's live state.
#[derive(Debug, Default)]
pub struct Registry {
    /// By `target/name`.
    backends: DashMap<Arc<str>, Arc<Backend>>,
    /// By the target's name.
    states: DashMap<Arc<str>, Arc<TargetState>>,
    next: AtomicU32,
}

impl Registry {
    /// An empty registry.
    #[must_use]
    pub fn new() -> Registry {
        Registry::default()
    }

    /// Makes `targets` the current ones and gives them in the same order.
    ///
    /// A backend with the same identity, address, probe path and TLS stays the same object; so does the state
    /// of a target with the same name. Backends that are gone retire their pooled connections.
    pub fn apply(&self, targets: &[model::TargetConfig]) -> Vec<Arc<Target>> {
        let mut kept = HashSet::new();
        let roots = Roots::default();
        let built = (0..).zip(targets).map(|(place, config)| {
            let name: Arc<str> = config.name.as_str().into();
            let state = Arc::clone(&self.states.entry(Arc::clone(&name)).or_default());
            let backend = |backend| self.backend(config, backend, &state.board, &roots);
            let backends: Vec<_> = config.backends.iter().map(backend).collect();
            kept.extend(backends.iter().map(|backend| backend.id));
            let members = backends.iter().zip(&config.backends).map(|(backend, config)| Member {
                backend: Arc::clone(backend),
                portion: config.portion.clone(),
            });
            for gone in state.replace(members.collect(), config) {
                gone.retire_connections();
            }
            let pins = config.sticky.as_ref().map(|sticky| Pins::new(sticky, &backends));
            Arc::new(Target { id: TargetId(place), name, config: config.clone(), state, backends, pins })
        });
        let built: Vec<_> = built.collect();
        // Whole targets that are gone: their states keep their live sets for requests that still hold them.
        self.backends.retain(|_, backend| kept.contains(&backend.id));
        self.states.retain(|name, state| {
            let stays = built.iter().any(|target| target.name == *name);
            if !stays {
                state.backends().iter().for_each(|backend| backend.retire_connections());
            }
            stays
        });
        built
    }

    fn backend(
        &self,
        target: &model::TargetConfig,
        config: &model::BackendConfig,
        board: &Arc<Board>,
        roots: &Roots,
    ) -> Arc<Backend> {
        let identity = format!("{}/{}", target.name, config.name);
        if let Some(known) = self.backends.get(identity.as_str())
            && known.is_still(config)
            && known.tls.as_ref().is_none_or(|tls| tls.is_for(target.protocol))
        {
            return Arc::clone(&known);
        }
        let id = BackendId(self.next.fetch_add(1, Ordering::Relaxed));
        let tls = config.tls.as_ref().map(|tls| Upstream::new(tls, target.protocol, roots));
        let backend = Arc::new(Backend::new(id, target, config, board, tls));
        self.backends.insert(Arc::clone(&backend.identity), Arc::clone(&backend));
        backend
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::model::tls::UpstreamTls;
    use crate::targets::fixtures::{host, probed, unprobed};
    use crate::targets::state::decide::Health;
    use crate::targets::state::health::agent::AgentReport;
    use crate::targets::{Ask, Chance, Pick, Tried, Verdict};
    use crate::tick::Tick;

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

    #[test]
    fn switching_probing_off_makes_a_down_backend_healthy_and_on_makes_it_unknown() {
        let registry = Registry::new();
        let probing = registry.apply(&[probed(1)]);
        let backend = &probing[0].backends[0];
        probing[0].state.report(backend, Verdict::Bad("timeout after 1s".into()), Tick(1));
        let off = registry.apply(&[unprobed(1)]);
        assert_eq!(backend.health(), Health::Up);
        assert!(matches!(off[0].pick(&Ask::new(&Tried::new(), &Chance::seeded(1), Tick(2))), Pick::Lease(_)));
        let on = registry.apply(&[probed(1)]);
        assert!(matches!(on[0].pick(&Ask::new(&Tried::new(), &Chance::seeded(1), Tick(3))), Pick::Unknown));
        assert!(Arc::ptr_eq(backend, &on[0].backends[0]));
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
