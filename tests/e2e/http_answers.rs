//! Every answer of a hostile backend in `fixtures/http/answer`: the client sees a 502 or a visibly cut answer,
//! never a clean one that is wrong, and nobody else sees anything of it (see `support::around`).

use std::collections::BTreeSet;
use std::time::Duration;

use evenkeel::message::Cause;
use fake_backend::{Behaviour, Ending, Fault, Running};

use super::support::around::{Around, intact};
use super::support::fixture::{self, Fixture};
use super::support::{Answer, Keel, PATIENCE, eventually, recording};

fn serving(backend: &Running, patience: Duration) -> Keel {
    Keel::with(&[backend], |config| {
        config.workers = 1;
        config.targets[0].timeouts.first_byte = patience;
        config.targets[0].timeouts.idle = patience;
    })
}

/// The files, those apart in which the backend falls silent: only a deadline ends them.
fn fixtures() -> (Vec<Fixture>, Vec<Fixture>) {
    fixture::all("answer", fixture::ANSWER).into_iter().partition(|fixture| {
        let client = fixture.value("client");
        client.starts_with("late ") || client.ends_with(" answer_stalled")
    })
}

#[test]
fn every_answer_is_seen_for_what_it_is_and_what_stands_around_it_is_intact() {
    let backend = recording();
    let keel = serving(&backend, PATIENCE);
    let (silent, fixtures) = fixtures();
    let rules: BTreeSet<u8> = fixtures.iter().chain(&silent).flat_map(Fixture::rules).collect();
    assert!(rules.iter().copied().eq(16..=19), "every rule has a fixture: {rules:?}");
    fixture::each(&fixtures, |fixture| match fixture.value("ending") {
        // What stays open may be silent, or serve whatever comes next: a connection with bytes left over would then
        // give somebody the answer to another's request.
        "open" => {
            exchange(&keel, &backend, fixture, Ending::KeepOpen, false);
            exchange(&keel, &backend, fixture, Ending::Serve, false);
        }
        "serve" => exchange(&keel, &backend, fixture, Ending::Serve, false),
        "close" => exchange(&keel, &backend, fixture, Ending::Close, false),
        "reset" => exchange(&keel, &backend, fixture, Ending::Reset, false),
        other => panic!("{}: ending can't be `{other}`", fixture.name),
    });
    assert_eq!((backend.stats().malformed, keel.server.readings().panics), (0, 0));
}

#[test]
fn an_answer_that_falls_silent_ends_and_what_stands_around_it_is_intact() {
    let backend = recording();
    let keel = serving(&backend, Duration::from_secs(2));
    let (silent, _) = fixtures();
    assert!(silent.len() >= 8, "saw {}", silent.len());
    fixture::each(&silent, |fixture| {
        assert_eq!(fixture.value("ending"), "open", "{}", fixture.name);
        exchange(&keel, &backend, fixture, Ending::KeepOpen, false);
    });
    assert_eq!((backend.stats().malformed, keel.server.readings().panics), (0, 0));
}

#[test]
fn an_answer_that_drips_in_is_seen_for_the_same() {
    let backend = recording();
    let keel = serving(&backend, PATIENCE);
    let (_, mut fixtures) = fixtures();
    // What is behind a reset arrives or not; what comes late, behind a whole answer, finds its connection in the pool.
    // So does the close behind an answer to HEAD, and the next request meets it if this machine is busy.
    let is_met = |fixture: &Fixture| fixture.value("method") == "HEAD" && fixture.value("ending") == "close";
    fixtures
        .retain(|fixture| fixture.value("ending") != "reset" && fixture.rules() != [19] && !is_met(fixture));
    fixture::each(&fixtures, |fixture| {
        let ending = if fixture.value("ending") == "close" { Ending::Close } else { Ending::Serve };
        exchange(&keel, &backend, fixture, ending, true);
    });
    assert_eq!((backend.stats().malformed, keel.server.readings().panics), (0, 0));
}

