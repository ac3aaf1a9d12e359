//! One listener in front of several targets, from YAML to the wire.

use std::net::SocketAddr;

use super::support::{self, Client, Keel, fakes};

/// A listener with these routes in front of the targets `one` and `two`.
fn two(listener: &str, routes: &str) -> (Keel, Vec<fake_backend::Running>) {
    let backends = fakes(2);
    let pool = |name: &str, at: SocketAddr| {
        format!("  {name}: {{health_check: off, backends: [{{url: 'http://{at}'}}]}}\n")
    };
    let text = format!(
        "listeners:\n  front:\n    bind: 127.0.0.1:0\n    {listener}\n    routes:\n{routes}\ntargets:\n{}{}",
        pool("one", backends[0].addr()),
        pool("two", backends[1].addr())
    );
    (Keel::start(&support::load(&text)), backends)
}

/// Status, and which fake has answered.
fn ask(client: &mut Client, request: &str) -> (u16, String) {
    client.send(request.as_bytes());
    let answer = client.answer();
    (
        answer.status,
        answer.text().trim_start_matches("Hello from ").lines().next().unwrap_or_default().to_owned(),
    )
}

#[test]
fn a_listener_of_its_own_leads_to_a_target_without_one() {
    let (keel, _backends) = two("x_real_ip: true", "    - target: one");
    assert_eq!(Client::connect(keel.address()).get("/").text(), "Hello from fake-1");
}

