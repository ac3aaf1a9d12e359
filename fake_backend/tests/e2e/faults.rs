//! Each way to misbehave, as it shows on the wire.

use std::io::ErrorKind;
use std::time::Duration;

use fake_backend::{Behaviour, Ending, FAULTS, Fake, Fault, Running, Spread, pattern};
use tokio::time::Instant;

use crate::client::{Client, SOON, text};

const GET: &str = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

async fn with(behaviour: Behaviour) -> (Running, Client) {
    let fake = Fake::http("a").behave(behaviour).start().await.unwrap();
    let client = Client::connect(fake.addr()).await;
    (fake, client)
}

/// Sends a GET and reads until the connection's end, which must come.
async fn whole(fault: Fault) -> (String, Result<(), ErrorKind>) {
    let (_fake, mut client) = with(Behaviour::fault(fault)).await;
    client.send(GET).await;
    match client.rest().await {
        Ok(bytes) => (text(&bytes), Ok(())),
        Err(error) => (text(&client.input), Err(error)),
    }
}

/// Sends a GET, reads what is expected, and sees the connection stay open.
async fn leaves_open(fault: Fault, expected: &str) {
    let (_fake, mut client) = with(Behaviour::fault(fault.clone())).await;
    client.send(GET).await;
    assert_eq!(text(&client.take(expected.len()).await), expected, "{fault:?}");
    assert!(client.is_quiet().await, "{fault:?}");
    client.finish().await;
    assert_eq!(client.rest().await, Ok(Vec::new()), "{fault:?}");
}

#[tokio::test]
async fn statuses_for_good_or_some_times() {
    let (fake, mut client) = with(Behaviour::status(503)).await;
    assert_eq!(client.get("/status/200").await.status(), 503);
    fake.behave(Behaviour::default());
    fake.behave(Behaviour::status(500).times(2));
    let mut seen = Vec::new();
    for _ in 0..4 {
        seen.push(client.get("/").await.status());
    }
    assert_eq!(seen, [500, 500, 200, 200]);
}

#[tokio::test]
async fn hang_reads_and_never_answers_and_sees_the_client_leave() {
    let (fake, mut client) = with(Behaviour::hang()).await;
    client.send(GET).await;
    fake.wait_for(|stats| stats.requests == 1, SOON).await.unwrap();
    assert!(client.is_quiet().await);
    drop(client);
    let stats = fake.wait_for(|stats| stats.open == 0, SOON).await.unwrap();
    assert_eq!(stats.aborted, 1);
}

#[tokio::test]
async fn hang_unread_takes_nothing_from_the_socket() {
    let (fake, mut client) = with(Behaviour::fault(Fault::HangUnread)).await;
    client.send(GET).await;
    assert!(client.is_quiet().await);
    let stats = fake.stats();
    assert_eq!((stats.bytes_in, stats.requests, stats.open), (0, 0, 1));
    fake.stop();
    // Closing with unread data resets.
    assert_eq!(client.rest().await, Err(ErrorKind::ConnectionReset));
}

#[tokio::test]
async fn connections_that_end_before_a_byte_or_an_answer() {
    for (fault, requests) in [(Fault::CloseOnAccept, 0), (Fault::CloseUnanswered, 1)] {
        let (fake, mut client) = with(Behaviour::fault(fault.clone())).await;
        client.send(GET).await;
        assert_eq!(client.rest().await, Ok(Vec::new()), "{fault:?}");
        assert_eq!(fake.requests(), requests, "{fault:?}");
    }
    let (_fake, mut client) = with(Behaviour::fault(Fault::ResetOnAccept)).await;
    assert_eq!(client.rest().await, Err(ErrorKind::ConnectionReset));
    assert_eq!(whole(Fault::ResetUnanswered).await, (String::new(), Err(ErrorKind::ConnectionReset)));
}

#[tokio::test]
async fn heads_and_bodies_that_break_off() {
    let half_head = "HTTP/1.1 200 OK\r\nX-Backend: a\r\nContent-Le";
    assert_eq!(whole(Fault::CloseMidHead).await, (half_head.into(), Ok(())));
    assert_eq!(whole(Fault::ResetMidHead).await, (half_head.into(), Err(ErrorKind::ConnectionReset)));
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 12\r\nX-Backend: a\r\n\r\n";
    assert_eq!(whole(Fault::CloseMidBody).await, (format!("{head}Hello "), Ok(())));
    assert_eq!(whole(Fault::ResetMidBody).await, (format!("{head}Hello "), Err(ErrorKind::ConnectionReset)));
}

