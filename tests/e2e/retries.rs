//! Retries: on another backend, within their share, and with the backend's own answer when there is none.

use std::time::Duration;

use evenkeel::config::model::resilience::Retries;
use evenkeel::config::model::{Config, Protocol};
use evenkeel::message::{Cause, Head};
use evenkeel::net::now;
use evenkeel::proxy::http::body::Memory;
use evenkeel::proxy::http::exchange::{IncomingRequest, Space, exchange};
use evenkeel::proxy::http::memory::MemoryEdge;
use evenkeel::proxy::http::request_body::RequestBody;
use evenkeel::targets::{Ask, Pick, Tried};
use fake_backend::{Behaviour, Fake, Fault, Running};

use super::life_lab::{assert_own, post, tcp, tcp_fakes, until_ended};
use super::retry_lab::{Mortal, Point, at_once, first_always};
use super::support::worker::{self, here, run, target};
use super::support::{self, Keel, chunked, eventually, fakes, recording};

/// A backend that answers with this status, and one that records.
fn failing_first(status: u16, retries: Retries) -> (Running, Running, Keel) {
    let (first, second) = (recording(), Fake::http("second").record().start_in_thread().unwrap());
    first.behave(Behaviour::status(status));
    let keel = Keel::with(&[&first, &second], |config| first_always(config, retries));
    (first, second, keel)
}

#[test]
fn when_all_backends_answer_503_there_is_one_retry_for_five_requests_and_no_more() {
    const REQUESTS: u64 = 1000;
    let backends = fakes(3);
    backends.iter().for_each(|backend| backend.behave(Behaviour::status(503)));
    let keel = Keel::with(&backends.iter().collect::<Vec<_>>(), |config| {
        config.targets[0].resilience.retries = Some(at_once());
    });
    let address = keel.address();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut client = support::Client::connect(address);
                for _ in 0..REQUESTS / 4 {
                    let answer = client.get("/");
                    assert_eq!(answer.status, 503);
                }
            });
        }
    });
    let attempts: u64 = backends.iter().map(Running::requests).sum();
    assert!((REQUESTS + 150..=REQUESTS + 200).contains(&attempts), "{attempts} attempts");
}

#[test]
fn with_one_of_two_backends_refusing_no_request_fails() {
    let (off, on) = (Fake::http("off").refusing().start_in_thread().unwrap(), fakes(1).remove(0));
    let keel = Keel::with(&[&off, &on], |config| {
        // It is tried again and again.
        config.targets[0].resilience.outlier = None;
    });
    let mut client = keel.client();
    for number in 0..200 {
        let answer =
            if number % 2 == 0 { client.get("/") } else { client.send(post("/count", "12345")).answer() };
        assert_eq!(answer.status, 200, "{number}");
    }
    assert_eq!(on.requests(), 200);
}

#[test]
fn retries_say_which_one_they_are_and_those_of_other_proxies_are_not_repeated() {
    let (first, second, keel) = failing_first(503, at_once());
    let mut client = keel.client();
    let mut ask = |line: &str| {
        let answer = client.send(format!("GET / HTTP/1.1\r\nHost: test\r\n{line}\r\n")).answer();
        let said = |backend: &Running| {
            let seen = backend.take_requests();
            seen.first().map(|request| request.header("retry-attempt").join(","))
        };
        (answer.status, said(&first), said(&second))
    };
    let text = |text: &str| Some(text.to_owned());
    assert_eq!(ask(""), (200, text(""), text("1")));
    assert_eq!(ask("Retry-Attempt: 0\r\n"), (200, text("0"), text("1")), "its own line is replaced");
    assert_eq!(ask("Retry-Attempt: 1\r\n"), (503, text("1"), None));
    assert_eq!(ask("Retry-Attempt: 7\r\n"), (503, text("7"), None));
}

#[test]
fn without_budget_or_another_backend_the_client_gets_the_backends_own_answer() {
    let (first, second, keel) = failing_first(503, Retries { budget: 0, ..at_once() });
    for size in [0, 100, 100_000] {
        first.behave(Behaviour::status(503).size(size));
        let answer = keel.client().get("/");
        assert_eq!((answer.status, answer.body.len() as u64, answer.cut), (503, size, false));
    }
    assert_eq!(second.requests(), 0);

    let (first, second, keel) = failing_first(503, Retries { budget: 1, ..at_once() });
    let mut client = keel.client();
    let statuses: Vec<u16> = (0..6).map(|_| client.get("/").status).collect();
    assert_eq!(statuses, [200, 200, 200, 503, 503, 503], "three are lent");
    assert_eq!((first.requests(), second.requests()), (6, 3));

    let alone = fakes(1).remove(0);
    alone.behave(Behaviour::status(503).size(50_000));
    let keel = Keel::http(&[&alone]);
    let answer = keel.client().get("/");
    assert_eq!((answer.status, answer.body.len(), alone.requests()), (503, 50_000, 1));
}

