//! The edge that speaks no wire drives the same pipeline as HTTP/1 does: where HTTP/2 will stand.

use evenkeel::proxy::http::body::BodySource as _;
use std::future::poll_fn;
use std::rc::Rc;

use evenkeel::config::model::Protocol;
use evenkeel::message::{Cause, Framing, Head, Peer};
use evenkeel::proxy::WorkerCtx;
use evenkeel::proxy::http::after::After;
use evenkeel::proxy::http::body::Memory;
use evenkeel::proxy::http::client::Client;
use evenkeel::proxy::http::exchange::{IncomingRequest, Space, exchange};
use evenkeel::proxy::http::memory::MemoryEdge;
use evenkeel::proxy::http::request_body::RequestBody;
use evenkeel::proxy::http::request_body::client_body::ClientBody;
use evenkeel::tick::Tick;
use fake_backend::{Behaviour, Fault, pattern};

use super::support::worker::{ask, here, run};
use super::support::{config, recording};

fn field<'a>(edge: &'a MemoryEdge, name: &str) -> Option<&'a str> {
    let found = edge.fields.iter().find(|(key, _)| key.eq_ignore_ascii_case(name));
    found.map(|(_, value)| value.as_str())
}

#[test]
fn a_get_and_its_connection_are_used_again() {
    let backend = recording();
    run(&config(Protocol::Http, &[backend.addr()]), async |ctx| {
        for _ in 0..3 {
            let (after, edge) = ask(&ctx, &Head::request("GET", "/a?b", "test"), RequestBody::Empty).await;
            assert_eq!((after, edge.status), (After::KeepOpen, 200));
            assert_eq!(edge.content, b"Hello from fake-1");
            assert_eq!(field(&edge, "x-backend"), Some("fake-1"));
        }
        assert_eq!((backend.connections(), ctx.pool.len()), (1, 1));
    });
    let seen = backend.take_requests().pop().unwrap();
    assert!(seen.head_text().starts_with("GET /a?b HTTP/1.1\r\nhost: test\r\n"), "{}", seen.head_text());
    assert_eq!(seen.header("x-forwarded-for"), ["192.0.2.7"]);
}

#[test]
fn a_body_without_a_length_becomes_chunks_with_trailers() {
    let backend = recording();
    run(&config(Protocol::Http, &[backend.addr()]), async |ctx| {
        let body = Memory {
            pieces: [pattern(100_000), b"end".to_vec()].into(),
            trailers: b"X-Sum: 42\r\n".to_vec(),
            framing: Framing::Chunked,
            buffers: ctx.buffers.clone(),
        };
        let (_, edge) =
            ask(&ctx, &Head::request("POST", "/echo", "test"), RequestBody::Memory(Box::new(body))).await;
        let expected: Vec<u8> = [pattern(100_000), b"end".to_vec()].concat();
        assert!(edge.status == 200 && edge.content == expected, "{}", edge.content.len());
        assert_eq!(edge.trailers, b"X-Sum: 42\r\n");
    });
    let seen = backend.take_requests().pop().unwrap();
    assert_eq!(
        (seen.header("transfer-encoding"), seen.trailers),
        (vec!["chunked".into()], b"X-Sum: 42\r\n".to_vec())
    );
}

#[test]
fn a_body_of_known_length_says_so() {
    let backend = recording();
    run(&config(Protocol::Http, &[backend.addr()]), async |ctx| {
        for size in [0, 1, 200_000] {
            let body = RequestBody::Memory(Box::new(Memory::whole(pattern(size), ctx.buffers.clone())));
            let (_, edge) = ask(&ctx, &Head::request("PUT", "/count", "test"), body).await;
            assert_eq!((edge.status, edge.content), (200, size.to_string().into_bytes()));
        }
    });
    let lengths: Vec<_> = backend.take_requests().iter().map(|seen| seen.header("content-length")).collect();
    assert_eq!(lengths, [["0"], ["1"], ["200000"]]);
}

#[test]
fn interim_heads_come_before_the_answer() {
    let backend = recording();
    run(&config(Protocol::Http, &[backend.addr()]), async |ctx| {
        let (_, edge) = ask(&ctx, &Head::request("GET", "/early-hints", "test"), RequestBody::Empty).await;
        assert_eq!((edge.interims, edge.status), (vec![103], 200));
    });
}

