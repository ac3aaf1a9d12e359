//! Eight bytes at once in a word, for every processor.
//!
//! Each test yields a word with the highest bit of every byte that is looked for, exactly: sums stay inside their byte
//! because the highest bits were taken off before.

use super::block::Block;

const ONES: u64 = u64::from_le_bytes([1; 8]);
const HIGH: u64 = ONES << 7;

/// The bytes that are neither letters nor hyphens.
#[inline(always)]
pub(super) fn not_letters_or_hyphens(block: Block) -> u32 {
    bits(block, |word| {
        let seven = word & !HIGH;
        let small = seven | (ONES * 0x20);
        !((from(small, b'a') & !from(small, b'z' + 1) | are(seven, b'-', 0x7f)) & !word)
    })
}

/// The control bytes, tabs among them.
#[inline(always)]
pub(super) fn controls(block: Block) -> u32 {
    bits(block, |word| {
        let seven = word & !HIGH;
        (!from(seven, b' ') | from(seven, 0x7f)) & !word
    })
}

/// The bytes that no token holds (RFC 9110 §5.6.2).
#[inline(always)]
pub(super) fn outside_token(block: Block) -> u32 {
    bits(block, |word| {
        let seven = word & !HIGH;
        let within = |least, most| from(seven, least) & !from(seven, most + 1);
        let is = |byte| are(seven, byte, 0x7f);
        let ranges = within(b':', b'@') | within(b'[', b']') | within(b'(', b')');
        let marks = is(b'"') | is(b',') | is(b'/') | is(b'{') | is(b'}');
        !(from(seven, b'!') & !(ranges | marks | from(seven, 0x7f) | word))
    })
}

/// The control bytes that no value holds: tabs are none of them.
#[inline(always)]
pub(super) fn controls_but_tab(block: Block) -> u32 {
    bits(block, |word| {
        let seven = word & !HIGH;
        (!from(seven, b' ') & !are(seven, b'\t', 0x7f) | from(seven, 0x7f)) & !word
    })
}

/// The bytes that are neither blanks nor tabs.
#[inline(always)]
pub(super) fn not_blanks(block: Block) -> u32 {
    bits(block, |word| {
        let seven = word & !HIGH;
        !((are(seven, b' ', 0x7f) | are(seven, b'\t', 0x7f)) & !word)
    })
}

/// The bytes that no target holds: see [`super::target`].
#[inline(always)]
pub(super) fn outside_target(block: Block) -> u32 {
    bits(block, |word| {
        let seven = word & !HIGH;
        let quotes = are(seven, b'"', !1 & 0x7f);
        let angles = are(seven, b'<', !2 & 0x7f);
        !(from(seven, b'!') & !(quotes | angles | from(seven, 0x7f) | word))
    })
}

/// The highest bits of all bytes of a test's words, side by side.
#[inline(always)]
fn bits(block: Block, test: impl Fn(u64) -> u64) -> u32 {
    // The factor moves each of the eight bits to its place in the highest byte, and no two bits meet below it.
    let gather = |word: u64| ((test(word) & HIGH) >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56;
    (gather(block.low) | gather(block.high) << 8) as u32
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
