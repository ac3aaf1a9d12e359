//! `listeners`: the long form.

use std::time::Duration;

use super::certificates::Certs;
use super::every_key::Check;
use super::*;
use crate::config::model::route::{DotSegments, EncodedSlash};
use crate::config::model::*;

pub(super) const POOL: &str = "targets: {web: {backends: [{host: a, port: 1}]}}";

/// A listener with these keys beside where it is bound, in front of one target.
pub(super) fn front(added: &str) -> String {
    format!("listeners: {{front: {{bind: 8080, {added}, routes: [{{target: web}}]}}}}\n{POOL}\n")
}

fn tls(added: &str) -> String {
    let certs = Certs::shared();
    let (cert, key) = (certs.path("a.pem"), certs.path("a.key"));
    front(&format!("protocol: https, tls: {{cert_file: {cert}, cert_key: {key}, {added}}}"))
}

pub(super) fn of(config: &Config) -> &ListenerConfig {
    &config.listeners[0]
}

/// A listener whose route has these keys too.
pub(super) fn route(added: &str) -> String {
    front("protocol: http").replace("target: web", &format!("target: web, {added}"))
}

/// The same with a `mirror`, and a target for it.
fn mirror(keys: &str) -> String {
    route(&format!("mirror: {{{keys}}}"))
        .replace("targets: {", "targets: {shadow: {backends: [{host: s, port: 1}]}, ")
}

fn matching(conditions: &str) -> String {
    route(&format!("match: {{{conditions}}}"))
}

fn first(config: &Config) -> &route::RouteMatch {
    &of(config).routes[0].matches
}

#[test]
fn what_is_wrong_with_a_match_is_told_with_what_would_be_right() {
    for (conditions, told) in [
        ("host: 'https://shop.example/x'", "write the host alone: `shop.example`"),
        ("host: shop.example/api", "the path belongs into `path` or `path_prefix`"),
        ("host: '*'", "leave `host` out"),
        ("host: 'a*b'", "which is no host"),
        ("host: 'a:0'", "which is no host"),
        ("host: [a, A]", "is there already"),
        ("path: api", "which does not begin with a slash"),
        ("path: '/a?b=c'", "with more than a path"),
        ("path: /a/../b", "with dot segments"),
        ("path: '/%61dmin'", "in a form that no request has here"),
        ("path: '/a%2fb'", "in a form that no request has here"),
        ("path: '/a%zz'", "with a broken escape"),
        ("path: '/a b'", "have to be escaped"),
        ("path: /a, path_prefix: /b", "exclude each other"),
        ("path_regex: '^/(v'", "unclosed group"),
        ("method: get", "methods are case-sensitive"),
        ("method: 'G T'", "which is no method"),
        ("header: {X-A: 1, x-a: 2}", "is there already, in another spelling"),
        ("header: {'X A': 1}", "which is no name"),
        ("header: {X-A: {presnt: true}}", "{present: true}"),
        ("header: {X-A: }", "{present: true}"),
        ("header: X-A", "a mapping from names to values"),
        ("cookie: {}", "a mapping from names to values"),
        ("client: 10.0.0.1/8", "an address inside a network"),
        ("client: office", "neither an IP address nor a network"),
        ("hosts: a", "`host`"),
    ] {
        let text = matching(conditions);
        let problems = load_with(&text, &Flags::default()).unwrap_err().to_string();
        assert!(
            problems.contains(told) && problems.trim_end().ends_with("1 problem"),
            "{conditions}: {problems}"
        );
    }
}

#[test]
fn routes_that_can_not_be_told_apart_are_told() {
    let two = |one: &str, other: &str| {
        let routes = format!("routes: [{{target: web, {one}}}, {{target: web, {other}}}]");
        let text = front("protocol: http").replace("routes: [{target: web}]", &routes);
        messages(&text, &Flags::default()).join("\n")
    };
    let same = two("name: a, match: {host: A.example}", "name: b, match: {host: a.example.}");
    assert!(same.contains("never has a request"), "{same}");
    let named = two("name: a, match: {path: /a}", "name: a, match: {path: /b}");
    assert!(named.contains("have the name `a`"), "{named}");
}

#[test]
fn a_route_that_is_never_reached_is_told_with_what_takes_its_requests() {
    let text = "listeners:\n  front:\n    bind: 8080\n    routes:\n      - {name: all, order: 1, target: web}\n      - {match: {path: /a}, target: web}\n";
    let told = load_with(&format!("{text}{POOL}"), &Flags::default()).unwrap_err().to_string();
    assert!(told.contains("t.yaml:6:9: this route of the listener `front` never has a request"), "{told}");
    assert!(told.contains("`all` (line 5) is asked first"), "{told}");
}

