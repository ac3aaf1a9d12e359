use super::*;
use crate::cache::{AskAgain, Use, is_backend_error, may_use};

fn used(said: &str, asked: &str, seconds: u64) -> Use {
    let lines: &[_] = if asked.is_empty() { &[] } else { &[("Cache-Control", asked)] };
    let request = get(lines);
    let request = CacheRequest::read(&request, false).expect("for the cache");
    may_use(&freshness(&[("Cache-Control", said)]), &request, false, later(seconds))
}

fn again(why: AskAgain) -> Use {
    Use::Revalidate { why, stands_in_until: None }
}

#[test]
fn rfc9111_4_fresh_is_used_and_stale_is_asked_for() {
    assert_eq!(used("max-age=60", "", 59), Use::Fresh);
    assert_eq!(used("max-age=60", "", 60), again(AskAgain::Stale));
    assert_eq!(used("max-age=60, must-revalidate", "", 59), Use::Fresh);
}

#[test]
fn rfc9111_5_2_2_4_no_cache_is_asked_for_each_time() {
    assert_eq!(used("max-age=60, no-cache", "", 0), again(AskAgain::Origin));
    assert_eq!(used("max-age=60, no-cache, stale-if-error=60", "max-stale", 0), again(AskAgain::Origin));
    assert_eq!(used("max-age=60, no-cache=\"x\"", "", 0), Use::Fresh);
}

#[test]
fn rfc9111_5_2_1_wishes_of_clients() {
    for (asked, seconds, expected) in [
        ("no-cache", 1, again(AskAgain::Client)),
        ("max-age=0", 0, again(AskAgain::Client)),
        ("max-age=5", 5, Use::Fresh),
        ("max-age=5", 6, again(AskAgain::Client)),
        ("min-fresh=10", 50, Use::Fresh),
        ("min-fresh=10", 51, again(AskAgain::Client)),
        ("min-fresh=x", 0, again(AskAgain::Client)),
        ("max-stale=10", 70, Use::Stale),
        ("max-stale=10", 71, again(AskAgain::Stale)),
        ("max-stale", 70_000, Use::Stale),
        ("max-stale=x", 61, again(AskAgain::Stale)),
        ("max-stale, max-age=30", 31, again(AskAgain::Client)),
        ("no-store", 1, Use::Fresh),
        ("only-if-cached", 1, Use::Fresh),
        ("only-if-cached", 60, Use::OnlyIfCached),
        ("only-if-cached, no-cache", 1, Use::OnlyIfCached),
    ] {
        assert_eq!(used("max-age=60", asked, seconds), expected, "{asked} after {seconds}");
    }
}

#[test]
fn rfc9111_4_2_4_what_forbids_stale_beats_every_wish() {
    for said in ["must-revalidate", "proxy-revalidate", "s-maxage=60"] {
        let said = format!("max-age=60, {said}, stale-while-revalidate=99, stale-if-error=99");
        for asked in ["", "max-stale", "stale-if-error=99"] {
            assert_eq!(used(&said, asked, 61), again(AskAgain::Stale), "{said} / {asked}");
        }
    }
}

#[test]
fn rfc5861_3_stale_while_revalidate() {
    let said = "max-age=60, stale-while-revalidate=30";
    assert_eq!(used(said, "", 59), Use::Fresh);
    assert_eq!(used(said, "", 60), Use::StaleWhileRevalidate);
    assert_eq!(used(said, "", 89), Use::StaleWhileRevalidate);
    assert_eq!(used(said, "", 90), again(AskAgain::Stale));
    assert_eq!(used(said, "no-cache", 61), again(AskAgain::Client));
    assert_eq!(used(said, "max-age=10", 61), again(AskAgain::Client));
    assert_eq!(used("max-age=0, stale-while-revalidate=30", "", 0), Use::StaleWhileRevalidate);
    assert_eq!(used(said, "only-if-cached", 61), Use::StaleWhileRevalidate);
}

#[test]
fn rfc5861_4_stale_if_error() {
    let until = |use_: Use| match use_ {
        Use::Revalidate { stands_in_until, .. } => stands_in_until,
        other => panic!("{other:?}"),
    };
    let said = "max-age=60, stale-if-error=30";
    assert_eq!(until(used(said, "", 60)), Some(later(90)));
    assert_eq!(until(used(said, "", 89)), Some(later(90)));
    assert_eq!(until(used(said, "", 90)), None);
    assert_eq!(until(used(said, "no-cache", 10)), Some(later(90)));
    assert_eq!(until(used("max-age=60", "stale-if-error=5", 62)), Some(later(65)));
    assert_eq!(until(used("max-age=60", "stale-if-error=5", 66)), None);
    assert_eq!(until(used(said, "stale-if-error=1", 62)), None, "the request may ask for less");
    let rules = CachePolicy { stale_if_error: Duration::from_secs(7), ..rules() };
    let ours = stored(&ok(&[("Cache-Control", "max-age=60")]), &rules).expect("stored").freshness;
    let request = get(&[]);
    let request = CacheRequest::read(&request, false).expect("for the cache");
    assert_eq!(until(may_use(&ours, &request, false, later(61))), Some(later(67)));
    for (status, is) in
        [(500, true), (502, true), (503, true), (504, true), (501, false), (404, false), (599, false)]
    {
        assert_eq!(is_backend_error(status), is, "{status}");
    }
}

#[test]
fn rfc8246_2_immutable_is_not_asked_for_by_a_reload() {
    let said = "max-age=60, immutable";
    assert_eq!(used(said, "max-age=0", 1), Use::Fresh);
    assert_eq!(used(said, "no-cache", 1), again(AskAgain::Client));
    assert_eq!(used(said, "max-age=0", 61), again(AskAgain::Client));
}

#[test]
fn a_request_with_a_cookie_gets_no_answer_that_said_nothing() {
    let unsaid = stored(&ok(&[]), &ttl(10)).expect("stored").freshness;
    let said = freshness(&[("Cache-Control", "max-age=60")]);
    let request = get(&[("Cookie", "a=b")]);
    let request = CacheRequest::read(&request, false).expect("for the cache");
    assert_eq!(may_use(&unsaid, &request, false, CAME), Use::Past(WhyNot::Cookie));
    assert_eq!(may_use(&unsaid, &request, true, CAME), Use::Fresh);
    assert_eq!(may_use(&said, &request, false, CAME), Use::Fresh);
    let all = CachePolicy { ttl_override: Some(Duration::from_secs(10)), ..rules() };
    let overridden = |lines: &[(&str, &str)]| stored(&ok(lines), &all).expect("stored").freshness;
    assert_eq!(may_use(&overridden(&[]), &request, false, CAME), Use::Past(WhyNot::Cookie));
    let may_be = [("Cache-Control", "max-age=1")];
    assert_eq!(may_use(&overridden(&may_be), &request, false, CAME), Use::Fresh);
    // One that is stale at once was not meant for others.
    for stale in [("Expires", "0"), ("Cache-Control", "max-age=0"), ("Cache-Control", "no-cache")] {
        assert_eq!(
            may_use(&overridden(&[stale]), &request, false, CAME),
            Use::Past(WhyNot::Cookie),
            "{stale:?}"
        );
    }
}
