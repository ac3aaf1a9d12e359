//! What is kept of answers: `cache`, `cache_store`, and GoLoadBalance's names for them.

mod compress;
mod seed;

use std::time::Duration;

use serde_json::json;

use super::every_key::{Check, target};
use super::listeners::{front, of, route};
use super::*;
use crate::config::model::cache::CachePolicy;

/// Adds what the key at `path` needs beside it.
pub(super) fn set_up(path: &str, config: &mut serde_json::Value) {
    if path == "cache_store.object" {
        config["cache_store"]["memory"] = "1TiB".into();
    }
}

/// Values that keys of this take.
pub(super) fn values() -> [serde_json::Value; 3] {
    [json!("64MiB"), json!("gzip"), json!({ "zstd": 3 })]
}

/// A route with a `cache` that has these keys.
fn cached(keys: &str) -> String {
    route(&format!("cache: {{{keys}}}"))
}

/// What the first route of the first listener answers from what is stored.
fn policy(config: &Config) -> Option<&CachePolicy> {
    of(config).routes[0].cache.as_deref()
}

const SECOND: Duration = Duration::from_secs(1);

/// Keys of `cache`, each with a text in which it stands and what it changes.
pub(super) fn rows() -> Vec<(&'static str, String, Check)> {
    let mut rows: Vec<(&'static str, String, Check)> = vec![
        ("cache_store", format!("cache_store: {{memory: 64MiB}}\n{WEB}"), |c| {
            c.cache_store.memory == 64 << 20 && c.cache_store.object == 8 << 20
        }),
        ("cache_store.memory", format!("cache_store: {{memory: 1GiB}}\n{WEB}"), |c| {
            c.cache_store.memory == 1 << 30 && c.cache_store.object == 16 << 20
        }),
        ("cache_store.object", format!("cache_store: {{object: 32MiB}}\n{WEB}"), |c| {
            c.cache_store.object == 32 << 20
        }),
        ("cache_enabled", format!("cache_enabled: true\n{WEB}"), |c| {
            policy(c) == Some(&CachePolicy::default())
        }),
        (
            "cache_timeout_in_seconds",
            format!("cache_enabled: true\ncache_timeout_in_seconds: 7\n{WEB}"),
            |c| policy(c).is_some_and(|cache| cache.ttl == Some(7 * SECOND)),
        ),
    ];
    for (path, text) in [
        ("listeners.<name>.routes[].cache", cached as fn(&str) -> String),
        ("targets.<name>.cache", |keys| target(&format!("cache: {{{keys}}}"))),
    ] {
        let of_keys: [(&str, &str, Check); 12] = [
            ("", "", |c| policy(c) == Some(&CachePolicy::default())),
            (".ttl", "ttl: off", |c| policy(c).is_some_and(|cache| cache.ttl.is_none())),
            (".ttl_override", "ttl_override: 1h", |c| {
                policy(c).is_some_and(|cache| cache.ttl_override == Some(3600 * SECOND))
            }),
            (".negative_ttl", "negative_ttl: 1s", |c| {
                policy(c).is_some_and(|cache| cache.negative_ttl == Some(SECOND))
            }),
            (".heuristic", "heuristic: on", |c| policy(c).is_some_and(|cache| cache.heuristic)),
            (".stale_while_revalidate", "stale_while_revalidate: 30s", |c| {
                policy(c).is_some_and(|cache| cache.stale_while_revalidate == 30 * SECOND)
            }),
            (".stale_if_error", "stale_if_error: 10m", |c| {
                policy(c).is_some_and(|cache| cache.stale_if_error == 600 * SECOND)
            }),
            (".ignore_cookies", "ignore_cookies: yes", |c| {
                policy(c).is_some_and(|cache| cache.ignore_cookies)
            }),
            (".query", "query: [page, 'q[]']", |c| {
                policy(c).is_some_and(|cache| cache.query.as_ref().is_some_and(|all| all == &["page", "q[]"]))
            }),
            (".headers", "headers: Accept-Language", |c| {
                policy(c).is_some_and(|cache| cache.headers == ["accept-language"])
            }),
            (".reloads", "reloads: 2/s", |c| policy(c).is_some_and(|cache| cache.reloads == 2)),
            (".fill", "fill: on", |c| policy(c).is_some_and(|cache| cache.fill)),
        ];
        rows.extend(of_keys.map(|(key, keys, check)| (&*format!("{path}{key}").leak(), text(keys), check)));
    }
    rows.extend(compress::rows());
    rows
}

#[test]
fn on_is_all_defaults_and_off_is_none() {
    for on in ["on", "yes", "true", "'on'", "{}"] {
        assert_eq!(policy(&config(&route(&format!("cache: {on}")))), Some(&CachePolicy::default()), "{on}");
    }
    for off in ["off", "no", "false", "'off'"] {
        assert_eq!(policy(&config(&route(&format!("cache: {off}")))), None, "{off}");
    }
    assert_eq!(policy(&config(&front("protocol: http"))), None);
}

#[test]
fn the_query_is_whole_or_some_of_it_or_none() {
    let of = |query: &str| policy(&config(&cached(&format!("query: {query}")))).unwrap().query.clone();
    assert_eq!((of("all"), of("ALL")), (None, None));
    assert_eq!(of("[]"), Some(Vec::new()));
    assert_eq!(of("page"), Some(vec!["page".to_owned()]));
    // In a list it is the name of a parameter.
    assert_eq!(of("[all, 1]"), Some(vec!["all".to_owned(), "1".to_owned()]));
}

