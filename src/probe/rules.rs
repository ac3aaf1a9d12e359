//! How one backend is probed: what its probe goes by, so that a probe whose rules stay goes on over a reload.

use crate::config::model::{HealthCheck, HostHeader, Protocol, SendProxy, UpstreamProtocol};

/// The rules of one backend's probe and agent.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ProbeRules {
    /// Which check of the backend it is: see [`Backend::check`](crate::targets::Backend::check).
    pub(super) check: u32,
    /// The check of its target.
    pub(super) health: HealthCheck,
    /// What is asked for with GET; `None`: the probe is a TCP connect.
    pub(super) path: Option<String>,
    /// What its clients speak.
    pub(super) protocol: Protocol,
    /// What requests are spoken with.
    pub(super) upstream: UpstreamProtocol,
    /// In which version connections begin that are passed on; `None`: backends are not told.
    pub(super) send_proxy: Option<SendProxy>,
    /// What requests have for a Host.
    pub(super) host: HostHeader,
}
