//! Texts with variables in the places where they go: values of header lines, `Location`, paths.
//!
//! What a client sends may stand in any of them, so none of them trusts it: the value of a header that is none is no line at all, and
//! in a URI or a path what may not stand there is escaped.

use crate::config::model::text::{Text, TextPiece, Variable};

use super::facts::TextFacts;

/// A value that can't stand in a header line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unwritable;

/// Appends the value of a header line.
///
/// # Errors
/// It would not be one: it has a line end, a NUL or another control character in it. Then nothing is appended.
pub fn header_value(text: &Text, facts: &TextFacts<'_>, out: &mut Vec<u8>) -> Result<(), Unwritable> {
    let start = out.len();
    facts.push(text, out);
    let value = &out[start..];
    if !is_field_value(value) {
        out.truncate(start);
        return Err(Unwritable);
    }
    // Blanks at the ends are no part of a value (RFC 9110 §5.5).
    let blank = |byte: &u8| matches!(byte, b' ' | b'\t');
    let front = value.iter().take_while(|byte| blank(byte)).count();
    let back = value[front..].iter().rev().take_while(|byte| blank(byte)).count();
    out.truncate(out.len() - back);
    out.drain(start..start + front);
    Ok(())
}

/// Whether these bytes may stand in a header line behind the colon (RFC 9110 §5.5).
#[must_use]
pub fn is_field_value(value: &[u8]) -> bool {
    value.iter().all(|&byte| byte == b'\t' || byte >= b' ' && byte != 0x7f)
}

/// Where a redirect leads; empty: nowhere. What may not stand in a URI is escaped.
#[must_use]
pub fn location(to: &Text, facts: &TextFacts<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    for piece in to.pieces() {
        let start = out.len();
        match piece {
            TextPiece::Plain(plain) => out.extend_from_slice(plain.as_bytes()),
            TextPiece::Value(variable) => {
                facts.push_value(variable, &mut out);
                // What is asked of a host or a server as a whole is found at its root.
                if matches!(variable, Variable::Path | Variable::PathOnly)
                    && matches!(&out[start..], b"" | b"*")
                {
                    out.splice(start.., [b'/']);
                }
            }
        }
        escape(&mut out, start, is_of_uri);
    }
    // A path that a client has sent must not become the name of another host (RFC 3986 §4.2).
    let says_host = |plain: &str| plain.starts_with("//");
    let is_meant = matches!(to.pieces().first(), Some(TextPiece::Plain(plain)) if says_host(plain));
    if !is_meant {
        let slashes = out.iter().take_while(|&&byte| byte == b'/').count();
        out.drain(..slashes.saturating_sub(1));
    }
    out
}

/// A path, and a query if it has one. What may not stand there is escaped; of what is filled in only `{path}` may begin a query.
#[must_use]
pub(super) fn path(text: &Text, facts: &TextFacts<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    for piece in text.pieces() {
        let start = out.len();
        let in_query = out.contains(&b'?');
        match piece {
            TextPiece::Plain(plain) => out.extend_from_slice(plain.as_bytes()),
            TextPiece::Value(variable) => facts.push_value(variable, &mut out),
        }
        let may_ask = in_query || matches!(piece, TextPiece::Plain(_) | TextPiece::Value(Variable::Path));
        escape(&mut out, start, |byte| is_of_uri(byte) && byte != b'#' && (may_ask || byte != b'?'));
    }
    out
}

/// Whether a byte may stand in a URI as it is (RFC 3986 §2).
fn is_of_uri(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~:/?#[]@!$&'()*+,;=%".contains(&byte)
}

