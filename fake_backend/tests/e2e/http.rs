//! HTTP as it should be: the usual answers, the special paths, framing in both directions.

use fake_backend::{Behaviour, Fake, pattern};

use crate::client::{Client, SOON, text};

#[tokio::test]
async fn the_usual_answer() {
    let fake = Fake::http("fake-1").start().await.unwrap();
    let mut client = Client::connect(fake.addr()).await;
    let answer = client.get("/anything?x=1").await;
    assert_eq!(
        answer.head,
        "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 17\r\nX-Backend: fake-1\r\n\r\n"
    );
    assert_eq!(answer.text(), "Hello from fake-1");
    assert_eq!((fake.requests(), fake.connections(), fake.open_connections()), (1, 1, 1));
}

#[tokio::test]
async fn every_method_and_pipelined_requests() {
    let fake = Fake::http("a").start().await.unwrap();
    let mut client = Client::connect(fake.addr()).await;
    let methods = ["GET", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "PURGE"];
    let all: String =
        methods.iter().map(|m| format!("{m} / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nxy")).collect();
    client.send(all).await;
    for method in methods {
        assert_eq!(client.answer().await.text(), "Hello from a", "{method}");
    }
    assert_eq!((fake.requests(), fake.connections()), (8, 1));
}

#[tokio::test]
async fn a_head_answer_has_a_length_and_no_body() {
    let fake = Fake::http("a").start().await.unwrap();
    let mut client = Client::connect(fake.addr()).await;
    client.send("HEAD / HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
    assert!(client.head().await.contains("Content-Length: 12\r\n"));
    assert_eq!(client.answer().await.text(), "Hello from a");
}

#[tokio::test]
async fn http_1_0_closes_unless_asked_to_stay() {
    let fake = Fake::http("a").start().await.unwrap();
    let mut client = Client::connect(fake.addr()).await;
    client.send("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n").await;
    assert_eq!(client.answer().await.header("connection"), Some("keep-alive"));
    client.send("GET /chunked/5 HTTP/1.0\r\n\r\n").await;
    let answer = client.answer().await;
    assert_eq!((answer.header("transfer-encoding"), answer.text()), (None, "01234"));
}

#[tokio::test]
async fn echo_by_length_streams_while_it_arrives() {
    let fake = Fake::http("a").start().await.unwrap();
    let mut client = Client::connect(fake.addr()).await;
    client.send("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhello").await;
    assert!(client.head().await.contains("Content-Length: 10\r\n"));
    assert_eq!(client.take(5).await, b"hello");
    client.send("world").await;
    assert_eq!(client.take(5).await, b"world");
    assert_eq!(client.get("/").await.status(), 200);
}

#[tokio::test]
async fn echo_in_chunks_keeps_trailers() {
    let fake = Fake::http("a").record().start().await.unwrap();
    let mut client = Client::connect(fake.addr()).await;
    client.send("POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n").await;
    assert!(client.head().await.contains("Transfer-Encoding: chunked\r\n"));
    assert_eq!(text(&client.until(b"hello\r\n").await), "5\r\nhello\r\n");
    assert!(!fake.last_requests()[0].complete);
    client.send("1\r\n!\r\n0\r\nX-Sum: 1\r\n\r\n").await;
    assert_eq!(text(&client.until(b"\r\n\r\n").await), "1\r\n!\r\n0\r\nX-Sum: 1\r\n\r\n");
    let recorded = fake.take_requests();
    assert_eq!(
        (text(&recorded[0].body), text(&recorded[0].trailers)),
        ("hello!".into(), "X-Sum: 1\r\n".into())
    );
    assert_eq!(recorded[0].header("host"), ["a"]);
    assert!(recorded[0].complete && fake.last_requests().is_empty());
}

#[tokio::test]
async fn head_and_count_tell_what_arrived() {
    let fake = Fake::http("a").start().await.unwrap();
    let mut client = Client::connect(fake.addr()).await;
    assert_eq!(client.get("/head").await.text(), "GET /head HTTP/1.1\r\nHost: fake\r\n\r\n");
    client.send("POST /count HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n").await;
    assert_eq!(client.answer().await.text(), "5");
}

#[tokio::test]
async fn generated_bodies_by_length_in_chunks_and_until_the_end() {
    let fake = Fake::http("a").start().await.unwrap();
    let mut client = Client::connect(fake.addr()).await;
    assert!(client.get("/bytes/1000000").await.body == pattern(1_000_000));
    client.send("GET /chunked/40000?trailer=1 HTTP/1.1\r\nHost: a\r\n\r\n").await;
    let head = client.head().await;
    assert!(head.contains("Transfer-Encoding: chunked") && !head.contains("Content-Length"), "{head}");
    let mut body = Vec::new();
    loop {
        let size = client.until(b"\r\n").await;
        match usize::from_str_radix(text(&size).trim(), 16).unwrap() {
            0 => break,
            size => body.extend_from_slice(&client.take(size + 2).await[..size]),
        }
    }
    assert!(body == pattern(40_000));
    assert_eq!(text(&client.until(b"\r\n\r\n").await), "X-Trailer: a\r\n\r\n");
    let answer = client.get("/close/500").await;
    assert_eq!((answer.header("connection"), answer.header("content-length")), (Some("close"), None));
    assert!(answer.body == pattern(500));
}

#[tokio::test]
async fn status_early_hints_and_nonsense() {
    let fake = Fake::http("a").start().await.unwrap();
    let mut client = Client::connect(fake.addr()).await;
    assert_eq!(client.get("/status/418").await.status(), 418);
    assert!(client.get("/status/204").await.header("content-length").is_none());
    assert_eq!(client.get("/status/7").await.status(), 400);
    assert_eq!(client.get("/bytes/many").await.status(), 400);
    assert_eq!(client.get("/early-hints").await.status(), 103);
    assert_eq!(client.answer().await.status(), 200);
}

#[tokio::test]
async fn delay_waits_as_long_as_asked() {
    let fake = Fake::http("a").start().await.unwrap();
    let start = tokio::time::Instant::now();
    let mut client = Client::connect(fake.addr()).await;
    assert_eq!(client.get("/delay/150").await.status(), 200);
    assert!(start.elapsed().as_millis() >= 150);
}

#[tokio::test]
async fn health_is_counted_apart_and_can_go_down() {
    let fake = Fake::http("a").start().await.unwrap();
    let mut client = Client::connect(fake.addr()).await;
    assert_eq!(client.get("/health").await.status(), 200);
    fake.set_healthy(false);
    assert_eq!(client.get("/ping").await.status(), 503);
    assert_eq!(client.get("/").await.status(), 200);
    fake.set_healthy(true);
    fake.behave(Behaviour::status(500));
    assert_eq!(client.get("/health").await.status(), 500);
    fake.behave(Behaviour::status(500).sparing_health());
    assert_eq!(client.get("/health").await.status(), 200);
    assert_eq!((fake.requests(), fake.probes()), (1, 4));
    let other = Fake::http("b").health_path("/up").unhealthy().start().await.unwrap();
    let mut client = Client::connect(other.addr()).await;
    assert_eq!((client.get("/up").await.status(), client.get("/health").await.status()), (503, 200));
}

#[tokio::test]
async fn continue_is_sent_when_asked_and_not_when_told() {
    let fake = Fake::http("a").start().await.unwrap();
    let mut client = Client::connect(fake.addr()).await;
    let head = "POST /count HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n";
    client.send(head).await;
    assert_eq!(client.head().await, "HTTP/1.1 100 Continue\r\n\r\n");
    client.send("abc").await;
    assert_eq!(client.answer().await.text(), "3");
    fake.behave(Behaviour::default().without_continue());
    client.send(head).await;
    assert!(client.is_quiet().await);
    client.send("abc").await;
    assert_eq!(client.answer().await.text(), "3");
    // A final answer instead: the body may or may not come, so the connection ends.
    fake.behave(Behaviour::status(413).answering_early());
    client.send(head).await;
    let answer = client.answer().await;
    assert_eq!((answer.status(), answer.header("connection")), (413, Some("close")));
}

#[tokio::test]
async fn an_early_answer_comes_before_the_body() {
    let fake = Fake::http("a").behave(Behaviour::status(403).answering_early()).start().await.unwrap();
    let mut client = Client::connect(fake.addr()).await;
    client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\n\r\nabc").await;
    assert_eq!(client.answer().await.status(), 403);
    client.send("def").await;
    assert_eq!(client.get("/").await.status(), 403);
}

#[tokio::test]
async fn upgrades_echo_bytes_or_frames() {
    let fake = Fake::http("a").start().await.unwrap();
    let mut client = Client::connect(fake.addr()).await;
    client
        .send("GET /upgrade HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: talk\r\n\r\nfirst")
        .await;
    let head = client.head().await;
    assert!(head.starts_with("HTTP/1.1 101 ") && head.contains("\r\nUpgrade: talk\r\n"), "{head}");
    client.send(" second").await;
    client.finish().await;
    assert_eq!(client.rest().await.unwrap(), b"first second");

    let mut client = Client::connect(fake.addr()).await;
    client.send("GET /chat HTTP/1.1\r\nHost: a\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n").await;
    assert!(client.head().await.contains("\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"));
    client.send([0x81, 0x85, 0x37, 0xfa, 0x21, 0x3d, 0x7f, 0x9f, 0x4d, 0x51, 0x58]).await;
    assert_eq!(client.take(7).await, b"\x81\x05Hello");
    client.send([0x89, 0x80, 0, 0, 0, 0]).await;
    assert_eq!(client.take(2).await, [0x8a, 0]);
    client.send([0x88, 0x80, 0, 0, 0, 0]).await;
    assert_eq!(client.rest().await.unwrap(), [0x88, 0]);
    // Protocols nobody speaks are not agreed to.
    let mut client = Client::connect(fake.addr()).await;
    client.send("GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: h2c\r\n\r\n").await;
    assert_eq!(client.answer().await.status(), 200);
}

#[tokio::test]
async fn malformed_requests_are_judged() {
    let fake = Fake::http("a").start().await.unwrap();
    for request in [
        "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3 \r\nabc\r\n0\r\n\r\n",
        "GET / HTTP/1.1\nHost: a\r\n\r\n",
    ] {
        let mut client = Client::connect(fake.addr()).await;
        client.send(request).await;
        let answer = client.answer().await;
        assert_eq!((answer.status(), answer.header("connection")), (400, Some("close")), "{request:?}");
        assert_eq!(client.rest().await.unwrap(), b"");
    }
    assert_eq!(fake.stats().malformed, 3);
}

#[tokio::test]
async fn a_unix_socket_serves_too() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("fake.sock");
    let fake = Fake::http("u").unix(&path).start().await.unwrap();
    for round in 0..2 {
        let mut stream = tokio::net::UnixStream::connect(&path).await.unwrap();
        stream.write_all(b"GET / HTTP/1.0\r\n\r\n").await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        assert!(answer.ends_with("Hello from u"), "{round}: {answer}");
        fake.stop();
        assert!(tokio::net::UnixStream::connect(&path).await.is_err());
        fake.restart().unwrap();
    }
    drop(fake);
    assert!(!path.exists());
}

