//! Bodies, tunnels and everything else that flows through TLS towards a backend, with the raw relay and without.

use std::io::Write;
use std::net::SocketAddr;
use std::time::Duration;

use evenkeel::config::model::Config;
use evenkeel::message::Cause;
use fake_backend::{Behaviour, Fake, Fault, Running, pattern};

use super::life_lab::{assert_own, end, until_ended};
use super::support::{Answer, Client, Keel, chunked, eventually};
use super::tls_backends_lab::{Lab, Puppet, keel_relaying, load, start, url, urls};

const TRUSTED: &str = "upstream_tls: {ca_file: ca.pem}";
const LARGE: usize = 10_000_000;

/// A server that clients speak plain HTTP to, and behind it one that it speaks HTTPS to, which speaks HTTPS to
/// `backend`: http → https and https → https in one.
struct Chain {
    front: Keel,
    back: Keel,
}

impl Chain {
    fn new(lab: &Lab, backend: &Running, raw_relay: bool) -> Chain {
        lab.keep("server", &lab.authority.issue(["127.0.0.1"]));
        let text = format!(
            "workers: 1\ntargets: {{web: {{protocol: https, listener: '127.0.0.1:0', health_check: off, {TRUSTED}, \
             tls: {{cert_file: server.pem, cert_key: server.key}}, backends: [{}]}}}}\n",
            url(&backend.url())
        );
        let back = keel_relaying(&load(lab.path(), &text), raw_relay);
        let middle = url(&format!("https://{}", back.address()));
        let front = keel_relaying(&lab.config("http", TRUSTED, &[middle]), raw_relay);
        Chain { front, back }
    }
}

/// Sends all of `bytes` while the answer is read.
fn exchange(client: &mut Client, bytes: &[u8]) -> Answer {
    client.while_sending(bytes, Client::final_answer)
}

#[test]
fn ten_megabytes_pass_both_ways_at_once_in_every_framing() {
    let lab = Lab::new();
    let backend = start(Fake::http("fake-1"), lab.tls());
    let body = pattern(LARGE);
    for raw_relay in [true, false] {
        let chain = Chain::new(&lab, &backend, raw_relay);
        let mut client = chain.front.client();
        for framing in ["Content-Length: 10000000", "Transfer-Encoding: chunked"] {
            let mut request = format!("POST /echo HTTP/1.1\r\nHost: test\r\n{framing}\r\n\r\n").into_bytes();
            if framing.starts_with('T') {
                request.extend_from_slice(&chunked(&body, &[16_384, 1, 70_000], "X-Sum: 7\r\n"));
            } else {
                request.extend_from_slice(&body);
            }
            let answer = exchange(&mut client, &request);
            assert!(!answer.cut && answer.body == body, "{framing}, {raw_relay}: {}", answer.body.len());
            assert_eq!(answer.trailers.is_empty(), !framing.starts_with('T'));
        }
        for path in ["bytes", "chunked", "close"] {
            let answer = client.get(&format!("/{path}/{LARGE}"));
            assert!(!answer.cut && answer.body == body, "{path}, {raw_relay}: {}", answer.body.len());
        }
    }
}

#[test]
fn a_tunnel_through_tls_carries_bytes_both_ways_and_each_end() {
    let lab = Lab::new();
    let backend = lab.fake();
    let chain = Chain::new(&lab, &backend, true);
    let mut client = chain.front.client();
    client.send(
        "GET /upgrade HTTP/1.1\r\nHost: test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nearly",
    );
    assert_eq!(client.answer().status, 101);
    assert_eq!(client.take(5), b"early");
    let body = pattern(3_000_000);
    assert!(client.while_sending(&body, |client| client.take(body.len())) == body);
    client.send("last").finish_sending();
    assert_eq!(client.rest(), b"last");
    assert!(!client.was_reset());
    eventually("the backend's connection is closed", || backend.open_connections() == 0);
}