#[test]
fn a_retry_for_which_there_is_no_room_costs_no_token() {
    let (first, second) = (fakes(1).remove(0), Fake::http("second").start_in_thread().unwrap());
    first.behave(Behaviour::status(503));
    let mut config = support::config(Protocol::Http, &[first.addr(), second.addr()]);
    first_always(&mut config, Retries { budget: 1, ..at_once() });
    config.targets[0].resilience.max_in_flight = Some(1);
    run(&config, async |ctx| {
        let target = target(&ctx);
        let mut tried = Tried::new();
        tried.insert(target.backends[0].id);
        let Pick::Lease(_held) = target.pick(&Ask::new(&tried, &ctx.chance, now())) else {
            panic!("it is free")
        };
        while target.state.retries.take(now()) {}
        // Three pay what a fresh budget owes, the fourth is there to be taken.
        (0..4).for_each(|_| target.state.retries.put());
        let (_, edge) = worker::ask(&ctx, &Head::request("GET", "/", "test"), RequestBody::Empty).await;
        assert_eq!((edge.status, second.requests()), (503, 0));
        assert!(target.state.retries.take(now()), "it was given back");
    });
}

#[test]
fn only_the_statuses_that_are_named_are_tried_elsewhere() {
    let named = Retries { on_statuses: vec![500..=502], ..at_once() };
    for (status, again) in [(500, true), (502, true), (503, false), (404, false)] {
        let (_first, second, keel) = failing_first(status, named.clone());
        assert_eq!(keel.client().get("/").status, if again { 200 } else { status });
        assert_eq!(second.requests(), u64::from(again));
    }
}

#[test]
fn with_retries_off_nothing_is_repeated() {
    let (off, on) = (Fake::http("off").refusing().start_in_thread().unwrap(), fakes(1).remove(0));
    let keel = Keel::with(&[&off, &on], |config| {
        first_always(config, at_once());
        config.targets[0].resilience.retries = None;
    });
    assert_own(&keel.client().get("/"), Cause::ConnectFailed);
    assert_eq!(on.requests(), 0);
}

#[test]
fn a_body_that_was_sent_in_part_comes_whole_to_the_next_backend() {
    let (mortal, second) = (Mortal::start(), Fake::http("second").record().start_in_thread().unwrap());
    let mut config = support::config(Protocol::Http, &[mortal.address, second.addr()]);
    first_always(&mut config, Retries { budget: 100, ..at_once() });
    let keel = Keel::start(&config);
    let body = fake_backend::pattern(60_000);
    mortal.dies(Point::After(20_000), false);
    let mut client = keel.client();
    client.send("PUT /count HTTP/1.1\r\nHost: test\r\nContent-Length: 60000\r\n\r\n");
    // The rest comes when the first backend is dead already.
    client.send(&body[..30_000]);
    eventually("it is there again", || second.requests() == 1);
    assert_eq!(client.send(&body[30_000..]).answer().text(), "60000");
    let seen = second.take_requests().remove(0);
    assert!(seen.body == body && seen.complete);

    mortal.dies(Point::After(20_000), true);
    let wire = chunked(&body, &[1, 700, 4096], "X-Sum: 42\r\n");
    let head = "PUT /count HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n";
    assert_eq!(client.send(head).send(&wire).answer().text(), "60000");
    let seen = second.take_requests().remove(0);
    assert!(seen.body == body && seen.complete);
    assert_eq!(seen.trailers, b"X-Sum: 42\r\n");
}

#[test]
fn a_long_body_is_sent_once() {
    let (mortal, second) = (Mortal::start(), Fake::http("second").record().start_in_thread().unwrap());
    let mut config = support::config(Protocol::Http, &[mortal.address, second.addr()]);
    first_always(&mut config, Retries { budget: 100, ..at_once() });
    let keel = Keel::start(&config);
    let body = fake_backend::pattern(200_000);
    for framing in ["Content-Length: 200000", "Transfer-Encoding: chunked"] {
        mortal.dies(Point::After(100_000), false);
        let wire = if framing.starts_with('T') { chunked(&body, &[5000], "") } else { body.clone() };
        let head = format!("PUT /count HTTP/1.1\r\nHost: test\r\n{framing}\r\n\r\n");
        let mut client = keel.client();
        let answer = client.send(head).while_sending(&wire, |client| client.answer());
        assert_own(&answer, Cause::BackendClosed);
    }
    assert_eq!(second.requests(), 0);
}

/// The Record of one request for `path` through these backends.
fn record_of(config: &Config, body: impl Fn() -> RequestBody + 'static) -> (u16, Space) {
    let mut out = None;
    let place = &mut out;
    run(config, async |ctx| {
        let (mut edge, mut space) = (MemoryEdge::default(), Space::default());
        let head = Head::request("PUT", "/", "test");
        let here = here(&ctx);
        let (listener, peer) = (&*here, &evenkeel::message::Peer::default());
        let start = now();
        let incoming = IncomingRequest {
            ctx: &ctx,
            listener,
            head: &head,
            peer,
            told: None,
            started: start,
            head_read: start,
        };
        exchange(&incoming, &mut edge, &body(), &mut space).await;
        *place = Some((edge.status, space));
    });
    out.unwrap()
}

