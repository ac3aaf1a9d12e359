//! Bytes of a head, sixteen at a time: where a name, a value or a target ends.
//!
//! Each test of a block yields a mask with one bit for each byte, the first in the lowest bit, that is set when the byte
//! ends what is looked for. There are two makes of these tests: by SSE2, and by words for all other processors.

use super::classes::is_token;
use block::Block;

mod block;
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
mod sse2;
#[cfg(any(test, not(all(target_arch = "x86_64", target_feature = "sse2"))))]
mod words;

#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
use sse2 as masks;
#[cfg(not(all(target_arch = "x86_64", target_feature = "sse2")))]
use words as masks;

/// What is behind the token that `rest` begins with, and whether that holds letters and hyphens alone.
#[inline(always)]
pub(in crate::proxy::http) fn token(rest: &[u8]) -> (&[u8], bool) {
    let behind = skip(rest, masks::not_letters_or_hyphens);
    match behind.first() {
        Some(&byte) if is_token(byte) => (skip(behind, masks::outside_token), false),
        Some(_) | None => (behind, true),
    }
}

/// How many letters and hyphens `rest` begins with, as far as its first block shows; none when it has no whole block.
#[inline(always)]
pub(super) fn letters_and_hyphens(rest: &[u8]) -> usize {
    let Some(block) = rest.first_chunk() else { return 0 };
    (masks::not_letters_or_hyphens(Block::of(block)) | 1 << 16).trailing_zeros() as usize
}

/// How many bytes stand before the first control byte, tabs among them.
#[inline(always)]
pub(super) fn to_control(bytes: &[u8]) -> usize {
    let end = skip(bytes, masks::controls);
    bytes.len() - end.len()
}

/// What is behind the value that `rest` begins with: it ends at the first control byte, a tab being none.
#[inline(always)]
pub(in crate::proxy::http) fn value(rest: &[u8]) -> &[u8] {
    skip(rest, masks::controls_but_tab)
}

/// What is behind the target that `rest` begins with: it ends at the first byte that no URI holds.
pub(super) fn target(rest: &[u8]) -> &[u8] {
    skip(rest, masks::outside_target)
}

/// What is behind the blanks that `rest` begins with.
#[inline(always)]
pub(super) fn blanks(rest: &[u8]) -> &[u8] {
    match rest {
        [b' ' | b'\t', b' ' | b'\t', ..] => skip(rest, masks::not_blanks),
        [b' ' | b'\t', behind @ ..] => behind,
        _ => rest,
    }
}

/// `value` without the blanks at its end.
#[inline(always)]
pub(super) fn without_blanks_behind(mut value: &[u8]) -> &[u8] {
    while let Some((before, last)) = value.split_last_chunk::<16>() {
        let others = masks::not_blanks(Block::of(last));
        if others != 0 {
            return &value[..before.len() + (32 - others.leading_zeros() as usize).min(16)];
        }
        value = before;
    }
    while let [before @ .., b' ' | b'\t'] = value {
        value = before;
    }
    value
}

/// What is left of `rest` from the first byte on that `stop` marks. A zero must be marked.
#[inline(always)]
fn skip(mut rest: &[u8], stop: impl Fn(Block) -> u32) -> &[u8] {
    while let Some(bytes) = rest.first_chunk::<16>() {
        let marked = stop(Block::of(bytes));
        if marked != 0 {
            return &rest[(marked.trailing_zeros() & 15) as usize..];
        }
        rest = &rest[16..];
    }
    let marked = stop(Block::tail(rest));
    &rest[(marked.trailing_zeros() as usize).min(rest.len())..]
}

#[cfg(test)]
mod tests {
    use super::super::classes::is_control;
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
        let name = rest.iter().take_while(|byte| byte.is_ascii_alphabetic() || **byte == b'-').count();
        let name = if rest.len() < 16 { 0 } else { name.min(16) };
        assert_eq!(letters_and_hyphens(rest), name, "{shown}");
        let controls = |byte| is_control(byte) || byte == b'\t';
        assert_eq!(at + to_control(rest), plainly(bytes, at, controls), "{shown}");
        assert_eq!(end(target(rest)), plainly(bytes, at, is_outside), "{shown}");
        let blocks =
            rest.chunks(16).map(|part| part.first_chunk().map_or_else(|| Block::tail(part), Block::of));
        for block in blocks {
            assert_eq!(masks::not_letters_or_hyphens(block), words::not_letters_or_hyphens(block), "{shown}");
            assert_eq!(masks::controls(block), words::controls(block), "{shown}");
            assert_eq!(masks::outside_target(block), words::outside_target(block), "{shown}");
            assert_eq!(masks::outside_token(block), words::outside_token(block), "{shown}");
            assert_eq!(masks::controls_but_tab(block), words::controls_but_tab(block), "{shown}");
            assert_eq!(masks::not_blanks(block), words::not_blanks(block), "{shown}");
        }
        assert_eq!(end(blanks(rest)), plainly(bytes, at, |byte| byte != b' ' && byte != b'\t'), "{shown}");
        let behind = rest.iter().rev().take_while(|&&byte| byte == b' ' || byte == b'\t').count();
        assert_eq!(without_blanks_behind(rest).len(), rest.len() - behind, "{shown}");
    }

    #[test]
    fn every_byte_at_every_place_is_judged_as_it_is_alone() {
        for byte in 0..=u8::MAX {
            for around in [b'a', b'-', b'!', b'\t', b'~', 0x80, 0xff, byte] {
                for length in [1, 9, 16, 17] {
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
    }
}
