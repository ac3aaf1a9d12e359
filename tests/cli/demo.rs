//! The demo as a stranger runs it.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use super::{demo_from, eventually, own_ports};

#[test]
fn the_demo_served_on_when_its_output_was_closed() {
    let mut command = demo_from(own_ports());
    let mut demo = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    // As `head -2` does: it reads two lines, and is gone.
    let lines = BufReader::new(demo.stdout.take().unwrap()).lines();
    assert!(lines.take(2).any(|line| line.unwrap().starts_with("evenkeel demo:")));
    let mut ended = None;
    eventually("it ends", || {
        ended = demo.try_wait().unwrap();
        ended.is_some()
    });
    assert_eq!(ended.unwrap().code(), Some(0), "a closed pipe is no failure");
}
