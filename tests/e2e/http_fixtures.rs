//! Every hostile or odd request of `fixtures/http/request`, sent to a running server.
//!
//! The verdict is in the file. Whatever happened, the next request must be served intact, and the backend, which
//! judges what it receives, must never have seen a malformed request.

use std::collections::BTreeSet;

use fake_backend::Running;

use super::support::fixture::{self, Fixture};
use super::support::{Answer, Client, Keel, eventually, recording};

const KEYS: &[&str] =
    &["rule", "what", "status", "cause", "backend", "sees", "hides", "body", "trailer", "answers"];

/// What there is in the fixtures but not in any default: limits small enough to be passed in a file.
fn serving(backend: &Running) -> Keel {
    Keel::with(&[backend], |config| {
        config.workers = 1;
        config.listeners[0].limits.head_size = 4096;
        config.listeners[0].limits.headers = 50;
        config.listeners[0].limits.body = Some(10_000);
    })
}

#[test]
fn every_request_gets_its_verdict_and_the_next_is_intact() {
    let backend = recording();
    let keel = serving(&backend);
    let fixtures = fixture::all("request", KEYS);
    let rules: BTreeSet<u8> = fixtures.iter().flat_map(Fixture::rules).collect();
    assert!(rules.iter().copied().eq(1..=15), "every rule has a fixture: {rules:?}");
    for fixture in &fixtures {
        let name = &fixture.name;
        let before = (backend.requests(), complete(&backend));
        let mut client = keel.client();
        client.send(&fixture.bytes);
        let count: usize = fixture.find("answers").map_or(1, |count| count.parse().unwrap());
        let to_head = fixture.bytes.starts_with(b"HEAD ");
        for _ in 0..count {
            let answer = if to_head { client.answer_to_head() } else { client.final_answer() };
            judge(fixture, &answer);
        }
        match fixture.value("backend") {
            "untouched" => {
                assert_eq!(backend.requests(), before.0, "{name}: something reached the backend");
                assert!(client.is_closed(), "{name}: the connection stays open");
            }
            "cut" => {
                assert!(client.is_closed(), "{name}: the connection stays open");
                assert_eq!(complete(&backend), before.1, "{name}: a whole request reached the backend");
            }
            "served" => {
                let now = before.1 + count;
                eventually(name, || complete(&backend) == now);
                assert_eq!(backend.requests(), before.0 + count as u64, "{name}");
                judge_forwarded(fixture, &backend);
                client.finish_sending();
                assert!(client.is_closed(), "{name}: an answer too many");
            }
            other => panic!("{name}: backend can't be `{other}`"),
        }
        next_is_intact(&keel, &backend, name);
    }
    assert_eq!(backend.stats().malformed, 0);
}

#[test]
fn what_is_refused_in_the_head_costs_no_connection_to_the_backend() {
    let backend = recording();
    let keel = serving(&backend);
    keel.client().get("/");
    let fixtures = fixture::all("request", KEYS);
    let refused: Vec<_> = fixtures.iter().filter(|f| f.value("backend") == "untouched").collect();
    assert!(refused.len() > 50, "saw {}", refused.len());
    for fixture in &refused {
        let mut client = keel.client();
        client.send(&fixture.bytes);
        client.rest();
        assert_eq!(keel.client().get("/").text(), "Hello from fake-1", "{}", fixture.name);
    }
    assert_eq!(backend.connections(), 1, "the one pooled connection served every good request");
    assert_eq!(backend.requests(), refused.len() as u64 + 1);
}

/// Requests that arrived whole.
fn complete(backend: &Running) -> usize {
    backend.last_requests().iter().filter(|request| request.complete).count()
}

fn judge(fixture: &Fixture, answer: &Answer) {
    let name = &fixture.name;
    assert_eq!(answer.status.to_string(), fixture.value("status"), "{name}: {}", answer.head);
    assert!(!answer.cut, "{name}: the answer is cut");
    let cause = answer.header("proxy-status").and_then(|value| value.split_once("details="));
    assert_eq!(cause.map(|(_, cause)| cause), fixture.find("cause"), "{name}: {}", answer.head);
    if let Some((_, cause)) = cause {
        assert_eq!(answer.header("connection"), Some("close"), "{name}");
        assert!(answer.header("date").is_some() && answer.header("x-request-id").is_some(), "{name}");
        assert!(answer.text().contains(cause), "{name}: {}", answer.text());
    }
}

fn judge_forwarded(fixture: &Fixture, backend: &Running) {
    let name = &fixture.name;
    let Some(seen) = backend.last_requests().pop() else { panic!("{name}: nothing was recorded") };
    let head = seen.head_text();
    for line in fixture.all("sees") {
        assert!(head.split("\r\n").any(|seen| seen.starts_with(line)), "{name}: no `{line}` in\n{head}");
    }
    for text in fixture.all("hides") {
        let text = text.replace("\\r", "\r");
        assert!(
            !head.to_ascii_lowercase().contains(&text.to_ascii_lowercase()),
            "{name}: `{text}` in\n{head}"
        );
    }
    if let Some(body) = fixture.find("body") {
        let body = body.replace("\\r\\n", "\r\n");
        assert_eq!(String::from_utf8_lossy(&seen.body), body, "{name}");
    }
    if let Some(trailer) = fixture.find("trailer") {
        assert_eq!(String::from_utf8_lossy(&seen.trailers).trim_end(), trailer, "{name}");
    }
}

fn next_is_intact(keel: &Keel, backend: &Running, name: &str) {
    let before = complete(backend);
    let mut client: Client = keel.client();
    for _ in 0..2 {
        let answer = client.get("/next");
        assert_eq!((answer.status, answer.text().as_str()), (200, "Hello from fake-1"), "behind {name}");
    }
    let seen = backend.take_requests();
    let heads: Vec<_> = seen.iter().rev().take(2).map(|request| request.head_text()).collect();
    assert!(
        heads.iter().all(|head| head.starts_with("GET /next HTTP/1.1\r\nHost: test\r\n")),
        "behind {name}"
    );
    assert_eq!(seen.iter().filter(|request| request.complete).count(), before + 2, "behind {name}");
}
