//! Changes by hand over the admin API: what they do, what is refused, and what outlives reloads and restarts.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use fake_backend::{Behaviour, Running, TcpMode};
use serde_json::{Value, json};

use super::life_lab::tcp_fakes;
use super::support::acme::AcmeAuthority;
use super::support::process::Process;
use super::support::{Client, PATIENCE, eventually, fakes};

/// A target of these backends, called `b0` and so on; `more` stands in each.
pub fn of(backends: &[Running], more: &str) -> String {
    of_target(backends, more, "health_check: off")
}

fn of_target(backends: &[Running], more: &str, target: &str) -> String {
    let line = |(number, backend): (usize, &Running)| {
        format!("      - {{name: b{number}, host: 127.0.0.1, port: {}{more}}}\n", backend.port())
    };
    let all: String = backends.iter().enumerate().map(line).collect();
    format!(
        "workers: 1\ntargets:\n  web:\n    protocol: http\n    listener: 127.0.0.1:0\n    {target}\n    backends:\n{all}"
    )
}

pub const WEB: &str = "/api/v1/targets/web";

pub fn change(process: &Process, request: &str, body: &Value) -> (u16, Value) {
    let (method, path) = request.split_once(' ').unwrap();
    let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
    process.ask(&format!("{method} {WEB}{path}"), &body)
}

fn changed(process: &Process, request: &str, body: &Value) -> Value {
    let (status, answer) = change(process, request, body);
    assert!(matches!(status, 200 | 201), "{request}: {status} {answer}");
    answer
}

/// The backends with weights and operators' words.
pub fn seen(process: &Process) -> Vec<String> {
    let (status, target) = process.ask(&format!("GET {WEB}"), b"");
    assert_eq!(status, 200, "{target}");
    let one = |backend: &Value| {
        let operator = backend["inputs"][0]["says"].as_str().unwrap();
        format!("{} {} {operator}", backend["name"].as_str().unwrap(), backend["weight"])
    };
    target["backends"].as_array().unwrap().iter().map(one).collect()
}

pub fn entries(process: &Process) -> Vec<Value> {
    let (status, overlay) = process.ask("GET /api/v1/overlay", b"");
    assert_eq!((status, &overlay["refused"]), (200, &Value::Null), "{overlay}");
    overlay["entries"].as_array().unwrap().clone()
}

fn serving(process: &Process, count: usize) -> Vec<String> {
    let mut names: Vec<String> =
        (0..count).map(|_| Client::connect(process.address("web")).get("/").text()).collect();
    names.sort();
    names.dedup();
    names
}

#[test]
fn what_is_changed_by_hand_holds_over_reloads_and_a_kill_until_the_file_says_something_else() {
    let backends = fakes(4);
    let config = |more: &str| of(&backends[..3], more);
    let process = Process::start(&config(""), 1);
    assert_eq!(serving(&process, 6).len(), 3);
    changed(&process, "PATCH /backends/b0", &json!({"weight": 5}));
    changed(&process, "PATCH /backends/b1", &json!({"state": "drain"}));
    let url = format!("http://127.0.0.1:{}", backends[3].port());
    let answer = changed(&process, "POST /backends", &json!({"url": url, "name": "b3", "weight": 2}));
    assert_eq!((&answer["objects"], &answer["plan"]["verdict"]), (&json!(["web/b3"]), &json!("taken")));
    changed(&process, "DELETE /backends/b2", &Value::Null);
    let all = ["b0 5 up", "b1 1 drain", "b3 2 up"];
    assert_eq!(seen(&process), all);
    assert_eq!(serving(&process, 14), ["Hello from fake-1", "Hello from fake-4"]);
    eventually("it is said", || {
        process.said().iter().any(|line| {
            line.contains("changed by hand, uid ")
                && line.contains("~ backend web/b0 weight: 1 -> 5 (by hand, uid ")
        })
    });
    let log = process.hang_up();
    assert!(log.contains("reloaded: nothing differs"), "{log}");
    assert_eq!(seen(&process), all);
    let process = Process::start_in(process.kill(), 1);
    assert_eq!(seen(&process), all);
    assert!(process.said().iter().any(|line| line.contains("changes by hand in force: 4")));
    assert_eq!(serving(&process, 14), ["Hello from fake-1", "Hello from fake-4"]);
    let log = process.reload(&config(", weight: 3"));
    assert!(
        log.contains("reloaded: ~ backend web/b0 weight: 5 -> 3 (") && log.contains("; and 2 more"),
        "{log}"
    );
    assert_eq!(seen(&process), ["b0 3 up", "b1 3 drain", "b2 3 up", "b3 2 up"]);
    let process = Process::start_in(process.kill(), 1);
    let left: Vec<Value> = entries(&process).iter().map(|entry| entry["field"].clone()).collect();
    assert_eq!(left, ["state", "added"]);
    changed(&process, "PATCH /backends/b1", &json!({"state": null}));
    changed(&process, "DELETE /backends/b3", &Value::Null);
    assert_eq!(
        (seen(&process), entries(&process).len()),
        (vec!["b0 3 up".into(), "b1 3 up".into(), "b2 3 up".into()], 0)
    );
}

