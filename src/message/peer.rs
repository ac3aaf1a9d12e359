//! What is known of a client before it asks anything.

use super::ClientAddress;
use super::record::{ListenerId, Record, TlsSession};
use crate::tick::Tick;

/// What all Records of one connection have in common. An idle connection holds this instead of a Record, which is
/// several times as large.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Peer {
    /// The client's address; `None` on a unix socket.
    pub client: Option<ClientAddress>,
    /// Where it came in.
    pub listener: ListenerId,
    /// The connection was accepted.
    pub accepted: Tick,
    /// The first byte of a TLS handshake came.
    pub greeted: Tick,
    /// The TLS handshake was complete.
    pub secured: Tick,
    /// What it came to; `None`: no TLS.
    pub tls: Option<TlsSession>,
}

impl Peer {
    /// A Record that says no more than this.
    #[must_use]
    pub fn record(&self) -> Record {
        let mut record = Record::default();
        self.begin(&mut record);
        record
    }

    /// Makes a used Record say no more than this.
    pub fn begin(&self, record: &mut Record) {
        record.clear();
        let Peer { client, listener, accepted, greeted, secured, tls } = *self;
        (record.client, record.listener, record.accepted) = (client, listener, accepted);
        (record.started, record.secured, record.tls) = (greeted, secured, tls);
    }
}
