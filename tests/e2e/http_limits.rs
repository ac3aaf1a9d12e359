//! Limits and deadlines, and the answers we write ourselves.

use std::time::Duration;

use evenkeel::config::model::Config;
use evenkeel::message::Cause;
use fake_backend::{Behaviour, Fault, Running, pattern};

use super::support::{Answer, Keel, eventually, fakes};

/// Nothing that must not be cut takes so long, on a busy machine either.
const SHORT: Duration = Duration::from_secs(1);

fn keel(backend: &Running, change: impl FnOnce(&mut Config)) -> Keel {
    Keel::with(&[backend], change)
}

/// An answer of our own, complete and silent about what is inside.
fn own(answer: &Answer, cause: Cause) {
    assert_eq!(answer.status, cause.status(), "{}", answer.head);
    assert!(!answer.cut, "{cause}");
    assert!(answer.header("date").is_some_and(|date| date.ends_with("GMT")), "{}", answer.head);
    assert_eq!(answer.header("content-length"), Some(answer.body.len().to_string().as_str()));
    assert_eq!(answer.header("proxy-status"), Some(format!("evenkeel; details={cause}").as_str()));
    let id = answer.header("x-request-id").unwrap_or_default();
    let text = answer.text();
    assert!(id.len() == 32 && text.contains(id) && text.contains(cause.token()), "{text}");
    for secret in ["127.0.0.1", "fake", "web", "localhost", "src/"] {
        assert!(
            !answer.head.contains(secret) && !text.contains(secret),
            "`{secret}` in {}{text}",
            answer.head
        );
    }
}

#[test]
fn heads_are_limited_in_bytes_and_lines() {
    let backends = fakes(1);
    let keel = keel(&backends[0], |config| {
        config.listeners[0].limits.head_size = 2048;
        config.listeners[0].limits.headers = 10;
    });
    let ask = |request: String| keel.client().ask(&request);
    own(&ask(format!("GET /{} HTTP/1.1\r\nHost: a\r\n\r\n", "a".repeat(3000))), Cause::TargetTooLong);
    own(&ask(format!("GET / HTTP/1.1\r\nHost: a\r\nA: {}\r\n\r\n", "a".repeat(3000))), Cause::HeadTooLarge);
    own(&ask(format!("GET / HTTP/1.1\r\nHost: a\r\n{}\r\n", "A: b\r\n".repeat(10))), Cause::TooManyHeaders);
    let fits = format!("GET / HTTP/1.1\r\nHost: a\r\n{}\r\n", "A: b\r\n".repeat(9));
    assert_eq!(ask(fits).status, 200);
    let exact = "GET / HTTP/1.1\r\nHost: a\r\nA: \r\n\r\n".len();
    let fits = format!("GET / HTTP/1.1\r\nHost: a\r\nA: {}\r\n\r\n", "a".repeat(2048 - exact));
    assert_eq!((fits.len(), ask(fits).status), (2048, 200));
    assert_eq!(backends[0].requests(), 2);
}

