//! TLS handshakes with clients, by version and whether an earlier session was continued.

use super::counter::Counter;
use crate::message::TlsSession;

/// What one worker counts of them.
#[derive(Debug, Default)]
pub struct HandshakeCells([Counter; 4]);

fn place(is_newer: bool, resumed: bool) -> usize {
    usize::from(is_newer) * 2 + usize::from(resumed)
}

impl HandshakeCells {
    /// Counts one that was completed. Only the owning worker calls this.
    pub fn count(&self, session: TlsSession) {
        self.0[place(session.is_tls13, session.resumed)].increment();
    }

    /// Version, whether it was resumed, and how many.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, bool, u64)> {
        [("1.2", false), ("1.2", true), ("1.3", false), ("1.3", true)]
            .into_iter()
            .map(|(version, resumed)| (version, resumed, self.0[place(version == "1.3", resumed)].value()))
    }
}
