//! `tests:` of a config: where one fails, nobody takes the config.

use super::*;

const ROUTES: &str = "listeners:
  public:
    bind: 127.0.0.1:0
    routes:
      - {match: {host: shop.example, path_prefix: /api, method: POST}, target: api}
      - {match: {host: shop.example}, target: web}
      - {match: {path_prefix: /admin}, access: {allow: 10.0.0.0/8}, target: api}
targets:
  web: {backends: [{host: 127.0.0.1, port: 1}]}
  api: {backends: [{host: 127.0.0.1, port: 2}]}
tests:
  - {request: 'POST http://shop.example/api/x', expect: {target: api, path: /api/x}}
  - {request: 'GET http://other.example/', expect: {status: 404}}
  - {request: 'GET http://shop.example/%zz', expect: {status: 400}}
  - {request: 'GET http://other.example/admin', expect: {status: 403, route: /admin}}
  - request: GET http://other.example/admin/../admin/%61
    from: 10.1.2.3
    expect: {target: api, path: /admin/a}
";

fn check(text: &str) -> (Option<i32>, String, String) {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("evenkeel.yaml");
    std::fs::write(&config, text).unwrap();
    let (code, out, err) = outcome(&["check", "--config", config.to_str().unwrap()]);
    (code, out, err.replace(&format!("{}/", folder.path().display()), ""))
}

#[test]
fn a_config_whose_tests_pass_is_valid() {
    let (code, out, err) = check(ROUTES);
    assert_eq!((code, err.as_str()), (Some(0), ""));
    assert!(out.contains("tests[4]") && out.ends_with("the config is valid\n"), "{out}");
}

#[test]
fn a_test_that_fails_says_where_it_stands_and_what_would_happen_and_why() {
    let wrong = ROUTES.replace("'POST http://shop.example/api/x'", "'GET http://shop.example/api/../api'");
    let (code, out, err) = check(&wrong);
    assert_eq!((code, out.as_str()), (Some(1), ""));
    let told = "evenkeel.yaml:12:15: this test fails: GET http://shop.example/api/../api goes to `web` as /api, by the route `shop.example`
   12 |   - {request: 'GET http://shop.example/api/../api', expect: {target: api, path: /api/x}}
      |               ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
  expected: the target `api`, the path `/api/x`
  note: decided so:
    listener public
    path     /api/../api is taken as /api
    not      `shop.example/api;method=POST`: the method is GET, not POST
    route    `shop.example`
    so       it goes to `web` as /api

1 problem";
    assert!(err.contains(told), "{err}");
}

#[test]
fn a_test_says_by_which_rule_a_client_is_asked_who_it_is() {
    let with = |staff: &str, open: &str, denied: &str| {
        format!(
            "auth: {{staff: {{forward: {{target: web}}}}, sso: {{forward: {{target: web}}}}}}
listeners:
  public:
    bind: 127.0.0.1:0
    auth: staff
    routes:
      - {{match: {{path_prefix: /open}}, auth: off, access: {{deny: 10.0.0.0/8}}, target: web}}
      - {{match: {{path_prefix: /sso}}, auth: sso, redirect: {{to: /x}}}}
      - {{target: web}}
targets:
  web: {{backends: [{{host: 127.0.0.1, port: 1}}]}}
tests:
  - {{request: 'GET http://a/sso', expect: {{auth: sso, status: 308}}}}
  - {{request: 'GET http://a/x', expect: {{auth: {staff}, target: web}}}}
  - {{request: 'GET http://a/open', expect: {{auth: {open}}}}}
  - {{request: 'GET http://a/open', from: 10.0.0.1, expect: {{auth: {denied}}}}}
"
        )
    };
    let (code, _, err) = check(&with("staff", "off", "off"));
    assert_eq!(code, Some(1), "who is refused before is not asked: {err}");
    assert!(
        err.contains("GET http://a/open is answered with 403 (access_denied), without auth, by"),
        "{err}"
    );
    assert!(err.contains("expected: no auth on its route\n") && err.contains("1 problem"), "{err}");
    let (_, _, err) = check(&with("sso", "staff", "sso"));
    assert!(err.contains("GET http://a/x goes to `web` as /x, with auth by `staff`, by the route"), "{err}");
    assert!(
        err.contains("expected: auth by `sso`\n") && err.contains("expected: auth by `staff`\n"),
        "{err}"
    );
    assert!(err.contains("3 problems"), "{err}");
    let all = with("staff", "off", "x");
    let passes = all.lines().filter(|line| !line.contains("10.0.0.1")).collect::<Vec<_>>();
    let (code, _, err) = check(&(passes.join("\n") + "\n"));
    assert_eq!(code, Some(0), "{err}");
}

