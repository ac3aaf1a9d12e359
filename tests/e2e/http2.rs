//! HTTP/2 to clients: what an HTTP/1.1 backend gets, and what comes back.

use std::io::{Read as _, Write as _};
use std::time::Duration;

use evenkeel::config::model::Http2;
use evenkeel::message::Cause;
use evenkeel::proxy::http::h2::frame::{self, FRAME_HEAD, FrameHead, PREFACE};
use evenkeel::proxy::http::h2::hpack::{Pseudo, encode};
use fake_backend::{Behaviour, Ending, Fault, Running, pattern};
use h2::Reason;
use http::HeaderMap;

use super::support::h2::H2Client;
use super::support::{Keel, PATIENCE, eventually, fakes, recording};

/// A server that takes prior knowledge.
fn keel(backends: &[&Running]) -> Keel {
    Keel::with(backends, |config| config.listeners[0].http2 = Some(Http2::default()))
}

fn raw(text: &str, ending: Ending) -> Behaviour {
    Behaviour::fault(Fault::Raw { bytes: text.as_bytes().to_vec(), ending }).times(1)
}

/// The head of the only request that a backend has got.
fn head(backend: &Running) -> String {
    let requests = backend.take_requests();
    assert_eq!(requests.len(), 1);
    requests[0].head_text()
}

#[test]
fn a_request_reaches_an_http_1_1_backend_and_its_answer_comes_back() {
    let backend = recording();
    let keel = keel(&[&backend]);
    let client = H2Client::connect(keel.address());
    let answer = client.get("/hello?x=y");
    assert_eq!((answer.status, answer.text().as_str()), (200, "Hello from fake-1"));
    assert_eq!(answer.header("content-length"), Some("17"));
    assert!(answer.header("date").is_some() && answer.header("connection").is_none());
    let head = head(&backend);
    assert!(head.starts_with("GET /hello?x=y HTTP/1.1\r\nhost: a.example\r\n"), "{head}");
    for line in ["Via: 2.0 evenkeel\r\n", "X-Forwarded-Proto: http\r\n", "X-Forwarded-Host: a.example\r\n"] {
        assert!(head.contains(line), "{line} in {head}");
    }
    assert!(!head.to_ascii_lowercase().contains("transfer-encoding"), "{head}");
    // The same port speaks HTTP/1.1 as well.
    assert_eq!(keel.client().get("/").text(), "Hello from fake-1");
}

#[test]
fn many_requests_share_a_connection_and_each_has_its_own_answer() {
    let backends = fakes(2);
    let keel = keel(&[&backends[0], &backends[1]]);
    let client = H2Client::connect(keel.address());
    client.ask_a_hundred();
    assert_eq!(backends[0].requests(), 50);
    assert_eq!(backends[1].requests(), 50, "each request is balanced, not the connection");
}

#[test]
fn bodies_of_known_and_of_unknown_length_go_both_ways_whole() {
    let backend = recording();
    let keel = keel(&[&backend]);
    let client = H2Client::connect(keel.address());
    let body = pattern(3_000_000);
    for says_length in [true, false] {
        client.echo(&body, says_length);
        let head = head(&backend);
        assert_eq!(head.contains("Transfer-Encoding: chunked"), !says_length, "{head}");
    }
    for path in ["/bytes/2000000", "/chunked/2000000", "/close/2000000"] {
        let answer = client.get(path);
        assert!(answer.body == pattern(2_000_000), "{path}");
        assert_eq!(answer.header("content-length").is_some(), path.starts_with("/bytes"), "{path}");
        assert!(answer.header("transfer-encoding").is_none() && answer.header("connection").is_none());
    }
}

#[test]
fn a_head_request_and_answers_without_a_body_end_with_their_head() {
    let backends = fakes(1);
    let keel = keel(&[&backends[0]]);
    let client = H2Client::connect(keel.address());
    let call = client.begin(H2Client::request("HEAD", "/bytes/1000").body(()).unwrap(), true);
    let answer = client.finish(call.answer).unwrap();
    assert_eq!((answer.header("content-length"), answer.body.len()), (Some("1000"), 0));
    for status in [204, 304] {
        assert_eq!(client.get(&format!("/status/{status}")).status, status);
    }
    assert_eq!(client.get("/bytes/0").body, b"");
}

