//! What is told of those who are sent numbers and traces. Of a collector's URL it is scheme and host only.

use std::time::Duration;

use super::kind::EventKind;
use super::wording::rough;
use crate::config::model::HttpUrl;

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

/// Logs that the collector does not take spans. Called once until it takes some again.
pub fn traces_fail(collector: &HttpUrl, reason: &str) {
    let collector = collector.to_string();
    tracing::warn!(
        kind = EventKind::TracesFail.name(),
        collector,
        reason,
        "the collector {collector} does not take traces: {reason}"
    );
}

/// Logs that the collector takes spans again, and for how long it did not.
pub fn traces_work(collector: &HttpUrl, after: Duration) {
    let (collector, after) = (collector.to_string(), rough(after));
    tracing::info!(
        kind = EventKind::TracesWork.name(),
        collector,
        after,
        "the collector {collector} takes traces again after {after}"
    );
}
