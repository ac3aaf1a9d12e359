//! Request lines, status lines, fields, and the length of the body they announce.

use super::cursor::Cursor;
use super::grammar::{field_line, is_authority, is_blank, is_field_vchar, is_tchar};
use super::{Field, Stop};

/// The length of a body (RFC 9112 §6.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// No body.
    None,
    /// So many bytes.
    Exact(u64),
    /// Chunks.
    Chunked,
    /// All that comes.
    UntilClose,
}

/// The form of a request target (RFC 9112 §3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A path.
    Origin,
    /// A whole URI.
    Absolute,
    /// Host and port, for CONNECT.
    Authority,
    /// `*`, for OPTIONS.
    Asterisk,
}

/// A request's head.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// As written.
    pub method: Vec<u8>,
    /// As written.
    pub target: Vec<u8>,
    /// What the target is.
    pub form: Form,
    /// Path and query of the target, as written; empty when it has none.
    pub path: Vec<u8>,
    /// Of the target if it has one, else of Host, else empty (RFC 9112 §3.2.2).
    pub authority: Vec<u8>,
    /// The version's second digit.
    pub minor: u8,
    /// In order.
    pub fields: Vec<Field>,
    /// The length of the body.
    pub length: Length,
    /// Where the body begins.
    pub end: usize,
}

/// An answer's head.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The version's second digit.
    pub minor: u8,
    /// Three digits.
    pub status: u16,
    /// The reason phrase, as written.
    pub reason: Vec<u8>,
    /// In order.
    pub fields: Vec<Field>,
    /// The length of the body.
    pub length: Length,
    /// Where the body begins.
    pub end: usize,
}

/// `request-line CRLF *( field-line CRLF ) CRLF` (RFC 9112 §§2.1, 3).
///
/// # Errors
/// See [`Stop`].
pub fn request(bytes: &[u8], start: usize) -> Result<Request, Stop> {
    let mut cursor = Cursor::new(bytes, start);
    // RFC 9112 §2.2: at least one empty line before a request line is to be ignored. One is.
    if cursor.peek()? == b'\r' {
        cursor.crlf()?;
    }
    let method = cursor.some(is_tchar, "method")?.to_vec();
    cursor.literal(b" ", "SP behind method")?;
    let target = cursor.some(is_target_byte, "request-target")?.to_vec();
    cursor.literal(b" ", "SP behind request-target")?;
    let minor = version(&mut cursor)?;
    cursor.crlf()?;
    let (form, path, authority) = target_parts(&method, &target)?;
    let fields = fields(&mut cursor)?;
    // RFC 9112 §3.2: exactly one valid Host, which HTTP/1.0 may lack.
    let hosts: Vec<&[u8]> = named(&fields, b"host").collect();
    let authority = match (&hosts[..], authority) {
        ([host], _) if !is_authority(host) => return Err(Stop::Refused("Host")),
        ([_], Some(authority)) => authority,
        ([host], None) => host.to_vec(),
        ([], authority) if minor == 0 => authority.unwrap_or_default(),
        _ => return Err(Stop::Refused("one Host")),
    };
    let length = match announced(&fields, minor)? {
        Length::UntilClose => Length::None,
        other => other,
    };
    Ok(Request { method, target, form, path, authority, minor, fields, length, end: cursor.at })
}

/// `status-line CRLF *( field-line CRLF ) CRLF` (RFC 9112 §§2.1, 4). `to_head`: the request was a HEAD.
///
/// # Errors
/// See [`Stop`].
pub fn answer(bytes: &[u8], start: usize, to_head: bool) -> Result<Answer, Stop> {
    let mut cursor = Cursor::new(bytes, start);
    let minor = version(&mut cursor)?;
    cursor.literal(b" ", "SP behind HTTP-version")?;
    let digits = cursor.run(|byte| byte.is_ascii_digit())?;
    let [hundreds @ b'1'..=b'9', tens, units] = *digits else { return Err(Stop::Refused("status-code")) };
    let status = [hundreds, tens, units].iter().fold(0, |sum, digit| sum * 10 + u16::from(digit - b'0'));
    // Milder than the grammar: without a reason the blank may be missing, as many servers write it. RFC 9112 §4
    // lets recipients do so, and nothing stands there.
    let reason = if cursor.takes(b' ')? {
        cursor.run(|byte| is_field_vchar(byte) || is_blank(byte))?.to_vec()
    } else {
        Vec::new()
    };
    cursor.crlf()?;
    let fields = fields(&mut cursor)?;
    let length = announced(&fields, minor)?;
    let length = if to_head || matches!(status, 100..=199 | 204 | 304) { Length::None } else { length };
    Ok(Answer { minor, status, reason, fields, length, end: cursor.at })
}

