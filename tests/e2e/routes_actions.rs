//! What routes do with requests: redirects, answers of their own, splits, other paths.

use evenkeel::config::model::{HashKey, LogFormat, Sticky};
use fake_backend::pattern;

use super::life_lab::{LogFile, end};
use super::route_lab::{At, at, front, front_with, matching, target, values};

#[test]
fn a_redirect_says_where_to_go_and_the_connection_goes_on() {
    let routes = vec![
        at("/old").redirect(308, "https://{hostname}/new{path}"),
        matching("^/v([0-9])/(.*)$").redirect(302, "/api/$2?v=$1&{query}"),
        at("/by").redirect(301, "/{cookie.lang}/{header.x-site}/"),
        at("/none").redirect(307, "{header.x-to}"),
        at("/"),
    ];
    let front = front(routes);
    let mut client = front.client();
    let mut get = |path: &str, lines: &str| {
        client.ask(&format!("GET {path} HTTP/1.1\r\nHost: h.example:81\r\n{lines}\r\n"))
    };
    let moved = get("/old/a%20b?c", "");
    assert_eq!((moved.status, moved.header("location")), (308, Some("https://h.example/new/old/a%20b?c")));
    assert_eq!(moved.header("content-length"), Some(&*moved.body.len().to_string()));
    assert!(moved.head.starts_with("HTTP/1.1 308 Permanent Redirect\r\n") && moved.header("date").is_some());
    assert_eq!(moved.header("cache-control"), None);
    let found = get("/v2/x/y?q=%41", "");
    assert_eq!((found.status, found.header("location")), (302, Some("/api/x/y?v=2&q=%41")));
    assert_eq!(found.header("cache-control"), Some("no-store"));
    let by = get("/by", "Cookie: lang=de\r\nX-Site: a b\r\n");
    assert_eq!((by.status, by.header("location")), (301, Some("/de/a%20b/")));
    assert_eq!(by.header("cache-control"), Some("no-store"), "another client is sent elsewhere");
    let none = get("/none", "");
    assert_eq!((none.status, none.header("location")), (307, None));
    assert_eq!(get("/", "").text(), "Hello from one");
    assert_eq!((front.one.connections(), front.one.requests()), (1, 1));
}

#[test]
fn a_path_of_a_client_never_becomes_the_name_of_another_host() {
    let front =
        front(vec![at("/").redirect(301, "{path_only}/"), matching("^//?x/(.*)$").redirect(301, "/$1")]);
    for (path, to) in [
        ("//evil.example/a", "/evil.example/a/"),
        ("///evil.example", "/evil.example/"),
        ("/x//evil.example", "/evil.example"),
        ("//x/%2Fevil.example", "/%2Fevil.example"),
    ] {
        assert_eq!(front.get(path, "").header("location"), Some(to), "{path}");
    }
}

#[test]
fn an_answer_of_its_own_is_the_same_for_head_but_for_the_body() {
    let long = "x".repeat(1 << 20);
    let front = front(vec![
        at("/down").respond(503, "<h1>Back soon</h1>", &[("Retry-After", "120"), ("X-Asked", "{path}")]),
        at("/long").respond(200, &long, &[]),
        at("/empty").respond(404, "", &[]),
        at("/none").respond(204, "unseen", &[("Content-Length", "3")]),
        at("/same").respond(304, "unseen", &[("ETag", "\"1\"")]),
        at("/reset").respond(205, "unseen", &[]),
        at("/kind").respond(200, "{}", &[("content-type", "application/json")]),
    ]);
    let mut client = front.client();
    let down = client.get("/down?a=b");
    assert_eq!((down.status, &*down.text()), (503, "<h1>Back soon</h1>"));
    for (name, value) in [("retry-after", "120"), ("x-asked", "/down?a=b"), ("content-type", "text/html")] {
        assert_eq!(values(&down, name), [value], "{name}");
    }
    let to_head = client.send("HEAD /down HTTP/1.1\r\nHost: test\r\n\r\n").answer_to_head();
    assert_eq!((to_head.status, to_head.header("content-length")), (503, Some("18")));
    assert!(client.get("/long").text() == long);
    let to_head = client.send("HEAD /long HTTP/1.1\r\nHost: test\r\n\r\n").answer_to_head();
    assert_eq!(to_head.header("content-length"), Some("1048576"));
    let empty = client.get("/empty");
    assert_eq!((empty.status, empty.header("content-length")), (404, Some("0")));
    for (path, status, length) in [("/none", 204, None), ("/same", 304, None), ("/reset", 205, Some("0"))] {
        let answer = client.send(format!("GET {path} HTTP/1.1\r\nHost: test\r\n\r\n")).answer_to_head();
        assert_eq!((answer.status, answer.header("content-length")), (status, length), "{path}");
    }
    assert_eq!(values(&client.get("/kind"), "content-type"), ["application/json"]);
}

