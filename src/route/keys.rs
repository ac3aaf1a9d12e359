//! Maps from hosts and paths of routes.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use xxhash_rust::xxh3::xxh3_64_with_seed;

/// A map whose keys come from a config. No stranger chooses them, so none can make them collide, and whoever asks for others meets at
/// most as many as there are: a fast hash will do.
pub(super) type KeyMap<V> = HashMap<Box<[u8]>, V, BuildHasherDefault<KeyHasher>>;

/// XXH3 of one run of bytes.
#[derive(Default)]
pub(super) struct KeyHasher(u64);

impl Hasher for KeyHasher {
    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        self.0 = xxh3_64_with_seed(bytes, self.0);
    }

    /// The length, which comes before the bytes.
    #[inline]
    fn write_usize(&mut self, length: usize) {
        self.0 ^= length as u64;
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_found_and_told_apart() {
        let key = |number: u32| number.to_string().into_bytes().into_boxed_slice();
        let map: KeyMap<u32> = (0..10_000).map(|number| (key(number), number)).collect();
        assert_eq!(map.len(), 10_000);
        for number in 0..10_000 {
            assert_eq!(map.get(&key(number)), Some(&number));
        }
        assert_eq!(map.get(&b"x"[..]), None);
    }
}