#[test]
fn refusals_are_the_same_without_a_wire() {
    let backend = recording();
    run(&config(Protocol::Http, &[]), async |ctx| {
        let (after, edge) = ask(&ctx, &Head::request("GET", "/", "test"), RequestBody::Empty).await;
        assert_eq!((after, edge.status), (After::KeepOpen, 503));
        assert_eq!(field(&edge, "proxy-status"), Some("evenkeel; details=no_backend"));
        assert!(String::from_utf8_lossy(&edge.content).contains(Cause::NoBackend.text()));
    });
    run(&config(Protocol::Http, &[backend.addr()]), async |ctx| {
        let (after, edge) =
            ask(&ctx, &Head::request("CONNECT", "test:443", "test"), RequestBody::Empty).await;
        assert_eq!((after, edge.status), (After::Linger, 405));
        assert!(field(&edge, "allow").is_some());
        backend.behave(Behaviour::fault(Fault::Garbage));
        let (_, edge) = ask(&ctx, &Head::request("GET", "/", "test"), RequestBody::Empty).await;
        assert_eq!(edge.status, 502);
        backend.behave(Behaviour::fault(Fault::CloseMidBody));
        let (after, edge) = ask(&ctx, &Head::request("GET", "/bytes/1000", "test"), RequestBody::Empty).await;
        assert!(edge.status == 502 || after == After::Abort, "{} {after:?}", edge.status);
    });
    assert_eq!(backend.requests(), 2, "CONNECT was not forwarded");
}

#[test]
fn a_client_that_is_gone_is_not_waited_for() {
    let backend = recording();
    backend.behave(Behaviour::hang());
    run(&config(Protocol::Http, &[backend.addr()]), async |ctx| {
        let mut edge = MemoryEdge { gone: true, ..MemoryEdge::default() };
        let head = Head::request("GET", "/", "test");
        let here = here(&ctx);
        let (listener, peer) = (&*here, &Peer::default());
        let incoming = IncomingRequest {
            ctx: &ctx,
            listener,
            head: &head,
            peer,
            told: None,
            started: Tick(1),
            head_read: Tick(1),
        };
        let after = exchange(&incoming, &mut edge, &RequestBody::Empty, &mut Space::default()).await;
        assert_eq!((after, edge.status), (After::Abort, 0));
    });
}

#[test]
fn an_upgrade_becomes_a_tunnel() {
    let backend = recording();
    run(&config(Protocol::Http, &[backend.addr()]), async |ctx| {
        let mut head = Head::request("GET", "/upgrade", "test");
        head.push(b"connection", b"upgrade");
        head.push(b"upgrade", b"websocket");
        let (after, edge) = ask(&ctx, &head, RequestBody::Empty).await;
        assert_eq!((after, edge.status), (After::Linger, 101));
        assert!(ctx.pool.is_empty(), "a tunnel's connection is nobody else's");
    });
}

/// A client connection that has sent these bytes of a chunked body.
fn sending(ctx: &Rc<WorkerCtx>, bytes: &[u8], raw: bool) -> (Rc<Client>, tokio::net::UnixStream) {
    let (ours, theirs) = tokio::net::UnixStream::pair().unwrap();
    assert_eq!(theirs.try_write(bytes).unwrap(), bytes.len());
    let client = Client::new(Rc::clone(ctx), ours.into(), Peer::default(), here(ctx), None);
    client.start_body(Framing::Chunked);
    assert!(!raw || client.set_raw());
    (client, theirs)
}

#[test]
fn a_body_of_which_only_framing_was_taken_is_not_sent_a_second_time() {
    run(&config(Protocol::Http, &[]), async |ctx| {
        let (client, _theirs) = sending(&ctx, b"5\r\n", true);
        let mut body = RequestBody::Client(ClientBody::Socket(Rc::clone(&client)));
        assert!(body.again().is_some());
        let piece = poll_fn(|cx| body.poll_piece(cx)).await.unwrap().unwrap();
        assert_eq!((piece.data(), client.content()), (&b"5\r\n"[..], 0));
        assert!(body.again().is_none(), "the line with the size would be missing");
    });
}

#[test]
fn nothing_behind_a_bad_chunk_is_ever_looked_at() {
    run(&config(Protocol::Http, &[]), async |ctx| {
        for raw in [false, true] {
            let (client, theirs) = sending(&ctx, b"zz\r\n", raw);
            assert_eq!(poll_fn(|cx| client.poll_piece(cx)).await.err(), Some(Cause::BadChunk));
            theirs.try_write(b"0\r\n\r\n").unwrap();
            assert_eq!(poll_fn(|cx| client.poll_piece(cx)).await.err(), Some(Cause::BadChunk));
            assert!(!client.is_body_done());
        }
    });
}
