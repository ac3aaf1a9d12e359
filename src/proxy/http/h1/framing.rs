//! How long a body is (RFC 9112 §6.3), and refusal of every message where two readers could disagree.

use std::time::Duration;

use crate::message::{Cause, Fields, Framing, Head, HeaderField, Version, status, tokens};

/// The fields that frame a message.
const FRAMING: Fields = Fields::of(&[HeaderField::ContentLength, HeaderField::TransferEncoding]);

/// The framing of a request's body.
///
/// # Errors
/// The cause that the client is told; its connection closes.
pub fn request(head: &Head) -> Result<Framing, Cause> {
    if !head.fields().meets(FRAMING) {
        return Ok(Framing::None);
    }
    let length = length(head).map_err(|()| Cause::BadLength)?;
    let coding = coding(head)?;
    match (length, coding) {
        (Some(_), Some(())) => Err(Cause::LengthConflict),
        (None, Some(()))
            if head.version == Version::Http10 || has_tab(head, HeaderField::TransferEncoding) =>
        {
            Err(Cause::BadTransferEncoding)
        }
        (None, Some(())) => Ok(Framing::Chunked),
        (Some(_), None) if has_tab(head, HeaderField::ContentLength) => Err(Cause::BadLength),
        (Some(length), None) => Ok(Framing::Length(length)),
        (None, None) => Ok(Framing::None),
    }
}

/// The framing of an answer to a request with this method.
///
/// # Errors
/// [`Cause::BadAnswer`].
pub fn answer(head: &Head, to_head_request: bool) -> Result<Framing, Cause> {
    let length = length(head).map_err(|()| Cause::BadAnswer)?;
    let coding = coding(head).map_err(|_| Cause::BadAnswer)?;
    let framing = match (length, coding) {
        (Some(_), Some(())) => return Err(Cause::BadAnswer),
        (None, Some(())) if head.version == Version::Http10 => return Err(Cause::BadAnswer),
        (None, Some(())) => Framing::Chunked,
        (Some(length), None) => Framing::Length(length),
        (None, None) => Framing::UntilClose,
    };
    Ok(if to_head_request || status::has_no_body(head.status) { Framing::None } else { framing })
}

/// The one Content-Length, if there is one: digits only, fits 63 bits, not repeated, no list.
fn length(head: &Head) -> Result<Option<u64>, ()> {
    let Some(value) = head.value(HeaderField::ContentLength) else { return Ok(None) };
    if head.repeats(HeaderField::ContentLength) || value.is_empty() || value.len() > 19 {
        return Err(());
    }
    let mut number = 0u64;
    for byte in value {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return Err(());
        }
        number = number * 10 + u64::from(digit);
    }
    if number > i64::MAX as u64 { Err(()) } else { Ok(Some(number)) }
}

/// Whether the transfer coding is chunked: the single value, once.
#[inline]
fn coding(head: &Head) -> Result<Option<()>, Cause> {
    let Some(value) = head.value(HeaderField::TransferEncoding) else { return Ok(None) };
    named_coding(head, value)
}

/// The same for a head that names a coding.
#[inline(never)]
fn named_coding(head: &Head, value: &[u8]) -> Result<Option<()>, Cause> {
    if head.repeats(HeaderField::TransferEncoding) {
        return Err(Cause::BadTransferEncoding);
    }
    if value.eq_ignore_ascii_case(b"chunked") {
        return Ok(Some(()));
    }
    // A well-formed coding that we do not have is 501 (RFC 9112 §6.1); everything else is 400.
    let known = [&b"gzip"[..], b"x-gzip", b"deflate", b"compress", b"x-compress", b"identity"];
    let unknown = tokens(value).all(|item| known.iter().any(|name| item.eq_ignore_ascii_case(name)));
    Err(if unknown && !value.is_empty() { Cause::UnknownTransferCoding } else { Cause::BadTransferEncoding })
}

/// Whether a tab stands beside the value of this field. It is legal there (RFC 9110 §5.6.3), but lines are forwarded as
/// they came, and a backend that strips blanks alone would not see what frames the message.
fn has_tab(head: &Head, field: HeaderField) -> bool {
    head.lines().iter().any(|line| line.field == field && head.at(line.whole()).contains(&b'\t'))
}

/// Whether the sender of `head` will keep the connection open after this message (RFC 9112 §9.3).
#[must_use]
pub fn keeps_alive(head: &Head) -> bool {
    if !head.has_hop_by_hop() {
        return head.version == Version::Http11;
    }
    if head.lists(HeaderField::Connection, b"close") {
        return false;
    }
    head.version == Version::Http11 || head.lists(HeaderField::Connection, b"keep-alive")
}

