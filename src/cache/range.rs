//! Ranges of bytes (RFC 9110 §14).
//!
//! One range is answered with a part. Several are answered with the whole (§14.2 leaves that to the server): a multipart body could not
//! be sent as the stored bytes are, and lists of many small ranges are an old way to make servers work for nothing. Programs that fetch
//! in pieces ask for one at a time.

use super::fields::items;

/// What a `Range` asks for of an object whose length is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ByteRange {
    /// All of it: an unknown unit, several ranges, or something that is no range at all.
    Whole,
    /// From the first byte to the last one, which is in it.
    Part {
        /// The first byte.
        first: u64,
        /// The last byte, which is in it.
        last: u64,
    },
    /// Nothing that there is.
    Unsatisfiable,
}

/// What a `Range` line asks for of an object of `length` bytes.
#[must_use]
pub fn byte_range(value: &[u8], length: u64) -> ByteRange {
    let Some((unit, set)) = value.split_at_checked(6) else { return ByteRange::Whole };
    if !unit.eq_ignore_ascii_case(b"bytes=") {
        return ByteRange::Whole;
    }
    let mut ranges = items(set);
    let (Some(range), None) = (ranges.next(), ranges.next()) else { return ByteRange::Whole };
    let Some(dash) = memchr::memchr(b'-', range) else { return ByteRange::Whole };
    let (first, last) = (&range[..dash], &range[dash + 1..]);
    match (place(first), place(last)) {
        (Place::Absent, Place::At(0)) => ByteRange::Unsatisfiable,
        // The end of nothing is all of it.
        (Place::Absent, Place::At(_)) if length == 0 => ByteRange::Whole,
        (Place::Absent, Place::At(count)) => {
            ByteRange::Part { first: length.saturating_sub(count), last: length - 1 }
        }
        (Place::At(_), Place::At(_)) if is_less(last, first) => ByteRange::Whole,
        (Place::At(first), Place::At(_) | Place::Absent) if first >= length => ByteRange::Unsatisfiable,
        (Place::At(first), Place::At(last)) => ByteRange::Part { first, last: last.min(length - 1) },
        (Place::At(first), Place::Absent) => ByteRange::Part { first, last: length - 1 },
        _ => ByteRange::Whole,
    }
}

enum Place {
    Absent,
    /// A number that does not fit is the greatest: no object is as long.
    At(u64),
    None,
}

fn place(text: &[u8]) -> Place {
    if text.is_empty() {
        return Place::Absent;
    }
    let mut number = 0u64;
    for &byte in text {
        let Some(digit) = byte.checked_sub(b'0').filter(|digit| *digit <= 9) else { return Place::None };
        number = number.saturating_mul(10).saturating_add(digit.into());
    }
    Place::At(number)
}

/// Whether one number is less than another one, also where neither fits.
fn is_less(one: &[u8], other: &[u8]) -> bool {
    let size = |digits: &[u8]| digits.iter().skip_while(|digit| **digit == b'0').count();
    let (size_one, size_other) = (size(one), size(other));
    (size_one, &one[one.len() - size_one..]) < (size_other, &other[other.len() - size_other..])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn rfc9110_14_1_2_byte_ranges() {
        use ByteRange::{Part, Unsatisfiable, Whole};
        let part = |first, last| Part { first, last };
        for (value, length, expected) in [
            ("bytes=0-1", 11, part(0, 1)),
            ("Bytes=1-", 11, part(1, 10)),
            ("bytes=-1", 11, part(10, 10)),
            ("bytes=-100", 11, part(0, 10)),
            ("bytes=5-100", 11, part(5, 10)),
            ("bytes=10-10", 11, part(10, 10)),
            ("bytes= 0-1 ,", 11, part(0, 1)),
            ("bytes=00-01", 11, part(0, 1)),
            ("bytes=0-99999999999999999999999", 11, part(0, 10)),
            ("bytes=-99999999999999999999999", 11, part(0, 10)),
            ("bytes=11-", 11, Unsatisfiable),
            ("bytes=11-12", 11, Unsatisfiable),
            ("bytes=99999999999999999999999-", 11, Unsatisfiable),
            ("bytes=-0", 11, Unsatisfiable),
            ("bytes=0-", 0, Unsatisfiable),
            ("bytes=-5", 0, Whole),
            ("bytes=2-1", 11, Whole),
            ("bytes=12-11", 11, Whole),
            ("bytes=0-0000000000000000000000001", 11, part(0, 1)),
            ("bytes=0-0,2-2", 11, Whole),
            ("bytes=", 11, Whole),
            ("bytes=-", 11, Whole),
            ("bytes=1", 11, Whole),
            ("bytes=a-b", 11, Whole),
            ("bytes=+1-2", 11, Whole),
            ("bytes=1 - 2", 11, Whole),
            ("bytes 0-1", 11, Whole),
            ("items=0-1", 11, Whole),
            ("", 11, Whole),
        ] {
            assert_eq!(byte_range(value.as_bytes(), length), expected, "{value} of {length}");
        }
    }

    #[test]
    fn a_range_that_ends_before_it_begins_is_none_also_where_its_numbers_do_not_fit() {
        let (more, less) = ("3333333333333333333333333", "3333333333333333333333332");
        let of = |first: &str, last: &str| byte_range(format!("bytes={first}-{last}").as_bytes(), 11);
        assert_eq!(of(more, less), ByteRange::Whole);
        assert_eq!(of(more, &less[1..]), ByteRange::Whole);
        assert_eq!(of(&format!("0{more}"), less), ByteRange::Whole);
        assert_eq!(of(less, more), ByteRange::Unsatisfiable);
        assert_eq!(of(more, more), ByteRange::Unsatisfiable);
    }

    proptest! {
        #[test]
        fn parts_lie_inside(value in "bytes=[0-9]{0,3}-[0-9]{0,3}", length in 0u64..300) {
            if let ByteRange::Part { first, last } = byte_range(value.as_bytes(), length) {
                prop_assert!(first <= last && last < length);
            }
        }
    }
}
