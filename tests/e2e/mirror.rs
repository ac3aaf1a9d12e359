//! Copies of requests: what the shadow gets, and what the client notices of it, which is nothing.

use evenkeel::message::Cause;
use fake_backend::Behaviour;

use super::mirror_lab::Scene;
use super::support::{chunked, eventually};

const POST: &str = "POST /upload?x=1 HTTP/1.1\r\nHost: shop.example\r\nX-Case: Kept\r\nCookie: a=b\r\n";

/// The lines of a head in order, without those that the proxy may write elsewhere.
fn lines(head: &str) -> Vec<&str> {
    head.lines().filter(|line| !line.starts_with("X-Evenkeel-Mirror: ")).collect()
}

#[test]
fn a_copy_has_the_head_and_the_body_that_the_backend_gets_and_a_mark() {
    let scene = Scene::new();
    let mut client = scene.client();
    client.send(format!(
        "{POST}Content-Length: 5\r\nExpect: x\r\nConnection: X-Gone\r\nX-Gone: 1\r\n\r\nhello"
    ));
    assert_eq!(client.answer().text(), "Hello from web");
    let copy = scene.answered(1).remove(0);
    let original = scene.web.take_requests().remove(0);
    assert_eq!((&*copy.body, &*original.body), (&b"hello"[..], &b"hello"[..]));
    assert_eq!(copy.header("X-Evenkeel-Mirror"), ["front/all"]);
    assert!(original.header("X-Evenkeel-Mirror").is_empty() && copy.header("Expect").is_empty());
    let (copied, sent) = (copy.head_text(), original.head_text());
    let sent: Vec<&str> = lines(&sent).into_iter().filter(|line| *line != "Expect: x").collect();
    assert_eq!(lines(&copied), sent);
    assert!(copied.contains("X-Forwarded-For: 127.0.0.1") && copied.contains("X-Request-Id: "), "{copied}");
}

#[test]
fn whatever_is_asked_is_copied_also_on_kept_and_pipelined_connections() {
    let scene = Scene::new();
    let mut client = scene.client();
    let head = "HEAD /h HTTP/1.1\r\nHost: a\r\n\r\n";
    let get = "GET /g HTTP/1.1\r\nHost: a\r\n\r\n";
    let empty = "PUT /e HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n";
    let body = chunked(b"0123456789", &[3, 1], "X-Sum: 7\r\n");
    let chunks = "POST /c HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
    client.send([get.as_bytes(), empty.as_bytes(), chunks.as_bytes(), &body, head.as_bytes()].concat());
    for _ in 0..3 {
        assert_eq!(client.answer().status, 200);
    }
    assert_eq!(client.answer_to_head().status, 200);
    let copies = scene.answered(4);
    // Copies do not wait for one another.
    for asked in [get, empty, chunks, head] {
        let line = asked.lines().next().unwrap_or_default();
        assert_eq!(copies.iter().filter(|copy| copy.head_text().starts_with(line)).count(), 1, "{line}");
    }
    let chunked = copies.iter().find(|copy| copy.head_text().starts_with("POST")).unwrap();
    assert_eq!((&*chunked.body, &*chunked.trailers), (&b"0123456789"[..], &b"X-Sum: 7\r\n"[..]));
    let opened = scene.shadow.connections();
    client.get("/again");
    scene.ended(5);
    assert_eq!(scene.shadow.connections(), opened, "connections are kept");
}

#[test]
fn a_body_of_64_kib_is_copied_and_a_longer_one_not() {
    let scene = Scene::new();
    let mut client = scene.client();
    let longest = vec![b'x'; 64 * 1024];
    let mut sent = 0;
    for (length, framing, told) in [
        (longest.len(), "length", None),
        (longest.len() + 1, "length", Some(Cause::MirrorTooLong)),
        (longest.len() - 64, "chunked", None),
        (longest.len() + 1, "chunked", Some(Cause::MirrorTooLong)),
    ] {
        let body = vec![b'x'; length];
        let request = match framing {
            "length" => [format!("{POST}Content-Length: {length}\r\n\r\n").as_bytes(), &body].concat(),
            _ => {
                let head = format!("{POST}Transfer-Encoding: chunked\r\n\r\n");
                [head.as_bytes(), &chunked(&body, &[20_000], "")].concat()
            }
        };
        assert_eq!(client.while_sending(&request, |client| client.answer().status), 200);
        sent += 1;
        let ended = scene.ended(sent);
        let copies = scene.shadow.take_requests();
        match told {
            None => assert_eq!(copies[0].body.len(), length, "{framing}"),
            Some(_) => assert!(copies.is_empty(), "{framing} {ended:?}"),
        }
        assert_eq!(scene.web.take_requests()[0].body.len(), length);
    }
    assert_eq!((scene.copies().answered(), scene.ended_with(Cause::MirrorTooLong)), (2, 2));
}

#[test]
fn a_share_of_the_requests_is_copied() {
    let scene = Scene::with("mirror: {target: shadow, share: 25%}", "", "");
    let mut client = scene.client();
    for _ in 0..2000 {
        assert_eq!(client.get("/").status, 200);
    }
    let chosen = scene.copies().chosen;
    // Six standard deviations.
    assert!((384..=616).contains(&chosen), "{chosen}");
    scene.ended(chosen);
    assert_eq!(scene.shadow.requests(), chosen);
}

#[test]
fn a_request_that_is_tried_again_is_copied_once() {
    let scene = Scene::with("mirror: {target: shadow}", "retries: {attempts: 3, on: [502, reset]},", "");
    scene.web.behave(Behaviour::status(502).times(1));
    let mut client = scene.client();
    client.send("PUT /a HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc");
    client.answer();
    let copies = scene.answered(1);
    assert_eq!((copies.len(), &*copies[0].body), (1, &b"abc"[..]));
}

#[test]
fn nothing_of_what_the_shadow_answers_reaches_the_client_or_counts_as_a_request() {
    let scene = Scene::with("mirror: {target: shadow}", "", "sticky: {cookie: S, key: 0123456789abcdef},");
    scene.shadow.behave(Behaviour::status(500));
    let answer = scene.client().get("/");
    assert_eq!((answer.status, answer.header("set-cookie")), (200, None));
    scene.answered(1);
    let (web, shadow) = (scene.keel.server.targets()[0].id, scene.keel.server.targets()[1].id);
    let requests = |of| scene.keel.server.readings().target(of).map(|target| target.traffic.requests());
    // The client has its answer a moment before it is counted.
    eventually("the request is counted", || requests(web) == Some(1));
    let readings = scene.keel.server.readings();
    assert_eq!(readings.target(shadow).map(|target| target.traffic.requests()), Some(0));
    assert_eq!(readings.errors().count(), 0);
}

#[test]
fn what_is_a_copy_already_or_switches_protocols_is_not_copied() {
    let scene = Scene::new();
    let mut client = scene.client();
    client.send("GET / HTTP/1.1\r\nHost: a\r\nX-Evenkeel-Mirror: front/all\r\n\r\n");
    client.answer();
    let original = scene.web.take_requests().remove(0);
    assert!(original.header("x-evenkeel-mirror").is_empty(), "nobody may mark what is none");
    client.send("GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n");
    client.answer();
    assert_eq!(scene.copies().chosen, 0);
}
