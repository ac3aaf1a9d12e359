//! One backend of the written form → the accepted form.

use std::sync::Arc;

use super::balance;
use super::show::name_of;
use super::tls::UpstreamSettings;
use crate::config::effective::EffectiveRows;
use crate::config::error::quoted;
use crate::config::model::discovery::{DnsQuestion, FoundBy};
use crate::config::model::{BackendAddress, BackendConfig, BackendState, Dialing, Protocol};
use crate::config::origin::{Origin, Written};
use crate::config::raw::{RawBackend, RawPlace};
use crate::config::report::Report;

/// What keys of its target say about a backend, and about one that is added later.
#[derive(Clone, Debug, PartialEq)]
pub struct BackendRules {
    /// The target's name.
    pub(in crate::config) target: String,
    /// `None`: its fault has been reported.
    pub(in crate::config) protocol: Option<Protocol>,
    pub(super) upstream: UpstreamSettings,
    /// How connections to its backends are made.
    pub(super) dialing: Arc<Dialing>,
    /// What the probes of those backends ask for that say nothing.
    pub(super) probe_path: Option<Written<String>>,
    /// Nobody is probed.
    pub(super) is_unchecked: bool,
}

impl BackendRules {
    /// What the probes of those backends ask for that say nothing.
    pub(super) fn probe_path(&self) -> Option<&Written<String>> {
        self.probe_path.as_ref()
    }

    /// Reports what would be wrong with each address of a name.
    pub(super) fn try_name(&self, asks: &Written<DnsQuestion>, report: &mut Report) {
        let address = BackendAddress::Host { host: "192.0.2.1".to_owned(), port: 1 };
        let place = RawPlace { address, protocol: None, tls: None };
        let mut sample = RawBackend::at(Written::new(place, asks.spot.clone()));
        sample.found = Some(Arc::new(FoundBy { asks: asks.value.clone() }));
        self.upstream.of(&sample, report);
    }

    /// What the probe of a backend asks for, where that is not what the target says for all.
    #[must_use]
    pub fn own_probe_path<'b>(&self, backend: &'b BackendConfig) -> Option<&'b str> {
        let common = self.probe_path.as_ref().map(|written| &*written.value);
        backend.probe_path.as_deref().filter(|path| Some(*path) != common)
    }

    /// The accepted form of the backend at `index`.
    pub(in crate::config) fn accept(
        &self,
        index: usize,
        backend: &RawBackend,
        report: &mut Report,
        rows: &mut EffectiveRows,
    ) -> BackendConfig {
        self.check_protocol(backend, report);
        let path = |key: &str| format!("targets.{}.backends[{index}].{key}", self.target);
        let place = &backend.place;
        let address = place.value.address.to_string();
        let name = rows.settle(path("name"), backend.name.as_ref(), address.clone(), String::clone);
        let tls = self.upstream.of(backend, report);
        let shown = if tls.is_some() { format!("{address}, over TLS") } else { address };
        rows.note(path("address"), shown, place.spot.origin.clone());
        let probe_path = backend.health_path.as_ref().or(self.probe_path.as_ref());
        match probe_path {
            // Checks may be off for a while; the path may stay where it is.
            Some(written) if self.is_unchecked => {
                let value = format!("{} (not asked for)", written.value);
                rows.note(path("health_path"), value, written.spot.origin.clone());
            }
            None if self.is_unchecked => {}
            Some(written) => {
                rows.note(path("health_path"), written.value.clone(), written.spot.origin.clone());
            }
            None if self.protocol == Some(Protocol::Udp) => {}
            None => {
                let check = if tls.is_some() { "TLS handshake" } else { "TCP connect" };
                rows.note(path("health_path"), format!("none, a {check} is the check"), Origin::Default);
            }
        }
        BackendConfig {
            name,
            address: place.value.address.clone(),
            probe_path: probe_path.map(|written| written.value.clone()),
            tls,
            portion: balance::portion(&self.target, index, backend, report, rows),
            state: rows.settle(path("state"), backend.state.as_ref(), BackendState::Up, |state| {
                state.as_str().to_owned()
            }),
            state_by: None,
            dialing: Arc::clone(&self.dialing),
            found: backend.found.clone(),
        }
    }

    /// A URL's scheme says the same as the target's `protocol`, or one of them is a mistake.
    fn check_protocol(&self, backend: &RawBackend, report: &mut Report) {
        let place = &backend.place.value;
        let (Some(own), Some(protocol)) = (place.protocol, self.protocol) else { return };
        if own != protocol {
            let name = |protocol| name_of(Protocol::ALL, protocol);
            // Advice never takes encryption away.
            let scheme = match (protocol, place.tls) {
                (Protocol::Http, Some(true)) => "https",
                (Protocol::Http, _) => "http",
                (Protocol::Tcp, Some(true)) => "tls",
                (Protocol::Tcp, _) => "tcp",
                (Protocol::Udp, _) => "udp",
            };
            let (own, protocol) = (name(own), name(protocol));
            let message = format!(
                "this backend speaks {own}, but the target {} speaks {protocol}",
                quoted(&self.target)
            );
            report
                .spot(&backend.place.spot, message)
                .note(format!("set `protocol: {own}` for the target, or write `{scheme}://…`"));
        }
    }
}
