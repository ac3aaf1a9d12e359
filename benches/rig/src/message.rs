//! Just enough HTTP/1 to find where a message ends. It trusts its peer: nothing is checked that a measurement
//! doesn't need.

use memchr::memchr;

/// What frames a message, found in its head.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Head {
    /// Bytes of the head, its blank line included.
    pub(crate) len: usize,
    /// Content-Length.
    pub(crate) length: Option<u64>,
    /// Whether the body comes in chunks.
    pub(crate) chunked: bool,
    /// Whether the sender ends the connection after this message, or wants it ended.
    pub(crate) close: bool,
}

impl Head {
    /// Reads the head that `bytes` begins with; `None` while its end is missing.
    pub(crate) fn read(bytes: &[u8]) -> Option<Head> {
        let first = memchr(b'\n', bytes)? + 1;
        // Before HTTP/1.1 a connection was for one message, unless both sides said otherwise.
        let mut head = Head { close: is_1_0(&bytes[..first]), ..Head::default() };
        let mut at = first;
        loop {
            let len = memchr(b'\n', &bytes[at..])? + 1;
            let line = &bytes[at..at + len];
            at += len;
            match line[0] {
                b'\r' | b'\n' => break,
                b'c' | b'C' | b't' | b'T' => head.note(line),
                _ => {}
            }
        }
        Some(Head { len: at, ..head })
    }

    fn note(&mut self, line: &[u8]) {
        let Some(colon) = memchr(b':', line) else { return };
        let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
        if name.eq_ignore_ascii_case(b"content-length") {
            self.length = std::str::from_utf8(value).ok().and_then(|digits| digits.parse().ok());
        } else if name.eq_ignore_ascii_case(b"transfer-encoding") {
            self.chunked = value.eq_ignore_ascii_case(b"chunked");
        } else if name.eq_ignore_ascii_case(b"connection") {
            self.close = !value.eq_ignore_ascii_case(b"keep-alive")
                && (self.close || value.eq_ignore_ascii_case(b"close"));
        }
    }
}

/// Whether a request line or a status line says HTTP/1.0.
fn is_1_0(line: &[u8]) -> bool {
    line.starts_with(b"HTTP/1.0") || line.trim_ascii_end().ends_with(b"HTTP/1.0")
}

/// What is left to read of a body.
#[derive(Debug)]
pub(crate) enum Body {
    /// So many bytes.
    Length(u64),
    /// Chunks, with the place inside them.
    Chunks(Chunks),
}

/// The place inside a chunked body, and how much content came by.
#[derive(Debug, Default)]
pub(crate) struct Chunks {
    step: Step,
    /// Bytes of content until now.
    pub(crate) content: u64,
}

#[derive(Debug, Clone, Copy)]
enum Step {
    /// Hex digits, and the size they make so far.
    Size(u64),
    /// Behind the digits, until the line ends.
    SizeEnd(u64),
    /// Content and the line end behind it.
    Content(u64),
    /// A trailer or the last line: whether it is empty so far.
    Trailer(bool),
    Done,
}

impl Step {
    /// What follows the line that tells a chunk's size.
    fn content(size: u64) -> Step {
        if size == 0 { Step::Trailer(true) } else { Step::Content(size + 2) }
    }
}

impl Default for Step {
    fn default() -> Step {
        Step::Size(0)
    }
}

impl Body {
    /// What follows `head`; `None` when that is nothing.
    pub(crate) fn after(head: &Head) -> Option<Body> {
        match head.length {
            _ if head.chunked => Some(Body::Chunks(Chunks::default())),
            Some(length) if length > 0 => Some(Body::Length(length)),
            _ => None,
        }
    }

