//! Backends that are found: `dns`, `srv`, `file` and `resolver`.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use super::super::every_key::{Check, of};
use super::*;
use crate::config::model::discovery::{AddressFamily, BackendSource, DnsKind};
use crate::config::{FoundAddress, backend_numbers};

fn source(config: &Config) -> Option<&BackendSource> {
    of(config).1.sources.first()
}

fn target_with(keys: &str) -> String {
    format!("targets: {{web: {{protocol: http, listener: 8080, {keys}}}}}\n")
}

fn with(backends: &str) -> String {
    target_with(&format!("backends: [{backends}]"))
}

/// A file with two backends.
fn list() -> String {
    static FILE: OnceLock<tempfile::NamedTempFile> = OnceLock::new();
    let text = "- {host: 10.0.0.1, port: 80, name: one}\n- {host: 10.0.0.2, port: 80}\n";
    let file = FILE.get_or_init(|| {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        file
    });
    file.path().display().to_string()
}

/// Values that are right somewhere.
pub(in crate::config::tests) fn values() -> [serde_json::Value; 3] {
    [list().into(), "_http._tcp.a".into(), "ipv4".into()]
}

const DNS: &str = "{dns: app.internal, port: 80}";

/// Keys of this, each with a text in which it stands and what it changes.
pub(in crate::config::tests) fn rows() -> Vec<(&'static str, String, Check)> {
    let resolver = |keys: &str| format!("resolver: {{{keys}}}\n{}", with(DNS));
    vec![
        ("resolver", resolver("timeout: 7s"), |c| c.resolver.timeout == Duration::from_secs(7)),
        ("resolver.servers", resolver("servers: [10.0.0.53, '[::1]:5353']"), |c| {
            c.resolver.servers.iter().map(ToString::to_string).collect::<Vec<_>>()
                == ["10.0.0.53:53", "[::1]:5353"]
        }),
        ("resolver.timeout", resolver("timeout: 300ms"), |c| {
            c.resolver.timeout == Duration::from_millis(300)
        }),
        ("resolver.attempts", resolver("attempts: 5"), |c| c.resolver.attempts == 5),
        ("resolver.ttl_min", resolver("ttl_min: 5s"), |c| c.resolver.ttl_min == Duration::from_secs(5)),
        ("resolver.ttl_max", resolver("ttl_max: 1m"), |c| c.resolver.ttl_max == Duration::from_mins(1)),
        ("resolver.hold", resolver("hold: 2m"), |c| c.resolver.hold == Duration::from_mins(2)),
        ("resolver.addresses", resolver("addresses: 50"), |c| c.resolver.addresses == 50),
        ("targets.<name>.backends[].dns", with("{dns: app.internal, port: 8000, weight: 5}"), |c| {
            source(c).is_some_and(|source| {
                (&*source.asks.name, source.asks.kind, source.port, source.portion.weight)
                    == ("app.internal", DnsKind::Addresses, Some(8000), 5)
            })
        }),
        ("targets.<name>.backends[].srv", with("{srv: _http._tcp.app.internal}"), |c| {
            source(c).is_some_and(|source| {
                (&*source.asks.name, source.asks.kind, source.port)
                    == ("_http._tcp.app.internal", DnsKind::Services, None)
            })
        }),
        ("targets.<name>.backends[].file", with(&format!("{{file: {}}}", list())), |c| {
            let names: Vec<&str> = of(c).1.backends.iter().map(|one| &*one.name).collect();
            names == ["one", "10.0.0.2:80"]
        }),
        ("targets.<name>.backends[].family", with("{dns: app.internal, port: 80, family: ipv6}"), |c| {
            source(c).is_some_and(|source| source.asks.family == AddressFamily::V6)
        }),
    ]
}

