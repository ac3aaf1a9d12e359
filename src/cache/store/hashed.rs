//! Tables whose keys are hashes.

use std::hash::{BuildHasherDefault, Hasher};

/// What is a hash already is not hashed once more.
pub(super) type Hashed = BuildHasherDefault<AsItIs>;

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct AsItIs(u64);

impl Hasher for AsItIs {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0 = bytes.iter().fold(self.0, |hash, byte| hash.rotate_left(8) ^ u64::from(*byte));
    }

    fn write_u128(&mut self, hash: u128) {
        self.0 = hash as u64;
    }
}