/// `Keep-Alive: timeout=N` of an answer, in whole seconds.
#[must_use]
pub fn keep_alive_timeout(head: &Head) -> Option<Duration> {
    if !head.has_hop_by_hop() {
        return None;
    }
    let parameter = head.values(HeaderField::KeepAlive).flat_map(tokens).find_map(|item| {
        let text = std::str::from_utf8(item).ok()?;
        let (name, value) = text.split_once('=')?;
        name.trim().eq_ignore_ascii_case("timeout").then(|| value.trim().parse::<u32>().ok())?
    });
    parameter.map(|seconds| Duration::from_secs(u64::from(seconds)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(lines: &[(&str, &str)]) -> Head {
        let mut head = Head::request("POST", "/", "h");
        for (name, value) in lines {
            head.push(name.as_bytes(), value.as_bytes());
        }
        head
    }

    #[test]
    fn requests() {
        type Lines = &'static [(&'static str, &'static str)];
        let cases: &[(Lines, Result<Framing, Cause>)] = &[
            (&[], Ok(Framing::None)),
            (&[("Content-Length", "0")], Ok(Framing::Length(0))),
            (&[("Content-Length", "9223372036854775807")], Ok(Framing::Length(i64::MAX as u64))),
            (&[("Content-Length", "9223372036854775808")], Err(Cause::BadLength)),
            (&[("Content-Length", "18446744073709551616")], Err(Cause::BadLength)),
            (&[("Content-Length", "")], Err(Cause::BadLength)),
            (&[("Content-Length", "+1")], Err(Cause::BadLength)),
            (&[("Content-Length", "1, 1")], Err(Cause::BadLength)),
            (&[("Content-Length", "1"), ("Content-Length", "1")], Err(Cause::BadLength)),
            (&[("Transfer-Encoding", "Chunked")], Ok(Framing::Chunked)),
            (&[("Transfer-Encoding", "chunked,")], Err(Cause::BadTransferEncoding)),
            (&[("Transfer-Encoding", "chunked, chunked")], Err(Cause::BadTransferEncoding)),
            (&[("Transfer-Encoding", "xchunked")], Err(Cause::BadTransferEncoding)),
            (&[("Transfer-Encoding", "")], Err(Cause::BadTransferEncoding)),
            (&[("Transfer-Encoding", "gzip")], Err(Cause::UnknownTransferCoding)),
            (
                &[("Transfer-Encoding", "chunked"), ("Transfer-Encoding", "chunked")],
                Err(Cause::BadTransferEncoding),
            ),
            (&[("Transfer-Encoding", "chunked"), ("Content-Length", "3")], Err(Cause::LengthConflict)),
        ];
        for (lines, expected) in cases {
            assert_eq!(request(&head(lines)), *expected, "{lines:?}");
        }
        let mut old = head(&[("Transfer-Encoding", "chunked")]);
        old.version = Version::Http10;
        assert_eq!(request(&old), Err(Cause::BadTransferEncoding));
    }

    #[test]
    fn a_tab_beside_what_frames_a_request_is_refused() {
        let of = |line: &str| {
            let text = format!("POST / HTTP/1.1\r\nHost: x\r\n{line}\r\n\r\n");
            let mut head = Head::new();
            super::super::parse::request(text.as_bytes(), 10, &mut head).expect("well-formed");
            request(&head)
        };
        assert_eq!(of("Content-Length:  5 "), Ok(Framing::Length(5)));
        assert_eq!(of("Content-Length:\t5"), Err(Cause::BadLength));
        assert_eq!(of("Content-Length: 5\t"), Err(Cause::BadLength));
        assert_eq!(of("Transfer-Encoding: \tchunked"), Err(Cause::BadTransferEncoding));
        assert_eq!(of("A:\tb"), Ok(Framing::None));
    }

    #[test]
    fn answers() {
        let of = |status: u16, lines: &[(&str, &str)], to_head: bool| {
            let mut head = Head::answer(status);
            for (name, value) in lines {
                head.push(name.as_bytes(), value.as_bytes());
            }
            answer(&head, to_head)
        };
        assert_eq!(of(200, &[("Content-Length", "5")], false), Ok(Framing::Length(5)));
        assert_eq!(of(200, &[("Content-Length", "5")], true), Ok(Framing::None));
        assert_eq!(of(304, &[("Content-Length", "5")], false), Ok(Framing::None));
        assert_eq!(of(200, &[], false), Ok(Framing::UntilClose));
        assert_eq!(of(200, &[("Transfer-Encoding", "chunked")], false), Ok(Framing::Chunked));
        assert_eq!(of(200, &[("Transfer-Encoding", "gzip, chunked")], false), Err(Cause::BadAnswer));
        let both = [("Transfer-Encoding", "chunked"), ("Content-Length", "5")];
        assert_eq!(of(200, &both, false), Err(Cause::BadAnswer));
        assert_eq!(of(200, &both, true), Err(Cause::BadAnswer));
        assert_eq!(
            of(200, &[("Content-Length", "5"), ("Content-Length", "6")], false),
            Err(Cause::BadAnswer)
        );
    }

    #[test]
    fn keep_alive_by_version_and_word() {
        let mut one = head(&[]);
        assert!(keeps_alive(&one));
        one.push(b"Connection", b"foo, Close");
        assert!(!keeps_alive(&one));
        let mut old = head(&[]);
        old.version = Version::Http10;
        assert!(!keeps_alive(&old));
        old.push(b"Connection", b"Keep-Alive");
        assert!(keeps_alive(&old));
    }

    #[test]
    fn the_keep_alive_field_is_read_for_its_timeout() {
        let mut head = Head::answer(200);
        assert_eq!(keep_alive_timeout(&head), None);
        head.push(b"Keep-Alive", b"max=100, Timeout = 5");
        assert_eq!(keep_alive_timeout(&head), Some(Duration::from_secs(5)));
        let mut odd = Head::answer(200);
        odd.push(b"Keep-Alive", b"timeout=-1");
        assert_eq!(keep_alive_timeout(&odd), None);
    }
}
