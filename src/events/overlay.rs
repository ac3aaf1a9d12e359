//! What is changed by hand.

use std::fmt::Display;

use super::kind::EventKind;
use super::wording::{listed, sentence};

/// Logs that `author` has changed something by hand. `lines`: what has changed, as a plan says it.
pub fn overlay_changed(author: &str, lines: &[String], objects: &[impl Display]) {
    let objects = objects.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let all = lines.join("\n");
    if lines.is_empty() {
        tracing::info!(
            kind = EventKind::ChangedByHand.name(),
            author,
            objects,
            "changed by hand, {author}: nothing differs for {objects}"
        );
    } else {
        tracing::info!(
            kind = EventKind::ChangedByHand.name(),
            author,
            objects,
            keys = all,
            "changed by hand, {author}: {}",
            listed(lines)
        );
    }
}

/// Logs that `author` has had changes by hand written into files.
pub fn overlay_saved(author: &str, files: &[&str], entries: &[String]) {
    let (files, all) = (files.join(", "), entries.join("\n"));
    tracing::info!(
        kind = EventKind::Saved.name(),
        author,
        files,
        keys = all,
        "saved into {files}, {author}: {}",
        listed(entries)
    );
}

/// Logs that changes by hand are over by themselves.
pub fn overlay_ended(lines: &[String]) {
    let all = lines.join("\n");
    tracing::info!(
        kind = EventKind::ByHandOver.name(),
        keys = all,
        "changes by hand are over: {}",
        listed(lines)
    );
}

/// Logs that an entry that was kept is over when the process starts.
pub fn overlay_over(entry: &str, why: &str) {
    tracing::info!(
        kind = EventKind::ByHandOver.name(),
        entry,
        why,
        "{}",
        sentence("", &[entry], " is over: ", why, "")
    );
}

/// Logs how many changes by hand a process starts with, and how many of them have no effect.
pub fn overlay_laid(effective: usize, aside: usize) {
    let idle = if aside == 0 { String::new() } else { format!(", {aside} without effect") };
    tracing::info!(
        kind = EventKind::ByHandInForce.name(),
        effective,
        aside,
        "changes by hand in force: {effective}{idle}; `evenkeel diff` shows them"
    );
}

/// Logs that an entry has no effect with the config in force.
pub fn overlay_aside(entry: &str, why: &str) {
    tracing::warn!(
        kind = EventKind::ByHandAside.name(),
        entry,
        why,
        "{}",
        sentence("", &[entry], " has no effect: ", why, "")
    );
}

/// Logs that nothing can be changed by hand.
pub fn overlay_unkept(reason: &str) {
    tracing::warn!(
        kind = EventKind::ByHandUnkept.name(),
        reason,
        "{}",
        sentence("changes by hand are refused, they can't be kept: ", &[], "", reason, "")
    );
}

/// Logs that the store has not what is in force.
pub fn overlay_behind(reason: &str) {
    tracing::warn!(
        kind = EventKind::ByHandBehind.name(),
        reason,
        "{}",
        sentence("what is over by hand can't be kept yet: ", &[], "", reason, "")
    );
}

/// Logs what of the journal was not whole: bytes at its end, whole lines that are not what was written.
pub fn overlay_cut(torn: usize, damaged: usize) {
    if damaged > 0 {
        tracing::warn!(
            kind = EventKind::JournalCut.name(),
            torn,
            damaged,
            "the journal of changes by hand is damaged, {damaged} lines are left out; it is kept as overlay.journal.damaged"
        );
    } else {
        tracing::warn!(
            kind = EventKind::JournalCut.name(),
            torn,
            "the journal of changes by hand was cut by {torn} bytes, the rest of a change that nobody was told is done"
        );
    }
}

/// Logs that somebody is kept out, as `line` says it; `cut`: connections.
pub fn blocked(author: &str, network: &str, line: &str, cut: usize) {
    let also = match cut {
        0 => String::new(),
        1 => ", 1 connection cut".to_owned(),
        _ => format!(", {cut} connections cut"),
    };
    tracing::info!(kind = EventKind::Blocked.name(), author, network, cut, "blocked {line}{also}");
}

/// Logs that `author` has let somebody in again who was blocked, as `entry` says.
pub fn unblocked(author: &str, network: &str, entry: &str) {
    tracing::info!(kind = EventKind::LetIn.name(), author, network, "unblocked, {author}: {entry}");
}

/// Logs that somebody is let in again because the time of `entry` is over.
pub fn let_in(entry: &str) {
    tracing::info!(kind = EventKind::LetIn.name(), entry, "unblocked, its time is over: {entry}");
}

/// Logs how many networks are blocked when a process starts.
pub fn blocked_from_the_start(count: usize) {
    let networks = if count == 1 { "1 network".to_owned() } else { format!("{count} networks") };
    tracing::info!(
        kind = EventKind::Blocked.name(),
        networks = count,
        "blocked from the start: {networks}; `evenkeel diff` shows them"
    );
}
