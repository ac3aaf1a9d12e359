//! `bind_source` and `tcp_keepalive`, and the keys of UDP.

use std::time::Duration;

use super::every_key::{Check, of, probe, target};
use super::*;
use crate::config::model::{Dialing, KeepaliveTimes};

fn dialing(config: &Config) -> &Dialing {
    &of(config).1.backends[0].dialing
}

/// A target of UDP with something added.
fn udp(added: &str) -> String {
    target(added).replace("protocol: http", "protocol: udp")
}

/// Keys of this, each with a text in which it stands and what it changes.
pub(super) fn rows() -> Vec<(&'static str, String, Check)> {
    fn times(config: &Config) -> KeepaliveTimes {
        dialing(config).keepalive.expect("the kernel asks")
    }
    vec![
        ("targets.<name>.bind_source", target("bind_source: [127.0.0.1, '[::1]']"), |c| {
            dialing(c).sources.iter().map(ToString::to_string).collect::<Vec<_>>() == ["127.0.0.1", "::1"]
        }),
        ("targets.<name>.tcp_keepalive", target("tcp_keepalive: off"), |c| dialing(c).keepalive.is_none()),
        ("targets.<name>.tcp_keepalive.idle", target("tcp_keepalive: {idle: 5s}"), |c| {
            times(c).idle == Duration::from_secs(5)
        }),
        ("targets.<name>.tcp_keepalive.interval", target("tcp_keepalive: {interval: 3s}"), |c| {
            times(c).interval == Duration::from_secs(3)
        }),
        ("targets.<name>.tcp_keepalive.count", target("tcp_keepalive: {count: 9}"), |c| times(c).count == 9),
        ("targets.<name>.timeouts.flow", udp("timeouts: {flow: 1s}"), |c| {
            of(c).1.timeouts.flow == Duration::from_secs(1)
        }),
        ("targets.<name>.limits.reply_factor", udp("limits: {reply_factor: 9}"), |c| {
            of(c).0.limits.reply_factor == Some(9)
        }),
        ("targets.<name>.limits.replies", udp("limits: {replies: 1}"), |c| of(c).0.limits.replies == Some(1)),
        ("targets.<name>.health_check.dns", udp("health_check: {dns: A.example}"), |c| {
            probe(c).dns.as_deref() == Some("a.example")
        }),
    ]
}

#[test]
fn without_keys_the_system_chooses_and_asks_after_a_minute() {
    let config = config(WEB);
    let usual = KeepaliveTimes { idle: Duration::from_secs(60), interval: Duration::from_secs(20), count: 3 };
    assert_eq!(*dialing(&config), Dialing { sources: Vec::new(), keepalive: Some(usual) });
}

#[test]
fn what_is_no_address_of_ours_is_told() {
    let six = "targets: {web: {protocol: http, listener: 8080, bind_source: 127.0.0.1, backends: [{host: '::1', port: 1}]}}";
    let unix = "targets: {web: {protocol: http, listener: 8080, bind_source: 127.0.0.1, backends: [{url: 'unix:/run/a'}]}}";
    for (text, wanted) in [
        (&*target("bind_source: 0.0.0.0"), "`bind_source` is `0.0.0.0`, which is any address"),
        (&target("bind_source: '::'"), "`bind_source` is `::`, which is any address"),
        (&target("bind_source: 224.0.0.1"), "`bind_source` is `224.0.0.1`, which is an address of many"),
        (&target("bind_source: 10.0.0.0/8"), "`bind_source` is `10.0.0.0/8`, which is a network"),
        (&target("bind_source: eth0"), "`bind_source` is `eth0`, which is no IP address"),
        (&target("bind_source: []"), "`bind_source` is an empty list"),
        (&target("bind_source: true"), "`bind_source` is `true`"),
        (
            &target("bind_source: [127.0.0.1, '::ffff:127.0.0.1']"),
            "`bind_source` is `::ffff:127.0.0.1`, which is there already",
        ),
        (&target("tcp_keepalive: {idle: 0s}"), "`idle` is 0s, which is too small"),
        (&target("tcp_keepalive: {count: 0}"), "`count` is 0, which is too small"),
        (&target("tcp_keepalive: {time: 5s}"), "unknown key `time` in `tcp_keepalive`"),
        (&target("tcp_keepalive: 60s"), "`tcp_keepalive` is the text `60s`"),
        (six, "the backend `::1` is IPv6, and no address of `bind_source` is"),
        (unix, "`bind_source` has no effect: all backends are unix sockets"),
    ] {
        assert_eq!(messages(text, &Flags::default()), [wanted], "{text}");
    }
    // It may be one of ours by the time it is needed.
    let loaded = load_with(&target("bind_source: 192.0.2.77"), &Flags::default()).unwrap();
    assert!(
        loaded.warnings[0].contains("`192.0.2.77` is no address of this machine now"),
        "{:?}",
        loaded.warnings
    );
}
