//! The head of a request as a block of HTTP/2, from how HTTP/1.1 writes it: what a backend is told is decided in one place
//! ([`crate::proxy::http::h1::write`], and the edits of a route behind it), whatever it speaks.

use memchr::memchr;

use crate::message::Head;
use crate::proxy::http::h2::hpack::{EncodedLines, Pseudo, encode};
use crate::proxy::http::websocket::handshake;

/// What is about one connection, and is said by frames (RFC 9113 §8.2.2).
const LEFT_OUT: [&[u8]; 6] =
    [b"connection", b"transfer-encoding", b"upgrade", b"keep-alive", b"proxy-connection", b"http2-settings"];

/// What is never the same twice.
const REQUEST_ID: &[u8] = b"x-request-id";
/// The same as it is written, and what follows at the end of a head.
const ID_LINE: &[u8] = b"X-Request-Id: ";
const END: &[u8] = b"\r\n\r\n";

/// Appends the head that stands in `text`. `known`: lines that were encoded lately.
pub(super) fn write(out: &mut Vec<u8>, text: &[u8], scheme: &[u8], known: &mut EncodedLines) {
    let Parts { method, path, lines } = Parts::of(text);
    encode::pseudo(out, Pseudo::Method, method);
    encode::pseudo(out, Pseudo::Scheme, scheme);
    encode::pseudo(out, Pseudo::Path, path);
    // The number of the request comes last where it is ours; nearly always all that stands before it is what the last request had.
    let end = lines.len().saturating_sub(ID_LINE.len() + encode::REQUEST_ID + END.len());
    let (run, last) = lines.split_at(end);
    let id = last.strip_prefix(ID_LINE).and_then(<[u8]>::first_chunk);
    let id = id.filter(|id| run.ends_with(b"\n") && is_number(id));
    let run = if id.is_some() { run } else { lines };
    if !known.append_run(out, run) {
        let start = out.len();
        write_lines(out, run, known);
        known.learn_run(run, out, start);
    }
    if let Some(id) = id {
        encode::request_id(out, id);
    }
}

/// True for the digits of a request's number. All of them are looked at, which is done at once; to stop at the first that is none takes longer.
#[inline]
fn is_number(id: &[u8; encode::REQUEST_ID]) -> bool {
    id.iter().fold(true, |are_digits, byte| are_digits & byte.is_ascii_hexdigit())
}

/// Appends what is made of all lines up to an empty one: whom it is for, and what goes on.
fn write_lines(out: &mut Vec<u8>, lines: &[u8], known: &mut EncodedLines) {
    // Nearly always it is the first line.
    let host =
        self::lines(lines).find(|(name, _)| name.eq_ignore_ascii_case(b"host")).map(|(_, value)| value);
    if let Some(host) = host.filter(|host| !host.is_empty()) {
        encode::pseudo(out, Pseudo::Authority, host);
    }
    let mut rest = lines;
    loop {
        let (line, after) = split_line(rest);
        rest = after;
        if known.append_known(out, line) {
            continue;
        }
        let Some((name, value)) = pair(line) else { return };
        if !is_left_out(name) {
            let start = out.len();
            encode::field(out, name, value);
            if name.len() != REQUEST_ID.len() {
                // That is another one each time.
                known.learn(line, out, start);
            }
        }
    }
}

/// Appends the head that stands in `text`, and asks for another protocol, as an extended CONNECT (RFC 8441 §4).
#[cold]
pub(super) fn write_connect(out: &mut Vec<u8>, text: &[u8], scheme: &[u8], _: &mut EncodedLines) {
    let Parts { path, lines, .. } = Parts::of(text);
    encode::pseudo(out, Pseudo::Method, b"CONNECT");
    encode::pseudo(out, Pseudo::Protocol, b"websocket");
    encode::pseudo(out, Pseudo::Scheme, scheme);
    encode::pseudo(out, Pseudo::Authority, value_of(lines, b"host"));
    encode::pseudo(out, Pseudo::Path, path);
    let is_ours = |name: &[u8]| {
        [handshake::KEY.as_bytes(), b"content-length"]
            .iter()
            .any(|left_out| name.eq_ignore_ascii_case(left_out))
    };
    let goes_on = |name: &[u8]| !is_left_out(name) && !is_ours(name);
    for (name, value) in self::lines(lines).filter(|(name, _)| goes_on(name)) {
        encode::field(out, name, value);
    }
}

