//! The sixteen bytes that are looked at at once.

/// Sixteen bytes, the first in the lowest bits of `low`.
#[derive(Clone, Copy)]
pub(super) struct Block {
    pub(super) low: u64,
    pub(super) high: u64,
}

impl Block {
    #[inline(always)]
    pub(super) fn of(bytes: &[u8; 16]) -> Block {
        let both = u128::from_le_bytes(*bytes);
        Block { low: both as u64, high: (both >> 64) as u64 }
    }

    /// Fewer than sixteen bytes; zeros stand for those behind the last.
    #[inline(always)]
    pub(super) fn tail(bytes: &[u8]) -> Block {
        debug_assert!(bytes.len() < 16);
        if let (Some(first), Some(last)) = (bytes.first_chunk::<8>(), bytes.last_chunk::<8>()) {
            let twice = 8 * (16 - bytes.len() as u32);
            let high = u64::from_le_bytes(*last).checked_shr(twice).unwrap_or_default();
            return Block { low: u64::from_le_bytes(*first), high };
        }
        let low = match (bytes.first_chunk::<4>(), bytes.last_chunk::<4>()) {
            (Some(first), Some(last)) => {
                let (first, last) = (u32::from_le_bytes(*first), u32::from_le_bytes(*last));
                u64::from(first) | u64::from(last) << (8 * (bytes.len() & 7) - 32)
            }
            _ => bytes.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte)),
        };
        Block { low, high: 0 }
    }
}
