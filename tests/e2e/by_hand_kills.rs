//! Whoever was told that a change is done finds it done after a SIGKILL.

use std::io::Read as _;
use std::io::Write as _;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use super::by_hand::{entries, of};
use super::support::process::Process;
use super::support::{eventually, fakes};

/// Rounds with a kill each; the variable says otherwise, as `benches/bars/by_hand.py` does.
const ROUNDS: u64 = 5;

/// Sets the weight; `None`: nobody answered any more.
fn set(socket: &Path, weight: u64) -> Option<u16> {
    let body = format!("{{\"weight\": {weight}}}");
    let mut stream = UnixStream::connect(socket).ok()?;
    let head = format!(
        "PATCH /api/v1/targets/web/backends/b1 HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(head.as_bytes()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    answer.split(' ').nth(1)?.parse().ok()
}

#[test]
#[expect(clippy::print_stdout, reason = "who runs it at full length is to know what was tried")]
fn no_change_that_was_answered_is_lost_by_a_kill() {
    let rounds = std::env::var("EVENKEEL_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(ROUNDS);
    let backends = fakes(2);
    let mut process = Process::start(&of(&backends, ""), 1);
    let mut all = 0;
    for round in 0..rounds {
        let (socket, answered) = (process.socket(), AtomicU64::new(0));
        let asked = AtomicU64::new(0);
        let folder = std::thread::scope(|scope| {
            scope.spawn(|| {
                // 2 to 256, again and again: 1 is what the file says.
                for number in 0.. {
                    asked.store(number + 1, Ordering::SeqCst);
                    match set(&socket, number % 255 + 2) {
                        Some(200) => answered.store(number + 1, Ordering::SeqCst),
                        Some(status) => panic!("{status}"),
                        None => return,
                    }
                }
            });
            eventually("some are answered", || answered.load(Ordering::SeqCst) > round % 7);
            process.kill()
        });
        process = Process::start_in(folder, 1);
        let found = entries(&process);
        assert_eq!(found.len(), 1, "round {round}: {found:?}");
        let weight = found[0]["value"].as_u64().unwrap();
        let (asked, answered) = (asked.into_inner(), answered.into_inner());
        let may_be: Vec<u64> = (answered..=asked).map(|number| (number - 1) % 255 + 2).collect();
        assert!(may_be.contains(&weight), "round {round}: {weight} is none of {may_be:?}");
        all += answered;
    }
    println!("{rounds} kills, {all} changes that were answered: none is lost");
}
