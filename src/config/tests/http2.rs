//! `http2` and `tls.alpn`, on listeners and targets.

use std::time::Duration;

use serde_json::json;

use super::certificates::Certs;
use super::every_key::{Check, target};
use super::listeners::{front, of};
use super::*;
use crate::config::model::tls::AlpnProtocol;
use crate::config::model::{Http2, tls::ListenerTls};

/// Values that keys of this take.
pub(super) fn values() -> [serde_json::Value; 2] {
    [json!("2MiB"), json!("h2")]
}

/// A listener over TLS with these keys, and with these of its `tls`.
fn secured(keys: &str, of_tls: &str) -> String {
    front(&format!("protocol: https, {keys} tls: {{{}{of_tls}}}", certificate()))
}

/// The same as a target.
fn secured_target(keys: &str, of_tls: &str) -> String {
    let all = format!("{keys} tls: {{{}{of_tls}}}", certificate());
    target(&all).replace("protocol: http,", "protocol: https,")
}

fn certificate() -> String {
    let certs = Certs::shared();
    format!("cert_file: {}, cert_key: {}", certs.path("a.pem"), certs.path("a.key"))
}

fn http2(config: &Config) -> Option<&Http2> {
    of(config).http2.as_ref()
}

fn tls(config: &Config) -> Option<&ListenerTls> {
    of(config).tls.as_deref()
}

/// Keys of this, each with a text in which it stands and what it changes.
pub(super) fn rows() -> Vec<(&'static str, String, Check)> {
    let mut rows = Vec::new();
    for (path, text) in
        [("listeners.<name>.http2", front as fn(&str) -> String), ("targets.<name>.http2", target)]
    {
        let of_keys: [(&str, &str, Check); 5] = [
            ("", "on", |c| http2(c) == Some(&Http2::default())),
            (".max_streams", "{max_streams: 7}", |c| http2(c).is_some_and(|http2| http2.max_streams == 7)),
            (".window_max", "{window_max: 1MiB}", |c| {
                http2(c).is_some_and(|http2| http2.window_max == 1 << 20)
            }),
            (".memory", "{memory: 1GiB}", |c| http2(c).is_some_and(|http2| http2.memory == 1 << 30)),
            (".max_age", "{max_age: 10m}", |c| {
                http2(c).is_some_and(|http2| http2.max_age == Some(Duration::from_secs(600)))
            }),
        ];
        rows.extend(of_keys.map(|(key, value, check)| {
            (&*format!("{path}{key}").leak(), text(&format!("http2: {value}")), check)
        }));
    }
    let first: Check = |c| tls(c).is_some_and(|tls| tls.alpn == [AlpnProtocol::Http1, AlpnProtocol::H2]);
    rows.push(("listeners.<name>.tls.alpn", secured("", ", alpn: [http/1.1, h2]"), first));
    rows.push(("targets.<name>.tls.alpn", secured_target("", ", alpn: [http/1.1, H2]"), first));
    rows
}

/// What is spoken, and what clients with TLS may choose from.
fn spoken(text: &str) -> (Option<Http2>, Vec<AlpnProtocol>) {
    let config = config(text);
    let tls = tls(&config).map(|tls| tls.alpn.clone());
    assert_eq!(tls.unwrap_or_default(), of(&config).alpn(), "{text}");
    (of(&config).http2, of(&config).alpn())
}

#[test]
fn it_is_spoken_over_tls_unless_somebody_says_otherwise_and_without_only_if_somebody_says_so() {
    use AlpnProtocol::{H2, Http1};
    let usual = Some(Http2::default());
    for (secured, plain) in
        [(secured as fn(&str, &str) -> String, front as fn(&str) -> String), (secured_target, target)]
    {
        assert_eq!(spoken(&secured("", "")), (usual, vec![H2, Http1]));
        for on in ["on", "{}", "'yes'"] {
            assert_eq!(spoken(&secured(&format!("http2: {on},"), "")), (usual, vec![H2, Http1]), "{on}");
            assert_eq!(spoken(&plain(&format!("http2: {on}"))), (usual, vec![]), "{on}");
        }
        assert_eq!(spoken(&secured("http2: off,", "")), (None, vec![Http1]));
        assert_eq!(spoken(&secured("http2: off,", ", alpn: http/1.1")), (None, vec![Http1]));
        assert_eq!(spoken(&secured("", ", alpn: [http/1.1]")), (None, vec![Http1]));
        assert_eq!(spoken(&secured("", ", alpn: h2")), (usual, vec![H2]));
        assert_eq!(spoken(&secured("http2: on,", ", alpn: [http/1.1, h2]")), (usual, vec![Http1, H2]));
        assert_eq!(spoken(&plain("x_real_ip: true")), (None, vec![]));
        assert_eq!(spoken(&plain("http2: off")), (None, vec![]));
    }
}

#[test]
fn bytes_of_a_tcp_listener_are_offered_nothing() {
    for text in [secured("", ""), secured_target("", "")] {
        assert_eq!(spoken(&text.replace("https", "tcp")), (None, vec![]));
    }
}

#[test]
fn a_window_is_never_wider_than_all_memory() {
    let of = |keys: &str| http2(&config(&front(&format!("http2: {{{keys}}}")))).copied().unwrap();
    assert_eq!(of("memory: 1MiB").window_max, 1 << 20);
    assert_eq!(of("memory: 4MiB, window_max: 4MiB").window_max, 4 << 20);
    assert_eq!(of("memory: 64GiB").memory, 64 << 30);
}

