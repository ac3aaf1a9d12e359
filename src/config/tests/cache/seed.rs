//! GoLoadBalance's names for a cache, as keys and as flags.

use std::time::Duration;

use super::super::*;
use super::policy;

/// The same with both kinds of targets that have a listener, one of which says it itself, and one that has none.
const MANY: &str = "targets:
  a: {protocol: http, listener: 1, backends: [{host: a, port: 1}]}
  b: {protocol: http, listener: 2, cache: {ttl: 1s}, backends: [{host: a, port: 1}]}
  c: {protocol: http, listener: 3, cache: off, backends: [{host: a, port: 1}]}
  d: {listener: 4, backends: [{host: a, port: 1}]}
";

fn ttls(text: &str, flags: &Flags) -> Vec<Option<u64>> {
    let loaded = load_with(text, flags).unwrap_or_else(|problems| panic!("{problems}"));
    let ttl = |listener: &model::ListenerConfig| {
        listener.routes[0].cache.as_ref().map(|cache| cache.ttl.unwrap_or_default().as_secs())
    };
    loaded.config.listeners.iter().map(ttl).collect()
}

fn warnings(text: &str, flags: &Flags) -> Vec<String> {
    load_with(text, flags).unwrap_or_else(|problems| panic!("{problems}")).warnings
}

fn flags(cache_enabled: Option<bool>, cache_ttl: Option<u64>) -> Flags {
    Flags { cache_enabled, cache_ttl, ..Flags::default() }
}

#[test]
fn what_goloadbalance_says_holds_for_targets_that_say_nothing() {
    let none = Flags::default();
    assert_eq!(ttls(MANY, &none), [None, Some(1), None, None]);
    assert_eq!(ttls(&format!("cache_enabled: true\n{MANY}"), &none), [Some(10), Some(1), None, None]);
    let both = format!("cache_enabled: true\ncache_timeout_in_seconds: 3\n{MANY}");
    assert_eq!(ttls(&both, &none), [Some(3), Some(1), None, None]);
    let off = both.replace("true", "false");
    assert_eq!(ttls(&off, &none), [None, Some(1), None, None]);
    assert_eq!(warnings(&off, &none), [""; 0]);
    let servers = "cache_enabled: true\ncache_timeout_in_seconds: 10\nservers: [http://a:1]";
    assert_eq!(ttls(servers, &none), [Some(10)]);
    let rows = effective(&both, &none);
    for row in [
        "cache_enabled = true (t.yaml:1)",
        "cache_timeout_in_seconds = 3s (t.yaml:2)",
        "targets.a.cache.ttl = 3s (t.yaml:2)",
    ] {
        assert!(rows.iter().any(|other| other == row), "{row} is not in {rows:#?}");
    }
}

#[test]
fn flags_say_it_instead_of_the_file() {
    let text = format!("cache_enabled: false\ncache_timeout_in_seconds: 3\n{MANY}");
    assert_eq!(ttls(&text, &flags(Some(true), None)), [Some(3), Some(1), None, None]);
    assert_eq!(ttls(&text, &flags(Some(true), Some(4))), [Some(4), Some(1), None, None]);
    let on = text.replace("false", "true");
    assert_eq!(ttls(&on, &flags(Some(false), None)), [None, Some(1), None, None]);
    let backends = Flags { backends: vec!["http://a:1".into()], ..flags(Some(true), Some(5)) };
    let alone = load(None, &backends, &env).unwrap().config;
    assert_eq!(policy(&alone).unwrap().ttl, Some(Duration::from_secs(5)));
    let rows = effective(WEB, &flags(Some(true), Some(5)));
    let row = "targets.web.cache.ttl = 5s (--cache-timeout-in-seconds)";
    assert!(rows.iter().any(|other| other == row), "{rows:#?}");
}

#[test]
fn what_would_change_nothing_is_told() {
    let none = Flags::default();
    let tcp = "targets: {t: {listener: 1, backends: [{host: a, port: 1}]}}";
    assert_eq!(
        messages(&format!("cache_enabled: true\n{tcp}"), &none),
        ["`cache_enabled` has no effect: no target with a `listener` of its own speaks http"]
    );
    assert_eq!(
        messages(tcp, &flags(Some(true), None)),
        ["`--cache-enabled` has no effect: no target with a `listener` of its own speaks http"]
    );
    assert_eq!(
        messages(WEB, &flags(Some(true), Some(0))),
        ["`--cache-timeout-in-seconds` is 0, which is too small"]
    );
    // GoLoadBalance's own example has a time where nothing is stored.
    assert_eq!(
        warnings(&format!("cache_timeout_in_seconds: 3\n{WEB}"), &none),
        ["t.yaml:1: `cache_timeout_in_seconds` has no effect: nothing says `cache_enabled: true`"]
    );
    let told = warnings(WEB, &flags(None, Some(3)));
    assert!(
        matches!(&told[..], [one] if one.ends_with("`--cache-timeout-in-seconds` has no effect: nothing says `cache_enabled: true`")),
        "{told:?}"
    );
}
