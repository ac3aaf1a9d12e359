//! What is told of statsd.

use std::time::Duration;

use super::kind::EventKind;
use super::wording::rough;

/// Logs that datagrams do not arrive, and why. Called once until they do again.
pub fn statsd_fails(to: &str, reason: &str) {
    tracing::warn!(
        kind = EventKind::StatsdFails.name(),
        to,
        reason,
        "statsd {to} does not take datagrams, counts are kept for it: {reason}"
    );
}

/// Logs that they arrive again, and for how long they did not.
pub fn statsd_works(to: &str, after: Duration) {
    let after = rough(after);
    tracing::info!(
        kind = EventKind::StatsdWorks.name(),
        to,
        after,
        "statsd {to} takes datagrams again after {after}"
    );
}
