//! Routes with `passthrough`.

use super::certificates::Certs;
use super::every_key::Check;
use super::listeners::of;
use super::*;
use crate::config::model::*;

/// A listener with these keys and routes, and the targets `web` and `mail`.
fn listener(keys: &str, routes: &[&str]) -> String {
    let routes: String = routes.iter().map(|route| format!("      - {{{route}}}\n")).collect();
    format!(
        "listeners:\n  front:\n    bind: 8080\n    {keys}\n    routes:\n{routes}\
         targets: {{web: {{backends: [{{host: a, port: 1}}]}}, mail: {{backends: [{{host: b, port: 2}}]}}}}\n"
    )
}

/// `tls` with a certificate.
fn tls() -> String {
    format!("tls: {{cert_file: {}}}", Certs::shared().path("both.pem"))
}

fn secured(routes: &[&str]) -> String {
    listener(&format!("protocol: https\n    {}", tls()), routes)
}

const PASSED: &str = "passthrough: true, target: mail";

/// Keys of this, each with a text in which it stands and what it changes.
pub(super) fn rows() -> Vec<(&'static str, String, Check)> {
    let first = |conditions: &str| {
        secured(&[&format!("{PASSED}, match: {{host: a.example, {conditions}}}"), "target: web"])
    };
    vec![
        ("listeners.<name>.routes[].passthrough", first(""), |c| of(c).routes[0].is_passthrough),
        ("listeners.<name>.routes[].match.alpn", first("alpn: [h2, acme-tls/1]"), |c| {
            of(c).routes[0].matches.alpn == ["h2", "acme-tls/1"]
        }),
    ]
}

#[test]
fn names_are_passed_through_beside_others_or_all_of_them() {
    let mixed = config(&secured(&[
        "match: {host: mail.example, client: 10.0.0.0/8}, passthrough: true, target: mail",
        "target: web",
    ]));
    let protocols: Vec<Protocol> = mixed.targets.iter().map(|target| target.protocol).collect();
    assert_eq!(protocols, [Protocol::Http, Protocol::Tcp]);
    assert!(of(&mixed).tls.is_some());
    for protocol in ["tcp", "https"] {
        let all = config(&listener(&format!("protocol: {protocol}"), &[PASSED]));
        assert!(of(&all).tls.is_none() && of(&all).is_secured());
    }
    let tcp = listener(
        &format!("protocol: tcp\n    {}", tls()),
        &[
            "match: {host: a.example}, passthrough: true, target: mail",
            "target: web",
            "passthrough: false, target: web",
        ],
    );
    // `passthrough: false` is a route like any other.
    let said = messages(&tcp, &Flags::default());
    assert!(said.iter().any(|one| one.contains("has 2 routes without `passthrough`")), "{said:#?}");
    config(&tcp.replace("      - {passthrough: false, target: web}\n", ""));
    // How long a client may take to say what it wants.
    let patient = config(&listener("protocol: tcp\n    timeouts: {tls: 3s}", &[PASSED]));
    assert_eq!(of(&patient).client_timeouts.tls, std::time::Duration::from_secs(3));
}

