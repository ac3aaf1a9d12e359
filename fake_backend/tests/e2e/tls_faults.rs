//! Each way to spoil TLS, as it shows on the wire, and what the other faults become under it.

use std::io::ErrorKind;

use fake_backend::{Behaviour, Fake, Fault, Running, TLS_FAULTS, TlsFault, TlsOptions};
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;

use crate::client::{Client, SOON, text};
use crate::tls::{TlsClient, friend};

async fn with(behaviour: Behaviour) -> Running {
    Fake::http("a").tls(TlsOptions::new()).behave(behaviour).record().start().await.unwrap()
}

/// A ClientHello's record header and the beginning of its message.
const HELLO: &[u8] = b"\x16\x03\x01\x00\xc8\x01\x00\x00\xc4\x03\x03";

/// What a client in clear sees after it has sent something like a ClientHello.
async fn in_clear(fault: TlsFault) -> (Running, Client) {
    let fake = with(Behaviour::tls_fault(fault)).await;
    let mut client = Client::connect(fake.addr()).await;
    client.send(HELLO).await;
    (fake, client)
}

async fn secure(behaviour: Behaviour) -> (Running, TlsClient) {
    let fake = with(behaviour).await;
    let client = friend(&fake).connect(&fake).await;
    (fake, client)
}

#[tokio::test]
async fn no_client_of_tls_gets_through_a_spoiled_handshake() {
    for (name, fault) in TLS_FAULTS {
        // These leave the client waiting, and have a test of their own.
        if matches!(fault, TlsFault::Hang | TlsFault::Half | TlsFault::NoCloseNotify) {
            continue;
        }
        let fake = with(Behaviour::tls_fault(*fault).times(1)).await;
        assert!(friend(&fake).try_connect(&fake).await.is_err(), "{name}");
        let mut client = friend(&fake).connect(&fake).await;
        assert_eq!(client.get("/").await.status(), 200, "{name}: it held for one connection");
        assert_eq!(fake.requests(), 1, "{name}");
    }
}

#[tokio::test]
async fn talk_first_needs_no_word_and_still_shakes_hands() {
    let fake = with(Behaviour::tls_fault(TlsFault::TalkFirst)).await;
    let mut client = Client::connect(fake.addr()).await;
    assert_eq!(client.answer().await.text(), "in clear");
    client.send(HELLO).await;
    client.finish().await;
    client.rest().await.unwrap();
    fake.wait_for(|stats| stats.failed_handshakes == 1 && stats.open == 0, SOON).await.unwrap();
}

#[tokio::test]
async fn hang_and_half_stay_open() {
    let (_fake, mut client) = in_clear(TlsFault::Hang).await;
    assert!(client.is_quiet().await);

    let (fake, mut client) = in_clear(TlsFault::Half).await;
    let half = client.take(43).await;
    assert_eq!(half[..6], [0x16, 3, 3, 0, 122, 2]);
    assert!(client.is_quiet().await);
    drop(client);
    fake.wait_for(|stats| stats.failed_handshakes == 1 && stats.open == 0, SOON).await.unwrap();
    assert!(fake.last_handshakes()[0].outcome.as_ref().is_err_and(|reason| reason.contains("spoiled")));
}

#[tokio::test]
async fn close_and_plain_answer_the_hello() {
    let (_fake, mut client) = in_clear(TlsFault::Close).await;
    assert_eq!(client.rest().await, Ok(Vec::new()));
    let (fake, mut client) = in_clear(TlsFault::Plain).await;
    assert_eq!(client.answer().await.status(), 400);
    assert_eq!(fake.stats().failed_handshakes, 0);
}

#[tokio::test]
async fn clear_requests_fail_the_handshake() {
    let fake = with(Behaviour::default()).await;
    let mut client = Client::connect(fake.addr()).await;
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
    let alert = client.rest().await.unwrap();
    assert!(alert.is_empty() || alert[0] == 0x15, "{}", text(&alert));
    fake.wait_for(|stats| stats.failed_handshakes == 1, SOON).await.unwrap();
}

#[tokio::test]
async fn ends_are_told_apart_by_close_notify() {
    let (_fake, mut client) = secure(Behaviour::default()).await;
    assert_eq!(client.get("/close/10").await.body.len(), 10);

    let (_fake, mut client) = secure(Behaviour::tls_fault(TlsFault::NoCloseNotify)).await;
    client.send("GET /close/10 HTTP/1.1\r\nHost: a\r\n\r\n").await;
    assert_eq!(client.rest().await, Err(ErrorKind::UnexpectedEof));
    assert!(text(&client.input).starts_with("HTTP/1.1 200 OK\r\n"));
}

#[tokio::test]
async fn the_other_faults_go_on_under_it() {
    let (_fake, mut client) = secure(Behaviour::fault(Fault::CloseMidBody).size(100)).await;
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
    assert!(text(&client.rest().await.unwrap()).starts_with("HTTP/1.1 200 OK\r\n"));

    let (_fake, mut client) = secure(Behaviour::fault(Fault::ResetMidBody).size(100)).await;
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
    assert_eq!(client.rest().await, Err(ErrorKind::ConnectionReset));

    // Not a byte is read on accept, so there is no handshake either.
    let fake = with(Behaviour::fault(Fault::CloseOnAccept)).await;
    let mut stream = TcpStream::connect(fake.addr()).await.unwrap();
    assert_eq!(stream.read(&mut [0; 1]).await.unwrap(), 0);
    assert_eq!(fake.stats().failed_handshakes, 0);
}
