//! One form of a path: the path that routes see is the path that is forwarded.
//!
//! What RFC 3986 §6.2.2 calls the same is made the same: escapes of plain letters, the case of their digits, dot segments. What servers
//! read in different ways is refused. docs/routing.md has the table, and a test reads it.

use std::borrow::Cow;

use crate::config::model::Normalize;
use crate::config::model::route::{DotSegments, EncodedSlash, PathPattern};

/// What is wrong with a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathFault {
    /// It does not begin with a slash.
    NoSlash,
    /// A backslash or a `#`, which no path may contain unescaped (RFC 3986 §3.3).
    StrayByte,
    /// A `%` without two hex digits.
    BadEscape,
    /// An escaped control character.
    Control,
    /// An escape of a character in more bytes than it needs, which some decoders take for `.` or `/`.
    Overlong,
    /// An escaped slash or backslash, where that is refused, or dot segments behind one.
    EncodedSlash,
    /// A dot segment, where those are refused, or one with parameters (`..;x`).
    DotSegment,
    /// More `..` than there are segments.
    AboveRoot,
    /// A backend may take it for the path of another route.
    Ambiguous,
}

/// The one form of `path`, which has no query.
///
/// # Errors
/// What is wrong with it.
pub fn form<'a>(path: &'a [u8], rules: &Normalize) -> Result<Cow<'a, [u8]>, PathFault> {
    match path {
        b"*" => return Ok(Cow::Borrowed(path)),
        // What is asked of an authority alone is asked of its root (RFC 9110 §4.2.3).
        b"" => return Ok(Cow::Borrowed(b"/")),
        [b'/', ..] => {}
        _ => return Err(PathFault::NoSlash),
    }
    let mut before = 0;
    let is_formed = path.iter().all(|&byte| {
        let last = std::mem::replace(&mut before, byte);
        match byte {
            b'%' | b'\\' | b'#' => false,
            b'/' => last != b'/' || !rules.merge_slashes,
            b'.' => last != b'/',
            _ => PathPattern::may_have(byte),
        }
    });
    if is_formed {
        return Ok(Cow::Borrowed(path));
    }
    let mut out = Vec::with_capacity(path.len());
    let mut segments = path[1..].split(|&byte| byte == b'/').peekable();
    while let Some(segment) = segments.next() {
        let start = out.len();
        out.push(b'/');
        push_segment(&mut out, segment, rules)?;
        let written = &out[start + 1..];
        let is_last = segments.peek().is_none();
        match dots(written) {
            Some(_) if rules.dot_segments == DotSegments::Refuse => return Err(PathFault::DotSegment),
            Some(up) => {
                out.truncate(start);
                if up {
                    let parent = memchr::memrchr(b'/', &out).ok_or(PathFault::AboveRoot)?;
                    out.truncate(parent);
                }
                if is_last {
                    out.push(b'/');
                }
            }
            None if written.is_empty() && rules.merge_slashes && !is_last => out.truncate(start),
            None => {}
        }
    }
    Ok(if out == path { Cow::Borrowed(path) } else { Cow::Owned(out) })
}

/// Whether a segment is a dot segment, and then whether it leads up.
fn dots(segment: &[u8]) -> Option<bool> {
    match segment {
        b"." => Some(false),
        b".." => Some(true),
        _ => None,
    }
}

/// Appends a segment with its escapes in one form.
fn push_segment(out: &mut Vec<u8>, segment: &[u8], rules: &Normalize) -> Result<(), PathFault> {
    let start = out.len();
    let mut rest = segment;
    let mut has_slash = false;
    while let Some((&byte, behind)) = rest.split_first() {
        rest = behind;
        if byte == b'\\' || byte == b'#' {
            return Err(PathFault::StrayByte);
        }
        let value = match byte {
            b'%' => {
                let value = escaped(rest).ok_or(PathFault::BadEscape)?;
                rest = &rest[2..];
                value
            }
            _ if PathPattern::may_have(byte) => {
                out.push(byte);
                continue;
            }
            _ => byte,
        };
        match value {
            0..=0x1f | 0x7f => return Err(PathFault::Control),
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                out.push(value);
                continue;
            }
            b'/' | b'\\' if rules.encoded_slash == EncodedSlash::Refuse => {
                return Err(PathFault::EncodedSlash);
            }
            b'/' | b'\\' => has_slash = true,
            // RFC 3629 §3: these never begin a character, or none that needs so many bytes.
            0xc0 | 0xc1 | 0xf5..=0xff => return Err(PathFault::Overlong),
            0xe0 if matches!(next(rest), Some(0x80..=0x9f)) => return Err(PathFault::Overlong),
            0xf0 if matches!(next(rest), Some(0x80..=0x8f)) => return Err(PathFault::Overlong),
            _ => {}
        }
        const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
        out.extend_from_slice(&[b'%', DIGITS[usize::from(value >> 4)], DIGITS[usize::from(value & 15)]]);
    }
    let written = &out[start..];
    let name = |part: &[u8]| dots(part.split(|&byte| byte == b';').next().unwrap_or_default()).is_some();
    if written.contains(&b';') && name(written) {
        return Err(PathFault::DotSegment);
    }
    if has_slash {
        // A backend that takes them for slashes must not be led elsewhere by what lies between.
        let mut at = 0;
        for cut in memchr::memmem::find_iter(written, b"%").chain([written.len()]) {
            let is_cut = cut == written.len() || matches!(&written[cut..cut + 3], b"%2F" | b"%5C");
            if is_cut {
                if name(&written[at..cut]) {
                    return Err(PathFault::EncodedSlash);
                }
                at = cut + 3;
            }
        }
    }
    Ok(())
}

