//! Numbers as ASCII, straight into a buffer: `write!` costs several times as much per number.

use std::time::Duration;

use crate::tick::nanos;

/// The digit of a value from 0 to 9.
pub(super) const fn ascii(value: u64) -> u8 {
    // The remainder is below ten, so nothing is cut.
    b'0' + (value % 10) as u8
}

/// Appends `value` in decimal.
pub(super) fn write(out: &mut Vec<u8>, value: u64) {
    write_padded(out, value, 1);
}

/// Appends `value` in decimal with at least `width` digits (at most 20).
pub(super) fn write_padded(out: &mut Vec<u8>, mut value: u64, width: usize) {
    // u64::MAX has 20 digits.
    let mut digits = [b'0'; 20];
    let mut first = digits.len();
    while value > 0 {
        first -= 1;
        digits[first] = ascii(value);
        value /= 10;
    }
    out.extend_from_slice(&digits[first.min(digits.len() - width.min(digits.len()))..]);
}

/// Appends `span` in milliseconds with three decimals, cut to the microsecond.
pub(super) fn write_millis(out: &mut Vec<u8>, span: Duration) {
    let micros = nanos(span) / 1000;
    write(out, micros / 1000);
    out.push(b'.');
    write_padded(out, micros % 1000, 3);
}

/// Appends `value` as 32 lower-case hex digits.
pub(super) fn write_hex(out: &mut Vec<u8>, value: u128) {
    let mut text = [0; 32];
    for (place, byte) in value.to_be_bytes().into_iter().enumerate() {
        text[2 * place] = HEX[usize::from(byte >> 4)];
        text[2 * place + 1] = HEX[usize::from(byte & 15)];
    }
    out.extend_from_slice(&text);
}

/// The hex digits.
pub(super) const HEX: &[u8; 16] = b"0123456789abcdef";

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn digits_are_what_the_standard_library_prints(value: u64, long: u128, width in 0_usize..=20, nanos: u64) {
            let mut out = Vec::new();
            write(&mut out, value);
            out.push(b' ');
            write_padded(&mut out, value, width);
            out.push(b' ');
            write_hex(&mut out, long);
            out.push(b' ');
            write_millis(&mut out, Duration::from_nanos(nanos));
            let millis = format!("{}.{:03}", nanos / 1_000_000, nanos / 1000 % 1000);
            let expected = format!("{value} {value:0width$} {long:032x} {millis}");
            prop_assert_eq!(String::from_utf8(out).expect("ASCII"), expected);
        }
    }

    #[test]
    fn zero_has_one_digit() {
        let mut out = Vec::new();
        write(&mut out, 0);
        write(&mut out, u64::MAX);
        write_millis(&mut out, Duration::ZERO);
        assert_eq!(out, b"0184467440737095516150.000");
    }
}
