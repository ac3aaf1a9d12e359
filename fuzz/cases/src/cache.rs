//! Any bytes as what answers and requests say to a cache.

use evenkeel::cache::{
    AnswerDirectives, ByteRange, CacheKey, CacheRequest, KeyParts, KeyRules, MOST_SECONDS, QueryRule,
    Variant, byte_range, http_date, invalidated, url_key, write_query,
};
use evenkeel::message::Head;

/// The bytes as values of lines can be: without control bytes, and without white space around them.
fn value(bytes: &[u8]) -> Vec<u8> {
    let kept: Vec<u8> =
        bytes.iter().copied().filter(|byte| !byte.is_ascii_control() || *byte == b'\t').collect();
    kept.trim_ascii().to_vec()
}

fn answer(name: &str, values: &[&[u8]]) -> Head {
    let mut head = Head::answer(200);
    values.iter().for_each(|value| head.push(name.as_bytes(), value));
    head
}

/// Any bytes as directives: nothing is fresh for longer than can be, and no other directive hides one that forbids.
pub fn cache_directives(bytes: &[u8]) {
    let value = value(bytes);
    let said = AnswerDirectives::of(&answer("Cache-Control", &[&value]));
    assert!(said.lifetime().is_none_or(|seconds| seconds <= MOST_SECONDS));
    assert!(!said.is_broken || said.lifetime().is_none_or(|seconds| seconds == 0));
    let has_quote = value.contains(&b'"');
    let plainly: Vec<&[u8]> = value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii).collect();
    if !has_quote {
        let says = |name: &str| plainly.iter().any(|item| item.eq_ignore_ascii_case(name.as_bytes()));
        assert!(!says("no-store") || said.no_store);
        assert!(!says("private") || said.private);
        assert!(!says("no-cache") || said.no_cache);
        assert!(!says("public") || said.public);
        // Lines and commas are one.
        assert_eq!(AnswerDirectives::of(&answer("cache-control", &plainly)), said);
    }
    let all = [&value[..], b", no-store"].concat();
    assert!(has_quote || AnswerDirectives::of(&answer("Cache-Control", &[&all])).no_store);
    let targeted = AnswerDirectives::of(&answer("CDN-Cache-Control", &[&value]));
    assert!(targeted.is_targeted || targeted == AnswerDirectives::default());
    let mut request = Head::request("GET", "/", "a");
    request.push(b"Cache-Control", &value);
    request.push(b"Pragma", &value);
    let asked = CacheRequest::read(&request, false).expect("a GET without a body").directives;
    for seconds in
        [asked.max_age, asked.min_fresh, asked.max_stale, asked.stale_if_error].into_iter().flatten()
    {
        assert!(seconds <= MOST_SECONDS);
    }
    if let Some(date) = http_date(&value, 1_800_000_000) {
        assert!((-62_200_000_000..=253_402_300_800).contains(&date));
    }
}

/// Any bytes as a range; the first two say how long the object is. A part lies inside, and asked for by its bounds it is the same.
pub fn cache_range(bytes: &[u8]) {
    let Some((length, range)) = bytes.split_first_chunk::<2>() else { return };
    let length = u64::from(u16::from_be_bytes(*length));
    for text in [range, &[b"bytes=", range].concat()] {
        if let ByteRange::Part { first, last } = byte_range(text, length) {
            assert!(first <= last && last < length);
            let again = format!("bytes={first}-{last}");
            assert_eq!(byte_range(again.as_bytes(), length), ByteRange::Part { first, last });
        }
    }
}

/// Any bytes as a URL and a query: what is selected of a query is its own selection, keys are the same where their URLs are, a reference
/// is resolved into a path, and a request has the variant of its own answer.
pub fn cache_key(bytes: &[u8]) {
    let value = value(bytes);
    let rule = QueryRule::named([&b"q"[..], b"a", b"page"]);
    let mut once = Vec::new();
    write_query(&value, &rule, &mut once);
    assert!(once.is_empty() || once.starts_with(b"?") && once.len() <= value.len() + 1);
    let mut twice = Vec::new();
    write_query(once.strip_prefix(b"?").unwrap_or_default(), &rule, &mut twice);
    assert_eq!(once, twice);

    let mut request = Head::request("GET", "/", "a");
    for name in ["Accept-Encoding", "Accept-Language", "X"] {
        request.push(name.as_bytes(), &value);
    }
    for query in [QueryRule::Whole, rule] {
        let parts = KeyParts {
            is_https: true,
            authority: &value,
            told_host: b"",
            path: &value,
            route: b"l/r",
            target: b"t",
        };
        let rules = KeyRules { query, headers: vec!["X".into()] };
        let key = CacheKey::of(&parts, &request, &rules);
        assert_eq!(key.url(), url_key(true, &value, &value, &rules.query));
        assert!(key.bytes().starts_with(key.url()));
    }
    let mut answer = answer("Vary", &[b"Accept-Language, accept-encoding, X", &value]);
    if let Some(variant) = Variant::of(&answer, &request) {
        assert!(variant.fits(&request, &mut Vec::new()));
        let other = Head::request("GET", "/", "a");
        assert!(!variant.fits(&other, &mut Vec::new()), "absent is not the same as there");
    }
    answer.push(b"Location", &value);
    for path in invalidated(true, b"a.example", b"/x/y?z", &answer) {
        assert!(path.starts_with(b"/"), "{}", path.escape_ascii());
    }
}