#[tokio::test]
async fn a_chunked_body_can_break_off_too() {
    let (_fake, mut client) = with(Behaviour::fault(Fault::CloseMidBody)).await;
    client.send("GET /chunked/10 HTTP/1.1\r\nHost: a\r\n\r\n").await;
    assert!(client.head().await.contains("Transfer-Encoding: chunked\r\n"));
    assert_eq!(text(&client.rest().await.unwrap()), "5\r\n01234\r\n");
}

#[tokio::test]
async fn lengths_that_lie() {
    let head = "HTTP/1.1 200 OK\r\nX-Backend: a\r\n";
    assert_eq!(
        whole(Fault::LengthTooLong).await,
        (format!("{head}Content-Length: 22\r\n\r\nHello from a"), Ok(()))
    );
    leaves_open(Fault::LengthTooShort, &format!("{head}Content-Length: 9\r\n\r\nHello from a")).await;
    leaves_open(
        Fault::TwoLengths,
        &format!("{head}Content-Length: 12\r\nContent-Length: 13\r\n\r\nHello from a"),
    )
    .await;
    leaves_open(
        Fault::LengthAndChunked,
        &format!(
            "{head}Content-Length: 12\r\nTransfer-Encoding: chunked\r\n\r\nc\r\nHello from a\r\n0\r\n\r\n"
        ),
    )
    .await;
    leaves_open(
        Fault::BadChunk,
        &format!("{head}Transfer-Encoding: chunked\r\n\r\nzz\r\nHello from a\r\n0\r\n\r\n"),
    )
    .await;
}

#[tokio::test]
async fn bytes_that_are_wrong_or_too_many() {
    leaves_open(Fault::BareLineFeeds, "HTTP/1.1 200 OK\nX-Backend: a\nContent-Length: 12\n\nHello from a")
        .await;
    leaves_open(Fault::Garbage, "\u{16}\u{3}\u{1} this is no HTTP\r\n\r\n\r\n").await;
    leaves_open(
        Fault::ExtraBytes,
        "HTTP/1.1 200 OK\r\nX-Backend: a\r\nContent-Length: 12\r\n\r\nHello from aHTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\nunasked",
    )
    .await;
    leaves_open(
        Fault::UnsolicitedUpgrade,
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n",
    )
    .await;
    leaves_open(
        Fault::NulInHeader,
        "HTTP/1.1 200 OK\r\nX-Backend: a\r\nX-Bad: a\0b\r\nContent-Length: 12\r\n\r\nHello from a",
    )
    .await;
    leaves_open(Fault::Raw { bytes: b"HTTP/2 \x01".to_vec(), ending: Ending::KeepOpen }, "HTTP/2 \u{1}")
        .await;
    let raw = |ending| Fault::Raw { bytes: b"half a li".to_vec(), ending };
    assert_eq!(whole(raw(Ending::Close)).await, ("half a li".into(), Ok(())));
    assert_eq!(whole(raw(Ending::Reset)).await, ("half a li".into(), Err(ErrorKind::ConnectionReset)));
}

#[tokio::test]
async fn heads_without_end_and_floods() {
    let (fake, mut client) = with(Behaviour::fault(Fault::EndlessHead)).await;
    client.send(GET).await;
    let million = client.take(1_000_000).await;
    assert!(!million.windows(4).any(|four| four == b"\r\n\r\n"));
    drop(client);
    fake.wait_for(|stats| stats.open == 0, SOON).await.unwrap();

    let (_fake, mut client) = with(Behaviour::fault(Fault::InformationalFlood).times(1)).await;
    client.send(GET).await;
    for _ in 0..10_000 {
        assert!(client.head().await.starts_with("HTTP/1.1 103 "));
    }
    assert_eq!(client.answer().await.text(), "Hello from a");
    assert_eq!(client.get("/").await.status(), 200);
}

#[tokio::test]
async fn a_slow_head_takes_its_time() {
    let (_fake, mut client) = with(Behaviour::fault(Fault::SlowHead)).await;
    let start = Instant::now();
    client.send(GET).await;
    assert_eq!(client.take(1).await, b"H");
    let answer = client.answer().await;
    assert_eq!(answer.text(), "Hello from a");
    assert!(start.elapsed() > Duration::from_millis(500), "{:?}", start.elapsed());
}

