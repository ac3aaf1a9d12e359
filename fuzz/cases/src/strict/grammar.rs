//! Sets of bytes and the small rules: tokens, field lines, quoted strings, authorities.

use super::cursor::Cursor;
use super::{Field, Stop};

/// `tchar` (RFC 9110 §5.6.2).
pub(super) fn is_tchar(byte: u8) -> bool {
    matches!(byte,
        b'!' | b'#' | b'$' | b'%' | b'&' | b'\'' | b'*' | b'+' | b'-' | b'.' | b'^' | b'_' | b'`' | b'|' | b'~'
        | b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z')
}

/// `OWS` and `BWS` (RFC 9110 §5.6.3) are made of these.
pub(super) fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

/// `field-vchar` (RFC 9110 §5.5): `VCHAR / obs-text`.
pub(super) fn is_field_vchar(byte: u8) -> bool {
    matches!(byte, 0x21..=0x7e | 0x80..=0xff)
}

/// `field-line CRLF` (RFC 9112 §5): `field-name ":" OWS field-value OWS`, on one line.
pub(super) fn field_line(cursor: &mut Cursor<'_>) -> Result<Field, Stop> {
    let name = cursor.some(is_tchar, "field-name")?.to_vec();
    cursor.literal(b":", "the colon behind field-name")?;
    cursor.run(is_blank)?;
    let mut value = cursor.run(|byte| is_field_vchar(byte) || is_blank(byte))?;
    while let [rest @ .., b' ' | b'\t'] = value {
        value = rest;
    }
    cursor.crlf()?;
    Ok((name, value.to_vec()))
}

/// `quoted-string` (RFC 9110 §5.6.4).
pub(super) fn quoted_string(cursor: &mut Cursor<'_>) -> Result<(), Stop> {
    cursor.literal(b"\"", "DQUOTE")?;
    loop {
        // qdtext
        cursor.run(|byte| matches!(byte, b'\t' | b' ' | 0x21 | 0x23..=0x5b | 0x5d..=0x7e | 0x80..=0xff))?;
        if cursor.takes(b'"')? {
            return Ok(());
        }
        // quoted-pair
        cursor.literal(b"\\", "qdtext")?;
        let escaped = cursor.peek()?;
        if !is_field_vchar(escaped) && !is_blank(escaped) {
            return Err(Stop::Refused("quoted-pair"));
        }
        cursor.at += 1;
    }
}

/// `uri-host [ ":" port ]` (RFC 9110 §7.2), over all of `bytes`; the host is not empty.
pub(super) fn is_authority(bytes: &[u8]) -> bool {
    let (host, port) = match bytes {
        [b'[', rest @ ..] => {
            let Some(end) = rest.iter().position(|&byte| byte == b']') else { return false };
            if !is_ipv6(&rest[..end]) {
                return false;
            }
            (&bytes[..end + 2], &rest[end + 1..])
        }
        _ => {
            let end = bytes.iter().position(|&byte| byte == b':').unwrap_or(bytes.len());
            if !is_reg_name(&bytes[..end]) {
                return false;
            }
            bytes.split_at(end)
        }
    };
    let port_is_port = match port {
        [] => true,
        [b':', digits @ ..] => digits.iter().all(u8::is_ascii_digit),
        _ => false,
    };
    !host.is_empty() && port_is_port
}

/// `reg-name` (RFC 3986 §3.2.2), which derives every IPv4 address too.
fn is_reg_name(bytes: &[u8]) -> bool {
    match bytes {
        [] => true,
        [b'%', high, low, rest @ ..] => {
            high.is_ascii_hexdigit() && low.is_ascii_hexdigit() && is_reg_name(rest)
        }
        [first, rest @ ..] => is_unreserved_or_sub_delim(*first) && is_reg_name(rest),
    }
}

fn is_unreserved_or_sub_delim(byte: u8) -> bool {
    matches!(byte,
        b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' | b'-' | b'.' | b'_' | b'~'
        | b'!' | b'$' | b'&' | b'\'' | b'(' | b')' | b'*' | b'+' | b',' | b';' | b'=')
}

/// `IPv6address` (RFC 3986 §3.2.2): eight groups, one run of them perhaps left out, the last two perhaps an
/// IPv4 address.
fn is_ipv6(bytes: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(bytes) else { return false };
    let (front, back) = match text.split_once("::") {
        Some((front, back)) => (front, Some(back)),
        None => (text, None),
    };
    match back {
        None => groups(front, true) == Some(8),
        Some(back) => {
            let front = if front.is_empty() { Some(0) } else { groups(front, false) };
            let back = if back.is_empty() { Some(0) } else { groups(back, true) };
            front.zip(back).is_some_and(|(front, back)| front + back <= 7)
        }
    }
}

/// How many groups of 16 bits `text` spells.
fn groups(text: &str, at_the_end: bool) -> Option<usize> {
    let parts: Vec<&str> = text.split(':').collect();
    let mut count = 0;
    for (index, part) in parts.iter().enumerate() {
        let hex = (1..=4).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_hexdigit());
        if hex {
            count += 1;
        } else if at_the_end && index + 1 == parts.len() && is_ipv4(part) {
            count += 2;
        } else {
            return None;
        }
    }
    Some(count)
}

fn is_ipv4(text: &str) -> bool {
    let octet = |part: &str| {
        let digits = !part.is_empty() && part.len() <= 3 && part.bytes().all(|byte| byte.is_ascii_digit());
        digits
            && (part == "0" || !part.starts_with('0'))
            && part.parse::<u16>().is_ok_and(|value| value < 256)
    };
    text.split('.').count() == 4 && text.split('.').all(octet)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn authorities() {
        for good in
            ["a", "a:", "a:80", "1.2.3.4:5", "%41b", "[::]", "[::1]:80", "[1:2:3:4:5:6:7:8]", "[::1.2.3.4]"]
        {
            assert!(is_authority(good.as_bytes()), "{good}");
        }
        for bad in
            ["", ":80", "a b", "a@b", "a/b", "%4", "%4g", "a:8x", "a:1:2", "[]", "[:]", "[::1", "[::1]x"]
        {
            assert!(!is_authority(bad.as_bytes()), "{bad}");
        }
        for bad in [
            "1:2:3:4:5:6:7",
            "1:2:3:4:5:6:7:8:9",
            "1::2::3",
            "12345::",
            "1.2.3.4::",
            "::1.2.3.256",
            "::01.2.3.4",
        ] {
            assert!(!is_ipv6(bad.as_bytes()), "{bad}");
        }
    }
}
