//! WebSockets over HTTP/2 (RFC 8441): with clients, with backends, and with both.

use std::future::poll_fn;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use evenkeel::config::model::{Config, Http2, Protocol, UpstreamProtocol};
use evenkeel::message::Cause;
use evenkeel::proxy::http::h2::code::ErrorCode;
use evenkeel::proxy::http::h2::frame;
use evenkeel::proxy::http::websocket::handshake;
use fake_backend::{Behaviour, Ending, Fault, Running, pattern};
use h2::ext::Protocol as Tunnelled;
use h2::{Reason, RecvStream, SendStream};
use http::{HeaderMap, Request};
use hyper::body::Bytes;

use super::support::h2::H2Client;
use super::support::h2_backend::{Asked, BackendLine, RawH2};
use super::support::{Keel, accept, config, eventually, fakes, recording};

/// A WebSocket on a stream.
struct Socket<'c> {
    client: &'c H2Client,
    send: SendStream<Bytes>,
    answer: RecvStream,
    headers: HeaderMap,
    held: Vec<u8>,
}

/// Asks for one: the socket, or the status that was answered instead.
fn open<'c>(client: &'c H2Client, path: &str, lines: &[(&str, &str)]) -> Result<Socket<'c>, u16> {
    let mut request = Request::builder()
        .method("CONNECT")
        .uri(format!("http://a.example{path}"))
        .extension(Tunnelled::from_static("websocket"))
        .header("sec-websocket-version", "13");
    for (name, value) in lines {
        request = request.header(*name, *value);
    }
    client.run(client.connects());
    let call = client.begin(request.body(()).unwrap(), false);
    let response = client.run(call.answer).unwrap();
    let (parts, answer) = response.into_parts();
    if parts.status != 200 {
        return Err(parts.status.as_u16());
    }
    Ok(Socket { client, send: call.body, answer, headers: parts.headers, held: Vec::new() })
}

impl Socket<'_> {
    fn send(&mut self, bytes: &[u8]) {
        self.client.send(&mut self.send, bytes, false);
    }

    /// The next so many bytes.
    fn take(&mut self, count: usize) -> Vec<u8> {
        while self.held.len() < count {
            let piece = self.more().expect("no reset").expect("no end");
            self.held.extend_from_slice(&piece);
        }
        self.held.drain(..count).collect()
    }

    fn more(&mut self) -> Result<Option<Bytes>, Option<Reason>> {
        let answer = &mut self.answer;
        self.client.run(async {
            let Some(piece) = poll_fn(|cx| answer.poll_data(cx)).await else { return Ok(None) };
            let piece = piece.map_err(|error| error.reason())?;
            answer.flow_control().release_capacity(piece.len()).unwrap();
            Ok(Some(piece))
        })
    }

    /// What is left until its end, or with what it was reset.
    fn rest(&mut self) -> Result<Vec<u8>, Option<Reason>> {
        while let Some(piece) = self.more()? {
            self.held.extend_from_slice(&piece);
        }
        Ok(std::mem::take(&mut self.held))
    }

    fn finish(&mut self) {
        self.client.send(&mut self.send, &[], true);
    }
}

/// One that takes HTTP/2 of its clients, in front of these.
fn front(backends: &[SocketAddr], upstream: UpstreamProtocol, change: impl FnOnce(&mut Config)) -> Keel {
    let mut config = config(Protocol::Http, backends);
    config.workers = 1;
    config.listeners[0].http2 = Some(Http2::default());
    config.targets[0].upstream = upstream;
    change(&mut config);
    Keel::start(&config)
}

/// One in front of this backend: over HTTP/1.1, or with another one between, over HTTP/2.
fn both_ways(backend: &Running, each: impl Fn(&Keel)) {
    each(&front(&[backend.addr()], UpstreamProtocol::Http, |_| ()));
    let inner = front(&[backend.addr()], UpstreamProtocol::Http, |_| ());
    each(&front(&[inner.address()], UpstreamProtocol::H2, |_| ()));
}