/// `HTTP-version` (RFC 9112 §2.3), of the two versions there are.
fn version(cursor: &mut Cursor<'_>) -> Result<u8, Stop> {
    cursor.literal(b"HTTP/1.", "HTTP-version")?;
    match cursor.peek()? {
        digit @ (b'0' | b'1') => {
            cursor.at += 1;
            Ok(digit - b'0')
        }
        _ => Err(Stop::Refused("HTTP-version")),
    }
}

fn fields(cursor: &mut Cursor<'_>) -> Result<Vec<Field>, Stop> {
    let mut fields = Vec::new();
    while cursor.peek()? != b'\r' {
        fields.push(field_line(cursor)?);
    }
    cursor.crlf()?;
    Ok(fields)
}

/// All values of a field. `name` is in lower case.
fn named<'a>(fields: &'a [Field], name: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
    fields.iter().filter(move |(field, _)| field.eq_ignore_ascii_case(name)).map(|(_, value)| &value[..])
}

/// What the fields say about the length; [`Length::UntilClose`] when they say nothing. Everything that RFC 9112
/// §6.3 lets a recipient repair is refused.
fn announced(fields: &[Field], minor: u8) -> Result<Length, Stop> {
    let lengths: Vec<&[u8]> = named(fields, b"content-length").collect();
    let codings: Vec<&[u8]> = named(fields, b"transfer-encoding").collect();
    match (&lengths[..], &codings[..]) {
        ([], []) => Ok(Length::UntilClose),
        ([length], []) => {
            // Content-Length = 1*DIGIT
            let digits = !length.is_empty() && length.iter().all(u8::is_ascii_digit);
            let text = std::str::from_utf8(length).ok().filter(|_| digits);
            let number = text.and_then(|text| text.parse::<u64>().ok());
            number.map(Length::Exact).ok_or(Stop::Refused("Content-Length"))
        }
        ([], [coding]) if minor == 1 && coding.eq_ignore_ascii_case(b"chunked") => Ok(Length::Chunked),
        ([], _) => Err(Stop::Refused("Transfer-Encoding")),
        (_, []) => Err(Stop::Refused("one Content-Length")),
        (_, _) => Err(Stop::Refused("Transfer-Encoding or Content-Length")),
    }
}

/// Bytes of a request target. Milder than the grammar of RFC 3986: `[ ] \ ^ { | }`, the backquote and a `%` by
/// itself are in use in paths, and none of them ends a target.
fn is_target_byte(byte: u8) -> bool {
    matches!(byte, 0x21 | 0x24..=0x3b | 0x3d | 0x3f..=0x7e)
}

type Parts = (Form, Vec<u8>, Option<Vec<u8>>);

