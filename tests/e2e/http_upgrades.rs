//! Tunnels: only after a 101 that fits, and not a byte before it is taken for anything else.

use std::time::Duration;

use fake_backend::{Behaviour, Ending, Fault, Running, pattern};

use super::support::{Client, Keel, eventually, fakes, recording};

const ASK: &str =
    "GET /upgrade HTTP/1.1\r\nHost: test\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n\r\n";

fn raw(backend: &Running, answer: &str, ending: Ending) {
    backend.behave(Behaviour::fault(Fault::Raw { bytes: answer.as_bytes().to_vec(), ending }).times(1));
}

fn switched(client: &mut Client) {
    let answer = client.answer();
    assert_eq!((answer.status, answer.header("upgrade")), (101, Some("websocket")), "{}", answer.head);
    assert_eq!(answer.header("connection"), Some("Upgrade"));
    assert_eq!((answer.header("date"), answer.header("content-length")), (None, None));
}

#[test]
fn a_tunnel_carries_bytes_both_ways_until_both_have_ended() {
    let backend = recording();
    let keel = Keel::http(&[&backend]);
    let mut client = keel.client();
    client.send(ASK);
    switched(&mut client);
    for round in 0..3 {
        client.send("ping");
        assert_eq!(client.take(4), b"ping", "round {round}");
    }
    let body = pattern(3_000_000);
    assert!(client.while_sending(&body, |client| client.take(body.len())) == body);
    // A half-close goes through, and what is on its way back still comes.
    client.send("last").finish_sending();
    assert_eq!(client.rest(), b"last");
    assert!(!client.was_reset());
    let seen = backend.take_requests().pop().unwrap();
    assert_eq!(
        (seen.header("upgrade"), seen.header("connection")),
        (vec!["websocket".into()], vec!["Upgrade".into()])
    );
    eventually("the backend's connection is closed", || backend.open_connections() == 0);
    eventually("the client's connection is closed", || keel.server.connections() == 0);
}

#[test]
fn websocket_frames_pass_after_the_handshake_of_the_rfc() {
    let backends = fakes(1);
    let keel = Keel::http(&[&backends[0]]);
    let mut client = keel.client();
    client.send(
        "GET /chat HTTP/1.1\r\nHost: test\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n",
    );
    let answer = client.answer();
    assert_eq!(answer.header("sec-websocket-accept"), Some("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="));
    // The masked "Hello" of RFC 6455 §5.7 comes back unmasked.
    client.send([0x81, 0x85, 0x37, 0xfa, 0x21, 0x3d, 0x7f, 0x9f, 0x4d, 0x51, 0x58]);
    assert_eq!(client.take(7), b"\x81\x05Hello");
}

#[test]
fn bytes_sent_early_by_either_side_are_the_first_in_the_tunnel() {
    let backends = fakes(1);
    let keel = Keel::http(&[&backends[0]]);
    let mut client = keel.client();
    let early = "GET /early HTTP/1.1\r\nHost: test\r\n\r\n";
    client.send(format!("{ASK}{early}"));
    switched(&mut client);
    assert_eq!(client.take(early.len()), early.as_bytes());
    assert_eq!(backends[0].requests(), 1, "early bytes are no request");

    let early =
        "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: WebSocket\r\n\r\nwelcome";
    raw(&backends[0], early, Ending::Close);
    let mut client = keel.client();
    assert_eq!(client.send(ASK).answer().status, 101);
    assert_eq!(client.rest(), b"welcome");
}