#[test]
fn a_tunnel_carries_bytes_both_ways_until_both_have_ended() {
    let backend = recording();
    both_ways(&backend, |keel| {
        let client = H2Client::connect(keel.address());
        let mut socket = open(&client, "/upgrade?x=y", &[("sec-websocket-protocol", "chat")]).unwrap();
        for name in ["connection", "upgrade", "sec-websocket-accept", "content-length"] {
            assert!(!socket.headers.contains_key(name), "{:?}", socket.headers);
        }
        for round in 0..3 {
            socket.send(b"ping");
            assert_eq!(socket.take(4), b"ping", "round {round}");
        }
        // More than any window, while it comes back.
        let body = pattern(300_000);
        for part in body.chunks(30_000) {
            socket.send(part);
            assert!(socket.take(part.len()) == part);
        }
        // Others on the connection go on meanwhile.
        assert_eq!(client.get("/").status, 200);
        // A half-close goes through, and what is on its way back still comes.
        socket.send(b"last");
        socket.finish();
        assert_eq!(socket.rest(), Ok(b"last".to_vec()));
        eventually("the backend's connection is closed", || backend.open_connections() <= 1);
        let seen = backend.take_requests();
        let head = seen[0].head_text().to_lowercase();
        assert!(head.starts_with("get /upgrade?x=y http/1.1\r\n"), "{head}");
        for line in [
            "upgrade: websocket",
            "connection: upgrade",
            "sec-websocket-protocol: chat",
            "sec-websocket-version: 13",
        ] {
            assert!(head.contains(&format!("{line}\r\n")), "{line} in {head}");
        }
        assert_eq!(head.matches("sec-websocket-key: ").count(), 1, "{head}");
    });
}

#[test]
fn a_client_of_http_1_1_has_its_websocket_from_a_backend_of_http_2() {
    let backends = fakes(1);
    let inner = front(&[backends[0].addr()], UpstreamProtocol::Http, |_| ());
    let keel = front(&[inner.address()], UpstreamProtocol::H2, |_| ());
    let mut client = keel.client();
    client.send(
        "GET /chat HTTP/1.1\r\nHost: test\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n",
    );
    let answer = client.answer();
    assert_eq!((answer.status, answer.header("upgrade")), (101, Some("websocket")), "{}", answer.head);
    assert_eq!(answer.header("sec-websocket-accept"), Some("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="));
    // The masked "Hello" of RFC 6455 §5.7 comes back unmasked.
    client.send([0x81, 0x85, 0x37, 0xfa, 0x21, 0x3d, 0x7f, 0x9f, 0x4d, 0x51, 0x58]);
    assert_eq!(client.take(7), b"\x81\x05Hello");
    drop(client);
    eventually("no stream is left", || keel.server.targets()[0].backends[0].in_flight() == 0);
    eventually("nor behind it", || inner.server.targets()[0].backends[0].in_flight() == 0);
}

#[test]
fn a_refused_websocket_is_an_answer() {
    let backend = recording();
    both_ways(&backend, |keel| {
        let refused = "HTTP/1.1 403 Forbidden\r\nConnection: close\r\nContent-Length: 2\r\n\r\nno";
        backend.behave(
            Behaviour::fault(Fault::Raw { bytes: refused.as_bytes().to_vec(), ending: Ending::Close })
                .times(1),
        );
        let client = H2Client::connect(keel.address());
        assert_eq!(open(&client, "/", &[]).err(), Some(403));
        assert_eq!(client.get("/").status, 200);
    });
}