#[test]
fn a_test_that_no_listener_or_several_could_get_is_told_which() {
    let other = "  other: {bind: 127.0.0.1:0, routes: [{target: web}]}\ntargets:";
    let (code, _, err) = check(&ROUTES.replace("targets:", other));
    assert_eq!(code, Some(1));
    assert!(err.contains("several listeners fit, `public`, `other`: `listener` says which"), "{err}");
    assert!(err.contains("5 problems"), "{err}");
    let (_, _, err) = check(&ROUTES.replace("GET http://other.example/'", "GET https://other.example/'"));
    assert!(err.contains("evenkeel.yaml:13:15: this test fails: no listener speaks https"), "{err}");
    let named = "expect: {status: 404}, listener: public";
    let (code, _, err) = check(&ROUTES.replace("expect: {status: 404}", named));
    assert_eq!((code, err.as_str()), (Some(0), ""));
}

#[test]
fn explain_shows_the_key_in_the_cache_and_what_is_decided_by_the_request() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("evenkeel.yaml");
    let text = "listeners:
  public:
    bind: 127.0.0.1:0
    routes:
      - {match: {path_prefix: /shop}, target: web, cache: {ttl: 10s, query: [page], headers: [Accept-Language]}}
      - {target: web}
targets:
  web: {backends: [{host: 127.0.0.1, port: 1}]}
";
    std::fs::write(&config, text).unwrap();
    let explained = |method: &str, path: &str, line: &str| {
        let url = format!("http://Shop.Example{path}");
        let file = config.to_str().unwrap();
        let mut all = vec!["explain", "--config", file];
        if !line.is_empty() {
            all.extend(["-H", line]);
        }
        all.extend([method, &url]);
        let (code, out, err) = outcome(&all);
        assert_eq!((code, err.as_str()), (Some(0), ""), "{out}");
        let cache = out.lines().find_map(|line| line.trim().strip_prefix("cache"));
        cache.map(|line| line.trim().to_owned())
    };
    assert_eq!(
        explained("GET", "/shop?utm=1&page=2", "Accept-Language: de").unwrap(),
        "key http://shop.example/shop?page=2, accept-language: de"
    );
    let key = "key http://shop.example/shop/a, accept-language: none";
    assert_eq!(explained("GET", "/shop/x/../a", "").unwrap(), key);
    for (line, decision) in [
        (
            "Authorization: Basic x",
            "; stored only if its answer says `public`, `s-maxage` or `must-revalidate`: authorization",
        ),
        ("Cookie: a=b", "; stored and answered from it only if the answer says how long it is fresh: cookie"),
        ("Cache-Control: only-if-cached", "; 504 if nothing is stored that is fresh"),
        ("Cache-Control: no-store", "; answered from it, and not stored: request_no_store"),
    ] {
        assert_eq!(explained("GET", "/shop/a", line).unwrap(), format!("{key}{decision}"));
    }
    assert_eq!(explained("POST", "/shop/a", "").unwrap(), "goes past it: method");
    assert_eq!(explained("GET", "/", ""), None);
}