/// What a server of HTTP/1.1 would answer to the key that stands in `text`; `None`: it asks for no WebSocket.
#[cold]
pub(super) fn accept(text: &[u8]) -> Option<String> {
    let Parts { method, lines, .. } = Parts::of(text);
    let is_websocket = method == b"GET" && value_of(lines, b"upgrade").eq_ignore_ascii_case(b"websocket");
    is_websocket.then(|| handshake::accept(value_of(lines, handshake::KEY.as_bytes())))
}

/// Makes the answer to an extended CONNECT what HTTP/1.1 has for it.
#[cold]
pub(super) fn switch(head: &mut Head, accept: &str) {
    let is_ours = |name: &[u8]| {
        [handshake::ACCEPT.as_bytes(), b"content-length"]
            .iter()
            .any(|left_out| name.eq_ignore_ascii_case(left_out))
    };
    *head = head.without(is_ours);
    head.status = 101;
    head.push(b"connection", b"upgrade");
    head.push(b"upgrade", b"websocket");
    head.push(handshake::ACCEPT.as_bytes(), accept.as_bytes());
}

/// What a head consists of.
struct Parts<'t> {
    method: &'t [u8],
    path: &'t [u8],
    /// Its lines, and the empty one.
    lines: &'t [u8],
}

impl<'t> Parts<'t> {
    #[inline]
    fn of(text: &'t [u8]) -> Parts<'t> {
        let (method, rest) = match text.strip_prefix(b"GET ") {
            Some(rest) => (&text[..3], rest),
            None => split_at(text, b' '),
        };
        let (path, rest) = split_at(rest, b' ');
        // It was written here: no path has a blank, and mostly this is what follows.
        let lines = rest.strip_prefix(b"HTTP/1.1\r\n").unwrap_or_else(|| split_line(rest).1);
        Parts { method, path, lines }
    }
}

/// The value of the first line with this name; empty: there is none.
fn value_of<'t>(text: &'t [u8], wanted: &[u8]) -> &'t [u8] {
    lines(text).find(|(name, _)| name.eq_ignore_ascii_case(wanted)).map_or(b"", |(_, value)| value)
}

/// True for the name of a line that does not go on.
fn is_left_out(name: &[u8]) -> bool {
    // Most names have another length.
    matches!(name.len(), 4 | 7 | 10 | 14 | 16 | 17)
        && (name.eq_ignore_ascii_case(b"host")
            || LEFT_OUT.iter().any(|left_out| name.eq_ignore_ascii_case(left_out)))
}

/// The lines of a head that was written here, up to the empty one.
fn lines(text: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let (line, after) = split_line(rest);
        rest = after;
        pair(line)
    })
}

/// The name and the value of a line; `None`: it is the empty one.
fn pair(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let colon = memchr(b':', line)?;
    Some((&line[..colon], line[colon + 1..].trim_ascii()))
}

/// The first line with its CRLF, and what follows it.
fn split_line(text: &[u8]) -> (&[u8], &[u8]) {
    let end = memchr(b'\n', text).map_or(text.len(), |end| end + 1);
    text.split_at(end)
}

