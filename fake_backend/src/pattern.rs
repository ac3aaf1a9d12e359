//! The bytes of generated bodies: 61 characters over and over. 61 is prime, so a block that a proxy loses,
//! repeats or moves by any power of two shows as a difference. Used by every generated body and by tests.

use std::sync::OnceLock;

const CHARACTERS: &[u8; 61] = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXY";

/// How many bytes the shared block holds beyond one period, so that a slice of this length can start at any phase.
pub(crate) const SLICE: usize = 32 * 1024;

/// The byte at this offset of every generated body.
#[must_use]
pub fn pattern_byte(offset: u64) -> u8 {
    CHARACTERS[(offset % CHARACTERS.len() as u64) as usize]
}

/// The first `length` bytes of a generated body, to compare with what arrived.
#[must_use]
pub fn pattern(length: usize) -> Vec<u8> {
    (0..length as u64).map(pattern_byte).collect()
}

/// Up to [`SLICE`] bytes of the pattern from `offset` on, without making them: all fakes share one block.
pub(crate) fn pattern_slice(offset: u64, length: u64) -> &'static [u8] {
    static BLOCK: OnceLock<Vec<u8>> = OnceLock::new();
    let block = BLOCK.get_or_init(|| pattern(SLICE + CHARACTERS.len()));
    let start = (offset % CHARACTERS.len() as u64) as usize;
    let length = usize::try_from(length).unwrap_or(SLICE).min(SLICE);
    &block[start..start + length]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_continue_each_other() {
        let whole = pattern(100_000);
        let mut joined = Vec::new();
        while joined.len() < whole.len() {
            let left = (whole.len() - joined.len()) as u64;
            joined.extend_from_slice(pattern_slice(joined.len() as u64, left.min(1_000 + left % 7)));
        }
        assert!(joined == whole);
    }
}