#[tokio::test]
async fn an_abort_in_the_middle_of_a_body_is_counted() {
    let fake = Fake::http("a").start().await.unwrap();
    let mut client = Client::connect(fake.addr()).await;
    client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\n\r\nabc").await;
    fake.wait_for(|stats| stats.requests == 1, SOON).await.unwrap();
    drop(client);
    let stats = fake.wait_for(|stats| stats.open == 0, SOON).await.unwrap();
    assert_eq!((stats.aborted, stats.answers), (1, 0));
}

#[tokio::test]
async fn requests_beyond_the_slots_wait() {
    let fake = Fake::http("a").slots(2).start().await.unwrap();
    // The first one works for ever.
    fake.behave(Behaviour::default().latency(std::time::Duration::from_secs(3_600)).times(1));
    let mut busy = Client::connect(fake.addr()).await;
    busy.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
    fake.wait_for(|stats| stats.requests == 1, SOON).await.unwrap();
    // The other slot serves the rest, one after the other.
    let mut others = Vec::new();
    for _ in 0..5 {
        let mut client = Client::connect(fake.addr()).await;
        client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
        others.push(client);
    }
    for client in &mut others {
        assert_eq!(client.answer().await.text(), "Hello from a");
    }
    // With that one taken too, requests wait; health does not.
    fake.behave(Behaviour::default().latency(std::time::Duration::from_secs(3_600)).times(1));
    let mut last = Client::connect(fake.addr()).await;
    last.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
    fake.wait_for(|stats| stats.requests == 7, SOON).await.unwrap();
    let [waiting, well, ..] = &mut others[..] else { panic!("five clients") };
    waiting.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
    fake.wait_for(|stats| stats.requests == 8, SOON).await.unwrap();
    assert_eq!(well.get("/health").await.status(), 200);
    assert!(waiting.is_quiet().await);
}

#[tokio::test]
async fn the_most_requests_at_once_are_counted_until_their_answers_begin() {
    let fake = Fake::http("a").start().await.unwrap();
    let mut client = Client::connect(fake.addr()).await;
    for _ in 0..3 {
        client.get("/").await;
        client.get("/health").await;
    }
    assert_eq!(fake.stats().most, 1);
    fake.behave(Behaviour::hang().times(2));
    let mut waiting = Vec::new();
    for number in 0..2 {
        let mut other = Client::connect(fake.addr()).await;
        other.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
        waiting.push(other);
        fake.wait_for(|stats| stats.most == number + 1, SOON).await.unwrap();
    }
    client.get("/").await;
    assert_eq!(fake.stats().most, 3);
}
