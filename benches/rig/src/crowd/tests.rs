use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};

use serde_json::Value;

use super::*;
use crate::{backend, secure};

/// What a crowd with these flags has seen.
fn seen(seconds: &str, flags: &[&str]) -> Value {
    let command = Options::augment_args(clap::Command::new("rig"));
    let matches = command.get_matches_from([&["crowd", "--seconds", seconds], flags].concat());
    let options = <Options as clap::FromArgMatches>::from_arg_matches(&matches).unwrap();
    let mut crowd = Crowd::new(&options).unwrap();
    crowd.gather().unwrap();
    crowd.go().unwrap();
    serde_json::from_str(&crowd.report.text()).unwrap()
}

/// Does this with each connection, in a thread of this process that ends with the tests.
fn serve(work: fn(TcpStream)) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for socket in listener.incoming().map_while(Result::ok) {
            std::thread::spawn(move || work(socket));
        }
    });
    address
}

fn read_head(socket: &TcpStream) {
    BufReader::new(socket).lines().map_while(Result::ok).find(String::is_empty);
}

fn echo(mut socket: TcpStream) {
    let mut bytes = [0; 4096];
    while let Ok(count @ 1..) = socket.read(&mut bytes) {
        socket.write_all(&bytes[..count]).unwrap();
    }
}

/// Sends back the first message of a WebSocket and closes at the second.
fn websocket_that_closes(mut socket: TcpStream) {
    read_head(&socket);
    socket.write_all(b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\n\r\n").unwrap();
    let mut frame = [0; 30];
    socket.read_exact(&mut frame).unwrap();
    let payload: Vec<u8> =
        frame[6..].iter().zip(frame[2..6].iter().cycle()).map(|(byte, mask)| byte ^ mask).collect();
    socket.write_all(&[&[0x81, 24][..], &payload].concat()).unwrap();
    socket.read_exact(&mut frame).unwrap();
    socket.write_all(&[0x88, 2, 3, 0xe9]).unwrap();
}

fn answer_and_close(mut socket: TcpStream) {
    read_head(&socket);
    socket.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").unwrap();
}

#[test]
fn what_is_begun_is_answered_and_timed() {
    let folder = tempfile::tempdir().unwrap();
    let trust = folder.path().join("cert.pem");
    let https = secure::serve(folder.path()).to_string();
    let (http, tcp) = (backend::start(&[]).to_string(), serve(echo).to_string());
    let flags = [
        "--http",
        &http,
        "--https",
        &https,
        "--tcp",
        &tcp,
        "--trust",
        trust.to_str().unwrap(),
        "--tunnels",
        "3",
    ];
    let rates = ["--get", "200", "--tls", "100", "--handshakes", "50", "--sessions", "100"];
    let seen = seen("0.3", &[&flags[..], &rates].concat());
    for kind in ["get", "tls", "handshake", "session", "all", "small", "messages"] {
        let one = &seen[kind];
        assert!(one["begun"].as_u64() > Some(0) && one["failed"] == 0, "{kind}: {seen}");
        assert!(one["timed"] == one["begun"] && one["p99_us"].as_u64() > Some(0), "{kind}: {seen}");
    }
    assert_eq!((&seen["unannounced"], &seen["tunnels_lost"]), (&Value::from(0), &Value::from(0)), "{seen}");
}

#[test]
fn an_answer_of_another_length_is_a_failure() {
    // The backend knows one answer, and that one is no download.
    let http = backend::start(&[]).to_string();
    let seen = seen("0.3", &["--http", &http, "--down", "50", "--up", "50"]);
    for kind in ["down", "up"] {
        assert!(seen[kind]["begun"] == seen[kind]["failed"] && seen[kind]["timed"] == 0, "{seen}");
    }
}

#[test]
fn an_end_without_a_word_is_seen_and_one_that_was_announced_is_none() {
    let http = serve(answer_and_close).to_string();
    let unannounced = seen("0.3", &["--http", &http, "--get", "20"]);
    assert!(unannounced["unannounced"].as_u64() > Some(0) && unannounced["announced"] == 0, "{unannounced}");
    let http = backend::start(&["--close"]).to_string();
    let announced = seen("0.3", &["--http", &http, "--get", "20"]);
    assert!(announced["unannounced"] == 0 && announced["announced"].as_u64() > Some(0), "{announced}");
    assert_eq!(announced["get"]["failed"], 0, "{announced}");
}

#[test]
fn a_websocket_that_is_told_to_close_is_lost_and_said_so() {
    let http = serve(websocket_that_closes).to_string();
    let seen = seen("1.5", &["--http", &http, "--websockets", "1"]);
    assert_eq!((&seen["websockets_lost"], &seen["messages"]["timed"]), (&1.into(), &1.into()), "{seen}");
    assert!(seen["told"][0].as_str().unwrap().contains("another message than was sent: /x88"), "{seen}");
}
