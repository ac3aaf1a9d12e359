//! A value with cache lines of its own.

use std::ops::Deref;

/// Keeps a word that many threads write away from words that many threads read.
///
/// 128 bytes: x86 prefetches lines in pairs, and some ARM cores have lines that long.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Padded<T>(
    /// The value.
    pub T,
);

impl<T> Deref for Padded<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_do_not_share_a_line() {
        assert_eq!(size_of::<[Padded<u64>; 2]>(), 256);
        assert_eq!(align_of::<Padded<u8>>(), 128);
        assert_eq!(*Padded(7), 7);
    }
}