#[test]
fn a_refused_upgrade_is_an_answer_and_early_bytes_are_not_interpreted() {
    let backend = recording();
    let keel = Keel::http(&[&backend]);
    for early in ["GET /smuggled HTTP/1.1\r\nHost: test\r\n\r\n", "\u{1}\u{2}frames", ""] {
        raw(&backend, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nno", Ending::Close);
        let mut client = keel.client();
        let answer = client.send(format!("{ASK}{early}")).answer();
        assert_eq!((answer.status, answer.text().as_str()), (200, "no"));
        if early.is_empty() {
            assert_eq!(
                client.get("/").text(),
                "Hello from fake-1",
                "without early bytes nothing is in doubt"
            );
        } else {
            assert_eq!(answer.header("connection"), Some("close"));
            assert!(client.is_closed(), "{early:?}");
        }
    }
    let paths: Vec<_> =
        backend.take_requests().iter().map(|seen| seen.head_text()[..12].to_owned()).collect();
    assert!(!paths.iter().any(|path| path.contains("smug")), "{paths:?}");
    assert_eq!(backend.stats().malformed, 0);
}

#[test]
fn a_101_that_does_not_fit_is_no_tunnel() {
    let backends = fakes(1);
    let keel = Keel::http(&[&backends[0]]);
    for answer in [
        "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: other\r\n\r\n",
        "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\n\r\n",
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n",
    ] {
        raw(&backends[0], answer, Ending::KeepOpen);
        let refused = keel.client().ask(ASK);
        assert_eq!(refused.status, 502, "{answer}");
        assert!(refused.text().contains("bad_upgrade"), "{}", refused.text());
    }
    assert_eq!(keel.client().get("/").text(), "Hello from fake-1");
}

#[test]
fn a_101_before_the_request_was_sent_whole_is_no_tunnel() {
    let backends = fakes(1);
    let keel = Keel::http(&[&backends[0]]);
    // The fake's upgrade does not wait for the body; its answer comes while that is still under way.
    let mut client = keel.client();
    client.send(
        "POST /upgrade HTTP/1.1\r\nHost: test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nContent-Length: 10\r\n\r\nabc",
    );
    let answer = client.final_answer();
    assert_eq!(answer.status, 502, "{}", answer.head);
}

#[test]
fn h2c_is_served_over_http_1_1_and_the_connection_stays() {
    let backends = fakes(1);
    let keel = Keel::http(&[&backends[0]]);
    let mut client = keel.client();
    for _ in 0..2 {
        let answer = client.ask(
            "GET /head HTTP/1.1\r\nHost: test\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n",
        );
        assert_eq!(answer.status, 200);
        let seen = answer.text().to_ascii_lowercase();
        assert!(!seen.contains("upgrade") && !seen.contains("http2"), "{seen}");
    }
    assert_eq!(backends[0].connections(), 1);
}

#[test]
fn a_protocol_is_passed_on_only_where_it_is_listed() {
    let backend = recording();
    let keel = Keel::with(&[&backend], |config| config.targets[0].upgrade = vec!["irc/6.9".into()]);
    let answer = keel.client().ask(&ASK.replace("/upgrade", "/"));
    assert_eq!((answer.status, answer.text().as_str()), (200, "Hello from fake-1"));
    assert!(backend.take_requests().pop().unwrap().header("upgrade").is_empty());
    let mut client = keel.client();
    client.send(ASK.replace("websocket", "foo, IRC/6.9"));
    assert_eq!(client.answer().header("upgrade"), Some("IRC/6.9"));
    assert_eq!(client.send("x").take(1), b"x");
}

#[test]
fn a_silent_tunnel_is_cut() {
    let backends = fakes(1);
    let keel =
        Keel::with(&[&backends[0]], |config| config.targets[0].timeouts.tunnel = Duration::from_secs(1));
    let mut client = keel.client();
    client.send(ASK);
    switched(&mut client);
    client.send("x");
    assert_eq!(client.rest(), b"x");
    assert!(client.was_reset());
    eventually("the backend's connection is closed", || backends[0].open_connections() == 0);
}

#[test]
fn the_end_of_either_side_reaches_the_other() {
    let backends = fakes(1);
    let keel = Keel::http(&[&backends[0]]);
    let mut client = keel.client();
    client.send(ASK);
    switched(&mut client);
    drop(client);
    eventually("the backend sees the client's end", || backends[0].open_connections() == 0);
    let mut client = keel.client();
    client.send(ASK);
    switched(&mut client);
    backends[0].stop();
    client.rest();
    drop(client);
    eventually("no connection is left", || keel.server.connections() == 0);
}
