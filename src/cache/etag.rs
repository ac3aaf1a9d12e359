//! Entity tags (RFC 9110 §8.8.3).

/// What is the same by the weak comparison: tags that differ in their weakness at most. One that is none is the same as the very same
/// bytes.
#[must_use]
pub(super) fn is_weakly_same(one: &[u8], other: &[u8]) -> bool {
    opaque(one) == opaque(other)
}

/// What is the same by the strong comparison: two valid tags, none of them weak.
#[must_use]
pub(super) fn is_strongly_same(one: &[u8], other: &[u8]) -> bool {
    one == other && is_strong(one)
}

/// Whether a tag is valid and not weak.
#[must_use]
pub(super) fn is_strong(tag: &[u8]) -> bool {
    matches!(tag, [b'"', inner @ .., b'"'] if is_opaque(inner))
}

fn opaque(tag: &[u8]) -> &[u8] {
    tag.strip_prefix(b"W/").filter(|tag| is_strong(tag)).unwrap_or(tag)
}

/// etagc: anything but quotes, blanks and control bytes. There are no escapes.
fn is_opaque(inner: &[u8]) -> bool {
    inner.iter().all(|byte| matches!(byte, 0x21 | 0x23..=0x7e | 0x80..))
}

/// The tags of a list. What is no tag is handed on as it stands up to the next comma.
pub(super) fn tags(list: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = list;
    std::iter::from_fn(move || {
        let skip = rest.iter().position(|byte| !matches!(byte, b' ' | b'\t' | b','))?;
        rest = &rest[skip..];
        let quote = if rest.starts_with(b"W/") { 2 } else { 0 };
        let inner = rest.get(quote).filter(|byte| **byte == b'"').map(|_| &rest[quote + 1..]);
        let closed = inner.and_then(|inner| memchr::memchr(b'"', inner)).map_or(0, |at| quote + at + 2);
        let end = memchr::memchr(b',', &rest[closed..]).map_or(rest.len(), |at| closed + at);
        let (tag, behind) = rest.split_at(end);
        rest = behind;
        Some(tag.trim_ascii())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rfc9110_8_8_3_2_comparison() {
        for (one, other, strong, weak) in [
            ("W/\"1\"", "W/\"1\"", false, true),
            ("W/\"1\"", "W/\"2\"", false, false),
            ("W/\"1\"", "\"1\"", false, true),
            ("\"1\"", "\"1\"", true, true),
            ("\"\"", "\"\"", true, true),
            ("\"a\u{fc}\"", "\"a\u{fc}\"", true, true),
            ("abc", "abc", false, true),
            ("abc", "\"abc\"", false, false),
            ("w/\"1\"", "\"1\"", false, false),
            ("\"a b\"", "\"a b\"", false, true),
        ] {
            let (one_bytes, other_bytes) = (one.as_bytes(), other.as_bytes());
            assert_eq!(is_strongly_same(one_bytes, other_bytes), strong, "{one} {other}");
            assert_eq!(is_weakly_same(one_bytes, other_bytes), weak, "{one} {other}");
        }
    }

    #[test]
    fn rfc9110_13_1_2_lists_of_tags() {
        let all = |list: &'static str| -> Vec<&[u8]> { tags(list.as_bytes()).collect() };
        assert_eq!(all("\"a\", W/\"b,c\" ,\"\\\",,d"), [&b"\"a\""[..], b"W/\"b,c\"", b"\"\\\"", b"d"]);
        assert_eq!(all("\"a, b"), [&b"\"a"[..], b"b"]);
        assert_eq!(all("\"a\"x, b"), [&b"\"a\"x"[..], b"b"]);
        assert_eq!(all("W/, W"), [&b"W/"[..], b"W"]);
        assert!(all(" , ").is_empty());
    }
}
