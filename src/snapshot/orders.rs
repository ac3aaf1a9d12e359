//! Which certificates a config has ordered.

use std::sync::Arc;

use crate::config::model::Config;
use crate::config::model::tls::acme::{AcmeConfig, OrderedCertificate};
use crate::tls::{LiveCertificate, ServedCertificate};

use super::Snapshot;

/// What is wanted of an authority.
#[derive(Clone, Debug)]
pub struct WantedCertificates {
    /// Who that is.
    pub authority: AcmeConfig,
    /// Each once, whichever listeners show it.
    pub all: Vec<WantedCertificate>,
}

/// A certificate that is wanted.
#[derive(Clone, Debug)]
pub struct WantedCertificate {
    /// What is shown of it.
    pub live: Arc<LiveCertificate>,
    /// How it is ordered under this config.
    pub order: Arc<OrderedCertificate>,
}

impl WantedCertificates {
    /// Those of `config`, which the snapshot was made of; `None`: there is none yet.
    #[must_use]
    pub fn of(snapshot: Option<&Snapshot>, config: &Config) -> WantedCertificates {
        let mut all: Vec<WantedCertificate> = Vec::new();
        for listener in snapshot.into_iter().flat_map(|snapshot| &snapshot.listeners) {
            for certificate in listener.certificates() {
                let ServedCertificate::Live(live) = certificate else { continue };
                let ordered = listener.config.tls.iter().flat_map(|tls| &tls.ordered);
                let Some(order) = ordered.into_iter().find(|order| order.is_like(live.order())) else {
                    continue;
                };
                if !all.iter().any(|known| Arc::ptr_eq(&known.live, live)) {
                    all.push(WantedCertificate { live: Arc::clone(live), order: Arc::clone(order) });
                }
            }
        }
        WantedCertificates { authority: config.acme.clone(), all }
    }
}
