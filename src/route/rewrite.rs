//! Which path a backend gets instead of the one that was matched.

use crate::config::model::Normalize;
use crate::config::model::route::{DotSegments, Rewrite};

use super::facts::{TextFacts, split};
use super::path_form::{PathFault, form};
use super::render;

/// The path and the query of a request as its backend gets them. `path`: the one that was matched; `rules`: those by which it got its
/// form. What comes out has that form too: nothing that is filled in leads up or elsewhere.
///
/// # Errors
/// What is wrong with the path that would come out.
pub fn rewrite(
    rewrite: &Rewrite,
    path: &[u8],
    facts: &TextFacts<'_>,
    rules: &Normalize,
) -> Result<Vec<u8>, PathFault> {
    let query = split(facts.head.path()).1;
    let has_query = facts.head.path().contains(&b'?');
    if path == b"*" {
        // It asks about the server, which has no other path.
        return Ok(path.to_vec());
    }
    let (path, query) = match rewrite {
        Rewrite::Prefix { strip, add } => (prefixed(path, strip, add), has_query.then_some(query)),
        Rewrite::Path(text) => {
            let mut whole = render::path(text, facts);
            match memchr::memchr(b'?', &whole) {
                Some(mark) => {
                    let query = whole.split_off(mark);
                    return in_form(&whole, Some(&query[1..]), rules);
                }
                None => (whole, has_query.then_some(query)),
            }
        }
    };
    in_form(&path, query, rules)
}

/// A path without one prefix, if it has that, and with another one.
fn prefixed(path: &[u8], strip: &str, add: &str) -> Vec<u8> {
    let strip = strip.trim_end_matches('/').as_bytes();
    let rest = path.strip_prefix(strip).filter(|rest| matches!(rest.first(), None | Some(b'/')));
    let rest = rest.unwrap_or(path);
    let add = if rest.is_empty() { add } else { add.trim_end_matches('/') };
    [add.as_bytes(), rest].concat()
}

fn in_form(path: &[u8], query: Option<&[u8]>, rules: &Normalize) -> Result<Vec<u8>, PathFault> {
    // Whoever fills in dots gets them refused: resolved they could lead above what the config says.
    let rules = Normalize { dot_segments: DotSegments::Refuse, ..*rules };
    if path == b"*" {
        return Err(PathFault::NoSlash);
    }
    let mut whole = form(path, &rules)?.into_owned();
    if let Some(query) = query {
        whole.push(b'?');
        whole.extend_from_slice(query);
    }
    Ok(whole)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use regex::bytes::Regex;

    use super::*;
    use crate::config::model::Text;
    use crate::config::model::text::TextPlace;
    use crate::message::Head;
    use crate::route::facts::Groups;

    fn made(rule: &Rewrite, path: &str, value: &str) -> Result<String, PathFault> {
        let mut head = Head::request("GET", path, "h");
        head.push(b"X-A", value.as_bytes());
        let regex = Regex::new("^/g/([^/]*)/?(.*)$").expect("an expression");
        let path = split(path.as_bytes()).0;
        let facts = TextFacts {
            told: None,
            head: &head,
            groups: Groups::of(&regex, path),
            client: None,
            scheme: "http",
            id: 1,
            target: "",
            backend: "",
            tls: "",
            subject: "",
            user: "",
        };
        rewrite(rule, path, &facts, &Normalize::default())
            .map(|made| String::from_utf8_lossy(&made).into_owned())
    }

    #[test]
    fn prefixes_go_by_segments_and_a_path_begins_with_a_slash() {
        for (strip, add, path, expected) in [
            ("/api", "", "/api/x?q", "/x?q"),
            ("/api", "", "/api", "/"),
            ("/api", "", "/api?q=?", "/?q=?"),
            ("/api", "", "/api/", "/"),
            ("/api/", "", "/api/x/", "/x/"),
            ("/api", "", "/apiary", "/apiary"),
            ("/api", "", "/other", "/other"),
            ("/api", "", "/api//x", "//x"),
            ("/api", "/v2", "/api/x", "/v2/x"),
            ("/api", "/v2", "/api", "/v2"),
            ("/api", "/v2/", "/api/x", "/v2/x"),
            ("/api", "/v2/", "/api", "/v2/"),
            ("", "/v2", "/x?", "/v2/x?"),
            ("/", "/v2", "/x", "/v2/x"),
            ("", "/v2", "*", "*"),
        ] {
            let rule = Rewrite::Prefix { strip: strip.into(), add: add.into() };
            assert_eq!(made(&rule, path, ""), Ok(expected.to_owned()), "{strip} {add} {path}");
        }
    }

    #[test]
    fn another_path_keeps_the_query_unless_it_has_one_and_leads_nowhere_else() {
        for (source, path, value, expected) in [
            ("/v$1/$2", "/g/1/a/b?q", "", Ok("/v1/a/b?q")),
            ("/v$1?a=$2", "/g/1/a?q", "", Ok("/v1?a=a")),
            ("/x?", "/g/1?q", "", Ok("/x?")),
            ("/x{path}", "/g/1?q", "", Ok("/x/g/1?q")),
            ("$3", "/g/1", "", Ok("/")),
            ("/a/{header.x-a}", "/", "b c?d", Ok("/a/b%20c%3Fd")),
            ("/a/{header.x-a}", "/", "%62", Ok("/a/b")),
            ("/a/{header.x-a}", "/", "..", Err(PathFault::DotSegment)),
            ("/a/{header.x-a}/b", "/", "%2e%2E", Err(PathFault::DotSegment)),
            ("/a/{header.x-a}", "/", "..%2fb", Err(PathFault::EncodedSlash)),
            ("/a/{header.x-a}", "/", "%zz", Err(PathFault::BadEscape)),
            ("/a/{header.x-a}", "/", "%00", Err(PathFault::Control)),
            ("/a/{header.x-a}", "/", "\\x", Ok("/a/%5Cx")),
            ("/a/{header.x-a}", "/", "a\r\nX: y", Err(PathFault::Control)),
            ("{header.x-a}", "/", "http://evil.example/", Err(PathFault::NoSlash)),
            ("{header.x-a}", "/", "*", Err(PathFault::NoSlash)),
            ("{header.x-a}x", "/", "?", Err(PathFault::NoSlash)),
            ("/x", "*", "", Ok("*")),
        ] {
            let text = Text::parse(source, TextPlace::REQUEST.with_groups(Some(9))).expect("a text");
            let got = made(&Rewrite::Path(text), path, value);
            assert_eq!(got, expected.map(str::to_owned), "{source} {path} {value:?}");
        }
    }

    proptest! {
        #[test]
        fn what_comes_out_is_in_its_form_or_nothing(value in "[ -~é\r\n\\x00]{0,12}", path in "/g(/[a-c.;]{0,3}){0,4}") {
            for source in ["/a/{header.x-a}", "{header.x-a}", "/$1$2", "/{header.x-a}/$2?{header.x-a}"] {
                let text = Text::parse(source, TextPlace::REQUEST.with_groups(Some(9))).expect("a text");
                let strict = Normalize { dot_segments: DotSegments::Refuse, ..Normalize::default() };
                if let Ok(out) = made(&Rewrite::Path(text), &path, &value) {
                    let only = split(out.as_bytes()).0;
                    prop_assert_eq!(form(only, &strict).expect("in form"), only);
                    prop_assert!(out.starts_with('/') && out.bytes().all(|byte| byte.is_ascii_graphic()));
                }
            }
        }
    }
}
