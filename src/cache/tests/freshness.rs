use super::*;
use crate::cache::Basis;

/// For how many seconds it is fresh from when it came.
fn fresh_for(lines: Lines<'_>) -> u64 {
    freshness(lines).left(CAME).as_secs()
}

fn dated(name: &'static str, offset: i64) -> (&'static str, String) {
    (name, date(offset))
}

fn fresh_dated(control: Option<&str>, lines: &[(&'static str, String)]) -> u64 {
    let mut all: Vec<(&str, &str)> = lines.iter().map(|(name, value)| (*name, value.as_str())).collect();
    all.extend(control.map(|control| ("Cache-Control", control)));
    fresh_for(&all)
}

#[test]
fn rfc9111_4_2_fresh_is_younger_than_its_lifetime() {
    let fresh = freshness(&[("Cache-Control", "max-age=2")]);
    assert!(fresh.is_fresh(CAME) && fresh.is_fresh(Tick(later(2).0 - 1)) && !fresh.is_fresh(later(2)));
    assert_eq!((fresh.age_seconds(later(3)), fresh.stale_for(later(3))), (3, Duration::from_secs(1)));
    assert_eq!(fresh.basis, Basis::Said);
    assert!(!freshness(&[("Cache-Control", "max-age=0")]).is_fresh(CAME));
    assert!(!fresh.spoilt().is_fresh(CAME));
}

#[test]
fn rfc9111_4_2_1_who_says_how_long() {
    assert_eq!(fresh_dated(Some("max-age=60"), &[dated("Expires", 9), dated("Date", 0)]), 60);
    assert_eq!(fresh_dated(Some("max-age=60"), &[("Expires", "0".to_owned())]), 60);
    assert_eq!(fresh_dated(Some("max-age=0"), &[dated("Expires", 9)]), 0);
    assert_eq!(fresh_dated(Some("max-age=0, s-maxage=60"), &[dated("Expires", -10)]), 60);
    assert_eq!(fresh_dated(Some("public"), &[dated("Expires", 9)]), 9);
    assert_eq!(fresh_for(&[("CDN-Cache-Control", "max-age=60"), ("Cache-Control", "max-age=1")]), 60);
    assert_eq!(fresh_dated(None, &[dated("Expires", 9), ("CDN-Cache-Control", "max-age=0".to_owned())]), 0);
}

#[test]
fn rfc9111_5_3_expires() {
    assert_eq!(fresh_dated(None, &[dated("Expires", 9), dated("Date", 0)]), 9);
    assert_eq!(fresh_dated(None, &[dated("Expires", 0), dated("Date", 0)]), 0);
    assert_eq!(fresh_dated(None, &[dated("Expires", -9), dated("Date", 0)]), 0);
    // Its own clock is what Expires is compared with, not ours.
    assert_eq!(fresh_dated(None, &[dated("Expires", 300), dated("Date", 400)]), 0);
    assert_eq!(fresh_dated(None, &[dated("Expires", 420), dated("Date", 400)]), 20);
    assert_eq!(fresh_dated(None, &[dated("Expires", 9)]), 9, "without a date: when it came");
    assert_eq!(fresh_dated(None, &[dated("Expires", 9), ("Date", "foo".to_owned())]), 9);
    assert_eq!(fresh_for(&[("Expires", "0")]), 0);
    assert_eq!(fresh_for(&[("Expires", "-1")]), 0);
    // Of two the first counts (§4.2.1).
    assert_eq!(fresh_dated(None, &[dated("Expires", 9), dated("Expires", 90)]), 9);
}

#[test]
fn rfc9111_4_2_3_age() {
    let age = |lines: &[(&'static str, String)]| {
        let all: Vec<(&str, &str)> = lines.iter().map(|(name, value)| (*name, value.as_str())).collect();
        freshness(&[&all[..], &[("Cache-Control", "max-age=60")]].concat()).age_seconds(later(1))
    };
    assert_eq!(age(&[]), 1);
    assert_eq!(age(&[("Age", "30".to_owned())]), 31);
    assert_eq!(age(&[("Age", "30".to_owned()), dated("Date", -10)]), 31);
    assert_eq!(age(&[("Age", "5".to_owned()), dated("Date", -10)]), 11, "apparent age");
    assert_eq!(age(&[dated("Date", 10)]), 1, "a clock that is fast makes nothing younger");
    assert_eq!(age(&[("Age", "99999999999".to_owned())]), u64::from(crate::cache::MOST_SECONDS));
}

#[test]
fn rfc9111_5_1_age_that_is_none_is_passed_over() {
    for (value, age) in
        [("abc", 0), ("-7200", 0), ("7200.0", 0), ("7200,0", 7200), ("0,7200", 0), ("0, 0", 0), ("", 0)]
    {
        let fresh = freshness(&[("Cache-Control", "max-age=9000"), ("Age", value)]);
        assert_eq!(fresh.age_seconds(CAME), age, "{value}");
    }
    let fresh = freshness(&[("Cache-Control", "max-age=9000"), ("Age", "7200"), ("Age", "0")]);
    assert_eq!(fresh.age_seconds(CAME), 7200);
}

#[test]
fn rfc9111_4_2_3_the_way_to_us_counts_as_age() {
    let client = get(&[]);
    let client = CacheRequest::read(&client, false).expect("for the cache");
    let arrival = Arrival { asked: Tick(CAME.0 - 3_000_000_000), ..ARRIVAL };
    let asked = AskedBy { client: &client, sent: &get(&[]), known: KnownClient::No };
    let one = |lines| may_store(&asked, &ok(lines), &rules(), &arrival).expect("stored").freshness;
    assert_eq!(one(&[("Cache-Control", "max-age=60")]).age_seconds(CAME), 3);
    assert_eq!(one(&[("Cache-Control", "max-age=60"), ("Age", "5")]).age_seconds(CAME), 8);
}

#[test]
fn rfc9111_4_2_3_expires_and_age_with_clocks_that_are_wrong() {
    assert_eq!(fresh_dated(None, &[dated("Date", -10), dated("Expires", 10), ("Age", "25".to_owned())]), 0);
    assert_eq!(fresh_dated(None, &[dated("Date", 10), dated("Expires", 20), ("Age", "15".to_owned())]), 0);
}

#[test]
fn rfc9111_4_2_2_a_guess_only_where_it_is_asked_for() {
    let guess = CachePolicy { heuristic: true, ..rules() };
    let one = |status, lines: &[(&'static str, String)], rules: &CachePolicy| {
        let all: Vec<(&str, &str)> = lines.iter().map(|(name, value)| (*name, value.as_str())).collect();
        stored(&with(Head::answer(status), &all), rules)
            .map(|storable| storable.freshness.left(CAME).as_secs())
    };
    let modified = [dated("Last-Modified", -1000), dated("Date", 0)];
    assert_eq!(one(200, &modified, &guess), Ok(100));
    assert_eq!(one(200, &modified, &rules()), Err(WhyNot::SaysNothing));
    for status in [203, 204, 300, 301, 308, 404, 405, 410, 414, 501] {
        assert_eq!(one(status, &modified, &guess), Ok(100), "{status}");
    }
    for status in [201, 202, 302, 303, 307, 400, 403, 500, 502, 503, 504, 599] {
        assert_eq!(one(status, &modified, &guess), Err(WhyNot::SaysNothing), "{status}");
    }
    let public = [dated("Last-Modified", -1000), ("Cache-Control", "public".to_owned())];
    assert_eq!(one(599, &public, &guess), Ok(100));
    assert_eq!(one(200, &[dated("Last-Modified", -100_000_000)], &guess), Ok(86_400), "a day at most");
    assert_eq!(one(200, &[dated("Last-Modified", 100)], &guess), Ok(0), "not modified yet");
    let pragma = [dated("Last-Modified", -1000), ("Pragma", "no-cache".to_owned())];
    assert_eq!(one(200, &pragma, &guess), Ok(0));
}

#[test]
fn ttl_speaks_for_answers_that_say_nothing() {
    let left = |status, lines: Lines<'_>, rules: &CachePolicy| {
        stored(&with(Head::answer(status), lines), rules)
            .map(|storable| storable.freshness.left(CAME).as_secs())
    };
    assert_eq!(left(200, &[], &ttl(10)), Ok(10));
    assert_eq!(left(200, &[], &rules()), Err(WhyNot::SaysNothing));
    assert_eq!(left(200, &[("Cache-Control", "max-age=3")], &ttl(10)), Ok(3));
    assert_eq!(left(200, &[("Cache-Control", "public, foo")], &ttl(10)), Ok(10));
    assert_eq!(left(200, &[("Cache-Control", "must-revalidate")], &ttl(10)), Ok(10));
    assert_eq!(left(200, &[("Cache-Control", "no-cache")], &ttl(10)), Err(WhyNot::Stale));
    assert_eq!(left(200, &[("Pragma", "no-cache")], &ttl(10)), Err(WhyNot::Stale));
    assert_eq!(left(200, &[("Expires", "0")], &ttl(10)), Err(WhyNot::Stale));
    assert_eq!(left(200, &[("Cache-Control", "max-age=x")], &ttl(10)), Err(WhyNot::Stale));
    // A backend whose clock is an hour late is no older for that.
    assert_eq!(left(200, &[("Date", &date(-3600))], &ttl(10)), Ok(10));
    assert_eq!(left(302, &[], &ttl(10)), Err(WhyNot::SaysNothing));
    assert_eq!(left(404, &[], &ttl(10)), Err(WhyNot::SaysNothing));
    let negative = CachePolicy { negative_ttl: Some(Duration::from_secs(2)), ..ttl(10) };
    assert_eq!((left(404, &[], &negative), left(200, &[], &negative)), (Ok(2), Ok(10)));
    assert_eq!(left(500, &[], &negative), Err(WhyNot::SaysNothing));
}

#[test]
fn ttl_override_speaks_for_all_that_may_be_stored() {
    let all = CachePolicy { ttl_override: Some(Duration::from_secs(10)), ..rules() };
    let left = |status, lines: Lines<'_>| {
        stored(&with(Head::answer(status), lines), &all)
            .map(|storable| storable.freshness.left(CAME).as_secs())
    };
    for lines in [
        &[][..],
        &[("Cache-Control", "max-age=3")],
        &[("Cache-Control", "max-age=3000")],
        &[("Cache-Control", "no-cache, max-age=0")],
        &[("Expires", "0")],
        &[("Pragma", "no-cache")],
        &[("Age", "500")],
    ] {
        assert_eq!(left(200, lines), Ok(10), "{lines:?}");
    }
    assert_eq!(left(200, &[("Cache-Control", "no-store")]), Err(WhyNot::NoStore));
    assert_eq!(left(200, &[("Cache-Control", "private")]), Err(WhyNot::Private));
    assert_eq!(left(200, &[("Set-Cookie", "a=b")]), Err(WhyNot::SetCookie));
    assert_eq!(left(200, &[("Vary", "*")]), Err(WhyNot::VaryStar));
    for status in [302, 404, 500, 503] {
        assert_eq!(left(status, &[]), Err(WhyNot::SaysNothing), "{status}");
    }
    assert_eq!(left(404, &[("Cache-Control", "max-age=3")]), Ok(10));
}
