//! The hash that decides where a request goes: alike on every machine, in every build and process.
//!
//! It is part of what nodes agree on without talking: another function, or another release of it, would send nearly
//! every key elsewhere. XXH3 is specified and stable since xxHash 0.8.0.

use std::net::IpAddr;

use xxhash_rust::xxh3::xxh3_64;

/// XXH3 of `bytes`, 64 bits, seed 0.
#[inline]
#[must_use]
pub fn hash(bytes: &[u8]) -> u64 {
    xxh3_64(bytes)
}

/// The hash of an address. A v4 address mapped into v6 counts as v4: how a socket is bound changes no client's backend.
#[must_use]
pub fn hash_address(address: IpAddr) -> u64 {
    match address.to_canonical() {
        IpAddr::V4(v4) => hash(&v4.octets()),
        IpAddr::V6(v6) => hash(&v6.octets()),
    }
}

/// The `nth` number that follows from `key`; the 0th is `key` itself.
///
/// The numbers after it are those of the generator SplitMix64 (Steele, Lea and Flood: Fast Splittable Pseudorandom
/// Number Generators, OOPSLA 2014) that begins with `key`.
#[inline]
#[must_use]
pub(in crate::targets) fn again(key: u64, nth: u32) -> u64 {
    if nth == 0 {
        return key;
    }
    let mut word = key.wrapping_add(u64::from(nth).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

/// The place of `key` among `count`: its share of the whole range of numbers, without a division.
#[inline]
#[must_use]
pub(in crate::targets) fn scaled(key: u64, count: usize) -> usize {
    // Below `count`, so it fits.
    ((u128::from(key) * count as u128) >> 64) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A change of these numbers would move the keys of everybody who upgrades.
    #[test]
    fn the_hash_is_xxh3_and_stays_so() {
        assert_eq!(hash(b""), 0x2d06_8005_38d3_94c2);
        assert_eq!(hash(b"a"), 0xe6c6_32b6_1e96_4e1f);
        assert_eq!(hash(b"abc"), 0x78af_5f94_892f_3950);
        let long: Vec<u8> = (0..=255).collect();
        assert_eq!(hash(&long), 10_666_956_326_096_416_113);
    }

    #[test]
    fn what_follows_a_key_is_the_sequence_of_its_generator() {
        // The first numbers of SplitMix64 with the seed 1234567, as others print them.
        let known = [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423];
        assert_eq!([1, 2, 3].map(|nth| again(1_234_567, nth)), known);
        assert_eq!(again(1_234_567, 0), 1_234_567);
    }

    #[test]
    fn a_scaled_key_stays_below_the_count() {
        assert_eq!([0, u64::MAX / 2, u64::MAX].map(|key| scaled(key, 10)), [0, 4, 9]);
        assert_eq!(scaled(u64::MAX, 0), 0);
    }
}
