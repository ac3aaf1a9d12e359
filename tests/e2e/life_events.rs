//! What a process says of an outage: each transition once, short, and as JSON with all of its facts.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use fake_backend::{Behaviour, Running};
use serde_json::Value;

use super::life_lab::tcp_fakes;
use super::support::process::Process;
use super::support::{Client, eventually, fakes};

/// The longest line, with its time and level.
const LONGEST: usize = 160;

/// Two backends and a backup, probed quickly, with a breaker and outlier detection that see everything first.
fn config(top: &str, backends: &[Running]) -> String {
    let backend = |name: &str, number: usize, more: &str| {
        format!("      - {{url: \"{}\", name: {name}{more}}}\n", backends[number].url())
    };
    format!(
        "{top}\nworkers: 2\ntargets:\n  app:\n    protocol: http\n    listener: 127.0.0.1:0\n    \
         health_check: {{path: /health, interval: 50ms, timeout: 10s, rise: 2, fall: 2}}\n    \
         breaker: {{failures: 5, open: 100ms}}\n    outlier: {{latency: off}}\n    backends:\n{}{}{}",
        backend("a", 0, ""),
        backend("b", 1, ""),
        backend("spare", 2, ", backup: true"),
    )
}

/// Clients that never stop asking.
fn under_load(process: &Process, work: impl FnOnce(&AtomicUsize)) {
    let (done, answers) = (AtomicBool::new(false), AtomicUsize::new(0));
    let address = process.address("app");
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    let request = "GET / HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n";
                    let status = Client::connect(address).ask(request).status;
                    assert!(matches!(status, 200 | 502 | 503), "{status}");
                    answers.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        // A test that fails must not leave them running.
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| work(&answers)));
        done.store(true, Ordering::Relaxed);
        outcome.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    });
}

/// The lines about the target or one of its backends.
fn lines(process: &Process) -> Vec<String> {
    let is_one = |line: &String| line.contains("backend app/") || line.contains("target app");
    process.said().into_iter().filter(is_one).collect()
}

/// Both backends and the backup go one after the other, and come back, under load. Gives the lines of each step.
fn outage(process: &Process, backends: &[Running]) -> Vec<Vec<String>> {
    let mut steps = Vec::new();
    let mut seen = 0;
    under_load(process, |answers| {
        let mut step = |what: &str, count: usize| {
            eventually(what, || lines(process).len() >= seen + count);
            // What would come too many has time to.
            let enough = answers.load(Ordering::Relaxed) + 400;
            eventually("the load goes on", || answers.load(Ordering::Relaxed) >= enough);
            let all = lines(process);
            steps.push(all[seen..].to_vec());
            seen = all.len();
        };
        step("all are up", 3);
        backends[0].stop();
        step("one is down", 1);
        backends[1].stop();
        step("both are down", 2);
        backends[2].stop();
        step("the backup is down", 2);
        backends[2].restart().unwrap();
        step("the backup is back", 2);
        backends[0].restart().unwrap();
        step("one is back", 2);
        backends[1].restart().unwrap();
        step("both are back", 1);
    });
    steps
}

#[test]
fn an_outage_under_load_has_one_short_line_for_each_transition() {
    let backends = fakes(3);
    let process = Process::start(&config("", &backends), 1);
    let steps = outage(&process, &backends);
    let counts: Vec<usize> = steps.iter().map(Vec::len).collect();
    assert_eq!(counts, [3, 1, 2, 2, 2, 2, 1], "{steps:#?}");
    for line in process.said() {
        assert!(line.chars().count() <= LONGEST, "{} characters: {line}", line.chars().count());
        assert!(!line.contains("=\""), "a sentence has no fields behind it: {line}");
    }
    let has = |step: usize, number: usize, level: &str, words: &[&str]| {
        let line = &steps[step][number];
        assert!(line.contains(level) && words.iter().all(|word| line.contains(word)), "{words:?}: {line}");
    };
    has(0, 2, " INFO ", &[" is up: the first probe passed (3 of 3 up)"]);
    has(1, 0, " WARN ", &["backend app/a is down", " (2 of 3 left)"]);
    has(2, 0, " WARN ", &["backend app/b is down", " (1 of 3 left)"]);
    has(2, 1, " WARN ", &["target app: on backups (1 of 3 left)"]);
    has(3, 0, " WARN ", &["backend app/spare is down", " (0 of 3 left)"]);
    has(3, 1, "ERROR ", &["target app: no backend left (0 of 3)"]);
    has(4, 0, " INFO ", &["backend app/spare is up again after ", " (1 of 3 up)"]);
    has(4, 1, " WARN ", &["target app: on backups after ", " without a backend (1 of 3 left)"]);
    has(5, 0, " INFO ", &["backend app/a is up again after ", " (2 of 3 up)"]);
    has(5, 1, " INFO ", &["target app: back after ", " on backups (2 of 3 up)"]);
    has(6, 0, " INFO ", &["backend app/b is up again after ", " (3 of 3 up)"]);
    for line in steps[4..].iter().map(|step| &step[0]) {
        let reasons = ["2 probes passed", "its trial went well", "it can be connected to again"];
        assert!(reasons.iter().any(|reason| line.contains(&format!(": {reason} ("))), "{line}");
    }
}

