//! `compress`, on routes, listeners and targets.

use super::super::every_key::{Check, target};
use super::super::listeners::{front, of, route};
use super::super::*;
use crate::config::model::cache::{Coding, CompressPolicy};

/// How the first route of the first listener compresses.
fn policy(config: &Config) -> Option<&CompressPolicy> {
    of(config).routes[0].compress.as_deref()
}

/// Keys of `compress`, each with a text in which it stands and what it changes.
pub(super) fn rows() -> Vec<(&'static str, String, Check)> {
    let mut rows = Vec::new();
    for (path, text) in [
        ("listeners.<name>.routes[].compress", route as fn(&str) -> String),
        ("listeners.<name>.compress", front),
        ("targets.<name>.compress", target),
    ] {
        let of_keys: [(&str, &str, Check); 7] = [
            ("", "on", |c| policy(c) == Some(&CompressPolicy::default())),
            (".codings", "{codings: [gzip, zstd]}", |c| {
                policy(c).is_some_and(|own| own.codings == [(Coding::Gzip, 6), (Coding::Zstd, 3)])
            }),
            (".codings.zstd", "{codings: {zstd: 19}}", |c| {
                policy(c).is_some_and(|own| own.codings == [(Coding::Zstd, 19)])
            }),
            (".codings.br", "{codings: {br: 0}}", |c| {
                policy(c).is_some_and(|own| own.codings == [(Coding::Brotli, 0)])
            }),
            (".codings.gzip", "{codings: {gzip: 9, br: 11}}", |c| {
                policy(c).is_some_and(|own| own.codings == [(Coding::Gzip, 9), (Coding::Brotli, 11)])
            }),
            (".at_least", "{at_least: 256B}", |c| policy(c).is_some_and(|own| own.at_least == 256)),
            (".cookies", "{cookies: on}", |c| policy(c).is_some_and(|own| own.cookies)),
        ];
        rows.extend(of_keys.map(|(key, value, check)| {
            (&*format!("{path}{key}").leak(), text(&format!("compress: {value}")), check)
        }));
    }
    rows
}

#[test]
fn codings_are_offered_in_the_order_in_which_they_stand() {
    let of = |value: &str| {
        let config = config(&route(&format!("compress: {value}")));
        policy(&config).map(|own| own.codings.iter().map(|(coding, _)| coding.token()).collect::<Vec<_>>())
    };
    assert_eq!(of("on"), Some(vec!["zstd", "br", "gzip"]));
    assert_eq!(of("[gzip, br]"), Some(vec!["gzip", "br"]));
    assert_eq!(of("GZIP"), Some(vec!["gzip"]));
    assert_eq!(of("{}"), of("on"));
    assert_eq!(of("{codings: {gzip: 1, zstd: 1}}"), Some(vec!["gzip", "zstd"]));
    assert_eq!((of("off"), of("no")), (None, None));
}

#[test]
fn a_route_says_it_instead_of_its_listener() {
    let of = |own: &str| {
        let text = front("compress: [gzip]").replace("target: web", &format!("target: web{own}"));
        policy(&config(&text)).map(|own| own.codings.len())
    };
    assert_eq!((of(""), of(", compress: on"), of(", compress: off")), (Some(1), Some(3), None));
    // An answer of our own goes as it is.
    let ours = front("compress: on").replace("target: web", "respond: {}");
    assert_eq!(policy(&config(&ours)), None);
    let tcp = front("protocol: tcp, compress: on");
    let told = load_with(&tcp, &Flags::default()).unwrap_err().to_string();
    assert!(told.contains("`compress` belongs to HTTP, but the listener `front` speaks tcp"), "{told}");
}

#[test]
fn what_is_wrong_with_compress_is_told_with_what_would_be_right() {
    for (value, told) in [
        ("[]", "`compress` is an empty list"),
        ("brotli", "write `br`"),
        ("[gz]", "write `gzip`"),
        ("[deflate]", "which clients read in two ways"),
        ("[zstd, zstd]", "is there already"),
        ("6", "is the number"),
        ("[gzip, 6]", "is the number"),
        ("{codings: []}", "`codings` is an empty list"),
        ("{codings: {}}", "is an empty mapping"),
        ("{codings: {gzip: 10}}", "write `9`, the most"),
        ("{codings: {zstd: 0}}", "write `1`, the least"),
        ("{codings: {brotli: 4}}", "did you mean `br`?"),
        ("{codings: }", "has no value"),
        ("{at_least: 0}", "write `1B`, the least"),
        ("{levels: {gzip: 6}}", "unknown key `levels` in `compress`"),
    ] {
        let text = route(&format!("compress: {value}"));
        let problems = load_with(&text, &Flags::default()).unwrap_err().to_string();
        assert!(problems.contains(told) && problems.trim_end().ends_with("1 problem"), "{value}: {problems}");
    }
}

#[test]
fn check_tells_levels_where_they_are_not_the_usual_ones() {
    let of = |value: &str| {
        let rows = effective(&route(&format!("compress: {value}")), &Flags::default());
        rows.into_iter().find(|row| row.contains(".codings = ")).unwrap()
    };
    assert!(of("on").ends_with(".compress.codings = [zstd, br, gzip] (default)"));
    assert!(of("{codings: {br: 4, gzip: 6}}").ends_with(" = [br, gzip] (t.yaml:1)"));
    assert!(of("{codings: {br: 4, gzip: 1}}").ends_with(" = {br: 4, gzip: 1} (t.yaml:1)"));
}