#[test]
fn the_record_tells_why_each_attempt_has_failed() {
    let off = Fake::http("off").refusing().start_in_thread().unwrap();
    let [broken, busy, good] =
        ["broken", "busy", "good"].map(|name| Fake::http(name).start_in_thread().unwrap());
    broken.behave(Behaviour::fault(Fault::CloseUnanswered));
    busy.behave(Behaviour::status(503));
    let addresses = [&off, &broken, &busy, &good].map(|backend| backend.addr());
    let mut config = support::config(Protocol::Http, &addresses);
    first_always(&mut config, Retries { attempts: 4, budget: 100, ..at_once() });
    let causes = |space: &Space| {
        let attempts = space.record.kept_attempts();
        assert!(attempts.iter().all(|attempt| attempt.end >= attempt.picked));
        attempts.iter().map(|attempt| attempt.outcome).collect::<Vec<_>>()
    };
    let (status, space) = record_of(&config, || RequestBody::Empty);
    assert_eq!(status, 200);
    assert_eq!(causes(&space), [Cause::ConnectFailed, Cause::BackendClosed, Cause::ErrorStatus, Cause::Done]);
    assert_eq!(space.record.cause, Cause::Done);
    good.behave(Behaviour::status(503));
    let body = || RequestBody::Memory(Box::new(Memory::whole(b"12345".to_vec(), Default::default())));
    let (status, space) = record_of(&config, body);
    assert_eq!((status, space.record.status), (503, 503), "the last one's own answer");
    assert_eq!(causes(&space)[3], Cause::Done);
}

#[test]
fn an_attempt_that_takes_too_long_is_repeated_if_that_is_asked_for() {
    for on_timeout in [true, false] {
        let (first, second) = (recording(), fakes(1).remove(0));
        first.behave(Behaviour::hang());
        let keel = Keel::with(&[&first, &second], |config| {
            first_always(config, Retries { on_timeout, ..at_once() });
            config.targets[0].timeouts.attempt = Some(Duration::from_secs(2));
        });
        let answer = keel.client().get("/");
        if on_timeout {
            assert_eq!(answer.text(), "Hello from fake-1");
        } else {
            assert_own(&answer, Cause::AttemptTimeout);
        }
        assert_eq!(second.requests(), u64::from(on_timeout));
        assert_own(&keel.client().post("/", b"12345"), Cause::AttemptTimeout);
        assert_eq!(second.requests(), u64::from(on_timeout), "never a POST");
    }
}

#[test]
fn the_total_time_ends_the_last_attempt_whatever_its_own_time_is() {
    let backends = fakes(4);
    backends.iter().for_each(|backend| backend.behave(Behaviour::hang()));
    let keel = Keel::with(&backends.iter().collect::<Vec<_>>(), |config| {
        first_always(config, Retries { attempts: 4, on_timeout: true, budget: 100, ..at_once() });
        config.targets[0].timeouts.attempt = Some(Duration::from_millis(500));
        config.targets[0].timeouts.total = Some(Duration::from_millis(1_200));
    });
    assert_own(&keel.client().get("/"), Cause::TotalTimeout);
    let attempts: u64 = backends.iter().map(Running::requests).sum();
    assert!(attempts < 4, "{attempts} attempts");
    until_ended(&keel, Cause::TotalTimeout, 1);

    // Alone it needs no retries.
    let keel = Keel::with(&[&backends[0]], |config| {
        config.targets[0].timeouts.total = Some(Duration::from_millis(200));
        config.targets[0].resilience.retries = None;
    });
    assert_own(&keel.client().get("/"), Cause::TotalTimeout);
}

#[test]
fn a_client_that_leaves_during_a_pause_ends_it() {
    let (first, second, keel) =
        failing_first(503, Retries { backoff: Duration::from_secs(3600), ..Retries::default() });
    first.behave(Behaviour::fault(Fault::CloseUnanswered));
    let mut client = keel.client();
    client.send("GET / HTTP/1.1\r\nHost: test\r\n\r\n");
    eventually("the first attempt has failed", || first.stats().open == 0 && first.requests() == 1);
    drop(client);
    until_ended(&keel, Cause::ClientGone, 1);
    assert_eq!(second.requests(), 0);
}

#[test]
fn tcp_connections_go_to_another_backend_unless_retries_are_off() {
    for on in [true, false] {
        let backends = tcp_fakes(2, |fake| fake.behave(Behaviour::tcp(fake_backend::TcpMode::Echo)));
        backends[0].stop();
        let keel = tcp(&[&backends[0], &backends[1]], |config| {
            first_always(config, at_once());
            if !on {
                config.targets[0].resilience.retries = None;
            }
        });
        let mut client = keel.client();
        client.send("hello").finish_sending();
        let came = super::life_lab::read_to_end(&mut client.socket);
        assert_eq!(came.is_ok_and(|bytes| bytes == b"hello"), on);
    }
}
