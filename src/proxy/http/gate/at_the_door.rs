//! Whether a connection may begin, by nothing but the address that it comes from: before TLS, and before anything is read.

use std::net::IpAddr;

use crate::access::AddressRule;
use crate::config::model::Protocol;
use crate::snapshot::Listener;

/// The list that does not let a connection from `peer` begin; `None`: it may. Who has no address comes over a unix socket.
///
/// A trusted proxy is asked of denials alone: whom it speaks for is known once there is a request, which is then asked
/// ([`found`](crate::proxy::http::routing::found)). Of a TCP connection nobody else will ever be known.
#[must_use]
pub fn at_the_door(listener: &Listener, peer: Option<IpAddr>) -> Option<&AddressRule> {
    if listener.access.is_empty() {
        return None;
    }
    let speaks_for_others =
        listener.config.protocol == Protocol::Http && peer.is_some_and(|peer| listener.trusts(peer));
    if speaks_for_others { listener.access.denial(peer) } else { listener.access.refusal(peer) }
}