#[test]
fn trailers_go_both_ways() {
    let backend = recording();
    let keel = keel(&[&backend]);
    let client = H2Client::connect(keel.address());
    let answer = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n\
                  3\r\nabc\r\n0\r\nX-Sum: 7\r\n\r\n";
    backend.behave(raw(answer, Ending::KeepOpen));
    let request = H2Client::request("POST", "/").header("te", "trailers").header("trailer", "x-up");
    let mut call = client.begin(request.body(()).unwrap(), false);
    client.send(&mut call.body, b"hello", false);
    let mut trailers = HeaderMap::new();
    trailers.insert("x-up", "5".parse().unwrap());
    call.body.send_trailers(trailers).unwrap();
    let answer = client.finish(call.answer).unwrap();
    assert_eq!((answer.text().as_str(), answer.trailers["x-sum"].to_str().unwrap()), ("abc", "7"));
    let requests = backend.take_requests();
    assert_eq!(requests[0].body, b"hello");
    assert_eq!(String::from_utf8_lossy(&requests[0].trailers), "x-up: 5\r\n");
    assert!(requests[0].head_text().contains("TE: trailers\r\n"), "{}", requests[0].head_text());
}

#[test]
fn cookies_in_crumbs_are_one_line_for_the_backend() {
    let backend = recording();
    let keel = keel(&[&backend]);
    let client = H2Client::connect(keel.address());
    let request = H2Client::request("GET", "/").header("cookie", "a=1").header("cookie", "b=2");
    client.finish(client.begin(request.body(()).unwrap(), true).answer).unwrap();
    assert!(head(&backend).contains("cookie: a=1; b=2\r\n"));
}

#[test]
fn a_stream_that_its_client_resets_is_an_abort_for_the_backend() {
    let backend = recording();
    let keel = keel(&[&backend]);
    let client = H2Client::connect(keel.address());
    // While it waits.
    backend.behave(Behaviour::hang().times(1));
    let mut call = client.begin(H2Client::request("GET", "/").body(()).unwrap(), true);
    eventually("the backend has it", || backend.requests() == 1);
    call.body.send_reset(Reason::CANCEL);
    eventually("the backend sees the abort", || backend.stats().aborted == 1);
    // In the middle of an upload.
    let mut call = client.begin(H2Client::request("POST", "/").body(()).unwrap(), false);
    client.send(&mut call.body, &pattern(50_000), false);
    eventually("half of it is there", || {
        backend.last_requests().pop().is_some_and(|seen| seen.body.len() == 50_000)
    });
    call.body.send_reset(Reason::CANCEL);
    eventually("the backend sees the abort", || backend.stats().aborted == 2);
    eventually("its connections are closed", || backend.open_connections() == 0);
    assert!(backend.take_requests().iter().all(|seen| !seen.complete || seen.body.is_empty()));
    eventually("it is written down", || keel.server.readings().ended_with(Cause::ClientGone) == 2);
    assert_eq!(client.get("/").status, 200, "the connection goes on");
}

#[test]
fn an_answer_that_is_cut_is_a_stream_that_is_reset() {
    let backend = recording();
    let keel = keel(&[&backend]);
    let client = H2Client::connect(keel.address());
    for head in ["Content-Length: 10", "Transfer-Encoding: chunked"] {
        for ending in [Ending::Close, Ending::Reset] {
            let body = if head.starts_with('C') { "abc" } else { "3\r\nabc\r\n" };
            backend.behave(raw(&format!("HTTP/1.1 200 OK\r\n{head}\r\n\r\n{body}"), ending));
            let call = client.begin(H2Client::request("GET", "/").body(()).unwrap(), true);
            let end = client.finish(call.answer).map(|answer| answer.text());
            assert_eq!(end, Err(Some(Reason::INTERNAL_ERROR)), "{head}, {ending:?}");
        }
    }
    assert_eq!(client.get("/").status, 200, "the connection goes on");
}