/// As many as that are told apart in a moment: nobody compares each with each.
#[test]
fn ten_thousand_routes_over_a_thousand_hosts_load() {
    let route = |n: usize| {
        format!("      - {{match: {{host: h{}.example, path_prefix: /p{n}}}, target: web}}\n", n % 1_000)
    };
    let last = "      - {name: last, match: {host: h7.example, path: /p7/x}, target: web}\n";
    let first =
        "      - {name: first, order: 1, match: {host: '*.example', path_prefix: /p7}, target: web}\n";
    let routes: String = (0..10_000).map(route).collect();
    let whole =
        |more: &str| format!("listeners:\n  front:\n    bind: 8080\n    routes:\n{routes}{more}{POOL}\n");
    assert_eq!(config(&whole(last)).listeners[0].routes.len(), 10_001);
    assert_eq!(messages(&whole(&format!("{first}{last}")), &Flags::default()).len(), 2);
}

/// A row of `every_key` for each key.
pub(super) fn rows() -> Vec<(&'static str, String, Check)> {
    let certs = Certs::shared();
    let more =
        format!("certificates: [{{cert_file: {}, cert_key: {}}}]", certs.path("b.pem"), certs.path("b.key"));
    let ca = format!("client_ca: {}", certs.path("ca.pem"));
    vec![
        ("listeners", front("protocol: http"), |c| of(c).name == "front"),
        ("listeners.<name>.bind", front("protocol: http").replace("8080", "[8081, 8082]"), |c| {
            of(c).binds.len() == 2
        }),
        ("listeners.<name>.protocol", front("protocol: tcp"), |c| of(c).protocol == Protocol::Tcp),
        ("listeners.<name>.tls", tls(""), |c| of(c).tls.is_some()),
        ("listeners.<name>.tls.cert_file", tls(""), |c| of(c).tls.is_some()),
        ("listeners.<name>.tls.cert_key", tls(""), |c| of(c).tls.is_some()),
        ("listeners.<name>.tls.certificates", tls(&more), |c| {
            of(c).tls.as_ref().is_some_and(|tls| tls.identities.len() == 2)
        }),
        ("listeners.<name>.tls.certificates[].cert_file", tls(&more), |c| {
            of(c).tls.as_ref().is_some_and(|tls| tls.identities.len() == 2)
        }),
        ("listeners.<name>.tls.certificates[].cert_key", tls(&more), |c| {
            of(c).tls.as_ref().is_some_and(|tls| tls.identities.len() == 2)
        }),
        ("listeners.<name>.tls.client_ca", tls(&ca), |c| {
            of(c).tls.as_ref().is_some_and(|tls| tls.clients.is_some())
        }),
        ("listeners.<name>.tls.client_auth", tls(&format!("{ca}, client_auth: optional")), |c| {
            let auth = of(c).tls.as_ref().and_then(|tls| tls.clients.as_ref()).map(|clients| clients.auth);
            auth == Some(tls::ClientAuth::Optional)
        }),
        ("listeners.<name>.tls.min_version", tls("min_version: 1.3"), |c| {
            of(c).tls.as_ref().is_some_and(|tls| tls.oldest == tls::TlsVersion::V13)
        }),
        ("listeners.<name>.forwarded", front("forwarded: off"), |c| of(c).forwarded == Forwarded::Off),
        ("listeners.<name>.x_real_ip", front("x_real_ip: true"), |c| of(c).x_real_ip),
        ("listeners.<name>.normalize", front("normalize: {merge_slashes: on}"), |c| {
            of(c).normalize.merge_slashes
        }),
        ("listeners.<name>.normalize.dot_segments", front("normalize: {dot_segments: refuse}"), |c| {
            of(c).normalize.dot_segments == DotSegments::Refuse
        }),
        ("listeners.<name>.normalize.encoded_slash", front("normalize: {encoded_slash: refuse}"), |c| {
            of(c).normalize.encoded_slash == EncodedSlash::Refuse
        }),
        ("listeners.<name>.normalize.merge_slashes", front("normalize: {merge_slashes: on}"), |c| {
            of(c).normalize.merge_slashes
        }),
        ("listeners.<name>.default_host", front("default_host: Shop.Example."), |c| {
            of(c).default_host.as_deref() == Some("shop.example")
        }),
        ("listeners.<name>.limits", front("limits: {headers: 9}"), |c| of(c).limits.headers == 9),
        ("listeners.<name>.limits.head_size", front("limits: {head_size: 2KiB}"), |c| {
            of(c).limits.head_size == 2048
        }),
        ("listeners.<name>.limits.headers", front("limits: {headers: 9}"), |c| of(c).limits.headers == 9),
        ("listeners.<name>.limits.body", front("limits: {body: 9B}"), |c| of(c).limits.body == Some(9)),
        ("listeners.<name>.limits.body_rate", front("limits: {body_rate: off}"), |c| {
            of(c).limits.body_rate == 0
        }),
        ("listeners.<name>.limits.connections", front("limits: {connections: 9}"), |c| {
            of(c).limits.connections == Some(9)
        }),
        (
            "listeners.<name>.limits.connections_per_client",
            front("limits: {connections_per_client: 9}"),
            |c| of(c).limits.connections_per_client == Some(9),
        ),
        ("listeners.<name>.limits.replies", front("protocol: udp, limits: {replies: 2}"), |c| {
            of(c).limits.replies == Some(2)
        }),
        ("listeners.<name>.limits.reply_factor", front("protocol: udp, limits: {reply_factor: off}"), |c| {
            of(c).limits.reply_factor.is_none()
        }),
        ("listeners.<name>.timeouts", front("timeouts: {head: 9s}"), |c| {
            of(c).client_timeouts.head == Duration::from_secs(9)
        }),
        ("listeners.<name>.timeouts.tls", tls("").replace("routes", "timeouts: {tls: 9s}, routes"), |c| {
            of(c).client_timeouts.tls == Duration::from_secs(9)
        }),
        ("listeners.<name>.timeouts.head", front("timeouts: {head: 9s}"), |c| {
            of(c).client_timeouts.head == Duration::from_secs(9)
        }),
        ("listeners.<name>.timeouts.keep_alive", front("timeouts: {keep_alive: 9s}"), |c| {
            of(c).client_timeouts.keep_alive == Duration::from_secs(9)
        }),
        ("listeners.<name>.timeouts.half_closed", front("timeouts: {half_closed: off}"), |c| {
            of(c).client_timeouts.half_closed.is_none()
        }),
        ("listeners.<name>.timeouts.idle", front("timeouts: {idle: 9s}"), |c| {
            of(c).client_timeouts.idle == Duration::from_secs(9)
                && of(c).routes[0].own.idle == Some(Duration::from_secs(9))
        }),
        ("listeners.<name>.timeouts.total", front("timeouts: {total: 9s}"), |c| {
            of(c).routes[0].own.total == Some(Some(Duration::from_secs(9)))
        }),
        ("listeners.<name>.routes", front("protocol: http"), |c| {
            of(c).name == "front" && of(c).routes[0].targets().eq(["web"])
        }),
        ("listeners.<name>.routes[].name", route("name: shop"), |c| of(c).routes[0].name == "shop"),
        ("listeners.<name>.routes[].order", route("order: 3"), |c| of(c).routes[0].order == Some(3)),
        ("listeners.<name>.routes[].match", matching("host: a"), |c| !first(c).hosts.is_empty()),
        (
            "listeners.<name>.routes[].match.host",
            matching("host: [Shop.Example., '*.a:80', bücher.example]"),
            |c| {
                let hosts = first(c).hosts.iter().map(|host| (&*host.name, host.is_suffix, host.port));
                hosts.eq([
                    ("shop.example", false, None),
                    ("a", true, Some(80)),
                    ("xn--bcher-kva.example", false, None),
                ])
            },
        ),
        ("listeners.<name>.routes[].match.path", matching("path: /a"), |c| {
            first(c).path == route::PathPattern::Exact("/a".into()) && of(c).routes[0].name == "=/a"
        }),
        ("listeners.<name>.routes[].match.path_prefix", matching("host: h, path_prefix: /a/"), |c| {
            first(c).path == route::PathPattern::Prefix("/a".into()) && of(c).routes[0].name == "h/a"
        }),
        (
            "listeners.<name>.routes[].match.path_regex",
            matching("path_regex: '^/v([0-9]+)'"),
            |c| matches!(&first(c).path, route::PathPattern::Regex(regex) if regex.as_str() == "^/v([0-9]+)"),
        ),
        ("listeners.<name>.routes[].match.method", matching("method: [GET, POST]"), |c| {
            first(c).methods == ["GET", "POST"]
        }),
        ("listeners.<name>.routes[].match.header", matching("header: {X-Beta: yes, X-V: 2.10}"), |c| {
            let is = |text: &str| route::FieldTest::Is(vec![text.into()]);
            let headers = first(c).headers.iter().map(|field| (&*field.name, field.test.clone()));
            headers.eq([("x-beta", is("yes")), ("x-v", is("2.10"))])
        }),
        ("listeners.<name>.routes[].match.query", matching("query: {v: {present: false}}"), |c| {
            first(c).queries[..]
                == [route::FieldMatch { name: "v".into(), test: route::FieldTest::Present(false) }]
        }),
        (
            "listeners.<name>.routes[].match.cookie",
            matching("cookie: {Group: {regex: '^b'}}"),
            |c| matches!(&first(c).cookies[..], [one] if one.name == "Group"),
        ),
        ("listeners.<name>.routes[].match.client", matching("client: [10.0.0.0/8, '::1']"), |c| {
            first(c).clients.len() == 2
        }),
        ("listeners.<name>.routes[].match.client_cert", matching("client_cert: {subject: '*'}"), |c| {
            first(c).conditions() == 1 && !first(c).certificate.is_empty()
        }),
        (
            "listeners.<name>.routes[].match.client_cert.subject",
            matching("client_cert: {subject: ['*CN=robot*', 'CN=r2']}"),
            |c| first(c).certificate.subjects.iter().map(ToString::to_string).eq(["*CN=robot*", "CN=r2"]),
        ),
        (
            "listeners.<name>.routes[].match.client_cert.san",
            matching("client_cert: {san: '*.robots.example'}"),
            |c| first(c).certificate.names.iter().map(ToString::to_string).eq(["*.robots.example"]),
        ),
        ("listeners.<name>.routes[].mirror", mirror("target: shadow"), |c| {
            of(c).routes[0].mirror.as_ref().is_some_and(|mirror| *mirror.target == *"shadow")
        }),
        ("listeners.<name>.routes[].mirror.target", mirror("target: shadow"), |c| {
            of(c).routes[0].mirror.as_ref().is_some_and(|mirror| *mirror.target == *"shadow")
        }),
        ("listeners.<name>.routes[].mirror.share", mirror("target: shadow, share: 2.5%"), |c| {
            of(c).routes[0].mirror.as_ref().is_some_and(|mirror| mirror.share.millionths() == 25_000)
        }),
        ("listeners.<name>.routes[].timeouts", route("timeouts: {idle: 7s}"), |c| {
            of(c).routes[0].own.idle == Some(Duration::from_secs(7))
        }),
        ("listeners.<name>.routes[].timeouts.idle", route("timeouts: {idle: 7s}"), |c| {
            of(c).routes[0].own.idle == Some(Duration::from_secs(7))
        }),
        ("listeners.<name>.routes[].timeouts.tunnel", route("timeouts: {tunnel: 7s}"), |c| {
            of(c).routes[0].own.tunnel == Some(Duration::from_secs(7))
        }),
        ("listeners.<name>.routes[].timeouts.total", route("timeouts: {total: off}"), |c| {
            of(c).name == "front" && of(c).routes[0].own.total == Some(None)
        }),
        ("listeners.<name>.routes[].limits", route("limits: {body: 7B}"), |c| {
            of(c).routes[0].own.body == Some(Some(7))
        }),
        ("listeners.<name>.routes[].limits.body", route("limits: {body: off}"), |c| {
            of(c).name == "front" && of(c).routes[0].own.body == Some(None)
        }),
        ("listeners.<name>.routes[].target", front("protocol: http"), |c| {
            of(c).name == "front" && of(c).routes[0].targets().eq(["web"])
        }),
    ]
}

