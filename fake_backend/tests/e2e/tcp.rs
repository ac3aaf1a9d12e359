//! The TCP modes and the faults that TCP fakes know.

use std::io::ErrorKind;
use std::time::Duration;

use fake_backend::{Behaviour, Fake, Fault, Running, TcpMode, pattern};

use crate::client::{Client, SOON, text};

async fn with(behaviour: Behaviour) -> (Running, Client) {
    let fake = Fake::tcp("t").behave(behaviour).start().await.unwrap();
    let client = Client::connect(fake.addr()).await;
    (fake, client)
}

#[tokio::test]
async fn greeting_comes_first_and_survives_what_the_client_sends() {
    let fake = Fake::tcp("t").start().await.unwrap();
    let mut silent = Client::connect(fake.addr()).await;
    assert_eq!(silent.rest().await.unwrap(), b"Hello from t");
    let mut eager = Client::connect(fake.addr()).await;
    eager.send(vec![b'x'; 100_000]).await;
    assert_eq!(eager.rest().await.unwrap(), b"Hello from t");
    assert_eq!((fake.requests(), fake.connections()), (2, 2));
}

#[tokio::test]
async fn echo_answers_each_piece_and_the_rest_after_the_fin() {
    let (_fake, mut client) = with(Behaviour::tcp(TcpMode::Echo)).await;
    for piece in ["one", "two"] {
        client.send(piece).await;
        assert_eq!(text(&client.take(3).await), piece);
    }
    client.send("last").await;
    client.finish().await;
    assert_eq!(client.rest().await.unwrap(), b"last");
}

#[tokio::test]
async fn greeting_and_echo() {
    let (_fake, mut client) = with(Behaviour::tcp(TcpMode::GreetAndEcho)).await;
    assert_eq!(client.take(12).await, b"Hello from t");
    client.send("ping").await;
    assert_eq!(client.take(4).await, b"ping");
}

#[tokio::test]
async fn a_sink_counts_and_says_nothing() {
    let (fake, mut client) = with(Behaviour::tcp(TcpMode::Sink)).await;
    client.send(pattern(300_000)).await;
    fake.wait_for(|stats| stats.bytes_in == 300_000, SOON).await.unwrap();
    assert!(client.is_quiet().await);
    client.finish().await;
    assert_eq!(client.rest().await.unwrap(), b"");
}

#[tokio::test]
async fn a_source_sends_its_pattern() {
    let (_fake, mut client) = with(Behaviour::tcp(TcpMode::Source(200_000))).await;
    assert!(client.rest().await.unwrap() == pattern(200_000));
    let (_fake, mut client) =
        with(Behaviour { fault: Some(Fault::ResetMidBody), ..Behaviour::tcp(TcpMode::Source(100)) }).await;
    assert_eq!(client.rest().await, Err(ErrorKind::ConnectionReset));
    assert_eq!(client.input, pattern(50));
}

#[tokio::test]
async fn a_greeting_at_the_end_waits_for_the_fin() {
    let (_fake, mut client) = with(Behaviour::tcp(TcpMode::GreetAtEnd)).await;
    client.send("request").await;
    assert!(client.is_quiet().await);
    client.finish().await;
    assert_eq!(client.rest().await.unwrap(), b"Hello from t");
}

#[tokio::test]
async fn faults_that_tcp_knows() {
    let (_fake, mut client) = with(Behaviour::fault(Fault::CloseOnAccept)).await;
    assert_eq!(client.rest().await, Ok(Vec::new()));
    let (_fake, mut client) = with(Behaviour::fault(Fault::ResetOnAccept)).await;
    assert_eq!(client.rest().await, Err(ErrorKind::ConnectionReset));
    let (fake, mut client) = with(Behaviour::hang()).await;
    client.send("hello?").await;
    fake.wait_for(|stats| stats.bytes_in == 6, SOON).await.unwrap();
    assert!(client.is_quiet().await);
    let (fake, mut client) = with(Behaviour::fault(Fault::HangUnread)).await;
    client.send("hello?").await;
    assert!(client.is_quiet().await);
    assert_eq!(fake.stats().bytes_in, 0);
}

#[tokio::test]
async fn latency_comes_before_the_greeting() {
    let (_fake, mut client) = with(Behaviour::default().latency(Duration::from_millis(80))).await;
    assert!(client.is_quiet().await);
    assert_eq!(client.rest().await.unwrap(), b"Hello from t");
}