#[test]
fn a_body_that_nobody_reads_ends_the_connection_only_if_it_is_long() {
    let front = front(vec![at("/go").redirect(303, "/there"), at("/").respond(200, "here", &[])]);
    let mut client = front.client();
    assert_eq!(client.post("/go", b"short").header("location"), Some("/there"));
    client.send("POST /go HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n");
    assert_eq!(client.answer().status, 303);
    assert_eq!(client.get("/").text(), "here", "it goes on");
    let long = pattern(600_000);
    let mut client = front.client();
    client.send(format!("POST /go HTTP/1.1\r\nHost: h\r\nContent-Length: {}\r\n\r\n", long.len()));
    assert_eq!(client.answer().status, 303, "it is not waited for");
    client.send(&long);
    assert!(client.rest().is_empty());
}

#[test]
fn a_redirect_is_given_whatever_the_limit_of_bodies_and_who_waits_for_100_is_told_at_once() {
    let tight = |at: At| at.with(|route| route.own.body = Some(Some(4)));
    let front = front(vec![tight(at("/go").redirect(307, "/there")), tight(at("/"))]);
    let post = |path: &str, more: &str| {
        let mut client = front.client();
        client.ask(&format!("POST {path} HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n{more}\r\n")).status
    };
    assert_eq!((post("/go", ""), post("/", "")), (307, 413));
    assert_eq!(post("/go", "Expect: 100-continue\r\n"), 307);
}

#[test]
fn a_split_by_chance_keeps_its_weights_and_a_side_without_one_gets_nothing() {
    let front = front(vec![at("/all").split([5, 0], None), at("/").split([80, 20], None)]);
    let mut client = front.client();
    for _ in 0..100 {
        assert_eq!(client.get("/all").text(), "Hello from one");
    }
    let count = (0..1_000).filter(|_| client.get("/").text() == "Hello from two").count();
    assert!((130..=270).contains(&count), "{count} of 1,000");
}

#[test]
fn a_client_stays_on_its_side_and_moves_only_to_the_side_that_grows() {
    let by = || Some(HashKey::Cookie("user".into()));
    let sides = |weights: [u32; 2]| -> Vec<bool> {
        let front = front(vec![at("/").split(weights, by())]);
        let mut client = front.client();
        let mut ask = |user: usize| {
            let cookie = format!("GET / HTTP/1.1\r\nHost: h\r\nCookie: user=u{user}\r\n\r\n");
            client.ask(&cookie).text() == "Hello from two"
        };
        let first: Vec<bool> = (0..200).map(&mut ask).collect();
        assert!((0..200).map(&mut ask).eq(first.iter().copied()), "the same again");
        first
    };
    let (before, after) = (sides([95, 5]), sides([80, 20]));
    assert!(before.iter().zip(&after).all(|(was, is)| is >= was), "nobody goes back");
    assert!(after.iter().filter(|&&two| two).count() > before.iter().filter(|&&two| two).count());
    // Whoever has no such cookie goes by address.
    let front = front(vec![at("/").split([50, 50], by())]);
    let mut client = front.client();
    let first = client.get("/").text();
    assert!((0..20).all(|_| client.get("/").text() == first));
}

#[test]
fn a_sticky_cookie_and_a_split_by_key_lead_to_the_same_backend_each_time() {
    let front = front_with(vec![at("/").split([50, 50], Some(HashKey::Header("x-user".into())))], |config| {
        for target in &mut config.targets {
            let cookie = format!("at-{}", target.name);
            target.sticky = Some(Sticky { cookie, key: b"key"[..].into(), is_fleeting: false });
        }
    });
    for user in 0..10 {
        let line = format!("X-User: {user}\r\n");
        let first = front.get("/", &line);
        let set = first.header("set-cookie").unwrap();
        let side = first.text().trim_start_matches("Hello from ").to_owned();
        assert!(set.starts_with(&format!("at-{side}=")), "{set}");
        let cookie = set.split(';').next().unwrap();
        let again = front.get("/", &format!("{line}Cookie: {cookie}\r\n"));
        assert_eq!((again.text(), again.header("set-cookie")), (first.text(), None));
    }
}

