use std::io::Write;
use std::sync::{Arc, Mutex};

use super::*;

const LOST: BackendChange<'_> = BackendChange {
    target: "web",
    backend: "10.0.0.7:80",
    from: "up",
    to: "down",
    source: "probe",
    reason: "connection refused",
    after: Some(Duration::from_secs(60)),
    left: 1,
    of: 2,
};

const BACK: BackendChange<'_> = BackendChange {
    from: "down",
    to: "up",
    reason: "2 probes passed",
    after: Some(Duration::from_millis(12_345)),
    left: 2,
    ..LOST
};

#[test]
fn a_sentence_names_the_backend_its_state_the_reason_and_how_many_are_left() {
    for (change, sentence) in [
        (LOST, "backend web/10.0.0.7:80 is down: connection refused (1 of 2 left)"),
        (BACK, "backend web/10.0.0.7:80 is up again after 12s: 2 probes passed (2 of 2 up)"),
        (
            BackendChange { from: "unknown", after: None, reason: "the first probe passed", ..BACK },
            "backend web/10.0.0.7:80 is up: the first probe passed (2 of 2 up)",
        ),
        (
            BackendChange { source: "breaker", reason: "5 attempts in a row failed", ..LOST },
            "backend web/10.0.0.7:80 is down, breaker open: 5 attempts in a row failed (1 of 2 left)",
        ),
        (
            BackendChange { source: "outlier", reason: "slow", ..LOST },
            "backend web/10.0.0.7:80 is down, left out: slow (1 of 2 left)",
        ),
        (
            BackendChange { to: "draining", source: "agent", reason: "the agent says drain", ..LOST },
            "backend web/10.0.0.7:80 is draining: the agent says drain (1 of 2 left)",
        ),
    ] {
        assert_eq!(change.to_string(), sentence);
    }
}

#[test]
fn a_long_reason_is_clipped_in_the_sentence() {
    let reason = "é".repeat(300);
    let sentence = BackendChange { reason: &reason, ..LOST }.to_string();
    assert_eq!(sentence.chars().count(), SENTENCE);
    assert!(sentence.contains("é…") && sentence.ends_with("(1 of 2 left)"), "{sentence}");
    let backend = "b".repeat(200);
    let sentence = BackendChange { backend: &backend, reason: &reason, ..LOST }.to_string();
    assert_eq!(sentence.matches('é').count(), REASON - 1, "something of it is always shown");
}

#[test]
fn spans_are_told_in_two_figures() {
    let told = |millis| rough(Duration::from_millis(millis));
    let all = [0, 350, 999, 1_000, 1_449, 9_960, 12_345, 59_499, 59_500, 72_000, 3_599_000, 7_260_000];
    let expected =
        ["0ms", "350ms", "999ms", "1s", "1.4s", "10s", "12s", "59s", "1m00s", "1m12s", "59m59s", "2h01m"];
    assert_eq!(all.map(told), expected);
}

#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("no panic").write(bytes)
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn logged(log: impl FnOnce()) -> Vec<String> {
    let lines = Lines::default();
    let writer = lines.clone();
    let subscriber = tracing_subscriber::fmt().with_ansi(false).with_writer(move || writer.clone()).finish();
    tracing::subscriber::with_default(subscriber, log);
    let text = String::from_utf8(lines.0.lock().expect("no panic").clone()).expect("text");
    text.lines().map(str::to_owned).collect()
}

#[test]
fn losing_a_backend_is_a_warning_gaining_one_is_not_and_losing_all_is_an_error() {
    let lines = logged(|| {
        backend_changed(&LOST);
        backend_changed(&BACK);
        target_lost("web", 2);
        target_on_backups("web", 1, 3);
        target_back("web", Duration::from_secs(12), 2, 2);
    });
    let [lost, back, none, backups, again]: [&str; 5] =
        lines.iter().map(String::as_str).collect::<Vec<_>>().try_into().expect("five lines");
    assert!(lost.contains("WARN") && back.contains("INFO"), "{lost} {back}");
    assert!(none.contains("ERROR") && none.contains("target web: no backend left (0 of 2)"), "{none}");
    assert!(
        backups.contains("WARN") && backups.contains("target web: on backups (1 of 3 left)"),
        "{backups}"
    );
    assert!(again.contains("INFO") && again.contains("target web: back after 12s (2 of 2 up)"), "{again}");
}

#[test]
fn a_small_budget_of_connections_is_a_warning() {
    let lines = logged(|| {
        descriptor_budget(1024, 499, 2, false);
        descriptor_budget(1024, 100, 2, true);
        descriptor_budget(1200, 500, 2, false);
    });
    assert!(
        lines[0].contains("WARN") && lines[0].contains("room for 499 connections only (`ulimit"),
        "{lines:?}"
    );
    assert!(lines[1].contains("WARN") && lines[1].contains("only (`max_connections`)"), "{lines:?}");
    assert!(lines[2].contains("INFO") && lines[2].contains("room for 500 connections:"), "{lines:?}");
}

#[test]
fn an_address_of_this_machine_alone_says_so() {
    let lines = logged(|| {
        for address in ["127.0.0.1:8080", "[::1]:80", "0.0.0.0:81"] {
            let address: SocketAddr = address.parse().expect("an address");
            listening("web", &address, Some(address));
        }
        listening("web", &"unix:/run/web.sock", None);
    });
    let told = |line: &str| {
        line.split("listening ").nth(1).and_then(|rest| rest.split(" address=").next().map(str::to_owned))
    };
    let start = |number: usize| told(&lines[number]).expect("a sentence");
    assert!(
        start(0).starts_with("127.0.0.1:8080 (this machine only; \"*:8080\" for every address)"),
        "{lines:?}"
    );
    assert!(start(1).starts_with("[::1]:80 (this machine only; \"*:80\" for every address)"), "{lines:?}");
    assert!(
        start(2).starts_with("0.0.0.0:81, listener web")
            && start(3).starts_with("unix:/run/web.sock, listener web")
    );
}
