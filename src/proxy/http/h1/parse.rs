//! Bytes to [`Head`], strictly (RFC 9112 §§2-5).
//!
//! Heads are forwarded by copying runs of their bytes, so everything that another parser could read
//! differently is refused here and never repaired: bare LF, folded lines, blanks before the colon, control
//! bytes, odd targets. One pass over the bytes finds the lines, judges every byte and indexes them; it ends with
//! the head, whatever is behind it.

use crate::message::{Cause, Fields, Head, HeadLine, HeaderField, LineRun, Span, Version};

use super::classes::{host_name_length, is_host_name};
use super::scan;

/// Most header lines of an answer.
const ANSWER_LINES: usize = 512;
/// Fields that are lists of which we read every item, some of them several times.
const LISTS: Fields = Fields::of(&[
    HeaderField::Connection,
    HeaderField::KeepAlive,
    HeaderField::Te,
    HeaderField::TransferEncoding,
    HeaderField::Upgrade,
]);
/// Most bytes of all of these together.
const LIST_BYTES: usize = 1024;
/// Most items of all Connection lines together, empty ones included: each is compared with every other line.
const OPTIONS: usize = 32;
/// Longest authority. A name of DNS has 255 bytes (RFC 3986 §3.2.2), written as escapes three times as many.
const AUTHORITY: usize = 1024;

/// Indexes a complete request head into `head`.
///
/// # Errors
/// The cause that the client is told.
pub fn request(bytes: &[u8], headers: usize, head: &mut Head) -> Result<(), Cause> {
    let bytes = bytes.strip_prefix(b"\r\n").unwrap_or(bytes);
    let (length, judged) = request_lines(bytes, headers, head)?;
    if length == bytes.len() { judged } else { Err(Cause::BadHead) }
}

/// Indexes a complete answer's head into `head`.
///
/// # Errors
/// [`Cause::BadAnswer`].
pub fn answer(bytes: &[u8], head: &mut Head) -> Result<(), Cause> {
    match answer_lines(bytes, head) {
        Ok((length, Ok(()))) if length == bytes.len() => Ok(()),
        Ok(_) | Err(_) => Err(Cause::BadAnswer),
    }
}

/// The length of a head, and what its parts are worth.
pub(super) type Judged = (usize, Result<(), Cause>);

/// Indexes the request head at the start of `bytes`, if its lines are whole and well-formed.
#[inline(always)]
pub(super) fn request_lines(bytes: &[u8], headers: usize, head: &mut Head) -> Result<Judged, Cause> {
    head.clear();
    let line = request_line(bytes)?;
    head.version = line.version;
    let RequestLine { method, target: Range { start, end }, .. } = line;
    let (length, aliased) = lines(bytes, line.length, headers, head)?;
    head.fill(&bytes[..length]);
    let (method_span, target_span) = (Span::new(0, method), Span::new(start, end));
    if is_plain(bytes, &line) {
        head.set_request_line(method_span, target_span, target_span, Span::default());
    } else {
        let (path, authority) = match target_parts(&bytes[..method], &bytes[start..end]) {
            Ok(parts) => parts,
            Err(cause) => return Ok((length, Err(cause))),
        };
        let shift = |range: Range| Span::new(start + range.start, start + range.end);
        head.set_request_line(
            method_span,
            target_span,
            shift(path),
            authority.map_or(Span::default(), shift),
        );
    }
    Ok((
        length,
        if aliased {
            Err(Cause::BadHead)
        } else if !are_lists_short(head) {
            Err(Cause::HeadTooLarge)
        } else {
            host(head)
        },
    ))
}

/// Where the parts of a request line are.
struct RequestLine {
    /// Where its method ends.
    method: usize,
    target: Range,
    version: Version,
    /// With its CRLF.
    length: usize,
}

/// The request line that `bytes` begin with.
#[inline(always)]
fn request_line(bytes: &[u8]) -> Result<RequestLine, Cause> {
    let behind = if bytes.starts_with(b"GET ") { &bytes[3..] } else { scan::token(bytes).0 };
    let [b' ', target @ ..] = behind else { return Err(Cause::BadHead) };
    let behind = scan::target(target);
    let (method, start) = (bytes.len() - target.len() - 1, bytes.len() - target.len());
    let end = bytes.len() - behind.len();
    let [b' ', version @ ..] = behind else { return Err(Cause::BadHead) };
    if method == 0 || start == end {
        return Err(Cause::BadHead);
    }
    let Some((version, rest)) = version.split_first_chunk::<10>() else { return Err(Cause::BadHead) };
    let version = match version {
        b"HTTP/1.1\r\n" => Version::Http11,
        b"HTTP/1.0\r\n" => Version::Http10,
        other => return Err(explain(&bytes[..end], other)),
    };
    Ok(RequestLine { method, target: start..end, version, length: bytes.len() - rest.len() })
}

