//! What is told of another config.

use std::time::Duration;

use super::kind::EventKind;
use super::wording::{listed, rough};

/// Logs what a reload has changed, one text for each thing; all of them in JSON, some in the sentence.
pub fn reloaded(differing: &[String]) {
    let (count, all, shown) = (differing.len(), differing.join("\n"), listed(differing));
    let keys = (count > 0).then_some(all);
    tracing::info!(kind = EventKind::Reload.name(), differing = count, keys, "reloaded: {shown}");
}

/// Logs what `check` would warn of in a config that has just been put into force.
pub fn reload_warning(warning: &str) {
    tracing::warn!(kind = EventKind::ConfigWarning.name(), warning, "{warning}");
}

/// Logs that another config was not taken, and nothing has changed. `more`: problems beside the one that is told.
pub fn reload_refused(reason: &str, more: usize) {
    if more == 0 {
        tracing::error!(
            kind = EventKind::ReloadRefused.name(),
            reason,
            "reload refused, nothing has changed: {reason}"
        );
    } else {
        let check = "`evenkeel check` shows all";
        tracing::error!(
            kind = EventKind::ReloadRefused.name(),
            reason,
            more,
            "reload refused, nothing has changed: {reason} (and {more} more; {check})"
        );
    }
}

/// Logs that the kernel can't say of all files of the config when they change, so that they are looked at every so often.
pub fn watch_falls_back(reason: &str, every: Duration) {
    let every = rough(every);
    tracing::warn!(
        kind = EventKind::WatchFallsBack.name(),
        reason,
        every,
        "the config's files are looked at every {every}: {reason}"
    );
}

/// Logs, for whoever debugs, that all workers have gone over to the config of this number. `alive`: configs that are still
/// held, which is 1 once the one before is gone; `longest_turn`: what going over has cost one worker on a processor.
pub fn snapshot_swapped(number: u64, alive: usize, listeners: usize, longest_turn: Duration) {
    let longest_turn_us = u64::try_from(longest_turn.as_micros()).unwrap_or(u64::MAX);
    tracing::debug!(
        number,
        alive,
        listeners,
        longest_turn_us,
        "config {number} is in force, {alive} alive; workers took over {listeners} listeners in {longest_turn_us} µs at most"
    );
}
