//! Every answer of a hostile backend in `fixtures/http/answer`: the client sees a 502 or a visibly cut answer,
//! never a clean one that is wrong, and the next client sees nothing of it.

use std::collections::BTreeSet;
use std::time::Duration;

use fake_backend::{Behaviour, Ending, Fault};

use super::support::fixture::{self, Fixture};
use super::support::{Answer, Keel, recording};

const KEYS: &[&str] = &["rule", "what", "method", "ending", "client"];

#[test]
fn every_answer_is_seen_for_what_it_is_and_the_next_is_intact() {
    let backend = recording();
    let keel = Keel::with(&[&backend], |config| {
        config.workers = 1;
        config.targets[0].timeouts.first_byte = Duration::from_millis(200);
        config.targets[0].timeouts.idle = Duration::from_millis(200);
    });
    let fixtures = fixture::all("answer", KEYS);
    let rules: BTreeSet<u8> = fixtures.iter().flat_map(Fixture::rules).collect();
    assert!(rules.iter().copied().eq(16..=19), "every rule has a fixture: {rules:?}");
    for fixture in &fixtures {
        let name = &fixture.name;
        let ending = match fixture.value("ending") {
            "open" => Ending::KeepOpen,
            "close" => Ending::Close,
            "reset" => Ending::Reset,
            other => panic!("{name}: ending can't be `{other}`"),
        };
        let method = fixture.value("method");
        let mut client = keel.client();
        // A POST is not repeated when its backend closes; a first request makes sure of a pooled connection.
        assert_eq!(client.get("/").text(), "Hello from fake-1");
        let fault = Fault::Raw { bytes: fixture.bytes.clone(), ending };
        backend.behave(Behaviour::fault(fault));
        client.send(format!("{method} /bad HTTP/1.1\r\nHost: test\r\n\r\n"));
        let answer = loop {
            let answer = if method == "HEAD" { client.answer_to_head() } else { client.answer() };
            if !(100..200).contains(&answer.status) {
                break answer;
            }
        };
        backend.behave(Behaviour::default());
        judge(fixture, &answer, method);
        if answer.header("connection") == Some("close") || answer.cut {
            assert!(client.is_closed(), "{name}: bytes behind the end");
        } else {
            assert_eq!(client.get("/").text(), "Hello from fake-1", "{name}: the same client");
        }
        let mut next = keel.client();
        for _ in 0..2 {
            let answer = next.get("/");
            assert_eq!((answer.status, answer.text().as_str()), (200, "Hello from fake-1"), "behind {name}");
        }
    }
    assert_eq!(backend.stats().malformed, 0);
}

fn judge(fixture: &Fixture, answer: &Answer, method: &str) {
    let name = &fixture.name;
    let mut words = fixture.value("client").splitn(3, ' ');
    let (kind, second, third) = (words.next().unwrap(), words.next(), words.next());
    let cause = answer.header("proxy-status").and_then(|value| value.split_once("details="));
    let cause = cause.map(|(_, cause)| cause);
    match kind {
        "refused" => assert_eq!((answer.status, cause), (502, second), "{name}: {}", answer.head),
        "late" => assert_eq!((answer.status, cause), (504, second), "{name}: {}", answer.head),
        "broken" => {
            assert!(answer.cut || answer.status >= 502, "{name}: {} {}", answer.head, answer.text());
        }
        "whole" => {
            assert_eq!(Some(answer.status.to_string().as_str()), second, "{name}: {}", answer.head);
            assert_eq!(answer.text(), third.unwrap_or_default(), "{name}");
            assert!(!answer.cut && cause.is_none(), "{name}: {}", answer.head);
        }
        other => panic!("{name}: client can't be `{other}`"),
    }
    assert!(method == "HEAD" || kind != "refused" || answer.text().contains(second.unwrap()), "{name}");
    assert!(!answer.text().contains("127.0.0.1"), "{name}: {}", answer.text());
}

#[test]
fn what_a_backend_sends_before_it_is_asked_is_discarded() {
    let backend = recording();
    let keel = Keel::with(&[&backend], |config| config.workers = 1);
    let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello".to_vec();
    let mut bytes = answer.clone();
    bytes.extend_from_slice(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison");
    backend.behave(Behaviour::fault(Fault::Raw { bytes, ending: Ending::KeepOpen }).times(1));
    let mut client = keel.client();
    assert_eq!(client.get("/").text(), "hello");
    assert_eq!(client.get("/").text(), "Hello from fake-1");
    assert_eq!(backend.connections(), 2, "the dirty connection was not used again");
}

#[test]
fn answers_without_a_body_leave_their_connection_for_the_next_request() {
    let backend = recording();
    let keel = Keel::with(&[&backend], |config| config.workers = 1);
    let mut client = keel.client();
    for round in 0..3 {
        client.send("HEAD / HTTP/1.1\r\nHost: test\r\n\r\n");
        let head = client.answer_to_head();
        assert_eq!((head.status, head.header("content-length")), (200, Some("17")), "round {round}");
        assert_eq!(client.get("/status/204").status, 204);
        assert_eq!(client.get("/status/304").status, 304);
        assert_eq!(client.get("/bytes/0").status, 200);
    }
    assert_eq!((backend.requests(), backend.connections()), (12, 1));
}