#[test]
fn early_hints_and_continue_are_passed_on() {
    let backend = recording();
    let keel = keel(&[&backend]);
    let client = H2Client::connect(keel.address());
    let mut call = client.begin(H2Client::request("GET", "/early-hints").body(()).unwrap(), true);
    let hints = client.run(std::future::poll_fn(|cx| call.answer.poll_informational(cx))).unwrap().unwrap();
    assert_eq!((hints.status().as_u16(), hints.headers().get("link").is_some()), (103, true));
    assert_eq!(client.finish(call.answer).unwrap().status, 200);
    let request = H2Client::request("POST", "/count").header("expect", "100-continue");
    let mut call = client.begin(request.body(()).unwrap(), false);
    let go_on = client.run(std::future::poll_fn(|cx| call.answer.poll_informational(cx))).unwrap().unwrap();
    assert_eq!(go_on.status().as_u16(), 100);
    client.send(&mut call.body, b"12345", true);
    assert_eq!(client.finish(call.answer).unwrap().status, 200);
}

#[test]
fn an_early_answer_ends_an_upload_that_is_not_wanted() {
    let backend = recording();
    let keel = Keel::with(&[&backend], |config| {
        config.listeners[0].http2 = Some(Http2::default());
        config.listeners[0].limits.body = Some(1000);
    });
    let client = H2Client::connect(keel.address());
    let mut call = client.begin(H2Client::request("POST", "/").body(()).unwrap(), false);
    client.send(&mut call.body, &pattern(5000), false);
    assert_eq!(client.finish(call.answer).unwrap().status, 413);
    let reset = client.run(std::future::poll_fn(|cx| call.body.poll_reset(cx))).unwrap();
    assert_eq!(reset, Reason::NO_ERROR);
    let request = H2Client::request("POST", "/").header("content-length", 5000);
    let call = client.begin(request.body(()).unwrap(), false);
    assert_eq!(client.finish(call.answer).unwrap().status, 413, "it need not even begin");
    assert_eq!(client.get("/").status, 200, "the connection goes on");
}

#[test]
fn connect_is_refused_and_so_is_a_head_that_is_too_large() {
    let backend = recording();
    let keel = keel(&[&backend]);
    let client = H2Client::connect(keel.address());
    let connect = http::Request::builder().method("CONNECT").uri("a.example:443").body(()).unwrap();
    assert_eq!(client.finish(client.begin(connect, true).answer).unwrap().status, 405);
    let long = "x".repeat(40_000);
    let request = H2Client::request("GET", "/").header("x", long.as_str()).body(()).unwrap();
    assert_eq!(client.finish(client.begin(request, true).answer).unwrap().status, 431);
    assert_eq!((client.get("/").status, backend.requests()), (200, 1));
}

#[test]
fn a_challenge_that_logs_in_a_connection_sends_the_client_to_http_1_1() {
    let backend = recording();
    let keel = keel(&[&backend]);
    let client = H2Client::connect(keel.address());
    for challenge in ["NTLM", "Negotiate"] {
        let answer = format!("HTTP/1.1 401 No\r\nWWW-Authenticate: {challenge}\r\nContent-Length: 0\r\n\r\n");
        backend.behave(raw(&answer, Ending::KeepOpen));
        let call = client.begin(H2Client::request("GET", "/").body(()).unwrap(), true);
        let end = client.finish(call.answer).map(|answer| answer.status);
        assert_eq!(end, Err(Some(Reason::HTTP_1_1_REQUIRED)), "{challenge}");
    }
    eventually("it is written down", || keel.server.readings().ended_with(Cause::NeedsHttp11) == 2);
    assert_eq!(client.get("/").status, 200, "the connection goes on");
}

#[test]
fn a_backend_that_is_gone_is_told_in_an_answer() {
    let backends = fakes(1);
    let keel = keel(&[&backends[0]]);
    let client = H2Client::connect(keel.address());
    backends[0].behave(Behaviour::fault(Fault::CloseOnAccept));
    let answer = client.get("/");
    assert_eq!(answer.status, 502, "{}", answer.text());
    assert!(answer.header("proxy-status").is_some_and(|status| status.starts_with("evenkeel; details=")));
}

#[test]
fn connections_are_drained_in_two_steps_and_no_stream_is_lost() {
    let backends = fakes(1);
    let keel = keel(&[&backends[0]]);
    let client = H2Client::connect(keel.address());
    let call = client.begin(H2Client::request("GET", "/delay/300").body(()).unwrap(), true);
    eventually("the backend has it", || backends[0].requests() == 1);
    keel.server.shutdown().advance();
    let answer = client.finish(call.answer).unwrap();
    assert_eq!(answer.status, 200);
    assert!(client.is_over(), "and then it is closed");
}

