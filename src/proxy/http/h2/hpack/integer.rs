//! Integers (RFC 7541 §5.1).

use super::line::HpackError;

/// Largest number that is read. Whatever a block speaks of is far smaller.
const MOST: u64 = 1 << 28;
/// Most bytes of a number behind its prefix: so many hold [`MOST`], with a zero or two behind.
const BYTES: u32 = 5;

/// Reads the number that `rest` begins with, in the `prefix` (1 to 8) low bits of its first byte, and steps over it.
///
/// # Errors
/// [`HpackError::Malformed`]: it is cut, longer or larger than any that means something.
#[inline]
pub(super) fn read(rest: &mut &[u8], prefix: u32) -> Result<usize, HpackError> {
    let [first, behind @ ..] = *rest else { return Err(HpackError::Malformed) };
    *rest = behind;
    let full = u8::MAX >> (8 - prefix);
    let value = first & full;
    if value < full { Ok(usize::from(value)) } else { long(rest, full) }
}

/// The same from its second byte on: its prefix is full.
#[cold]
fn long(rest: &mut &[u8], full: u8) -> Result<usize, HpackError> {
    let mut value = u64::from(full);
    for at in 0..BYTES {
        let [byte, behind @ ..] = *rest else { return Err(HpackError::Malformed) };
        *rest = behind;
        value += u64::from(byte & 0x7f) << (7 * at);
        if byte & 0x80 == 0 {
            let small = Some(value).filter(|&value| value <= MOST);
            return small.and_then(|value| usize::try_from(value).ok()).ok_or(HpackError::Malformed);
        }
    }
    Err(HpackError::Malformed)
}

/// Appends a number in the `prefix` (1 to 8) low bits of a byte, of which `first` are the others, and in bytes behind it.
#[inline]
pub(super) fn write(out: &mut Vec<u8>, first: u8, prefix: u32, value: usize) {
    let full = u8::MAX >> (8 - prefix);
    if value < usize::from(full) {
        return out.push(first | value as u8);
    }
    out.push(first | full);
    let mut left = value - usize::from(full);
    while left >= 0x80 {
        out.push(left as u8 | 0x80);
        left >>= 7;
    }
    out.push(left as u8);
}
