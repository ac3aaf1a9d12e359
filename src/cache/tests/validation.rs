use super::*;
use crate::cache::{Freshened, HeadEffect, conditions, freshen, head_effect, is_condition};

fn freshened_by(request: &Head, stored: Lines<'_>, lines: Lines<'_>) -> Option<Freshened> {
    let client = CacheRequest::read(request, false).expect("for the cache");
    let asked = AskedBy { client: &client, sent: request, known: KnownClient::No };
    freshen(&asked, &ok(stored), &with(Head::answer(304), lines), &rules(), &ARRIVAL)
}

/// What is stored then; `None`: the 304 is about another object.
fn freshened(stored: Lines<'_>, lines: Lines<'_>) -> Option<Result<Storable, WhyNot>> {
    freshened_by(&get(&[]), stored, lines).map(|freshened| freshened.kept)
}

#[test]
fn rfc9111_4_3_1_what_the_backend_is_asked() {
    let sent = get(&[
        ("Accept", "x"),
        ("If-None-Match", "\"mine\""),
        ("If-Modified-Since", "x"),
        ("If-Match", "x"),
        ("If-Unmodified-Since", "x"),
        ("If-Range", "x"),
        ("Range", "bytes=0-1"),
    ]);
    let head = conditions(&sent, &ok(&[("ETag", "W/\"a\""), ("Last-Modified", "then")])).expect("conditions");
    assert_eq!(
        text(&head),
        "GET / HTTP/1.1\r\nhost: a.example\r\nAccept: x\r\nIf-None-Match: W/\"a\"\r\nIf-Modified-Since: then\r\n"
    );
    assert_eq!(
        conditions(&sent, &ok(&[("Last-Modified", "then")])).expect("one").named("if-none-match"),
        None
    );
    assert!(conditions(&sent, &ok(&[("Date", "x")])).is_none());
    assert!(is_condition(b"RANGE") && !is_condition(b"Accept-Ranges"));
}

#[test]
fn rfc9111_4_3_4_which_304_is_about_the_stored_one() {
    let is_same = |ours: Lines<'_>, theirs: Lines<'_>| {
        freshened(&[ours, &[("Cache-Control", "max-age=2")]].concat(), theirs).is_some()
    };
    let (a, b) = (("ETag", "\"a\""), ("ETag", "\"b\""));
    let (weak, old) = (("ETag", "W/\"a\""), ("Last-Modified", "x"));
    assert!(is_same(&[a], &[a]) && !is_same(&[a], &[b]));
    assert!(is_same(&[weak], &[weak]) && is_same(&[a], &[weak]));
    assert!(!is_same(&[weak], &[a]), "a strong one must be the very same");
    assert!(!is_same(&[old], &[a]) && is_same(&[a], &[]) && is_same(&[old], &[old]));
    assert!(!is_same(&[old], &[("Last-Modified", "y")]));
}

#[test]
fn rfc9111_3_2_a_304_updates_lines() {
    let stored = [
        ("ETag", "\"a\""),
        ("Test-Header", "A"),
        ("Kept", "A"),
        ("Content-Type", "text/plain"),
        ("Content-Encoding", "gzip"),
        ("Several", "1"),
        ("Several", "2"),
        ("Date", "old"),
        ("Cache-Control", "max-age=2"),
    ];
    let newer = [
        ("ETag", "\"a\""),
        ("test-header", "B"),
        ("Content-Type", "text/html"),
        ("Content-Encoding", "br"),
        ("Content-Length", "10"),
        ("Content-Range", "x"),
        ("several", "3"),
        ("Connection", "close, Named"),
        ("Named", "x"),
        ("Age", "1"),
        ("Cache-Control", "max-age=3600"),
        ("New", "B"),
    ];
    let storable = freshened(&stored, &newer).expect("the same").expect("updated");
    let expected = format!(
        "HTTP/1.1 200 OK\r\nKept: A\r\nContent-Encoding: gzip\r\nETag: \"a\"\r\ntest-header: B\r\nContent-Type: text/html\r\nseveral: 3\r\n\
         Cache-Control: max-age=3600\r\nNew: B\r\nDate: {}\r\n",
        date(0)
    );
    assert_eq!(text(&storable.head), expected);
    assert_eq!(storable.freshness.left(CAME).as_secs(), 3599);
}