#[test]
fn a_backend_that_has_not_understood_is_no_websocket() {
    let backend = recording();
    let keel = front(&[backend.addr()], UpstreamProtocol::Http, |_| ());
    let client = H2Client::connect(keel.address());
    let wrong = "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: x\r\n\r\n";
    let fault = Fault::Raw { bytes: wrong.as_bytes().to_vec(), ending: Ending::KeepOpen };
    backend.behave(Behaviour::fault(fault).times(1));
    client.run(client.connects());
    let request = Request::builder()
        .method("CONNECT")
        .uri("http://a.example/")
        .extension(Tunnelled::from_static("websocket"))
        .body(())
        .unwrap();
    let call = client.begin(request, false);
    assert_eq!(client.finish(call.answer).err(), Some(Some(Reason::INTERNAL_ERROR)));
    assert_eq!(client.get("/").status, 200);
}

#[test]
fn a_protocol_that_nobody_knows_and_a_route_without_upgrades_make_no_tunnel() {
    let backend = recording();
    let keel =
        front(&[backend.addr()], UpstreamProtocol::Http, |config| config.targets[0].upgrade = Vec::new());
    let client = H2Client::connect(keel.address());
    // It is asked as if nothing had been said of a WebSocket, and an answer that would look like one is none.
    assert_eq!(open(&client, "/", &[]).map(|_| ()).err(), Some(502));
    let missing = "HTTP/1.1 404 Not Found\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
    backend.behave(
        Behaviour::fault(Fault::Raw { bytes: missing.as_bytes().to_vec(), ending: Ending::Close }).times(1),
    );
    assert_eq!(open(&client, "/", &[]).map(|_| ()).err(), Some(404));
    let head = backend.take_requests().pop().unwrap().head_text().to_lowercase();
    assert!(!head.contains("upgrade: websocket"), "{head}");
    let request = Request::builder()
        .method("CONNECT")
        .uri("http://a.example/")
        .extension(Tunnelled::from_static("connect-udp"))
        .body(())
        .unwrap();
    let call = client.begin(request, true);
    assert_eq!(client.finish(call.answer).map(|answer| answer.status), Ok(405));
}

#[test]
fn a_backend_of_http_2_without_tunnels_is_asked_without() {
    let backend = RawH2::start(|_, line| {
        line.settings(&[]);
        while let Some(asked) = line.asked() {
            assert!(!asked.lines.iter().any(|(name, _)| name == ":protocol"), "{asked:?}");
            line.answer(asked.stream, &asked.method);
        }
    });
    let keel = front(&[backend.address], UpstreamProtocol::H2, |_| ());
    let mut client = keel.client();
    let ask = "GET / HTTP/1.1\r\nHost: test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
    let answer = client.ask(ask);
    assert_eq!((answer.status, answer.text().as_str()), (200, "GET"));
}

#[test]
fn a_backend_that_never_says_what_it_takes_is_not_waited_for_for_ever() {
    // It says nothing as long as the test lasts.
    let (_lasts, ends) = mpsc::channel::<()>();
    let ends = Mutex::new(ends);
    let backend = RawH2::start(move |_, _| {
        let _ = ends.lock().unwrap().recv();
    });
    let keel = front(&[backend.address], UpstreamProtocol::H2, |config| {
        config.targets[0].timeouts.idle = Duration::from_millis(200);
        config.targets[0].resilience.retries = None;
    });
    let ask = "GET / HTTP/1.1\r\nHost: test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
    let answer = keel.client().ask(ask);
    assert_eq!(answer.status, 504, "{}", answer.text());
    eventually("no lease is left", || keel.server.targets()[0].backends[0].in_flight() == 0);
}

#[test]
fn a_reset_by_either_side_reaches_the_other_as_a_cut() {
    let backends = fakes(1);
    both_ways(&backends[0], |keel| {
        let client = H2Client::connect(keel.address());
        let mut socket = open(&client, "/upgrade", &[]).unwrap();
        socket.send(b"x");
        assert_eq!(socket.take(1), b"x");
        socket.send.send_reset(Reason::CANCEL);
        eventually("no tunnel is left", || keel.server.targets()[0].backends[0].in_flight() == 0);
        assert_eq!(client.get("/").status, 200);
    });
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let keel = front(&[listener.local_addr().unwrap()], UpstreamProtocol::Http, |_| ());
    let client = H2Client::connect(keel.address());
    let (mut socket, far) = played(&client, &listener);
    socket2::SockRef::from(&far).set_linger(Some(Duration::ZERO)).unwrap();
    drop(far);
    assert!(socket.rest().is_err(), "it is no end");
}

