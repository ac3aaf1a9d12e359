//! HTTPS does what HTTP does: the codec and the pipeline do not know the difference.

use aws_lc_rs::digest::{SHA256, digest};
use evenkeel::config::model::Protocol;
use evenkeel::message::Cause;
use fake_backend::{Behaviour, TcpMode, pattern};

use super::life_lab::{tcp_fakes, until_ended};
use super::support::tls::{BOTH, Secure, TLS12, TLS13, client_config};
use super::support::{chunked, eventually, fakes, recording};

const MANY: usize = 10 << 20;

#[test]
fn requests_share_a_connection_one_by_one_and_all_at_once() {
    let backends = fakes(1);
    let secure = Secure::http(&[&backends[0]]);
    let mut client = secure.client();
    for _ in 0..3 {
        assert_eq!(client.get("/").text(), "Hello from fake-1");
    }
    let pipelined: String =
        (1..=20).map(|size| format!("GET /bytes/{size} HTTP/1.1\r\nHost: test\r\n\r\n")).collect();
    client.send(pipelined);
    for size in 1..=20 {
        assert_eq!(client.answer().body, pattern(size));
    }
    assert_eq!(secure.keel.server.readings().connections.accepted, 1);
}

#[test]
fn ten_megabytes_arrive_unharmed_both_ways_in_both_versions() {
    let backend = recording();
    let secure = Secure::http(&[&backend]);
    let body = pattern(MANY);
    let hash = digest(&SHA256, &body);
    for versions in [TLS12, TLS13] {
        let config = secure.versions(versions);
        let mut client = secure.client_with(&config);
        for framing in ["bytes", "chunked", "close"] {
            let answer = client.get(&format!("/{framing}/{MANY}"));
            assert!(!answer.cut, "{framing}: cut after {}", answer.body.len());
            assert_eq!(digest(&SHA256, &answer.body).as_ref(), hash.as_ref(), "{framing}");
        }
        let mut client = secure.client_with(&config);
        assert_eq!(client.post("/count", &body).text(), MANY.to_string());
        client.send("POST /count HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n");
        client.send(chunked(&body, &[17, 4096, 100_000], "A: b\r\n"));
        assert_eq!(client.answer().text(), MANY.to_string());
        // Recorded is the beginning of a body.
        for seen in backend.take_requests().iter().filter(|seen| !seen.body.is_empty()) {
            assert!(seen.complete && seen.body == body[..seen.body.len()] && seen.body.len() > 1 << 20);
        }
        // Both directions at once.
        let mut socket = secure.open_with(&config);
        let mut request =
            format!("POST /echo HTTP/1.1\r\nHost: test\r\nContent-Length: {MANY}\r\n\r\n").into_bytes();
        request.extend_from_slice(&body);
        let came = socket.exchange(&request, |came| came.len() > MANY && came.ends_with(&body[MANY - 9..]));
        let start = came.windows(4).position(|window| window == b"\r\n\r\n").unwrap() + 4;
        // The echo is chunked; its content is all that matters.
        let mut plain = Vec::new();
        let mut rest = &came[start..];
        if came[..start].to_ascii_lowercase().windows(7).any(|window| window == b"chunked") {
            while let Some(end) = rest.windows(2).position(|window| window == b"\r\n") {
                let size = usize::from_str_radix(std::str::from_utf8(&rest[..end]).unwrap(), 16).unwrap();
                let until = (end + 2 + size).min(rest.len());
                plain.extend_from_slice(&rest[end + 2..until]);
                rest = rest.get(until + 2..).unwrap_or_default();
            }
        } else {
            plain.extend_from_slice(rest);
        }
        assert_eq!(digest(&SHA256, &plain).as_ref(), hash.as_ref(), "{} bytes", plain.len());
    }
}

