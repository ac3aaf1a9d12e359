use std::io::Read;
use std::net::TcpListener;
use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::PrivateKeyDer;
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use super::*;
use crate::backend;
use crate::message::Head;

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
    driver.waves().unwrap();
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

/// A TLS server in a thread of this process that answers heads with twelve bytes. It trusts nothing and its
/// certificate is in the file.
fn secure(folder: &Path) -> SocketAddr {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    std::fs::write(folder.join("cert.pem"), made.cert.pem()).unwrap();
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let config = config.with_no_client_auth().with_single_cert(vec![made.cert.der().clone()], key).unwrap();
    let config = Arc::new(config);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for socket in listener.incoming() {
            let session = ServerConnection::new(Arc::clone(&config)).unwrap();
            let mut stream = StreamOwned::new(session, socket.unwrap());
            std::thread::spawn(move || answer_all(&mut stream));
        }
    });
    address
}

/// Answers until the client closes, or wants it closed.
fn answer_all(stream: &mut (impl Read + Write)) -> std::io::Result<()> {
    let mut bytes = Vec::new();
    let mut buffer = [0; 1024];
    loop {
        while Head::read(&bytes).is_none() {
            let count = stream.read(&mut buffer)?;
            if count == 0 {
                return Ok(());
            }
            bytes.extend_from_slice(&buffer[..count]);
        }
        let close = Head::read(&bytes).unwrap().close;
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\nhello, world")?;
        if close {
            return Ok(());
        }
        bytes.clear();
    }
}

#[test]
fn tls_is_full_once_for_each_connection_that_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let address = secure(folder.path());
    let file = folder.path().join("cert.pem");
    let client = ["--tls", file.to_str().unwrap(), "--connections", "3", "--requests", "9"];
    assert_eq!(drive_at(address, &client), r#"{"requests":9,"errors":0,"connects":3,"resumed":0}"#);
}

#[test]
fn sessions_are_resumed_when_asked_and_only_then() {
    let folder = tempfile::tempdir().unwrap();
    let address = secure(folder.path());
    let file = folder.path().join("cert.pem");
    let client = ["--tls", file.to_str().unwrap(), "--connections", "3", "--requests", "9", "--close"];
    // The server ends without close_notify, as it may: HTTP says where the answer ends.
    assert_eq!(drive_at(address, &client), r#"{"requests":9,"errors":0,"connects":9,"resumed":0}"#);
    let client = [&client[..], &["--resume"]].concat();
    assert_eq!(drive_at(address, &client), r#"{"requests":9,"errors":0,"connects":9,"resumed":6}"#);
}
