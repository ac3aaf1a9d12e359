//! The rules of the cache beside those of another author: `http-cache-semantics`. Where the two differ on purpose stands here, and who is right.
//!
//! What is made up below keeps clear of these:
//!
//! * `private="f"` and `no-cache="f"` are taken for `private` and `no-cache` there; RFC 9111 §5.2.2.4 and §5.2.2.7 speak of the fields alone.
//! * Names of directives count only in small letters there (§5.2: in any case), and commas in quoted strings separate.
//! * `proxy-revalidate` makes an answer stale at once there; it forbids the use of stale ones (§5.2.2.8).
//! * Age is what the line `Age` says there; §4.2.3 takes the older of that and of `Date`.
//! * Statuses that it does not know are not stored there whatever they say (§3: only `must-understand` asks for that).
//! * `immutable` is fresh for a day there, though nobody says so (RFC 8246 says nothing of that), and lets cookies be shared.
//! * A guess has no bound there (§4.2.2 leaves it open; ours is a day), and `Pragma: no-cache` of an answer means something (§5.4: it does not).
//! * An answer with a cookie is stored there and is stale; ours is not stored, unless it is for all by `public` or `s-maxage`. `s-maxage`
//!   is enough for us (§5.2.2.10), there it is not.
//! * `max-stale` is enough there for an answer that is never fresh or says `no-cache` or `s-maxage` (§5.2.2.4, §5.2.2.10), and does not
//!   reach to its last second (§5.2.1.2).
//! * 308 needs an explicit lifetime there (RFC 9110 §15.1: it does not), and a guess is cut to whole seconds.
//! * `must-revalidate` shares what Authorization has brought there even where nobody says how long it is fresh (RFC 9111 §3.5 allows it;
//!   we don't).
//! * Two ages that differ forbid stale use there and the first counts, as with us.
//! * `CDN-Cache-Control` (RFC 9213), `stale-while-revalidate`, `must-understand` and ranges are unknown there.
#![allow(clippy::unwrap_used, reason = "a test says what it expects by failing")]

use std::time::{Duration, SystemTime};

use evenkeel::cache::{Arrival, AskedBy, CacheRequest, KnownClient, Use, http_date, may_store, may_use};
use evenkeel::config::model::cache::CachePolicy as RoutePolicy;
use evenkeel::message::Head;
use evenkeel::tick::Tick;
use http::{Request, Response};
use http_cache_semantics::{BeforeRequest, CacheOptions, CachePolicy};
use proptest::prelude::*;

/// Sun, 06 Nov 1994 08:49:37 GMT: when every answer comes.
const CAME: u64 = 784_111_777;

