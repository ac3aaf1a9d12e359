use std::io::Write;
use std::net::SocketAddr;
use std::path::Path;
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
            BackendChange { from: "unknown", after: None, left: 0, ..LOST },
            "backend web/10.0.0.7:80 is down: connection refused (0 of 2 up)",
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

const NOBODY: TargetChange<'_> = TargetChange {
    target: "web",
    from: "up",
    state: "down",
    after: Some(Duration::from_secs(60)),
    left: 0,
    of: 3,
};

#[test]
fn a_target_that_is_back_says_for_how_long_it_had_no_backend_or_backups_only() {
    let after = |from, state, seconds| TargetChange {
        from,
        state,
        after: Some(Duration::from_secs(seconds)),
        left: 2,
        ..NOBODY
    };
    for (change, sentence) in [
        (NOBODY, "target web: no backend left (0 of 3)"),
        (after("up", "backups", 60), "target web: on backups (2 of 3 left)"),
        (after("down", "backups", 4), "target web: on backups after 4s without a backend (2 of 3 left)"),
        (after("down", "up", 12), "target web: back after 12s without a backend (2 of 3 up)"),
        (after("backups", "up", 6), "target web: back after 6s on backups (2 of 3 up)"),
        (
            TargetChange { after: None, ..after("unknown", "backups", 0) },
            "target web: on backups (2 of 3 left)",
        ),
    ] {
        assert_eq!(change.to_string(), sentence);
    }
}

#[test]
fn losing_a_backend_is_a_warning_gaining_one_is_not_and_losing_all_is_an_error() {
    let lines = logged(|| {
        backend_changed(&LOST);
        backend_changed(&BACK);
        target_changed(&NOBODY);
        target_changed(&TargetChange { state: "backups", ..NOBODY });
        target_changed(&TargetChange { from: "down", state: "up", ..NOBODY });
    });
    for (line, level) in lines.iter().zip(["WARN", "INFO", "ERROR", "WARN", "INFO"]) {
        assert!(line.contains(level) && line.contains("web"), "{level}: {line}");
    }
    assert!(lines.iter().all(|line| line.contains("after_ms=") && line.contains(" left=")), "{lines:?}");
}

#[test]
fn the_lines_of_a_panic_say_how_many_are_left_and_for_how_long_it_was() {
    let lines = logged(|| {
        panic_began("web", 50, 1, 4);
        panic_ended("web", Duration::from_secs(12), 2, 4);
    });
    let [began, ended] = &lines[..] else { panic!("{lines:?}") };
    assert!(began.contains("less than 50% left") && began.contains("(1 of 4 left)"), "{began}");
    assert!(began.contains("left=1") && began.contains("of=4"), "{began}");
    assert!(ended.contains(" again after 12s (2 of 4 left)"), "{ended}");
    assert!(ended.contains("after_ms=12000") && ended.contains("left=2"), "{ended}");
}

#[test]
fn keys_that_can_not_be_fetched_say_for_whom_from_where_why_and_what_follows() {
    let (from, why) = ("https://id.example/…", "TLS: its certificate is self-signed");
    let lines = logged(|| {
        keys_fetched("tokens", from, 4);
        keys_not_fetched("tokens", from, why, false);
        keys_not_fetched("tokens", from, "timeout after 10s", true);
    });
    for (line, told) in lines.iter().zip([
        "INFO the keys of auth rule tokens were fetched from https://id.example/…: 4 of use",
        "WARN cannot fetch the keys of tokens from https://id.example/…: TLS: its certificate is self-signed; nobody gets in",
        "WARN cannot fetch the keys of tokens from https://id.example/…: timeout after 10s; the old ones count",
    ]) {
        let (level, sentence) = told.split_once(' ').expect("a level and a sentence");
        assert!(line.contains(level) && line.contains(sentence), "{line}");
    }
}

/// The message of each event, and not its fields.
struct Messages(Arc<Mutex<Vec<String>>>);

