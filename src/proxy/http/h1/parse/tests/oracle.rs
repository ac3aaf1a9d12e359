//! A second reader of heads for the tests: httparse finds the parts, the checks around it close what it leaves open.
//! Slower, and made of other code than the reader it is compared with.

use std::mem::MaybeUninit;

use crate::message::{Cause, Head, HeadLine, HeaderField, Span, Version};

/// Header lines that are parsed without touching the heap.
const ON_STACK: usize = 128;

/// Indexes a complete request head into `head`.
///
/// # Errors
/// The cause that the client is told.
pub(super) fn request(bytes: &[u8], headers: usize, head: &mut Head) -> Result<(), Cause> {
    let bytes = bytes.strip_prefix(b"\r\n").unwrap_or(bytes);
    if !bytes.first().is_some_and(|&byte| is_token(byte)) {
        return Err(Cause::BadHead);
    }
    head.load(bytes);
    with_room(headers, |room| {
        let mut parsed = httparse::Request::new(&mut []);
        match parsed.parse_with_uninit_headers(bytes, room) {
            Ok(httparse::Status::Complete(_)) => {}
            Ok(httparse::Status::Partial) => return Err(Cause::BadHead),
            Err(error) => return Err(explain(error, bytes)),
        }
        let (method, target) = (parsed.method.unwrap_or_default(), parsed.path.unwrap_or_default());
        head.version = version(parsed.version);
        let line_end = method.len() + 1 + target.len() + 1 + "HTTP/1.1".len();
        if bytes.get(line_end..line_end + 2) != Some(b"\r\n") {
            return Err(Cause::BadHead);
        }
        let start = method.len() + 1;
        let (path, authority) = target_parts(method, target)?;
        head.set_request_line(
            Span::new(0, method.len()),
            Span::new(start, start + target.len()),
            Span::new(start + path.start, start + path.end),
            authority.map_or(Span::default(), |range| Span::new(start + range.start, start + range.end)),
        );
        lines(bytes, line_end + 2, parsed.headers, head)
    })?;
    host(head)
}

/// Indexes a complete answer's head into `head`.
///
/// # Errors
/// [`Cause::BadAnswer`].
pub(super) fn answer(bytes: &[u8], head: &mut Head) -> Result<(), Cause> {
    let outcome = match answer_of(bytes, ON_STACK, head) {
        // Rare enough to be worth a second look, and a place on the heap.
        Err(Cause::TooManyHeaders) => answer_of(bytes, ON_STACK * 4, head),
        other => other,
    };
    outcome.map_err(|_| Cause::BadAnswer)
}

fn answer_of(bytes: &[u8], headers: usize, head: &mut Head) -> Result<(), Cause> {
    head.load(bytes);
    with_room(headers, |room| {
        let mut parsed = httparse::Response::new(&mut []);
        let config = httparse::ParserConfig::default();
        match config.parse_response_with_uninit_headers(&mut parsed, bytes, room) {
            Ok(httparse::Status::Complete(_)) => {}
            Err(httparse::Error::TooManyHeaders) => return Err(Cause::TooManyHeaders),
            Ok(httparse::Status::Partial) | Err(_) => return Err(Cause::BadAnswer),
        }
        head.version = version(parsed.version);
        head.status = parsed.code.filter(|code| (100..=999).contains(code)).ok_or(Cause::BadAnswer)?;
        let line_end = memchr::memchr(b'\r', bytes).ok_or(Cause::BadAnswer)?;
        let reason = bytes.get("HTTP/1.1 200 ".len()..line_end).unwrap_or_default();
        if reason.iter().any(|&byte| is_control(byte)) || bytes.get(line_end + 1) != Some(&b'\n') {
            return Err(Cause::BadAnswer);
        }
        head.set_reason(Span::new(line_end - reason.len(), line_end));
        lines(bytes, line_end + 2, parsed.headers, head)
    })
}

type Room<'a, 'b> = &'a mut [MaybeUninit<httparse::Header<'b>>];

