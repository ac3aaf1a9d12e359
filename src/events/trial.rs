//! What is told of configs that are applied, and of one on trial.

use std::path::Path;
use std::time::Duration;

use super::kind::EventKind;
use super::wording::{listed, millis, rough};

/// Logs that somebody has given another config, on trial for `window`, and what has changed.
pub fn applied(who: &str, window: Option<Duration>, differing: &[String]) {
    let (count, all, shown) = (differing.len(), differing.join("\n"), listed(differing));
    match window {
        None => tracing::info!(
            kind = EventKind::Applied.name(),
            who,
            differing = count,
            keys = all,
            "applied by {who}: {shown}"
        ),
        Some(window) => {
            let (window_ms, window) = (millis(window), rough(window));
            tracing::info!(
                kind = EventKind::Applied.name(),
                who,
                differing = count,
                keys = all,
                window_ms,
                "applied by {who}, on trial for {window}: {shown}"
            );
        }
    }
}

/// Logs that the config on trial lies in the file now; the one before it in `kept`, if it says something else.
pub fn confirmed(who: &str, file: &Path, kept: Option<&Path>) {
    let (file, kept) = (file.display().to_string(), kept.map(|kept| kept.display().to_string()));
    let before = kept.as_ref().map_or_else(String::new, |kept| format!(", {kept} the one before"));
    tracing::info!(
        kind = EventKind::Confirmed.name(),
        who,
        file,
        kept,
        "confirmed by {who}: {file} is the config in force{before}"
    );
}

/// Logs that the config on trial is taken back, why, and what has changed by that.
pub fn rolled_back(reason: &str, differing: &[String]) {
    let (count, all, shown) = (differing.len(), differing.join("\n"), listed(differing));
    tracing::warn!(
        kind = EventKind::Rollback.name(),
        reason,
        differing = count,
        keys = all,
        "rolled back, {reason}: {shown}"
    );
}

/// Logs that the config on trial can't be taken back now. Called once for each trial.
pub fn rollback_failed(reason: &str, error: &str) {
    tracing::error!(
        kind = EventKind::RollbackFailed.name(),
        reason,
        error,
        "not rolled back ({reason}), tried again every second: {error}"
    );
}

/// Logs that a file in which the config is written has changed, which counts only when the trial is over.
pub fn edit_on_trial(file: &str) {
    tracing::warn!(
        kind = EventKind::EditOnTrial.name(),
        file,
        "{file} has changed, and is not read while a config is on trial: `evenkeel confirm` or `evenkeel rollback` ends that"
    );
}

/// Logs that what a process has left beside a file when it was killed is removed.
pub fn leftover_removed(path: &Path) {
    let path = path.display().to_string();
    tracing::info!(
        kind = EventKind::LeftoverRemoved.name(),
        path,
        "{path} is removed: a process that was killed while it replaced a file has left it"
    );
}
