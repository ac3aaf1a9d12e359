//! What is told of targets that have too few backends, or more than they need.

use std::time::Duration;

use super::kind::EventKind;
use super::wording::rough;

/// Logs that more requests than `threshold` have waited for a target's backends all the time for `hold`. Called once until that is over.
pub fn scale_out(target: &str, queued: u64, threshold: u32, hold: Duration) {
    let held = rough(hold);
    let reason = format!("{queued} requests wait, and for {held} there were always more than {threshold}");
    tracing::warn!(
        kind = EventKind::ScaleOut.name(),
        target,
        reason,
        queued,
        "target {target} needs more backends: {reason}"
    );
}

/// Logs that less than `percent` of what a target's backends may have was under way all the time for `hold`. Called once until that is over.
pub fn scale_in(target: &str, (in_flight, room): (u64, u64), percent: u8, hold: Duration) {
    let held = rough(hold);
    let reason = format!(
        "{in_flight} of {room} requests are under way, and for {held} it was always less than {percent}%"
    );
    tracing::info!(
        kind = EventKind::ScaleIn.name(),
        target,
        reason,
        in_flight,
        room,
        "target {target} would do with fewer backends: {reason}"
    );
}
