//! Backends that no config lists one by one: names that DNS is asked for, again and again.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use super::{BackendState, Portion};

/// One place where the backends of a target come from.
#[derive(Clone, Debug, PartialEq)]
pub struct BackendSource {
    /// What is asked for.
    pub asks: DnsQuestion,
    /// The port of every address; `None`: the records say it.
    pub port: Option<u16>,
    /// How much each of its backends gets. Of SRV records the weight is theirs, and their priority counts on from this one.
    pub portion: Portion,
    /// What their probes ask for; `None`: the probe is a TCP connect.
    pub probe_path: Option<String>,
    /// What the operator wants of all of them.
    pub state: BackendState,
    /// The how manieth item of the target's `backends` it is, from 0.
    pub number: usize,
}

/// What DNS is asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DnsQuestion {
    /// The name as it is written.
    pub name: Arc<str>,
    /// Addresses, or services that have them.
    pub kind: DnsKind,
    /// Which addresses count.
    pub family: AddressFamily,
}

impl DnsQuestion {
    /// The same whatever the case, with a dot at the end or without: what one answer is for.
    #[must_use]
    pub fn canonical(&self) -> DnsQuestion {
        let name = self.name.strip_suffix('.').unwrap_or(&self.name).to_ascii_lowercase();
        DnsQuestion { name: name.into(), ..self.clone() }
    }

    /// The name that stands for its backends where they are asked for, and where they show a certificate: that of the service is its domain.
    #[must_use]
    pub fn host(&self) -> &str {
        let name = match self.kind {
            DnsKind::Addresses => &*self.name,
            DnsKind::Services => {
                let mut labels = self.name.split_inclusive('.');
                let service: usize =
                    labels.by_ref().take_while(|label| label.starts_with('_')).map(str::len).sum();
                self.name.get(service..).filter(|domain| !domain.is_empty()).unwrap_or(&self.name)
            }
        };
        name.strip_suffix('.').unwrap_or(name)
    }
}

impl fmt::Display for DnsQuestion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

/// Which records are asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DnsKind {
    /// A and AAAA.
    #[default]
    Addresses,
    /// SRV (RFC 2782), and the addresses of what those name.
    Services,
}

impl DnsKind {
    /// The key that it is written under.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            DnsKind::Addresses => "dns",
            DnsKind::Services => "srv",
        }
    }
}

/// Which addresses of a name are backends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum AddressFamily {
    /// Those of IPv4 and of IPv6.
    #[default]
    Any,
    /// Those of IPv4.
    V4,
    /// Those of IPv6.
    V6,
}

impl AddressFamily {
    /// Every one with the name it has in a config file.
    pub const ALL: &'static [(&'static str, AddressFamily)] = &[
        (AddressFamily::Any.as_str(), AddressFamily::Any),
        (AddressFamily::V4.as_str(), AddressFamily::V4),
        (AddressFamily::V6.as_str(), AddressFamily::V6),
    ];

    /// Its name there.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            AddressFamily::Any => "any",
            AddressFamily::V4 => "ipv4",
            AddressFamily::V6 => "ipv6",
        }
    }
}

/// How DNS is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolverConfig {
    /// Who is asked; empty: those of `/etc/resolv.conf`.
    pub servers: Vec<SocketAddr>,
    /// How long one server may take for one question. Default 2 s.
    pub timeout: Duration,
    /// How often one question is asked before it has failed, each time of all servers. Default 2.
    pub attempts: u32,
    /// Answers count at least for so long, whatever their TTL. Default 1 s.
    pub ttl_min: Duration,
    /// They count at most for so long. Default 5 min.
    pub ttl_max: Duration,
    /// How long an address that answers lack stays at least; it stays for three times their TTL, too. Default 30 s.
    pub hold: Duration,
    /// The most addresses that one name has; what is beyond is left out. Default 1,000.
    pub addresses: usize,
}

impl Default for ResolverConfig {
    fn default() -> ResolverConfig {
        ResolverConfig {
            servers: Vec::new(),
            timeout: Duration::from_secs(2),
            attempts: 2,
            ttl_min: Duration::from_secs(1),
            ttl_max: Duration::from_mins(5),
            hold: Duration::from_secs(30),
            addresses: 1_000,
        }
    }
}

/// How a backend was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundBy {
    /// What was asked for.
    pub asks: DnsQuestion,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_stands_for_its_domain() {
        let host = |name: &str, kind| {
            DnsQuestion { name: name.into(), kind, family: AddressFamily::Any }.host().to_owned()
        };
        assert_eq!(host("_http._tcp.app.internal", DnsKind::Services), "app.internal");
        assert_eq!(host("_http._tcp.app.internal.", DnsKind::Services), "app.internal");
        assert_eq!(host("app.internal", DnsKind::Services), "app.internal");
        assert_eq!(host("_odd", DnsKind::Services), "_odd");
        assert_eq!(host("_dmarc.app.internal", DnsKind::Addresses), "_dmarc.app.internal");
    }
}