#[test]
fn a_listener_of_several_files_has_the_routes_of_all_and_every_other_key_once() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    let main = "include: more.yaml\nlisteners:\n  front:\n    bind: 8080\n    routes: [{target: web}]\n";
    write("main.yaml", &format!("{main}targets: {{web: {{backends: [{{host: a, port: 1}}]}}}}\n"));
    let load = || load(Some(&folder.path().join("main.yaml")), &Flags::default(), &env);
    write("more.yaml", "listeners: {front: {x_real_ip: true, routes: [{target: web, match: {path: /a}}]}}\n");
    let loaded = load().unwrap();
    assert_eq!((loaded.config.listeners.len(), loaded.config.listeners[0].routes.len()), (1, 2));
    assert!(loaded.config.listeners[0].x_real_ip);
    write("more.yaml", "listeners: {front: {bind: 9090}}\n");
    let told = load().unwrap_err().to_string();
    assert!(told.contains("the key `bind` is written twice: first at"), "{told}");
}

#[test]
fn what_is_wrong_with_a_mirror_is_told_with_what_would_be_right() {
    let tcp = mirror("target: raw").replace(
        "targets: {",
        "targets: {raw: {protocol: tcp, listener: 9090, backends: [{host: r, port: 1}]}, ",
    );
    let back = mirror("target: shadow").replace("host: s, port: 1", "host: 127.0.0.1, port: 8080");
    for (text, told) in [
        (mirror("target: shadw"), "did you mean `shadow`?"),
        (mirror("target: nobody"), "its name stands under `targets`"),
        (mirror("target: web"), "would go where the requests go already"),
        (mirror("share: 10%"), "does not say who gets the copies"),
        (mirror("target: shadow, share: 10"), "one in ten is `10%`"),
        (mirror("target: shadow, share: 0%"), "out of range"),
        (mirror("target: shadow, shares: 10%"), "`share`"),
        (route("mirror: shadow"), "a mapping"),
        (tcp, "speaks tcp, so it can get no copies"),
        (back, "would go round in circles"),
        (mirror("target: shadow").replace("protocol: http", "protocol: tcp"), "belongs to HTTP"),
    ] {
        let problems = load_with(&text, &Flags::default()).unwrap_err().to_string();
        assert!(problems.contains(told), "{text}: {problems}");
    }
    assert_eq!(config(&route("mirror: off")).listeners[0].routes[0].mirror, None);
}

