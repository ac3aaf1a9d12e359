//! What bad neighbours send to the admin API, and that it goes on.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::os::unix::net::UnixStream;

use super::door_lab::{CONFIGURE, READ, ask, bearer, door, guarded, raw};
use super::support::{Client, PATIENCE, fakes};

/// A request that ends its connection, with this in its head.
fn with(line: &str, more: &str) -> Vec<u8> {
    format!("{line}\r\nHost: localhost\r\n{more}Connection: close\r\n\r\n").into_bytes()
}

/// Two hundred and more.
fn hostile() -> Vec<Vec<u8>> {
    let token = bearer(CONFIGURE);
    let mut all: Vec<Vec<u8>> = vec![
        Vec::new(),
        b"\0".to_vec(),
        vec![0xff; 4096],
        vec![b'\n'; 70_000],
        b"GET".to_vec(),
        b"GET / HTTP/1.1".to_vec(),
        b"GET / HTTP/9.9\r\nHost: localhost\r\n\r\n".to_vec(),
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(),
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03".to_vec(),
        b"GET / HTTP/1.1\nHost: localhost\n\n".to_vec(),
        b"GET  /  HTTP/1.1\r\nHost: localhost\r\n\r\n".to_vec(),
        b"GET / HTTP/1.1\r\n Host: localhost\r\n\r\n".to_vec(),
        b"GET / HTTP/1.1\r\nHost : localhost\r\n\r\n".to_vec(),
        with("GET /api/v1 HTTP/1.1", "Content-Length: 5\r\nContent-Length: 6\r\n"),
        with(
            "POST /api/v1/config/plan HTTP/1.1",
            &format!("{token}\r\nContent-Length: 18446744073709551616\r\n"),
        ),
        with("POST /api/v1/config/plan HTTP/1.1", &format!("{token}\r\nContent-Length: -1\r\n")),
        with("POST /api/v1/config/plan HTTP/1.1", &format!("{token}\r\nTransfer-Encoding: chunked\r\n")),
        with("POST /api/v1/config/plan HTTP/1.1", &format!("{token}\r\nTransfer-Encoding: gzip\r\n")),
        with("GET /api/v1 HTTP/1.1", "Upgrade: h2c\r\n"),
        with("CONNECT 127.0.0.1:1 HTTP/1.1", ""),
        with("GET /api/v1 HTTP/1.0", ""),
        with(&format!("GET /{} HTTP/1.1", "a".repeat(100_000)), ""),
        with(&format!("{} / HTTP/1.1", "A".repeat(100_000)), ""),
        with("GET / HTTP/1.1", &format!("X: {}\r\n", "a".repeat(100_000))),
        with("GET / HTTP/1.1", &"X: y\r\n".repeat(5_000)),
        with("GET / HTTP/1.1", &format!("Authorization: Bearer {}\r\n", "a".repeat(15_000))),
        // The second request must not be taken for a part of a first that has other rights.
        [
            with("POST /api/v1/config/plan HTTP/1.1", "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n"),
            format!("0\r\n\r\nPOST /api/v1/config/reload HTTP/1.1\r\nHost: localhost\r\n{token}\r\n\r\n")
                .into(),
        ]
        .concat(),
        "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n".repeat(1_000).into_bytes(),
    ];
    let paths = [
        "/",
        "//",
        "/..",
        "/%",
        "/%00",
        "/%2e%2e/api/v1",
        "/api/v1/%ff",
        "/api//v1",
        "*",
        "http://a",
        "/?%",
        "/#",
    ];
    for path in paths {
        for method in ["GET", "POST", "OPTIONS", "TRACE", "get", "PURGE"] {
            for more in ["", &format!("{token}\r\n"), "Host: evil.example\r\n"] {
                all.push(with(&format!("{method} {path} HTTP/1.1"), more));
            }
        }
    }
    assert!(all.len() > 200);
    all
}

#[test]
fn two_hundred_hostile_requests_leave_it_serving() {
    let backends = fakes(1);
    let process = guarded(&backends[0]);
    let (door, digest) = (door(&process), process.digest());
    let all = hostile();
    for (place, bytes) in all.iter().enumerate() {
        let mut stream = TcpStream::connect(door).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let _ = stream.write_all(bytes);
        if place % 3 > 0 {
            let _ = stream.shutdown(Shutdown::Write);
            // What it says does not matter, but it has to end.
            let ended = stream.read_to_end(&mut Vec::new());
            let in_time = |error: &std::io::Error| error.kind() != std::io::ErrorKind::WouldBlock;
            assert!(ended.as_ref().err().is_none_or(in_time), "request {place} hangs");
        }
    }
    assert_eq!(ask(door, "GET /api/v1", &bearer(READ), b"").status, 200);
    assert_eq!(process.digest(), digest, "nothing was changed by any of them");
    assert_eq!(Client::connect(process.address("web")).get("/").status, 200);
    assert!(!process.said().iter().any(|line| line.contains("panicked")), "{:#?}", process.said());
}

