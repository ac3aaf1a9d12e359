//! A wrong route never goes live: five configs whose `tests` catch every change of a host, a prefix, an order, a weight, a header or a
//! rewrite, each with its place.
#![allow(clippy::unwrap_used, reason = "a test says what it expects by failing")]

use std::path::Path;

use evenkeel::config::{self, Flags, Problems};
use evenkeel::decision::verify;

/// What is changed in which config: the first such text into the other one.
const MUTATIONS: &[(&str, &[(&str, &str)])] = &[
    (
        "sites",
        &[
            ("default_host: shop.example", "default_host: other.example"),
            ("host: shop.example, path_prefix: /api}", "host: shop.exemple, path_prefix: /api}"),
            ("path_prefix: /api}", "path_prefix: /ap}"),
            ("path_prefix: /api}", "path: /api}"),
            ("path_prefix: /api}, target: api", "path_prefix: /api}, target: old"),
            ("path_prefix: /api/v1", "path_prefix: /api/v2"),
            ("path_prefix: /api/v1", "path_prefix: /v1"),
            ("path: /login", "path: /Login"),
            ("path: /login", "path_prefix: /login"),
            ("path: /login}, target", "path: /login, method: POST}, target"),
            ("host: shop.example}, target: shop", "host: www.shop.example}, target: shop"),
            ("host: shop.example}, target: shop", "host: shop.example}, target: blog"),
            ("host: shop.example}, target: shop", "host: shop.example}, order: 1, target: shop"),
            ("\"*.blog.example\"", "blog.example"),
            ("\"*.blog.example\"", "\"*.b.blog.example\""),
            ("host: one.blog.example", "host: two.blog.example"),
            ("method: [GET, HEAD]", "method: [GET]"),
            ("method: [GET, HEAD]", "method: [GET, HEAD, POST]"),
            ("shop.example:8443", "shop.example:8444"),
        ],
    ),
    (
        "conditions",
        &[
            ("header: {X-Beta: yes}}", "header: {X-Beta: no}}"),
            ("header: {X-Beta: yes}}", "header: {X-Gamma: yes}}"),
            ("query: {v: 2}", "query: {v: 3}"),
            ("query: {v: 2}", "query: {w: 2}"),
            ("header: {X-Beta: yes}, query", "query"),
            ("cookie: {group: b}", "cookie: {group: a}"),
            ("target: group, order: 20", "target: group"),
            ("target: group, order: 20", "target: group, order: 9"),
            ("client: 10.0.0.0/8", "client: 10.0.0.0/16"),
            ("order: 10", "order: 30"),
            ("path_prefix: /admin", "path_prefix: /adm"),
            ("allow: [192.0.2.0/24]", "allow: [192.0.2.128/25]"),
            ("allow: [192.0.2.0/24]", "allow: [0.0.0.0/0]"),
            ("deny: [192.0.2.7]", "deny: [192.0.2.8]"),
            ("        order: 5\n", "        order: 15\n"),
            ("status: drop}, order", "status: 403}, order"),
            ("deny: 0.0.0.0/0", "deny: 10.0.0.0/8"),
            ("'^/v([0-9]+)/'", "'^/v[a-z]+/'"),
            ("'^/v([0-9]+)/'", "'^/v'"),
            ("encoded_slash: refuse", "encoded_slash: keep"),
        ],
    ),
    (
        "canary",
        &[
            ("host: shop.example}", "host: shop.test}"),
            ("{stable: 80, canary: 20}", "{stable: 90, canary: 10}"),
            ("{stable: 80, canary: 20}", "{stable: 60, canary: 40}"),
            ("{stable: 80, canary: 20}", "{stable: 20, canary: 80}"),
            ("{stable: 80, canary: 20}", "{stable: 100, canary: 0}"),
            ("by: {cookie: user}", "by: {cookie: usr}"),
            ("X-Pool: \"{target}\"", "X-Pool: stable"),
            ("cookie: {canary: always}", "cookie: {canary: never}"),
            ("        order: 1\n", "        order: 1\n        access: {deny: 0.0.0.0/0}\n"),
        ],
    ),
    (
        "rewrites",
        &[
            ("path_prefix: /api", "path: /api"),
            ("rewrite: {strip_prefix: /api, add_prefix: /v2}", "rewrite: {path: /v2}"),
            ("add_prefix: /v2", "add_prefix: /v3"),
            ("strip_prefix: /api, ", ""),
            ("X-Env: prod, ", "X-Env: test, "),
            ("X-Env: prod, ", ""),
            ("X-Path: \"{path}\"", "X-Path: \"{path_only}\""),
            ("add: {X-Tag: a}, ", ""),
            ("remove: [Cookie]", "remove: [Cookies]"),
            ("X-Edge: one", "X-Edge: two"),
            ("/u/$1/$2", "/u/$2/$1"),
            ("'^/users/([0-9]+)/(.*)$'", "'^/users/(.+)/(.*)$'"),
            ("X-User: $1", "X-User: $2"),
            ("host: users.internal", "host: pass"),
        ],
    ),
    (
        "answers",
        &[
            ("host: www.shop.example", "host: ww.shop.example"),
            ("status: 301", "status: 302"),
            ("shop.example{path}\"", "shop.example{path_only}\""),
            ("path_prefix: /old", "path: /old"),
            ("status: 503", "status: 500"),
            ("{hostname}", "{host}"),
            ("path: /health", "path: /healthz"),
            (", order: 1", ""),
        ],
    ),
];

fn load(name: &str, text: &str) -> Result<config::Loaded, Problems> {
    let file = format!("fixtures/routing-tests/{name}.yaml");
    config::load_text(text, &file, Path::new("."), &Flags::default(), &|_| None)
}

#[test]
fn every_mutation_of_a_route_is_caught_with_its_place() {
    let (mut seen, mut missed) = (0, String::new());
    for (name, mutations) in MUTATIONS {
        let file = format!("fixtures/routing-tests/{name}.yaml");
        let text = std::fs::read_to_string(&file).unwrap();
        if let Err(problems) = load(name, &text).and_then(verify) {
            panic!("{problems}");
        }
        for (from, to) in *mutations {
            let mutant = text.replacen(from, to, 1);
            assert_ne!(mutant, text, "{name}: no `{from}`");
            // What makes a route unreachable is refused before anything is tested.
            let Ok(loaded) = load(name, &mutant) else { continue };
            seen += 1;
            match verify(loaded) {
                Ok(_) => missed += &format!("{name}: `{from}` into `{to}`\n"),
                Err(problems) => {
                    for problem in problems.list() {
                        let place = problem.place.unwrap();
                        assert_eq!(problem.file.as_deref(), Some(&*file));
                        let line = mutant.lines().nth(place.line as usize - 1).unwrap();
                        assert!(line.contains("request: "), "{problem}");
                        let told = problem.to_string();
                        assert!(told.starts_with(&format!("{file}:{}:", place.line)), "{told}");
                        assert!(told.contains("expected: ") && told.contains("decided so:"), "{told}");
                    }
                }
            }
        }
    }
    assert!(missed.is_empty(), "not caught:\n{missed}");
    assert!(seen >= 60, "{seen} mutations");
}
