//! The call for a probe, made by live traffic.

use std::sync::atomic::AtomicBool;

use tokio::sync::Notify;

/// The call for a probe.
#[derive(Debug, Default)]
pub(in crate::targets) struct Trouble {
    pub(in crate::targets) is_noted: AtomicBool,
    pub(in crate::targets) noted: Notify,
}