#[test]
fn a_smuggled_change_was_not_made() {
    let backends = fakes(1);
    let process = guarded(&backends[0]);
    let door = door(&process);
    let inner = "POST /api/v1/config/reload HTTP/1.1\r\nHost: localhost\r\n\r\n";
    // Each gives the change that is inside no rights of its own.
    let outer = [
        format!(
            "POST /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n{inner}",
            inner.len()
        ),
        format!(
            "GET /readyz HTTP/1.1\r\nHost: localhost\r\n{}\r\nContent-Length: 0\r\n\r\n{inner}",
            bearer(CONFIGURE)
        ),
        format!(
            "GET /api/v1 HTTP/1.1\r\nHost: localhost\r\n{}\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n{inner}",
            bearer(CONFIGURE)
        ),
    ];
    let before = process.reloads().len();
    for bytes in outer {
        let mut stream = TcpStream::connect(door).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.write_all(bytes.as_bytes()).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        let text = String::from_utf8_lossy(&answer);
        let reloads = text.matches("\"verdict\"").count();
        assert_eq!(reloads, 0, "{text}");
    }
    assert_eq!(process.reloads().len(), before);
}

#[test]
fn a_thousand_idle_connections_keep_neither_traffic_nor_the_admin_out() {
    let backends = fakes(1);
    let process = guarded(&backends[0]);
    let door = door(&process);
    let mut idle: Vec<TcpStream> = Vec::new();
    for place in 0..1_000 {
        let mut stream = TcpStream::connect(door).unwrap();
        match place % 3 {
            0 => {}
            // Half of a head.
            1 => drop(stream.write_all(b"GET /api/v1 HTTP/1.1\r\nHost: ")),
            // A whole request, and then nothing.
            _ => drop(stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")),
        }
        idle.push(stream);
        if place % 100 == 99 {
            assert_eq!(ask(door, "GET /api/v1", &bearer(READ), b"").status, 200, "behind {place}");
        }
    }
    assert_eq!(Client::connect(process.address("web")).get("/").status, 200);
    assert_eq!(process.ask("GET /api/v1", b"").0, 200);
    drop(idle);
}

#[test]
fn half_sent_bodies_of_somebody_with_a_token_keep_nobody_out() {
    let backends = fakes(1);
    let process = guarded(&backends[0]);
    let door = door(&process);
    let plan = "POST /api/v1/config/plan HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n";
    let half = format!("{plan}{}\r\n\r\nwork", bearer(CONFIGURE));
    let mut sending: Vec<TcpStream> = Vec::new();
    let mut beside: Vec<UnixStream> = Vec::new();
    // As many as there may be, and then some more.
    for place in 0..150 {
        sending.push(TcpStream::connect(door).unwrap());
        sending[place].write_all(half.as_bytes()).unwrap();
        beside.push(UnixStream::connect(process.socket()).unwrap());
        // The first ones were closed to make room.
        let _ = beside[place].write_all(format!("{plan}\r\nwork").as_bytes());
        if place >= 60 {
            assert_eq!(ask(door, "GET /api/v1", &bearer(READ), b"").status, 200, "behind {place}");
            assert_eq!(process.ask("GET /api/v1", b"").0, 200, "behind {place}");
        }
    }
    assert_eq!(process.reloads().len(), 0);
}

#[test]
fn bodies_that_are_too_long_or_of_another_kind_are_refused_by_their_status() {
    let backends = fakes(1);
    let process = guarded(&backends[0]);
    let door = door(&process);
    let status = |line: &str, more: &str, body: &[u8]| {
        ask(door, line, &format!("{}|{more}", bearer(CONFIGURE)), body).status
    };
    assert_eq!(status("POST /api/v1/config/reload", "", b"x: 1"), 415);
    assert_eq!(status("GET /api/v1", "", b"x: 1"), 415);
    assert_eq!(status("GET /api/v1?verbose=1", "", b""), 400);
    assert_eq!(status("POST /api/v1/config/plan?flie=a", "", b""), 400);
    assert_eq!(status("POST /api/v1/config/reload", "", &vec![b'x'; 200_000]), 415);
    let answer = raw(
        door,
        b"POST /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\nConnection: close\r\n\r\n",
    );
    assert!(answer.starts_with(b"HTTP/1.1 401 "), "{}", String::from_utf8_lossy(&answer));
}
