//! `shutdown_delay`: an outer balancer has time to notice.

use std::net::SocketAddr;

use fake_backend::Running;
use rustix::process::Signal;

use super::{Started, address_in, backend, evenkeel, get};

/// A process with this delay, and where it listens.
fn delayed(delay: &str) -> (Started, SocketAddr, Running, tempfile::TempDir) {
    let (one, folder) = (backend("one"), tempfile::tempdir().unwrap());
    let config = folder.path().join("evenkeel.yaml");
    let text = format!("shutdown_delay: {delay}\nservers: [{}]\n", one.url());
    std::fs::write(&config, text).unwrap();
    let mut lb = Started::new(evenkeel(&["--config", config.to_str().unwrap(), "--port", "0"]));
    let address = address_in(&lb.wait_for("listening"));
    (lb, address, one, folder)
}

#[test]
fn a_shutdown_delay_goes_on_serving_until_its_time_or_a_second_signal() {
    let (mut lb, address, _one, _folder) = delayed("1h");
    lb.signal(Signal::TERM);
    let line = lb.wait_for("SIGTERM");
    assert!(line.contains("serving on for 1h00m"), "{line}");
    assert!(get(address).contains("200 OK"), "new connections too");
    lb.signal(Signal::TERM);
    lb.wait_for("draining");
    lb.wait_for("everything was finished");
    assert_eq!(lb.exit_code(), Some(0));

    let (mut lb, address, _one, _folder) = delayed("50ms");
    assert!(get(address).contains("200 OK"));
    lb.signal(Signal::TERM);
    lb.wait_for("`shutdown_delay` is over");
    assert_eq!(lb.exit_code(), Some(0));
}

#[test]
fn somebody_at_a_terminal_does_not_wait_for_the_shutdown_delay() {
    let (mut lb, _address, _one, _folder) = delayed("1h");
    lb.signal(Signal::INT);
    lb.wait_for("SIGINT: draining");
    assert_eq!(lb.exit_code(), Some(0));
}
