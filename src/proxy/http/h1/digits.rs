//! Numbers and addresses as text, without the cost of `fmt`.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::telemetry::access_log::id_digits;

/// Appends a decimal number.
pub fn push_number(out: &mut Vec<u8>, number: u64) {
    if number < 10 {
        return out.push(b'0' + number as u8);
    }
    let mut digits = [0u8; 20];
    let mut at = digits.len();
    let mut rest = number;
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

/// Every byte as two hex digits.
static HEX: [[u8; 2]; 256] = {
    let digits = b"0123456789abcdef";
    let mut pairs = [[0; 2]; 256];
    let mut byte = 0;
    while byte < 256 {
        pairs[byte] = [digits[byte >> 4], digits[byte & 15]];
        byte += 1;
    }
    pairs
};

/// Every byte in decimal, with a dot behind it.
static OCTETS: [[u8; 4]; 256] = {
    let mut texts = [[b'.'; 4]; 256];
    let mut octet = 0;
    while octet < 256 {
        let digits = [b'0' + (octet / 100) as u8, b'0' + (octet / 10 % 10) as u8, b'0' + (octet % 10) as u8];
        let skipped = if octet > 99 {
            0
        } else if octet > 9 {
            1
        } else {
            2
        };
        let mut at = skipped;
        while at < 3 {
            texts[octet][at - skipped] = digits[at];
            at += 1;
        }
        octet += 1;
    }
    texts
};

/// Appends a request's number as 32 hex digits.
pub fn push_id(out: &mut Vec<u8>, id: u128) {
    out.extend_from_slice(&id_digits(id));
}

/// Appends an address, as `Display` writes it (RFC 5952).
pub fn push_address(out: &mut Vec<u8>, address: IpAddr) {
    match address {
        IpAddr::V4(address) => push_v4(out, address),
        IpAddr::V6(address) => push_v6(out, address),
    }
}

/// Appends the address of a peer: an IPv4 one as such, also when a socket for both kinds has mapped it.
#[inline]
pub fn push_peer(out: &mut Vec<u8>, address: IpAddr) {
    match address {
        IpAddr::V4(address) => push_v4(out, address),
        IpAddr::V6(address) => push_address(out, address.to_canonical()),
    }
}

fn push_v4(out: &mut Vec<u8>, address: Ipv4Addr) {
    let mut text = [0; 16];
    let mut at = 0;
    for octet in address.octets() {
        // What is behind the dot is overwritten by the next one.
        text[at..at + 4].copy_from_slice(&OCTETS[usize::from(octet)]);
        at += 2 + usize::from(octet > 9) + usize::from(octet > 99);
    }
    // A copy of fixed size costs less than one of the right size.
    let end = out.len() + at - 1;
    out.extend_from_slice(&text);
    out.truncate(end);
}

fn push_v6(out: &mut Vec<u8>, address: Ipv6Addr) {
    if let Some(inner) = address.to_ipv4_mapped() {
        out.extend_from_slice(b"::ffff:");
        return push_v4(out, inner);
    }
    let groups = address.segments();
    let zeros = longest_zeros(&groups);
    for (at, &group) in groups.iter().enumerate() {
        if zeros.contains(&at) {
            if at == zeros.start {
                out.extend_from_slice(b"::");
            }
            continue;
        }
        if at > 0 && at != zeros.end {
            out.push(b':');
        }
        let [high, low] = group.to_be_bytes().map(|byte| HEX[usize::from(byte)]);
        let leading = (group.leading_zeros() / 4).min(3) as usize;
        out.extend_from_slice(&[high[0], high[1], low[0], low[1]][leading..]);
    }
}

/// The longest run of two or more groups that are zero, the first of those that are equally long.
fn longest_zeros(groups: &[u16; 8]) -> std::ops::Range<usize> {
    let (mut longest, mut start) = (0..0, 0);
    for (at, &group) in groups.iter().enumerate() {
        if group != 0 {
            start = at + 1;
        } else if at + 1 - start > longest.len().max(1) {
            longest = start..at + 1;
        }
    }
    longest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = b"x".to_vec();
        write(&mut out);
        String::from_utf8(out.split_off(1)).expect("ascii")
    }

    #[test]
    fn every_octet_is_written_as_it_is_displayed() {
        for octet in 0..=u8::MAX {
            for address in [[octet, 0, 255, octet], [9, octet, 10, 99], [octet; 4]] {
                let address = IpAddr::from(address);
                assert_eq!(written(|out| push_address(out, address)), address.to_string());
            }
        }
    }

    proptest::proptest! {
        #[test]
        fn numbers_are_written_as_they_are_displayed(number: u64, id: u128) {
            assert_eq!(written(|out| push_number(out, number)), number.to_string());
            assert_eq!(written(|out| push_id(out, id)), format!("{id:032x}"));
        }

        #[test]
        fn addresses_are_written_as_they_are_displayed(groups: [u16; 8], zeros: u8, shift in 0u32..16) {
            // Zeros and short groups are what is written in a way of its own.
            let group = |at: usize| if zeros >> at & 1 == 1 { 0 } else { groups[at] >> shift };
            for mapped in [false, true] {
                let mut groups = std::array::from_fn(group);
                if mapped {
                    groups[..6].copy_from_slice(&[0, 0, 0, 0, 0, 0xffff]);
                }
                let address = IpAddr::from(groups);
                assert_eq!(written(|out| push_address(out, address)), address.to_string());
            }
        }
    }

    #[test]
    fn a_mapped_peer_is_written_as_what_it_is() {
        for (address, shown) in
            [("::ffff:192.0.2.1", "192.0.2.1"), ("192.0.2.1", "192.0.2.1"), ("::1", "::1")]
        {
            assert_eq!(written(|out| push_peer(out, address.parse().expect("an address"))), shown);
        }
    }

    #[test]
    fn numbers_at_their_ends() {
        for number in [0, 9, 10, 99, 100, u64::MAX] {
            assert_eq!(written(|out| push_number(out, number)), number.to_string());
        }
        assert_eq!(written(|out| push_id(out, 0)), "0".repeat(32));
        assert_eq!(written(|out| push_id(out, u128::MAX)), "f".repeat(32));
        for address in ["::", "::1", "1::", "1:0:0:2::3", "0:0:1::", "1:2:3:4:5:6:7:8", "1:0:3:4:5:6:7:8"] {
            let address: IpAddr = address.parse().expect("an address");
            assert_eq!(written(|out| push_address(out, address)), address.to_string());
        }
    }
}
