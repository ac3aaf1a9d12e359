//! What a connection begins with that speaks another protocol: it is refused by its name.

use crate::message::Cause;

/// How every TLS connection begins: a handshake record, and the first byte of its version (RFC 8446 §5.1).
const TLS: &[u8] = b"\x16\x03";
/// Version 2 of the PROXY protocol begins with two empty lines, so that HTTP servers refuse it.
const PROXY_2: &[u8] = b"\r\n\r\n\0\r\nQUIT\n";
/// Version 1 is a line. None of these words is what a request could ask for.
const PROXY_1: &[&[u8]] = &[b"PROXY TCP4 ", b"PROXY TCP6 ", b"PROXY UNKNOWN"];

/// What the first bytes of a request amount to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opening {
    /// Nothing that is known: a request, or garbage.
    Unknown,
    /// More bytes tell.
    Unclear,
    /// Another protocol.
    Other(Cause),
}

/// Judges what a request begins with.
#[must_use]
pub fn judge(bytes: &[u8]) -> Opening {
    if bytes.starts_with(TLS) {
        Opening::Other(Cause::TlsHello)
    } else if bytes.starts_with(PROXY_2) || PROXY_1.iter().any(|start| bytes.starts_with(start)) {
        Opening::Other(Cause::ProxyProtocol)
    } else if !bytes.is_empty() && [TLS, PROXY_2].iter().any(|start| start.starts_with(bytes)) {
        Opening::Unclear
    } else {
        Opening::Unknown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_protocols_are_known_by_their_first_bytes_however_they_come() {
        let cases: [(&[u8], Cause); 6] = [
            (b"\x16\x03\x01\x02\x00\x01", Cause::TlsHello),
            (b"PROXY TCP4 192.0.2.1 192.0.2.2 1 2\r\nGET / HTTP/1.1\r\n", Cause::ProxyProtocol),
            (b"PROXY TCP6 ::1 ::1 1 2\r\n", Cause::ProxyProtocol),
            (b"PROXY UNKNOWN\r\n", Cause::ProxyProtocol),
            (b"\r\n\r\n\0\r\nQUIT\n\x21\x11\x00\x0c", Cause::ProxyProtocol),
            (b"\r\n\r\n\0\r\nQUIT\n\x20\x00\x00\x00", Cause::ProxyProtocol),
        ];
        for (bytes, cause) in cases {
            assert_eq!(judge(bytes), Opening::Other(cause), "{}", bytes.escape_ascii());
            let first = (1..=bytes.len())
                .map(|end| judge(&bytes[..end]))
                .find(|opening| matches!(opening, Opening::Other(_)));
            assert_eq!(first, Some(Opening::Other(cause)));
        }
        for unclear in [&b"\x16"[..], b"\r", b"\r\n\r\n", b"\r\n\r\n\0\r\nQUIT"] {
            assert_eq!(judge(unclear), Opening::Unclear, "{}", unclear.escape_ascii());
        }
        for unknown in [&b""[..], b"P", b"PROXY", b"PROXY /a HTTP/1.1", b"\x16\x02", b"\r\n\r\nG", b"\r\nGET"]
        {
            assert_eq!(judge(unknown), Opening::Unknown, "{}", unknown.escape_ascii());
        }
    }
}
