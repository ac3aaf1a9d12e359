//! Against models that say the same in the fewest words.

use proptest::prelude::*;

use super::*;
use crate::cache::{CacheKey, KeyParts, KeyRules, RequestDirectives, Use, is_plain, may_use};

/// Freshness of an answer that has Cache-Control with one age, Age and Date, by the formulas of RFC 9111 §4.2.3 as they stand there.
fn naive_left(max_age: i64, age_value: i64, date_offset: i64, delay: i64, resident: i64) -> i64 {
    let apparent_age = (-date_offset).max(0);
    let corrected_age_value = age_value + delay;
    let corrected_initial_age = apparent_age.max(corrected_age_value);
    max_age - (corrected_initial_age + resident)
}

/// One client of the second model: what it sends, and who it is.
#[derive(Clone, Debug)]
struct User {
    who: u8,
    authorization: bool,
    cookie: bool,
    known: bool,
    language: &'static str,
}

fn user() -> impl Strategy<Value = User> {
    let languages = prop::sample::select(vec!["de", "en"]);
    (0u8..3, any::<bool>(), any::<bool>(), any::<bool>(), languages).prop_map(
        |(who, authorization, cookie, known, language)| User { who, authorization, cookie, known, language },
    )
}

fn request(user: &User) -> Head {
    let mut head = get(&[("Accept-Language", user.language)]);
    if user.authorization {
        head.push(b"Authorization", format!("Bearer {}", user.who).as_bytes());
    }
    if user.cookie {
        head.push(b"Cookie", format!("user={}", user.who).as_bytes());
    }
    head
}

fn known(user: &User) -> KnownClient {
    if user.known { KnownClient::Yes } else { KnownClient::No }
}

const DIRECTIVES: &[&str] = &[
    "max-age=60",
    "s-maxage=60",
    "public",
    "private",
    "no-store",
    "no-cache",
    "must-revalidate",
    "private=\"x\"",
    "foo=\"public\"",
];

/// Whether its origin allows, by any rule of RFC 9111 §3 and §3.5 or of ours, that another one gets it without being asked.
fn naive_is_shared(directives: &[&str], user: &User, sets_cookie: bool, ttl: bool) -> bool {
    let has = |name: &str| directives.contains(&name);
    if has("no-store") || has("private") || has("no-cache") {
        return false;
    }
    let for_all = has("public") || has("s-maxage=60");
    let says_how_long = has("max-age=60") || has("s-maxage=60");
    let is_personal = user.known || sets_cookie;
    if is_personal && !for_all || user.authorization && !for_all && !(has("must-revalidate") && says_how_long)
    {
        return false;
    }
    says_how_long || ttl && (has("public") || !user.cookie)
}

proptest! {
    #[test]
    fn freshness_is_what_the_formulas_say(
        max_age in 0i64..200, age_value in 0i64..200, date_offset in -200i64..200, delay in 0i64..20, resident in 0i64..300,
    ) {
        let answer = ok(&[
            ("Cache-Control", &format!("max-age={max_age}")), ("Age", &age_value.to_string()), ("Date", &date(date_offset)), ("ETag", "\"1\""),
        ]);
        let head = get(&[]);
        let client = CacheRequest::read(&head, false).expect("for the cache");
        let arrival = Arrival { asked: Tick(CAME.0 - delay as u64 * 1_000_000_000), ..ARRIVAL };
        let asked = AskedBy { client: &client, sent: &head, known: KnownClient::No };
        let fresh = may_store(&asked, &answer, &rules(), &arrival).expect("stored").freshness;
        let left = naive_left(max_age, age_value, date_offset, delay, resident);
        let now = later(resident as u64);
        prop_assert_eq!(fresh.is_fresh(now), left > 0);
        prop_assert_eq!(fresh.left(now).as_secs() as i64 - fresh.stale_for(now).as_secs() as i64, left);
        prop_assert_eq!(may_use(&fresh, &client, false, now) == Use::Fresh, left > 0);
    }
}

