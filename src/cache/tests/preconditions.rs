use super::*;
use crate::cache::{Served, answer_of, not_modified, partial, unsatisfiable};

fn portion_of(stored: &Head, request: &Head) -> Served {
    let request = CacheRequest::read(request, false).expect("for the cache");
    answer_of(&request, stored, 11, DATE)
}

fn of(stored: Lines<'_>, request: Lines<'_>) -> Served {
    portion_of(&ok(stored), &get(request))
}

#[test]
fn rfc9110_13_1_2_if_none_match() {
    let is_304 = |etag, list| of(&[("ETag", etag)], &[("If-None-Match", list)]) == Served::NotModified;
    for (etag, list) in [
        ("\"a\"", "\"a\""),
        ("W/\"a\"", "W/\"a\""),
        ("W/\"a\"", "\"a\""),
        ("\"a\"", "W/\"a\""),
        ("\"a\"", "\"a\", \"1\", \"2\""),
        ("\"a\"", "\"1\", \"a\", \"2\""),
        ("\"a\"", "\"1\",\"2\",\"a\""),
        ("\"a\"", "*"),
        ("\"\u{fc}\"", "\"\u{fc}\""),
        ("a", "a"),
    ] {
        assert!(is_304(etag, list), "{etag} {list}");
    }
    for (etag, list) in
        [("\"a\"", "\"b\""), ("\"a\"", "a"), ("\"a\"", ""), ("\"a\"", "\"A\""), ("\"a\"", "\"b,\"a\"\"")]
    {
        assert!(!is_304(etag, list), "{etag} {list}");
    }
    assert_eq!(
        of(&[("ETag", "\"a\"")], &[("If-None-Match", "\"b\""), ("If-None-Match", "\"a\"")]),
        Served::NotModified
    );
    assert_eq!(of(&[], &[("If-None-Match", "*")]), Served::NotModified);
    assert_eq!(of(&[], &[("If-None-Match", "\"a\"")]), Served::Whole);
}

#[test]
fn rfc9110_13_1_3_if_modified_since() {
    let since = |modified: i64, since: i64| {
        of(&[("Last-Modified", &date(modified)), ("Date", &date(0))], &[("If-Modified-Since", &date(since))])
    };
    assert_eq!(since(-3000, -3000), Served::NotModified);
    assert_eq!(since(-3000, -2000), Served::NotModified);
    assert_eq!(since(-3000, -3001), Served::Whole);
    assert_eq!(of(&[("Last-Modified", &date(-9))], &[("If-Modified-Since", "yesterday")]), Served::Whole);
    let rfc850 = [("If-Modified-Since", "Sunday, 06-Nov-94 08:49:37 GMT")];
    assert_eq!(of(&[("Last-Modified", &date(-9))], &rfc850), Served::NotModified);
    // RFC 9111 §4.3.2: where there is none, by its date.
    assert_eq!(of(&[("Date", &date(0))], &[("If-Modified-Since", &date(0))]), Served::NotModified);
    assert_eq!(of(&[("Date", &date(0))], &[("If-Modified-Since", &date(-1))]), Served::Whole);
    let twice = [("If-Modified-Since", &*date(0)), ("If-Modified-Since", &date(0))];
    assert_eq!(of(&[("Date", &date(0))], &twice), Served::Whole);
}

#[test]
fn rfc9110_13_2_2_precedence() {
    let both = |tag| {
        let stored = [("ETag", "\"a\""), ("Last-Modified", &*date(-9))];
        of(&stored, &[("If-None-Match", tag), ("If-Modified-Since", &date(0))])
    };
    assert_eq!((both("\"a\""), both("\"b\"")), (Served::NotModified, Served::Whole));
    // If-None-Match goes before Range.
    let stored = [("ETag", "\"a\"")];
    let range = ("Range", "bytes=0-1");
    assert_eq!(of(&stored, &[("If-None-Match", "\"a\""), range]), Served::NotModified);
    assert_eq!(of(&stored, &[("If-None-Match", "\"b\""), range]), Served::Part { first: 0, last: 1 });
}

#[test]
fn rfc9110_13_1_1_if_match_is_the_origins_to_refuse() {
    let one = |name, value: &str| of(&[("ETag", "\"a\""), ("Last-Modified", &date(-9))], &[(name, value)]);
    assert_eq!(one("If-Match", "\"a\""), Served::Whole);
    assert_eq!(one("If-Match", "*"), Served::Whole);
    assert_eq!(one("If-Match", "W/\"a\""), Served::Past, "by the strong comparison");
    assert_eq!(one("If-Match", "\"b\""), Served::Past);
    assert_eq!(one("If-Unmodified-Since", &date(-9)), Served::Whole);
    assert_eq!(one("If-Unmodified-Since", &date(-10)), Served::Past);
    assert_eq!(one("If-Unmodified-Since", "x"), Served::Past);
    let not_found = with(Head::answer(404), &[("ETag", "\"a\"")]);
    assert_eq!(portion_of(&not_found, &get(&[("If-Match", "\"a\"")])), Served::Past);
}

