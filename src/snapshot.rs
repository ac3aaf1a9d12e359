//! Everything derived from one accepted config, immutable and shared by all workers.
//!
//! Live state (health, cursors, counters) is not in here: it sits on the objects in the registry, which a
//! snapshot only points at.

use std::net::IpAddr;
use std::sync::Arc;

use ipnet::IpNet;
use rustls::ServerConfig;

use crate::config::model;
use crate::message::ListenerId;
use crate::route::Router;
use crate::targets::{Registry, Target};
use crate::telemetry::access_log::Names;
use crate::tls::{Tickets, server_config};

/// One listener, ready for use.
#[derive(Debug)]
pub struct Listener {
    /// Its place in the snapshot.
    pub id: ListenerId,
    /// Its policies.
    pub config: model::ListenerConfig,
    /// What TLS sessions of its clients are made with; `None`: plain.
    pub tls: Option<Arc<ServerConfig>>,
    /// Its routes.
    pub router: Router,
}

/// Everything derived from one config.
#[derive(Debug)]
pub struct Snapshot {
    /// In config order; a [`ListenerId`] is an index.
    pub listeners: Vec<Listener>,
    /// In config order; a route names its target by index.
    pub targets: Vec<Arc<Target>>,
    /// What the access log calls things.
    pub names: Names,
    trusted: Vec<IpNet>,
}

impl Snapshot {
    /// Builds the snapshot of `config`; targets keep what `registry` knows of them, and listeners their keys in
    /// `tickets`.
    #[must_use]
    pub fn new(config: &model::Config, registry: &Registry, tickets: &Tickets) -> Snapshot {
        let targets = registry.apply(&config.targets);
        let listeners: Vec<Listener> = (0..)
            .zip(&config.listeners)
            .map(|(place, listener)| Listener {
                id: ListenerId(place),
                config: listener.clone(),
                tls: listener.tls.as_ref().map(|tls| server_config(tls, listener.protocol, tickets.of(tls))),
                router: Router::new(listener),
            })
            .collect();
        let mut names = Names::default();
        for listener in &listeners {
            names.name_listener(listener.id, &listener.config.name);
        }
        for target in &targets {
            names.name_target(target.id, &target.name);
            for backend in &target.backends {
                names.name_backend(backend.id, &backend.name);
            }
        }
        Snapshot { listeners, targets, names, trusted: config.trusted_proxies.clone() }
    }

    /// Whether `peer` may speak for its clients. A v4 address mapped into v6 counts as v4.
    #[must_use]
    pub fn trusts(&self, peer: IpAddr) -> bool {
        if self.trusted.is_empty() {
            return false;
        }
        let peer = peer.to_canonical();
        self.trusted.iter().any(|network| network.contains(&peer))
    }
}
