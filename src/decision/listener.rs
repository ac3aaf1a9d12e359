//! Which listener gets a request.

use std::sync::Arc;

use thiserror::Error;

use crate::config::model::{Bind, Protocol, SampleRequest};
use crate::snapshot::Listener;

/// Why none does.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NoListener {
    /// None has this name.
    #[error("there is no listener `{0}`")]
    Unknown(String),
    /// It has no requests.
    #[error("the listener `{0}` speaks tcp: it has connections and no requests")]
    Tcp(String),
    /// Nor has it connections.
    #[error("the listener `{0}` speaks udp: it has flows and no requests")]
    Udp(String),
    /// The URL is not for it.
    #[error("the listener `{name}` speaks {speaks}, and the URL begins with `{asked}`")]
    Scheme {
        /// Its name.
        name: String,
        /// What it speaks.
        speaks: &'static str,
        /// What the URL begins with.
        asked: &'static str,
    },
    /// None speaks this.
    #[error("no listener speaks {0}")]
    Nobody(&'static str),
    /// All of these fit.
    #[error("several listeners fit, `{}`: `listener` says which", .0.join("`, `"))]
    Several(Vec<String>),
}

impl NoListener {
    /// It has no requests.
    pub(super) fn without_requests(listener: &Listener) -> NoListener {
        let name = listener.config.name.clone();
        if listener.config.protocol == Protocol::Udp { NoListener::Udp(name) } else { NoListener::Tcp(name) }
    }
}

/// The listener that gets `request`: the one that it names, else the only one that speaks what its URL says; of several the only one
/// that is bound to its port.
///
/// # Errors
/// There is none, or there are several.
pub(super) fn listener<'l>(
    listeners: &'l [Arc<Listener>],
    request: &SampleRequest,
) -> Result<&'l Arc<Listener>, NoListener> {
    let asked = scheme(request.is_tls);
    if let Some(name) = &request.listener {
        let named = listeners.iter().find(|listener| listener.config.name == *name);
        let named = named.ok_or_else(|| NoListener::Unknown(name.clone()))?;
        if named.config.protocol != Protocol::Http && named.passages().is_none() {
            return Err(NoListener::without_requests(named));
        }
        let speaks = scheme(named.config.is_secured());
        if speaks != asked {
            return Err(NoListener::Scheme { name: name.clone(), speaks, asked });
        }
        return Ok(named);
    }
    let speaks = |listener: &&Arc<Listener>| {
        let has_requests = listener.config.protocol == Protocol::Http || listener.passages().is_some();
        has_requests && listener.config.is_secured() == request.is_tls
    };
    let all: Vec<_> = listeners.iter().filter(speaks).collect();
    if let [only] = all[..] {
        return Ok(only);
    }
    let is_bound = |listener: &&&Arc<Listener>| {
        let mut binds = listener.config.binds.iter();
        binds.any(|bind| matches!(bind, Bind::Tcp(address) if address.port() == request.port))
    };
    let bound: Vec<_> = all.iter().filter(is_bound).copied().collect();
    match (&all[..], &bound[..]) {
        ([], _) => Err(NoListener::Nobody(asked)),
        (_, [only]) => Ok(only),
        (all, bound) => {
            let left = if bound.is_empty() { all } else { bound };
            Err(NoListener::Several(left.iter().map(|listener| listener.config.name.clone()).collect()))
        }
    }
}

const fn scheme(is_tls: bool) -> &'static str {
    if is_tls { "https" } else { "http" }
}