/// Runs `parse` with room for `count` header lines: on the stack when it fits.
fn with_room<'b>(
    count: usize,
    parse: impl for<'a> FnOnce(Room<'a, 'b>) -> Result<(), Cause>,
) -> Result<(), Cause> {
    if count <= ON_STACK {
        let mut room = [const { MaybeUninit::uninit() }; ON_STACK];
        parse(&mut room[..count])
    } else {
        let mut room: Vec<_> = std::iter::repeat_with(MaybeUninit::uninit).take(count).collect();
        parse(&mut room)
    }
}

fn version(minor: Option<u8>) -> Version {
    if minor == Some(0) { Version::Http10 } else { Version::Http11 }
}

/// Tells a wrong version from a wrong head: httparse says the same of `HTTP/2.0` and of garbage.
fn explain(error: httparse::Error, bytes: &[u8]) -> Cause {
    match error {
        httparse::Error::TooManyHeaders => Cause::TooManyHeaders,
        httparse::Error::Version => {
            let line = bytes.split(|&byte| byte == b'\r').next().unwrap_or_default();
            let last = line.rsplit(|&byte| byte == b' ').next().unwrap_or_default();
            let wellformed = line.split(|&byte| byte == b' ').count() == 3
                && last.len() == 8
                && last.starts_with(b"HTTP/")
                && last[5].is_ascii_digit()
                && last[6] == b'.'
                && last[7].is_ascii_digit();
            if line == b"PRI * HTTP/2.0" && bytes.starts_with(b"PRI * HTTP/2.0\r\n") {
                Cause::Http2Preface
            } else if wellformed {
                Cause::BadVersion
            } else {
                Cause::BadHead
            }
        }
        httparse::Error::HeaderName
        | httparse::Error::HeaderValue
        | httparse::Error::NewLine
        | httparse::Error::Status
        | httparse::Error::Token => Cause::BadHead,
    }
}

