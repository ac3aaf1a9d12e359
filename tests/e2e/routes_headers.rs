//! Header lines that routes edit, in both directions, over raw sockets: nothing of a client ends a line.

use std::time::Duration;

use evenkeel::config::model::Sticky;
use evenkeel::config::model::resilience::Hedging;
use evenkeel::config::model::route::RetryOn;
use evenkeel::config::model::{AccessList, GrpcStatuses};
use fake_backend::{Behaviour, Ending, Fake, Fault, Running};

use super::route_lab::{at, front, front_with, lines, matching, target, values};
use super::support::{self, eventually};

#[test]
fn requests_are_edited_in_order_and_other_lines_stay_as_they_are() {
    let front = front(vec![
        at("/edit").request(&[
            "X-Env: prod",
            "+X-Tag: a",
            "+x-tag: {client_ip}",
            "-cookie",
            "X-Path: {path_only}",
        ]),
        at("/"),
    ]);
    let theirs = "X-ENV: theirs\r\nX-tag: t\r\nCOOKIE: a=b\r\nX-Other: 1\r\nx_env: theirs\r\nx-Env: more\r\n";
    let sent = front.sent("/edit/x?y", theirs);
    let text = sent.head_text();
    let all = lines(&text);
    let place = |name: &str| all.iter().position(|(key, _)| *key == name);
    assert_eq!(sent.header("x-env"), ["prod"], "{text}");
    assert_eq!(sent.header("x-tag"), ["t", "a", "127.0.0.1"]);
    assert!(sent.header("cookie").is_empty() && sent.header("x_env").is_empty(), "{text}");
    assert_eq!(sent.header("x-path"), ["/edit/x"]);
    assert!(place("X-tag") < place("X-Other") && place("X-Other") < place("X-Env"), "{text}");
    assert!(text.contains("\r\nx-tag: 127.0.0.1\r\n") && text.ends_with("\r\n\r\n"));
    let plain = front.sent("/", theirs);
    assert_eq!((plain.header("x-env").len(), plain.header("cookie").len()), (2, 1));
}

#[test]
fn a_route_has_the_last_word_about_lines_of_ours() {
    let front = front(vec![at("/").request(&[
        "-Via",
        "X-Forwarded-Proto: https",
        "X-Forwarded-Prefix: /api",
        "-X-Forwarded-For",
        "+X-Request-Id: {id}",
    ])]);
    let sent =
        front.sent("/", "X-Forwarded-Proto: ftp\r\nX-Forwarded-Prefix: /evil\r\nConnection: keep-alive\r\n");
    assert_eq!(sent.header("x-forwarded-proto"), ["https"]);
    assert_eq!(sent.header("x-forwarded-prefix"), ["/api"]);
    assert!(sent.header("via").is_empty() && sent.header("x-forwarded-for").is_empty());
    let ids = sent.header("x-request-id");
    assert!(ids.len() == 2 && ids[0] == ids[1], "{ids:?}");
}

#[test]
fn answers_are_edited_whoever_gives_them() {
    let edits = [
        "-Server",
        "-Set-Cookie",
        "Strict-Transport-Security: max-age=1",
        "X-From: {target}/{backend}",
        "X-Backend: b",
    ];
    let denied = AccessList {
        name: None,
        allow: Vec::new(),
        deny: vec!["127.0.0.0/8".parse().unwrap()],
        is_closed: false,
        status: Some(403),
    };
    let front = front_with(
        vec![
            at("/go").redirect(302, "/").answer(&edits),
            at("/own").respond(200, "hi", &[("X-Backend", "ours")]).answer(&edits),
            at("/denied").answer(&edits).with(|route| route.access = vec![denied.into()]),
            at("/gone").to("two").answer(&edits),
            at("/tight").answer(&edits).with(|route| route.own.body = Some(Some(1))),
            at("/bad").path("/{query}").answer(&edits),
            at("/").answer(&edits),
        ],
        |config| {
            config.targets[0].sticky =
                Some(Sticky { cookie: "at".into(), key: b"key"[..].into(), is_fleeting: false });
        },
    );
    front.two.stop_accepting();
    let from = format!("one/{}", front.one.addr());
    let post = "POST /tight HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nab";
    for (answer, status, from) in [
        (front.get("/", ""), 200, &*from),
        (front.get("/go", ""), 302, "/"),
        (front.get("/own", ""), 200, "/"),
        (front.get("/denied", ""), 403, "/"),
        (front.get("/gone", ""), 503, "two/"),
        (front.client().ask(post), 413, "one/"),
        (front.get("/bad?..", ""), 400, "one/"),
    ] {
        assert_eq!(answer.status, status, "{}", answer.head);
        assert_eq!(values(&answer, "strict-transport-security"), ["max-age=1"], "{}", answer.head);
        assert_eq!(values(&answer, "x-from"), [from], "{}", answer.head);
        assert_eq!(values(&answer, "x-backend"), ["b"], "{}", answer.head);
        assert!(values(&answer, "set-cookie").is_empty(), "{}", answer.head);
    }
}

