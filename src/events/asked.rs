//! Where the process can be asked and told things while it serves.

use std::net::SocketAddr;
use std::path::Path;

use super::kind::EventKind;

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

/// Logs that nobody is answered over TCP, and why.
pub fn no_admin_listener(reason: &str) {
    tracing::warn!(kind = EventKind::NoAdminListener.name(), reason, "no admin listener: {reason}");
}
