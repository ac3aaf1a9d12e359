//! The PROXY protocol: who may tell on a listener whose connections it passes on, and whether backends are told.

use std::net::IpAddr;

use ipnet::IpNet;

/// Who tells on a listener whose connections it passes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProxySenders {
    /// Those that may.
    pub from: Vec<IpNet>,
    /// So may whoever connects to a unix socket.
    pub from_unix: bool,
    /// Connections of others are closed, and so are those of senders that begin without a header. Otherwise they are clients' own.
    pub required: bool,
}

impl ProxySenders {
    /// Whether one with this address is heard before it is a client.
    #[must_use]
    pub fn are_heard_first(&self, sender: Option<IpAddr>) -> bool {
        self.required || self.trusts(sender)
    }

    /// Whether one with this address may tell; `None`: it has come over a unix socket.
    #[must_use]
    pub fn trusts(&self, sender: Option<IpAddr>) -> bool {
        let Some(ip) = sender.map(|ip| ip.to_canonical()) else { return self.from_unix };
        self.from.iter().any(|network| network.contains(&ip))
    }
}

/// What balancers in front tell beside addresses, as far as it can be named. All of it is what they say: nothing of it was verified here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProxyFact {
    /// What the client and the balancer have agreed on (ALPN).
    Alpn,
    /// The host name that the client has asked for (SNI).
    Authority,
    /// The balancer's number of the connection.
    UniqueId,
    /// The version of TLS between the two, `TLSv1.3`.
    Tls,
    /// The common name of the client's certificate.
    ClientName,
    /// What stands behind this type.
    Line(u8),
}

/// In which version backends are told whose connection they get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendProxy {
    /// One line of text: addresses and ports.
    V1,
    /// Bytes: also what is known of the client's TLS session, and a number.
    V2,
}

impl SendProxy {
    /// Both and neither, with the names they have in a config file.
    pub const ALL: &'static [(&'static str, Option<SendProxy>)] =
        &[("off", None), ("v1", Some(SendProxy::V1)), ("v2", Some(SendProxy::V2))];
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn senders_are_known_by_their_address_in_either_form() {
        let senders = |from: &[&str], from_unix| ProxySenders {
            from: from.iter().map(|text| text.parse().expect("a network")).collect(),
            from_unix,
            required: true,
        };
        let ip = |text: &str| Some(text.parse().expect("an address"));
        let some = senders(&["10.0.0.0/8", "2001:db8::/32"], false);
        assert!(some.trusts(ip("10.1.2.3")) && some.trusts(ip("::ffff:10.1.2.3")));
        assert!(some.trusts(ip("2001:db8::1")) && !some.trusts(ip("2001:db9::1")));
        assert!(!some.trusts(ip("11.0.0.1")) && !some.trusts(None));
        assert!(senders(&[], true).trusts(None) && !senders(&[], true).trusts(ip("127.0.0.1")));
    }
}