#[test]
fn rfc9110_13_2_1_conditions_are_about_objects() {
    let not_found = with(Head::answer(404), &[("ETag", "\"a\"")]);
    for lines in [&[("If-None-Match", "\"a\"")][..], &[("Range", "bytes=0-1")], &[]] {
        assert_eq!(portion_of(&not_found, &get(lines)), Served::Whole);
    }
    let head = with(Head::request("HEAD", "/", "a"), &[("Range", "bytes=0-1")]);
    assert_eq!(portion_of(&ok(&[]), &head), Served::Whole, "RFC 9110 §14.2");
    let head = with(Head::request("HEAD", "/", "a"), &[("If-None-Match", "\"a\"")]);
    assert_eq!(portion_of(&ok(&[("ETag", "\"a\"")]), &head), Served::NotModified);
}

#[test]
fn rfc9110_14_2_ranges_of_stored_objects() {
    for (range, expected) in [
        ("bytes=0-1", Served::Part { first: 0, last: 1 }),
        ("bytes=1-", Served::Part { first: 1, last: 10 }),
        ("bytes=-1", Served::Part { first: 10, last: 10 }),
        ("bytes=11-", Served::Unsatisfiable),
        ("bytes=0-1,3-4", Served::Whole),
        ("lines=0-1", Served::Whole),
    ] {
        assert_eq!(of(&[], &[("Range", range)]), expected, "{range}");
    }
    assert_eq!(of(&[], &[("Range", "bytes=0-1"), ("Range", "bytes=0-1")]), Served::Whole);
}

#[test]
fn rfc9110_13_1_5_if_range() {
    let part = Served::Part { first: 0, last: 1 };
    let one = |stored: Lines<'_>, value: &str| of(stored, &[("Range", "bytes=0-1"), ("If-Range", value)]);
    let strong = [("ETag", "\"a\""), ("Last-Modified", &*date(-9)), ("Date", &date(0))];
    assert_eq!(one(&strong, "\"a\""), part);
    assert_eq!(one(&strong, "\"b\""), Served::Whole);
    assert_eq!(one(&strong, "W/\"a\""), Served::Whole);
    assert_eq!(one(&[("ETag", "W/\"a\"")], "W/\"a\""), Served::Whole, "never by a weak one");
    assert_eq!(one(&strong, &date(-9)), part);
    assert_eq!(one(&strong, &date(-8)), Served::Whole, "the very date only");
    assert_eq!(
        one(&[("Last-Modified", &date(0)), ("Date", &date(0))], &date(0)),
        Served::Whole,
        "RFC 9110 §8.8.2.2"
    );
    assert_eq!(one(&strong, "x"), Served::Whole);
}

#[test]
fn rfc9110_15_heads_of_parts() {
    let stored = ok(&[
        ("ETag", "\"a\""),
        ("Last-Modified", "x"),
        ("Cache-Control", "max-age=1"),
        ("Content-Type", "text/plain"),
        ("Vary", "a"),
        ("Expires", "0"),
        ("Content-Location", "/x"),
        ("Date", &date(0)),
        ("X-Other", "1"),
    ]);
    let head = not_modified(&stored);
    let expected = format!(
        "HTTP/1.1 304 Not Modified\r\nETag: \"a\"\r\nCache-Control: max-age=1\r\nVary: a\r\nExpires: 0\r\nContent-Location: /x\r\nDate: {}\r\n",
        date(0)
    );
    assert_eq!(text(&head), expected);
    let without_tag = ok(&[("Last-Modified", "x")]);
    assert_eq!(not_modified(&without_tag).named("last-modified"), Some(&b"x"[..]));
    let part = partial(&stored, (0, 1), 11);
    assert_eq!((part.status, part.named("content-range")), (206, Some(&b"bytes 0-1/11"[..])));
    assert_eq!(part.lines().len(), stored.lines().len() + 1);
    let none = unsatisfiable(&stored, 11);
    let expected =
        format!("HTTP/1.1 416 Range Not Satisfiable\r\nDate: {}\r\nContent-Range: bytes */11\r\n", date(0));
    assert_eq!(text(&none), expected);
}
