//! Items that clients give a weight (RFC 9110 §12.4.2): codings, languages.

/// Name and weight of an item, in thousandths. `None`: it has other parameters, or its weight is none.
#[must_use]
pub fn weighted(item: &[u8]) -> Option<(&[u8], u16)> {
    let Some(at) = memchr::memchr(b';', item) else { return Some((item, 1000)) };
    let (name, parameter) = (item[..at].trim_ascii_end(), item[at + 1..].trim_ascii());
    let value = match parameter {
        [b'q' | b'Q', b'=', value @ ..] => value,
        _ => return None,
    };
    // At most three digits behind the point, and never more than 1.
    let (whole, fraction) = match value {
        [whole] | [whole, b'.'] => (*whole, &[][..]),
        [whole, b'.', fraction @ ..] if fraction.len() <= 3 => (*whole, fraction),
        _ => return None,
    };
    let mut weight = match whole {
        b'0' => 0,
        b'1' => 1000,
        _ => return None,
    };
    for (digit, unit) in fraction.iter().zip([100, 10, 1]) {
        weight += u16::from(digit.checked_sub(b'0').filter(|digit| *digit <= 9)?) * unit;
    }
    (weight <= 1000).then_some((name, weight))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rfc9110_12_4_2_weights() {
        for (item, expected) in [
            ("gzip", Some(1000)),
            ("gzip;q=1", Some(1000)),
            ("gzip; q=0.", Some(0)),
            ("gzip;q=0.123", Some(123)),
            ("gzip;q=1.000", Some(1000)),
            ("gzip;q=1.001", None),
            ("gzip;q=0.1234", None),
            ("gzip;q=.5", None),
            ("gzip;q=", None),
            ("gzip;q=-1", None),
            ("gzip;x=1", None),
            ("gzip;q=1;x=1", None),
        ] {
            assert_eq!(weighted(item.as_bytes()).map(|(_, weight)| weight), expected, "{item}");
        }
    }
}