#[test]
fn an_edit_made_while_it_was_down_wins_as_well() {
    let backends = fakes(2);
    let process = Process::start(&of(&backends, ""), 1);
    changed(&process, "PATCH /backends/b0", &json!({"weight": 5}));
    changed(&process, "PATCH /backends/b1", &json!({"state": "down"}));
    let folder = process.kill();
    let text = super::support::process::whole(&of(&backends, ", weight: 7"));
    std::fs::write(folder.path().join("evenkeel.yaml"), text).unwrap();
    let process = Process::start_in(folder, 1);
    assert_eq!(seen(&process), ["b0 7 up", "b1 7 down"]);
    let told = "web/b0 weight 5 is over: the file has changed, it says 7";
    assert!(process.said().iter().any(|line| line.contains(told)), "{:#?}", process.said());
}

#[test]
fn what_can_t_be_is_refused_with_its_reason_and_place() {
    let backends = fakes(2);
    let process = Process::start(&of(&backends, ""), 1);
    let digest = process.digest();
    let refused = |request: &str, body: Value, status: u16, pointer: Option<&str>, detail: &str| {
        let (found, answer) = change(&process, request, &body);
        assert_eq!((found, answer["pointer"].as_str()), (status, pointer), "{request} {body}: {answer}");
        assert!(answer["detail"].as_str().unwrap().contains(detail), "{request} {body}: {answer}");
        assert_eq!(process.digest(), digest, "{request} {body}");
    };
    let url = format!("http://127.0.0.1:{}", backends[1].port());
    let patch = "PATCH /backends/b0";
    refused("PATCH /backends/b9", json!({"weight": 1}), 404, None, "there are web/b0, web/b1");
    refused("DELETE /backends/b9", Value::Null, 404, None, "there is no backend web/b9");
    refused(patch, json!({"weight": 257}), 422, Some("/weight"), "0 to 256");
    refused(patch, json!({"state": "off"}), 422, Some("/state"), "`drain`");
    refused(patch, json!({"wieght": 1}), 422, Some("/wieght"), "did you mean /weight?");
    refused(patch, json!({"for": 5}), 422, Some(""), "at least one field");
    refused(patch, json!({"weight": 2, "for": 0}), 422, Some("/for"), "from 1");
    refused("POST /backends", json!({}), 422, Some("/url"), "a URL");
    refused("POST /backends", json!({"url": "127.0.0.1:1"}), 422, Some("/url"), "has no scheme");
    refused("POST /backends", json!({"url": "tcp://127.0.0.1:1"}), 422, Some("/url"), "speaks tcp");
    refused("POST /backends", json!({"url": "http://a", "zone": "a b"}), 422, Some("/zone"), "has a blank");
    refused("POST /backends", json!({"url": url}), 409, None, "is there twice");
    refused("POST /backends", json!({"url": "http://127.0.0.1:1", "name": "b0"}), 409, None, "have the name");
    refused("DELETE /backends/b0?drain=soon", Value::Null, 400, None, "a time such as");
    refused("PATCH ", json!({"max_in_flight": 0}), 422, Some("/max_in_flight"), "from 1");
    let (status, answer) = process.ask("PATCH /api/v1/targets/wep", br#"{"max_in_flight": 5}"#);
    assert_eq!(status, 404, "{answer}");
    changed(&process, "DELETE /backends/b0", &Value::Null);
    let (status, answer) = change(&process, "DELETE /backends/b1", &Value::Null);
    assert_eq!((status, &answer["title"]), (409, &json!("Conflict")), "{answer}");
    assert!(answer["detail"].as_str().unwrap().contains("no backend of the target"), "{answer}");
    let (status, answer) = change(&process, "PATCH /backends/b0", &json!({"weight": 3}));
    assert_eq!(status, 404, "{answer}");
    assert!(answer["detail"].as_str().unwrap().contains("was removed by hand"), "{answer}");
}

#[test]
fn what_has_a_time_is_over_by_itself() {
    let backends = fakes(2);
    let process = Process::start(&of(&backends, ""), 1);
    changed(&process, "PATCH /backends/b0", &json!({"state": "drain", "for": 1}));
    changed(&process, "PATCH ", &json!({"max_in_flight": 9}));
    let long = changed(&process, "PATCH /backends/b1", &json!({"weight": 2, "for": 3_600}));
    assert!(long["entries"][0]["ends_in_ms"].as_u64().is_some_and(|ms| ms <= 3_600_000), "{long}");
    eventually("it is over", || seen(&process) == ["b0 1 up", "b1 2 up"]);
    let told = "changes by hand are over: ~ backend web/b0 state: drain -> up";
    eventually("it is told", || process.said().iter().any(|line| line.contains(told)));
    eventually("it is shown", || entries(&process)[0]["field"] == "max_in_flight");
    assert_eq!(process.ask(&format!("GET {WEB}"), b"").1["max_in_flight"], 9);
}

#[test]
fn one_that_is_added_gets_requests_after_its_first_good_probe() {
    let backends = fakes(2);
    backends[1].behave(Behaviour::status(503));
    let check = "health_check: {path: /health, interval: 50ms, timeout: 2s}";
    let process = Process::start(&of_target(&backends[..1], "", check), 1);
    let url = format!("http://127.0.0.1:{}", backends[1].port());
    changed(&process, "POST /backends", &json!({"url": url}));
    let state = || process.ask(&format!("GET {WEB}"), b"").1["backends"][1]["state"].clone();
    eventually("it is found sick", || state() == "down");
    assert_eq!(serving(&process, 6), ["Hello from fake-1"]);
    backends[1].behave(Behaviour::default());
    eventually("it is up", || state() == "up");
    assert_eq!(serving(&process, 6).len(), 2);
}

#[test]
fn one_that_is_removed_finishes_what_is_under_way_and_cuts_tunnels_in_the_time_it_is_given() {
    let backends = fakes(2);
    let process = Process::start(&of(&backends, ""), 1);
    let mut client = Client::connect(process.address("web"));
    backends[0].behave(Behaviour::default().latency(std::time::Duration::from_millis(300)).times(2));
    backends[1].behave(Behaviour::default().latency(std::time::Duration::from_millis(300)).times(2));
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    eventually("it is under way", || backends[0].requests() + backends[1].requests() == 1);
    let busy = usize::from(backends[1].requests() == 1);
    changed(&process, &format!("DELETE /backends/b{busy}?drain=0s"), &Value::Null);
    assert_eq!(client.answer().status, 200);

    let tcp = tcp_fakes(2, |fake| fake.behave(Behaviour::tcp(TcpMode::Echo)));
    let config = of(&tcp, "").replace("protocol: http", "protocol: tcp");
    let process = Process::start(&config, 1);
    let mut tunnels: Vec<TcpStream> =
        (0..2).map(|_| TcpStream::connect(process.address("web")).unwrap()).collect();
    for tunnel in &mut tunnels {
        tunnel.write_all(b"x").unwrap();
    }
    let active = || {
        let target = process.ask(&format!("GET {WEB}"), b"").1;
        target["backends"].as_array().unwrap().iter().map(|one| one["active"].as_u64().unwrap()).sum::<u64>()
    };
    eventually("both are there", || active() == 2);
    // Its `drain_timeout` is longer than anybody waits here.
    changed(&process, "DELETE /backends/b0?drain=0s", &Value::Null);
    eventually("one of the two is cut", || cut(&tunnels) == 1);
}

/// How many of them are over.
fn cut(tunnels: &[TcpStream]) -> usize {
    let is_cut = |mut tunnel: &TcpStream| {
        tunnel.set_nonblocking(true).unwrap();
        let mut bytes = [0; 64];
        loop {
            match tunnel.read(&mut bytes) {
                Ok(0) => return true,
                Ok(_) => {}
                Err(error) => return error.kind() != std::io::ErrorKind::WouldBlock,
            }
        }
    };
    tunnels.iter().filter(|tunnel| is_cut(tunnel)).count()
}

#[test]
fn a_second_process_with_the_same_folder_does_not_start_and_names_the_first() {
    let backends = fakes(1);
    let process = Process::start(&format!("name: first\n{}", of(&backends, "")), 1);
    let output = process.command(&["-c", "evenkeel.yaml"]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("is in use by first (process "), "{said}");
    // One that drains lets it go, so that a successor can have it.
    let folder = process.folder().to_owned();
    let mut client = Client::connect(process.address("web"));
    backends[0].behave(Behaviour::default().latency(PATIENCE).times(1));
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    eventually("it is under way", || backends[0].requests() == 1);
    process.terminate();
    let lock = folder.join("state/evenkeel/first/lock");
    eventually("the folder is free", || {
        let file = std::fs::File::open(&lock).unwrap();
        rustix::fs::flock(&file, rustix::fs::FlockOperation::NonBlockingLockExclusive).is_ok()
    });
}

#[test]
fn an_order_under_way_keeps_no_successor_from_the_folder() {
    let is_asked = Arc::new(AtomicBool::new(false));
    let asked = Arc::clone(&is_asked);
    let authority = AcmeAuthority::start(Box::new(move |_, _, _, _| {
        asked.store(true, Ordering::SeqCst);
        // It never comes to an end.
        loop {
            std::thread::park();
        }
    }));
    let backends = fakes(1);
    let process = Process::start(
        &format!(
            "state_dir: state\nacme: {{directory: \"{}\"}}\nlisteners:\n  front:\n    bind: 127.0.0.1:0\n    \
             protocol: https\n    tls: {{certificates: [{{acme: a.example}}]}}\n    routes: [{{target: web}}]\n{}",
            authority.directory(),
            of(&backends, ""),
        ),
        2,
    );
    eventually("the authority looks", || is_asked.load(Ordering::SeqCst));
    let lock = process.folder().join("state/lock");
    let is_free = || {
        let file = std::fs::File::open(&lock).unwrap();
        rustix::fs::flock(&file, rustix::fs::FlockOperation::NonBlockingLockExclusive).is_ok()
    };
    assert!(!is_free(), "it is in use");
    let mut client = Client::connect(process.address("web"));
    backends[0].behave(Behaviour::default().latency(PATIENCE).times(1));
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    eventually("a request is under way", || backends[0].requests() == 1);
    process.terminate();
    eventually("the folder is free", is_free);
}

#[test]
fn without_a_folder_it_serves_and_refuses_changes_with_the_reason() {
    let backends = fakes(1);
    let folder = tempfile::tempdir().unwrap();
    // Nobody can lock it, whoever runs this.
    std::fs::create_dir_all(folder.path().join("kept/lock")).unwrap();
    let config = format!("state_dir: kept\n{}", of(&backends, ""));
    std::fs::write(folder.path().join("evenkeel.yaml"), super::support::process::whole(&config)).unwrap();
    let process = Process::start_in(folder, 1);
    assert_eq!(serving(&process, 1), ["Hello from fake-1"]);
    let (status, answer) = change(&process, "PATCH /backends/b0", &json!({"weight": 3}));
    assert_eq!(status, 503, "{answer}");
    assert!(answer["detail"].as_str().unwrap().contains("/kept: "), "{answer}");
    let (_, overlay) = process.ask("GET /api/v1/overlay", b"");
    assert!(overlay["refused"].as_str().unwrap().contains("/kept: "), "{overlay}");
    assert!(process.said().iter().any(|line| line.contains("changes by hand are refused")));
}

#[test]
fn a_plan_knows_what_would_be_over_and_a_refused_reload_ends_nothing() {
    let backends = fakes(2);
    let process = Process::start(&of(&backends, ""), 1);
    changed(&process, "PATCH /backends/b0", &json!({"weight": 5}));
    let text = super::support::process::whole(&of(&backends, ", weight: 2"));
    let (status, plan) = process.ask("POST /api/v1/config/plan", text.as_bytes());
    assert_eq!(status, 200, "{plan}");
    assert_eq!(plan["over"][0]["reason"], "the file has changed, it says 2", "{plan}");
    assert_eq!(seen(&process), ["b0 5 up", "b1 1 up"]);
    let log = process.reload(&of(&backends, ", weight: 2").replace("workers: 1", "workers: 2"));
    assert!(log.contains("reload refused"), "{log}");
    assert_eq!((seen(&process), entries(&process).len()), (vec!["b0 5 up".into(), "b1 1 up".into()], 1));
}
