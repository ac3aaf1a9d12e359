//! Whose bucket a request takes from: a keyed hash, so that nobody can choose whom to share one with.

use std::fmt;
use std::hash::Hasher as _;
use std::net::IpAddr;

use siphasher::sip::SipHasher13;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Bits of an IPv6 address that one client has to itself: it can choose the others as it likes (RFC 6177).
const V6_PREFIX: u32 = 64;

/// A key of a table; never 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RateKey(u64);

impl RateKey {
    /// The key with these bits.
    #[inline]
    #[must_use]
    pub fn new(bits: u64) -> RateKey {
        RateKey(bits.max(1))
    }

    /// Its bits.
    #[inline]
    #[must_use]
    pub fn bits(self) -> u64 {
        self.0
    }
}

/// What keys are hashed with: nobody outside the process knows it, and it lives as long as the process, and those that come into its place.
///
/// Texts, which clients choose as they like, go through SipHash. Addresses are eight bytes, of which XXH3 makes others one by one: two of a
/// kind never have the same key, so all that its seed has to hide is which ones share a place.
#[derive(Clone)]
pub struct RateSecret {
    texts: SipHasher13,
    addresses: u64,
    drawn: [u64; 3],
}

impl fmt::Debug for RateSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RateSecret")
    }
}

impl RateSecret {
    /// One of these numbers, which were drawn by chance.
    #[must_use]
    pub fn new(drawn: [u64; 3]) -> RateSecret {
        let [one, other, addresses] = drawn;
        RateSecret { texts: SipHasher13::new_with_keys(one, other), addresses, drawn }
    }

    /// What it was made of, for whoever comes into the place of this process.
    #[must_use]
    pub fn drawn(&self) -> [u64; 3] {
        self.drawn
    }

    /// The key of an address: all of an IPv4 one, a /64 of IPv6; v4 mapped into v6 is v4. `kind`: what it is counted as.
    #[inline]
    #[must_use]
    pub fn of_address(&self, kind: u64, address: Option<IpAddr>) -> RateKey {
        let (number, is_v6) = match address.map(|address| address.to_canonical()) {
            Some(IpAddr::V4(v4)) => (u64::from(v4.to_bits()), false),
            Some(IpAddr::V6(v6)) => (u64::try_from(v6.to_bits() >> V6_PREFIX).unwrap_or(0), true),
            None => (u64::MAX, false),
        };
        // What differs in kind has a seed that differs in many bits.
        const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
        let seed = self.addresses ^ (kind << 1 | u64::from(is_v6)).wrapping_mul(SPREAD);
        RateKey::new(xxh3_64_with_seed(&number.to_le_bytes(), seed))
    }

    /// The key of a text. `kind`: what it is counted as.
    #[inline]
    #[must_use]
    pub fn of_text(&self, kind: u64, text: &[u8]) -> RateKey {
        let mut hasher = self.texts;
        // Never what an address begins with.
        hasher.write_u64(!kind);
        hasher.write(text);
        RateKey::new(hasher.finish())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_a_client_and_a_kind_keeps_counts_apart() {
        let secret = RateSecret::new(rand::random());
        let key = |kind, text: &str| secret.of_address(kind, Some(text.parse().expect("an address")));
        assert_eq!(key(0, "192.0.2.1"), key(0, "::ffff:192.0.2.1"));
        assert_eq!(key(0, "2001:db8:1:2:3:4:5:6"), key(0, "2001:db8:1:2::9"));
        assert_ne!(key(0, "2001:db8:1:2::9"), key(0, "2001:db8:1:3::9"));
        assert_ne!(key(0, "192.0.2.1"), key(0, "192.0.2.2"));
        assert_ne!(key(0, "192.0.2.1"), key(1, "192.0.2.1"));
        assert_ne!(key(0, "0.0.0.1"), key(0, "0:0:0:1::"));
        assert_eq!(secret.of_text(3, b"a"), secret.of_text(3, b"a"));
        assert_ne!(secret.of_text(3, b"a"), secret.of_text(4, b"a"));
        let other = RateSecret::new(rand::random());
        assert_ne!(secret.of_text(3, b"a"), other.of_text(3, b"a"), "nobody can foresee a key");
    }
}