#[test]
fn what_cannot_be_found_is_told_at_its_place() {
    let resolver = |keys: &str| format!("resolver: {{{keys}}}\n{}", with(DNS));
    let table = [
        (with("{dns: app.internal}"), "this backend has a `dns` and no `port`"),
        (with("{dns: 10.0.0.7, port: 80}"), "`dns` is `10.0.0.7`, which is an address and no name"),
        (with("{dns: '::1', port: 80}"), "`dns` is `::1`, which is an address and no name"),
        (with("{dns: '[::1]', port: 80}"), "`dns` is `[::1]`, which is an address and no name"),
        (with("{dns: a, port: 80, weight: 0}"), "all backends of the target `web` have the weight 0"),
        (
            with("{dns: a, port: 80}, {dns: a., port: 80, family: ipv6}"),
            "the name `a.` is there twice in the target `web`",
        ),
        (with("{srv: _a._b}"), "`srv` is `_a._b`, which has no domain behind the service and the protocol"),
        (with("{dns: 'a b', port: 80}"), "`dns` is `a b`, which is no name that DNS could know"),
        (with("{dns: 'http://a', port: 80}"), "`dns` is `http://a`, which is no name that DNS could know"),
        (
            with("{dns: '*.internal', port: 80}"),
            "`dns` is `*.internal`, which is no name that DNS could know",
        ),
        (with("{dns: '', port: 80}"), "`dns` is ``, which is no name that DNS could know"),
        (with("{dns: [a, b], port: 80}"), "`dns` is a list"),
        (with("{dns: a, port: 0}"), "`port` is 0, which is too small"),
        (with("{dns: a, port: 70000}"), "`port` is 70000, which is too large"),
        (with("{dns: a, port: 80, host: b}"), "`dns` and `host` in one backend"),
        (with("{dns: a, port: 80, url: 'http://b'}"), "`dns` and `url` in one backend"),
        (with("{dns: a, port: 80, name: b}"), "`dns` and `name` in one backend"),
        (with("{dns: a, port: 80, family: v5}"), "`family` is `v5`, which does not exist"),
        (with("{dns: a, port: 80, backup: true, priority: 1}"), "`backup` and `priority` in one backend"),
        (with("{dns: a, port: 80}, {dns: A, port: 80}"), "the name `A` is there twice in the target `web`"),
        (
            with("{srv: app.internal}"),
            "`srv` is `app.internal`, which does not begin with a service and a protocol",
        ),
        (
            with("{srv: _http.app.internal}"),
            "`srv` is `_http.app.internal`, which does not begin with a service and a protocol",
        ),
        (with("{srv: _http._tcp.a, port: 80}"), "`srv` and `port` in one backend"),
        (with("{srv: _http._tcp.a, weight: 2}"), "`srv` and `weight` in one backend"),
        (with("{srv: _http._tcp.a, dns: b}"), "`srv` and `dns` in one backend"),
        (with(&format!("{{srv: _http._tcp.a, file: {}}}", list())), "`srv` and `file` in one backend"),
        (
            with("{host: 127.0.0.1, port: 80, family: ipv4}"),
            "`family` says which addresses of a `dns` or `srv` count",
        ),
        (with("{host: 127.0.0.1, port: 80, dsn: b}"), "unknown key `dsn` in a backend"),
        (resolver("servers: dns.internal"), "`servers` is `dns.internal`, which is no IP address"),
        (
            resolver("servers: '10.0.0.53:0'"),
            "`servers` is `10.0.0.53:0`, whose port is no number from 1 to 65535",
        ),
        (resolver("servers: 0.0.0.0"), "`servers` is `0.0.0.0`, which is no address to ask"),
        (
            resolver("servers: [10.0.0.53, '10.0.0.53:53']"),
            "`servers` is `10.0.0.53:53`, which is there already",
        ),
        (resolver("servers: []"), "`servers` is an empty list"),
        (resolver("timeout: 0s"), "`timeout` is 0s, which is too small"),
        (resolver("attempts: 0"), "`attempts` is 0, which is too small"),
        (resolver("ttl_min: 10m, ttl_max: 1m"), "`ttl_max` is 1m, which is less than `ttl_min` (10m)"),
        (resolver("addresses: 0"), "`addresses` is 0, which is too small"),
        (resolver("addresses: 1000000"), "`addresses` is 1000000, which is too large"),
        (resolver("nameservers: 10.0.0.53"), "unknown key `nameservers` in `resolver`"),
    ];
    for (text, wanted) in table {
        assert_eq!(messages(&text, &Flags::default()), [wanted], "{text}");
    }
    for text in [
        with("{dns: a, port: 80, family: ipv4}, {dns: a, port: 80, family: ipv6}"),
        resolver("ttl_min: 10m"),
        resolver("ttl_max: 500ms"),
    ] {
        assert!(load_with(&text, &Flags::default()).is_ok(), "{text}");
    }
}