#[test]
fn heads_without_bodies_interim_answers_and_expectations() {
    let backends = fakes(1);
    let secure = Secure::http(&[&backends[0]]);
    let mut client = secure.client();
    let head = client.send("HEAD /bytes/500 HTTP/1.1\r\nHost: test\r\n\r\n").answer_to_head();
    assert_eq!((head.status, head.header("content-length")), (200, Some("500")));
    assert_eq!(client.send("GET /early-hints HTTP/1.1\r\nHost: test\r\n\r\n").answer().status, 103);
    assert_eq!(client.answer().text(), "Hello from fake-1");
    client.send("POST /count HTTP/1.1\r\nHost: test\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n");
    assert_eq!(client.answer().status, 100, "asked for before a byte of the body was sent");
    assert_eq!(client.send("12345").answer().text(), "5");
    let answer = client.ask("GET /chunked/10?trailer=1 HTTP/1.1\r\nHost: test\r\n\r\n");
    assert!(!answer.trailers.is_empty() && answer.body == pattern(10));
    assert_eq!(client.get("/").status, 200);
}

#[test]
fn an_upgraded_connection_is_a_tunnel_with_both_of_its_ends() {
    let backends = fakes(1);
    let secure = Secure::http(&[&backends[0]]);
    for versions in [TLS12, TLS13] {
        let mut client = secure.client_with(&secure.versions(versions));
        client.send(
            "GET /upgrade HTTP/1.1\r\nHost: test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nearly",
        );
        assert_eq!(client.answer().status, 101);
        assert_eq!(client.take(5), b"early");
        let sent = pattern(3_000_000);
        let came = client.socket.exchange(&sent, |came| came.len() == sent.len());
        assert!(came == sent);
        client.send("last").socket.say_end();
        assert_eq!(client.rest(), b"last");
        assert!(!client.was_reset(), "the tunnel ends with close_notify");
    }
    eventually("both sides are closed", || {
        backends[0].open_connections() == 0 && secure.keel.server.connections() == 0
    });
}

#[test]
fn the_backend_is_told_that_it_was_https() {
    let backend = recording();
    let secure = Secure::http(&[&backend]);
    // What a client says of itself counts for nothing.
    let lie = "GET / HTTP/1.1\r\nHost: test\r\nX-Forwarded-Proto: http\r\nX_Forwarded_Proto: ftp\r\n\r\n";
    assert_eq!(secure.client().ask(lie).status, 200);
    let seen = backend.take_requests().pop().unwrap();
    assert_eq!(seen.header("x-forwarded-proto"), ["https"]);
    assert!(seen.header("x_forwarded_proto").is_empty(), "{}", seen.head_text());
    assert!(seen.header("client-cert").is_empty());
}

#[test]
fn a_tcp_target_relays_decrypted_bytes_and_each_end_on_its_own() {
    let backends = tcp_fakes(1, |fake| fake.behave(Behaviour::tcp(TcpMode::Echo)));
    let secure = Secure::with(Protocol::Tcp, &[&backends[0]], "", |_| ());
    for versions in [TLS12, TLS13] {
        let mut socket = secure.open_with(&secure.versions(versions));
        let sent = pattern(MANY);
        let came = socket.exchange(&sent, |came| came.len() == sent.len());
        assert_eq!(digest(&SHA256, &came).as_ref(), digest(&SHA256, &sent).as_ref());
    }
    // The backend answers only once it has seen our end.
    backends[0].behave(Behaviour::tcp(TcpMode::GreetAtEnd));
    let mut client = secure.client();
    client.send("question").socket.say_end();
    assert_eq!(client.rest(), b"Hello from fake-1");
    assert!(!client.was_reset(), "its end comes as close_notify");
    // One that speaks first.
    backends[0].behave(Behaviour::tcp(TcpMode::Greet));
    let mut client = secure.client();
    assert_eq!(client.rest(), b"Hello from fake-1");
    assert!(!client.was_reset());
}

#[test]
fn a_tcp_target_does_not_care_what_is_spoken_inside() {
    let backends = tcp_fakes(1, |fake| fake);
    let secure = Secure::with(Protocol::Tcp, &[&backends[0]], "", |_| ());
    for offered in [vec![], vec![b"h2".to_vec()], vec![b"imap".to_vec(), b"http/1.1".to_vec()]] {
        let mut config = client_config(&[secure.authority.ca_pem()], BOTH, None);
        config.alpn_protocols = offered;
        let mut client = secure.client_with(&std::sync::Arc::new(config));
        assert_eq!(client.socket.session.alpn_protocol(), None);
        assert_eq!(client.rest(), b"Hello from fake-1");
        client.socket.say_end();
    }
    until_ended(&secure.keel, Cause::Done, 3);
}
