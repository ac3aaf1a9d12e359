//! Sixteen bytes at once by SSE2, which every x86-64 has.
//!
//! The instructions take values and touch no memory; that the processor has them is all that a caller answers for. This
//! module is part of a build only where the compiler takes SSE2 for granted itself.

#![expect(unsafe_code, reason = "a call of instructions that the compiler was not told of in each caller")]

use std::arch::x86_64::{
    __m128i, _mm_add_epi8, _mm_and_si128, _mm_cmpeq_epi8, _mm_cmpgt_epi8, _mm_min_epu8, _mm_movemask_epi8,
    _mm_or_si128, _mm_set_epi64x, _mm_set1_epi8,
};

use super::block::Block;

/// The bytes that are neither letters nor hyphens.
#[inline(always)]
pub(super) fn not_letters_or_hyphens(block: Block) -> u32 {
    #[inline]
    #[target_feature(enable = "sse2")]
    fn mask(block: Block) -> u32 {
        let bytes = vector(block);
        let letters = within(_mm_or_si128(bytes, all(0x20)), b'a', b'z');
        let hyphens = _mm_cmpeq_epi8(bytes, all(b'-'));
        bits(_mm_or_si128(letters, hyphens)) ^ 0xffff
    }
    // SAFETY: the processor has SSE2: this module is not built otherwise.
    unsafe { mask(block) }
}

/// The control bytes, tabs among them.
#[inline(always)]
pub(super) fn controls(block: Block) -> u32 {
    #[inline]
    #[target_feature(enable = "sse2")]
    fn mask(block: Block) -> u32 {
        let bytes = vector(block);
        let low = _mm_cmpeq_epi8(_mm_min_epu8(bytes, all(0x1f)), bytes);
        bits(_mm_or_si128(low, _mm_cmpeq_epi8(bytes, all(0x7f))))
    }
    // SAFETY: the processor has SSE2: this module is not built otherwise.
    unsafe { mask(block) }
}

/// The bytes that no token holds (RFC 9110 §5.6.2).
#[inline(always)]
pub(super) fn outside_token(block: Block) -> u32 {
    #[inline]
    #[target_feature(enable = "sse2")]
    fn mask(block: Block) -> u32 {
        let bytes = vector(block);
        let visible = within(bytes, b'!', b'~');
        let is = |byte| _mm_cmpeq_epi8(bytes, all(byte));
        let colon_to_at = within(bytes, b':', b'@');
        let brackets = within(bytes, b'[', b']');
        let parentheses = _mm_cmpeq_epi8(_mm_and_si128(bytes, all(!1)), all(b'('));
        let ranges = _mm_or_si128(_mm_or_si128(colon_to_at, brackets), parentheses);
        let marks = _mm_or_si128(_mm_or_si128(is(b'"'), is(b',')), is(b'/'));
        let braces = _mm_or_si128(is(b'{'), is(b'}'));
        bits(visible) ^ 0xffff | bits(_mm_or_si128(_mm_or_si128(ranges, marks), braces))
    }
    // SAFETY: the processor has SSE2: this module is not built otherwise.
    unsafe { mask(block) }
}

/// The control bytes that no value holds: tabs are none of them.
#[inline(always)]
pub(super) fn controls_but_tab(block: Block) -> u32 {
    #[inline]
    #[target_feature(enable = "sse2")]
    fn tabs(block: Block) -> u32 {
        bits(_mm_cmpeq_epi8(vector(block), all(b'\t')))
    }
    // SAFETY: the processor has SSE2: this module is not built otherwise.
    controls(block) & !unsafe { tabs(block) }
}

/// The bytes that are neither blanks nor tabs.
#[inline(always)]
pub(super) fn not_blanks(block: Block) -> u32 {
    #[inline]
    #[target_feature(enable = "sse2")]
    fn mask(block: Block) -> u32 {
        let bytes = vector(block);
        let is = |byte| _mm_cmpeq_epi8(bytes, all(byte));
        bits(_mm_or_si128(is(b' '), is(b'\t'))) ^ 0xffff
    }
    // SAFETY: the processor has SSE2: this module is not built otherwise.
    unsafe { mask(block) }
}

/// The bytes that no target holds: see [`super::target`].
#[inline(always)]
pub(super) fn outside_target(block: Block) -> u32 {
    #[inline]
    #[target_feature(enable = "sse2")]
    fn mask(block: Block) -> u32 {
        let bytes = vector(block);
        let visible = within(bytes, b'!', b'~');
        let quotes = _mm_cmpeq_epi8(_mm_and_si128(bytes, all(!1)), all(b'"'));
        let angles = _mm_cmpeq_epi8(_mm_and_si128(bytes, all(!2)), all(b'<'));
        bits(visible) ^ 0xffff | bits(_mm_or_si128(quotes, angles))
    }
    // SAFETY: the processor has SSE2: this module is not built otherwise.
    unsafe { mask(block) }
}

#[inline]
#[target_feature(enable = "sse2")]
fn vector(block: Block) -> __m128i {
    _mm_set_epi64x(block.high as i64, block.low as i64)
}

#[inline]
#[target_feature(enable = "sse2")]
fn all(byte: u8) -> __m128i {
    _mm_set1_epi8(byte as i8)
}

/// The bytes from `least` to `most`. Bytes are compared as signed numbers: `least` is moved to the least of them.
#[inline]
#[target_feature(enable = "sse2")]
fn within(bytes: __m128i, least: u8, most: u8) -> __m128i {
    let moved = _mm_add_epi8(bytes, all(0x80u8.wrapping_sub(least)));
    _mm_cmpgt_epi8(all(0x80 + (most - least) + 1), moved)
}

#[inline]
#[target_feature(enable = "sse2")]
fn bits(bytes: __m128i) -> u32 {
    _mm_movemask_epi8(bytes) as u32
}
