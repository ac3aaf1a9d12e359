//! Which of many networks an address is in.

use std::net::IpAddr;

use ipnet::IpNet;

/// What the networks say of an address that is in one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NetworkVerdict {
    /// It is let in.
    Allow,
    /// It is not.
    Deny,
}

/// Networks that are let in and networks that are not. Immutable: whoever has others makes another one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Networks {
    allow: Vec<IpNet>,
    deny: Vec<IpNet>,
}

impl Networks {
    /// These.
    #[must_use]
    pub fn new(allow: &[IpNet], deny: &[IpNet]) -> Networks {
        Networks { allow: allow.to_vec(), deny: deny.to_vec() }
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.allow.is_empty() && self.deny.is_empty()
    }

    /// What the longest prefix says that `address` is in, denial at a tie; `None`: it is in none. A v4 address mapped into v6 is v4.
    #[must_use]
    pub fn verdict(&self, address: IpAddr) -> Option<NetworkVerdict> {
        let address = address.to_canonical();
        let longest = |networks: &[IpNet]| {
            networks.iter().filter(|network| network.contains(&address)).map(IpNet::prefix_len).max()
        };
        match (longest(&self.allow), longest(&self.deny)) {
            (None, None) => None,
            (allow, deny) if allow > deny => Some(NetworkVerdict::Allow),
            (_, _) => Some(NetworkVerdict::Deny),
        }
    }
}