fn found(address: &str, weight: Option<u16>, tier: u8) -> FoundAddress {
    FoundAddress { address: address.parse().unwrap(), weight, tier }
}

#[test]
fn what_is_found_stands_behind_what_is_written_and_is_held_to_the_same() {
    let text = "targets: {web: {protocol: http, listener: 127.0.0.1:8080, health_check: {path: /up}, upstream_tls: {}, host: backend, backends: [\
                {dns: app.internal, port: 80, weight: 3, zone: a, state: drain}, {host: 10.0.0.1, port: 80, name: first}, {srv: _x._tcp.b.internal, priority: 2}]}}";
    let loaded = Arc::new(load_with(text, &Flags::default()).unwrap());
    assert_eq!(loaded.questions().len(), 2);
    let addresses: Arc<[FoundAddress]> =
        [found("10.0.0.1:0", None, 0), found("10.0.0.2:0", None, 0), found("[::1]:0", None, 0)].into();
    let services: Arc<[FoundAddress]> =
        [found("10.0.0.3:81", Some(256), 0), found("10.0.0.3:82", Some(9), 1)].into();
    let with = loaded
        .with_found(&|asks| Arc::clone(if asks.kind == DnsKind::Addresses { &addresses } else { &services }));
    let left: Vec<&str> = with.left_out.iter().map(|one| &*one.name).collect();
    assert_eq!(left, ["app.internal/10.0.0.1:80"], "it is written already");
    let web = &with.loaded.config.targets[0];
    let seen: Vec<String> = web
        .backends
        .iter()
        .map(|one| {
            let portion = &one.portion;
            let tls = one.tls.as_ref().map(|tls| tls.name.to_str().into_owned()).unwrap_or_default();
            let zone = portion.zone.as_deref().unwrap_or("-");
            let state = one.state.as_str();
            let (weight, priority) = (portion.weight, portion.priority);
            format!(
                "{} {weight} {priority} {zone} {state} {tls} {} {:?}",
                one.name,
                one.authority(),
                one.probe_path
            )
        })
        .collect();
    assert_eq!(
        seen,
        [
            "first 1 0 - up 10.0.0.1 10.0.0.1:80 Some(\"/up\")",
            "app.internal/10.0.0.2:80 3 0 a drain app.internal app.internal:80 Some(\"/up\")",
            "app.internal/[::1]:80 3 0 a drain app.internal app.internal:80 Some(\"/up\")",
            "_x._tcp.b.internal/10.0.0.3:81 256 2 - up b.internal b.internal:81 Some(\"/up\")",
            "_x._tcp.b.internal/10.0.0.3:82 9 3 - up b.internal b.internal:82 Some(\"/up\")",
        ]
    );
    let numbers = backend_numbers(&with.loaded.effective, "web");
    assert_eq!(
        (numbers["first"], numbers["app.internal/10.0.0.2:80"]),
        (1, 3),
        "as in the file, and behind it"
    );
    // Whatever was found before is not there any more.
    let none: Arc<[FoundAddress]> = [].into();
    let again = with.loaded.with_found(&|_| Arc::clone(&none));
    assert_eq!(again.loaded.config, loaded.config);
    assert_eq!(again.loaded.effective, loaded.effective);
}

