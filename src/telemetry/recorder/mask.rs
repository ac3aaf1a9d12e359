//! What may be secret in what clients wrote, taken out before it is kept.
//!
//! Names of parameters stay, their values go; so do users and passwords in URLs. What was taken out leaves a `*`. Characters that part a
//! URL count when they are percent-encoded too: whoever decodes it sees the same, and a URL within a URL is written so.

/// What stands for what was taken out.
const HIDDEN: u8 = b'*';

/// Appends a path, and its query if it has one: `/a;v=*/b?name=*&*`.
pub(super) fn mask_path(path: &[u8], into: &mut Vec<u8>) {
    let (path, query) = match memchr::memchr(b'?', path) {
        Some(at) => (&path[..at], Some(&path[at + 1..])),
        None => (path, None),
    };
    let (path, has_inner) = match encoded(path, b"3f") {
        Some(at) => (&path[..at], true),
        None => (path, false),
    };
    let mut is_first = true;
    for segment in path.split(|byte| *byte == b'/') {
        if !is_first {
            into.push(b'/');
        }
        is_first = false;
        mask_segment(segment, into);
    }
    if has_inner {
        into.extend_from_slice(b"%3F*");
    }
    if let Some(query) = query {
        into.push(b'?');
        mask_query(query, into);
    }
}

/// Where this character stands percent-encoded; `hex`: its two digits, in lower case.
fn encoded(bytes: &[u8], hex: &[u8; 2]) -> Option<usize> {
    bytes.windows(3).position(|three| three[0] == b'%' && three[1..].eq_ignore_ascii_case(hex))
}

/// A segment of a path: parameters behind `;` (RFC 3986 §3.3) keep their names, and what stands before an `@` may be a password.
fn mask_segment(segment: &[u8], into: &mut Vec<u8>) {
    let (segment, has_inner) = match encoded(segment, b"3b") {
        Some(at) => (&segment[..at], true),
        None => (segment, false),
    };
    let mut parts = segment.split(|byte| *byte == b';');
    mask_name(parts.next().unwrap_or_default(), into);
    for part in parts {
        into.push(b';');
        mask_pair(part, into);
    }
    if has_inner {
        into.extend_from_slice(b"%3B*");
    }
}

/// What stands before the parameters of a segment: without a user, and without what stands behind a `=`.
fn mask_name(name: &[u8], into: &mut Vec<u8>) {
    let plain = memchr::memrchr(b'@', name);
    let user = plain.or_else(|| name.windows(3).rposition(|three| three == b"%40")).filter(|at| *at > 0);
    let rest = match user {
        Some(at) => {
            into.push(HIDDEN);
            &name[at..]
        }
        None => name,
    };
    let value = memchr::memchr(b'=', rest).or_else(|| encoded(rest, b"3d"));
    into.extend_from_slice(&rest[..value.unwrap_or(rest.len())]);
    if value.is_some() {
        into.extend_from_slice(b"=*");
    }
}

/// The parameters of a query.
fn mask_query(query: &[u8], into: &mut Vec<u8>) {
    let mut rest = query;
    loop {
        let end = memchr::memchr2(b'&', b';', rest);
        mask_pair(&rest[..end.unwrap_or(rest.len())], into);
        let Some(end) = end else { return };
        into.push(rest[end]);
        rest = &rest[end + 1..];
    }
}

/// A parameter. One without a value may be a value itself, also with the `=` that base64 ends with; and so may what looks like no name.
fn mask_pair(pair: &[u8], into: &mut Vec<u8>) {
    if let Some(at) = memchr::memchr(b'=', pair)
        && pair[at..].iter().any(|byte| *byte != b'=')
        && is_name(&pair[..at])
    {
        into.extend_from_slice(&pair[..=at]);
    }
    if !pair.is_empty() {
        into.push(HIDDEN);
    }
}

fn is_name(name: &[u8]) -> bool {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"_-.[]$!~%".contains(byte);
    let parts = [b"3d", b"26", b"3b", b"3f", b"2f", b"3a", b"40"];
    name.iter().all(is_plain) && parts.iter().all(|part| encoded(name, part).is_none())
}

/// Appends the value of a header line. Words that look like a URL, or like a part of one, lose users and the values of queries.
pub(super) fn mask_value(value: &[u8], into: &mut Vec<u8>) {
    let mut is_first = true;
    for word in value.split(u8::is_ascii_whitespace) {
        if !is_first {
            into.push(b' ');
        }
        is_first = false;
        if !is_like_url(word) {
            into.extend_from_slice(word);
            continue;
        }
        // A fragment is nobody's business but the browser's.
        let fragment = memchr::memchr(b'#', word).or_else(|| encoded(word, b"23"));
        mask_path(&word[..fragment.unwrap_or(word.len())], into);
    }
}