#[test]
fn a_silent_tunnel_is_cut() {
    let backends = fakes(1);
    let short = Duration::from_secs(2);
    let keel = front(&[backends[0].addr()], UpstreamProtocol::Http, |config| {
        config.targets[0].timeouts.tunnel = short
    });
    let client = H2Client::connect(keel.address());
    let mut socket = open(&client, "/upgrade", &[]).unwrap();
    socket.send(b"x");
    assert_eq!(socket.take(1), b"x");
    assert!(socket.rest().is_err());
    eventually("it is told", || keel.server.readings().ended_with(Cause::TunnelIdle) == 1);
    eventually("the backend's connection is closed", || backends[0].open_connections() == 0);
}

/// A WebSocket to a backend that is played by the test.
fn played<'c>(client: &'c H2Client, listener: &TcpListener) -> (Socket<'c>, TcpStream) {
    std::thread::scope(|scope| {
        let backend = scope.spawn(|| {
            let mut socket = accept(listener);
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                socket.read_exact(&mut byte).unwrap();
                head.push(byte[0]);
            }
            let head = String::from_utf8(head).unwrap();
            let is_key = |line: &&str| line.to_lowercase().starts_with("sec-websocket-key: ");
            let key = head.lines().find(is_key).unwrap();
            let accept = handshake::accept(&key.as_bytes()["sec-websocket-key: ".len()..]);
            let switched =
                "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n";
            write!(socket, "{switched}Sec-WebSocket-Accept: {accept}\r\n\r\n").unwrap();
            socket
        });
        (open(client, "/", &[]).unwrap(), backend.join().unwrap())
    })
}

#[test]
fn a_websocket_whose_backend_is_taken_out_hears_1001_on_both_sides() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let others = fakes(1);
    let of = |address: SocketAddr| {
        let mut config = config(Protocol::Http, &[address]);
        config.listeners[0].http2 = Some(Http2::default());
        config.targets[0].drain_timeout = Duration::from_secs(4);
        config
    };
    let keel = Keel::start(&of(listener.local_addr().unwrap()));
    let client = H2Client::connect(keel.address());
    let (mut socket, mut far) = played(&client, &listener);
    far.write_all(b"\x81\x02hi").unwrap();
    assert_eq!(socket.take(4), b"\x81\x02hi");
    keel.reload(&of(others[0].addr())).unwrap();
    // Both hear that it ends, and answer.
    assert_eq!(socket.take(4), [0x88, 2, 0x03, 0xe9]);
    let mut close = [0; 8];
    far.read_exact(&mut close).unwrap();
    assert_eq!(close[..2], [0x88, 0x82]);
    socket.send(&[0x88, 0x82, 0, 0, 0, 0, 0x03, 0xe9]);
    far.write_all(&[0x88, 2, 0x03, 0xe9]).unwrap();
    assert_eq!(socket.rest(), Ok(Vec::new()), "it ends as a WebSocket does");
    assert_eq!(client.get("/").text(), "Hello from fake-1", "its connection goes on");
}

/// Takes tunnels, each of them as far as `script` goes with it.
fn tunnels(window: u32, script: impl Fn(&mut BackendLine, &Asked) + Send + Sync + 'static) -> RawH2 {
    RawH2::start(move |_, line| {
        line.settings(&[(frame::ENABLE_CONNECT_PROTOCOL, 1), (frame::INITIAL_WINDOW_SIZE, window)]);
        while let Some(asked) = line.asked() {
            if asked.method == "CONNECT" {
                script(line, &asked);
            } else {
                line.answer(asked.stream, &asked.path);
            }
        }
    })
}

