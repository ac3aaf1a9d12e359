use super::*;

fn why(answer: &Head) -> Option<WhyNot> {
    stored(answer, &rules()).err()
}

fn control(value: &str) -> Head {
    ok(&[("Cache-Control", value)])
}

#[test]
fn rfc9111_3_who_may_be_stored() {
    assert_eq!(why(&control("max-age=60")), None);
    assert_eq!(why(&control("max-age=60, no-store")), Some(WhyNot::NoStore));
    assert_eq!(why(&control("private, max-age=60")), Some(WhyNot::Private));
    assert_eq!(why(&control("public")), Some(WhyNot::SaysNothing));
    assert_eq!(why(&ok(&[])), Some(WhyNot::SaysNothing));
    assert_eq!(why(&ok(&[("CDN-Cache-Control", "max-age=60"), ("Cache-Control", "no-store")])), None);
    assert_eq!(
        why(&ok(&[("CDN-Cache-Control", "private"), ("Cache-Control", "max-age=60")])),
        Some(WhyNot::Private)
    );
}

#[test]
fn rfc9111_5_2_1_5_a_request_that_wants_nothing_stored() {
    let request = get(&[("Cache-Control", "no-store")]);
    assert_eq!(
        stored_by(&request, &control("max-age=60"), &rules(), KnownClient::No).err(),
        Some(WhyNot::RequestNoStore)
    );
}

#[test]
fn rfc9111_3_statuses() {
    let one = |status| why(&with(Head::answer(status), &[("Cache-Control", "max-age=60")]));
    for status in [200, 203, 204, 299, 301, 302, 303, 307, 308, 400, 404, 410, 499, 500, 502, 503, 504, 599] {
        assert_eq!(one(status), None, "{status}");
    }
    for status in [100, 101, 103, 206, 304] {
        assert_eq!(one(status), Some(WhyNot::Status), "{status}");
    }
}

#[test]
fn rfc9111_5_2_2_3_must_understand() {
    let one = |status| {
        why(&with(Head::answer(status), &[("Cache-Control", "must-understand, no-store, max-age=60")]))
    };
    assert_eq!((one(200), one(599), one(299)), (None, Some(WhyNot::Status), Some(WhyNot::Status)));
}

#[test]
fn rfc9111_3_5_authorization() {
    let request = get(&[("Authorization", "Basic eDp5")]);
    let one = |value: &str| stored_by(&request, &control(value), &rules(), KnownClient::No).err();
    assert_eq!(one("max-age=60"), Some(WhyNot::Authorization));
    for value in ["max-age=60, public", "max-age=60, must-revalidate", "s-maxage=60"] {
        assert_eq!(one(value), None, "{value}");
    }
    assert_eq!(one("max-age=60, proxy-revalidate"), Some(WhyNot::Authorization));
    // Also where only the backend gets it.
    let (plain, sent) = (get(&[]), get(&[("Authorization", "x")]));
    let client = CacheRequest::read(&plain, false).expect("for the cache");
    let asked = AskedBy { client: &client, sent: &sent, known: KnownClient::No };
    assert_eq!(
        may_store(&asked, &control("max-age=60"), &rules(), &ARRIVAL).err(),
        Some(WhyNot::Authorization)
    );
    let unsaid = stored_by(&request, &ok(&[]), &ttl(10), KnownClient::No);
    assert_eq!(unsaid.err(), Some(WhyNot::Authorization));
    let half_said = stored_by(&request, &control("must-revalidate"), &ttl(10), KnownClient::No);
    assert_eq!(half_said.err(), Some(WhyNot::Authorization));
}

#[test]
fn a_client_that_evenkeel_knows_shares_what_says_so() {
    let one =
        |answer: &Head, rules: &CachePolicy| stored_by(&get(&[]), answer, rules, KnownClient::Yes).err();
    assert_eq!(one(&control("max-age=60"), &rules()), Some(WhyNot::KnownClient));
    assert_eq!(one(&control("max-age=60, must-revalidate"), &rules()), Some(WhyNot::KnownClient));
    assert_eq!(one(&ok(&[]), &ttl(10)), Some(WhyNot::KnownClient));
    assert_eq!(one(&ok(&[("Expires", &date(60))]), &rules()), Some(WhyNot::KnownClient));
    assert_eq!(one(&control("max-age=60, public"), &rules()), None);
    assert_eq!(one(&control("s-maxage=60"), &rules()), None);
}

#[test]
fn what_is_malformed_gives_nobody_what_was_asked_for_with_authorization() {
    let request = get(&[("Authorization", "Basic eDp5")]);
    let one = |value: &str| {
        let answer = ok(&[("Cache-Control", value), ("ETag", "\"1\"")]);
        stored_by(&request, &answer, &rules(), KnownClient::No).err()
    };
    for value in [
        "must-revalidate=1",
        "must-revalidate=\"x\"",
        "must-revalidate=",
        "must-revalidate =x",
        "must-revalidate x",
        "s-maxage=x",
        "s-maxage",
        "s-maxage=x, s-maxage=60",
        "public=1",
        "public=\"\"",
        "x=\"y, public",
        "x=\"y, s-maxage=60",
        "x=\"y, must-revalidate",
    ] {
        assert_eq!(one(&format!("max-age=60, {value}")), Some(WhyNot::Authorization), "{value}");
    }
    for value in ["must-revalidate=1, must-revalidate", "s-maxage=\"60\"", "must-revalidate", "PUBLIC"] {
        assert_eq!(one(&format!("max-age=60, {value}")), None, "{value}");
    }
}

