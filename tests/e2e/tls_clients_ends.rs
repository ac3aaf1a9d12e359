//! How connections under TLS end: what is complete ends with close_notify, what was cut never does (RFC 8446 §6.1).

use std::time::Duration;

use evenkeel::config::model::Protocol;
use evenkeel::message::Cause;
use fake_backend::{Behaviour, Ending, Fault, TcpMode, pattern};

use super::life_lab::{end, tcp_fakes, until_ended};
use super::support::tls::{Secure, TLS12, TLS13};
use super::support::{eventually, fakes};

#[test]
fn a_client_that_has_finished_sending_still_gets_its_answers() {
    let backends = fakes(1);
    let secure = Secure::http(&[&backends[0]]);
    for versions in [TLS12, TLS13] {
        let mut client = secure.client_with(&secure.versions(versions));
        client
            .send("GET /delay/50 HTTP/1.1\r\nHost: test\r\n\r\nGET /bytes/9 HTTP/1.1\r\nHost: test\r\n\r\n");
        client.socket.say_end();
        assert_eq!(client.answer().text(), "Hello from fake-1");
        assert_eq!(client.answer().body, pattern(9));
        assert!(client.is_closed() && !client.was_reset(), "then the session ends");
    }
}

#[test]
fn an_answer_that_is_delimited_by_the_close_ends_with_close_notify() {
    let backends = fakes(1);
    let secure = Secure::http(&[&backends[0]]);
    for size in [0, 1, 16_384, 300_000, 5_000_000] {
        let answer = secure.client().get(&format!("/close/{size}"));
        assert!(!answer.cut && answer.body == pattern(size), "{size}: {}", answer.body.len());
        assert_eq!(answer.header("content-length"), None);
    }
    // The same for a connection that ends behind a framed answer.
    let mut client = secure.client();
    assert_eq!(client.ask("GET / HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n").status, 200);
    assert!(client.is_closed() && !client.was_reset());
}

#[test]
fn an_answer_that_is_cut_does_not_end_with_close_notify() {
    let backends = fakes(1);
    let secure = Secure::http(&[&backends[0]]);
    for fault in [Fault::CloseMidBody, Fault::ResetMidBody] {
        for path in ["/bytes/200000", "/chunked/200000"] {
            // In pieces, so that the beginning is on its way when it breaks.
            backends[0].behave(Behaviour::fault(fault.clone()).pace(20_000, Duration::from_millis(5)));
            let mut client = secure.client();
            let answer = client.get(path);
            assert!(answer.cut && answer.status == 200, "{fault:?} {path}");
            assert!(client.was_reset(), "{fault:?} {path}: it looks like an end");
        }
    }
    // Where the close is the only end, this is all that tells a part from the whole.
    let bytes = b"HTTP/1.1 200 OK\r\n\r\na part".to_vec();
    backends[0].behave(Behaviour::fault(Fault::Raw { bytes: bytes.clone(), ending: Ending::Reset }));
    let answer = secure.client().get("/");
    assert!(answer.cut || answer.status == 502, "{answer:?}");
    backends[0].behave(Behaviour::fault(Fault::Raw { bytes, ending: Ending::Close }));
    let answer = secure.client().get("/");
    assert_eq!((answer.text().as_str(), answer.cut), ("a part", false));
}

#[test]
fn an_answer_that_a_shutdown_cuts_does_not_end_with_close_notify() {
    let backends = fakes(1);
    let secure =
        Secure::with(Protocol::Http, &[&backends[0]], "", |config| config.shutdown_timeout = Duration::ZERO);
    let mut client = secure.client();
    client.send("GET /close/1000000?piece=1000&every=20 HTTP/1.1\r\nHost: test\r\n\r\n");
    client.take(2000);
    assert_eq!(end(secure.keel).cut, 1);
    client.rest();
    assert!(client.was_reset());
}

#[test]
fn a_client_that_vanishes_in_the_middle_of_a_body_is_gone() {
    let backends = fakes(1);
    let secure = Secure::http(&[&backends[0]]);
    for (nth, framing) in (1..).zip(["Content-Length: 10", "Transfer-Encoding: chunked"]) {
        let mut client = secure.client();
        client.send(format!("POST /count HTTP/1.1\r\nHost: test\r\n{framing}\r\n\r\n5\r\n12"));
        eventually("the backend has the beginning", || backends[0].connections() == nth);
        client.socket.vanish();
        until_ended(&secure.keel, Cause::ClientGone, nth);
        eventually("the backend is told", || backends[0].stats().aborted == nth);
        client.rest();
        assert!(client.was_reset(), "whatever comes, it is no clean end");
    }
    assert_eq!(backends[0].stats().malformed, 0);
}

#[test]
fn a_client_that_vanishes_while_it_waits_is_gone_at_once() {
    let backends = fakes(1);
    backends[0].behave(Behaviour::hang());
    let secure = Secure::http(&[&backends[0]]);
    let mut client = secure.client();
    client.send("GET / HTTP/1.1\r\nHost: test\r\n\r\n");
    eventually("the backend has it", || backends[0].requests() == 1);
    client.socket.vanish();
    until_ended(&secure.keel, Cause::ClientGone, 1);
    eventually("the backend is told", || backends[0].open_connections() == 0);
}

#[test]
fn a_tcp_relay_that_is_cut_on_either_side_does_not_look_ended() {
    let backends = tcp_fakes(1, |fake| {
        let slow = Behaviour::fault(Fault::ResetMidBody).pace(10_000, Duration::from_millis(5));
        fake.behave(Behaviour { tcp: TcpMode::Source(100_000), ..slow })
    });
    let secure = Secure::with(Protocol::Tcp, &[&backends[0]], "", |_| ());
    let mut client = secure.client();
    assert!(client.rest().len() <= 50_000);
    assert!(client.was_reset());
    until_ended(&secure.keel, Cause::AnswerCut, 1);

    backends[0].behave(Behaviour::tcp(TcpMode::Echo));
    let mut client = secure.client();
    client.send("x");
    assert_eq!(client.take(1), b"x");
    client.socket.vanish();
    until_ended(&secure.keel, Cause::ClientGone, 1);
    eventually("the backend sees an abort and no end", || backends[0].stats().aborted == 1);
}

#[test]
fn an_idle_connection_ends_with_close_notify() {
    let backends = fakes(1);
    let secure = Secure::with(Protocol::Http, &[&backends[0]], "", |config| {
        config.listeners[0].client_timeouts.keep_alive = Duration::from_secs(1);
    });
    let mut client = secure.client();
    assert_eq!(client.get("/").status, 200);
    assert!(client.is_closed() && !client.was_reset());
}