#[test]
fn a_target_without_a_listener_speaks_what_those_speak_that_lead_to_it() {
    assert_eq!(config(&front("protocol: tcp")).targets[0].protocol, Protocol::Tcp);
    assert_eq!(config(&front("x_real_ip: true")).targets[0].protocol, Protocol::Http);
    let both = "listeners:\n  a: {bind: 1, routes: [{target: web}]}\n  b: {bind: 2, protocol: tcp, routes: [{target: web}]}\n";
    let told = messages(&format!("{both}{POOL}"), &Flags::default());
    assert!(told[0].contains("gets HTTP from one listener and TCP from another"), "{told:?}");
}

#[test]
fn keys_at_the_wrong_owner_are_told_their_place() {
    let pool = |key: &str| {
        let pool = format!("targets: {{web: {{backends: [{{host: a, port: 1}}], {key}}}}}");
        messages(
            &format!("listeners: {{front: {{bind: 1, routes: [{{target: web}}]}}}}\n{pool}"),
            &Flags::default(),
        )
    };
    for key in ["x_real_ip: true", "forwarded: off", "protocol: http", "limits: {headers: 9}"] {
        let told = pool(key);
        assert!(told.len() == 1 && told[0].contains("belongs to a listener"), "{key}: {told:?}");
    }
    for key in ["timeouts: {head: 1s}", "timeouts: {keep_alive: 1s}", "timeouts: {half_closed: 1s}"] {
        let told = pool(key);
        assert!(told.len() == 1 && told[0].contains("belongs to a listener"), "{key}: {told:?}");
    }
    let told = messages(&front("balance: maglev"), &Flags::default());
    assert!(told[0].contains("unknown key `balance` in a listener"), "{told:?}");
}

