//! Strings in the Huffman code (RFC 7541 §5.2).

use super::codes::{CODES, Code, LONG_CODES, SHORT, SHORT_CODES, SORTED};
use super::line::HpackError;

/// Bits of the shortest code, and of the longest.
const CODE_BITS: [usize; 2] = [5, 30];

/// Appends what `bytes` stand for to `out`.
///
/// # Errors
/// [`HpackError::TooLarge`]: these are more than `most` bytes. [`HpackError::Malformed`]: the end of the string is coded in it, or
/// what is behind the last code is no padding.
pub(super) fn decode(bytes: &[u8], most: usize, out: &mut Vec<u8>) -> Result<(), HpackError> {
    // Of a string that is too long in any case not a byte is looked at. At most 7 bits are padding.
    if (bytes.len() * 8).saturating_sub(7) / CODE_BITS[1] > most {
        return Err(HpackError::TooLarge);
    }
    let start = out.len();
    out.resize(start + (bytes.len() * 8 / CODE_BITS[0]).min(most), 0);
    let length = fill(bytes, &mut out[start..])?;
    out.truncate(start + length);
    Ok(())
}

/// Writes what `bytes` stand for to the front of `out`, and tells how much that is.
fn fill(bytes: &[u8], out: &mut [u8]) -> Result<usize, HpackError> {
    let (mut rest, mut at) = (bytes, 0);
    // The next bits, the first of them the highest, and how many there are.
    let (mut window, mut bits) = (0_u64, 0);
    while let Some((four, behind)) = rest.split_first_chunk::<4>() {
        rest = behind;
        window |= u64::from(u32::from_be_bytes(*four)) << (32 - bits);
        bits += 32;
        // No code is longer.
        while bits >= 32 {
            let (symbol, length) = first(window)?;
            *out.get_mut(at).ok_or(HpackError::TooLarge)? = symbol;
            at += 1;
            window <<= length;
            bits -= length;
        }
    }
    for &byte in rest {
        window |= u64::from(byte) << (56 - bits);
        bits += 8;
    }
    // From here on ones are behind the end: the padding consists of them, and they are the beginning of no code but the longest.
    window |= u64::MAX >> bits;
    while bits > 7 || window != u64::MAX {
        let (symbol, length) = first(window)?;
        if length > bits {
            return Err(HpackError::Malformed);
        }
        *out.get_mut(at).ok_or(HpackError::TooLarge)? = symbol;
        at += 1;
        window = !(!window << length);
        bits -= length;
    }
    Ok(at)
}

/// The byte whose code `window` begins with, and the length of that code in bits.
#[inline(always)]
fn first(window: u64) -> Result<(u8, u32), HpackError> {
    let short = SHORT_CODES[(window >> (64 - SHORT)) as usize];
    if short.length > 0 { Ok((short.symbol, u32::from(short.length))) } else { long(window) }
}

/// The same of a long code.
#[inline(never)]
fn long(window: u64) -> Result<(u8, u32), HpackError> {
    let word = (window >> 32) as u32;
    let of_length = LONG_CODES.iter().find(|codes| word <= codes.last).ok_or(HpackError::Malformed)?;
    let place = of_length.place + ((word - of_length.first) >> (32 - of_length.length)) as usize;
    // The end of a string, which no string holds, is the one symbol that is no byte.
    let symbol = SORTED.get(place).and_then(|&symbol| u8::try_from(symbol).ok());
    symbol.map(|symbol| (symbol, of_length.length)).ok_or(HpackError::Malformed)
}

/// The code of a byte, or where `LOWER` of the small letter for it.
#[inline(always)]
fn code<const LOWER: bool>(byte: u8) -> Code {
    CODES[usize::from(if LOWER { byte.to_ascii_lowercase() } else { byte })]
}

/// How many bytes [`encode`] makes of `bytes`.
pub(super) fn length<const LOWER: bool>(bytes: &[u8]) -> usize {
    let bits: usize = bytes.iter().map(|&byte| usize::from(code::<LOWER>(byte).length)).sum();
    bits.div_ceil(8)
}

/// Appends the code of `bytes`, or where `LOWER` of the small letters for them.
pub(super) fn encode<const LOWER: bool>(bytes: &[u8], out: &mut Vec<u8>) {
    // The bits that wait, in the low ones, and how many they are: fewer than 32 when a code is added.
    let (mut window, mut bits) = (0_u64, 0);
    for &byte in bytes {
        let Code { bits: code, length } = code::<LOWER>(byte);
        window = window << length | u64::from(code);
        bits += u32::from(length);
        if bits >= 32 {
            bits -= 32;
            out.extend_from_slice(&((window >> bits) as u32).to_be_bytes());
        }
    }
    // Ones behind the last code, up to the end of its byte.
    let padding = bits.wrapping_neg() % 8;
    window = window << padding | ((1 << padding) - 1);
    bits += padding;
    out.extend_from_slice(&(window << (64 - bits).min(63)).to_be_bytes()[..bits as usize / 8]);
}
