//! Rate limits, by name and where they hold.

use super::every_key::Check;
use super::listeners::{POOL, front, of, route};
use super::*;
use crate::config::model::{RateBy, RateLimit, RatePeriod};

/// A limit at the top level, and a listener beside it.
fn named(keys: &str) -> String {
    format!("rate_limits: {{api: {{rate: 100/s, {keys}}}}}\n{}", front("protocol: http"))
}

/// The first limit, and one that nobody has written where there is none.
fn first(config: &Config) -> RateLimit {
    let none = || RateLimit {
        name: String::new(),
        count: 0,
        per: RatePeriod::Hour,
        burst: 0,
        by: Vec::new(),
        dry_run: false,
    };
    config.rate_limits.first().map_or_else(none, |limit| RateLimit::clone(limit))
}

/// Keys of rate limits, each with a text in which it stands and what it changes.
pub(super) fn rows() -> Vec<(&'static str, String, Check)> {
    const LIMIT: &str = "rate_limits: {api: {rate: 1/s}}\n";
    vec![
        ("rate_limits", named(""), |c| first(c).name == "api" && first(c).by == [RateBy::ClientIp]),
        ("rate_limits.<name>.rate", named(""), |c| {
            (first(c).count, first(c).per) == (100, RatePeriod::Second)
        }),
        ("rate_limits.<name>.burst", named("burst: 7"), |c| first(c).burst == 7),
        ("rate_limits.<name>.by", named("by: [route, global]"), |c| {
            first(c).by == [RateBy::Route, RateBy::Global]
        }),
        ("rate_limits.<name>.by.header", named("by: {header: X-Api-Key}"), |c| {
            first(c).by == [RateBy::Header("x-api-key".into())]
        }),
        ("rate_limits.<name>.by.cookie", named("by: [user, {cookie: Sid}]"), |c| {
            first(c).by == [RateBy::User, RateBy::Cookie("Sid".into())]
        }),
        ("rate_limits.<name>.dry_run", named("dry_run: on"), |c| first(c).dry_run),
        ("listeners.<name>.rate_limit", format!("{LIMIT}{}", front("rate_limit: api")), |c| {
            of(c).rate_limits.len() == 1
        }),
        ("listeners.<name>.routes[].rate_limit", format!("{LIMIT}{}", route("rate_limit: [api]")), |c| {
            of(c).routes[0].rate_limits.len() == 1
        }),
        (
            "targets.<name>.rate_limit",
            format!(
                "{LIMIT}targets: {{web: {{listener: 80, rate_limit: api, backends: [{{host: a, port: 1}}]}}}}"
            ),
            |c| of(c).rate_limits.len() == 1,
        ),
    ]
}

#[test]
fn a_limit_by_user_where_nobody_has_a_name_is_warned_of() {
    let warned = |auth: &str, keys: &str| {
        let text = format!(
            "rate_limits: {{u: {{rate: 1/s, by: user}}, c: {{rate: 1/s}}}}\nauth: {{a: {{forward: {{target: web{auth}}}}}}}\n\
             listeners: {{l: {{bind: 8080, routes: [{{name: r, target: web, rate_limit: [u, c]{keys}}}]}}}}\n\
             targets: {{web: {{backends: [{{host: a, port: 1}}]}}}}\n"
        );
        load_with(&text, &Flags::default()).unwrap_or_else(|problems| panic!("{problems}\n{text}")).warnings
    };
    let told = |why: &str| {
        format!(
            "t.yaml:3: the rate limit `u` counts by `user`, whom nobody knows on the route `r` of the listener `l`: {why}, so it counts by address"
        )
    };
    assert_eq!(warned("", ""), [told("no `auth` holds for it")]);
    assert_eq!(warned("", ", auth: a"), [told("`a` has no `copy_headers` that would tell it")]);
    assert_eq!(warned(", copy_headers: X-User", ", auth: a"), [""; 0]);
}

#[test]
fn rates_have_a_time_and_bursts_are_those_of_a_second() {
    let of = |rate: &str| {
        let text = format!("rate_limits: {{api: {{rate: '{rate}'}}}}\n{}", front("protocol: http"));
        let limit = first(&load_with(&text, &Flags::default()).unwrap().config);
        (limit.interval(), limit.burst)
    };
    assert_eq!(of("1000/s"), (1_000_000, 1_000));
    assert_eq!(of("1000000 / S"), (1_000, 1_000_000));
    assert_eq!(of("600/m"), (100_000_000, 10));
    assert_eq!(of("5/min"), (12_000_000_000, 1));
    assert_eq!(of("7200/h"), (500_000_000, 2));
}

#[test]
fn limits_of_several_files_add_up_and_a_name_is_there_once() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    at(
        "a.yaml",
        &format!("include: b.yaml\nrate_limits: {{one: {{rate: 1/s}}}}\n{}", front("protocol: http")),
    );
    at("b.yaml", "rate_limits:\n  two: {rate: 1/s}\n");
    let read = || load(Some(&folder.path().join("a.yaml")), &Flags::default(), &|_| None);
    let names: Vec<_> = read().unwrap().config.rate_limits.iter().map(|limit| limit.name.clone()).collect();
    assert_eq!(names, ["one", "two"]);
    at("b.yaml", "rate_limits:\n  one: {rate: 1/s}\n");
    let told = read().unwrap_err().to_string();
    assert!(told.contains("b.yaml:2:3: the rate limit `one` is there twice: first at "), "{told}");
}

#[test]
fn a_way_around_a_route_that_limits_is_told() {
    let routes = "[{name: p, match: {path_prefix: /a}, rate_limit: api, target: web}, {name: u, match: {path: /a/b}, target: web}]";
    let listener = |keys: &str, routes: &str| {
        format!(
            "rate_limits: {{api: {{rate: 1/s}}}}\nlisteners: {{l: {{bind: 8080, {keys}routes: {routes}}}}}\n{POOL}\n"
        )
    };
    let warnings = |text: String| load_with(&text, &Flags::default()).unwrap().warnings;
    let told = warnings(listener("", routes));
    assert!(matches!(&told[..], [one] if one.contains("rate_limit") && one.contains("`u`")), "{told:?}");
    let on_all = routes.replace("rate_limit: api, ", "");
    assert_eq!(warnings(listener("rate_limit: api, ", &on_all)), [""; 0]);
}