#[test]
fn what_a_backend_nominates_in_connection_does_not_take_a_line_of_the_route_away() {
    let front = front(vec![at("/").answer(&["Strict-Transport-Security: max-age=1", "X-B: ours"])]);
    let answer = "HTTP/1.1 200 OK\r\nConnection: close, strict-transport-security, x-b, x-c\r\nX-B: theirs\r\nX-C: 1\r\nContent-Length: 2\r\n\r\nok";
    let raw = Fault::Raw { bytes: answer.as_bytes().to_vec(), ending: Ending::Close };
    front.one.behave(Behaviour::fault(raw).times(1));
    let answer = front.get("/", "");
    assert_eq!(values(&answer, "strict-transport-security"), ["max-age=1"], "{}", answer.head);
    assert_eq!((values(&answer, "x-b"), values(&answer, "x-c")), (vec!["ours"], vec![]));
    assert_eq!(answer.text(), "ok");
}

#[test]
fn interim_answers_are_not_edited() {
    let front = front(vec![at("/").answer(&["X-A: 1"])]);
    let mut client = front.client();
    client.send("GET /early-hints HTTP/1.1\r\nHost: h\r\n\r\n");
    let hints = client.answer();
    assert_eq!((hints.status, hints.header("x-a")), (103, None), "{}", hints.head);
    let answer = client.answer();
    assert_eq!((answer.status, answer.header("x-a")), (200, Some("1")));
}

#[test]
fn each_request_of_a_connection_gets_the_edits_of_its_route_also_when_they_come_at_once() {
    let front = front(vec![
        at("/a").request(&["X-R: a"]).answer(&["X-A: a"]),
        at("/b").to("two").prefix("/b", "").answer(&["X-A: {path_only}"]),
        at("/c").redirect(302, "/{path_only}"),
        at("/"),
    ]);
    let mut client = front.client();
    let paths = ["/a/1", "/b/2", "/c", "/", "/b", "/a", "/c/3", "/"];
    for together in [false, true] {
        let request = |path: &str| format!("GET {path} HTTP/1.1\r\nHost: h\r\n\r\n");
        if together {
            client.send(paths.map(request).concat());
        }
        for path in paths {
            if !together {
                client.send(request(path));
            }
            let answer = client.answer();
            let expected = match &path[..2.min(path.len())] {
                "/a" => (200, Some("a")),
                "/b" => (200, Some(path)),
                "/c" => (302, None),
                _ => (200, None),
            };
            assert_eq!((answer.status, answer.header("x-a")), expected, "{path}: {}", answer.head);
        }
    }
    let sent: Vec<_> = front.one.take_requests().iter().map(|one| (target(one), one.header("x-r"))).collect();
    let expected = ["/a/1", "/", "/a", "/"]
        .map(|path| (path.to_owned(), if path.starts_with("/a") { vec!["a".to_owned()] } else { vec![] }));
    assert_eq!(sent, [expected.clone(), expected].concat());
    assert_eq!(front.two.take_requests().iter().map(target).collect::<Vec<_>>(), ["/2", "/", "/2", "/"]);
}

#[test]
fn a_retry_carries_the_same_path_and_lines_as_the_first_attempt() {
    let second = Fake::http("second").record().start_in_thread().unwrap();
    let route = at("/api").prefix("/api", "/v2").request(&["X-Id: {id}", "-X-Secret"]).with(|route| {
        let on = RetryOn {
            connect: true,
            reset: true,
            timeout: false,
            statuses: vec![418..=418],
            grpc: GrpcStatuses::default(),
        };
        (route.own.attempts, route.own.retry_on) = (Some(2), Some(on));
    });
    let front =
        front_with(vec![route, at("/once").with(|route| route.own.attempts = Some(1)), at("/")], |config| {
            config.targets[0].resilience.retries = None;
            config.targets[0].backends.push(support::backend(second.addr()));
        });
    front.one.behave(Behaviour::status(418));
    second.behave(Behaviour::status(418).times(1));
    // Whichever comes first is tried again elsewhere: the target alone would not do that.
    let post = |path: &str| {
        let body = "X-Secret: s\r\nContent-Length: 4\r\n\r\nbody";
        front.client().ask(&format!("PUT {path} HTTP/1.1\r\nHost: h\r\n{body}")).status
    };
    post("/api/x?q");
    let seen = [front.one.take_requests(), second.take_requests()].concat();
    let same: Vec<_> = seen.iter().map(|one| (target(one), one.header("x-id"), one.body.clone())).collect();
    assert_eq!(same.len(), 2, "{same:?}");
    assert_eq!(same[0], same[1]);
    assert_eq!((&*same[0].0, &*same[0].2), ("/v2/x?q", &b"body"[..]));
    assert!(seen.iter().all(|one| one.header("x-secret").is_empty()));
    assert_eq!(seen.iter().filter(|one| one.header("retry-attempt") == ["1"]).count(), 1);
    post("/once");
    post("/");
    assert_eq!(front.one.take_requests().len() + second.take_requests().len(), 2);
}