#[test]
fn what_is_missing_or_twice_is_told() {
    let messages = |text: &str| messages(text, &Flags::default()).join("\n");
    let none = format!("listeners: {{front: {{bind: 1}}}}\n{POOL}");
    assert!(messages(&none).contains("the listener `front` has no `routes`"));
    let unbound = format!("listeners: {{front: {{routes: [{{target: web}}]}}}}\n{POOL}");
    assert!(messages(&unbound).contains("the listener `front` has no `bind`"));
    let unknown = front("protocol: http").replace("target: web", "target: wep");
    assert!(messages(&unknown).contains("there is no target `wep`"), "{}", messages(&unknown));
    let twice = "listeners: {web: {bind: 1, routes: [{target: web}]}}\ntargets: {web: {listener: 2, backends: [{host: a, port: 1}]}}";
    assert!(messages(twice).contains("the listener `web` is there twice"), "{}", messages(twice));
    let same = format!("{}\n", front("protocol: http").replace("backends", "listener: 8080, backends"));
    assert!(messages(&same).contains("port 8080 is used twice"), "{}", messages(&same));
    let round = front("protocol: http").replace("host: a, port: 1", "host: 127.0.0.1, port: 8080");
    assert!(
        messages(&round).contains("the listener `front` listens, so its requests would go round"),
        "{}",
        messages(&round)
    );
}