#[test]
fn bodies_are_limited_by_what_they_announce_and_by_what_they_are() {
    let backends = fakes(1);
    let keel = keel(&backends[0], |config| {
        config.workers = 1;
        config.listeners[0].limits.body = Some(1000);
    });
    own(&keel.client().post("/", &pattern(1001)), Cause::BodyTooLarge);
    assert_eq!(backends[0].requests(), 0);
    assert_eq!(keel.client().post("/count", &pattern(1000)).text(), "1000");
    let mut client = keel.client();
    client.send("POST /count HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
    assert_eq!(client.send(super::support::chunked(&pattern(1000), &[300], "")).answer().text(), "1000");
    client.send("POST /count HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
    own(&client.send(super::support::chunked(&pattern(1001), &[300], "")).answer(), Cause::BodyTooLarge);
    // An upload takes no connection that has been idle for 20 ms: so on a busy machine there may be others.
    eventually("the cut upload ends at the backend", || {
        let seen = backends[0].stats();
        seen.open + 1 == seen.connections
    });
    assert_eq!(keel.client().get("/").status, 200);
}

/// What a client sends beside the content costs as much as content.
#[test]
fn chunk_extensions_count_towards_the_limit_of_a_body() {
    let backends = fakes(1);
    let keel = keel(&backends[0], |config| config.listeners[0].limits.body = Some(1000));
    let ask = |line: &str, chunks: usize| {
        let body = format!("{line}\r\nx\r\n").repeat(chunks) + "0\r\n\r\n";
        let head = "POST /count HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
        keel.client().send(head).send(body).answer()
    };
    assert_eq!(
        ask(&format!("1;{}", "a".repeat(97)), 10).text(),
        "10",
        "ten lines of 99 bytes and ten of content"
    );
    own(&ask(&format!("1;{}", "a".repeat(97)), 11), Cause::BodyTooLarge);
    own(&ask(&format!("{}1", "0".repeat(300)), 4), Cause::BodyTooLarge);
    assert_eq!(ask("0000000000000001", 1000).text(), "1000", "of a plain size the content counts alone");
}

#[test]
fn a_head_that_stops_gets_408_and_silence_gets_nothing() {
    let backends = fakes(1);
    let keel = keel(&backends[0], |config| {
        config.listeners[0].client_timeouts.head = SHORT;
        config.listeners[0].client_timeouts.keep_alive = SHORT;
    });
    own(&keel.client().ask("GET / HTTP/1.1\r\nHo"), Cause::HeadTimeout);
    assert!(keel.client().is_closed(), "no byte, no word");
    let mut client = keel.client();
    assert_eq!(client.get("/").status, 200);
    assert!(client.is_closed() && !client.was_reset(), "silence between two requests");
    let mut client = keel.client();
    assert_eq!(client.post("/count", b"abc").text(), "3");
    client.send("\r\n");
    assert!(client.is_closed() && !client.was_reset(), "an empty line behind a body is no request");
}

#[test]
fn a_head_that_drips_does_not_move_its_deadline() {
    let backends = fakes(1);
    let keel = keel(&backends[0], |config| config.listeners[0].client_timeouts.head = SHORT);
    let mut client = keel.client();
    client.socket.set_read_timeout(Some(Duration::from_millis(5))).unwrap();
    client.send("GET / HTTP/1.1\r\nA: ");
    let mut byte = [0u8; 1];
    eventually("the deadline comes", || {
        client.send("a");
        client.socket.peek(&mut byte).is_ok()
    });
    client.socket.set_read_timeout(Some(super::support::PATIENCE)).unwrap();
    own(&client.answer(), Cause::HeadTimeout);
}

#[test]
fn a_body_that_stops_gets_408() {
    let backends = fakes(1);
    let keel = keel(&backends[0], |config| config.listeners[0].client_timeouts.idle = SHORT);
    for request in [
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nab",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n",
    ] {
        let mut client = keel.client();
        own(&client.ask(request), Cause::BodyTimeout);
        assert!(client.is_closed(), "{request}");
    }
    eventually("the backend sees the cut", || backends[0].open_connections() == 0);
    assert_eq!(backends[0].stats().malformed, 0);
}

#[test]
fn a_backend_that_does_not_answer_is_504() {
    let backends = fakes(1);
    // Far less than a slow head takes.
    let first_byte = Duration::from_millis(150);
    let keel = keel(&backends[0], |config| config.targets[0].timeouts.first_byte = first_byte);
    for behaviour in [Behaviour::hang(), Behaviour::fault(Fault::SlowHead)] {
        backends[0].behave(behaviour);
        let mut client = keel.client();
        own(&client.get("/"), Cause::FirstByteTimeout);
        own(&client.post("/", b"abc"), Cause::FirstByteTimeout);
    }
    eventually("nothing is left open", || backends[0].open_connections() == 0);
}

#[test]
fn the_time_a_client_takes_does_not_count_against_the_backend() {
    let backends = fakes(1);
    let keel = keel(&backends[0], |config| config.targets[0].timeouts.first_byte = Duration::from_secs(2));
    // The backend has two seconds, which are enough on a busy machine; the client takes three.
    let mut client = keel.client();
    client.send("POST /count HTTP/1.1\r\nHost: a\r\nContent-Length: 30\r\n\r\n");
    client.socket.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    for _ in 0..30 {
        assert!(client.socket.peek(&mut [0u8; 1]).is_err(), "an answer before the request was complete");
        client.send("x");
    }
    client.socket.set_read_timeout(Some(super::support::PATIENCE)).unwrap();
    assert_eq!(client.answer().text(), "30");
}

#[test]
fn a_backend_that_stops_in_its_body_is_cut() {
    let backends = fakes(1);
    let keel = keel(&backends[0], |config| config.targets[0].timeouts.idle = SHORT);
    for framing in ["bytes", "chunked", "close"] {
        let mut client = keel.client();
        let answer = client.get(&format!("/{framing}/1000?piece=100&every=100000"));
        assert!(answer.status == 200 && answer.cut, "{framing}");
        assert!(client.was_reset(), "{framing}: an abort that can't be taken for an end");
    }
    eventually("it is written down", || keel.server.readings().ended_with(Cause::AnswerStalled) == 3);
}

#[test]
fn a_client_that_stops_taking_is_cut() {
    let backends = fakes(1);
    let keel = keel(&backends[0], |config| config.listeners[0].client_timeouts.idle = SHORT);
    let mut client = keel.client();
    client.send("GET /bytes/1000000000 HTTP/1.1\r\nHost: a\r\n\r\n");
    eventually("it is cut", || keel.server.readings().ended_with(Cause::ClientStalled) == 1);
    eventually("the backend is told", || backends[0].open_connections() == 0);
    assert!(client.answer().cut);
}

#[test]
fn a_backend_that_does_not_accept_is_504() {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    socket.bind(&"127.0.0.1:0".parse::<std::net::SocketAddr>().unwrap().into()).unwrap();
    socket.listen(0).unwrap();
    let address = socket.local_addr().unwrap().as_socket().unwrap();
    // Fills the backlog; from then on a handshake is not answered.
    let mut filling = Vec::new();
    while let Ok(stream) = std::net::TcpStream::connect_timeout(&address, SHORT) {
        filling.push(stream);
        assert!(filling.len() < 64, "the backlog can't be filled here");
    }
    let mut config = super::support::config(evenkeel::config::model::Protocol::Http, &[address]);
    config.targets[0].timeouts.connect = SHORT;
    let keel = Keel::start(&config);
    own(&keel.client().get("/"), Cause::ConnectTimeout);
}

#[test]
fn without_a_backend_it_is_503_and_a_kept_connection() {
    let backends = fakes(1);
    backends[0].stop();
    let keel = keel(&backends[0], |_| ());
    let mut client = keel.client();
    own(&client.get("/"), Cause::ConnectFailed);
    own(&client.post("/", b"abc"), Cause::ConnectFailed);
    backends[0].restart().unwrap();
    eventually("it is tried again", || client.get("/").status == 200);
}

#[test]
fn own_answers_to_head_have_no_body_and_the_connection_goes_on() {
    let backends = fakes(1);
    backends[0].behave(Behaviour::fault(Fault::Garbage));
    let keel = keel(&backends[0], |_| ());
    let mut client = keel.client();
    client.send("HEAD / HTTP/1.1\r\nHost: a\r\n\r\n");
    let head = client.answer_to_head();
    assert_eq!((head.status, head.header("connection")), (502, None));
    let get = client.get("/");
    own(&get, Cause::BadAnswer);
    assert_eq!(head.header("content-length"), get.header("content-length"));
    client.send("HEAD / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n");
    assert_eq!(client.answer_to_head().status, 400);
    assert!(client.is_closed());
}
