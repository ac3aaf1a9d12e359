//! Other paths that a backend may take a path for.
//!
//! A path has its one form here, and goes on in it. But backends go on from there in ways of their own: some decode `%2F`, some decode
//! twice, some cut parameters off or merge slashes. None of this is wrong, so none of it is refused as such (docs/routing.md). It is when one
//! of these readings belongs to another route: then a request would get past the rules of the route that its backend has in mind.

use std::ops::ControlFlow;

use crate::config::model::route::PathPattern;

use super::path_form::escaped;

/// When parameters (`;x` up to the next slash) are cut off.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cut {
    Never,
    BeforeDecoding,
    /// What comes behind a decoded `?` or `#` goes as well.
    AfterDecoding,
}

/// Whether every backend reads just this path.
#[must_use]
pub(super) fn is_plain(path: &[u8]) -> bool {
    let mut before = 0;
    let mut rest = path;
    while let Some((&byte, behind)) = rest.split_first() {
        match (byte, before) {
            (b';', _) | (b'/', b'/') => return false,
            (b'%', _) if escaped(behind).is_some_and(PathPattern::may_have) => return false,
            _ => {}
        }
        (before, rest) = (byte, behind);
    }
    true
}

/// Calls `see` with each path that a backend may take `path` for, in the form that routes compare, until it breaks.
pub(super) fn each(path: &[u8], mut see: impl FnMut(&[u8]) -> ControlFlow<()>) -> ControlFlow<()> {
    let mut seen = vec![path.to_vec()];
    let mut show = |reading: Vec<u8>| {
        if seen.contains(&reading) {
            return ControlFlow::Continue(());
        }
        see(&reading)?;
        seen.push(reading);
        ControlFlow::Continue(())
    };
    for cut in [Cut::Never, Cut::BeforeDecoding, Cut::AfterDecoding] {
        for backslashes in [false, true] {
            let mut read = if cut == Cut::BeforeDecoding { without_parameters(path) } else { path.to_vec() };
            for decodings in 0..=2 {
                if decodings > 0 {
                    read = decoded(&read, backslashes);
                }
                let read = match cut {
                    Cut::AfterDecoding if decodings > 0 => without_parameters(before_a_query(&read)),
                    Cut::AfterDecoding => without_parameters(&read),
                    Cut::Never | Cut::BeforeDecoding => read.clone(),
                };
                let plain = resolved(&read);
                show(merged(&plain))?;
                show(plain)?;
                show(resolved(&merged(&read)))?;
            }
        }
    }
    ControlFlow::Continue(())
}

/// Decoded once more, as far as routes tell it from what it was: other escapes are the form in which they are compared.
fn decoded(path: &[u8], backslashes: bool) -> Vec<u8> {
    let mut out = Vec::with_capacity(path.len());
    let mut rest = path;
    while let Some((&byte, behind)) = rest.split_first() {
        rest = behind;
        let value = if byte == b'%' { escaped(rest) } else { None };
        match value {
            Some(b'\\') if backslashes => out.push(b'/'),
            Some(b'%') => {
                let inner = rest.get(2..).and_then(escaped);
                match inner {
                    Some(plain) if plain.is_ascii_alphanumeric() || b"-._~".contains(&plain) => {
                        out.push(plain);
                        rest = &rest[2..];
                    }
                    Some(_) => {
                        out.push(b'%');
                        out.extend(rest[2..4].iter().map(u8::to_ascii_uppercase));
                        rest = &rest[2..];
                    }
                    None => out.extend_from_slice(b"%25"),
                }
            }
            Some(value) if PathPattern::may_have(value) && !b"\\?#".contains(&value) => out.push(value),
            _ => {
                out.push(byte);
                continue;
            }
        }
        rest = &rest[2..];
    }
    out
}

/// Up to what a second reader takes for the end of a path.
fn before_a_query(path: &[u8]) -> &[u8] {
    let ends = |at: &usize| matches!(&path[*at..], [b'%', b'3', b'F', ..] | [b'%', b'2', b'3', ..]);
    let end = memchr::memchr_iter(b'%', path).find(ends);
    &path[..end.unwrap_or(path.len())]
}

fn without_parameters(path: &[u8]) -> Vec<u8> {
    let names = path
        .split(|&byte| byte == b'/')
        .map(|segment| segment.split(|&byte| byte == b';').next().unwrap_or_default());
    names.collect::<Vec<_>>().join(&b'/')
}

fn merged(path: &[u8]) -> Vec<u8> {
    let mut out = path.to_vec();
    out.dedup_by(|after, before| (*after, *before) == (b'/', b'/'));
    out
}

/// Without dot segments; those above the root stay there (RFC 3986 §5.2.4).
fn resolved(path: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(path.len());
    let mut segments = path.strip_prefix(b"/").unwrap_or(path).split(|&byte| byte == b'/').peekable();
    while let Some(segment) = segments.next() {
        if !matches!(segment, b"." | b"..") {
            out.push(b'/');
            out.extend_from_slice(segment);
            continue;
        }
        if segment == b".." {
            out.truncate(memchr::memrchr(b'/', &out).unwrap_or(0));
        }
        if segments.peek().is_none() {
            out.push(b'/');
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(path: &str) -> Vec<String> {
        let mut all = Vec::new();
        let _ = each(path.as_bytes(), |reading| {
            all.push(String::from_utf8_lossy(reading).into_owned());
            ControlFlow::Continue(())
        });
        all.sort();
        all
    }

    #[test]
    fn a_plain_path_has_one_reading() {
        for path in ["/", "/a/b", "/a%20b", "/caf%C3%A9/x.y~z", "/a/", "*"] {
            assert!(is_plain(path.as_bytes()), "{path}");
        }
        assert!(told("/a%20b/").is_empty());
    }

    #[test]
    fn what_backends_do_to_paths_is_done_to_them() {
        for (path, readings) in [
            ("/a;x/b", &["/a/b"][..]),
            ("//a", &["/a"]),
            ("/a%2Fb", &["/a/b"]),
            ("/a%5Cb", &["/a/b"]),
            ("/a%3Bx", &["/a", "/a;x"]),
            ("/a%252Fb", &["/a%2Fb", "/a/b"]),
            ("/%2561", &["/a"]),
            ("/a/%252e%252e/b", &["/b"]),
            ("/%252e%252e/b", &["/b"]),
            ("/a/%252E%252E;x", &["/", "/a/%252E%252E", "/a/..;x"]),
            ("/a%3Fb", &["/a"]),
            ("/100%25", &[]),
            ("/%40a%2Bb", &["/@a+b"]),
            ("/a;b%2Fc", &["/a", "/a/c", "/a;b/c"]),
        ] {
            assert!(!is_plain(path.as_bytes()), "{path}");
            assert_eq!(told(path), readings, "{path}");
        }
    }
}