type Lines = Vec<(&'static str, String)>;

fn date(offset: i64) -> String {
    let at = CAME.checked_add_signed(offset).unwrap();
    httpdate::fmt_http_date(SystemTime::UNIX_EPOCH + Duration::from_secs(at))
}

/// Whether theirs would send the stored answer to the second request without asking.
fn theirs(status: u16, first: &Lines, answer: &Lines, second: &Lines, seconds: u64) -> bool {
    let request = |lines: &Lines| {
        let mut builder = Request::get("http://a.example/");
        for (name, value) in lines {
            builder = builder.header(*name, value);
        }
        builder.body(()).unwrap()
    };
    let mut builder = Response::builder().status(status);
    for (name, value) in answer {
        builder = builder.header(*name, value);
    }
    let options = CacheOptions { shared: true, cache_heuristic: 0.1, ..CacheOptions::default() };
    let came = SystemTime::UNIX_EPOCH + Duration::from_secs(CAME);
    let policy = CachePolicy::new_options(&request(first), &builder.body(()).unwrap(), came, options);
    let now = came + Duration::from_secs(seconds);
    policy.is_storable() && matches!(policy.before_request(&request(second), now), BeforeRequest::Fresh(_))
}

/// The same of ours.
fn ours(status: u16, first: &Lines, answer: &Lines, second: &Lines, seconds: u64) -> bool {
    let request = |lines: &Lines| {
        let mut head = Head::request("GET", "/", "a.example");
        lines.iter().for_each(|(name, value)| head.push(name.as_bytes(), value.as_bytes()));
        head
    };
    let mut head = Head::answer(status);
    answer.iter().for_each(|(name, value)| head.push(name.as_bytes(), value.as_bytes()));
    let (first, second) = (request(first), request(second));
    let rules = RoutePolicy { ttl: None, heuristic: true, ignore_cookies: true, ..RoutePolicy::default() };
    let came = Tick(9_000_000_000_000);
    let arrival = Arrival { asked: came, came, date: CAME.cast_signed() };
    let client = CacheRequest::read(&first, false).unwrap();
    let asked = AskedBy { client: &client, sent: &first, known: KnownClient::No };
    let Ok(storable) = may_store(&asked, &head, &rules, &arrival) else { return false };
    let now = came.after(Duration::from_secs(seconds));
    let client = CacheRequest::read(&second, false).unwrap();
    storable.variant.fits(&second, &mut Vec::new())
        && matches!(may_use(&storable.freshness, &client, true, now), Use::Fresh | Use::Stale)
}

fn some(lines: &'static [(&'static str, &'static str)], most: usize) -> impl Strategy<Value = Lines> {
    prop::sample::subsequence(lines, 0..=most)
        .prop_map(|lines| lines.iter().map(|(name, value)| (*name, (*value).to_owned())).collect())
}

/// Lines of an answer. A directive stands in a line of its own.
fn answers() -> impl Strategy<Value = Lines> {
    let plain = some(
        &[
            ("cache-control", "public"),
            ("cache-control", "private"),
            ("cache-control", "no-store"),
            ("cache-control", "no-cache"),
            ("cache-control", "must-revalidate"),
            ("cache-control", "max-age=10"),
            ("cache-control", "max-age=100"),
            ("cache-control", "max-age=x"),
            ("cache-control", "max-age=\"20\""),
            ("cache-control", "s-maxage=50"),
            ("cache-control", "foo=bar, x"),
            ("age", "5"),
            ("vary", "a"),
            ("vary", "b"),
            ("vary", "*"),
            ("etag", "\"1\""),
            ("expires", "0"),
        ],
        5,
    );
    let modified = prop::option::of((0i64..50_000).prop_map(|ago| ("last-modified", date(-ago * 10))));
    let expires = prop::option::of((-100i64..100).prop_map(|offset| ("expires", date(offset))));
    (plain, modified, expires).prop_map(|(mut lines, modified, expires)| {
        if !lines.iter().any(|(name, _)| *name == "expires") {
            lines.extend(expires);
        }
        lines.extend(modified);
        lines
    })
}

fn requests() -> impl Strategy<Value = Lines> {
    some(
        &[
            ("cache-control", "no-cache"),
            ("cache-control", "max-age=30"),
            ("cache-control", "min-fresh=20"),
            ("a", "1"),
            ("b", "2"),
            ("authorization", "x"),
            ("cookie", "x=y"),
        ],
        3,
    )
}

/// Whether they mean to agree: not about two ages of which one counts, and not about what Authorization has brought if nobody says how
/// long it is fresh.
fn is_plain(first: &Lines, answer: &Lines) -> bool {
    let ages = answer.iter().filter(|(_, value)| value.starts_with("max-age")).count();
    let says = answer.iter().any(|(name, value)| *name == "expires" || value.contains("max"));
    let is_authorized = first.iter().any(|(name, _)| *name == "authorization");
    ages < 2 && (says || !is_authorized)
}

proptest! {
    // A sixth of what is drawn is no plain case.
    #![proptest_config(ProptestConfig { max_global_rejects: 50_000, ..ProptestConfig::with_cases(5_000) })]
    #[test]
    fn both_send_the_same_answers_without_asking(
        status in prop::sample::select(vec![200u16, 203, 204, 300, 301, 302, 307, 404, 405, 410, 414, 501, 206]),
        first in requests(), answer in answers(), second in requests(), seconds in 0u64..200,
    ) {
        prop_assume!(is_plain(&first, &answer));
        let (their, our) = (theirs(status, &first, &answer, &second, seconds), ours(status, &first, &answer, &second, seconds));
        prop_assert_eq!(our, their, "{} {:?} {:?} {:?} after {}", status, first, answer, second, seconds);
    }

    /// httpdate reads nothing that we don't, and the same.
    #[test]
    fn another_reader_of_dates_agrees(at in 0u64..4_000_000_000, place in 0usize..29, byte in 32u8..127) {
        let mut text = httpdate::fmt_http_date(SystemTime::UNIX_EPOCH + Duration::from_secs(at)).into_bytes();
        text[place] = byte;
        let text = String::from_utf8(text).unwrap();
        if let Ok(theirs) = httpdate::parse_http_date(&text)
            && let Ok(since) = theirs.duration_since(SystemTime::UNIX_EPOCH)
        {
            prop_assert_eq!(http_date(text.as_bytes(), 1_800_000_000), Some(since.as_secs().cast_signed()), "{}", text);
        }
    }
}
