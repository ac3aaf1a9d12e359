//! Percent-encoding in paths and queries (RFC 3986 §2.1).

/// Decodes the value of a query; what is no escape stays, and what is not UTF-8 is replaced.
#[must_use]
pub fn lenient(text: &str) -> String {
    String::from_utf8_lossy(&decoded(text).0).into_owned()
}

/// Decodes a segment of a path; `None`: a `%` begins no escape, or it is not UTF-8.
#[must_use]
pub fn strict(text: &str) -> Option<String> {
    let (bytes, is_whole) = decoded(text);
    String::from_utf8(bytes).ok().filter(|_| is_whole)
}

/// Encodes a text as one segment of a path.
#[must_use]
pub fn encoded(text: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    text.bytes()
        .map(|byte| if is_plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

/// The bytes, and whether every `%` began an escape.
fn decoded(text: &str) -> (Vec<u8>, bool) {
    let mut bytes = Vec::with_capacity(text.len());
    let (mut rest, mut is_whole) = (text.as_bytes(), true);
    while let Some((&first, behind)) = rest.split_first() {
        let digit = |at: usize| behind.get(at).and_then(|byte| char::from(*byte).to_digit(16));
        match (first, digit(0), digit(1)) {
            (b'%', Some(high), Some(low)) => {
                bytes.push(u8::try_from(high * 16 + low).unwrap_or(b'?'));
                rest = &behind[2..];
            }
            (other, ..) => {
                is_whole &= other != b'%';
                bytes.push(other);
                rest = behind;
            }
        }
    }
    (bytes, is_whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_must_be_right_and_a_query_is_taken_as_it_is() {
        assert_eq!(lenient("a%20b%2Fc.yaml"), "a b/c.yaml");
        assert_eq!((lenient("100%"), lenient("%zz%ff")), ("100%".into(), "%zz\u{fffd}".into()));
        assert_eq!(strict("%C3%BC%2f").as_deref(), Some("ü/"));
        assert_eq!(encoded("[::1]:80/ü"), "%5B%3A%3A1%5D%3A80%2F%C3%BC");
        assert_eq!(strict(&encoded("unix:/a b%")).as_deref(), Some("unix:/a b%"));
        for wrong in ["%", "a%2", "%zz", "%ff", "%c3"] {
            assert_eq!(strict(wrong), None, "{wrong}");
        }
    }
}