/// One hostile exchange and all that is to be said of it.
fn exchange(keel: &Keel, backend: &Running, fixture: &Fixture, ending: Ending, drips: bool) {
    let name = &fixture.name;
    let around = Around::begin(keel, backend, name);
    let fault = Fault::Raw { bytes: fixture.bytes.clone(), ending };
    let mut behaviour = Behaviour::fault(fault);
    if drips {
        behaviour = behaviour.pace(fixture.bytes.len() as u64 / 20 + 1, Duration::from_millis(1));
    }
    let ended = || {
        let readings = keel.server.readings();
        Cause::ALL.iter().map(|&cause| readings.ended_with(cause)).collect::<Vec<_>>()
    };
    let before = ended();
    backend.behave(behaviour);
    let method = fixture.value("method");
    let mut client = keel.client();
    client.send(format!("{method} /bad HTTP/1.1\r\nHost: test\r\n\r\n"));
    let answer = loop {
        let answer = if method == "HEAD" { client.answer_to_head() } else { client.answer() };
        if !(100..200).contains(&answer.status) {
            break answer;
        }
    };
    backend.behave(Behaviour::default());
    let cause = judge(fixture, &answer, method);
    eventually(name, || ended()[cause as usize] > before[cause as usize]);
    let seen = backend.take_requests();
    // The pooled connection is where it happens; a GET that is closed without a byte goes out once more.
    assert_eq!(seen.first().map(|seen| seen.connection), Some(around.pooled), "{name}");
    assert!(seen.len() <= 2 && seen.iter().all(|seen| seen.head.ends_with(b"\r\n\r\n")), "{name}: {seen:?}");
    if answer.header("connection") == Some("close") || answer.cut {
        assert!(client.is_closed(), "{name}: bytes behind the end");
    } else {
        intact(&mut client, backend, &format!("same-{name}"));
    }
    let next = around.end();
    let reused = seen.iter().any(|seen| seen.connection == next);
    assert_eq!(reused, fixture.find("reused") == Some("yes"), "{name}: used again");
}

/// Holds the client's answer against the file, and gives the cause that must have been written down.
fn judge(fixture: &Fixture, answer: &Answer, method: &str) -> Cause {
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
    assert!(!answer.text().contains("poison"), "{name}: {}", answer.text());
    if kind == "whole" {
        return Cause::Done;
    }
    let found = Cause::ALL.iter().find(|cause| Some(cause.token()) == second);
    *found.unwrap_or_else(|| panic!("{name}: no cause is called {second:?}"))
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
fn what_a_backend_sends_into_a_pooled_connection_is_discarded() {
    let (ask, asked) = std::sync::mpsc::channel();
    let (tell, told) = std::sync::mpsc::channel();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let backend = std::thread::spawn(move || {
        let mut connections = Vec::new();
        for text in ["first", "second"] {
            let mut socket = super::support::accept(&listener);
            let mut seen = Vec::new();
            while !seen.ends_with(b"\r\n\r\n") {
                let mut space = [0u8; 1000];
                let count = std::io::Read::read(&mut socket, &mut space).unwrap();
                assert!(count > 0, "it was closed");
                seen.extend_from_slice(&space[..count]);
            }
            let answer = |text: &str| {
                let length = text.len();
                format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{text}").into_bytes()
            };
            std::io::Write::write_all(&mut socket, &answer(text)).unwrap();
            if text == "first" {
                asked.recv_timeout(PATIENCE).unwrap();
                std::io::Write::write_all(&mut socket, &answer("poison")).unwrap();
                tell.send(()).unwrap();
            }
            connections.push(socket);
        }
    });
    let mut config = super::support::config(evenkeel::config::model::Protocol::Http, &[address]);
    config.workers = 1;
    let keel = Keel::start(&config);
    let mut client = keel.client();
    assert_eq!(client.get("/").text(), "first");
    ask.send(()).unwrap();
    told.recv_timeout(PATIENCE).unwrap();
    assert_eq!(keel.client().get("/").text(), "second");
    backend.join().unwrap();
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
