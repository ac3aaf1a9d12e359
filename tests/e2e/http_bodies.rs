//! Bodies of every size and framing, in both directions at once, and that nobody's bytes pile up.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use evenkeel::config::model::Protocol;
use evenkeel::net::now;
use fake_backend::{Behaviour, Fault, pattern};

use super::support::{Keel, PATIENCE, chunked, fakes, recording, settled};

/// Shorter than it takes to see twice that nothing moves any more.
const SHORT: Duration = Duration::from_millis(500);
/// More than all buffers between a client and a backend hold.
const ENDLESS: u64 = 1 << 40;
/// What the kernel and we may hold of a body that nobody reads.
const BOUND: u64 = 64 * 1024 * 1024;

#[test]
fn answers_of_every_size_arrive_whole_in_every_framing() {
    let backends = fakes(1);
    let keel = Keel::http(&[&backends[0]]);
    let mut client = keel.client();
    for size in [0, 1, 2047, 2048, 2049, 16_384, 65_535, 65_536, 65_537, 1_000_000, 5_000_000] {
        for framing in ["bytes", "chunked"] {
            let answer = client.get(&format!("/{framing}/{size}"));
            assert!(!answer.cut && answer.body == pattern(size), "{framing} {size}: {}", answer.body.len());
        }
    }
    assert_eq!(backends[0].connections(), 1);
}

#[test]
fn uploads_of_every_size_arrive_whole_in_every_framing() {
    let backend = recording();
    let keel = Keel::http(&[&backend]);
    let mut client = keel.client();
    for size in [1, 2048, 2049, 65_535, 65_536, 65_537, 1_000_000, 3_000_000] {
        let body = pattern(size);
        assert_eq!(client.post("/count", &body).text(), size.to_string());
        assert!(backend.take_requests().pop().unwrap().body == body, "{size}");
        client.send("POST /count HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n");
        client.send(chunked(&body, &[17, 4096, 100_000], ""));
        assert_eq!(client.answer().text(), size.to_string());
        assert!(backend.take_requests().pop().unwrap().body == body, "{size} in chunks");
    }
}

#[test]
fn requests_behind_long_bodies_are_found_where_these_end() {
    let backends = fakes(1);
    let keel = Keel::http(&[&backends[0]]);
    let mut client = keel.client();
    let mut sent = Vec::new();
    for size in [700_000, 73_728, 2_000_000, 90_001] {
        sent.extend_from_slice(
            format!("POST /count HTTP/1.1\r\nHost: test\r\nContent-Length: {size}\r\n\r\n").as_bytes(),
        );
        sent.extend_from_slice(&pattern(size));
    }
    let counts = client.while_sending(&sent, |client| [(); 4].map(|()| client.answer().text()));
    assert_eq!(counts, ["700000", "73728", "2000000", "90001"]);
    assert_eq!(backends[0].stats().malformed, 0);
}

#[test]
fn a_body_that_drips_in_is_passed_on_byte_by_byte() {
    let backend = recording();
    let keel = Keel::http(&[&backend]);
    let mut client = keel.client();
    let chunks = chunked(&pattern(40), &[7], "A: b\r\n");
    client.send("POST /echo HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n");
    for byte in &chunks {
        client.send([*byte]);
    }
    let answer = client.answer();
    assert_eq!((answer.body, answer.trailers.as_str()), (pattern(40), "A: b\r\n"));
}

#[test]
fn an_echo_larger_than_all_buffers_streams_both_ways_at_once() {
    let backends = fakes(1);
    let keel = Keel::http(&[&backends[0]]);
    let body = pattern(24_000_000);
    for framing in ["Content-Length: 24000000", "Transfer-Encoding: chunked"] {
        let mut client = keel.client();
        client.send(format!("POST /echo HTTP/1.1\r\nHost: test\r\n{framing}\r\n\r\n"));
        let mut writer = client.socket.try_clone().unwrap();
        let answer = std::thread::scope(|scope| {
            scope.spawn(|| {
                let bytes =
                    if framing.starts_with('T') { chunked(&body, &[50_000], "") } else { body.clone() };
                writer.write_all(&bytes).unwrap();
            });
            client.answer()
        });
        assert!(!answer.cut && answer.body == body, "{framing}: {}", answer.body.len());
    }
}

#[test]
fn a_client_that_does_not_read_holds_the_backend_back() {
    let backends = fakes(1);
    // The backend's patience is over long before the client reads, but it is not the backend who is waited for.
    let keel = Keel::with(&[&backends[0]], |config| config.targets[0].timeouts.idle = SHORT);
    for framing in ["bytes", "chunked", "close"] {
        let before = backends[0].stats().bytes_out;
        let mut client = keel.client();
        client.send(format!("GET /{framing}/{ENDLESS} HTTP/1.1\r\nHost: test\r\n\r\n"));
        // Twice, so that more than the backend's patience passes while nothing moves.
        settled("the backend stops", || backends[0].stats().bytes_out);
        let sent = settled("the backend stops", || backends[0].stats().bytes_out) - before;
        assert!((1..BOUND).contains(&sent), "{framing}: {sent}");
        // What did come is right, and more follows as soon as somebody reads.
        let taken = client.take(8_000_000);
        let start = taken.windows(4).position(|four| four == b"\r\n\r\n").unwrap() + 4;
        if framing == "bytes" {
            assert!(pattern(8_000_000).starts_with(&taken[start..]));
        }
        super::support::eventually("the backend goes on", || backends[0].stats().bytes_out - before > sent);
    }
    super::support::eventually("clients that left are noticed", || backends[0].open_connections() == 0);
}

