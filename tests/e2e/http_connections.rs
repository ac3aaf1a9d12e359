//! Connections on both sides: reuse, pipelining, HTTP/1.0, ends of every kind, unix sockets.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use evenkeel::config::model::{BackendAddress, Bind};
use fake_backend::{Behaviour, Fake, pattern};

use super::support::{Answer, Client, Keel, PATIENCE, eventually, fakes, recording};

#[test]
fn many_clients_in_turn_use_one_connection_to_the_backend() {
    let backends = fakes(1);
    let keel = Keel::with(&[&backends[0]], |config| config.workers = 1);
    for _ in 0..20 {
        let mut client = keel.client();
        assert_eq!(client.get("/bytes/100000").body.len(), 100_000);
        // Not a POST: after 20 ms of idleness it would take a fresh connection.
        assert_eq!(client.get("/").status, 200);
    }
    assert_eq!((backends[0].requests(), backends[0].connections()), (40, 1));
    assert_eq!(keel.server.readings().pool.reused, 39);
}

#[test]
fn a_connection_whose_last_read_filled_its_buffer_is_used_again() {
    let backends = fakes(1);
    let keel = Keel::with(&[&backends[0]], |config| config.workers = 1);
    let mut client = keel.client();
    for size in 65_300..65_560 {
        assert_eq!(client.get(&format!("/bytes/{size}")).body.len(), size);
    }
    assert_eq!(backends[0].connections(), 1);
}

#[test]
fn three_requests_in_one_write_are_answered_in_order() {
    let backend = recording();
    let keel = Keel::http(&[&backend]);
    let mut client = keel.client();
    client.send(
        "GET /head?1 HTTP/1.1\r\nHost: a\r\n\r\n\
         POST /echo HTTP/1.1\r\nHost: b\r\nContent-Length: 19\r\n\r\nGET /x HTTP/1.1\r\n\r\n\
         HEAD /delay/20 HTTP/1.1\r\nHost: c\r\n\r\n\
         POST /echo HTTP/1.1\r\nHost: d\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n\
         GET /last HTTP/1.1\r\nHost: e\r\n\r\n",
    );
    assert!(client.answer().text().starts_with("GET /head?1 HTTP/1.1\r\nHost: a\r\n"));
    assert_eq!(client.answer().text(), "GET /x HTTP/1.1\r\n\r\n");
    assert_eq!(client.answer_to_head().status, 200);
    assert_eq!(client.answer().text(), "hi");
    assert_eq!(client.answer().text(), "Hello from fake-1");
    assert_eq!(backend.requests(), 5);
    // On a busy machine its uploads have their own: they take none that has been idle for 20 ms.
    assert!(backend.connections() <= 3, "{}", backend.connections());
}

#[test]
fn pipelined_requests_of_a_client_that_has_finished_sending_are_all_answered() {
    let backends = fakes(1);
    let keel = Keel::http(&[&backends[0]]);
    let mut client = keel.client();
    client.send("GET /delay/50 HTTP/1.1\r\nHost: a\r\n\r\nGET /delay/50 HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n");
    client.finish_sending();
    for number in 0..3 {
        assert_eq!(client.answer().text(), "Hello from fake-1", "answer {number}");
    }
    assert!(client.is_closed());
}