fn is_like_url(word: &[u8]) -> bool {
    let has = |byte| memchr::memchr(byte, word).is_some();
    word.first() == Some(&b'/')
        || has(b'?')
        || has(b'@')
        || memchr::memmem::find(word, b"://").is_some()
        || [b"2f", b"3a", b"3f", b"40"].iter().any(|part| encoded(word, part).is_some())
}

/// The host that a client asked for, without a user before it.
pub(super) fn without_user(host: &[u8]) -> &[u8] {
    memchr::memrchr(b'@', host).map_or(host, |at| &host[at + 1..])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn path(path: &str) -> String {
        let mut out = Vec::new();
        mask_path(path.as_bytes(), &mut out);
        String::from_utf8(out).unwrap()
    }

    fn value(value: &str) -> String {
        let mut out = Vec::new();
        mask_value(value.as_bytes(), &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn names_stay_and_values_go() {
        for (written, kept) in [
            ("/", "/"),
            ("/a/b", "/a/b"),
            ("/a?", "/a?"),
            ("/a?b=c&d=&e;f=g=h", "/a?b=*&*&*;f=*"),
            ("/a?secret=", "/a?*"),
            ("/a?secret==&b=c", "/a?*&b=*"),
            ("/a?x%3Dsecret=b&x/secret=b&a%5B%5D=1", "/a?*&*&a%5B%5D=*"),
            ("/a;secret=/b%3Bjsessionid=secret/c", "/a;*/b%3B*/c"),
            ("/a%3ftoken=secret/secret?b=c", "/a%3F*?b=*"),
            ("/token=secret/a", "/token=*/a"),
            ("/f/http://secret@h/x", "/f/http://*@h/x"),
            ("/f/http%3A%2F%2Fu%3Asecret%40h%2F", "/f/*%40h%2F"),
            ("/f/http:%2F%2Fh%2F%3Ft=secret", "/f/http:%2F%2Fh%2F%3F*"),
            ("/npm/@scope/pkg", "/npm/@scope/pkg"),
            ("/a?secret", "/a?*"),
            ("/a?b=c?d=e", "/a?b=*"),
            ("/a;jsessionid=12/b;x", "/a;jsessionid=*/b;*"),
            ("/fetch/http://u:p@h/x?y=z", "/fetch/http://*@h/x?y=*"),
            ("*", "*"),
            ("", ""),
        ] {
            assert_eq!(path(written), kept, "{written}");
        }
        for (written, kept) in [
            ("curl/8.5", "curl/8.5"),
            ("Bot (+https://b.example/about?id=7#frag), x", "Bot (+https://b.example/about?id=* x"),
            (
                "https://x/a?b=c,secret https://x/?b='secret' https://x/?b=(secret)",
                "https://x/a?b=* https://x/?b=* https://x/?b=*",
            ),
            ("/p?a=secret&n=http://x/", "/p?a=*&n=*"),
            ("https%3A%2F%2Fh%2F%3Ft%3Dsecret", "https%3A%2F%2Fh%2F%3F*"),
            (
                "https:/\\u:secret@h mailto:u:secret@h x.example/a?token=secret",
                "https:/*@h *@h x.example/a?token=*",
            ),
            ("text/html;charset=utf-8", "text/html;charset=utf-8"),
            ("https://user:pass@a.example/b?c=d", "https://*@a.example/b?c=*"),
            ("/b?c=d", "/b?c=*"),
            ("multipart/form-data; boundary=x", "multipart/form-data; boundary=x"),
        ] {
            assert_eq!(value(written), kept, "{written}");
        }
        assert_eq!(without_user(b"u:p@a.example:80"), b"a.example:80");
    }

    proptest! {
        #[test]
        fn whatever_a_client_writes_no_value_stays(before in "([a-z/&;=?%@:,'()]|%(3[aAbBdDfF]|2[fF]|40)){0,20}", name in "[a-z]{1,5}") {
            let written = format!("/{before}?{name}=SECRET&{before}=SECRET;SECRET&SECRET");
            prop_assert!(!path(&written).contains("SECRET"), "{}", path(&written));
            let referer = format!("see https://u:SECRET@h{written}#SECRET");
            prop_assert!(!value(&referer).contains("SECRET"), "{}", value(&referer));
        }
    }
}
