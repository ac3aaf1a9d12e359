//! What a request makes invalid that changes things (RFC 9111 §4.4).

use crate::message::Head;

use super::fields::single;
use super::key::write_authority;

/// Whether an answer to this method makes what is stored under its own URL invalid: the method is none that is known to be safe, and
/// the answer is no error.
#[must_use]
pub fn invalidates(method: &[u8], status: u16) -> bool {
    !matches!(method, b"GET" | b"HEAD" | b"OPTIONS" | b"TRACE") && (200..400).contains(&status)
}

/// The paths, with their queries, that an answer to such a request makes invalid as well: what `Location` and `Content-Location` name,
/// if it is of the same origin. `path`: that of the request. They are as they are written, with their dots resolved; who normalises paths
/// of requests does the same to them.
pub fn invalidated(
    is_https: bool,
    authority: &[u8],
    path: &[u8],
    answer: &Head,
) -> impl Iterator<Item = Vec<u8>> {
    let one =
        |name| single(answer, name).and_then(|reference| resolved(is_https, authority, path, reference));
    [one("location"), one("content-location")].into_iter().flatten()
}

/// Path and query of a reference (RFC 3986 §5.2); `None`: it is of another origin.
fn resolved(is_https: bool, authority: &[u8], path: &[u8], reference: &[u8]) -> Option<Vec<u8>> {
    let end = memchr::memchr(b'#', reference).unwrap_or(reference.len());
    let reference = &reference[..end];
    let rest = match scheme(reference) {
        Some((scheme, rest)) => {
            let ours: &[u8] = if is_https { b"https" } else { b"http" };
            // Without slashes it is no URL of ours.
            scheme.eq_ignore_ascii_case(ours).then_some(rest).filter(|rest| rest.starts_with(b"//"))?
        }
        None => reference,
    };
    if let Some(behind) = rest.strip_prefix(b"//") {
        let end = behind.iter().position(|byte| matches!(byte, b'/' | b'?')).unwrap_or(behind.len());
        let same = |authority: &[u8]| {
            let mut out = Vec::new();
            write_authority(is_https, authority, &mut out);
            out
        };
        if same(&behind[..end]) != same(authority) {
            return None;
        }
        return Some(without_dots(&behind[end..]));
    }
    let base = memchr::memchr(b'?', path).unwrap_or(path.len());
    Some(match rest.first() {
        None => path.to_vec(),
        Some(b'/') => without_dots(rest),
        Some(b'?') => [&path[..base], rest].concat(),
        Some(_) => {
            let folder = memchr::memrchr(b'/', &path[..base]).map_or(0, |slash| slash + 1);
            without_dots(&[&path[..folder], rest].concat())
        }
    })
}

/// A scheme and what is behind its colon.
fn scheme(reference: &[u8]) -> Option<(&[u8], &[u8])> {
    let colon = reference.iter().position(|byte| matches!(byte, b':' | b'/' | b'?'))?;
    let (scheme, rest) = reference.split_at(colon);
    let fits = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
    let is_scheme = scheme.first().is_some_and(u8::is_ascii_alphabetic) && scheme.iter().all(fits);
    rest.strip_prefix(b":").filter(|_| is_scheme).map(|rest| (scheme, rest))
}

/// RFC 3986 §5.2.4, with a slash in front.
fn without_dots(path: &[u8]) -> Vec<u8> {
    let end = memchr::memchr(b'?', path).unwrap_or(path.len());
    let (path, query) = path.split_at(end);
    let mut segments: Vec<&[u8]> = Vec::new();
    let mut all = path.strip_prefix(b"/").unwrap_or(path).split(|byte| *byte == b'/').peekable();
    while let Some(segment) = all.next() {
        let is_last = all.peek().is_none();
        match segment {
            b"." => {}
            b".." => {
                segments.pop();
            }
            other => {
                segments.push(other);
                continue;
            }
        }
        if is_last {
            segments.push(b"");
        }
    }
    let mut out = Vec::with_capacity(path.len() + query.len() + 1);
    out.push(b'/');
    out.extend_from_slice(&segments.join(&b'/'));
    out.extend_from_slice(query);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rfc9111_4_4_unsafe_methods_that_went_well() {
        for method in ["POST", "PUT", "DELETE", "PATCH", "M-SEARCH", "get", "FOO"] {
            assert!(invalidates(method.as_bytes(), 200) && invalidates(method.as_bytes(), 303), "{method}");
            assert!(!invalidates(method.as_bytes(), 404) && !invalidates(method.as_bytes(), 500), "{method}");
        }
        for method in ["GET", "HEAD", "OPTIONS", "TRACE"] {
            assert!(!invalidates(method.as_bytes(), 200), "{method}");
        }
    }

    #[test]
    fn rfc9111_4_4_locations_of_the_same_origin() {
        for (reference, expected) in [
            ("/x", Some("/x")),
            ("/x?y#z", Some("/x?y")),
            ("x", Some("/a/x")),
            ("../x", Some("/x")),
            ("./", Some("/a/")),
            ("../../../x/./y/..", Some("/x/")),
            ("?r=1", Some("/a/b?r=1")),
            ("", Some("/a/b?q=1")),
            ("#z", Some("/a/b?q=1")),
            ("https://shop.example/x", Some("/x")),
            ("HTTPS://SHOP.example:443/x", Some("/x")),
            ("https://shop.example", Some("/")),
            ("https://shop.example?q", Some("/?q")),
            ("//shop.example/x", Some("/x")),
            ("http://shop.example/x", None),
            ("https://other.example/x", None),
            ("https://shop.example:8443/x", None),
            ("https://u@shop.example/x", None),
            ("https:/x", None),
            ("//other.example/x", None),
            ("mailto:a", None),
            ("/a:b", Some("/a:b")),
            ("a/b:c", Some("/a/a/b:c")),
        ] {
            let found = resolved(true, b"Shop.example", b"/a/b?q=1", reference.as_bytes());
            assert_eq!(found, expected.map(|path| path.as_bytes().to_vec()), "{reference}");
        }
    }

    #[test]
    fn rfc9111_4_4_both_lines_count() {
        let mut answer = Head::answer(201);
        answer.push(b"Location", b"/x");
        answer.push(b"Content-Location", b"//evil.example/y");
        let found: Vec<_> = invalidated(false, b"a", b"/", &answer).collect();
        assert_eq!(found, [b"/x"]);
        answer.push(b"location", b"/z");
        assert_eq!(invalidated(false, b"a", b"/", &answer).count(), 0, "two of them name nothing");
    }
}