/// What a client says first, and a request for `path`.
fn hello(path: &str) -> Vec<u8> {
    let mut said = PREFACE.to_vec();
    frame::settings(&mut said, &[(frame::INITIAL_WINDOW_SIZE, 0x7fff_ffff)]);
    frame::window_update(&mut said, 0, 0x7000_0000);
    let mut block = Vec::new();
    for (pseudo, value) in [
        (Pseudo::Method, "GET"),
        (Pseudo::Scheme, "http"),
        (Pseudo::Authority, "a.example"),
        (Pseudo::Path, path),
    ] {
        encode::pseudo(&mut block, pseudo, value.as_bytes());
    }
    let flags = frame::END_HEADERS | frame::END_STREAM;
    FrameHead { length: block.len(), kind: frame::HEADERS, flags, stream: 1 }.write(&mut said);
    said.extend_from_slice(&block);
    said
}

#[test]
fn a_client_that_reads_nothing_and_then_breaks_the_rules_kept_a_worker_busy_for_ever() {
    let backends = fakes(1);
    let keel = Keel::with(&[&backends[0]], |config| {
        let listener = &mut config.listeners[0];
        listener.http2 = Some(Http2::default());
        listener.client_timeouts.idle = Duration::from_secs(3);
        listener.client_timeouts.keep_alive = Duration::from_millis(100);
    });
    for fault in [&b"\0\0\x03\x06\0\0\0\0\0abc"[..], b""] {
        let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
        socket.set_recv_buffer_size(4096).unwrap();
        socket.connect(&keel.address().into()).unwrap();
        let mut socket = std::net::TcpStream::from(socket);
        socket.write_all(&hello("/bytes/80000000")).unwrap();
        eventually("it has come", || keel.server.connections() == 1);
        socket.write_all(fault).unwrap();
        eventually("it is closed", || keel.server.connections() == 0);
    }
}

#[test]
fn a_client_that_has_finished_sending_gets_its_answer() {
    let backends = fakes(1);
    let keel = keel(&[&backends[0]]);
    let mut socket = std::net::TcpStream::connect(keel.address()).unwrap();
    socket.write_all(&hello("/delay/100")).unwrap();
    socket.shutdown(std::net::Shutdown::Write).unwrap();
    let mut came = Vec::new();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket.read_to_end(&mut came).unwrap();
    assert!(came.windows(17).any(|part| part == b"Hello from fake-1"), "{}", came.escape_ascii());
}

#[test]
fn a_client_that_does_not_answer_settings_is_served_until_its_time_is_up() {
    let backends = fakes(1);
    let keel = Keel::with(&[&backends[0]], |config| {
        config.listeners[0].http2 = Some(Http2::default());
        config.listeners[0].client_timeouts.head = Duration::from_secs(3);
    });
    let mut socket = std::net::TcpStream::connect(keel.address()).unwrap();
    socket.write_all(&hello("/")).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut came = Vec::new();
    socket.read_to_end(&mut came).unwrap();
    let (mut rest, mut kinds, mut code) = (&came[..], Vec::new(), None);
    while let Some(head) = FrameHead::parse(rest) {
        kinds.push(head.kind);
        if head.kind == frame::GOAWAY {
            code = rest.get(13..17).map(<[u8]>::to_vec);
        }
        rest = &rest[FRAME_HEAD + head.length..];
    }
    assert!(kinds.contains(&frame::DATA), "{kinds:?}");
    assert_eq!((kinds.last(), code), (Some(&frame::GOAWAY), Some(vec![0, 0, 0, 4])), "SETTINGS_TIMEOUT");
}

#[test]
fn a_stream_that_is_reset_at_once_costs_no_connection_to_a_backend() {
    let backends = fakes(1);
    let keel = keel(&[&backends[0]]);
    let mut socket = std::net::TcpStream::connect(keel.address()).unwrap();
    // The first request, reset in the same write; then one that is served.
    let mut said = hello("/");
    FrameHead { length: 4, kind: frame::RST_STREAM, flags: 0, stream: 1 }.write(&mut said);
    said.extend_from_slice(&8u32.to_be_bytes());
    socket.write_all(&said).unwrap();
    let client = H2Client::connect(keel.address());
    let call = client.begin(H2Client::request("GET", "/").body(()).unwrap(), true);
    assert_eq!(client.finish(call.answer).unwrap().status, 200);
    assert_eq!((backends[0].requests(), backends[0].connections()), (1, 1));
}
