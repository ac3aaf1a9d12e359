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