#[test]
fn reloads_are_per_second() {
    let of = |reloads: &str| policy(&config(&cached(&format!("reloads: {reloads}")))).unwrap().reloads;
    assert_eq!([of("10/s"), of("' 5 / S '"), of("7"), of("off"), of("1000000/s")], [10, 5, 7, 0, 1_000_000]);
}

#[test]
fn what_is_wrong_with_a_cache_is_told_with_what_would_be_right() {
    for (keys, told) in [
        ("ttl: 5s, ttl_override: 1m", "`ttl` has no effect: `ttl_override` says"),
        ("ttl: off, ttl_override: 1m", "`ttl` has no effect"),
        ("negative_ttl: 5s, ttl_override: 1m", "`negative_ttl` has no effect"),
        ("heuristic: on, ttl_override: 1m", "`heuristic` has no effect"),
        ("ttl: forever", "write `8760h`, the longest"),
        ("ttl: never", "write `off`"),
        ("stale_if_error: -1", "write `8760h`, the longest"),
        ("query: off", "write `[]` for none of it"),
        ("query: on", "write `all` for the whole query"),
        ("query: ", "has no value"),
        ("query: [page, page]", "is there already"),
        ("query: ['page=1']", "write `page`"),
        ("query: ['a&b']", "which is several"),
        ("query: ['a%20b']", "with an escape"),
        ("query: [on]", "quote it"),
        ("query: {page: 1}", "is a mapping"),
        ("headers: [Accept-Language, accept-language]", "is there already"),
        ("headers: Host", "which is in the key already"),
        ("headers: [If-None-Match]", "which the cache itself answers"),
        ("headers: 'X A'", "it has a blank"),
        ("reloads: 600/m", "write `10/s`"),
        ("reloads: 0/s", "write `off`"),
        ("reloads: 0", "write `off`"),
        ("reloads: 2000000/s", "at most `1000000/s`"),
        ("reloads: often", "a rate such as `10/s`"),
    ] {
        let problems = load_with(&cached(keys), &Flags::default()).unwrap_err().to_string();
        assert!(problems.contains(told) && problems.trim_end().ends_with("1 problem"), "{keys}: {problems}");
    }
    // A switch that is off contradicts nothing.
    assert!(load_with(&cached("heuristic: off, ttl_override: 1m"), &Flags::default()).is_ok());
    assert!(load_with(&cached("ttl: 5s, ttl_override: off"), &Flags::default()).is_ok());
}

#[test]
fn an_object_is_an_eighth_of_all_at_most() {
    let told = |store: &str| messages(&format!("cache_store: {{{store}}}\n{WEB}"), &Flags::default());
    assert_eq!(
        told("memory: 64MiB, object: 9MiB"),
        ["`object` is 9MiB, which is more than an eighth of `memory` (64MiB)"]
    );
    assert_eq!(
        told("object: 33MiB"),
        ["`object` is 33MiB, which is more than an eighth of `memory` (256MiB, the default)"]
    );
    // One fault is one problem.
    assert_eq!(told("memory: 64, object: 33MiB").len(), 1);
    assert_eq!(told("memori: 1GiB, object: 33MiB").len(), 1);
    let store = config(&format!("cache_store: {{memory: 1MiB}}\n{WEB}")).cache_store;
    assert_eq!((store.memory, store.object), (1 << 20, 1 << 17));
}

#[test]
fn check_tells_of_a_cache_what_is_in_force_and_who_said_it() {
    let rows = effective(&cached("ttl: 1m, query: []"), &Flags::default());
    let rows: Vec<_> =
        rows.iter().filter_map(|row| row.strip_prefix("listeners.front.routes.*.cache.")).collect();
    assert_eq!(
        rows,
        [
            "ttl = 1m (t.yaml:1)",
            "ttl_override = off (default)",
            "negative_ttl = off (default)",
            "heuristic = false (default)",
            "stale_while_revalidate = off (default)",
            "stale_if_error = off (default)",
            "ignore_cookies = false (default)",
            "query = [] (t.yaml:1)",
            "headers = [] (default)",
            "reloads = 10/s (default)",
            "fill = false (default)",
        ]
    );
    let off = effective(&route("cache: off"), &Flags::default());
    assert!(off.iter().any(|row| row == "listeners.front.routes.*.cache = off (t.yaml:1)"), "{off:#?}");
}

#[test]
fn at_another_owner_a_cache_is_told_its_place() {
    let told = |text: &str| load_with(text, &Flags::default()).unwrap_err().to_string();
    let listener = told(&front("cache: on"));
    assert!(
        listener.contains("unknown key `cache` in a listener")
            && listener.contains("it is `listeners.<name>.routes[].cache`"),
        "{listener}"
    );
    let pool = told(&front("protocol: http").replace("web: {", "web: {cache: on, "));
    assert!(
        pool.contains("`cache` belongs to a route, and the target `web` has no `listener`")
            && pool.contains("write it in `listeners.<name>.routes[]`"),
        "{pool}"
    );
    let tcp = told(&target("cache: on").replace("http", "tcp"));
    assert!(tcp.contains("`cache` belongs to HTTP, but the target `web` speaks tcp"), "{tcp}");
    for action in ["redirect: {to: /}", "respond: {}"] {
        let idle = told(&route("cache: on").replace("target: web", action));
        assert!(idle.contains("`cache` has no effect: with `re"), "{idle}");
    }
    let split = route("cache: on").replace("target: web", "split: {targets: {web: 1}}");
    assert!(policy(&config(&split)).is_some());
}
