//! The header by which a balancer in front tells whose connection it passes on: the PROXY protocol, versions 1 and 2, as HAProxy's
//! `proxy-protocol.txt` has it. Bytes in, a header out; and the other way round.

mod read;
mod told;
mod write;

pub use read::{ProxyFault, ProxyRead, read};
pub use told::{TlsTold, Tlv, ToldLines};
pub use write::{PassedOn, of_nobody, write_v1, write_v2};

use std::net::SocketAddr;

/// Bytes of a header of version 2 at most, with its first 16: several times of what senders have to say. One that is longer is refused.
pub const MOST: usize = 16 * 1024;

/// How version 2 begins: two empty lines, and what no protocol begins with.
pub(super) const SIGNATURE: &[u8; 12] = b"\r\n\r\n\0\r\nQUIT\n";

/// What a header says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProxyHeader {
    /// 1 or 2.
    pub version: u8,
    /// The sender speaks for itself: to find out whether we are there.
    pub is_local: bool,
    /// Who has connected to the sender, and where; `None`: it does not say, or in a way of which nothing follows here (a unix socket).
    pub addresses: Option<(SocketAddr, SocketAddr)>,
    /// What else it says.
    pub told: ToldLines,
}

#[cfg(test)]
mod tests;