/// Whether the target is a path, so that Host is what it is for.
#[inline(always)]
fn is_plain(bytes: &[u8], line: &RequestLine) -> bool {
    bytes.get(line.target.start) == Some(&b'/') && bytes[..line.method] != *b"CONNECT"
}

/// Indexes the request's head `bytes` whose lines are those of `run`, with `host` in them, from `at` on. False: what stands before them is no
/// request line of HTTP/1.1 for a path.
#[inline]
pub(super) fn with_lines(bytes: &[u8], at: usize, run: &LineRun, host: Span, head: &mut Head) -> bool {
    let Ok(line) = request_line(bytes) else { return false };
    if line.length != at || line.version != Version::Http11 || !is_plain(bytes, &line) {
        return false;
    }
    head.clear();
    head.fill(bytes);
    let target = Span::new(line.target.start, line.target.end);
    head.set_request_line(Span::new(0, line.method), target, target, host.moved(at as u32));
    head.index_run(run, at);
    true
}

/// Indexes the answer's head at the start of `bytes`, if its lines are whole and well-formed.
#[inline(always)]
pub(super) fn answer_lines(bytes: &[u8], head: &mut Head) -> Result<Judged, Cause> {
    head.clear();
    let (version, rest) = bytes.split_first_chunk::<9>().ok_or(Cause::BadAnswer)?;
    if version == b"HTTP/1.0 " {
        head.version = Version::Http10;
    } else if version != b"HTTP/1.1 " {
        return Err(Cause::BadAnswer);
    }
    let (status, behind) = match rest.split_first_chunk() {
        Some((digits @ [b'1'..=b'9', b'0'..=b'9', b'0'..=b'9'], behind)) => {
            (digits.iter().fold(0, |number, &digit| number * 10 + u16::from(digit - b'0')), behind)
        }
        Some(_) | None => return Err(Cause::BadAnswer),
    };
    let (reason, behind) = match behind {
        [b' ', reason @ ..] => (reason, scan::value(reason)),
        _ => (behind, behind),
    };
    let [b'\r', b'\n', rest @ ..] = behind else { return Err(Cause::BadAnswer) };
    let (start, end) = (bytes.len() - reason.len(), bytes.len() - behind.len());
    let (length, aliased) = lines(bytes, bytes.len() - rest.len(), ANSWER_LINES, head)?;
    head.fill(&bytes[..length]);
    head.status = status;
    head.set_reason(Span::new(start, end));
    Ok((length, if aliased || !are_lists_short(head) { Err(Cause::BadAnswer) } else { Ok(()) }))
}

/// Whether what we read item by item is as short as it is with everybody who means well.
#[inline(always)]
fn are_lists_short(head: &Head) -> bool {
    !head.fields().meets(LISTS) || are_found_lists_short(head)
}

/// The same for a head that has such lists.
#[inline(never)]
fn are_found_lists_short(head: &Head) -> bool {
    let (mut bytes, mut lines) = (0, 0);
    for line in head.lines().iter().filter(|line| LISTS.contains(line.field)) {
        bytes += head.at(line.value()).len();
        lines += 1;
    }
    // So few bytes hold no more items than may be.
    bytes + lines <= OPTIONS || bytes <= LIST_BYTES && are_options_few(head)
}

#[cold]
fn are_options_few(head: &Head) -> bool {
    let commas = |value: &[u8]| value.iter().filter(|&&byte| byte == b',').count();
    head.values(HeaderField::Connection).map(|value| 1 + commas(value)).sum::<usize>() <= OPTIONS
}

/// What is wrong with the end of a request line that does not say HTTP/1.0 or HTTP/1.1.
#[cold]
fn explain(method_and_target: &[u8], version: &[u8; 10]) -> Cause {
    match version {
        b"HTTP/2.0\r\n" if method_and_target == b"PRI *" => Cause::Http2Preface,
        [b'H', b'T', b'T', b'P', b'/', major, b'.', minor, b'\r', _]
            if major.is_ascii_digit() && minor.is_ascii_digit() && (*major != b'1' || *minor > b'1') =>
        {
            Cause::BadVersion
        }
        _ => Cause::BadHead,
    }
}

