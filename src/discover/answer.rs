//! What DNS has said about a name.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use crate::config::model::discovery::AddressFamily;

/// A good answer: at least one address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NameAnswer {
    /// The addresses, each once.
    pub heard: Vec<HeardAddress>,
    /// What could not be found out: addresses of these hosts are as they were.
    pub unheard: Vec<UnheardHost>,
    /// The shortest of its records.
    pub ttl: Duration,
    /// Addresses that are not among them since there were far too many.
    pub omitted: usize,
}

/// One address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeardAddress {
    /// It, with the port of its record; 0: it has none.
    pub address: SocketAddr,
    /// The host that has it: of a service the one that its record names.
    pub host: Arc<str>,
    /// Of its SRV record; lower ones are preferred.
    pub priority: u16,
    /// Of its SRV record.
    pub weight: u16,
}

/// Addresses of a host that could not be found out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnheardHost {
    /// The host.
    pub host: Arc<str>,
    /// Which of them.
    pub family: AddressFamily,
}

impl UnheardHost {
    /// Whether the address would be one of them.
    #[must_use]
    pub fn covers(&self, host: &str, address: IpAddr) -> bool {
        let is_meant = match self.family {
            AddressFamily::Any => true,
            AddressFamily::V4 => address.is_ipv4(),
            AddressFamily::V6 => address.is_ipv6(),
        };
        is_meant && *self.host == *host
    }
}