impl tracing::field::Visit for Messages {
    fn record_debug(&mut self, field: &tracing::field::Field, value: &dyn fmt::Debug) {
        if field.name() == "message" {
            self.0.lock().expect("no panic").push(format!("{value:?}"));
        }
    }
}

impl<S: tracing::Subscriber> tracing_subscriber::Layer<S> for Messages {
    fn on_event(&self, event: &tracing::Event<'_>, _: tracing_subscriber::layer::Context<'_, S>) {
        event.record(&mut Messages(Arc::clone(&self.0)));
    }
}

/// Each line has time and level in front, 35 characters.
#[test]
fn names_and_reasons_of_two_hundred_characters_make_no_line_longer_than_160() {
    use tracing_subscriber::layer::SubscriberExt as _;
    let (text, said) = ("x".repeat(200), Arc::<Mutex<Vec<String>>>::default());
    let long = text.as_str();
    let hours = Duration::from_secs(100 * 3600);
    let subscriber = tracing_subscriber::registry().with(Messages(Arc::clone(&said)));
    tracing::subscriber::with_default(subscriber, || {
        for source in ["probe", "breaker", "outlier"] {
            let change = BackendChange {
                target: long,
                backend: long,
                reason: long,
                source,
                left: 9_999,
                of: 10_000,
                ..LOST
            };
            backend_changed(&change);
            backend_changed(&BackendChange { from: "down", to: "up", after: Some(hours), ..change });
        }
        for (from, state) in
            [("up", "down"), ("up", "backups"), ("down", "backups"), ("down", "up"), ("backups", "up")]
        {
            let after = Some(hours);
            target_changed(&TargetChange { target: long, from, state, after, left: 9_999, of: 10_000 });
        }
        panic_began(long, 100, 9_999, 10_000);
        panic_ended(long, hours, 9_999, 10_000);
        probe_starved(long, long, long);
        agent_unheard(long, long, long);
        certificate_expires(long, Path::new(long), 14, i64::MAX, 2);
        certificate_issued(long, Path::new(long), hours);
        certificate_not_issued(long, long, hours, true);
        certificate_not_issued(long, long, hours, false);
        certificate_taken(long, long, Path::new(long));
        proof_unseen(long, long);
        certificate_missing(long);
        renewal_overdue(long, Path::new(long), 20, i64::MAX);
        orders_unkept(long);
        revocation_list_overdue(long, Path::new(long), long, true);
        revocation_list_overdue(long, Path::new(long), long, false);
        name_lost(long, long);
        let asks = crate::config::model::discovery::DnsQuestion { name: long.into(), ..Default::default() };
        [0, 1, 1_000].into_iter().for_each(|addresses| name_not_found(&asks, long, addresses));
        name_found_again(&asks, 1_000);
        name_has_too_many(&asks, 1_000, 10_000);
        resolvers_changed(Path::new(long));
        found_refused(long);
        address_left_out(long, long, long);
        keys_fetched(long, long, 1_000);
        keys_not_fetched(long, long, long, false);
        keys_not_fetched(long, long, long, true);
        upstream_tls_failed(long, long);
        upstream_unverified(long);
        sticky_key_made(long);
        limit_met(long, 10_000);
        connections_cut(long, 100_000);
        fields_dropped(long, 100_000);
        listening(long, &"[2001:db8:1111:2222:3333:4444:5555:6666]:65535", None);
        let mut refusals = Refusals::default();
        for place in [RefusalPlace::Listener(text.clone()), RefusalPlace::Target(text.clone())] {
            refusals.add(place, "too_many_connections", 1_000_000);
        }
        refused(&refusals, hours);
    });
    let said = said.lock().expect("no panic");
    assert_eq!(said.len(), 46, "{said:#?}");
    for sentence in &*said {
        assert!(sentence.chars().count() <= SENTENCE, "{}: {sentence}", sentence.chars().count());
    }
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