proptest! {
    /// What is said of a fresh answer stays the same up to the moment that it names, and not much longer.
    #[test]
    fn what_is_said_stays_the_same_for_so_long(
        max_age in 1i64..9, delay in 0u64..3_000_000_000, resident in 0u64..9_000_000_000, part in 0.0..1.0,
    ) {
        let (head, answer) = (get(&[]), ok(&[("Cache-Control", &format!("max-age={max_age}")), ("ETag", "\"1\"")]));
        let client = CacheRequest::read(&head, false).expect("for the cache");
        let arrival = Arrival { asked: Tick(CAME.0 - delay), ..ARRIVAL };
        let asked = AskedBy { client: &client, sent: &head, known: KnownClient::No };
        let fresh = may_store(&asked, &answer, &rules(), &arrival).expect("stored").freshness;
        let now = Tick(CAME.0 + resident);
        if fresh.is_fresh(now) {
            let said = |now| (fresh.age_seconds(now), fresh.seconds_left(now), fresh.is_fresh(now));
            let until = fresh.alike_until(now);
            let between = Tick(now.0 + ((until.0 - now.0 - 1) as f64 * part) as u64);
            prop_assert_eq!((said(between), said(Tick(until.0 - 1))), (said(now), said(now)));
            prop_assert_ne!(said(Tick(until.0 + 1)), said(now));
        }
    }

    /// Of two plain requests with one key none gets anything that the other does not.
    #[test]
    fn plain_requests_ask_for_the_same(
        method in prop::sample::select(vec!["GET", "HEAD", "POST"]), has_body in any::<bool>(),
        lines in prop::sample::subsequence(
            vec![
                ("Cache-Control", "no-cache"), ("Cache-Control", "max-stale"), ("Pragma", "no-cache"), ("Range", "bytes=0-1"), ("If-Range", "x"),
                ("If-Match", "*"), ("If-None-Match", "*"), ("If-Modified-Since", "x"), ("If-Unmodified-Since", "x"), ("Upgrade", "h2c"),
                ("Connection", "close"), ("Connection", "x-user"), ("X-User", "1"), ("Accept", "*/*"), ("Authorization", "x"), ("Cookie", "a"),
            ],
            0..3,
        ),
    ) {
        let head = with(Head::request(method, "/", "a.example"), &lines);
        if is_plain(&head, has_body) {
            let request = CacheRequest::read(&head, has_body).expect("for the cache");
            prop_assert!(!request.is_head && !request.is_conditional() && request.directives == RequestDirectives::default());
        } else {
            let names = ["Cache-Control", "Pragma", "Range", "If-Range", "If-Match", "If-None-Match", "If-Modified-Since", "If-Unmodified-Since", "Upgrade"];
            let is_more = lines.iter().any(|line| names.contains(&line.0) || *line == ("Connection", "x-user"));
            prop_assert!(is_more || has_body || method != "GET");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20_000))]
    /// Somebody gets another one's answer only where its origin allows that, and where `Vary` says that they are alike.
    #[test]
    fn nobody_gets_another_ones_answer(
        first in user(), second in user(), chosen in prop::sample::subsequence(DIRECTIVES, 0..4), sets_cookie in any::<bool>(),
        vary in prop::sample::subsequence(vec!["Accept-Language", "Cookie", "Authorization"], 0..3), has_ttl in any::<bool>(),
    ) {
        let mut answer = ok(&[("ETag", "\"1\"")]);
        if !chosen.is_empty() {
            answer.push(b"Cache-Control", chosen.join(", ").as_bytes());
        }
        if sets_cookie {
            answer.push(b"Set-Cookie", format!("user={}", first.who).as_bytes());
        }
        if !vary.is_empty() {
            answer.push(b"Vary", vary.join(", ").as_bytes());
        }
        let rules = if has_ttl { ttl(60) } else { rules() };
        let (asks, asks_too) = (request(&first), request(&second));
        let storable = stored_by(&asks, &answer, &rules, known(&first));
        let Ok(storable) = storable else {
            return Ok(());
        };
        prop_assert!(storable.head.named("set-cookie").is_none());
        let client = CacheRequest::read(&asks_too, false).expect("for the cache");
        let gets_it = storable.variant.fits(&asks_too, &mut Vec::new())
            && matches!(may_use(&storable.freshness, &client, false, later(1)), Use::Fresh | Use::Stale | Use::StaleWhileRevalidate);
        if gets_it {
            prop_assert!(naive_is_shared(&chosen, &first, sets_cookie, has_ttl), "{:?} {:?}", first, chosen);
            let says = |user: &User, name: &str| match name {
                "Accept-Language" => Some(user.language.to_owned()),
                "Cookie" => user.cookie.then(|| user.who.to_string()),
                _ => user.authorization.then(|| user.who.to_string()),
            };
            prop_assert!(vary.iter().all(|name| says(&first, name) == says(&second, name)));
        }
    }

    /// Keys are the same only where all of their parts are.
    #[test]
    fn keys_tell_parts_apart(one in parts(), other in parts()) {
        let key = |(authority, path, route, target): &(String, String, String, String)| {
            let parts = KeyParts {
                is_https: false, told_host: b"", authority: authority.as_bytes(), path: path.as_bytes(), route: route.as_bytes(), target: target.as_bytes(),
            };
            CacheKey::of(&parts, &get(&[]), &KeyRules::default())
        };
        prop_assert_eq!(key(&one) == key(&other), one == other);
    }
}

fn parts() -> impl Strategy<Value = (String, String, String, String)> {
    ("[ab]{1,2}", "/[ab?]{0,2}", "[ab/]{0,2}", "[ab]{0,2}")
}