#[test]
fn an_address_where_the_target_itself_listens_is_left_out() {
    let text = "targets: {web: {protocol: http, listener: 127.0.0.1:8080, backends: [{dns: app.internal, port: 8080}]}}";
    let loaded = Arc::new(load_with(text, &Flags::default()).unwrap());
    let addresses: Arc<[FoundAddress]> =
        [found("127.0.0.1:0", None, 0), found("127.0.0.2:0", None, 0)].into();
    let with = loaded.with_found(&|_| Arc::clone(&addresses));
    assert_eq!(with.left_out[0].why, "a listener that leads to the target is there");
    assert_eq!(with.loaded.config.targets[0].backends.len(), 1);
}

/// In files of their own, each with its place there.
#[test]
fn files_of_backends_are_a_part_of_the_list() {
    let folder = tempfile::tempdir().unwrap();
    let write = |text: &str| std::fs::write(folder.path().join("more.yaml"), text).unwrap();
    let text = "targets:\n  web:\n    listener: 8080\n    backends:\n      - {file: more.yaml}\n      - {host: 10.0.0.1, port: 80}\n";
    let load = |text: &str| load_text(text, "t.yaml", folder.path(), &Flags::default(), &env);
    let told = |text: &str| -> Vec<String> {
        load(text)
            .unwrap_err()
            .list()
            .iter()
            .map(|problem| {
                let place = problem.place.map_or(0, |place| place.line);
                let file =
                    problem.file.as_deref().map_or("", |file| file.rsplit('/').next().unwrap_or_default());
                format!("{file}:{place}: {}", problem.message.replace(&*folder.path().to_string_lossy(), "."))
            })
            .collect()
    };
    assert_eq!(told(text), ["t.yaml:5: `./more.yaml` does not exist"]);
    let table = [
        ("", "t.yaml:5: `./more.yaml` is empty"),
        ("[]", "more.yaml:1: the list in `./more.yaml` is empty"),
        ("# later\n", "more.yaml:1: what is in `./more.yaml` is neither a list nor `backends` alone"),
        (
            "host: a\nport: 1\n",
            "more.yaml:1: what is in `./more.yaml` is neither a list nor `backends` alone",
        ),
        ("backends: a\n", "more.yaml:1: `backends` in `./more.yaml` is no list"),
        ("- {host: a, prot: 1}\n", "more.yaml:1: unknown key `prot` in a backend"),
        ("- {host: a, port: 1}\n- {file: other.yaml}\n", "more.yaml:2: a file of backends names another one"),
        (
            "- {host: 10.0.0.1, port: 80}\n",
            "t.yaml:6: the backend `10.0.0.1:80` is there twice in the target `web`",
        ),
    ];
    for (content, wanted) in table {
        write(content);
        assert_eq!(told(text).first().map(String::as_str), Some(wanted), "{content}");
    }
    write("- {host: 10.0.0.2, port: 80}\n");
    assert_eq!(
        told(&text.replace("{file: more.yaml}", "{file: more.yaml, weight: 2}")),
        ["t.yaml:5: `weight` beside `file`"]
    );
    for content in
        ["- {host: 10.0.0.2, port: 80, name: b}\n", "backends:\n  - {host: 10.0.0.2, port: 80, name: b}\n"]
    {
        write(content);
        let loaded = load(text).unwrap();
        let names: Vec<&str> = loaded.config.targets[0].backends.iter().map(|one| &*one.name).collect();
        assert_eq!(names, ["b", "10.0.0.1:80"]);
        let numbers = backend_numbers(&loaded.effective, "web");
        assert_eq!((numbers["10.0.0.1:80"], numbers["b"]), (1, 2), "what is written keeps its place");
        let row = loaded.effective.iter().find(|row| row.path == "targets.web.backends[2].address").unwrap();
        assert!(
            row.origin.to_string().ends_with(&format!("more.yaml:{}", content.lines().count())),
            "{}",
            row.origin
        );
        assert!(loaded.files.named().paths().any(|path| path.ends_with("more.yaml")), "it is watched");
    }
}