#[test]
fn what_is_wrong_is_told_where_it_stands() {
    let one =
        |added: &str| secured(&[&format!("match: {{host: a.example}}, {PASSED}, {added}"), "target: web"]);
    let matching = |added: &str| secured(&[&format!("match: {{{added}}}, {PASSED}"), "target: web"]);
    let two = |first: &str, second: &str| secured(&[first, second]);
    for (text, wanted) in [
        (one("rewrite: {path: /a}"), "`rewrite` has no effect: a route with `passthrough: true` sees"),
        (one("headers: {request: {remove: A}}"), "`headers` has no effect: a route with"),
        (one("order: 1"), "`order` has no effect"),
        (one("cache: on"), "`cache` has no effect"),
        (one("timeouts: {total: 1s}"), "`timeouts` has no effect"),
        (matching("host: a.example, path: /a"), "`path` is not known of a connection"),
        (matching("host: a.example, method: GET"), "`method` is not known of a connection"),
        (matching("host: a.example, header: {A: b}"), "`header` is not known of a connection"),
        (matching("host: 'a.example:8443'"), "`host` has the port 8443"),
        (matching("host: '[::1]'"), "`host` has the address `[::1]`"),
        (matching("host: 192.0.2.1"), "`host` has the address `192.0.2.1`"),
        (matching("host: a.example, alpn: http/2"), "`alpn` is `http/2`, which no client offers"),
        (matching("host: a.example, alpn: ['h2', 'h2']"), "is there already"),
        (matching("host: a.example, alpn: []"), "`alpn` is an empty list"),
        (matching("host: a.example, alpn: {a: b}"), "`alpn`"),
        (
            two("match: {host: a.example, alpn: h2}, target: web", "target: web"),
            "`alpn` has no effect without",
        ),
        (one("passthrough: perhaps").replace("passthrough: true, ", ""), "`passthrough` is"),
        (
            listener("protocol: http", &[PASSED]),
            "`passthrough` is for connections with TLS, but the listener `front` speaks http",
        ),
        (listener("x_real_ip: on", &[PASSED]), "the listener `front` speaks http"),
        (
            listener("protocol: tcp", &[&format!("match: {{host: a.example}}, {PASSED}"), "target: web"]),
            "the listener `front` speaks tcp without `tls`",
        ),
        (secured(&[PASSED]), "`tls` has no effect: all routes of the listener `front` pass TLS through"),
        (
            two(PASSED, "target: web"),
            "this route of the listener `front` never has a request: the connections for its hosts are passed through",
        ),
        (
            two(
                "match: {host: [b.example, a.example]}, passthrough: true, target: mail",
                "match: {host: a.example, path: /a}, target: web",
            ),
            "never has a request: the connections for its hosts are passed through",
        ),
        (
            two(
                "match: {host: a.example}, passthrough: true, target: mail",
                "match: {host: b.example}, target: mail",
            ),
            "the target `mail` gets HTTP from one route and TCP from another",
        ),
        (matching("host: a.example, alpn: HTTP/1.1"), "`alpn` is `HTTP/1.1`, which no client offers"),
        (
            secured(&[
                "match: {host: [a.example, b.example]}, passthrough: true, target: mail",
                "match: {host: a.example}, passthrough: true, target: mail, access: {allow: 10.0.0.0/8}",
                "target: web",
            ]),
            "this route of the listener `front` never has a request",
        ),
        (
            one("").replace("backends: [{host: b, port: 2}]", "backends: [{url: 'tls://b:2'}]"),
            "backends of `mail` are spoken to over TLS, and what is passed through is TLS already",
        ),
        (
            listener("protocol: tcp", &[PASSED]).replace("host: b, port: 2", "host: 127.0.0.1, port: 8080"),
            "its requests would go round in circles",
        ),
        (
            secured(&["match: {host: x.example}, passthrough: true, target: mail", "target: web"])
                .replace("host: b, port: 2", "host: 127.0.0.1, port: 8080"),
            "its requests would go round in circles",
        ),
        (
            listener("protocol: https\n    normalize: {merge_slashes: on}", &[PASSED]),
            "`normalize` has no effect: all routes of",
        ),
        (
            one("rate_limit: of_users") + "rate_limits: {of_users: {rate: 1/s, by: user}}\n",
            "the rate limit `of_users` counts by `user`, of which a TCP connection has nothing",
        ),
        (
            secured(&[
                "match: {host: a.example}, passthrough: true, target: mail",
                "match: {host: a.example}, passthrough: true, target: mail",
                "target: web",
            ]),
            "another one takes the same",
        ),
        (one("redirect: {to: /}").replace(", target: mail", ""), "`redirect` has no effect"),
        (one("").replace(", target: mail", ""), "a route without `target`"),
    ] {
        let said = messages(&text, &Flags::default());
        assert!(said.iter().any(|message| message.contains(wanted)), "{text}: {said:#?}");
        assert_eq!(said.len(), 1, "{text}: {said:#?}");
    }
    let waits = listener("protocol: tcp\n    proxy_protocol: {from: 10.0.0.0/8, required: false}", &[PASSED]);
    config(&waits);
    let guarded =
        one("").replace("cert_file:", &format!("client_ca: {}, cert_file:", Certs::shared().path("ca.pem")));
    let warned = load_with(&guarded, &Flags::default()).unwrap().warnings;
    assert!(
        warned.iter().any(|one| one.contains("`tls.client_ca` of the listener `front` does not hold")),
        "{warned:?}"
    );
    // A route for any host has requests where any connection is decrypted.
    config(&secured(&[
        PASSED,
        "match: {host: a.example}, target: web",
        "match: {path: /health}, target: web",
    ]));
}
