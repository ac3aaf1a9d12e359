//! Bodies (RFC 9112 §§6, 7).

use super::cursor::Cursor;
use super::grammar::{field_line, is_blank, is_tchar, quoted_string};
use super::head::Length;
use super::{Field, Stop};

/// A body that was read to its end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Body {
    /// The content.
    pub content: Vec<u8>,
    /// The trailer fields.
    pub trailers: Vec<Field>,
    /// Where the next message begins.
    pub end: usize,
}

/// The body that begins at `start`.
///
/// # Errors
/// See [`Stop`].
pub fn body(bytes: &[u8], start: usize, length: Length) -> Result<Body, Stop> {
    let mut cursor = Cursor::new(bytes, start);
    let mut body = Body::default();
    match length {
        Length::None => {}
        Length::Exact(count) => body.content.extend_from_slice(cursor.bytes(count)?),
        Length::UntilClose => body.content.extend_from_slice(cursor.rest()),
        // chunked-body = *chunk last-chunk trailer-section CRLF
        Length::Chunked => {
            loop {
                let size = chunk_line(&mut cursor)?;
                if size == 0 {
                    break;
                }
                body.content.extend_from_slice(cursor.bytes(size)?);
                cursor.crlf()?;
            }
            while cursor.peek()? != b'\r' {
                body.trailers.push(field_line(&mut cursor)?);
            }
            cursor.crlf()?;
        }
    }
    body.end = cursor.at;
    Ok(body)
}

/// `chunk-size [ chunk-ext ] CRLF` (RFC 9112 §7.1).
fn chunk_line(cursor: &mut Cursor<'_>) -> Result<u64, Stop> {
    let mut size = 0u64;
    for &digit in cursor.some(|byte| byte.is_ascii_hexdigit(), "chunk-size")? {
        let value = match digit {
            b'0'..=b'9' => digit - b'0',
            b'a'..=b'f' => digit - b'a' + 10,
            _ => digit - b'A' + 10,
        };
        size = size
            .checked_mul(16)
            .and_then(|size| size.checked_add(u64::from(value)))
            .ok_or(Stop::Refused("a chunk-size that a number can hold"))?;
    }
    // chunk-ext = *( BWS ";" BWS chunk-ext-name [ BWS "=" BWS chunk-ext-val ] )
    while cursor.peek()? != b'\r' {
        cursor.run(is_blank)?;
        cursor.literal(b";", "chunk-ext")?;
        cursor.run(is_blank)?;
        cursor.some(is_tchar, "chunk-ext-name")?;
        let behind = *cursor;
        cursor.run(is_blank)?;
        if cursor.takes(b'=')? {
            cursor.run(is_blank)?;
            if cursor.peek()? == b'"' {
                quoted_string(cursor)?;
            } else {
                cursor.some(is_tchar, "chunk-ext-val")?;
            }
        } else {
            // The blanks belong to the next extension, if there is one.
            *cursor = behind;
        }
    }
    cursor.crlf()?;
    Ok(size)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunked(text: &str) -> Result<Body, Stop> {
        body(text.as_bytes(), 0, Length::Chunked)
    }

    #[test]
    fn chunks() {
        assert_eq!(chunked("3 ; a;b=c ; d = \"e\\\"\r\"\r\nabc\r\n"), Err(Stop::Refused("qdtext")));
        let text = "3;a;b=c ;d = \"e\\\" f\"\r\nabc\r\nA\r\n0123456789\r\n00\r\nT: v \r\n\r\nX";
        let read = chunked(text).expect("well-formed");
        assert_eq!((&read.content[..], read.end), (&b"abc0123456789"[..], text.len() - 1));
        assert_eq!(read.trailers, [(b"T".to_vec(), b"v".to_vec())]);
        for cut in ["", "3", "3\r", "3\r\nab", "3\r\nabc", "3\r\nabc\r\n", "0\r\n", "0\r\n\r", "0\r\nT:"] {
            assert_eq!(chunked(cut), Err(Stop::Incomplete), "{cut:?}");
        }
        for bad in
            ["\r\n", "g\r\n", "-1\r\n", "3\nabc", "3\r\nabcd", "3;\r\n", "3;a=\r\n", "3 \r\n", "0\r\n:\r\n"]
        {
            assert!(matches!(chunked(bad), Err(Stop::Refused(_))), "{bad:?}");
        }
        assert!(matches!(chunked("10000000000000000\r\n"), Err(Stop::Refused(_))));
    }

    #[test]
    fn lengths() {
        let of = |length| body(b"abcdef", 2, length).map(|body| (body.content, body.end));
        assert_eq!(of(Length::None), Ok((Vec::new(), 2)));
        assert_eq!(of(Length::Exact(3)), Ok((b"cde".to_vec(), 5)));
        assert_eq!(of(Length::Exact(5)), Err(Stop::Incomplete));
        assert_eq!(of(Length::UntilClose), Ok((b"cdef".to_vec(), 6)));
    }
}