#[test]
fn each_request_of_a_connection_goes_where_it_belongs() {
    let routes = "    - {match: {host: shop.example, path_prefix: /api}, target: two}\n    - {match: {host: shop.example}, target: one}\n    - {match: {header: {X-Beta: yes}, path: /b}, target: two}";
    let (keel, _backends) = two("default_host: none.example", routes);
    let mut client = Client::connect(keel.address());
    let mut get = |path: &str, host: &str, more: &str| {
        ask(&mut client, &format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n{more}\r\n"))
    };
    let fake = |name: &str| (200, name.to_owned());
    assert_eq!(get("/", "shop.example", ""), fake("fake-1"));
    assert_eq!(get("/api", "Shop.Example.:80", ""), fake("fake-2"));
    assert_eq!(get("/api/x?y", "shop.example", ""), fake("fake-2"));
    assert_eq!(get("/apiary", "shop.example", ""), fake("fake-1"));
    assert_eq!(get("/x/../api", "shop.example", ""), fake("fake-2"));
    assert_eq!(get("/%61pi", "shop.example", ""), fake("fake-2"));
    assert_eq!(get("http://shop.example/api", "other", ""), fake("fake-2"));
    assert_eq!(get("/b", "other", "X-Beta: yes\r\n"), fake("fake-2"));
    // What belongs nowhere does not end the connection.
    assert_eq!(get("/b", "other", ""), (404, "404 Not Found".to_owned()));
    assert_eq!(get("/", "shop.example", ""), fake("fake-1"));
    assert_eq!(get("/api/..%2f..%2fx", "shop.example", ""), (400, "400 Bad Request".to_owned()));
}

#[test]
fn the_path_that_was_matched_is_the_path_that_is_forwarded() {
    let (keel, _backends) = two("x_real_ip: false", "    - {match: {path: /head}, target: one}");
    let mut client = Client::connect(keel.address());
    client.send(b"GET http://h.example/x/../%68ead?q=%61 HTTP/1.1\r\nHost: other\r\nX-Case: Kept\r\n\r\n");
    let answer = client.answer();
    assert_eq!(answer.status, 200, "{}", answer.text());
    let text = answer.text();
    assert!(text.starts_with("GET /head?q=%61 HTTP/1.1"), "{text}");
    assert!(text.contains("X-Case: Kept") && text.contains("h.example") && !text.contains("other"), "{text}");
}

#[test]
fn what_a_client_says_about_itself_with_underscores_stays_behind_also_where_the_path_changes_its_form() {
    let (keel, _backends) = two("x_real_ip: false", "    - {match: {path: /head}, target: one}");
    let mut client = Client::connect(keel.address());
    for path in ["/head", "/a/../head"] {
        client.send(format!("GET {path} HTTP/1.1\r\nHost: h\r\nX_Forwarded_For: 10.6.6.6\r\n\r\n"));
        let text = client.answer().text();
        assert!(text.starts_with("GET /head HTTP/1.1") && !text.contains("10.6.6.6"), "{path}: {text}");
    }
}

#[test]
fn a_body_over_the_limit_of_its_listener_is_refused_and_one_of_the_right_size_is_not() {
    let (keel, _backends) = two("limits: {body: 4B}", "    - {match: {path_prefix: /}, target: one}");
    let post = |body: &str, framing: &str| {
        let mut client = Client::connect(keel.address());
        ask(&mut client, &format!("POST / HTTP/1.1\r\nHost: h\r\n{framing}\r\n\r\n{body}")).0
    };
    assert_eq!(post("abcd", "Content-Length: 4"), 200);
    assert_eq!(post("abcde", "Content-Length: 5"), 413);
    assert_eq!(post("4\r\nabcd\r\n0\r\n\r\n", "Transfer-Encoding: chunked"), 200);
    assert_eq!(post("5\r\nabcde\r\n0\r\n\r\n", "Transfer-Encoding: chunked"), 413);
}

#[test]
fn a_route_says_more_than_its_listener_about_bodies() {
    let routes = "    - {match: {path_prefix: /big}, target: one, limits: {body: off}}\n    - {target: two}";
    let (keel, _backends) = two("limits: {body: 4B}", routes);
    let post = |path: &str| {
        let mut client = Client::connect(keel.address());
        ask(&mut client, &format!("POST {path} HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nabcde")).0
    };
    assert_eq!((post("/big"), post("/small")), (200, 413));
}

#[test]
fn whom_a_route_does_not_let_in_gets_its_status_and_no_way_of_writing_the_path_leads_around_it() {
    let routes = "    - {match: {path_prefix: /admin}, access: {deny: 127.0.0.0/8, status: 404}, target: one}\n    - {match: {path: /hush}, access: {allow: 192.0.2.1, status: drop}, target: one}\n    - {target: two}";
    let (keel, _backends) = two("x_real_ip: false", routes);
    let mut client = Client::connect(keel.address());
    for path in
        ["/admin", "/admin/x", "/%61dmin", "/x/../admin", "/./admin/", "/x/%2e%2e/admin", "/admin?a=/x"]
    {
        let (status, text) = ask(&mut client, &format!("GET {path} HTTP/1.1\r\nHost: h\r\n\r\n"));
        assert_eq!((status, &*text), (404, "404 Not Found"), "{path}");
    }
    // Others go on, on the same connection.
    assert_eq!(ask(&mut client, "GET /Admin HTTP/1.1\r\nHost: h\r\n\r\n"), (200, "fake-2".to_owned()));
    client.send(b"GET /hush HTTP/1.1\r\nHost: h\r\n\r\n");
    assert!(client.rest().is_empty() && client.was_reset());
}

#[test]
fn what_the_file_says_of_actions_rewrites_and_headers_happens() {
    let routes = r"    - {match: {host: www.example}, redirect: {to: 'https://example{path}', status: 301}}
    - {match: {path: /down}, respond: {status: 503, body: back soon, headers: {Retry-After: 120, Link: [a, b]}}}
    - {match: {path_prefix: /canary}, split: {targets: {one: 0, two: 1}, by: {cookie: user}}}
    - match: {path_regex: '^/v([0-9]+)/(.*)$'}
      target: one
      rewrite: {path: '/head?v=$1&rest=$2'}
      headers: {request: {remove: [Cookie], set: {X-Env: 'prod {hostname}'}, add: {X-Tag: [a, b]}}, response: {set: {X-Route: '{backend}'}}}
    - {match: {path_prefix: /api}, target: one, rewrite: {strip_prefix: /api, add_prefix: /count}, limits: {body: 2B}, retries: off}
    - {target: two, upgrade: off}";
    let listener = "headers: {response: {remove: X-Backend, set: {Strict-Transport-Security: max-age=1}}}";
    let (keel, backends) = two(listener, routes);
    let mut client = Client::connect(keel.address());
    let mut get = |path: &str, lines: &str| {
        client.send(format!("GET {path} HTTP/1.1\r\n{lines}\r\n"));
        let answer = client.answer();
        assert_eq!(answer.header("strict-transport-security"), Some("max-age=1"), "{}", answer.head);
        assert_eq!(answer.header("x-backend"), None, "{}", answer.head);
        answer
    };
    let moved = get("/a?b", "Host: www.example\r\n");
    assert_eq!((moved.status, moved.header("location")), (301, Some("https://example/a?b")));
    let down = get("/down", "Host: h\r\n");
    assert_eq!((down.status, &*down.text(), down.header("retry-after")), (503, "back soon", Some("120")));
    assert_eq!(down.head.matches("Link: ").count(), 2, "{}", down.head);
    assert_eq!(get("/canary", "Host: h\r\nCookie: user=1\r\n").text(), "Hello from fake-2");
    let edited = get("/v2/a%20b", "Host: h:81\r\nCookie: a=b\r\nX-ENV: theirs\r\n");
    assert_eq!(edited.header("x-route"), Some(&*backends[0].addr().to_string()));
    let text = edited.text();
    assert!(text.starts_with("GET /head?v=2&rest=a%20b HTTP/1.1\r\n"), "{text}");
    assert!(text.contains("\r\nX-Env: prod h\r\nX-Tag: a\r\nX-Tag: b\r\n"), "{text}");
    assert!(!text.contains("Cookie") && !text.contains("theirs"), "{text}");
    assert_eq!(get("/other", "Host: h\r\n").text(), "Hello from fake-2");
    assert_eq!(client.post("/api", b"ab").text(), "2");
    assert_eq!(client.post("/api", b"abc").status, 413);
}
