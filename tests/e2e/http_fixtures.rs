//! Every hostile or odd request of `fixtures/http/request`, sent to a running server.
//!
//! The verdict is in the file. Whatever happened, what stands around it must be intact (see `support::around`), and the
//! backend, which judges what it receives, must never have seen a malformed request.

use std::collections::BTreeSet;

use fake_backend::{Recorded, Running};

use super::support::around::{Around, intact};
use super::support::fixture::{self, Fixture};
use super::support::{Answer, Client, Keel, eventually, recording};

/// What no fixture may ever get served.
const SMUGGLED: &str = "GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n";

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
fn every_request_gets_its_verdict_and_what_stands_around_it_is_intact() {
    let backend = recording();
    let keel = serving(&backend);
    let fixtures = fixture::all("request", fixture::REQUEST);
    let rules: BTreeSet<u8> = fixtures.iter().flat_map(Fixture::rules).collect();
    assert!(rules.iter().copied().eq(1..=15), "every rule has a fixture: {rules:?}");
    fixture::each(&fixtures, |fixture| {
        exchange(&keel, &backend, fixture, |client| {
            client.send(&fixture.bytes);
        });
    });
    assert_eq!((backend.stats().malformed, keel.server.readings().panics), (0, 0));
}

#[test]
fn a_request_that_drips_in_gets_the_same_verdict() {
    let backend = recording();
    let keel = serving(&backend);
    let mut all = fixture::all("request", fixture::REQUEST);
    // What comes byte by byte may come behind the answer, and is the next request then.
    all.retain(|fixture| fixture.name != "15-upgrade-answered-200");
    fixture::each(&all, |fixture| {
        exchange(&keel, &backend, fixture, |client| {
            // Long ones in larger pieces, so that there are never many.
            for piece in fixture.bytes.chunks(fixture.bytes.len() / 500 + 1) {
                client.send(piece);
            }
        });
    });
    assert_eq!((backend.stats().malformed, keel.server.readings().panics), (0, 0));
}

#[test]
fn nothing_that_follows_a_refused_request_is_served() {
    let backend = recording();
    let keel = serving(&backend);
    let mut refused = fixture::all("request", fixture::REQUEST);
    refused.retain(|fixture| fixture.value("backend") != "served");
    assert!(refused.len() > 150, "saw {}", refused.len());
    fixture::each(&refused, |fixture| {
        let name = &fixture.name;
        let around = Around::begin(&keel, &backend, name);
        let mut client = keel.client();
        client.send([&fixture.bytes, SMUGGLED.repeat(3).as_bytes()].concat());
        let came = String::from_utf8_lossy(&client.rest()).into_owned();
        assert_eq!(came.matches("\nProxy-Status: ").count(), 1, "{name}: one answer: {came}");
        let seen = backend.take_requests();
        assert!(seen.iter().all(|seen| !seen.complete), "{name}: {seen:?}");
        around.end();
    });
}

#[test]
fn what_is_refused_in_the_head_costs_no_connection_to_the_backend() {
    let backend = recording();
    let keel = serving(&backend);
    keel.client().get("/");
    let fixtures = fixture::all("request", fixture::REQUEST);
    let refused: Vec<_> = fixtures.iter().filter(|f| f.value("backend") == "untouched").collect();
    assert!(refused.len() > 100, "saw {}", refused.len());
    for fixture in &refused {
        let mut client = keel.client();
        client.send(&fixture.bytes);
        client.rest();
        assert_eq!(keel.client().get("/").text(), "Hello from fake-1", "{}", fixture.name);
    }
    assert_eq!(backend.connections(), 1, "the one pooled connection served every good request");
    assert_eq!(backend.requests(), refused.len() as u64 + 1);
}

/// One hostile exchange and all that is to be said of it.
fn exchange(keel: &Keel, backend: &Running, fixture: &Fixture, send: impl FnOnce(&mut Client)) {
    let name = &fixture.name;
    let around = Around::begin(keel, backend, name);
    let before = backend.requests();
    let mut client = keel.client();
    send(&mut client);
    let count: usize = fixture.find("answers").map_or(1, |count| count.parse().unwrap());
    let to_head = fixture.bytes.starts_with(b"HEAD ");
    let mut closing = false;
    for _ in 0..count {
        let answer = if to_head { client.answer_to_head() } else { client.final_answer() };
        judge(fixture, &answer);
        closing = answer.header("connection") == Some("close");
    }
    match fixture.value("backend") {
        "untouched" => {
            assert!(client.is_closed(), "{name}: the connection stays open");
            assert_eq!(backend.requests(), before, "{name}: something reached the backend");
            let pooled = around.pooled;
            assert_eq!(around.end(), pooled, "{name}: the pooled connection is left alone");
        }
        "cut" => {
            assert!(client.is_closed(), "{name}: the connection stays open");
            let seen = backend.take_requests();
            assert!(seen.iter().all(|seen| !seen.complete), "{name}: a whole request reached the backend");
            let next = around.end();
            assert!(
                seen.iter().all(|seen| seen.connection != next),
                "{name}: a cut connection was used again"
            );
        }
        "served" => {
            eventually(name, || backend.last_requests().iter().filter(|seen| seen.complete).count() == count);
            let seen = backend.take_requests();
            assert_eq!(seen.len(), count, "{name}: {seen:?}");
            assert_eq!(backend.requests(), before + count as u64, "{name}");
            let Some(last) = seen.last() else { panic!("{name}: nothing was recorded") };
            judge_forwarded(fixture, last);
            if closing {
                assert!(client.is_closed(), "{name}: an answer too many");
            } else {
                intact(&mut client, backend, &format!("same-{name}"));
                client.finish_sending();
                assert!(client.is_closed(), "{name}: an answer too many");
            }
            assert_eq!(around.end(), last.connection, "{name}: its connection serves on");
        }
        other => panic!("{name}: backend can't be `{other}`"),
    }
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

fn judge_forwarded(fixture: &Fixture, seen: &Recorded) {
    let name = &fixture.name;
    let head = seen.head_text();
    for line in fixture.texts("sees") {
        assert!(head.split("\r\n").any(|seen| seen.starts_with(&line)), "{name}: no `{line}` in\n{head}");
    }
    for text in fixture.texts("hides") {
        assert!(
            !head.to_ascii_lowercase().contains(&text.to_ascii_lowercase()),
            "{name}: `{text}` in\n{head}"
        );
    }
    for body in fixture.texts("body") {
        assert_eq!(String::from_utf8_lossy(&seen.body), body, "{name}");
    }
    for trailer in fixture.texts("trailer") {
        assert_eq!(String::from_utf8_lossy(&seen.trailers).trim_end(), trailer, "{name}");
    }
}