#[tokio::test]
async fn latency_and_pace_slow_an_answer_down() {
    let (fake, mut client) = with(Behaviour::default().latency(Duration::from_millis(80))).await;
    let start = Instant::now();
    client.get("/").await;
    assert!(start.elapsed() >= Duration::from_millis(80));
    fake.behave(Behaviour::default().size(10).pace(3, Duration::from_millis(20)));
    let start = Instant::now();
    assert_eq!(client.get("/").await.body, pattern(10));
    // Three pauses lie between the first piece and the last.
    assert!(start.elapsed() >= Duration::from_millis(60));
    fake.behave(Behaviour::default());
    let start = Instant::now();
    assert_eq!(client.get("/bytes/4?piece=2&every=30").await.body, pattern(4));
    assert!(start.elapsed() >= Duration::from_millis(30));
    fake.behave(Behaviour::default().pace(5, Duration::from_millis(1)));
    assert_eq!(client.get("/").await.text(), "Hello from a");
}

#[tokio::test]
async fn answers_that_stall_wait_longer_than_the_others() {
    let (fake, mut client) = with(Behaviour::default().stall(1.0, Duration::from_millis(80))).await;
    let start = Instant::now();
    assert_eq!(client.get("/").await.text(), "Hello from a");
    assert!(start.elapsed() >= Duration::from_millis(80));
    fake.behave(Behaviour::default().stall(0.0, Duration::from_secs(3_600)));
    assert_eq!(client.get("/").await.text(), "Hello from a");
}

#[tokio::test]
async fn sizes_are_drawn_and_repeat_with_their_seed() {
    let mut runs = Vec::new();
    for _ in 0..2 {
        let size = Spread::weibull(0.8, 500.0).unwrap();
        let fake =
            Fake::http("a").seed(3).behave(Behaviour::default().size_spread(size)).start().await.unwrap();
        let mut client = Client::connect(fake.addr()).await;
        let mut sizes = Vec::new();
        for _ in 0..20 {
            let answer = client.get("/").await;
            assert_eq!(answer.body, pattern(answer.body.len()));
            sizes.push(answer.body.len());
        }
        runs.push(sizes);
    }
    assert_eq!(runs[0], runs[1]);
    assert!(runs[0].iter().any(|size| *size != runs[0][0]));
}

#[tokio::test]
async fn connections_close_when_told() {
    let (fake, mut client) = with(Behaviour::default().closing()).await;
    assert_eq!(client.get("/").await.header("connection"), Some("close"));
    assert_eq!(client.rest().await, Ok(Vec::new()));

    fake.behave(Behaviour::default().keep_alive_timeout(5));
    let mut client = Client::connect(fake.addr()).await;
    assert_eq!(client.get("/").await.header("keep-alive"), Some("timeout=5"));

    // An idle time that comes while a connection is idle counts for it too.
    fake.behave(Behaviour::default().idle_close(Duration::from_millis(50)));
    assert_eq!(client.rest().await, Ok(Vec::new()));
    // It does not count before the first request.
    let mut client = Client::connect(fake.addr()).await;
    assert!(client.is_quiet().await);
    let answer = client.get("/").await;
    assert_eq!((answer.status(), answer.header("connection")), (200, None));
    assert_eq!(client.rest().await, Ok(Vec::new()));

    fake.behave(Behaviour::default().idle_close(Duration::ZERO));
    let mut client = Client::connect(fake.addr()).await;
    assert_eq!(client.get("/").await.status(), 200);
    assert_eq!(client.rest().await, Ok(Vec::new()));
}

#[tokio::test]
async fn idle_connections_close_at_a_word() {
    let (fake, mut client) = with(Behaviour::default()).await;
    client.get("/").await;
    let mut busy = Client::connect(fake.addr()).await;
    busy.send("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nab").await;
    busy.head().await;
    // The answer is out before the connection counts as idle, so the word is repeated until it was heard.
    let closed = async {
        let mut ticks = tokio::time::interval(Duration::from_millis(5));
        loop {
            ticks.tick().await;
            fake.close_idle();
        }
    };
    tokio::select! {
        rest = client.rest() => assert_eq!(rest, Ok(Vec::new())),
        () = closed => {}
    }
    busy.send("cd").await;
    assert_eq!(busy.take(4).await, b"abcd");
}

#[tokio::test]
async fn every_named_fault_can_be_set_by_its_name() {
    for (name, fault) in FAULTS {
        let mut behaviour = Behaviour::default();
        behaviour.set("fault", name).unwrap();
        assert_eq!(behaviour.fault.as_ref(), Some(fault));
    }
    assert!(FAULTS.len() > 20);
}