#[test]
fn a_client_that_has_finished_sending_gets_its_quick_answer() {
    let backends = fakes(1);
    let keel = Keel::http(&[&backends[0]]);
    for path in ["/", "/bytes/3000000", "/chunked/3000000", "/delay/200"] {
        let mut client = keel.client();
        client.send(format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n")).finish_sending();
        let answer = client.answer();
        assert!(answer.status == 200 && !answer.cut, "{path}");
        assert!(client.is_closed(), "{path}");
    }
}

#[test]
fn a_body_that_lasts_longer_than_a_half_closed_client_is_waited_for_arrives_whole() {
    let backends = fakes(1);
    let keel = Keel::http(&[&backends[0]]);
    let mut client = keel.client();
    client.send("GET /bytes/16?piece=1&every=100 HTTP/1.1\r\nHost: a\r\n\r\n").finish_sending();
    let answer = client.answer();
    assert_eq!((answer.cut, answer.body), (false, pattern(16)));
}

#[test]
fn http_1_0_closes_unless_asked_and_knows_no_chunks() {
    let backend = recording();
    let keel = Keel::with(&[&backend], |config| config.workers = 1);
    let mut client = keel.client();
    let answer = client.send("GET /bytes/10 HTTP/1.0\r\n\r\n").answer();
    assert_eq!((answer.status, answer.body.len(), answer.header("connection")), (200, 10, Some("close")));
    assert!(client.is_closed());
    let seen = backend.take_requests().pop().unwrap();
    assert!(seen.head_text().starts_with("GET /bytes/10 HTTP/1.1\r\nHost: "), "{}", seen.head_text());
    assert_eq!(seen.header("via"), ["1.0 evenkeel"]);

    let mut client = keel.client();
    let asked = "GET /bytes/10 HTTP/1.0\r\nHost: a\r\nConnection: keep-alive\r\n\r\n";
    for _ in 0..3 {
        let answer = client.send(asked).answer();
        assert_eq!((answer.body.len(), answer.header("connection")), (10, Some("keep-alive")));
    }
    let chunks = "GET /chunked/100000?trailer=1 HTTP/1.0\r\nHost: a\r\nConnection: keep-alive\r\n\r\n";
    let answer = client.send(chunks).answer();
    assert_eq!((answer.header("transfer-encoding"), answer.header("connection")), (None, Some("close")));
    assert!(answer.body == pattern(100_000), "the content alone, {} bytes", answer.body.len());
    assert_eq!(backend.connections(), 1, "the backend is spoken to in HTTP/1.1");
}

#[test]
fn a_client_that_asks_to_close_is_closed() {
    let backends = fakes(1);
    let keel = Keel::http(&[&backends[0]]);
    let mut client = keel.client();
    let answer =
        client.ask("GET / HTTP/1.1\r\nHost: a\r\nConnection: foo, Close\r\n\r\nGET / HTTP/1.1\r\n\r\n");
    assert_eq!((answer.text().as_str(), answer.header("connection")), ("Hello from fake-1", Some("close")));
    assert!(client.is_closed());
    assert_eq!(backends[0].requests(), 1);
}

#[test]
fn a_refusal_is_readable_while_a_large_upload_is_still_coming() {
    let backends = fakes(1);
    let keel = Keel::with(&[&backends[0]], |config| config.listeners[0].limits.body = Some(1000));
    for framing in ["Content-Length: 200000", "Transfer-Encoding: chunked"] {
        let mut client = keel.client();
        client.send(format!("POST / HTTP/1.1\r\nHost: a\r\n{framing}\r\n\r\n"));
        // 200 kB fit what is read behind a refusal; only then is the answer looked at.
        client.send(super::support::chunked(&pattern(199_000), &[199_000], ""));
        let answer = client.answer();
        assert_eq!((answer.status, answer.cut), (413, false), "{framing}");
        assert!(client.is_closed() && !client.was_reset(), "{framing}: closed without a reset");
    }
}

#[test]
fn a_refusal_before_the_body_was_sent_is_not_reset_away() {
    let backends = fakes(1);
    let keel = Keel::with(&[&backends[0]], |config| config.listeners[0].limits.body = Some(1000));
    let mut client = keel.client();
    client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 200000\r\n\r\n");
    assert_eq!(client.answer().status, 413);
    // The server has said its last word, and still takes what the client has under way.
    for _ in 0..3 {
        client.socket.write_all(&pattern(30_000)).unwrap();
    }
    assert!(client.is_closed() && !client.was_reset());
}

#[test]
fn an_early_answer_of_the_backend_to_a_large_upload_reaches_the_client() {
    let backends = fakes(1);
    backends[0].behave(Behaviour { status: 403, close: true, ..Behaviour::default().answering_early() });
    let keel = Keel::http(&[&backends[0]]);
    let mut client = keel.client();
    client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000000\r\n\r\n");
    let mut writer = client.socket.try_clone().unwrap();
    let answer = std::thread::scope(|scope| {
        scope.spawn(move || {
            let piece = pattern(100_000);
            // Ends with an error once the server has closed.
            while writer.write_all(&piece).is_ok() {}
        });
        let answer = client.answer();
        client.rest();
        answer
    });
    assert_eq!((answer.status, answer.text().as_str()), (403, "Hello from fake-1"));
}

#[test]
fn unix_sockets_serve_clients_and_backends() {
    let folder = tempfile::tempdir().unwrap();
    let (front, back) = (folder.path().join("front"), folder.path().join("back"));
    let _backend = Fake::http("fake-1").unix(&back).record().start_in_thread().unwrap();
    let mut config =
        super::support::config(evenkeel::config::model::Protocol::Http, &["127.0.0.1:1".parse().unwrap()]);
    config.listeners[0].binds.push(Bind::Unix(front.clone()));
    config.targets[0].backends[0].address = BackendAddress::Unix(back);
    let keel = Keel::start(&config);
    assert_eq!(keel.client().post("/count", &pattern(300_000)).text(), "300000");
    let mut socket = UnixStream::connect(&front).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket.write_all(b"GET /head HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").unwrap();
    let mut text = String::new();
    socket.read_to_string(&mut text).unwrap();
    assert!(
        text.starts_with("HTTP/1.1 200 OK\r\n") && text.contains("GET /head HTTP/1.1\r\nHost: a\r\n"),
        "{text}"
    );
    assert!(!text.contains("X-Forwarded-For"), "a unix socket has no address: {text}");
    drop(keel);
    assert!(!front.exists(), "the socket file is gone");
}

/// Whether an answer is one. It may be, at most, that of a request that met the end of its connection.
pub fn is_good_or_met_the_end(answer: &Answer) -> bool {
    let met_the_end = || answer.status == 502 && answer.text().contains("cause: backend_closed");
    assert!(!answer.cut && (answer.status == 200 || met_the_end()), "{answer:?}");
    answer.status == 200
}

#[test]
fn a_pooled_connection_that_the_backend_closed_costs_no_request() {
    let backends = fakes(1);
    let keel = Keel::with(&[&backends[0]], |config| config.workers = 1);
    let mut client = keel.client();
    // Its end may come before, while, or after the next request takes the connection.
    backends[0].behave(Behaviour::default().idle_close(Duration::ZERO));
    // Where a busy machine lets it wait between its answer and that end for longer than counts as at once, nobody knows that it has done nothing: but
    // not in each of three rows.
    let mut row = || (0..300).all(|_| is_good_or_met_the_end(&client.get("/")));
    assert!((0..3).any(|_| row()));
    backends[0].behave(Behaviour::default());
    eventually("the last one has ended", || client.get("/").status == 200);
    eventually("the backend has closed", || {
        backends[0].close_idle();
        backends[0].open_connections() == 0
    });
    assert_eq!(client.post("/count", b"abc").text(), "3", "a POST goes out on a fresh connection");
}

#[test]
fn a_post_that_may_have_been_processed_is_not_sent_again() {
    let backends = fakes(1);
    let keel = Keel::with(&[&backends[0]], |config| config.workers = 1);
    let mut client = keel.client();
    client.get("/");
    backends[0].behave(Behaviour::fault(fake_backend::Fault::CloseUnanswered).times(1));
    let answer = client.post("/", b"abc");
    assert_eq!((answer.status, backends[0].requests()), (502, 2), "a POST may have been processed");
    assert!(answer.text().contains("backend_closed"));
    backends[0].behave(Behaviour::fault(fake_backend::Fault::CloseUnanswered));
    assert_eq!(client.get("/").status, 502, "a fresh connection that closes is the backend's failure");
}

#[test]
fn connections_of_clients_that_leave_are_given_back() {
    let backends = fakes(1);
    let keel = Keel::http(&[&backends[0]]);
    let clients: Vec<Client> = (0..50).map(|_| keel.client()).collect();
    eventually("all are open", || keel.server.connections() == 50);
    drop(clients);
    eventually("all are closed", || keel.server.connections() == 0);
}