/// Indexes the header lines that stand in `bytes` from `at` on, `most` of them. Tells where the head ends, and whether a
/// name stands for a framing field with a backend that reads `_` as `-`.
#[inline(always)]
fn lines(bytes: &[u8], at: usize, most: usize, head: &mut Head) -> Result<(usize, bool), Cause> {
    let rest = common_lines(bytes.len(), &bytes[at..], most, head);
    let end = bytes.len() - rest.len();
    if rest.starts_with(b"\r\n") { Ok((end + 2, false)) } else { all_lines(bytes, end, most, head) }
}

/// The same for lines of which the first is not a common one.
#[inline(never)]
fn all_lines(bytes: &[u8], at: usize, most: usize, head: &mut Head) -> Result<(usize, bool), Cause> {
    let (mut rest, mut aliased) = (&bytes[at..], false);
    loop {
        if let [b'\r', b'\n', behind @ ..] = rest {
            return Ok((bytes.len() - behind.len(), aliased));
        }
        let (line, alias) = any(bytes, bytes.len() - rest.len()).ok_or(Cause::BadHead)?;
        if head.lines().len() == most {
            return Err(Cause::TooManyHeaders);
        }
        head.index(line);
        aliased |= alias;
        rest = common_lines(bytes.len(), &bytes[line.end()..], most, head);
    }
}

/// Indexes the lines that `rest` begins with as long as they are common ones. Gives what is behind them. A loop of its
/// own, so that the processor's registers hold all that it needs.
#[inline(never)]
fn common_lines<'a>(total: usize, mut rest: &'a [u8], most: usize, head: &mut Head) -> &'a [u8] {
    while let Some(behind) = common(total, rest, most, head) {
        rest = behind;
    }
    rest
}

/// Indexes a line if it looks as nearly all do: a name of at most 16 letters and hyphens, a colon, one blank, and a value
/// that holds no tab, is not empty and has no other blank around it. Gives what is behind the line. `total`: the bytes
/// of the head up to the end of `line`.
#[inline(always)]
fn common<'a>(total: usize, line: &'a [u8], most: usize, head: &mut Head) -> Option<&'a [u8]> {
    let (name, behind) = line.split_at_checked(scan::letters_and_hyphens(line))?;
    let (colon, behind) = behind.split_first_chunk()?;
    if name.is_empty() || colon != b": " {
        return None;
    }
    let (value, end) = behind.split_at_checked(scan::to_control(behind))?;
    let (line_end, next) = end.split_first_chunk()?;
    let is_trimmed = *value.first()? != b' ' && *value.last()? != b' ';
    if line_end != b"\r\n" || !is_trimmed || head.lines().len() == most {
        return None;
    }
    let start = total - line.len();
    let name_end = start + name.len();
    let value_end = name_end + 2 + value.len();
    let spans = (Span::new(start, name_end), Span::new(name_end + 2, value_end));
    head.index(HeadLine::new(HeaderField::classify(name), spans.0, spans.1, value_end + 2));
    Some(next)
}

/// The header line that stands at `start`, however it looks, and whether its name stands for a framing field with a
/// backend that reads `_` as `-`. `None`: there is no line.
fn any(bytes: &[u8], start: usize) -> Option<(HeadLine, bool)> {
    let line = bytes.get(start..)?;
    let (behind, plain) = scan::token(line);
    let name = &line[..line.len() - behind.len()];
    let [b':', behind @ ..] = behind else { return None };
    let value = scan::blanks(behind);
    let end = scan::value(value);
    let [b'\r', b'\n', next @ ..] = end else { return None };
    if name.is_empty() {
        return None;
    }
    let (field, aliased) = classify(name, plain).map_or((HeaderField::Other, true), |field| (field, false));
    let value_start = bytes.len() - value.len();
    let value_end = value_start + scan::without_blanks_behind(&value[..value.len() - end.len()]).len();
    let spans = (Span::new(start, start + name.len()), Span::new(value_start, value_end));
    Some((HeadLine::new(field, spans.0, spans.1, bytes.len() - next.len()), aliased))
}

/// The field that a name is, or stands for with a backend that reads `_` as `-`. `plain`: it holds letters and hyphens
/// alone. `None`: it stands for a field that frames or routes a message.
#[inline(always)]
pub(in crate::proxy::http) fn classify(name: &[u8], plain: bool) -> Option<HeaderField> {
    match HeaderField::classify(name) {
        HeaderField::Other if !plain => alias(name),
        field => Some(field),
    }
}

