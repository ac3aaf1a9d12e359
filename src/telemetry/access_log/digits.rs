//! Numbers as ASCII, straight into a line: `write!` costs several times as much per number.

use super::batch::{Left, LineSpace, put};

/// The digit of a value from 0 to 9.
pub(super) const fn ascii(value: u64) -> u8 {
    // The remainder is below ten, so nothing is cut.
    b'0' + (value % 10) as u8
}

/// The two digits of every number below 100.
const PAIRS: [[u8; 2]; 100] = {
    let mut pairs = [[0; 2]; 100];
    let mut value = 0;
    while value < 100 {
        pairs[value] = [ascii(value as u64 / 10), ascii(value as u64)];
        value += 1;
    }
    pairs
};

/// The last two digits of `value`.
pub(super) fn pair(value: u64) -> [u8; 2] {
    PAIRS[(value % 100) as usize]
}

/// The last three digits of `value`.
pub(super) fn triple(value: u64) -> [u8; 3] {
    let [tens, ones] = pair(value);
    [ascii(value / 100), tens, ones]
}

/// Writes `value` in decimal.
#[inline(always)]
pub(super) fn write(room: LineSpace<'_>, value: u64) -> Left<'_> {
    if value < 10 { put(room, &[ascii(value)]) } else { write_several(room, value) }
}

/// A value of more than one digit. The texts are of known length, so each is a store or two.
fn write_several(room: LineSpace<'_>, value: u64) -> Left<'_> {
    match value {
        0..100 => put(room, &pair(value)),
        100..1000 => put(room, &triple(value)),
        1000..100_000 => {
            let ([a, b], [c, d]) = (pair(value / 100), pair(value));
            if value < 10_000 {
                put(room, &[a, b, c, d])
            } else {
                put(room, &[ascii(value / 10_000), a, b, c, d])
            }
        }
        _ => write_long(room, value),
    }
}

/// A value of more digits.
fn write_long(room: LineSpace<'_>, mut value: u64) -> Left<'_> {
    let (here, rest) = room.split_at_mut_checked(value.checked_ilog10().map_or(1, |log| log as usize + 1))?;
    let mut pairs = here.rchunks_exact_mut(2);
    for place in &mut pairs {
        place.copy_from_slice(&pair(value));
        value /= 100;
    }
    if let [first] = pairs.into_remainder() {
        *first = ascii(value);
    }
    Some(rest)
}

/// Writes `nanos` in milliseconds with three decimals, cut to the microsecond.
#[inline(always)]
pub(super) fn write_millis(room: LineSpace<'_>, nanos: u64) -> Left<'_> {
    let micros = nanos / 1000;
    if micros >= 10_000 {
        return write_many_millis(room, micros);
    }
    let ([ones, tenths], [hundredths, thousandths]) = (pair(micros / 100), pair(micros));
    put(room, &[ones, b'.', tenths, hundredths, thousandths])
}

/// Ten milliseconds and more.
fn write_many_millis(room: LineSpace<'_>, micros: u64) -> Left<'_> {
    let room = write(room, micros / 1000)?;
    let [tenths, hundredths, thousandths] = triple(micros % 1000);
    put(room, &[b'.', tenths, hundredths, thousandths])
}

/// Writes `value` as 32 lower-case hex digits.
#[inline(always)]
pub(super) fn write_hex(room: LineSpace<'_>, value: u128) -> Left<'_> {
    let (here, rest) = room.split_first_chunk_mut()?;
    write_digits(here, &value.to_be_bytes());
    Some(rest)
}

/// A request's number as 32 lower-case hex digits.
#[inline]
#[must_use]
pub fn id_digits(id: u128) -> [u8; 32] {
    let mut text = [0; 32];
    write_digits(&mut text, &id.to_be_bytes());
    text
}

/// The two hex digits of each byte. Not a part of its caller, where the bytes would be numbers: from memory the
/// compiler takes eight of them at once.
#[inline(never)]
fn write_digits(text: &mut [u8; 32], bytes: &[u8; 16]) {
    for (two, &byte) in text.as_chunks_mut().0.iter_mut().zip(bytes) {
        // The four high bits into the first byte, the low ones into the second.
        let nibbles = (u16::from(byte) >> 4 | u16::from(byte) << 8) & 0x0f0f;
        // 1 in each byte that is above nine.
        let letters = ((nibbles + 0x0606) >> 4) & 0x0101;
        *two = (nibbles + 0x3030 + letters * u16::from(b'a' - b'0' - 10)).to_le_bytes();
    }
}

/// The digit of a value from 0 to 15.
pub(super) const fn hex(value: u8) -> u8 {
    value + b'0' + if value > 9 { b'a' - b'0' - 10 } else { 0 }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::telemetry::access_log::batch::text_of;

    proptest! {
        #[test]
        fn digits_are_what_the_standard_library_prints(value: u64, cut in 0..64, long: u128, nanos: u64) {
            let value = value >> cut;
            prop_assert_eq!(text_of(|room| write(room, value)), value.to_string());
            prop_assert_eq!(text_of(|room| write_hex(room, long)), format!("{long:032x}"));
            let millis = format!("{}.{:03}", nanos / 1_000_000, nanos / 1000 % 1000);
            prop_assert_eq!(text_of(|room| write_millis(room, nanos)), millis);
        }
    }

    #[test]
    fn every_length_has_its_digits() {
        let edges = (0..20).flat_map(|zeros| {
            let power = 10_u64.pow(zeros);
            [power - 1, power, power + 1]
        });
        for value in edges.chain([u64::MAX]) {
            assert_eq!(text_of(|room| write(room, value)), value.to_string());
        }
        assert_eq!(text_of(|room| write_millis(room, 0)), "0.000");
    }
}