#[test]
fn a_hedged_attempt_carries_the_same_path_and_lines_too() {
    let second = Fake::http("second").record().start_in_thread().unwrap();
    let route = at("/api").prefix("/api", "").request(&["X-Id: {id}"]);
    let front = front_with(vec![route], |config| {
        let hedging = Hedging { budget: 100, ..Hedging::default() };
        config.workers = 1;
        config.targets[0].resilience.hedging = Some(hedging);
        config.targets[0].resilience.outlier = None;
        config.targets[0].backends.push(support::backend(second.addr()));
    });
    let mut client = front.client();
    for _ in 0..200 {
        assert_eq!(client.get("/api/quick").status, 200);
    }
    let slow = || Behaviour::default().latency(Duration::from_millis(200));
    front.one.behave(slow());
    second.behave(slow());
    let mut seen = Vec::new();
    // How long answers take is looked at once in a second.
    eventually("both were asked", || {
        let _ = [&front.one, &second].map(Running::take_requests);
        assert_eq!(client.get("/api/x?y").status, 200);
        seen = [&front.one, &second].map(Running::take_requests).concat();
        seen.len() == 2
    });
    assert_eq!(seen.iter().map(target).collect::<Vec<_>>(), ["/x?y", "/x?y"]);
    assert_eq!(seen[0].header("x-id"), seen[1].header("x-id"));
    assert_eq!(seen[0].header("x-id").len(), 1);
}

/// What a client may try to smuggle through a value.
const HOSTILE: [&[u8]; 10] = [
    b"a\rX-Evil: 1",
    b"a\nX-Evil: 1",
    b"a\r\nX-Evil: 1",
    b"a\0b",
    b"%0d%0aX-Evil:%201",
    b"%00",
    b"a b",
    b"\xe9\x80",
    b"a\tb",
    b"\x1b[2J",
];

#[test]
fn nothing_that_a_client_sends_becomes_a_second_line() {
    let uses = "{header.x-in}|{cookie.in}|{query}|$1";
    let front = front(vec![
        matching("^/go/(.*)$")
            .redirect(302, &format!("https://h/{uses}"))
            .answer(&["X-Out: {header.x-in}{cookie.in}"]),
        matching("^/own/(.*)$").respond(200, "own", &[("X-Own", uses)]).answer(&["X-Out: {path}"]),
        matching("^/to/(.*)$")
            .path("/to/$1/{cookie.in}")
            .request(&[&format!("X-Out: {uses}")])
            .answer(&[&format!("X-Out: {uses}")]),
    ]);
    let mut refused = 0;
    for route in ["go", "own", "to"] {
        for hostile in HOSTILE {
            // A client that ends its own line in the head begins its own next one.
            let ends_line = hostile.contains(&b'\n');
            for place in 0..if ends_line { 2 } else { 4 } {
                let at = |number: usize| if place == number { hostile } else { b"ok" };
                let parts: [&[u8]; 9] = [
                    b"GET /",
                    route.as_bytes(),
                    b"/",
                    at(0),
                    b"?",
                    at(1),
                    b" HTTP/1.1\r\nHost: h\r\nX-In: ",
                    at(2),
                    b"\r\nCookie: in=",
                ];
                let request = [&parts.concat()[..], at(3), b"\r\nConnection: close\r\n\r\n"].concat();
                let mut client = front.client();
                client.send(&request);
                let all = client.rest();
                let end = all.windows(4).position(|four| four == b"\r\n\r\n").expect("a whole head");
                let head = &all[..end];
                let case = format!("{route} {place} {}: {}", hostile.escape_ascii(), head.escape_ascii());
                assert!(!head.contains(&0) && !head.contains(&0x1b), "{case}");
                let lines = head.split(|&byte| byte == b'\n').skip(1);
                for line in lines {
                    let line = line.strip_suffix(b"\r").unwrap_or(line);
                    assert!(!line.contains(&b'\r'), "{case}");
                    assert!(!line.to_ascii_lowercase().starts_with(b"x-evil"), "{case}");
                    if let Some(to) = line.strip_prefix(b"Location: ") {
                        assert!(to.iter().all(u8::is_ascii_graphic), "{case}");
                    }
                }
                refused += usize::from(head.starts_with(b"HTTP/1.1 400"));
                for sent in front.one.take_requests() {
                    let text = sent.head_text().to_ascii_lowercase();
                    assert!(!text.contains("\nx-evil") && !text.contains("\rx-evil"), "{case}: {text}");
                    assert!(
                        !sent.head.contains(&0) && target(&sent).bytes().all(|byte| byte.is_ascii_graphic()),
                        "{case}"
                    );
                }
            }
        }
    }
    assert!(refused > 20, "{refused}");
    assert_eq!(front.one.stats().malformed, 0);
}
