use std::io::Read;
use std::net::{SocketAddr, TcpListener, TcpStream};

use clap::Args;

use super::*;
use crate::{backend, secure};

/// Runs the driver against a backend in a thread of this process, which ends with the tests.
fn drive(backend: &[&str], client: &[&str]) -> String {
    drive_at(backend::start(backend), client)
}

/// What the driver reports, without the times.
fn drive_at(address: SocketAddr, client: &[&str]) -> String {
    let mut arguments = vec!["drive".to_owned(), address.to_string()];
    arguments.extend(client.iter().map(|&argument| argument.to_owned()));
    let options = parse::<Options>(&arguments);
    let mut driver = Driver::new(&options).unwrap();
    driver.waves();
    let report = driver.report(Duration::ZERO);
    report[..report.find(",\"seconds").unwrap()].to_owned() + &report[report.find(",\"connects").unwrap()..]
}

fn parse<T: Args>(arguments: &[String]) -> T {
    let command = T::augment_args(clap::Command::new("rig"));
    T::from_arg_matches(&command.get_matches_from(arguments)).unwrap()
}

#[test]
fn exactly_so_many_requests_go_over_so_many_connections() {
    let report = drive(&[], &["--connections", "4", "--requests", "10"]);
    assert_eq!(report, r#"{"requests":10,"errors":0,"connects":4,"resumed":0}"#);
}

#[test]
fn a_closing_client_connects_for_each_request() {
    let report = drive(&[], &["--connections", "4", "--requests", "10", "--close"]);
    assert_eq!(report, r#"{"requests":10,"errors":0,"connects":10,"resumed":0}"#);
}

#[test]
fn content_is_counted_however_it_is_framed_and_in_both_directions() {
    let client = ["--connections", "2", "--requests", "6", "--body", "100000", "--upload", "300000"];
    for backend in [&["--body", "100000"][..], &["--body", "100000", "--chunked"]] {
        let report = drive(backend, &client);
        assert_eq!(report, r#"{"requests":6,"errors":0,"connects":2,"resumed":0}"#, "{backend:?}");
    }
}

#[test]
fn a_wrong_length_is_an_error_and_costs_the_connection() {
    let report = drive(&["--body", "11"], &["--connections", "2", "--requests", "4"]);
    assert_eq!(report, r#"{"requests":4,"errors":4,"connects":4,"resumed":0}"#);
}

#[test]
fn a_connection_that_the_backend_closes_is_opened_anew() {
    let report = drive(&["--close"], &["--connections", "2", "--requests", "4"]);
    assert_eq!(report, r#"{"requests":4,"errors":0,"connects":4,"resumed":0}"#);
}

#[test]
fn tls_is_full_once_for_each_connection_that_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let address = secure::serve(folder.path());
    let file = folder.path().join("cert.pem");
    let client = ["--tls", file.to_str().unwrap(), "--connections", "3", "--requests", "9"];
    assert_eq!(drive_at(address, &client), r#"{"requests":9,"errors":0,"connects":3,"resumed":0}"#);
}

#[test]
fn sessions_are_resumed_when_asked_and_only_then() {
    let folder = tempfile::tempdir().unwrap();
    let address = secure::serve(folder.path());
    let file = folder.path().join("cert.pem");
    let client = ["--tls", file.to_str().unwrap(), "--connections", "3", "--requests", "9", "--close"];
    // The server ends without close_notify, as it may: HTTP says where the answer ends.
    assert_eq!(drive_at(address, &client), r#"{"requests":9,"errors":0,"connects":9,"resumed":0}"#);
    let client = [&client[..], &["--resume"]].concat();
    assert_eq!(drive_at(address, &client), r#"{"requests":9,"errors":0,"connects":9,"resumed":6}"#);
}

#[test]
fn streams_share_connections_and_the_last_wave_is_what_is_left() {
    let report =
        drive_at(multiplexed(b"\x88"), &["--connections", "2", "--streams", "3", "--requests", "10"]);
    assert_eq!(report, r#"{"requests":10,"errors":0,"connects":2,"resumed":0}"#);
}

#[test]
fn what_fails_on_a_connection_fails_all_of_its_streams_that_have_no_answer() {
    let report =
        drive_at(multiplexed(b"\x8d"), &["--connections", "2", "--streams", "3", "--requests", "10"]);
    assert_eq!(report, r#"{"requests":10,"errors":10,"connects":4,"resumed":0}"#);
}

#[test]
fn a_server_that_does_not_agree_on_http2_is_not_sent_it() {
    let folder = tempfile::tempdir().unwrap();
    let address = secure::serve(folder.path());
    let file = folder.path().join("cert.pem");
    let client = ["--tls", file.to_str().unwrap(), "--connections", "1", "--streams", "2", "--requests", "2"];
    assert_eq!(drive_at(address, &client), r#"{"requests":2,"errors":2,"connects":1,"resumed":0}"#);
}

/// Answers every HEADERS frame with this block and twelve bytes, in threads of this process.
fn multiplexed(block: &'static [u8]) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for socket in listener.incoming() {
            let socket = socket.unwrap();
            std::thread::spawn(move || answer_frames(socket, block));
        }
    });
    address
}

fn answer_frames(mut socket: TcpStream, block: &[u8]) -> std::io::Result<()> {
    socket.read_exact(&mut [0; 24])?;
    socket.write_all(b"\0\0\0\x04\0\0\0\0\0")?;
    loop {
        let mut frame = [0; 9];
        socket.read_exact(&mut frame)?;
        let [a, b, c, kind, _, stream @ ..] = frame;
        let mut payload = vec![0; u32::from_be_bytes([0, a, b, c]) as usize];
        socket.read_exact(&mut payload)?;
        if kind == 1 {
            let head = [b"\0\0\x01\x01\x04", &stream[..], block].concat();
            let content = [b"\0\0\x0c\0\x01", &stream[..], b"hello, world"].concat();
            socket.write_all(&[head, content].concat())?;
        }
    }
}