/// The byte that the two hex digits at the front stand for.
pub(super) fn escaped(digits: &[u8]) -> Option<u8> {
    let [high, low, ..] = digits else { return None };
    let digit = |byte: u8| char::from(byte).to_digit(16);
    u8::try_from(digit(*high)? << 4 | digit(*low)?).ok()
}

/// The byte that comes next, escaped or not.
fn next(rest: &[u8]) -> Option<u8> {
    match rest.split_first()? {
        (b'%', digits) => escaped(digits),
        (byte, _) => Some(*byte),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn told(path: &str, rules: &Normalize) -> String {
        match form(path.as_bytes(), rules) {
            Ok(path) => String::from_utf8_lossy(&path).into_owned(),
            Err(_) => "refused".to_owned(),
        }
    }

    /// The rows `| form | sent | becomes | with |` of the table in the documentation.
    #[test]
    fn the_table_in_the_documentation_is_true() {
        let text = include_str!("../../docs/routing.md");
        let rows =
            text.lines().filter_map(|line| line.strip_prefix("| ")).filter(|line| line.contains("| `/"));
        let mut seen = 0;
        for row in rows {
            let cells: Vec<&str> = row.split('|').map(|cell| cell.trim().trim_matches('`')).collect();
            let [_, sent, becomes, with, ..] = cells[..] else { panic!("{row}") };
            let mut rules = Normalize::default();
            match with {
                "" => {}
                "dot_segments: refuse" => rules.dot_segments = DotSegments::Refuse,
                "encoded_slash: refuse" => rules.encoded_slash = EncodedSlash::Refuse,
                "merge_slashes: on" => rules.merge_slashes = true,
                other => panic!("{other}"),
            }
            assert_eq!(told(sent, &rules), becomes, "{row}");
            seen += 1;
        }
        assert!(seen > 30, "{seen} rows");
    }

    /// What a backend makes of it that decodes once, takes `%2F` for a slash, cuts parameters off and resolves dots.
    fn read_by_a_backend(path: &[u8]) -> Vec<Vec<u8>> {
        let mut bytes = Vec::new();
        let mut rest = path;
        while let Some((&byte, behind)) = rest.split_first() {
            rest = behind;
            match (byte, escaped(rest)) {
                (b'%', Some(value)) => {
                    bytes.push(if value == b'\\' { b'/' } else { value });
                    rest = &rest[2..];
                }
                _ => bytes.push(byte),
            }
        }
        let mut segments: Vec<Vec<u8>> = Vec::new();
        for segment in bytes.split(|&byte| byte == b'/').skip(1) {
            let name = segment.split(|&byte| byte == b';').next().unwrap_or_default();
            match name {
                b"." | b"" => {}
                b".." => drop(segments.pop()),
                name => segments.push(name.to_vec()),
            }
        }
        segments
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn it_is_a_fixed_point_and_no_backend_reads_another_first_segment(
            path in "/(\\.|\\.\\.|/|;|%2e|%2E|%2f|%5C|%25|%61|a|b|admin|\\\\|#|%c0%af|%00|%zz|%|é){0,12}",
            merge in any::<bool>(),
        ) {
            let rules = Normalize { merge_slashes: merge, ..Normalize::default() };
            if let Ok(once) = form(path.as_bytes(), &rules) {
                prop_assert_eq!(form(&once, &rules).expect("it is fine"), once.clone());
                prop_assert!(!once.contains(&b'\\') && !once.contains(&b'#'));
                // Whoever is let through as `/a…` is not read as `/b…`.
                let first = once[1..].split(|&byte| byte == b'/').find(|segment| !segment.is_empty());
                let seen = read_by_a_backend(&once);
                if let Some(first) = first.filter(|first| first.iter().all(u8::is_ascii_alphanumeric)) {
                    prop_assert_eq!(seen.first().map(Vec::as_slice), Some(first));
                }
            }
        }
    }
}
