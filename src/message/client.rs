//! Who a client is: its address, and the text of it.

use std::net::IpAddr;

/// Room for the longest text of an IPv4 address and a port, `255.255.255.255:65535`, and a bit.
const TEXT: usize = 24;

/// Address and port of a client.
///
/// The text of an IPv4 address is made once for a connection: each access line of its requests has it. That of an
/// IPv6 address is made when it is asked for; it would double what an idle connection holds of its client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientAddress {
    /// The address. On an IPv6 socket it may be an IPv4 address in the form of an IPv6 one.
    pub ip: IpAddr,
    /// The port.
    pub port: u16,
    text: [u8; TEXT],
    /// How much of `text` is the address; 0: it has none.
    ip_length: u8,
    /// How much of `text` counts.
    length: u8,
}

impl ClientAddress {
    /// A client's address.
    #[must_use]
    pub fn new(ip: IpAddr, port: u16) -> ClientAddress {
        let mut client = ClientAddress { ip, port, text: [0; TEXT], ip_length: 0, length: 0 };
        if let IpAddr::V4(v4) = ip.to_canonical() {
            let mut at = 0;
            for octet in v4.octets() {
                at = client.push(at, octet.into());
                client.text[at] = b'.';
                at += 1;
            }
            client.text[at - 1] = b':';
            let end = client.push(at, port);
            let [ip_length, length] =
                [at - 1, end].map(|length| u8::try_from(length).expect("no longer than the text"));
            (client.ip_length, client.length) = (ip_length, length);
        }
        client
    }

    /// Writes `number` at a place of the text and tells where it ends.
    fn push(&mut self, at: usize, number: u16) -> usize {
        let length = number.checked_ilog10().map_or(1, |log| log as usize + 1);
        let mut rest = number;
        for place in self.text[at..at + length].iter_mut().rev() {
            // The remainder is below ten, so nothing is cut.
            *place = b'0' + (rest % 10) as u8;
            rest /= 10;
        }
        at + length
    }

    /// The address without the port, as text; `None` for IPv6.
    #[must_use]
    pub fn ip_text(&self) -> Option<&[u8]> {
        self.text.get(..usize::from(self.ip_length)).filter(|text| !text.is_empty())
    }

    /// The address without the port, as text, which is as much of the array as the number beside it says; `None` for IPv6.
    #[must_use]
    #[inline]
    pub fn ip_front(&self) -> Option<(&[u8; TEXT], usize)> {
        (self.ip_length != 0).then_some((&self.text, usize::from(self.ip_length)))
    }

    /// Address and port as text, which is as much of the array as the number beside it says; `None` for IPv6.
    #[must_use]
    #[inline]
    pub fn text(&self) -> Option<(&[u8; TEXT], usize)> {
        (self.length != 0).then_some((&self.text, usize::from(self.length)))
    }
}

impl std::fmt::Display for ClientAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::net::SocketAddr::new(self.ip.to_canonical(), self.port).fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_text_is_what_the_standard_library_prints(address: [u8; 4], small: bool, mapped: bool, port: u16) {
            let address = std::net::Ipv4Addr::from(address.map(|octet| if small { octet % 20 } else { octet }));
            let ip = if mapped { address.to_ipv6_mapped().into() } else { address.into() };
            let client = ClientAddress::new(ip, port);
            prop_assert_eq!(client.ip_text().map(<[u8]>::to_vec), Some(address.to_string().into_bytes()));
            prop_assert_eq!(client.ip_front().map(|(text, length)| &text[..length]), client.ip_text());
            let whole = client.text().map(|(text, length)| text[..length].to_vec());
            prop_assert_eq!(whole, Some(format!("{address}:{port}").into_bytes()));
            prop_assert_eq!((client.ip, client.port), (ip, port));
        }
    }

    #[test]
    fn the_longest_text_fits_and_ipv6_has_none() {
        let longest = ClientAddress::new([255; 4].into(), u16::MAX);
        assert_eq!(longest.text().map(|(text, length)| &text[..length]), Some(&b"255.255.255.255:65535"[..]));
        let v6 = ClientAddress::new([1; 16].into(), 5);
        assert_eq!((v6.ip_text(), v6.ip_front(), v6.text()), (None, None, None));
    }
}