#[test]
fn a_backend_that_does_not_read_holds_the_client_back() {
    let backends = fakes(1);
    backends[0].behave(Behaviour::fault(Fault::HangUnread));
    // The same the other way round: nobody waits for the client. Long enough for one that the machine keeps waiting.
    let idle = 4 * SHORT;
    let keel = Keel::with(&[&backends[0]], |config| config.listeners[0].client_timeouts.idle = idle);
    for framing in ["Content-Length: 1000000000000", "Transfer-Encoding: chunked"] {
        let client = keel.client();
        let mut socket = client.socket.try_clone().unwrap();
        socket.write_all(format!("POST / HTTP/1.1\r\nHost: test\r\n{framing}\r\n\r\n").as_bytes()).unwrap();
        socket.set_nonblocking(true).unwrap();
        let piece = chunked(&pattern(60_000), &[60_000], "");
        let piece = &piece[..piece.len() - 5];
        let (mut total, mut offset) = (0u64, 0);
        let mut push = || {
            while let Ok(count) = socket.write(&piece[offset..]) {
                total += count as u64;
                offset = (offset + count) % piece.len();
                assert!(total < BOUND, "{framing}: an upload nobody reads does not stall");
            }
            total
        };
        assert!(settled("the client stalls", &mut push) > 0);
        let stalled = now();
        super::support::eventually("its patience is over", || {
            push();
            now().since(stalled) > idle + SHORT
        });
        let silent = socket.peek(&mut [0]).is_err_and(|error| error.kind() == ErrorKind::WouldBlock);
        assert!(silent, "{framing}: neither answered nor closed");
    }
}

#[test]
fn a_slow_reader_gets_every_byte() {
    let backends = fakes(1);
    let keel = Keel::http(&[&backends[0]]);
    let mut socket = TcpStream::connect(keel.address()).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket2::SockRef::from(&socket).set_recv_buffer_size(4096).unwrap();
    socket.write_all(b"GET /chunked/60000 HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n").unwrap();
    socket.shutdown(Shutdown::Write).unwrap();
    let (mut all, mut space) = (Vec::new(), [0u8; 777]);
    while let Ok(count @ 1..) = socket.read(&mut space) {
        all.extend_from_slice(&space[..count]);
    }
    assert!(all.ends_with(b"\r\n0\r\n\r\n"), "the last chunk came");
    let content: u64 = backends[0].stats().bytes_out;
    assert!(content > 60_000);
}

#[test]
fn a_body_that_is_slow_to_come_is_not_held_up() {
    let backends = fakes(1);
    let keel = Keel::http(&[&backends[0]]);
    for framing in ["bytes", "chunked", "close"] {
        let answer = keel.client().get(&format!("/{framing}/60?piece=7&every=5"));
        assert!(!answer.cut && answer.body == pattern(60), "{framing}");
    }
}

#[test]
fn large_heads_and_bodies_arrive_whole_while_hundreds_of_others_hold_their_buffers() {
    let backend = recording();
    let keel = Keel::with(&[&backend], |config| {
        config.workers = 1;
        config.listeners[0].limits.head_size = 64 * 1024;
    });
    // Each has begun a head, and so holds a buffer; from the 129th on they are small.
    let holding: Vec<_> = (0..300)
        .map(|_| {
            let mut client = keel.client();
            client.send("GET / HTTP/1.1\r\nA: ");
            client
        })
        .collect();
    super::support::eventually("all are open", || keel.server.connections() == holding.len());
    let mut client = keel.client();
    for length in [10_000, 16_300, 40_000, 65_000] {
        let line = format!("X-Long: {}\r\n", "abcdefghij".repeat(length / 10));
        let answer = client.ask(&format!("GET /head HTTP/1.1\r\nHost: test\r\n{line}\r\n"));
        assert!(answer.status == 200 && answer.text().contains(&line), "{length}: {}", answer.head);
        let name = "n".repeat(length);
        let answer = client.ask(&format!("GET /head HTTP/1.1\r\nHost: test\r\n{name}: b\r\n\r\n"));
        assert!(answer.text().contains(&format!("\r\n{name}: b\r\n")), "{length}: {}", answer.head);
    }
    let body = pattern(2_000_000);
    client.send("POST /count HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n");
    assert_eq!(client.send(chunked(&body, &[17, 16_384, 100_000], "A: b\r\n")).answer().text(), "2000000");
    assert!(backend.take_requests().pop().unwrap().body == body);
    for framing in ["bytes", "chunked", "close"] {
        assert!(client.get(&format!("/{framing}/2000000")).body == body, "{framing}");
    }
}

/// Each pause is short, and all of them together are longer than the patience.
#[test]
fn a_backend_that_takes_a_body_with_pauses_has_all_of_the_patience_for_each() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let mut config = super::support::config(Protocol::Http, &[listener.local_addr().unwrap()]);
    config.targets[0].timeouts.idle = Duration::from_secs(5);
    let keel = Keel::start(&config);
    std::thread::spawn(move || {
        let (mut socket, _) = listener.accept().unwrap();
        let mut space = vec![0; 1 << 20];
        for _ in 0..12 {
            socket.read_exact(&mut space).unwrap();
            super::life_lab::pause(500);
        }
        while !matches!(socket.read(&mut space), Ok(count) if count == 0 || space[count - 1] == b'z') {}
        socket.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nwhole").unwrap();
    });
    let mut body = vec![b'x'; 32 << 20];
    body.push(b'z');
    assert_eq!(keel.client().post("/", &body).text(), "whole");
}