#[test]
fn as_json_a_transition_has_every_fact_as_a_field() {
    let backends = fakes(3);
    let process = Process::start(&config("log_format: json", &backends), 1);
    let steps = outage(&process, &backends);
    let events: Vec<Value> =
        steps.iter().flatten().map(|line| serde_json::from_str(line).expect("an object")).collect();
    assert_eq!(events.len(), 13, "{events:#?}");
    for event in &events {
        let (message, fields) = (event["message"].as_str().unwrap(), &event["fields"]);
        let (left, of) = (fields["left"].as_u64().unwrap(), fields["of"].as_u64().unwrap());
        assert!(fields["target"] == "app" && message.contains(&format!("({left} of {of}")), "{event}");
        let text = |name: &str| fields[name].as_str().unwrap_or_else(|| panic!("{name}: {event}")).to_owned();
        if message.starts_with("target app") {
            let expected = match text("state").as_str() {
                "down" => ("error", "no backend left"),
                "backups" => ("warn", "on backups"),
                "up" => ("info", "back after"),
                other => panic!("{other}: {event}"),
            };
            assert!(event["level"] == expected.0 && message.contains(expected.1), "{event}");
            assert!(fields["after_ms"].is_u64() && fields["from"].is_string(), "{event}");
            continue;
        }
        let (from, to, reason) = (text("from"), text("to"), text("reason"));
        let start = format!("backend app/{} is {to}", text("backend"));
        assert!(message.starts_with(&start) && message.contains(&reason), "{event}");
        let deciders = ["probe", "breaker", "outlier"];
        assert!(deciders.contains(&text("source").as_str()), "{event}");
        assert_eq!(fields["after_ms"].is_u64(), from != "unknown", "{event}");
    }
    let path = |name: &str| -> Vec<String> {
        let of_it = events.iter().filter(|event| event["fields"]["backend"] == name);
        of_it.map(|event| event["fields"]["to"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(path("a"), ["up", "down", "up"]);
    assert_eq!(path("spare"), ["up", "down", "up"]);
}

/// The one line that tells what was refused.
fn refusals(process: &Process) -> String {
    let told =
        || -> Vec<String> { process.said().into_iter().filter(|line| line.contains(" refused ")).collect() };
    eventually("it is told", || !told().is_empty());
    let [line] = &told()[..] else { panic!("one line: {:#?}", told()) };
    assert!(line.contains(" WARN ") && line.chars().count() <= LONGEST, "{line}");
    line.clone()
}

#[test]
fn forty_requests_without_a_place_in_the_queue_are_one_line() {
    let backends = fakes(3);
    backends.iter().for_each(|backend| backend.behave(Behaviour::hang()));
    let config =
        config("", &backends).replace("    backends:", "    max_in_flight: 1\n    queue: off\n    backends:");
    // Probes only connect: who hangs is up.
    let process = Process::start(&config.replace("path: /health, ", ""), 1);
    let address = process.address("app");
    eventually("they are up", || lines(&process).len() == 3);
    let mut held: Vec<Client> = (0..3).map(|_| Client::connect(address)).collect();
    for client in &mut held {
        client.send("GET / HTTP/1.1\r\nHost: test\r\n\r\n");
    }
    let busy = || backends.iter().map(Running::requests).sum::<u64>();
    eventually("all are busy", || busy() == 3);
    // All are there before one is waited for: a line tells what comes within a second.
    let mut others: Vec<Client> = (0..40).map(|_| Client::connect(address)).collect();
    for client in &mut others {
        client.send("GET / HTTP/1.1\r\nHost: test\r\n\r\n");
    }
    for client in &mut others {
        assert_eq!(client.answer().status, 503);
    }
    let line = refusals(&process);
    let end = ": 40 queue_full (target app)";
    assert!(line.contains(" refused 40 in ") && line.ends_with(end), "{line}");
}

/// So many clients who are told that there is no room for them.
fn turned_away(process: &Process, count: usize, status: u16) {
    let address = process.address("app");
    let mut clients: Vec<Client> = (0..count).map(|_| Client::connect(address)).collect();
    for client in &mut clients {
        assert_eq!(client.get("/").status, status);
    }
}

/// So many clients who have been served once and stay.
fn held(process: &Process, count: usize) -> Vec<Client> {
    let address = process.address("app");
    let served = |_| {
        let mut client = Client::connect(address);
        assert_eq!(client.get("/").status, 200);
        client
    };
    (0..count).map(served).collect()
}

#[test]
fn forty_clients_without_room_are_one_line() {
    let backends = fakes(3);
    let process = Process::start(&config("max_connections: 2", &backends), 1);
    let held = held(&process, 2);
    turned_away(&process, 40, 503);
    let line = refusals(&process);
    let end = ": 40 too_many_connections (listener app)";
    assert!(line.contains(" refused 40 in ") && line.ends_with(end), "{line}");
    drop(held);
}

#[test]
fn as_json_what_was_refused_is_a_number_for_each_cause_and_place() {
    let backends = fakes(3);
    let config = config("log_format: json", &backends);
    let limits = "    limits: {connections_per_client: 2}\n    backends:";
    let process = Process::start(&config.replace("    backends:", limits), 1);
    let held = held(&process, 2);
    turned_away(&process, 40, 429);
    let told = || process.said().into_iter().find(|line| line.contains("\"refused "));
    eventually("it is told", || told().is_some());
    let event: Value = serde_json::from_str(&told().unwrap()).unwrap();
    let counts = serde_json::json!({"too_many_from_client": 40});
    assert_eq!((&event["level"], &event["fields"]["count"]), (&"warn".into(), &40.into()), "{event}");
    assert_eq!(event["fields"]["by_cause"], counts, "{event}");
    assert_eq!(event["fields"]["by_listener"], serde_json::json!({"app": counts}), "{event}");
    drop(held);
}

/// Over TCP nobody can be told why.
#[test]
fn tcp_connections_that_are_closed_for_want_of_room_have_their_line() {
    let backend = tcp_fakes(1, |fake| fake);
    let config = format!(
        "workers: 2\ntargets:\n  raw:\n    protocol: tcp\n    listener: 127.0.0.1:0\n    \
         health_check: off\n    limits: {{connections_per_client: 1}}\n    \
         backends: [{{host: 127.0.0.1, port: {}}}]\n",
        backend[0].addr().port()
    );
    let process = Process::start(&config, 1);
    let address = process.address("raw");
    let mut held = Client::connect(address);
    held.send("x");
    eventually("it is served", || backend[0].connections() == 1);
    let mut others: Vec<Client> = (0..40).map(|_| Client::connect(address)).collect();
    for client in &mut others {
        assert!(client.is_closed());
    }
    let line = refusals(&process);
    assert!(line.ends_with(": 40 too_many_from_client (listener raw)"), "{line}");
}

/// Nobody probes: what is known is known from requests that fail.
#[test]
fn without_probes_an_outage_is_told_in_the_same_lines() {
    let backends = fakes(2);
    let config = format!(
        "workers: 2\ntargets:\n  app:\n    protocol: http\n    listener: 127.0.0.1:0\n    health_check: off\n    \
         backends:\n      - {{url: \"{}\", name: a}}\n      - {{url: \"{}\", name: spare, backup: true}}\n",
        backends[0].url(),
        backends[1].url()
    );
    let process = Process::start(&config, 1);
    let mut steps = Vec::new();
    under_load(&process, |answers| {
        let mut seen = 0;
        let mut step = |what: &str, count: usize| {
            eventually(what, || lines(&process).len() >= seen + count);
            let enough = answers.load(Ordering::Relaxed) + 400;
            eventually("the load goes on", || answers.load(Ordering::Relaxed) >= enough);
            let all = lines(&process);
            steps.push(all[seen..].to_vec());
            seen = all.len();
        };
        step("nothing is told of what is up from the start", 0);
        backends[0].stop();
        step("it is down", 2);
        backends[1].stop();
        step("both are down", 2);
        backends[1].restart().unwrap();
        step("the backup is back", 2);
        backends[0].restart().unwrap();
        step("both are back", 2);
    });
    let has = |step: usize, number: usize, words: &[&str]| {
        let line = &steps[step][number];
        assert!(words.iter().all(|word| line.contains(word)), "{words:?}: {line}");
    };
    let counts: Vec<usize> = steps.iter().map(Vec::len).collect();
    assert_eq!(counts, [0, 2, 2, 2, 2], "{steps:#?}");
    has(1, 0, &[" WARN ", "backend app/a is down, left out: it could not be connected to (1 of 2 left)"]);
    has(1, 1, &[" WARN ", "target app: on backups (1 of 2 left)"]);
    has(2, 0, &[" WARN ", "backend app/spare is down", " (0 of 2 left)"]);
    has(2, 1, &["ERROR ", "target app: no backend left (0 of 2)"]);
    has(3, 0, &[" INFO ", "backend app/spare is up again after ", " (1 of 2 up)"]);
    has(3, 1, &[" WARN ", "target app: on backups after ", " without a backend (1 of 2 left)"]);
    has(4, 0, &[" INFO ", "backend app/a is up again after ", " (2 of 2 up)"]);
    has(4, 1, &[" INFO ", "target app: back after ", " on backups (2 of 2 up)"]);
}