#[test]
fn a_tunnel_that_a_shutdown_cuts_does_not_look_ended_to_the_backend() {
    let lab = Lab::new();
    let backend = lab.fake();
    let chain = Chain::new(&lab, &backend, true);
    let mut client = chain.front.client();
    client.send("GET /upgrade HTTP/1.1\r\nHost: test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
    assert_eq!(client.answer().status, 101);
    client.send("half of a message");
    assert_eq!(client.take(17), b"half of a message");
    // One signal drains, the second cuts.
    chain.front.server.shutdown().advance();
    assert_eq!(end(chain.front).cut, 1);
    until_ended(&chain.back, Cause::ClientGone, 1);
}

#[test]
fn one_hundred_continue_passes_through() {
    let lab = Lab::new();
    let backend = lab.fake();
    let chain = Chain::new(&lab, &backend, true);
    let mut client = chain.front.client();
    client.send("POST /echo HTTP/1.1\r\nHost: test\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n");
    assert_eq!(client.answer().status, 100);
    assert_eq!(client.send("hello").final_answer().text(), "hello");
    client.send("GET /early-hints HTTP/1.1\r\nHost: test\r\n\r\n");
    assert_eq!((client.answer().status, client.answer().status), (103, 200));
}

fn one(lab: &Lab, behaviour: Behaviour, change: impl FnOnce(&mut Config)) -> (Running, Keel) {
    let backend = start(Fake::http("fake-1").behave(behaviour), lab.tls());
    let mut config = lab.config("http", TRUSTED, &urls(&[&backend]));
    change(&mut config);
    let keel = Keel::start(&config);
    (backend, keel)
}

/// Sends as much of an endless body as is taken, and gives the answer that comes meanwhile.
fn upload_until_answered(address: SocketAddr) -> Answer {
    let mut client = Client::connect(address);
    client.send("POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 1000000000000\r\n\r\n");
    let mut socket = client.socket.try_clone().unwrap();
    let piece = pattern(100_000);
    std::thread::scope(|scope| {
        scope.spawn(move || while socket.write_all(&piece).is_ok() {});
        let answer = client.answer();
        // Ends the thread: nobody else has the other half.
        let _ = client.socket.shutdown(std::net::Shutdown::Both);
        answer
    })
}

/// A backend may answer and leave: its answer counts before what can't be written to it any more.
#[test]
fn an_answer_that_comes_while_the_upload_is_stuck_reaches_the_client() {
    let lab = Lab::new();
    let early = "HTTP/1.1 413 Content Too Large\r\nContent-Length: 3\r\nConnection: close\r\n\r\nbig";
    for leaves in [false, true] {
        let puppet = Puppet::new(&lab);
        let keel = Keel::start(&lab.config("http", TRUSTED, &[puppet.url()]));
        let address = keel.address();
        std::thread::scope(|scope| {
            let asked = scope.spawn(move || upload_until_answered(address));
            let mut strings = puppet.accept();
            assert!(strings.read_until("\r\n\r\n").starts_with("POST / "));
            // It reads no further and answers; when it leaves, what it has not read makes that a reset.
            let record = strings.record(early);
            strings.send(&record);
            let held = (!leaves).then_some(strings);
            let answer = asked.join().unwrap();
            assert_eq!((answer.status, answer.text().as_str(), answer.cut), (413, "big", false), "{leaves}");
            drop(held);
        });
    }
}

#[test]
fn a_backend_that_stops_reading_runs_into_its_deadline() {
    let lab = Lab::new();
    let (backend, keel) = one(&lab, Behaviour::fault(Fault::HangUnread), |config| {
        config.targets[0].timeouts.idle = Duration::from_secs(1);
    });
    let answer = upload_until_answered(keel.address());
    assert_own(&answer, Cause::FirstByteTimeout);
    until_ended(&keel, Cause::FirstByteTimeout, 1);
    eventually("the backend is left", || keel.server.connections() == 0);
    drop(backend);
}

#[test]
fn a_backend_that_stops_in_its_body_is_cut() {
    let lab = Lab::new();
    let (_backend, keel) = one(&lab, Behaviour::default(), |config| {
        config.targets[0].timeouts.idle = Duration::from_secs(1);
    });
    for framing in ["bytes", "chunked", "close"] {
        let answer = keel.client().get(&format!("/{framing}/1000?piece=100&every=100000"));
        assert!(answer.status == 200 && answer.cut, "{framing}");
    }
    until_ended(&keel, Cause::AnswerStalled, 3);
}

#[test]
fn a_client_that_does_not_read_holds_the_backend_back() {
    let lab = Lab::new();
    let (backend, keel) = one(&lab, Behaviour::default(), |_| ());
    let mut client = keel.client();
    client.send(format!("GET /bytes/{} HTTP/1.1\r\nHost: test\r\n\r\n", 1u64 << 40));
    eventually("it has begun", || backend.stats().bytes_out > 0);
    let sent = super::support::settled("the backend stops", || backend.stats().bytes_out);
    assert!((1..64 * 1024 * 1024).contains(&sent), "{sent}");
    let taken = client.take(5_000_000);
    let start = taken.windows(4).position(|four| four == b"\r\n\r\n").unwrap() + 4;
    assert!(pattern(5_000_000).starts_with(&taken[start..]));
    drop(client);
    eventually("a client that left is noticed", || backend.open_connections() == 0);
}