/// What a name that we don't know stands for with a backend that reads `_` as `-`: a client could speak in our name
/// to it. `None`: it would even frame the message by it.
#[cold]
fn alias(name: &[u8]) -> Option<HeaderField> {
    match HeaderField::classify_alias(name) {
        HeaderField::Host | HeaderField::ContentLength | HeaderField::TransferEncoding => None,
        alias if alias.is_about_client() => Some(HeaderField::ClientAlias),
        _ => Some(HeaderField::Other),
    }
}

type Range = std::ops::Range<usize>;

/// Whether all of this may stand in a request line as its target, whatever its form.
#[must_use]
pub fn is_target(bytes: &[u8]) -> bool {
    !bytes.is_empty() && scan::target(bytes).is_empty()
}

/// Path and authority inside a target that is more than a path, by its form (RFC 9112 §3.2).
#[inline(never)]
fn target_parts(method: &[u8], bytes: &[u8]) -> Result<(Range, Option<Range>), Cause> {
    if method == b"CONNECT" {
        // Refused in any form; only the reason could differ.
        return if is_authority(bytes) {
            Ok((0..0, Some(0..bytes.len())))
        } else {
            Err(Cause::ConnectMethod)
        };
    }
    if bytes == b"*" {
        return if method == b"OPTIONS" { Ok((0..1, None)) } else { Err(Cause::BadHead) };
    }
    let after_scheme = ["http://", "https://"].iter().find_map(|scheme| {
        let start = bytes.get(..scheme.len())?;
        start.eq_ignore_ascii_case(scheme.as_bytes()).then_some(scheme.len())
    });
    let start = after_scheme.ok_or(Cause::BadHead)?;
    let length = memchr::memchr2(b'/', b'?', &bytes[start..]);
    let end = length.map_or(bytes.len(), |length| start + length);
    if !is_authority(&bytes[start..end]) {
        return Err(Cause::BadHost);
    }
    Ok((end..bytes.len(), Some(start..end)))
}

/// RFC 9110 §7.2 and RFC 9112 §3.2: HTTP/1.1 needs exactly one valid Host.
///
/// # Errors
/// [`Cause::BadHost`].
#[inline(always)]
pub fn host(head: &mut Head) -> Result<(), Cause> {
    match head.line(HeaderField::Host) {
        Some(line) if !head.repeats(HeaderField::Host) && is_authority(head.at(line.value())) => {
            head.set_authority(line.value());
            Ok(())
        }
        None if head.version == Version::Http10 => Ok(()),
        Some(_) | None => Err(Cause::BadHost),
    }
}

/// `host[:port]` (RFC 3986 §3.2 without userinfo): a name, a v4 address or a v6 address in brackets. None is longer than
/// 1 KiB.
#[must_use]
pub fn is_authority(bytes: &[u8]) -> bool {
    if bytes.len() > AUTHORITY {
        return false;
    }
    let is_name = |byte: &u8| is_host_name(*byte);
    let (host, rest) = bytes.split_at(host_name_length(bytes));
    match rest.first() {
        None => !host.is_empty(),
        Some(b':') => !host.is_empty() && is_port(&rest[1..]),
        Some(b'%') => {
            let colon = bytes.iter().position(|&byte| byte == b':').unwrap_or(bytes.len());
            let (host, port) = bytes.split_at(colon);
            host.iter().all(|byte| is_name(byte) || *byte == b'%')
                && are_escapes_whole(host)
                && (port.is_empty() || is_port(&port[1..]))
        }
        Some(b'[') if host.is_empty() => {
            let Some(end) = rest.iter().position(|&byte| byte == b']') else { return false };
            let inner = std::str::from_utf8(&rest[1..end]).unwrap_or_default();
            inner.parse::<std::net::Ipv6Addr>().is_ok()
                && match &rest[end + 1..] {
                    [] => true,
                    [b':', port @ ..] => is_port(port),
                    _ => false,
                }
        }
        Some(_) => false,
    }
}

/// Digits, or none at all (RFC 3986 §3.2.3).
fn is_port(digits: &[u8]) -> bool {
    digits.len() <= 5 && digits.iter().all(u8::is_ascii_digit)
}

/// Every `%` begins an escape (RFC 3986 §2.1): what else it could be is guessed differently.
fn are_escapes_whole(bytes: &[u8]) -> bool {
    let mut behind = bytes.split(|&byte| byte == b'%').skip(1);
    behind.all(|rest| rest.get(..2).is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit)))
}

#[cfg(test)]
mod tests;