/// What stands before the first `mark`, and behind it.
fn split_at(text: &[u8], mark: u8) -> (&[u8], &[u8]) {
    match memchr(mark, text) {
        Some(at) => (&text[..at], &text[at + 1..]),
        None => (text, b""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proxy::http::h2::hpack::{HpackDecoder, LineKind};

    /// The lines of a block, `name: value`.
    fn read(block: &[u8]) -> Vec<String> {
        let mut lines = Vec::new();
        let decoded = HpackDecoder::new(4096).decode(block, 65536, |line| {
            assert!(!matches!(line.kind, LineKind::Malformed));
            lines.push(format!(
                "{}: {}",
                String::from_utf8_lossy(line.name()),
                String::from_utf8_lossy(line.value())
            ));
        });
        assert!(decoded.is_ok());
        lines
    }

    #[test]
    fn what_frames_a_message_in_http_1_1_stays_behind_and_all_else_goes_on_in_its_order() {
        let text =
            b"POST /a?b=c HTTP/1.1\r\nX-First: 1\r\nHost: a.example:8080\r\nTransfer-Encoding: chunked\r\n\
                     TE: trailers\r\nConnection: TE\r\nX-Empty:\r\nVia: 1.1 evenkeel\r\nX-First: 2\r\n\r\n";
        let mut block = Vec::new();
        let mut known = EncodedLines::default();
        write(&mut block, text, b"https", &mut known);
        let expected = [
            ":method: POST",
            ":scheme: https",
            ":path: /a?b=c",
            ":authority: a.example:8080",
            "x-first: 1",
            "te: trailers",
            "x-empty: ",
            "via: 1.1 evenkeel",
            "x-first: 2",
        ];
        assert_eq!(read(&block), expected);
        // The same with what is known by then.
        for _ in 0..3 {
            let mut again = Vec::new();
            write(&mut again, text, b"https", &mut known);
            assert_eq!(again, block);
        }
    }

    #[test]
    fn a_request_for_no_host_has_no_authority() {
        let mut block = Vec::new();
        let text = b"OPTIONS * HTTP/1.1\r\nHost: \r\nUpgrade: x\r\n\r\n";
        write(&mut block, text, b"http", &mut EncodedLines::default());
        assert_eq!(read(&block), [":method: OPTIONS", ":scheme: http", ":path: *"]);
        let mut block = Vec::new();
        encode::trailers(&mut block, b"X-Sum: 6\r\nY: z\r\n");
        assert_eq!(read(&block), ["x-sum: 6", "y: z"]);
    }

    #[test]
    fn the_number_of_a_request_is_its_own_however_often_the_rest_has_come() {
        let mut known = EncodedLines::default();
        let id = |number: u8| format!("{number:02}").repeat(16);
        for number in 0..6 {
            let text = format!(
                "GET /{number} HTTP/1.1\r\nHost: a\r\nVia: 1.1 evenkeel\r\nX-Request-Id: {}\r\n\r\n",
                id(number)
            );
            let mut block = Vec::new();
            write(&mut block, text.as_bytes(), b"http", &mut known);
            let expected = [
                ":method: GET".to_owned(),
                ":scheme: http".to_owned(),
                format!(":path: /{number}"),
                ":authority: a".to_owned(),
                "via: 1.1 evenkeel".to_owned(),
                format!("x-request-id: {}", id(number)),
            ];
            assert_eq!(read(&block), expected);
            // What only looks like it is a line as any other.
            let text = format!("GET / HTTP/1.1\r\nHost: a\r\nX: y X-Request-Id: {}\r\n\r\n", id(number));
            let mut block = Vec::new();
            write(&mut block, text.as_bytes(), b"http", &mut known);
            assert_eq!(read(&block)[4], format!("x: y X-Request-Id: {}", id(number)));
            // Nor is a shorter one with another line behind it that number.
            let text =
                b"GET / HTTP/1.1\r\nHost: a\r\nX-Request-Id: 0123456789012\r\nVia: 1.1 evenkeel\r\n\r\n";
            let mut block = Vec::new();
            write(&mut block, text, b"http", &mut known);
            assert_eq!(read(&block)[4..], ["x-request-id: 0123456789012", "via: 1.1 evenkeel"]);
        }
    }
}
