//! What things weigh: the memory that they take.

use crate::chunk::{MAPPED, Mapping, page};

/// The part of a block that lies free beside it: where small objects come and go without an end, the allocator's pages are not full. After a
/// minute of that a fifth of what is used is free beside it.
const BETWEEN: u64 = 8;

/// Bytes of memory behind an allocation of so many.
pub(super) const fn block(bytes: u64) -> u64 {
    let size = size(bytes);
    size + size / BETWEEN
}

/// Bytes of the block for so many: allocators have four sizes for each doubling.
const fn size(bytes: u64) -> u64 {
    if bytes <= 64 {
        return bytes.next_multiple_of(16);
    }
    let step = (bytes - 1).ilog2() - 2;
    bytes.next_multiple_of(1 << step)
}

/// The same of a `Vec` of bytes, or a `Box`; nothing, if it is empty.
pub(super) const fn bytes(capacity: usize) -> u64 {
    block(capacity as u64)
}

/// The same of a chunk of a body; nothing, if it is empty.
pub(super) fn chunk(length: u64) -> u64 {
    match length {
        0 => 0,
        // An `Arc` has two counts beside what is in it.
        short if short < MAPPED as u64 => block(16 + short),
        long => long.next_multiple_of(page() as u64) + block(16 + size_of::<Mapping>() as u64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_four_for_each_doubling() {
        let sizes: Vec<u64> = (0..).map_while(|at| (at <= 1_024).then(|| size(at))).collect();
        let mut kinds = sizes.clone();
        kinds.dedup();
        assert_eq!(
            kinds,
            [
                0, 16, 32, 48, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384, 448, 512, 640, 768, 896,
                1_024
            ]
        );
        assert!(sizes.iter().zip(0..).all(|(size, bytes)| *size >= bytes));
        assert_eq!((size(64 * 1024 - 48), size(64 * 1024 + 1)), (64 * 1024, 80 * 1024));
        assert_eq!((block(0), block(1), block(1_000)), (0, 18, 1_152));
    }
}