/// Checks that the lines tile the head exactly, and indexes them. Whatever httparse skipped (folds, bare LF)
/// would leave a gap here.
fn lines(bytes: &[u8], start: usize, parsed: &[httparse::Header<'_>], head: &mut Head) -> Result<(), Cause> {
    let mut at = start;
    for header in parsed {
        let name_end = at + header.name.len();
        if bytes.get(at..name_end) != Some(header.name.as_bytes()) || bytes.get(name_end) != Some(&b':') {
            return Err(Cause::BadHead);
        }
        if header.name.is_empty() {
            return Err(Cause::BadHead);
        }
        let value_start = skip_blanks(bytes, name_end + 1);
        let value_end = value_start + header.value.len();
        let end = skip_blanks(bytes, value_end);
        if bytes.get(end..end + 2) != Some(b"\r\n") || bytes.get(value_start..value_end) != Some(header.value)
        {
            return Err(Cause::BadHead);
        }
        let (name, value) = (Span::new(at, name_end), Span::new(value_start, value_end));
        head.index(HeadLine::new(field(header.name.as_bytes())?, name, value, end + 2));
        at = end + 2;
    }
    if bytes.get(at..) == Some(b"\r\n") { Ok(()) } else { Err(Cause::BadHead) }
}

/// What a name stands for, also to a backend that reads `_` as `-`. An alias of a framing field is refused:
/// such a backend would frame the message by it.
fn field(name: &[u8]) -> Result<HeaderField, Cause> {
    match HeaderField::classify(name) {
        HeaderField::Other => match HeaderField::classify_alias(name) {
            HeaderField::Host | HeaderField::ContentLength | HeaderField::TransferEncoding => {
                Err(Cause::BadHead)
            }
            alias if alias.is_about_client() => Ok(HeaderField::ClientAlias),
            _ => Ok(HeaderField::Other),
        },
        known => Ok(known),
    }
}

fn skip_blanks(bytes: &[u8], from: usize) -> usize {
    let blanks =
        bytes.get(from..).unwrap_or_default().iter().take_while(|&&byte| byte == b' ' || byte == b'\t');
    from + blanks.count()
}

type Range = std::ops::Range<usize>;

/// Path and authority inside a target, by its form (RFC 9112 §3.2).
fn target_parts(method: &str, target: &str) -> Result<(Range, Option<Range>), Cause> {
    let bytes = target.as_bytes();
    if !bytes.iter().all(|&byte| matches!(byte, b'!' | b'$'..=b';' | b'=' | b'?'..=b'~')) {
        return Err(Cause::BadHead);
    }
    if method == "CONNECT" {
        // Refused in any form; only the reason could differ.
        return if is_authority(bytes) {
            Ok((0..0, Some(0..bytes.len())))
        } else {
            Err(Cause::ConnectMethod)
        };
    }
    if bytes.first() == Some(&b'/') {
        return Ok((0..bytes.len(), None));
    }
    if bytes == b"*" {
        return if method == "OPTIONS" { Ok((0..1, None)) } else { Err(Cause::BadHead) };
    }
    let after_scheme = ["http://", "https://"].iter().find_map(|scheme| {
        let start = bytes.get(..scheme.len())?;
        start.eq_ignore_ascii_case(scheme.as_bytes()).then_some(scheme.len())
    });
    let start = after_scheme.ok_or(Cause::BadHead)?;
    let length = bytes[start..].iter().position(|&byte| byte == b'/' || byte == b'?');
    let end = length.map_or(bytes.len(), |length| start + length);
    if !is_authority(&bytes[start..end]) {
        return Err(Cause::BadHost);
    }
    Ok((end..bytes.len(), Some(start..end)))
}

/// RFC 9110 §7.2 and RFC 9112 §3.2: HTTP/1.1 needs exactly one valid Host.
fn host(head: &mut Head) -> Result<(), Cause> {
    let mut hosts = head.lines().iter().filter(|line| line.field == HeaderField::Host);
    let (first, second) = (hosts.next().copied(), hosts.next());
    match first {
        Some(line) if second.is_none() && is_authority(head.at(line.value())) => {
            head.set_authority(line.value());
            Ok(())
        }
        None if head.version == Version::Http10 => Ok(()),
        Some(_) | None => Err(Cause::BadHost),
    }
}

/// `host[:port]` (RFC 3986 §3.2 without userinfo): a name, a v4 address or a v6 address in brackets.
#[must_use]
pub(super) fn is_authority(bytes: &[u8]) -> bool {
    let (host, port) = match bytes.strip_prefix(b"[") {
        Some(rest) => match rest.iter().position(|&byte| byte == b']') {
            Some(end) => {
                let inner = std::str::from_utf8(&rest[..end]).unwrap_or_default();
                if inner.parse::<std::net::Ipv6Addr>().is_err() {
                    return false;
                }
                (&rest[..end], &rest[end + 1..])
            }
            None => return false,
        },
        None => bytes.split_at(bytes.iter().position(|&byte| byte == b':').unwrap_or(bytes.len())),
    };
    let in_brackets = bytes.first() == Some(&b'[');
    let host_ok = !host.is_empty()
        && (in_brackets
            || host.iter().all(|&byte| byte.is_ascii_alphanumeric() || b"-._~%!$&'()*+,;=".contains(&byte)))
        && are_escapes_whole(host);
    let port_ok = match port.strip_prefix(b":") {
        Some(digits) => digits.len() <= 5 && digits.iter().all(u8::is_ascii_digit),
        None => port.is_empty(),
    };
    host_ok && port_ok
}

/// Every `%` begins an escape (RFC 3986 §2.1): what else it could be is guessed differently.
fn are_escapes_whole(bytes: &[u8]) -> bool {
    let mut behind = bytes.split(|&byte| byte == b'%').skip(1);
    behind.all(|rest| rest.get(..2).is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit)))
}

/// RFC 9110 §5.6.2.
#[must_use]
pub(super) fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// Control bytes that no value may hold; a tab is none.
#[must_use]
pub(super) fn is_control(byte: u8) -> bool {
    (byte < b' ' && byte != b'\t') || byte == 0x7f
}
