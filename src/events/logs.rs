//! What is told of the logs themselves.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

use super::kind::EventKind;

/// Logs that there is no file to reopen.
pub fn no_log_file() {
    tracing::info!(kind = EventKind::NoLogFile.name(), "SIGUSR1: there is no access log file to reopen");
}

/// Logs that something of the access log failed: `what` with its consequence.
pub fn access_log_failed(what: &str, error: &io::Error) {
    tracing::error!(kind = EventKind::AccessLogFailed.name(), what, %error, "access log: {what}: {error}");
}

/// Logs that the access log can be written again.
pub fn access_log_works() {
    tracing::warn!(kind = EventKind::AccessLogWorks.name(), "access log: writing works again");
}

/// Logs that the access log goes on in a new file.
pub fn access_log_reopened() {
    tracing::info!(kind = EventKind::AccessLogReopened.name(), "access log: reopened");
}

/// Logs how many records never reached the destination of the access log.
pub fn records_dropped(dropped: u64) {
    tracing::warn!(
        kind = EventKind::RecordsDropped.name(),
        dropped,
        "access log: {dropped} records were dropped, the destination fails or does not keep up"
    );
}

/// How many events never reached standard error.
static LOST: AtomicU64 = AtomicU64::new(0);

/// How many events never reached standard error so far.
#[must_use]
pub fn lost_so_far() -> u64 {
    LOST.load(Ordering::Relaxed)
}

/// Counts one that never will. It may be long until somebody can be told of it: until then this count is all that tells.
pub fn event_lost() {
    LOST.fetch_add(1, Ordering::Relaxed);
}

/// Logs how many events never reached standard error.
pub fn events_lost(lost: u64) {
    tracing::warn!(
        kind = EventKind::EventsLost.name(),
        lost,
        "{lost} events were lost: standard error did not take them"
    );
}