#[test]
fn cookies_are_set_for_one() {
    let one =
        |value: &str| stored(&ok(&[("Cache-Control", value), ("Set-Cookie", "a=b"), ("X", "1")]), &rules());
    assert_eq!(one("max-age=60").err(), Some(WhyNot::SetCookie));
    for value in [
        "max-age=60, public",
        "s-maxage=60",
        "max-age=60, private=\"set-cookie\"",
        "max-age=60, no-cache=Set-Cookie",
    ] {
        let storable = one(value).expect(value);
        assert!(storable.head.named("set-cookie").is_none() && storable.head.named("x").is_some(), "{value}");
    }
}

#[test]
fn a_request_with_a_cookie_shares_no_answer_that_says_nothing() {
    let request = get(&[("Cookie", "user=1")]);
    let one = |answer: &Head, rules: &CachePolicy| stored_by(&request, answer, rules, KnownClient::No).err();
    assert_eq!(one(&ok(&[]), &ttl(10)), Some(WhyNot::Cookie));
    assert_eq!(one(&control("max-age=60"), &rules()), None);
    assert_eq!(one(&ok(&[]), &CachePolicy { ignore_cookies: true, ..ttl(10) }), None);
    let all = CachePolicy { ttl_override: Some(Duration::from_secs(10)), ..rules() };
    assert_eq!((one(&ok(&[]), &all), one(&control("max-age=1"), &all)), (Some(WhyNot::Cookie), None));
}

#[test]
fn rfc9111_3_what_could_never_be_used_is_not_stored() {
    assert_eq!(why(&control("max-age=0")), Some(WhyNot::Stale));
    assert_eq!(why(&ok(&[("Cache-Control", "max-age=60"), ("Age", "60")])), Some(WhyNot::Stale));
    assert_eq!(why(&control("no-cache")), Some(WhyNot::Stale));
    assert_eq!(why(&control("max-age=0, stale-while-revalidate=5")), None);
    assert_eq!(why(&control("max-age=0, stale-if-error=5")), None);
    assert_eq!(why(&control("max-age=0, stale-if-error=5, must-revalidate")), Some(WhyNot::Stale));
    assert_eq!(why(&ok(&[("Cache-Control", "no-cache"), ("ETag", "\"1\"")])), None);
    assert_eq!(why(&ok(&[("Cache-Control", "max-age=0"), ("Last-Modified", "x")])), None);
}

#[test]
fn rfc9111_3_1_lines_that_are_stored() {
    let answer = ok(&[
        ("Cache-Control", "max-age=60, no-cache=\"a\", private=b"),
        ("Connection", "c, close"),
        ("A", "1"),
        ("b", "1"),
        ("C", "1"),
        ("Kept", "1"),
        ("Content-Length", "5"),
        ("Transfer-Encoding", "chunked"),
        ("Keep-Alive", "x"),
        ("Proxy-Authenticate", "x"),
        ("Proxy-Authentication-Info", "x"),
        ("Proxy-Connection", "x"),
        ("TE", "x"),
        ("Trailer", "x"),
        ("Upgrade", "x"),
        ("Age", "2"),
        ("Cache-Tag", "x, y"),
        ("Surrogate-Key", " z  y "),
        ("Content-Type", "text/plain"),
        ("Date", &date(0)),
    ]);
    let storable = stored(&answer, &rules()).expect("stored");
    let expected = format!(
        "HTTP/1.1 200 OK\r\nCache-Control: max-age=60, no-cache=\"a\", private=b\r\nKept: 1\r\nContent-Type: text/plain\r\nDate: {}\r\n",
        date(0)
    );
    assert_eq!(text(&storable.head), expected);
    let tags: Vec<&[u8]> = storable.tags.iter().map(|tag| &**tag).collect();
    assert_eq!(tags, [b"x", b"y", b"z"]);
    assert!(!storable.no_transform);
}

#[test]
fn a_line_that_cache_control_keeps_to_itself_is_not_stored_where_a_targeted_field_counts() {
    let answer = ok(&[
        ("CDN-Cache-Control", "max-age=60"),
        ("Cache-Control", "private=\"X-Secret\""),
        ("X-Secret", "1"),
        ("X", "1"),
    ]);
    let storable = stored(&answer, &rules()).expect("stored");
    assert!(storable.head.named("x-secret").is_none() && storable.head.named("x").is_some());
}

#[test]
fn rfc9110_6_6_1_what_is_kept_has_a_date() {
    let storable = stored(&control("max-age=60, no-transform"), &rules()).expect("stored");
    assert_eq!(storable.head.named("date"), Some(date(0).as_bytes()));
    assert!(storable.no_transform);
}

#[test]
fn rfc9111_4_1_vary() {
    assert_eq!(why(&ok(&[("Cache-Control", "max-age=60"), ("Vary", "a, *")])), Some(WhyNot::VaryStar));
    let storable = stored(&ok(&[("Cache-Control", "max-age=60"), ("Vary", "a")]), &rules()).expect("stored");
    assert!(storable.variant.fits(&get(&[]), &mut Vec::new()));
    assert!(!storable.variant.fits(&get(&[("A", "1")]), &mut Vec::new()));
}

#[test]
fn rfc9111_3_heads_are_not_stored_by_themselves() {
    let head = Head::request("HEAD", "/", "a.example");
    assert_eq!(
        stored_by(&head, &control("max-age=60"), &rules(), KnownClient::No).err(),
        Some(WhyNot::Method)
    );
}
