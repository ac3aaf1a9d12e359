//! What is told of the collector that traces are sent to. Of its URL it is scheme and host only.

use std::time::Duration;

use super::kind::EventKind;
use super::wording::rough;
use crate::config::model::HttpUrl;

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
