//! The head of a request as a block of HTTP/2, from how HTTP/1.1 writes it: what a backend is told is decided in one place
//! ([`crate::proxy::http::h1::write`], and the edits of a route behind it), whatever it speaks.

use memchr::memchr;

use crate::proxy::http::h2::hpack::{Pseudo, encode};

/// What is about one connection, and is said by frames (RFC 9113 §8.2.2).
const LEFT_OUT: [&[u8]; 6] =
    [b"connection", b"transfer-encoding", b"upgrade", b"keep-alive", b"proxy-connection", b"http2-settings"];

/// Appends the head that stands in `text`.
pub(super) fn write(out: &mut Vec<u8>, text: &[u8], scheme: &[u8]) {
    let (line, rest) = split_line(text);
    let (method, line) = split_at(line, b' ');
    let (path, _) = split_at(line, b' ');
    encode::pseudo(out, Pseudo::Method, method);
    encode::pseudo(out, Pseudo::Scheme, scheme);
    let host = lines(rest).find(|(name, _)| name.eq_ignore_ascii_case(b"host")).map(|(_, value)| value);
    if let Some(host) = host.filter(|host| !host.is_empty()) {
        encode::pseudo(out, Pseudo::Authority, host);
    }
    encode::pseudo(out, Pseudo::Path, path);
    for (name, value) in lines(rest) {
        let is_left_out = name.eq_ignore_ascii_case(b"host")
            || LEFT_OUT.iter().any(|left_out| name.eq_ignore_ascii_case(left_out));
        if !is_left_out {
            encode::field(out, name, value);
        }
    }
}

/// Appends a trailer section: lines with their CRLFs.
pub(super) fn write_trailers(out: &mut Vec<u8>, text: &[u8]) {
    for (name, value) in lines(text) {
        encode::field(out, name, value);
    }
}

/// The lines of a head that was written here, up to the empty one.
fn lines(text: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let (line, after) = split_line(rest);
        rest = after;
        let colon = memchr(b':', line)?;
        Some((&line[..colon], line[colon + 1..].trim_ascii()))
    })
}

/// The first line without its CRLF, and what follows it.
fn split_line(text: &[u8]) -> (&[u8], &[u8]) {
    let end = memchr(b'\n', text).map_or(text.len(), |end| end + 1);
    let (line, rest) = text.split_at(end);
    (line.trim_ascii_end(), rest)
}

/// What stands before the first `mark`, and behind it.
fn split_at(text: &[u8], mark: u8) -> (&[u8], &[u8]) {
    match memchr(mark, text) {
        Some(at) => (&text[..at], &text[at + 1..]),
        None => (text, b""),
    }
}