    /// Skips what `bytes` holds of the body. Returns how many bytes that is, and whether the body ends there.
    pub(crate) fn skip(&mut self, bytes: &[u8]) -> (usize, bool) {
        match self {
            Body::Length(left) => {
                let taken = usize::try_from(*left).map_or(bytes.len(), |left| left.min(bytes.len()));
                *left -= taken as u64;
                (taken, *left == 0)
            }
            Body::Chunks(chunks) => chunks.skip(bytes),
        }
    }
}

impl Chunks {
    fn skip(&mut self, bytes: &[u8]) -> (usize, bool) {
        let mut at = 0;
        while let Some(&byte) = bytes.get(at) {
            let mut taken = 1;
            self.step = match self.step {
                Step::Size(size) => match char::from(byte).to_digit(16) {
                    Some(digit) => Step::Size(size << 4 | u64::from(digit)),
                    None if byte == b'\n' => Step::content(size),
                    None => Step::SizeEnd(size),
                },
                Step::SizeEnd(size) if byte == b'\n' => Step::content(size),
                // The last two bytes are the line end.
                Step::Content(left) => {
                    taken = usize::try_from(left).map_or(bytes.len() - at, |left| left.min(bytes.len() - at));
                    let left_then = left - taken as u64;
                    self.content += left.saturating_sub(2) - left_then.saturating_sub(2);
                    if left_then == 0 { Step::Size(0) } else { Step::Content(left_then) }
                }
                Step::Trailer(true) if byte == b'\n' => Step::Done,
                Step::Trailer(empty) => Step::Trailer(byte == b'\n' || empty && byte == b'\r'),
                step @ (Step::SizeEnd(_) | Step::Done) => step,
            };
            at += taken;
            if matches!(self.step, Step::Done) {
                return (at, true);
            }
        }
        (at, false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_tells_where_it_ends_and_what_follows() {
        let request = b"POST / HTTP/1.1\r\nHost: a\r\ncontent-LENGTH: 5\r\nCookie: x\r\n\r\nhello";
        let head = Head::read(request).unwrap();
        assert_eq!(head, Head { len: request.len() - 5, length: Some(5), chunked: false, close: false });
        for end in 0..request.len() - 5 {
            assert_eq!(Head::read(&request[..end]), None, "cut at {end}");
        }
    }

    #[test]
    fn the_version_and_connection_say_whether_it_goes_on() {
        let close = |text: &str| Head::read(text.as_bytes()).unwrap().close;
        assert!(!close("GET / HTTP/1.1\r\n\r\n"));
        assert!(close("GET / HTTP/1.1\r\nConnection: Close\r\n\r\n"));
        assert!(close("GET / HTTP/1.0\r\n\r\n"));
        assert!(!close("GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n"));
        assert!(close("HTTP/1.0 200 OK\r\n\r\n"));
        assert!(!close("HTTP/1.1 200 OK\r\n\r\n"));
    }

    #[test]
    fn a_body_ends_at_the_same_byte_in_whatever_pieces_it_comes() {
        let whole = b"5;a=b\r\nhello\r\n10\r\n0123456789abcdef\r\n0\r\nname: value\r\n\r\nGET";
        for size in 1..=whole.len() {
            let mut body = Body::Chunks(Chunks::default());
            let (mut at, mut done) = (0, false);
            for piece in whole.chunks(size) {
                let (taken, end) = body.skip(piece);
                at += taken;
                done = end;
                if done {
                    break;
                }
                assert_eq!(taken, piece.len());
            }
            assert!(done, "pieces of {size}");
            assert_eq!(&whole[at..], b"GET", "pieces of {size}");
            assert!(matches!(body, Body::Chunks(chunks) if chunks.content == 21), "pieces of {size}");
        }
    }

    #[test]
    fn a_length_is_counted_down() {
        let mut body = Body::after(&Head { length: Some(5), ..Head::default() }).unwrap();
        assert_eq!(body.skip(b"hel"), (3, false));
        assert_eq!(body.skip(b"loGET"), (2, true));
        assert!(Body::after(&Head { length: Some(0), ..Head::default() }).is_none());
    }
}
