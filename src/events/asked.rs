//! Where the process can be asked and told things while it serves.

use std::net::SocketAddr;
use std::path::Path;

use super::kind::EventKind;
use super::wording::sentence;

/// Logs where the process can be asked and told things while it serves.
pub fn admin_socket(path: &Path, name: &str) {
    let socket = path.display();
    tracing::info!(kind = EventKind::AdminSocket.name(), %socket, name, "admin socket {socket}");
}

/// Logs that the process can't be asked or told anything, and why.
pub fn no_admin_socket(reason: &str) {
    tracing::warn!(
        kind = EventKind::NoAdminSocket.name(),
        reason,
        "no admin socket for `evenkeel plan`: {reason}"
    );
}

/// Logs where it can be asked and told things over TCP, and by whom.
pub fn admin_listener(address: SocketAddr, has_tokens: bool) {
    let who = if has_tokens { "with a token" } else { "read-only, no tokens" };
    tracing::info!(kind = EventKind::AdminListener.name(), %address, has_tokens, "admin listener {address} ({who})");
}

/// Logs where metrics are given over TCP.
pub fn metrics_listener(address: SocketAddr) {
    tracing::info!(
        kind = EventKind::MetricsListener.name(),
        %address,
        "metrics listener {address} (no tokens)"
    );
}

/// Logs that somebody reads events too slowly, and so gets no more of them; its client may come again.
pub fn event_reader_dropped(who: &str, reason: &str) {
    tracing::warn!(
        kind = EventKind::EventReaderDropped.name(),
        who,
        reason,
        "{}",
        sentence("an event stream was closed, ", &[who], " does not keep up: ", reason, "")
    );
}

/// Logs that nobody is answered over TCP, and why.
pub fn no_admin_listener(what: &str, reason: &str) {
    tracing::warn!(kind = EventKind::NoAdminListener.name(), reason, "no {what}: {reason}");
}
