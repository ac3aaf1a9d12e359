//! What is told of webhooks. Of a URL it is scheme and host only.

use super::kind::EventKind;
use super::wording::rough;

/// Logs that a receiver does not take a message. Called once until it takes one again.
pub fn webhook_fails(webhook: &str, reason: &str) {
    tracing::warn!(
        kind = EventKind::WebhookFails.name(),
        webhook,
        reason,
        "webhook {webhook} does not take messages, they are sent again: {reason}"
    );
}

/// Logs that a receiver takes messages again, and for how long it did not.
pub fn webhook_works(webhook: &str, after: std::time::Duration, waiting: usize) {
    let after = rough(after);
    tracing::info!(
        kind = EventKind::WebhookWorks.name(),
        webhook,
        after,
        waiting,
        "webhook {webhook} takes messages again after {after}; {waiting} wait"
    );
}

/// Logs that messages are not sent any more, and why. Called at most once per stretch of failures for each reason.
pub fn webhook_dropped(webhook: &str, count: usize, reason: &str) {
    tracing::warn!(
        kind = EventKind::WebhookDropped.name(),
        webhook,
        count,
        reason,
        "webhook {webhook}: {count} messages were dropped: {reason}"
    );
}

/// Logs that events came faster than they could be read, so that no webhook has told of them.
pub fn webhooks_missed(count: u64) {
    tracing::warn!(
        kind = EventKind::WebhooksMissed.name(),
        count,
        "webhooks: {count} events were gone before they could be told"
    );
}

/// Logs that messages can't be kept, so that a restart loses those that wait. Called once until they can.
pub fn webhooks_unkept(reason: &str) {
    tracing::warn!(
        kind = EventKind::WebhooksUnkept.name(),
        reason,
        "webhooks: messages can't be kept, a restart loses those that wait: {reason}"
    );
}

/// Logs that messages can be kept again.
pub fn webhooks_kept() {
    tracing::info!(kind = EventKind::WebhooksKept.name(), "webhooks: messages are kept again");
}

/// Logs that the journal of messages was not whole: a crash in the middle of a line, or a damaged disk.
pub fn webhooks_cut(torn: usize, damaged: usize) {
    tracing::warn!(
        kind = EventKind::WebhooksCut.name(),
        torn,
        damaged,
        "webhooks: the journal of messages was not whole: {torn} bytes at its end, {damaged} records in it were left out"
    );
}
