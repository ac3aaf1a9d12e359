//! Bytes of a head, eight at a time: where a name, a value or a target ends.
//!
//! A word holds eight bytes, the first in its lowest bits. Each test yields a mask with the highest bit of every
//! byte that is looked for, exactly: sums stay inside their byte because the highest bits were taken off before.

use super::parse::{is_control, is_token};

const ONES: u64 = u64::from_le_bytes([1; 8]);
const HIGH: u64 = ONES << 7;

/// From here on there may be a long value, such as a cookie.
const LONG: usize = 256;

/// What is behind the token that `rest` begins with, and whether that holds letters and hyphens alone.
#[inline(always)]
pub(super) fn token(mut rest: &[u8]) -> (&[u8], bool) {
    let mut plain = true;
    loop {
        rest = skip(rest, |word| !letters_and_hyphens(word));
        match rest {
            [byte, behind @ ..] if *byte != b':' && is_token(*byte) => rest = behind,
            _ => return (rest, plain),
        }
        plain = false;
    }
}

/// What is behind the value that `rest` begins with: it ends at the first control byte, a tab being none.
#[inline(always)]
pub(super) fn value(mut rest: &[u8]) -> &[u8] {
    loop {
        if rest.len() > LONG
            && let Some((eight, behind)) = rest.split_first_chunk::<8>()
            && controls(u64::from_le_bytes(*eight)) & HIGH == 0
        {
            rest = behind;
            // Twice as many at once tell whether there is any, but not where.
            while let Some((sixteen, behind)) = rest.split_first_chunk::<16>()
                && !sixteen.iter().fold(false, |any, &byte| any | is_control(byte))
            {
                rest = behind;
            }
        }
        rest = skip(rest, controls);
        match rest {
            [b'\t', behind @ ..] => rest = behind,
            _ => return rest,
        }
    }
}

/// What is behind the target that `rest` begins with: it ends at the first byte that no URI holds.
pub(super) fn target(rest: &[u8]) -> &[u8] {
    skip(rest, |word| !visible(word))
}

/// What is behind the blanks that `rest` begins with.
#[inline(always)]
pub(super) fn blanks(mut rest: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', behind @ ..] = rest {
        rest = behind;
    }
    rest
}

/// What is left of `rest` from the first byte on that `stop` marks. A zero must be marked.
#[inline(always)]
fn skip(mut rest: &[u8], stop: impl Fn(u64) -> u64) -> &[u8] {
    while let Some(eight) = rest.first_chunk::<8>() {
        let marked = stop(u64::from_le_bytes(*eight)) & HIGH;
        if marked != 0 {
            return &rest[first(marked)..];
        }
        rest = &rest[8..];
    }
    let marked = stop(tail(rest)) & HIGH;
    &rest[first(marked).min(rest.len())..]
}

/// Fewer than eight bytes as a word; zeros stand for those behind the last.
#[inline(never)]
fn tail(rest: &[u8]) -> u64 {
    match (rest.first_chunk::<4>(), rest.last_chunk::<4>()) {
        (Some(low), Some(high)) => {
            let (low, high) = (u32::from_le_bytes(*low), u32::from_le_bytes(*high));
            u64::from(low) | u64::from(high) << (8 * (rest.len() & 7) - 32)
        }
        _ => rest.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte)),
    }
}

/// How many bytes stand before the first that a mask marks, if it marks any.
#[inline(always)]
fn first(mask: u64) -> usize {
    ((mask.trailing_zeros() / 8) & 7) as usize
}

/// The bytes from `least` on, in a word without highest bits.
#[inline(always)]
fn from(seven: u64, least: u8) -> u64 {
    seven + ONES * u64::from(0x80 - least)
}

/// The bytes that are `byte` in the bits of `care`, in a word without highest bits.
#[inline(always)]
fn are(seven: u64, byte: u8, care: u8) -> u64 {
    HIGH - ((seven & (ONES * u64::from(care))) ^ (ONES * u64::from(byte)))
}

fn letters_and_hyphens(word: u64) -> u64 {
    let seven = word & !HIGH;
    let small = seven | (ONES * 0x20);
    (from(small, b'a') & !from(small, b'z' + 1) | are(seven, b'-', 0x7f)) & !word
}

fn controls(word: u64) -> u64 {
    let seven = word & !HIGH;
    (!from(seven, b' ') | from(seven, 0x7f)) & !word
}

/// RFC 3986 without `"`, `#`, `<` and `>`, and with some that browsers leave as they are.
fn visible(word: u64) -> u64 {
    let seven = word & !HIGH;
    let quotes = are(seven, b'"', !1 & 0x7f);
    let angles = are(seven, b'<', !2 & 0x7f);
    from(seven, b'!') & !(quotes | angles | from(seven, 0x7f) | word)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where the first byte stands for which `stop` holds, by the bytes.
    fn plainly(bytes: &[u8], at: usize, stop: impl Fn(u8) -> bool) -> usize {
        bytes.iter().skip(at).position(|&byte| stop(byte)).map_or(bytes.len(), |count| at + count)
    }

    fn is_outside(byte: u8) -> bool {
        !matches!(byte, b'!' | b'$'..=b';' | b'=' | b'?'..=b'~')
    }

    fn check(bytes: &[u8], at: usize) {
        let rest = &bytes[at..];
        let shown = rest.escape_ascii();
        let end = |rest: &[u8]| bytes.len() - rest.len();
        let expected = plainly(bytes, at, |byte| byte == b':' || !is_token(byte));
        let plain = bytes[at..expected].iter().all(|&byte| byte.is_ascii_alphabetic() || byte == b'-');
        let (behind, found) = token(rest);
        assert_eq!((end(behind), found), (expected, plain), "{shown}");
        assert_eq!(end(value(rest)), plainly(bytes, at, is_control), "{shown}");
        assert_eq!(end(target(rest)), plainly(bytes, at, is_outside), "{shown}");
        assert_eq!(end(blanks(rest)), plainly(bytes, at, |byte| byte != b' ' && byte != b'\t'), "{shown}");
    }

    #[test]
    fn every_byte_at_every_place_is_judged_as_it_is_alone() {
        for byte in 0..=u8::MAX {
            for around in [b'a', b'-', b'!', b'\t', b'~', 0x80, 0xff, byte] {
                for length in [1, 7, 8, 9, 17] {
                    for place in 0..length {
                        let mut bytes = vec![around; length];
                        bytes[place] = byte;
                        (0..=length).for_each(|at| check(&bytes, at));
                    }
                }
            }
        }
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_judged_as_each_is_alone(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..64)) {
            (0..=bytes.len()).for_each(|at| check(&bytes, at));
        }

        #[test]
        fn long_values_end_where_short_ones_do(length in LONG..2 * LONG, place in 0..LONG, byte: u8) {
            let mut bytes = vec![b'v'; length];
            bytes[place] = byte;
            check(&bytes, 0);
        }
    }
}