#[test]
fn a_backend_gets_the_path_that_the_route_says_and_a_client_leads_it_nowhere_else() {
    let front = front(vec![
        at("/api").prefix("/api", "/v2"),
        at("/strip").prefix("/strip", ""),
        matching("^/re/([a-z]+)/(.*)$").path("/$2/$1"),
        at("/head").path("/x/{header.x-a}"),
        at("/"),
    ]);
    for (path, lines, expected) in [
        ("/api/x?q=%41", "", "/v2/x?q=%41"),
        ("/api", "", "/v2"),
        ("/apiary", "", "/apiary"),
        ("/x/../api//y", "", "/v2//y"),
        ("/strip", "", "/"),
        ("/strip?a", "", "/?a"),
        ("http://h.example/strip/a", "", "/a"),
        ("/re/abc/d%20e?f", "", "/d%20e/abc?f"),
        ("/head", "X-A: a b?c#d\r\n", "/x/a%20b%3Fc%23d"),
    ] {
        let sent = front.sent(path, lines);
        assert_eq!(target(&sent), expected, "{path}");
        assert_eq!(sent.header("x-forwarded-host").len(), 1);
    }
    for (path, lines) in [
        ("/head", "X-A: ..\r\n"),
        ("/head", "X-A: %2e%2e/b\r\n"),
        ("/head", "X-A: a%00b\r\n"),
        ("/head", "X-A: %zz\r\n"),
        ("/re/a/..%2f", ""),
    ] {
        let answer = front.get(path, lines);
        assert_eq!(answer.status, 400, "{path} {lines}");
        assert!(answer.text().contains("bad_path"));
    }
    assert_eq!(front.one.take_requests(), [], "none of these came through");
}

#[test]
fn an_upgrade_goes_to_the_path_that_the_route_says_and_its_answer_is_edited() {
    let websocket = "Connection: Upgrade\r\nUpgrade: websocket\r\n";
    let front = front(vec![
        at("/ws")
            .prefix("/ws", "/upgrade")
            .request(&["X-Env: prod"])
            .answer(&["X-Via: {backend}", "-X-Backend"]),
        at("/no").path("/upgrade").with(|route| route.own.upgrade = Some(Vec::new())),
    ]);
    let mut client = front.client();
    client.send(format!("GET /ws HTTP/1.1\r\nHost: h\r\n{websocket}\r\n"));
    let answer = client.answer();
    assert_eq!((answer.status, answer.header("upgrade")), (101, Some("websocket")), "{}", answer.head);
    assert_eq!(answer.header("x-via"), Some(&*front.one.addr().to_string()));
    assert_eq!(answer.header("connection"), Some("Upgrade"));
    client.send("ping");
    assert_eq!(client.take(4), b"ping");
    let sent = front.one.take_requests().pop().unwrap();
    assert_eq!((&*target(&sent), sent.header("x-env")), ("/upgrade", vec!["prod".to_owned()]));
    let refused = front.get("/no", websocket);
    assert_eq!(refused.status, 426, "the route takes no upgrades, so the backend is asked for none");
}

#[test]
fn a_record_says_which_route_it_was_and_that_nobody_else_has_answered() {
    let routes = vec![at("/go").redirect(302, "/"), at("/own").respond(200, "hi", &[]), at("/api")];
    let mut log = None;
    let front = front_with(routes, |config| log = Some(LogFile::of(config, LogFormat::Json)));
    let mut client = front.client();
    for (path, status) in [("/go", 302), ("/own", 200), ("/api", 200), ("/nowhere", 404)] {
        assert_eq!(client.get(path).status, status);
    }
    drop(client);
    end(front.keel);
    let records = log.unwrap().records();
    let told: Vec<_> = records
        .iter()
        .map(|record| {
            let word = |key: &str| record[key].as_str().map(str::to_owned);
            (word("route"), word("target"), word("cause"), record["attempts"].as_u64())
        })
        .collect();
    let word = |word: &str| Some(word.to_owned());
    assert_eq!(
        told,
        [
            (word("/go"), None, None, Some(0)),
            (word("/own"), None, None, Some(0)),
            (word("/api"), word("one"), None, Some(1)),
            (None, None, word("no_route"), Some(0)),
        ]
    );
}