#[test]
fn what_is_wrong_with_http2_is_told_with_what_would_be_right() {
    for (value, told) in [
        ("7", "`on`, `off`, or a mapping such as `{max_streams: 128}`"),
        ("[h2]", "`on`, `off`, or a mapping such as `{max_streams: 128}`"),
        ("{max_streams: 0}", "`http2: off` is how HTTP/2 is not spoken"),
        ("{max_streams: 257}", "write `256`, the most"),
        ("{window_max: 64KiB}", "write `256KiB`, the least"),
        ("{window_max: 17MiB}", "write `16MiB`, the most"),
        ("{memory: 1023KiB}", "write `1MiB`, the least"),
        ("{memory: 65GiB}", "write `64GiB`, the most"),
        ("{memory: 2MiB, window_max: 4MiB}", "`window_max` is 4MiB, which is more than `memory` (2MiB)"),
        ("{memory: 2MiB, window_max: 4MiB}", "write `2MiB`, or give `memory` more"),
        ("{memory: 0, window_max: 4MiB}", "write `1MiB`, the least"),
        ("{max_age: 999ms}", "write `1s`, the shortest"),
        ("{max_age: 0}", "write `off`"),
        ("{max_age: 721h}", "write `720h`, the longest"),
        ("{streams: 9}", "unknown key `streams` in `http2`"),
    ] {
        for text in [front(&format!("http2: {value}")), target(&format!("http2: {value}"))] {
            let problems = load_with(&text, &Flags::default()).unwrap_err().to_string();
            assert!(
                problems.contains(told) && problems.trim_end().ends_with("1 problem"),
                "{value}: {problems}"
            );
        }
    }
}

#[test]
fn what_is_wrong_with_alpn_is_told_with_what_would_be_right() {
    let both = "`h2`, `http/1.1` or both, the preferred one first: `[h2, http/1.1]`";
    for (http2, alpn, told) in [
        ("", "[]", "`alpn` is an empty list"),
        ("", "[]", both),
        ("", "[h2, h2]", "is `h2`, which is there already"),
        ("", "[h2, H2]", "is `H2`, which is there already"),
        ("", "http/2", "write `h2`"),
        ("", "[h2, http1.1]", "write `http/1.1`"),
        ("", "[http/1.0]", "`http/1.1` takes clients that offer HTTP/1.0 alone, too"),
        ("", "h3", both),
        ("", "[2]", "is the number"),
        ("", "", "has no value"),
        ("http2: off,", "[h2, http/1.1]", "`alpn` has `h2`, but the `http2` of the "),
        ("http2: on,", "[http/1.1]", "`http2` is on, but the `alpn` of the "),
        ("http2: {memory: 9MiB},", "[http/1.1]", "` is without `h2`"),
    ] {
        for secured in [secured as fn(&str, &str) -> String, secured_target] {
            let text = secured(http2, &format!(", alpn: {alpn}"));
            let problems = load_with(&text, &Flags::default()).unwrap_err().to_string();
            assert!(
                problems.contains(told) && problems.trim_end().ends_with("1 problem"),
                "{alpn}: {problems}"
            );
        }
    }
}

#[test]
fn both_belong_to_http_and_to_a_listener() {
    for (text, told) in [
        (front("protocol: tcp, http2: on"), "`http2` belongs to HTTP, but the listener `front` speaks tcp"),
        (
            target("http2: off").replace("http,", "tcp,"),
            "`http2` belongs to HTTP, but the target `web` speaks tcp",
        ),
        (
            secured("", ", alpn: [h2]").replace("https", "tcp"),
            "`alpn` belongs to HTTP, but the listener `front` speaks tcp",
        ),
        (
            secured_target("", ", alpn: [h2]").replace("https", "tcp"),
            "`alpn` belongs to HTTP, but the target `web` speaks tcp",
        ),
        (
            front("x_real_ip: off").replace("backends", "http2: on, backends"),
            "`http2` belongs to a listener, and the target `web` has none",
        ),
        (format!("http2: on\n{WEB}"), "unknown key `http2` at the top level"),
    ] {
        let problems = load_with(&text, &Flags::default()).unwrap_err().to_string();
        assert!(problems.contains(told) && problems.trim_end().ends_with("1 problem"), "{problems}");
    }
}

#[test]
fn who_writes_it_as_a_protocol_is_told_where_it_belongs() {
    for word in ["h2", "h2c", "HTTP2"] {
        let problems = load_with(&front(&format!("protocol: {word}")), &Flags::default()).unwrap_err();
        let told = "HTTP/2 is a part of `https`; on `http` it comes with `http2: on`";
        assert!(problems.to_string().contains(told), "{problems}");
    }
}

#[test]
fn check_tells_what_is_in_force_and_who_said_so() {
    let of = |text: &str| -> Vec<String> {
        let rows = effective(text, &Flags::default()).into_iter();
        rows.filter_map(|row| Some(row.strip_prefix("listeners.front.")?.to_owned()))
            .filter(|row| row.starts_with("http2") || row.starts_with("tls.alpn"))
            .collect()
    };
    assert_eq!(
        of(&secured("http2: {max_age: 1h},", "")),
        [
            "tls.alpn = [h2, http/1.1] (default)",
            "http2.max_streams = 128 (default)",
            "http2.window_max = 4MiB (default)",
            "http2.memory = 64MiB (default)",
            "http2.max_age = 1h (t.yaml:1)",
        ]
    );
    assert_eq!(
        of(&secured("", ", alpn: http/1.1")),
        ["tls.alpn = [http/1.1] (t.yaml:1)", "http2 = off (t.yaml:1)"]
    );
    assert_eq!(
        of(&secured("http2: off,", "")),
        ["tls.alpn = [http/1.1] (default)", "http2 = off (t.yaml:1)"]
    );
    assert_eq!(of(&front("protocol: http")), ["http2 = off (default)"]);
    assert_eq!(of(&front("protocol: tcp")), [""; 0]);
}