/// Escapes what may not stay from `start` on.
fn escape(out: &mut Vec<u8>, start: usize, stays: impl Fn(u8) -> bool) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    let Some(first) = out[start..].iter().position(|&byte| !stays(byte)) else { return };
    let rest = out.split_off(start + first);
    for byte in rest {
        if stays(byte) {
            out.push(byte);
        } else {
            out.extend_from_slice(&[b'%', DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use regex::bytes::Regex;

    use super::*;
    use crate::config::model::text::TextPlace;
    use crate::message::Head;
    use crate::route::facts::Groups;

    fn text(source: &str) -> Text {
        Text::parse(source, TextPlace::ANSWER.with_groups(Some(9))).expect("a text")
    }

    /// What `make` makes of a request with this path, header `X-A` and cookie `c`.
    fn with<T>(path: &str, value: &[u8], make: impl FnOnce(&TextFacts<'_>) -> T) -> T {
        let mut head = Head::request("GET", path, "h.example:81");
        head.push(b"X-A", value);
        head.push(b"Cookie", &[b"c=", value].concat());
        let regex = Regex::new("^/g/(.*)$").expect("an expression");
        make(&TextFacts {
            told: None,
            head: &head,
            groups: Groups::of(&regex, super::super::facts::split(path.as_bytes()).0),
            client: None,
            scheme: "http",
            id: 1,
            target: "",
            backend: "",
            tls: "",
            subject: "",
            user: "",
        })
    }

    fn header(source: &str, value: &[u8]) -> Result<String, Unwritable> {
        with("/g/x?y", value, |facts| {
            let mut out = b"before ".to_vec();
            let done = header_value(&text(source), facts, &mut out);
            assert!(out.starts_with(b"before ") && (done.is_ok() || out == b"before "));
            done.map(|()| String::from_utf8_lossy(&out[7..]).into_owned())
        })
    }

    #[test]
    fn a_value_that_would_end_its_line_is_no_value() {
        assert_eq!(header(" {hostname}: {header.x-a} ", b"v 1").as_deref(), Ok("h.example: v 1"));
        assert_eq!(header("  ", b"").as_deref(), Ok(""));
        assert_eq!(header("{cookie.c}", "é".as_bytes()).as_deref(), Ok("é"));
        for value in [&b"a\r\nX: y"[..], b"a\nb", b"a\rb", b"\0", b"\x1b[2J", b"\x7f"] {
            assert_eq!(header("x{header.x-a}", value), Err(Unwritable), "{value:?}");
            assert_eq!(header("{cookie.c}", value), Err(Unwritable), "{value:?}");
        }
    }

    #[test]
    fn a_location_is_a_uri_and_stays_where_it_was_meant_to_lead() {
        for (source, path, value, expected) in [
            ("https://{hostname}{path}", "/a%20b?c=d", "", "https://h.example/a%20b?c=d"),
            ("https://{host}{path_only}#x", "/a", "", "https://h.example:81/a#x"),
            ("https://{hostname}{path}", "*", "", "https://h.example/"),
            ("https://{hostname}{path}", "", "", "https://h.example/"),
            ("/b c/$1", "/g/x", "", "/b%20c/x"),
            ("/x?{header.x-a}", "/", "a b\r\nX: y\\\"", "/x?a%20b%0D%0AX:%20y%5C%22"),
            ("/x/{cookie.c}", "/", "é\0", "/x/%C3%A9%00"),
            ("{path_only}/", "//evil.example/a", "", "/evil.example/a/"),
            ("/$1", "/g//evil.example", "", "/evil.example"),
            ("$1", "/g///evil.example", "", "/evil.example"),
            ("{header.x-a}", "/", "/\\evil.example", "/%5Cevil.example"),
            ("//cdn.example{path}", "/a", "", "//cdn.example/a"),
            ("{header.x-a}", "/", "", ""),
        ] {
            let made = with(path, value.as_bytes(), |facts| location(&text(source), facts));
            assert_eq!(String::from_utf8_lossy(&made), expected, "{source} of {path}");
        }
    }

    #[test]
    fn of_what_is_filled_in_only_the_path_of_the_client_begins_a_query() {
        for (source, value, expected) in [
            ("/v2/$1", "", "/v2/x"),
            ("/v2{path}", "", "/v2/g/x?y"),
            ("/v2/{header.x-a}", "a?b#c", "/v2/a%3Fb%23c"),
            ("/v2?a={header.x-a}", "a?b#c", "/v2?a=a?b%23c"),
            ("/v2/{cookie.c}", "a b\r\nc", "/v2/a%20b%0D%0Ac"),
        ] {
            let made = with("/g/x?y", value.as_bytes(), |facts| path(&text(source), facts));
            assert_eq!(String::from_utf8_lossy(&made), expected, "{source}");
        }
    }

    proptest! {
        #[test]
        fn nothing_that_a_client_sends_ends_a_line_or_is_no_uri(
            value in prop::collection::vec(any::<u8>(), 0..40),
            source in "(/|a|\\{header\\.x-a\\}|\\{cookie\\.c\\}|\\{query\\}|\\?| ){1,6}",
        ) {
            let text = text(&source);
            with("/g/x?y", &value, |facts| {
                let mut out = Vec::new();
                if header_value(&text, facts, &mut out).is_ok() {
                    prop_assert!(!out.iter().any(|&byte| byte < b' ' && byte != b'\t' || byte == 0x7f));
                }
                for made in [location(&text, facts), path(&text, facts)] {
                    prop_assert!(made.iter().all(|&byte| is_of_uri(byte)), "{:?}", made);
                }
                Ok(())
            })?;
        }
    }
}