#[test]
fn rfc9111_3_2_a_304_without_lines_makes_it_fresh_again() {
    let stored = [("Cache-Control", "max-age=2"), ("Last-Modified", "x"), ("Date", "old"), ("Test", "A")];
    let storable = freshened(&stored, &[("Date", &date(0))]).expect("the same").expect("updated");
    assert_eq!(storable.head.named("test"), Some(&b"A"[..]));
    assert_eq!(storable.freshness.left(CAME).as_secs(), 2);
}

#[test]
fn rfc9111_3_2_a_304_may_end_the_storing() {
    let stored = [("Cache-Control", "max-age=2"), ("ETag", "\"a\"")];
    for (lines, why) in [
        (&[("Cache-Control", "no-store")][..], WhyNot::NoStore),
        (&[("Cache-Control", "private")], WhyNot::Private),
        (&[("Set-Cookie", "a=b")], WhyNot::SetCookie),
        (&[("Vary", "*")], WhyNot::VaryStar),
    ] {
        assert_eq!(freshened(&stored, lines).expect("the same").err(), Some(why));
        assert!(!why.is_about_request());
    }
}

#[test]
fn rfc9111_3_5_a_304_to_somebody_is_for_that_one() {
    let stored = [("Cache-Control", "max-age=2"), ("ETag", "\"a\"")];
    let request = get(&[("Authorization", "x")]);
    let found = freshened_by(&request, &stored, &[("X", "yours")]).expect("the same");
    assert_eq!(found.head.named("x"), Some(&b"yours"[..]));
    assert_eq!(
        found.kept.map_err(|why| (why, why.is_about_request())).err(),
        Some((WhyNot::Authorization, true))
    );
    // What sets a cookie says so to the one who asked.
    let stored = [("Cache-Control", "max-age=2, public"), ("ETag", "\"a\"")];
    let found = freshened_by(&get(&[]), &stored, &[("Set-Cookie", "a=b")]).expect("the same");
    assert_eq!(found.head.named("set-cookie"), Some(&b"a=b"[..]));
    assert!(found.kept.expect("stored").head.named("set-cookie").is_none());
}

#[test]
fn rfc9111_4_3_5_heads() {
    let stored = [("Cache-Control", "max-age=2"), ("ETag", "\"a\""), ("Test", "A")];
    let request = Head::request("HEAD", "/", "a.example");
    let client = CacheRequest::read(&request, false).expect("for the cache");
    let asked = AskedBy { client: &client, sent: &request, known: KnownClient::No };
    let one = |status, lines: Lines<'_>| {
        head_effect(&asked, &ok(&stored), 5, &with(Head::answer(status), lines), &rules(), &ARRIVAL)
    };
    let same = [("ETag", "\"a\""), ("Content-Length", "5"), ("Test", "B"), ("Cache-Control", "max-age=100")];
    match one(200, &same) {
        HeadEffect::Updated(storable) => {
            assert_eq!(storable.head.named("test"), Some(&b"B"[..]));
            assert_eq!(storable.freshness.left(CAME).as_secs(), 100);
        }
        other => panic!("{other:?}"),
    }
    for lines in [&[("ETag", "\"b\"")][..], &[], &[("ETag", "\"a\""), ("Content-Length", "6")]] {
        assert!(matches!(one(200, lines), HeadEffect::Stale), "{lines:?}");
    }
    assert!(matches!(one(410, &same), HeadEffect::Nothing));
}

#[test]
fn rfc9111_5_1_a_304_hands_on_neither_its_age_nor_what_is_for_caches() {
    let newer = [("Age", "30"), ("Cache-Tag", "x"), ("Surrogate-Key", "y"), ("Cache-Control", "max-age=60")];
    let freshened = freshened_by(&get(&[]), &[("ETag", "\"a\""), ("Cache-Control", "max-age=2")], &newer)
        .expect("the same");
    for name in ["age", "cache-tag", "surrogate-key"] {
        assert_eq!(freshened.head.named(name), None, "{name}");
    }
    let kept = freshened.kept.expect("kept");
    assert_eq!((kept.freshness.age_seconds(CAME), kept.tags.len()), (30, 2));
}