#[test]
fn a_client_that_leaves_a_tunnel_whose_backend_takes_nothing_is_noticed() {
    let backend = tunnels(4, |line, asked| line.head(asked.stream, false, 200, &[]));
    let keel = front(&[backend.address], UpstreamProtocol::H2, |_| ());
    let client = H2Client::connect(keel.address());
    assert_eq!(client.get("/hello").text(), "/hello");
    let mut socket = open(&client, "/", &[]).unwrap();
    socket.send(b"more than the backend takes");
    eventually("a part has gone", || keel.server.targets()[0].backends[0].in_flight() == 1);
    socket.send.send_reset(Reason::CANCEL);
    eventually("no stream is left", || keel.server.targets()[0].backends[0].in_flight() == 0);
}

#[test]
fn a_tunnel_whose_backend_has_ended_and_wants_nothing_more_sends_it_nothing_more() {
    let after = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&after);
    let backend = RawH2::start(move |_, line| {
        line.settings(&[(frame::ENABLE_CONNECT_PROTOCOL, 1)]);
        let mut ended = 0;
        while let Some(came) = line.next() {
            match came.kind {
                frame::HEADERS => {
                    let asked = line.request(&came);
                    if asked.method == "CONNECT" {
                        line.head(asked.stream, false, 200, &[]);
                        line.end_and_reset(asked.stream, b"bye", ErrorCode::NO_ERROR);
                        ended = asked.stream;
                    } else {
                        line.answer(asked.stream, &asked.path);
                    }
                }
                frame::DATA if came.stream == ended => {
                    count.fetch_add(1, Ordering::AcqRel);
                }
                _ => {}
            }
        }
    });
    let keel = front(&[backend.address], UpstreamProtocol::H2, |_| ());
    let client = H2Client::connect(keel.address());
    let mut socket = open(&client, "/", &[]).unwrap();
    assert_eq!(socket.rest(), Ok(b"bye".to_vec()));
    for _ in 0..5 {
        socket.send(b"still here");
    }
    socket.finish();
    eventually("no stream is left", || keel.server.targets()[0].backends[0].in_flight() == 0);
    assert_eq!(client.get("/hello").text(), "/hello");
    assert_eq!((after.load(Ordering::Acquire), backend.connections()), (0, 1));
}

#[test]
fn a_request_with_a_body_that_asks_for_a_websocket_is_no_tunnel() {
    let backend = tunnels(65_535, |_, asked| panic!("{asked:?}"));
    let keel = front(&[backend.address], UpstreamProtocol::H2, |_| ());
    let lines = "Host: test\r\nConnection: Upgrade\r\nUpgrade: WebSocket\r\n";
    for ask in [
        format!("POST /a HTTP/1.1\r\n{lines}Content-Length: 4\r\n\r\nbody"),
        format!("GET /a HTTP/1.1\r\n{lines}Content-Length: 4\r\n\r\nbody"),
        format!("POST /a HTTP/1.1\r\n{lines}Content-Length: 0\r\n\r\n"),
    ] {
        let answer = keel.client().ask(&ask);
        assert_eq!((answer.status, answer.text().as_str()), (200, "/a"), "{ask}");
    }
}

#[test]
fn what_a_backend_says_of_a_length_or_a_key_is_nothing_of_a_tunnel_s() {
    let backend = tunnels(65_535, |line, asked| {
        let key = asked.lines.iter().any(|(name, _)| name == handshake::KEY);
        assert!(!key, "{asked:?}");
        line.head(asked.stream, false, 200, &[("content-length", "2"), (handshake::ACCEPT, "theirs")]);
        line.frame(frame::DATA, 0, asked.stream, b"longer");
    });
    let keel = front(&[backend.address], UpstreamProtocol::H2, |_| ());
    let client = H2Client::connect(keel.address());
    let mut socket = open(&client, "/", &[]).unwrap();
    assert!(
        !socket.headers.contains_key("content-length") && !socket.headers.contains_key(handshake::ACCEPT)
    );
    assert_eq!(socket.take(6), b"longer");
}