/// Form, path and authority of a target (RFC 9112 §3.2).
fn target_parts(method: &[u8], target: &[u8]) -> Result<Parts, Stop> {
    if method == b"CONNECT" {
        let is_one = is_authority(target) && target.contains(&b':');
        let parts = (Form::Authority, Vec::new(), Some(target.to_vec()));
        return if is_one { Ok(parts) } else { Err(Stop::Refused("authority-form")) };
    }
    match target {
        [b'/', ..] => Ok((Form::Origin, target.to_vec(), None)),
        b"*" if method == b"OPTIONS" => Ok((Form::Asterisk, b"*".to_vec(), None)),
        _ => {
            let refused = Stop::Refused("absolute-form");
            // scheme "://" authority path-abempty [ "?" query ]
            let colon = target.iter().position(|&byte| byte == b':').ok_or(refused)?;
            let (scheme, rest) = target.split_at(colon);
            let scheme_is_one = scheme.first().is_some_and(u8::is_ascii_alphabetic)
                && scheme.iter().all(|&byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
            let [b':', b'/', b'/', rest @ ..] = rest else { return Err(refused) };
            let end = rest.iter().position(|&byte| matches!(byte, b'/' | b'?')).unwrap_or(rest.len());
            let (authority, path) = rest.split_at(end);
            if !scheme_is_one || !is_authority(authority) {
                return Err(refused);
            }
            Ok((Form::Absolute, path.to_vec(), Some(authority.to_vec())))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Result<Request, Stop> {
        request(text.as_bytes(), 0)
    }

    #[test]
    fn requests() {
        let text = "\r\nPOST /a?b HTTP/1.1\r\nhOst: x:1\r\nA:\t b c \r\nContent-Length: 3\r\n\r\nabc";
        let read = of(text).expect("well-formed");
        assert_eq!(
            (&read.method[..], &read.path[..], &read.authority[..]),
            (&b"POST"[..], &b"/a?b"[..], &b"x:1"[..])
        );
        assert_eq!(read.fields[1], (b"A".to_vec(), b"b c".to_vec()));
        assert_eq!((read.length, read.end), (Length::Exact(3), text.len() - 3));
        let read = of("GET http://a?q HTTP/1.1\r\nHost: b\r\n\r\n").expect("well-formed");
        assert_eq!((read.form, &read.path[..], &read.authority[..]), (Form::Absolute, &b"?q"[..], &b"a"[..]));
        for cut in 0..text.len() - 3 {
            assert_eq!(of(&text[..cut]), Err(Stop::Incomplete), "{cut}");
        }
    }

    #[test]
    fn what_no_request_is() {
        for bad in [
            "GET / HTTP/1.1\nHost: x\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: x\n\r\n",
            "GET / HTTP/1.1\r\nHost: x\r\n\n",
            "GET  / HTTP/1.1\r\nHost: x\r\n\r\n",
            "GET / HTTP/1.1 \r\nHost: x\r\n\r\n",
            "GET / HTTP/1.2\r\nHost: x\r\n\r\n",
            "GET /#a HTTP/1.1\r\nHost: x\r\n\r\n",
            "GET * HTTP/1.1\r\nHost: x\r\n\r\n",
            "GET / HTTP/1.1\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: x\r\nHost: x\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: x\r\nA : b\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: x\r\nA: b\r\n c\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: x\r\nA: b\0c\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: x\r\nContent-Length: +1\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked, chunked\r\n\r\n",
            "GET / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n",
        ] {
            assert!(matches!(of(bad), Err(Stop::Refused(_))), "{bad:?}: {:?}", of(bad));
        }
    }

    #[test]
    fn answers() {
        let of = |text: &str, to_head| answer(text.as_bytes(), 0, to_head);
        let read = of("HTTP/1.1 404 Not Found\r\nContent-Length: 5\r\n\r\n", false).expect("well-formed");
        assert_eq!((read.status, &read.reason[..], read.length), (404, &b"Not Found"[..], Length::Exact(5)));
        let length = |text, to_head| of(text, to_head).map(|read| read.length);
        assert_eq!(length("HTTP/1.1 200 \r\n\r\n", false), Ok(Length::UntilClose));
        assert_eq!(length("HTTP/1.1 200\r\nTransfer-Encoding: CHUNKED\r\n\r\n", false), Ok(Length::Chunked));
        assert_eq!(length("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", true), Ok(Length::None));
        for bad in [
            "HTTP/1.1 99 a\r\n\r\n",
            "HTTP/1.1 099 a\r\n\r\n",
            "HTTP/1.1 2000 a\r\n\r\n",
            "http/1.1 200 a\r\n\r\n",
        ] {
            assert!(matches!(of(bad, false), Err(Stop::Refused(_))), "{bad:?}");
        }
    }
}
