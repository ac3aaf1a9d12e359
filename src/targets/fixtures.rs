//! Targets for the tests of this folder.

use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use crate::config::model::{self, BackendAddress, HealthCheck, Policy, Portion, Protocol, Timeouts};
use crate::slots::HeldSlot;
use crate::targets::{Backend, Lease, QueueTicket, Registry, Target};

pub(in crate::targets) fn host(host: &str, port: u16) -> BackendAddress {
    BackendAddress::Host { host: host.into(), port }
}

pub(in crate::targets) fn named(name: &str, address: BackendAddress) -> model::BackendConfig {
    model::BackendConfig {
        name: name.into(),
        address,
        probe_path: None,
        tls: None,
        portion: Portion::default(),
        state: model::BackendState::Up,
        state_by: None,
        dialing: Default::default(),
        found: None,
    }
}

/// A target `web` with backends `b0`, `b1`, … that are up from the start.
pub(crate) fn unprobed(backends: u16) -> model::TargetConfig {
    model::TargetConfig {
        send_proxy: None,
        name: "web".into(),
        protocol: Protocol::Http,
        host: model::HostHeader::Pass,
        balance: Policy::default(),
        sticky: None,
        health: None,
        timeouts: Timeouts::default(),
        drain_timeout: model::TargetConfig::DRAIN_TIMEOUT,
        resilience: model::Resilience::default(),
        upgrade: Vec::new(),
        upstream: model::UpstreamProtocol::Http,
        backends: (0..backends).map(|n| named(&format!("b{n}"), host("127.0.0.1", 1000 + n))).collect(),
        sources: Vec::new(),
    }
}

/// The same with probes: unknown at first, rise 2, fall 3.
pub(in crate::targets) fn probed(backends: u16) -> model::TargetConfig {
    model::TargetConfig { health: Some(HealthCheck::default()), ..unprobed(backends) }
}

pub(crate) fn target(config: &model::TargetConfig) -> Arc<Target> {
    Registry::new().apply(std::slice::from_ref(config)).remove(0)
}

/// A backend of `target` without siblings and without a seat.
pub(in crate::targets) fn alone(target: &model::TargetConfig, address: BackendAddress) -> Backend {
    Backend::new(HeldSlot::default(), target, &named("a", address), &Arc::default(), None)
}

/// The lease of a ticket whose turn it is.
pub(in crate::targets) fn granted(ticket: &mut QueueTicket) -> Option<Lease> {
    match ticket.poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(lease) => Some(lease),
        Poll::Pending => None,
    }
}
