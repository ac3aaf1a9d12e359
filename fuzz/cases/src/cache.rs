//! Any bytes as what answers and requests say to a cache.

use std::collections::HashMap;
use std::time::UNIX_EPOCH;

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
    // Only a quoted string that ends can hide what is behind it, and what is in front is hidden by nothing.
    let beside = |before: &str, behind: &str| {
        let all = [before.as_bytes(), &value, behind.as_bytes()].concat();
        AnswerDirectives::of(&answer("Cache-Control", &[&all]))
    };
    assert!(has_quote && !said.is_broken || beside("", ", no-store").no_store);
    let first = beside("s-maxage=7, no-store, private, no-cache, ", "");
    assert!(first.no_store && first.private && first.no_cache && first.s_maxage == Some(7));
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
    date(&value);
}

/// A date lies in the years that four digits can write, and what a second reader takes for one is the same one here.
fn date(value: &[u8]) {
    let ours = http_date(value, 1_800_000_000);
    assert!(ours.is_none_or(|date| (-62_200_000_000..=253_402_300_800).contains(&date)));
    let theirs = std::str::from_utf8(value).ok().and_then(|text| httpdate::parse_http_date(text).ok());
    // Of a year with two digits the century depends on the reader.
    let has_century = !value.get(3..).is_some_and(|rest| rest.contains(&b',')) || value.get(3) == Some(&b',');
    if let Some(theirs) = theirs.filter(|_| has_century) {
        let theirs = theirs.duration_since(UNIX_EPOCH).expect("it reads none from before 1970").as_secs();
        assert_eq!(ours, Some(theirs as i64));
    }
}

/// Any bytes as a range; the first two say how long the object is. A part lies inside, asked for by its bounds it is the same, and a
/// reader that counts bytes one by one finds the same part.
pub fn cache_range(bytes: &[u8]) {
    let Some((length, range)) = bytes.split_first_chunk::<2>() else { return };
    let length = u64::from(u16::from_be_bytes(*length));
    for text in [range, &[b"bytes=", range].concat()] {
        if let ByteRange::Part { first, last } = byte_range(text, length) {
            assert!(first <= last && last < length);
            let again = format!("bytes={first}-{last}");
            assert_eq!(byte_range(again.as_bytes(), length), ByteRange::Part { first, last });
        }
        if length <= MOST_COUNTED {
            assert_eq!(byte_range(text, length), counted_range(text, length));
        }
    }
}

/// Objects that are longer are not counted byte by byte.
const MOST_COUNTED: u64 = 300;

/// RFC 9110 §14.1.2 once more: the bytes of the object that one range names, found by asking each.
fn counted_range(text: &[u8], length: u64) -> ByteRange {
    let one = |text: &[u8]| -> Option<ByteRange> {
        let text = std::str::from_utf8(text).ok()?;
        let (unit, set) = text.split_once('=')?;
        let mut ranges = set.split(',').map(str::trim_ascii).filter(|range| !range.is_empty());
        let (range, None) = (ranges.next()?, ranges.next()) else { return None };
        let (first, last) = range.split_once('-')?;
        let all_digits = [first, last].concat().bytes().all(|byte| byte.is_ascii_digit());
        if !unit.eq_ignore_ascii_case("bytes") || !all_digits || range == "-" {
            return None;
        }
        let number = |text: &str| text.parse().unwrap_or(u128::MAX);
        // Written with as many digits, numbers are in the order of their texts.
        let digits = first.len().max(last.len());
        let ends_before =
            |first: &str, last: &str| format!("{last:0>digits$}") < format!("{first:0>digits$}");
        let length = u128::from(length);
        let names = |at: &u128| match (first, last) {
            ("", count) => length - at <= number(count),
            (first, "") => *at >= number(first),
            (first, last) => (number(first)..=number(last)).contains(at),
        };
        let mut named = (0..length).filter(names);
        let place = |at: u128| u64::try_from(at).expect("below the length");
        match named.next() {
            Some(at) => {
                Some(ByteRange::Part { first: place(at), last: place(named.next_back().unwrap_or(at)) })
            }
            // The last bytes of nothing are all of it.
            None if first.is_empty() && length == 0 && number(last) > 0 => None,
            _ if !first.is_empty() && !last.is_empty() && ends_before(first, last) => None,
            _ => Some(ByteRange::Unsatisfiable),
        }
    };
    one(text).unwrap_or(ByteRange::Whole)
}

/// Any bytes as a URL and a query: what is selected of a query is its own selection, no part of a key can be taken for another one, a
/// reference is resolved into a path without dots, and a request has the variant of its own answer.
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
    parts_of_keys(&value[..value.len().min(MOST_CUT)]);
    let mut answer = answer("Vary", &[b"Accept-Language, accept-encoding, X", &value]);
    if let Some(variant) = Variant::of(&answer, &request) {
        assert!(variant.fits(&request, &mut Vec::new()));
        let other = Head::request("GET", "/", "a");
        assert!(!variant.fits(&other, &mut Vec::new()), "absent is not the same as there");
    }
    answer.push(b"Location", &value);
    for path in invalidated(true, b"a.example", b"/x/y?z", &answer) {
        assert!(path.starts_with(b"/"), "{}", path.escape_ascii());
        let before_query = path.split(|byte| *byte == b'?').next().unwrap_or_default();
        let mut segments = before_query.split(|byte| *byte == b'/');
        assert!(!segments.any(|segment| matches!(segment, b"." | b"..")), "{}", path.escape_ascii());
    }
}

/// Of longer values only the beginning is cut in all places.
const MOST_CUT: usize = 24;

/// The same bytes, cut in two anywhere and put beside one another as any two parts that a client writes: equal keys have equal parts.
fn parts_of_keys(value: &[u8]) {
    let rules = KeyRules { query: QueryRule::Whole, headers: vec!["X".into(), "Y".into()] };
    let mut known = HashMap::new();
    for (at, place) in (0..=value.len()).flat_map(|at| (0..4).map(move |place| (at, place))) {
        let (one, other) = value.split_at(at);
        let mut parts = [&b""[..]; 5];
        (parts[place], parts[place + 1]) = (one, other);
        let [authority, path, told_host, x, y] = parts;
        let mut request = Head::request("GET", "/", "a");
        request.push(b"X", x);
        request.push(b"Y", y);
        let key = KeyParts { is_https: true, authority, told_host, path, route: b"l/r", target: b"t" };
        let key = CacheKey::of(&key, &request, &rules);
        let before = *known.entry(key.bytes().to_vec()).or_insert(parts);
        assert_eq!(before, parts, "{}", key.bytes().escape_ascii());
    }
}
